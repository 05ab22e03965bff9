/* GatedGCN's gates: the gated sums over the in-edges of each node of a piece, and their gradients. */
#include "gates.h"

static const integer SELF_OF[2] = {SELF, SECOND_SELF};
static const real EPSILON = (real)1e-6;

static inline const real *row_of(const struct gate *work, integer node)
{
    return work->node + node * parts_of(work->streams) * work->padded;
}

/* Edges that lead to a node, or away from it, as slots; their own numbers and their ends, all within the piece. */
static inline integer in_begin(const struct gate *work, integer node)
{
    return work->all.in_start.at[work->first_node + node];
}
static inline integer out_begin(const struct gate *work, integer node)
{
    return work->all.out_start.at[work->first_node + node];
}
static inline integer in_edge(const struct gate *work, integer slot)
{
    return work->all.in_edge.at[slot] - work->first_edge;
}
static inline integer out_edge(const struct gate *work, integer slot)
{
    return work->all.out_edge.at[slot] - work->first_edge;
}
static inline integer source_of(const struct gate *work, integer edge)
{
    return work->all.source.at[work->first_edge + edge] - work->first_node;
}
static inline integer target_of(const struct gate *work, integer edge)
{
    return work->all.target.at[work->first_edge + edge] - work->first_node;
}

static inline void clear(real *values, integer count) { memset(values, 0, (size_t)count * sizeof *values); }

#define inlined static inline __attribute__((always_inline)) /* so that the number of streams is known when compiled */

inlined void sum_rows(const struct gate *work, const integer streams, integer first, integer end)
{
    const integer padded = work->padded;
    for (integer node = first; node < end; node++) {
        const real *own = row_of(work, node);
        memcpy(work->values + node * streams * padded, own + VALUE * padded, (size_t)(streams * padded) * sizeof(real));
        for (integer c = 0; c < padded; c += LANES) {
            const vector at_target = load(own + AT_TARGET * padded + c);
            vector total = all(0), sum[2] = {all(0), all(0)};
            for (integer slot = in_begin(work, node); slot < in_begin(work, node + 1); slot++) {
                const integer edge = in_edge(work, slot);
                const real *from = row_of(work, source_of(work, edge)) + c;
                real *logits = work->logits + edge * padded + c;
                const vector logit = load(logits) + at_target + load(from + AT_SOURCE * padded);
                const vector gate = sigmoid(logit);
                store(logits, logit);
                total += gate;
                for (integer stream = 0; stream < streams; stream++)
                    sum[stream] += gate * load(from + (VALUE + stream) * padded);
            }
            for (integer stream = 0; stream < streams; stream++)
                store(work->sums[stream] + node * padded + c,
                      load(own + SELF_OF[stream] * padded + c) + sum[stream] / (total + EPSILON));
        }
    }
}

static void sum_task(void *argument, integer number)
{
    const struct gate work = *(const struct gate *)argument;
    if (work.streams == 2)
        sum_rows(&work, 2, begin_of(number), end_of(number, work.nodes));
    else
        sum_rows(&work, 1, begin_of(number), end_of(number, work.nodes));
}

/* From the target's side: gates, gradients of the logits, of what the target gave the gate, and of its own values.
   The normalised sum is s = sum_j g_j v_j / t with t = sum_j g_j + epsilon, so that
   dL/dg_j = (v_j - s) . dL/ds / t. */
inlined void target_rows(const struct gate *work, const integer streams, integer first, integer end)
{
    const integer padded = work->padded;
    for (integer node = first; node < end; node++) {
        const integer begin = in_begin(work, node), behind = in_begin(work, node + 1);
        real *own = work->node_gradient + node * parts_of(streams) * padded;
        for (integer c = 0; c < padded; c += LANES) {
            vector total = all(EPSILON), sum[2] = {all(0), all(0)};
            for (integer slot = begin; slot < behind; slot++) {
                const integer edge = in_edge(work, slot);
                const real *from = work->values + source_of(work, edge) * streams * padded + c;
                const vector gate = sigmoid(load(work->logits + edge * padded + c));
                store(work->gates + edge * padded + c, gate);
                total += gate;
                for (integer stream = 0; stream < streams; stream++)
                    sum[stream] += gate * load(from + stream * padded);
            }
            const vector share = 1 / total;
            vector of_total = all(0), of_target = all(0), pull[2];
            for (integer stream = 0; stream < streams; stream++) {
                const vector gradient = load(work->sums_gradient[stream] + node * padded + c);
                pull[stream] = gradient * share;
                of_total -= pull[stream] * sum[stream] * share;
                store(own + SELF_OF[stream] * padded + c, gradient);
                store(work->pull + (node * streams + stream) * padded + c, pull[stream]);
            }
            for (integer slot = begin; slot < behind; slot++) {
                const integer edge = in_edge(work, slot);
                const real *from = work->values + source_of(work, edge) * streams * padded + c;
                const vector gate = load(work->gates + edge * padded + c);
                vector of_gate = of_total;
                for (integer stream = 0; stream < streams; stream++)
                    of_gate += pull[stream] * load(from + stream * padded);
                real *gradients = work->edge_gradient + edge * padded + c;
                const vector gradient = of_gate * gate * (1 - gate) + load(gradients);
                store(gradients, gradient);
                of_target += gradient;
            }
            store(own + AT_TARGET * padded + c, of_target);
        }
        for (integer slot = begin; slot < behind; slot++)
            clear(work->edge_gradient + in_edge(work, slot) * padded + work->width, padded - work->width);
    }
}

static void target_task(void *argument, integer number)
{
    const struct gate work = *(const struct gate *)argument;
    if (work.streams == 2)
        target_rows(&work, 2, begin_of(number), end_of(number, work.nodes));
    else
        target_rows(&work, 1, begin_of(number), end_of(number, work.nodes));
}

/* From the source's side: gradients of what it gave the gate and its neighbours. With them its row is complete. */
inlined void source_rows(const struct gate *work, const integer streams, integer first, integer end)
{
    const integer padded = work->padded, parts = parts_of(streams);
    for (integer node = first; node < end; node++) {
        real *own = work->node_gradient + node * parts * padded;
        for (integer c = 0; c < padded; c += LANES) {
            vector of_source = all(0), of_value[2] = {all(0), all(0)};
            for (integer slot = out_begin(work, node); slot < out_begin(work, node + 1); slot++) {
                const integer edge = out_edge(work, slot);
                const real *pull = work->pull + target_of(work, edge) * streams * padded + c;
                const vector gate = load(work->gates + edge * padded + c);
                of_source += load(work->edge_gradient + edge * padded + c);
                for (integer stream = 0; stream < streams; stream++)
                    of_value[stream] += gate * load(pull + stream * padded);
            }
            store(own + AT_SOURCE * padded + c, of_source);
            for (integer stream = 0; stream < streams; stream++)
                store(own + (VALUE + stream) * padded + c, of_value[stream]);
        }
        for (integer part = 0; part < parts; part++)
            clear(own + part * padded + work->width, padded - work->width);
    }
}

static void source_task(void *argument, integer number)
{
    const struct gate work = *(const struct gate *)argument;
    if (work.streams == 2)
        source_rows(&work, 2, begin_of(number), end_of(number, work.nodes));
    else
        source_rows(&work, 1, begin_of(number), end_of(number, work.nodes));
}

void gates_forward(integer threads, const struct gate *piece)
{
    run_tasks(threads, tasks_of(piece->nodes), sum_task, (void *)piece);
}

void gates_backward(integer threads, const struct gate *piece)
{
    run_tasks(threads, tasks_of(piece->nodes), target_task, (void *)piece);
    run_tasks(threads, tasks_of(piece->nodes), source_task, (void *)piece);
}
