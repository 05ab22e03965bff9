/* out = residual + tanh(x). Rows have at least LANES channels; the last vector of a row begins so early that it is
   whole, too. */
#include "tasks.h"

static inline integer whole_vector(integer c, integer width) { return c < width - LANES ? c : width - LANES; }

static void tanh_task(void *argument, integer number)
{
    const struct activation work = *(const struct activation *)argument;
    for (integer row = begin_of(number); row < end_of(number, work.x.count); row++)
        for (integer block = 0; block < work.x.width; block += LANES) {
            const integer c = whole_vector(block, work.x.width);
            vector out = hyperbolic_tangent(load(row_at(work.x, row) + c));
            if (!left_out(work.other))
                out += load(row_at(work.other, row) + c);
            store(row_at(work.out, row) + c, out);
        }
}

static void gradient_task(void *argument, integer number)
{
    const struct activation work = *(const struct activation *)argument;
    for (integer row = begin_of(number); row < end_of(number, work.x.count); row++)
        for (integer block = 0; block < work.x.width; block += LANES) {
            const integer c = whole_vector(block, work.x.width);
            const vector value = hyperbolic_tangent(load(row_at(work.x, row) + c));
            const vector gradient = load(row_at(work.other, row) + c);
            store(row_at(work.out, row) + c, gradient * (1 - value * value));
        }
}

static enum answer check(const struct activation *call)
{
    const struct rows x = call->x;
    NEED_SIZES(call->threads >= 1 && x.width >= LANES && sized(x, x.count, x.width) && sized(call->out, x.count, x.width));
    NEED_SIZES(left_out(call->other) || sized(call->other, x.count, x.width));
    return DONE;
}

enum answer tanh_forward(const struct activation *call)
{
    const enum answer answer = check(call);
    if (answer == DONE)
        run_tasks(call->threads, tasks_of(call->x.count), tanh_task, (void *)call);
    return answer;
}

enum answer tanh_backward(const struct activation *call)
{
    NEED_SIZES(!left_out(call->other) || call->x.count == 0);
    const enum answer answer = check(call);
    if (answer == DONE)
        run_tasks(call->threads, tasks_of(call->x.count), gradient_task, (void *)call);
    return answer;
}
