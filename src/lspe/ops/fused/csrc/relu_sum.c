/* GINE's messages relu(x_j + c_ij), summed over the in-edges of each node, and their gradients. c of an edge is a row of
   `values`: that of its kind, or where there are no kinds its own. */
#include "tasks.h"

static inline const real *value_of(const struct relu_sums *work, integer edge)
{
    return row_at(work->values, work->kind.at == NULL ? edge : work->kind.at[edge]);
}

static void sum_task(void *argument, integer number)
{
    const struct relu_sums copy = *(const struct relu_sums *)argument, *work = &copy;
    const integer width = work->x.width;
    for (integer node = begin_of(number); node < end_of(number, work->edges.nodes); node++) {
        real *restrict out = row_at(work->out, node);
        const real *x = row_at(work->x, node), own = (real)work->own;
        for (integer c = 0; c < width; c++)
            out[c] = own * x[c];
        for (integer slot = work->edges.in_start.at[node]; slot < work->edges.in_start.at[node + 1]; slot++) {
            const integer edge = work->edges.in_edge.at[slot];
            const real *from = row_at(work->x, work->edges.source.at[edge]), *value = value_of(work, edge);
            for (integer c = 0; c < width; c++) {
                const real sum = from[c] + value[c];
                out[c] += sum < 0 ? 0 : sum; /* NaN stays */
            }
        }
    }
}

/* The nodes of a group and the edges that leave them. */
static void gradient_task(void *argument, integer group)
{
    const struct relu_sums copy = *(const struct relu_sums *)argument, *work = &copy;
    const integer width = work->x.width, nodes = work->edges.nodes, groups = work->groups;
    const integer kinds = work->values.count;
    const struct rows gradients = work->values_gradient;
    if (work->kind.at != NULL)
        for (integer kind = 0; kind < kinds; kind++)
            memset(row_at(gradients, group * kinds + kind), 0, (size_t)width * sizeof(real));
    for (integer node = nodes * group / groups; node < nodes * (group + 1) / groups; node++) {
        const real *x = row_at(work->x, node), *of_out = row_at(work->gradient, node), own = (real)work->own;
        real *restrict of_x = row_at(work->x_gradient, node);
        for (integer c = 0; c < width; c++)
            of_x[c] = own * of_out[c];
        for (integer slot = work->edges.out_start.at[node]; slot < work->edges.out_start.at[node + 1]; slot++) {
            const integer edge = work->edges.out_edge.at[slot];
            const real *of_sum = row_at(work->gradient, work->edges.target.at[edge]), *value = value_of(work, edge);
            if (work->kind.at == NULL) {
                real *restrict of_value = row_at(gradients, edge);
                for (integer c = 0; c < width; c++) {
                    of_value[c] = x[c] + value[c] <= 0 ? 0 : of_sum[c]; /* NaN lets it pass */
                    of_x[c] += of_value[c];
                }
            } else {
                real *restrict of_value = row_at(gradients, group * kinds + work->kind.at[edge]);
                for (integer c = 0; c < width; c++) {
                    const real passed = x[c] + value[c] <= 0 ? 0 : of_sum[c];
                    of_value[c] += passed;
                    of_x[c] += passed;
                }
            }
        }
    }
}

static enum answer check_sums(const struct relu_sums *call)
{
    const integer nodes = call->edges.nodes, edges = call->edges.source.count, width = call->x.width;
    const integer rows = call->kind.at == NULL ? edges : call->values.count;
    NEED_SIZES(call->threads >= 1 && nodes >= 0 && sized(call->x, nodes, width) && sized(call->values, rows, width));
    NEED_SIZES(call->kind.at == NULL || call->kind.count == edges);
    NEED_SIZES(sized_indices(call->edges.source, edges) && sized_indices(call->edges.in_start, nodes + 1));
    NEED_SIZES(sized_indices(call->edges.in_edge, edges));
    NEED_INDICES(all_below(call->edges.source, nodes) && all_below(call->edges.in_edge, edges));
    NEED_INDICES(rises_to(call->edges.in_start, edges) && all_below(call->kind, rows));
    return DONE;
}

enum answer relu_sum_forward(const struct relu_sums *call)
{
    const enum answer answer = check_sums(call);
    if (answer != DONE)
        return answer;
    NEED_SIZES(sized(call->out, call->x.count, call->x.width));
    run_tasks(call->threads, tasks_of(call->edges.nodes), sum_task, (void *)call);
    return DONE;
}

enum answer relu_sum_backward(const struct relu_sums *call)
{
    const integer nodes = call->edges.nodes, edges = call->edges.source.count, width = call->x.width;
    const enum answer answer = check_sums(call);
    if (answer != DONE)
        return answer;
    const integer rows = call->kind.at == NULL ? edges : call->groups * call->values.count;
    NEED_SIZES(call->groups >= 1 && sized(call->gradient, nodes, width) && sized(call->x_gradient, nodes, width));
    NEED_SIZES(sized(call->values_gradient, rows, width));
    NEED_SIZES(sized_indices(call->edges.target, edges) && sized_indices(call->edges.out_start, nodes + 1));
    NEED_SIZES(sized_indices(call->edges.out_edge, edges));
    NEED_INDICES(all_below(call->edges.target, nodes) && all_below(call->edges.out_edge, edges));
    NEED_INDICES(rises_to(call->edges.out_start, edges));
    run_tasks(call->threads, call->groups, gradient_task, (void *)call);
    return DONE;
}
