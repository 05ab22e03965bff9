/* Rows have at least LANES channels. Of their blocks of LANES channels the last begins so early that it is whole, too;
   what it shares with the one before is computed twice. Sums of a chunk of rows are therefore kept by block. */
#include "norm.h"

static inline integer chunk_end(integer number, integer rows)
{
    return (number + 1) * CHUNK < rows ? (number + 1) * CHUNK : rows;
}
static inline real scale_of(const struct norm *work, integer row) { return work->scale.at ? work->scale.at[row] : 1; }
static inline integer whole_block(integer block, integer width)
{
    return block < width - LANES ? block : width - LANES;
}
static inline integer blocked(integer width) { return (width + LANES - 1) / LANES * LANES; }

static inline vector scaled(const struct norm *work, integer row, integer c)
{
    return load(row_at(work->x, row) + c) * scale_of(work, row);
}

static inline vector normal_of(const struct norm *work, integer row, integer c)
{
    return (scaled(work, row, c) - load(work->mean + c)) * load(work->rate + c);
}

static inline void add_to(real *sum, vector value) { store(sum, load(sum) + value); }

/* Two sums of a chunk, by block, to where they are put together. */
static void store_sums(const struct norm *work, integer number, const real *first, const real *second)
{
    real *sums = work->sums + number * 2 * work->x.width;
    for (integer block = 0; block < work->x.width; block += LANES) {
        const integer c = whole_block(block, work->x.width);
        store(sums + c, load(first + block));
        store(sums + work->x.width + c, load(second + block));
    }
}

/* Mean, and sum of squared deviations from it, of one chunk. The mean is formed of differences from the first row. */
static void moments_task(void *argument, integer number)
{
    const struct norm copy = *(const struct norm *)argument, *work = &copy;
    const integer first = number * CHUNK, end = chunk_end(number, work->x.count), width = work->x.width;
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

void find_moments(integer threads, const struct norm *work)
{
    run_tasks(threads, chunks_of(work->x.count), moments_task, (void *)work);
}

void add_moments(struct moments *all, const real *sums, integer rows, integer width)
{
    for (integer number = 0; number < chunks_of(rows); number++, sums += 2 * width) {
        const double count = (double)(chunk_end(number, rows) - number * CHUNK), seen = all->rows, now = seen + count;
        for (integer c = 0; c < width; c++) {
            const double step = sums[c] - all->mean[c];
            all->mean[c] += step * count / now;
            all->squares[c] += sums[width + c] + step * step * seen * count / now;
        }
        all->rows = now;
    }
}

void settle_statistics(const struct normal *norm, const struct moments *found, integer width, real *mean, real *variance,
                       real *rate)
{
    if (norm->of_rows) {
        const real weight = (real)norm->momentum, unbiased = (real)(found->rows / (found->rows - 1));
        for (integer c = 0; c < width; c++) {
            mean[c] = (real)found->mean[c];
            variance[c] = (real)(found->squares[c] / found->rows);
            norm->running_mean.at[c] += weight * (mean[c] - norm->running_mean.at[c]);
            norm->running_variance.at[c] += weight * (unbiased * variance[c] - norm->running_variance.at[c]);
        }
    } else {
        memcpy(mean, norm->running_mean.at, (size_t)width * sizeof(real));
        memcpy(variance, norm->running_variance.at, (size_t)width * sizeof(real));
    }
    for (integer c = 0; c < width; c++)
        rate[c] = (real)(1 / sqrt((double)variance[c] + norm->epsilon));
}

static void apply_task(void *argument, integer number)
{
    const struct norm copy = *(const struct norm *)argument, *work = &copy;
    const vector floor = all(work->relu ? 0 : -INFINITY);
    for (integer row = number * CHUNK; row < chunk_end(number, work->x.count); row++)
        for (integer block = 0; block < work->x.width; block += LANES) {
            const integer c = whole_block(block, work->x.width);
            vector out = normal_of(work, row, c) * load(work->weight + c) + load(work->bias + c);
            out = where(out < floor, floor, out);
            if (!left_out(work->residual))
                out += load(row_at(work->residual, row) + c);
            store(row_at(work->out, row) + c, out);
        }
}

void normalise(integer threads, const struct norm *work)
{
    run_tasks(threads, chunks_of(work->x.count), apply_task, (void *)work);
}

static struct norm work_of(const struct normalization *call)
{
    const integer width = call->x.width;
    return (struct norm){.x = call->x, .residual = call->residual, .out = call->out, .gradient = call->gradient,
                         .x_gradient = call->x_gradient, .scale = call->scale, .weight = call->weight.at,
                         .bias = call->bias.at, .mean = call->mean.at, .rate = call->rate.at,
                         .mean_gradient = call->means.at, .mean_product = call->means.at ? call->means.at + width : NULL,
                         .sums = call->sums.at, .relu = call->relu};
}

static enum answer check(const struct normalization *call)
{
    const integer rows = call->x.count, width = call->x.width;
    NEED_SIZES(call->threads >= 1 && width >= LANES && width <= WIDEST && sized(call->x, rows, width));
    NEED_SIZES(rows > 0 || !call->training);
    NEED_SIZES(call->scale.at == NULL || sized_line(call->scale, rows));
    NEED_SIZES(sized(call->sums, 2 * chunks_of(rows), width) && call->sums.step == width);
    NEED_SIZES(sized_line(call->weight, width) && sized_line(call->bias, width));
    NEED_SIZES(sized_line(call->mean, width) && sized_line(call->rate, width));
    return DONE;
}

enum answer norm_forward(const struct normalization *call)
{
    const integer rows = call->x.count, width = call->x.width;
    const enum answer answer = check(call);
    if (answer != DONE)
        return answer;
    NEED_SIZES(left_out(call->residual) || sized(call->residual, rows, width));
    NEED_SIZES(sized(call->out, rows, width) && sized_line(call->variance, width));
    struct norm work = work_of(call);
    if (call->training) {
        struct moments moments = {0};
        find_moments(call->threads, &work);
        add_moments(&moments, work.sums, rows, width);
        for (integer c = 0; c < width; c++) {
            call->mean.at[c] = (real)moments.mean[c];
            call->variance.at[c] = (real)(moments.squares[c] / moments.rows);
        }
    }
    for (integer c = 0; c < width; c++)
        call->rate.at[c] = (real)(1 / sqrt((double)call->variance.at[c] + call->epsilon));
    normalise(call->threads, &work);
    return DONE;
}

/* The gradient behind the ReLU. */
static inline vector behind_relu(const struct norm *work, integer row, integer c, vector normal)
{
    const vector floor = all(work->relu ? 0 : -INFINITY);
    const vector out = normal * load(work->weight + c) + load(work->bias + c);
    return where(out <= floor, all(0), load(row_at(work->gradient, row) + c));
}

static void gradient_sums_task(void *argument, integer number)
{
    const struct norm copy = *(const struct norm *)argument, *work = &copy;
    const integer width = work->x.width;
    real sum[blocked(width)], product[blocked(width)];
    memset(sum, 0, sizeof sum);
    memset(product, 0, sizeof product);
    for (integer row = number * CHUNK; row < chunk_end(number, work->x.count); row++)
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
    for (integer row = number * CHUNK; row < chunk_end(number, work->x.count); row++)
        for (integer block = 0; block < work->x.width; block += LANES) {
            const integer c = whole_block(block, work->x.width);
            const vector normal = normal_of(work, row, c), slope = load(work->rate + c) * load(work->weight + c);
            const vector gradient = behind_relu(work, row, c, normal) - load(work->mean_gradient + c)
                                    - normal * load(work->mean_product + c);
            store(row_at(work->x_gradient, row) + c, gradient * slope * scale_of(work, row));
        }
}

void find_gradient_sums(integer threads, const struct norm *work)
{
    run_tasks(threads, chunks_of(work->x.count), gradient_sums_task, (void *)work);
}

void add_gradient_sums(struct gradient_sums *all, const real *sums, integer rows, integer width)
{
    for (integer number = 0; number < chunks_of(rows); number++, sums += 2 * width)
        for (integer c = 0; c < width; c++) {
            all->gradient[c] += sums[c];
            all->product[c] += sums[width + c];
        }
}

void find_x_gradient(integer threads, const struct norm *work)
{
    run_tasks(threads, chunks_of(work->x.count), x_gradient_task, (void *)work);
}

enum answer norm_backward(const struct normalization *call)
{
    const integer rows = call->x.count, width = call->x.width;
    const enum answer answer = check(call);
    if (answer != DONE)
        return answer;
    NEED_SIZES(sized(call->gradient, rows, width) && sized(call->x_gradient, rows, width));
    NEED_SIZES(sized_line(call->means, 2 * width) && sized_line(call->weight_gradient, width));
    NEED_SIZES(sized_line(call->bias_gradient, width));
    struct norm work = work_of(call);
    struct gradient_sums sums = {0};
    find_gradient_sums(call->threads, &work);
    add_gradient_sums(&sums, work.sums, rows, width);
    for (integer c = 0; c < width; c++) {
        call->bias_gradient.at[c] = (real)sums.gradient[c];
        call->weight_gradient.at[c] = (real)sums.product[c];
        call->means.at[c] = call->training ? (real)(sums.gradient[c] / (double)rows) : 0;
        call->means.at[width + c] = call->training ? (real)(sums.product[c] / (double)rows) : 0;
    }
    find_x_gradient(call->threads, &work);
    return DONE;
}
