#include "dropout.h"

struct drawing {
    struct rows x, residual, out;
    integer first_row;
    uint64_t seed;
    uint32_t limit; /* places whose number, of 2^32, is below the limit become zero */
    real scale;
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

static void drop_task(void *argument, integer number)
{
    const struct drawing work = *(const struct drawing *)argument;
    for (integer row = begin_of(number); row < end_of(number, work.x.count); row++) {
        const uint64_t key = mixed(work.seed + mixed((uint64_t)(work.first_row + row)));
        const real *x = row_at(work.x, row);
        real *out = row_at(work.out, row);
        for (integer c = 0; c < work.x.width; c++)
            out[c] = x[c] * (drawn(key, (uint32_t)c) < work.limit ? 0 : work.scale);
        if (left_out(work.residual))
            continue;
        const real *residual = row_at(work.residual, row);
        for (integer c = 0; c < work.x.width; c++)
            out[c] += residual[c];
    }
}

void drop_and_add(integer threads, uint64_t seed, double p, integer first_row, struct rows x, struct rows residual,
                  struct rows out)
{
    struct drawing work = {x, residual, out, first_row, seed, (uint32_t)(p * 4294967295.0),
                           p < 1 ? (real)(1 / (1 - p)) : 0};
    run_tasks(threads, tasks_of(x.count), drop_task, &work);
}

void drop_rows(integer threads, uint64_t seed, double p, integer first_row, struct rows x, struct rows out)
{
    drop_and_add(threads, seed, p, first_row, x, (struct rows){0}, out);
}

enum answer drop(const struct dropping *call)
{
    const integer rows = call->x.count, width = call->x.width;
    NEED_SIZES(call->threads >= 1 && sized(call->x, rows, width) && sized(call->out, rows, width));
    NEED_SIZES(call->p >= 0 && call->p <= 1);
    drop_rows(call->threads, call->seed, call->p, 0, call->x, call->out);
    return DONE;
}
