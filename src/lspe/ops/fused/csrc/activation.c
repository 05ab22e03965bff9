/* out = residual + tanh(x). Rows have at least LANES channels; the last vector of a row begins so early that it is
   whole, too. */
#include "tasks.h"

struct activation {
    integer rows, width, x_row, other_row;
    const real *x, *other; /* other: the residual (or null), or the gradient of out */
    real *out;             /* out, or the gradient of x */
};

static inline integer whole_vector(integer c, integer width) { return c < width - LANES ? c : width - LANES; }

static void tanh_task(void *argument, integer number)
{
    const struct activation copy = *(const struct activation *)argument, *work = &copy;
    for (integer row = begin_of(number); row < end_of(number, work->rows); row++)
        for (integer block = 0; block < work->width; block += LANES) {
            const integer c = whole_vector(block, work->width);
            vector out = hyperbolic_tangent(load(work->x + row * work->x_row + c));
            if (work->other)
                out += load(work->other + row * work->other_row + c);
            store(work->out + row * work->width + c, out);
        }
}

static void gradient_task(void *argument, integer number)
{
    const struct activation copy = *(const struct activation *)argument, *work = &copy;
    for (integer row = begin_of(number); row < end_of(number, work->rows); row++)
        for (integer block = 0; block < work->width; block += LANES) {
            const integer c = whole_vector(block, work->width);
            const vector value = hyperbolic_tangent(load(work->x + row * work->x_row + c));
            const vector gradient = load(work->other + row * work->other_row + c);
            store(work->out + row * work->x_row + c, gradient - gradient * value * value);
        }
}

void tanh_forward(integer threads, integer rows, integer width, const real *x, integer x_row, const real *residual,
                  integer residual_row, real *out)
{
    struct activation work = {rows, width, x_row, residual_row, x, residual, out};
    run_tasks(threads, tasks_of(rows), tanh_task, &work);
}

void tanh_backward(integer threads, integer rows, integer width, const real *x, integer x_row, const real *gradient,
                   integer gradient_row, real *x_gradient)
{
    struct activation work = {rows, width, x_row, gradient_row, x, gradient, x_gradient};
    run_tasks(threads, tasks_of(rows), gradient_task, &work);
}
