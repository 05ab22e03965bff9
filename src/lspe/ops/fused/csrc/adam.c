/* Clipping, Adam and a moving average of weights in one pass over the numbers. */
#include "tasks.h"

#include <stdlib.h>

#define PART 4096 /* numbers a task */

static inline integer parts_in(integer count) { return (count + PART - 1) / PART; }

struct squares {
    struct line x;
    double *sums;
};

static void square_task(void *argument, integer number)
{
    const struct squares work = *(const struct squares *)argument;
    const integer end = (number + 1) * PART < work.x.count ? (number + 1) * PART : work.x.count;
    double sum[8] = {0};
    integer i = number * PART;
    for (; i + 8 <= end; i += 8)
        for (integer lane = 0; lane < 8; lane++)
            sum[lane] += (double)work.x.at[i + lane] * (double)work.x.at[i + lane];
    for (; i < end; i++)
        sum[0] += (double)work.x.at[i] * (double)work.x.at[i];
    work.sums[number] = ((sum[0] + sum[1]) + (sum[2] + sum[3])) + ((sum[4] + sum[5]) + (sum[6] + sum[7]));
}

struct updating {
    const struct adam *call;
    real factor; /* of gradients */
};

/* The numbers [begin, end) of a group, whose gradients are those from `gradient` on. */
static inline void update(const struct adam_group *group, real *restrict gradient, _Bool forget, real factor, real share,
                          integer begin, integer end)
{
    real *restrict weight = group->weight.at, *restrict first = group->first.at, *restrict second = group->second.at;
    const real keep1 = (real)group->beta1, take1 = (real)(1 - group->beta1), keep2 = (real)group->beta2,
               take2 = (real)(1 - group->beta2), rate = (real)(group->rate / group->correction1),
               root = (real)sqrt(group->correction2), epsilon = (real)group->epsilon,
               kept = (real)(1 - group->rate * group->decoupled_decay), decay = (real)group->decay;
    for (integer i = begin; i < end; i++) {
        const real of_loss = gradient[i] * factor;
        gradient[i] = forget ? 0 : of_loss;
        const real given = of_loss + decay * weight[i];
        first[i] = keep1 * first[i] + take1 * given;
        second[i] = keep2 * second[i] + take2 * given * given;
        weight[i] = kept * weight[i] - rate * first[i] / ((real)sqrt(second[i]) / root + epsilon);
    }
    if (group->average.at == NULL)
        return;
    real *restrict average = group->average.at;
    for (integer i = begin; i < end; i++)
        average[i] += share * (weight[i] - average[i]);
}

static void update_task(void *argument, integer number)
{
    const struct updating work = *(const struct updating *)argument;
    integer gradient = 0;
    for (integer g = 0; g < work.call->groups; g++) {
        const struct adam_group *group = &work.call->group[g];
        const integer count = group->weight.count, parts = parts_in(count);
        if (number < parts) {
            const integer end = (number + 1) * PART < count ? (number + 1) * PART : count;
            update(group, work.call->gradient.at + gradient, work.call->forget, work.factor, (real)work.call->share,
                   number * PART, end);
            return;
        }
        number -= parts;
        gradient += count;
    }
}

enum answer adam_step(const struct adam *call)
{
    NEED_SIZES(call->threads >= 1 && call->groups >= 1 && call->groups <= 2);
    integer rest = call->gradient.count, parts = 0;
    NEED_SIZES(sized_line(call->gradient, rest));
    for (integer g = 0; g < call->groups; g++) {
        const struct adam_group *group = &call->group[g];
        const integer count = group->weight.count;
        NEED_SIZES(sized_line(group->weight, count) && sized_line(group->first, count));
        NEED_SIZES(sized_line(group->second, count) && (group->average.at == NULL || group->average.count == count));
        rest -= count;
        parts += parts_in(count);
    }
    NEED_SIZES(rest == 0);
    struct updating updating = {call, 1};
    if (call->clip > 0) {
        const integer chunks = parts_in(call->gradient.count);
        double *sums = malloc((size_t)(chunks + 1) * sizeof *sums), total = 0;
        if (sums == NULL)
            return NO_MEMORY;
        struct squares squares = {call->gradient, sums};
        run_tasks(call->threads, chunks, square_task, &squares);
        for (integer chunk = 0; chunk < chunks; chunk++)
            total += sums[chunk];
        free(sums);
        const double factor = call->clip / (sqrt(total) + 1e-6);
        updating.factor = factor < 1 ? (real)factor : 1;
    }
    run_tasks(call->threads, parts, update_task, &updating);
    return DONE;
}
