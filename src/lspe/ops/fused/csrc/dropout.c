/* out = x / (1 - p) where a number drawn for its place is not below p, else 0 (NaN stays NaN).

   The number is a hash of the seed and the place alone: results are the same bits for every number of threads, and the
   backward pass draws them again instead of keeping them. */
#include "tasks.h"

struct dropout {
    integer rows, width, x_row;
    const real *x;
    uint64_t seed;
    uint32_t limit; /* places whose number, of 2^32, is below the limit become zero */
    real scale;
    real *out;
};

/* Steele, Lea and Flood, "Fast splittable pseudorandom number generators" (2014): 64 mixed bits. */
static inline uint64_t mixed(uint64_t bits)
{
    bits += 0x9e3779b97f4a7c15u;
    bits = (bits ^ (bits >> 30)) * 0xbf58476d1ce4e5b9u;
    bits = (bits ^ (bits >> 27)) * 0x94d049bb133111ebu;
    return bits ^ (bits >> 31);
}

/* Two rounds on 32 bits, which fit the lanes of a vector; each half of the row's key enters one. */
static inline uint32_t drawn(uint64_t row_key, uint32_t column)
{
    uint32_t bits = (uint32_t)row_key + column;
    bits = (bits ^ (bits >> 16)) * 0x7feb352du;
    bits = (bits ^ (bits >> 15)) * 0x846ca68bu;
    bits = (bits ^ (bits >> 16)) + (uint32_t)(row_key >> 32);
    bits = (bits ^ (bits >> 16)) * 0x7feb352du;
    bits = (bits ^ (bits >> 15)) * 0x846ca68bu;
    return bits ^ (bits >> 16);
}

static void dropout_task(void *argument, integer number)
{
    const struct dropout work = *(const struct dropout *)argument;
    for (integer row = begin_of(number); row < end_of(number, work.rows); row++) {
        const uint64_t key = mixed(work.seed + mixed((uint64_t)row));
        const real *x = work.x + row * work.x_row;
        real *restrict out = work.out + row * work.width;
        for (integer c = 0; c < work.width; c++)
            out[c] = x[c] * (drawn(key, (uint32_t)c) < work.limit ? 0 : work.scale);
    }
}

void dropout(integer threads, integer rows, integer width, const real *x, integer x_row, const int64_t *seed,
             const double *p, real *out)
{
    struct dropout work = {rows, width, x_row, x, (uint64_t)*seed, (uint32_t)(*p * 4294967295.0),
                           *p < 1 ? (real)(1 / (1 - *p)) : 0, out};
    run_tasks(threads, tasks_of(rows), dropout_task, &work);
}
