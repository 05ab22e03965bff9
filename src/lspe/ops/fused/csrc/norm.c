/* Batch normalisation with what stands around it: out = residual + relu(weight * (scale * x - mean) * rate + bias).

   Rows have at least LANES channels. Of their blocks of LANES channels the last begins so early that it is whole, too;
   what it shares with the one before is computed twice. Sums of a chunk of rows are therefore kept by block. */
#include "tasks.h"

#define CHUNK 128 /* rows whose sums are formed in `real`; the chunks' sums are put together in double */

struct norm {
    integer rows, width;
    const real *x;
    integer x_row;     /* rows are so many numbers apart */
    const real *scale; /* [rows], or null for ones */
    const real *weight, *bias, *mean, *rate;
    const real *residual; /* or null for zeros */
    integer residual_row;
    integer relu;
    real *out;

    const real *gradient;
    integer gradient_row;
    const real *mean_gradient, *mean_product; /* means over the rows of g and g * normalised x; zeros in evaluation */
    real *x_gradient;

    real *sums; /* [chunks, 2, width] */
};

static inline integer chunks_of(integer rows) { return (rows + CHUNK - 1) / CHUNK; }
static inline integer chunk_end(integer number, integer rows)
{
    return (number + 1) * CHUNK < rows ? (number + 1) * CHUNK : rows;
}
static inline real scale_of(const struct norm *work, integer row) { return work->scale ? work->scale[row] : 1; }
static inline integer whole_block(integer block, integer width)
{
    return block < width - LANES ? block : width - LANES;
}
static inline integer blocked(integer width) { return (width + LANES - 1) / LANES * LANES; }

static inline vector scaled(const struct norm *work, integer row, integer c)
{
    return load(work->x + row * work->x_row + c) * scale_of(work, row);
}

static inline vector normal_of(const struct norm *work, integer row, integer c)
{
    return (scaled(work, row, c) - load(work->mean + c)) * load(work->rate + c);
}

static inline void add_to(real *sum, vector value) { store(sum, load(sum) + value); }

/* Two sums of a chunk, by block, to where they are put together. */
static void store_sums(const struct norm *work, integer number, const real *first, const real *second)
{
    real *sums = work->sums + number * 2 * work->width;
    for (integer block = 0; block < work->width; block += LANES) {
        const integer c = whole_block(block, work->width);
        store(sums + c, load(first + block));
        store(sums + work->width + c, load(second + block));
    }
}

/* Mean, and sum of squared deviations from it, of one chunk. The mean is formed of differences from the first row. */
static void moments_task(void *argument, integer number)
{
    const struct norm copy = *(const struct norm *)argument, *work = &copy;
    const integer first = number * CHUNK, end = chunk_end(number, work->rows), width = work->width;
    real mean[blocked(width)], squares[blocked(width)];
    memset(mean, 0, sizeof mean);
    memset(squares, 0, sizeof squares);
    for (integer row = first; row < end; row++)
        for (integer block = 0; block < width; block += LANES) {
            const integer c = whole_block(block, width);
            add_to(mean + block, scaled(work, row, c) - scaled(work, first, c));
        }
    for (integer block = 0; block < width; block += LANES)
        store(mean + block, scaled(work, first, whole_block(block, width)) + load(mean + block) / (real)(end - first));
    for (integer row = first; row < end; row++)
        for (integer block = 0; block < width; block += LANES) {
            const vector deviation = scaled(work, row, whole_block(block, width)) - load(mean + block);
            add_to(squares + block, deviation * deviation);
        }
    store_sums(work, number, mean, squares);
}

/* Mean and (biased) variance of all rows. */
static void find_moments(const struct norm *work, integer threads, real *mean, real *variance)
{
    const integer chunks = chunks_of(work->rows), width = work->width;
    run_tasks(threads, chunks, moments_task, (void *)work);
    for (integer c = 0; c < width; c++) {
        double center = 0, squares = 0, seen = 0;
        for (integer number = 0; number < chunks; number++) {
            const double count = (double)(chunk_end(number, work->rows) - number * CHUNK), all = seen + count;
            const double step = work->sums[number * 2 * width + c] - center;
            center += step * count / all;
            squares += work->sums[(number * 2 + 1) * width + c] + step * step * seen * count / all;
            seen = all;
        }
        mean[c] = (real)center;
        variance[c] = (real)(squares / seen);
    }
}

static void apply_task(void *argument, integer number)
{
    const struct norm copy = *(const struct norm *)argument, *work = &copy;
    const vector floor = all(work->relu ? 0 : -INFINITY);
    for (integer row = number * CHUNK; row < chunk_end(number, work->rows); row++)
        for (integer block = 0; block < work->width; block += LANES) {
            const integer c = whole_block(block, work->width);
            vector out = normal_of(work, row, c) * load(work->weight + c) + load(work->bias + c);
            out = where(out < floor, floor, out);
            if (work->residual)
                out += load(work->residual + row * work->residual_row + c);
            store(work->out + row * work->width + c, out);
        }
}

/* out [rows, width]. In training the mean and the variance [width] are found here, in evaluation they are given. rate =
   1 / sqrt(variance + epsilon) is found in both. `sums` is room for 2 * width numbers a chunk of 128 rows. */
void norm_forward(integer threads, integer rows, integer width, const real *x, integer x_row, const real *scale,
                  const real *weight, const real *bias, const real *epsilon, integer relu, integer training,
                  const real *residual, integer residual_row, real *sums, real *mean, real *variance, real *rate,
                  real *out)
{
    struct norm work = {.rows = rows, .width = width, .x = x, .x_row = x_row, .scale = scale, .weight = weight,
                        .bias = bias, .mean = mean, .rate = rate, .relu = relu, .residual = residual,
                        .residual_row = residual_row, .out = out, .sums = sums};
    if (training)
        find_moments(&work, threads, mean, variance);
    for (integer c = 0; c < width; c++)
        rate[c] = (real)(1 / sqrt((double)variance[c] + (double)*epsilon));
    run_tasks(threads, chunks_of(rows), apply_task, &work);
}

/* The gradient behind the ReLU. */
static inline vector behind_relu(const struct norm *work, integer row, integer c, vector normal)
{
    const vector floor = all(work->relu ? 0 : -INFINITY);
    const vector out = normal * load(work->weight + c) + load(work->bias + c);
    return where(out <= floor, all(0), load(work->gradient + row * work->gradient_row + c));
}

static void gradient_sums_task(void *argument, integer number)
{
    const struct norm copy = *(const struct norm *)argument, *work = &copy;
    const integer width = work->width;
    real sum[blocked(width)], product[blocked(width)];
    memset(sum, 0, sizeof sum);
    memset(product, 0, sizeof product);
    for (integer row = number * CHUNK; row < chunk_end(number, work->rows); row++)
        for (integer block = 0; block < width; block += LANES) {
            const integer c = whole_block(block, width);
            const vector normal = normal_of(work, row, c), gradient = behind_relu(work, row, c, normal);
            add_to(sum + block, gradient);
            add_to(product + block, gradient * normal);
        }
    store_sums(work, number, sum, product);
}

static void x_gradient_task(void *argument, integer number)
{
    const struct norm copy = *(const struct norm *)argument, *work = &copy;
    for (integer row = number * CHUNK; row < chunk_end(number, work->rows); row++)
        for (integer block = 0; block < work->width; block += LANES) {
            const integer c = whole_block(block, work->width);
            const vector normal = normal_of(work, row, c), slope = load(work->rate + c) * load(work->weight + c);
            const vector gradient = behind_relu(work, row, c, normal) - load(work->mean_gradient + c)
                                    - normal * load(work->mean_product + c);
            store(work->x_gradient + row * work->x_row + c, gradient * slope * scale_of(work, row));
        }
}

/* Gradients of x (its rows as far apart as x's), weight and bias. In training the mean and the variance are those of
   the rows and depend on x, in evaluation they are given. `means` is room for 2 * width numbers. */
void norm_backward(integer threads, integer rows, integer width, const real *x, integer x_row, const real *scale,
                   const real *weight, const real *bias, const real *mean, const real *rate, integer relu,
                   integer training, const real *gradient, integer gradient_row, real *sums, real *means,
                   real *x_gradient, real *weight_gradient, real *bias_gradient)
{
    struct norm work = {.rows = rows, .width = width, .x = x, .x_row = x_row, .scale = scale, .weight = weight,
                        .bias = bias, .mean = mean, .rate = rate, .relu = relu, .gradient = gradient,
                        .gradient_row = gradient_row, .mean_gradient = means, .mean_product = means + width,
                        .x_gradient = x_gradient, .sums = sums};
    const integer chunks = chunks_of(rows);
    run_tasks(threads, chunks, gradient_sums_task, &work);
    for (integer c = 0; c < width; c++) {
        double sum = 0, product = 0;
        for (integer number = 0; number < chunks; number++) {
            sum += sums[number * 2 * width + c];
            product += sums[(number * 2 + 1) * width + c];
        }
        bias_gradient[c] = (real)sum;
        weight_gradient[c] = (real)product;
        means[c] = training ? (real)(sum / (double)rows) : 0;
        means[width + c] = training ? (real)(product / (double)rows) : 0;
    }
    run_tasks(threads, chunks, x_gradient_task, &work);
}
