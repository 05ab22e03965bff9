/* Rows that are sums of entries of a table, and sums over the rows of each entry: each is the gradient of the other. */
#include "tasks.h"

#define STRIPE 16 /* columns a task */

static void rows_task(void *argument, integer number)
{
    const struct entries work = *(const struct entries *)argument;
    const integer width = work.table.width;
    for (integer row = begin_of(number); row < end_of(number, work.rows.count); row++) {
        const integer *entry = work.entry.at + row * work.columns;
        real *restrict out = row_at(work.rows, row);
        memcpy(out, row_at(work.table, entry[0]), (size_t)width * sizeof *out);
        for (integer c = 1; c < work.columns; c++) {
            const real *from = row_at(work.table, entry[c]);
            for (integer i = 0; i < width; i++)
                out[i] += from[i];
        }
    }
}

/* A column after the other: rows that follow each other often have the same entry, which then stays in registers. */
static inline void add_stripe(const struct entries *work, integer first, integer width)
{
    for (integer entry = 0; entry < work->table.count; entry++)
        memset(row_at(work->table, entry) + first, 0, (size_t)width * sizeof(real));
    for (integer c = 0; c < work->columns && work->rows.count > 0; c++) {
        const integer *entry = work->entry.at + c;
        real *to = row_at(work->table, *entry) + first, sum[STRIPE];
        memcpy(sum, to, (size_t)width * sizeof *sum);
        for (integer row = 0; row < work->rows.count; row++, entry += work->columns) {
            real *own = row_at(work->table, *entry) + first;
            if (own != to) {
                memcpy(to, sum, (size_t)width * sizeof *sum);
                memcpy(sum, own, (size_t)width * sizeof *sum);
                to = own;
            }
            const real *from = row_at(work->rows, row) + first;
            for (integer i = 0; i < width; i++)
                sum[i] += from[i];
        }
        memcpy(to, sum, (size_t)width * sizeof *sum);
    }
}

static void stripe_task(void *argument, integer number)
{
    const struct entries work = *(const struct entries *)argument;
    const integer first = number * STRIPE, rest = work.table.width - first;
    if (rest >= STRIPE)
        add_stripe(&work, first, STRIPE);
    else
        add_stripe(&work, first, rest);
}

static enum answer check(const struct entries *call)
{
    const integer width = call->table.width;
    NEED_SIZES(call->threads >= 1 && call->columns >= 1 && sized(call->table, call->table.count, width));
    NEED_SIZES(sized(call->rows, call->rows.count, width) && call->rows.count <= call->entry.count);
    NEED_SIZES(sized_indices(call->entry, call->rows.count * call->columns));
    NEED_INDICES(all_below(call->entry, call->table.count));
    return DONE;
}

enum answer sums_of_entries(const struct entries *call)
{
    const enum answer answer = check(call);
    if (answer == DONE)
        run_tasks(call->threads, tasks_of(call->rows.count), rows_task, (void *)call);
    return answer;
}

enum answer sums_by_entry(const struct entries *call)
{
    const enum answer answer = check(call);
    if (answer == DONE)
        run_tasks(call->threads, (call->table.width + STRIPE - 1) / STRIPE, stripe_task, (void *)call);
    return answer;
}
