/* Batch normalisation with what stands around it: out = residual + relu(weight * (scale * x - mean) * rate + bias). */
#include "tasks.h"

#define CHUNK 128 /* rows whose sums are formed in `real`; the chunks' sums are put together in double */

struct norm {
    index rows, width;
    const real *x;
    index x_row;
    const real *scale; /* [rows], or null for ones */
    const real *weight, *bias, *mean, *rate;
    const real *residual; /* or null for zeros */
    index residual_row;
    index relu;
    real *out;

    const real *gradient;
    index gradient_row;
    const real *mean_gradient, *mean_product; /* means over the rows of g and g * normalised x; zeros in evaluation */
    real *x_gradient;

    real *sums; /* [chunks, 2, width] */
};

static inline index chunks_of(index rows) { return (rows + CHUNK - 1) / CHUNK; }
static inline index chunk_rows(index number, index rows)
{
    return (number + 1) * CHUNK < rows ? CHUNK : rows - number * CHUNK;
}

/* Mean, and sum of squared deviations from it, of one chunk. Sums are formed of differences from its first row. */
static void moments_task(void *argument, index number)
{
    const struct norm *work = argument;
    const index width = work->width, first = number * CHUNK, count = chunk_rows(number, work->rows);
    real *restrict mean = work->sums + number * 2 * width, *restrict squares = mean + width;
    const real *restrict origin = work->x + first * work->x_row;
    const real origin_scale = work->scale ? work->scale[first] : 1;
    memset(mean, 0, 2 * (size_t)width * sizeof *mean);
    for (index row = first; row < first + count; row++) {
        const real *restrict x = work->x + row * work->x_row;
        const real scale = work->scale ? work->scale[row] : 1;
#pragma omp simd
        for (index c = 0; c < width; c++)
            mean[c] += x[c] * scale - origin[c] * origin_scale;
    }
#pragma omp simd
    for (index c = 0; c < width; c++)
        mean[c] = origin[c] * origin_scale + mean[c] / (real)count;
    for (index row = first; row < first + count; row++) {
        const real *restrict x = work->x + row * work->x_row;
        const real scale = work->scale ? work->scale[row] : 1;
#pragma omp simd
        for (index c = 0; c < width; c++) {
            const real deviation = x[c] * scale - mean[c];
            squares[c] += deviation * deviation;
        }
    }
}

/* mean and (biased) variance [width] of all rows. `sums` is room for 2 * width numbers a chunk of 128 rows. */
void norm_moments(index threads, index rows, index width, const real *x, index x_row, const real *scale, real *sums,
                  real *mean, real *variance)
{
    struct norm work = {.rows = rows, .width = width, .x = x, .x_row = x_row, .scale = scale, .sums = sums};
    const index chunks = chunks_of(rows);
    run_tasks(threads, chunks, moments_task, &work);
    for (index c = 0; c < width; c++) {
        double center = 0, squares = 0, seen = 0;
        for (index number = 0; number < chunks; number++) {
            const double count = (double)chunk_rows(number, rows), all = seen + count;
            const double step = sums[number * 2 * width + c] - center;
            center += step * count / all;
            squares += sums[(number * 2 + 1) * width + c] + step * step * seen * count / all;
            seen = all;
        }
        mean[c] = (real)center;
        variance[c] = (real)(squares / seen);
    }
}

static void apply_task(void *argument, index number)
{
    const struct norm *work = argument;
    const index width = work->width, first = number * CHUNK;
    const real *restrict mean = work->mean, *restrict rate = work->rate;
    const real *restrict weight = work->weight, *restrict bias = work->bias;
    for (index row = first; row < first + chunk_rows(number, work->rows); row++) {
        const real *restrict x = work->x + row * work->x_row;
        const real scale = work->scale ? work->scale[row] : 1;
        real *restrict out = work->out + row * width;
#pragma omp simd
        for (index c = 0; c < width; c++)
            out[c] = (x[c] * scale - mean[c]) * rate[c] * weight[c] + bias[c];
        if (work->relu) {
#pragma omp simd
            for (index c = 0; c < width; c++)
                out[c] = out[c] < 0 ? 0 : out[c];
        }
        if (work->residual) {
            const real *restrict residual = work->residual + row * work->residual_row;
#pragma omp simd
            for (index c = 0; c < width; c++)
                out[c] += residual[c];
        }
    }
}

/* out [rows, width]; rate = 1 / sqrt(variance + epsilon). */
void norm_apply(index threads, index rows, index width, const real *x, index x_row, const real *scale,
                const real *weight, const real *bias, const real *mean, const real *rate, index relu,
                const real *residual, index residual_row, real *out)
{
    struct norm work = {.rows = rows, .width = width, .x = x, .x_row = x_row, .scale = scale, .weight = weight,
                        .bias = bias, .mean = mean, .rate = rate, .relu = relu, .residual = residual,
                        .residual_row = residual_row, .out = out};
    run_tasks(threads, chunks_of(rows), apply_task, &work);
}

/* Sums over one chunk of g and of g * normalised x, g being the gradient behind the ReLU. */
static void gradient_sums_task(void *argument, index number)
{
    const struct norm *work = argument;
    const index width = work->width, first = number * CHUNK;
    const real *restrict mean = work->mean, *restrict rate = work->rate;
    const real *restrict weight = work->weight, *restrict bias = work->bias;
    real *restrict of_bias = work->sums + number * 2 * width, *restrict of_weight = of_bias + width;
    const real floor = work->relu ? 0 : -INFINITY;
    memset(of_bias, 0, 2 * (size_t)width * sizeof *of_bias);
    for (index row = first; row < first + chunk_rows(number, work->rows); row++) {
        const real *restrict x = work->x + row * work->x_row;
        const real *restrict gradient = work->gradient + row * work->gradient_row;
        const real scale = work->scale ? work->scale[row] : 1;
#pragma omp simd
        for (index c = 0; c < width; c++) {
            const real normal = (x[c] * scale - mean[c]) * rate[c];
            const real g = normal * weight[c] + bias[c] <= floor ? 0 : gradient[c];
            of_bias[c] += g;
            of_weight[c] += g * normal;
        }
    }
}

static void gradient_task(void *argument, index number)
{
    const struct norm *work = argument;
    const index width = work->width, first = number * CHUNK;
    const real *restrict mean = work->mean, *restrict rate = work->rate;
    const real *restrict weight = work->weight, *restrict bias = work->bias;
    const real *restrict mean_gradient = work->mean_gradient, *restrict mean_product = work->mean_product;
    const real floor = work->relu ? 0 : -INFINITY;
    for (index row = first; row < first + chunk_rows(number, work->rows); row++) {
        const real *restrict x = work->x + row * work->x_row;
        const real *restrict gradient = work->gradient + row * work->gradient_row;
        const real scale = work->scale ? work->scale[row] : 1;
        real *restrict x_gradient = work->x_gradient + row * work->x_row;
#pragma omp simd
        for (index c = 0; c < width; c++) {
            const real normal = (x[c] * scale - mean[c]) * rate[c];
            const real g = normal * weight[c] + bias[c] <= floor ? 0 : gradient[c];
            x_gradient[c] = (g - mean_gradient[c] - normal * mean_product[c]) * (scale * rate[c] * weight[c]);
        }
    }
}

/* Gradients of x (its rows as far apart as x's), weight and bias. In training the mean and the variance are those of
   the rows and depend on x, in evaluation they are given. */
void norm_backward(index threads, index rows, index width, const real *x, index x_row, const real *scale,
                   const real *weight, const real *bias, const real *mean, const real *rate, index relu,
                   index training, const real *gradient, index gradient_row, real *sums, real *means,
                   real *x_gradient, real *weight_gradient, real *bias_gradient)
{
    struct norm work = {.rows = rows, .width = width, .x = x, .x_row = x_row, .scale = scale, .weight = weight,
                        .bias = bias, .mean = mean, .rate = rate, .relu = relu, .gradient = gradient,
                        .gradient_row = gradient_row, .mean_gradient = means, .mean_product = means + width,
                        .x_gradient = x_gradient, .sums = sums};
    const index chunks = chunks_of(rows);
    run_tasks(threads, chunks, gradient_sums_task, &work);
    for (index c = 0; c < width; c++) {
        double of_bias = 0, of_weight = 0;
        for (index number = 0; number < chunks; number++) {
            of_bias += sums[number * 2 * width + c];
            of_weight += sums[(number * 2 + 1) * width + c];
        }
        bias_gradient[c] = (real)of_bias;
        weight_gradient[c] = (real)of_weight;
        means[c] = training ? (real)(of_bias / (double)rows) : 0;
        means[width + c] = training ? (real)(of_weight / (double)rows) : 0;
    }
    run_tasks(threads, chunks, gradient_task, &work);
}
