/* GatedGCN's gated sums over the in-edges of each node, and their gradients. */
#include "tasks.h"

/* Rows are `padded` numbers apart, of which the first `width` matter; the others are zero in all gradients.

   A row of `node` has 2 + 2 * streams parts, each `padded` wide: what the gate gets from a target, what it gets from a
   source, and then for each stream what a node gives itself and what it gives its neighbours. */
struct gate {
    index nodes, width, padded, streams;
    const index *source, *target, *in_start, *in_edge, *out_start, *out_edge;
    const real *node;
    real *logits; /* [edges]: B3 e on entry of the forward pass, the logits after it */
    real *out[2]; /* [nodes] */

    const real *logits_gradient, *out_gradient[2];
    real *node_gradient, *edge_gradient;
    real *gates; /* [edges] */
    real *pull;  /* [nodes, streams]: gradient of the sum of gated values */
};

enum { AT_TARGET, AT_SOURCE, SELF_0, VALUE_0, SELF_1, VALUE_1 };

static const real EPSILON = (real)1e-6;

static inline __attribute__((always_inline)) void
sum_block(const struct gate *work, index node, index channel, const int streams)
{
    const index padded = work->padded, row = (2 + 2 * streams) * padded;
    const real *restrict own = work->node + node * row + channel;
    real total[LANES] = {0}, sum_0[LANES] = {0}, sum_1[LANES] = {0};
    for (index slot = work->in_start[node]; slot < work->in_start[node + 1]; slot++) {
        const index edge = work->in_edge[slot];
        const real *restrict from = work->node + work->source[edge] * row + channel;
        real *restrict logit = work->logits + edge * padded + channel;
        EACH_LANE(c) {
            logit[c] += own[AT_TARGET * padded + c] + from[AT_SOURCE * padded + c];
            const real gate = sigmoid(logit[c]);
            total[c] += gate;
            sum_0[c] += gate * from[VALUE_0 * padded + c];
            if (streams > 1)
                sum_1[c] += gate * from[VALUE_1 * padded + c];
        }
    }
    EACH_LANE(c) {
        const real share = 1 / (total[c] + EPSILON);
        work->out[0][node * padded + channel + c] = own[SELF_0 * padded + c] + sum_0[c] * share;
        if (streams > 1)
            work->out[1][node * padded + channel + c] = own[SELF_1 * padded + c] + sum_1[c] * share;
    }
}

static void sum_task(void *argument, index number)
{
    const struct gate *work = argument;
    for (index node = begin_of(number); node < end_of(number, work->nodes); node++)
        for (index channel = 0; channel < work->padded; channel += LANES) {
            if (work->streams == 1)
                sum_block(work, node, channel, 1);
            else
                sum_block(work, node, channel, 2);
        }
}

/* From the target's side: gates, gradients of the logits, of what the target gave the gate, and of its own values.
   The normalised sum is s = sum_j g_j v_j / t with t = sum_j g_j + epsilon, so that
   dL/dg_j = (v_j - s) . dL/ds / t. */
static inline __attribute__((always_inline)) void
target_block(const struct gate *work, index node, index channel, const int streams)
{
    const index padded = work->padded, row = (2 + 2 * streams) * padded;
    const index begin = work->in_start[node], end = work->in_start[node + 1];
    real total[LANES] = {0}, sum_0[LANES] = {0}, sum_1[LANES] = {0};
    for (index slot = begin; slot < end; slot++) {
        const index edge = work->in_edge[slot];
        const real *restrict from = work->node + work->source[edge] * row + channel;
        const real *restrict logit = work->logits + edge * padded + channel;
        real *restrict gates = work->gates + edge * padded + channel;
        EACH_LANE(c) {
            const real gate = sigmoid(logit[c]);
            gates[c] = gate;
            total[c] += gate;
            sum_0[c] += gate * from[VALUE_0 * padded + c];
            if (streams > 1)
                sum_1[c] += gate * from[VALUE_1 * padded + c];
        }
    }

    real *restrict own = work->node_gradient + node * row + channel;
    real *restrict pull = work->pull + node * streams * padded + channel;
    real pull_0[LANES], pull_1[LANES], total_gradient[LANES], at_target[LANES] = {0};
    EACH_LANE(c) {
        const real share = 1 / (total[c] + EPSILON);
        const real gradient_0 = work->out_gradient[0][node * padded + channel + c];
        own[SELF_0 * padded + c] = gradient_0;
        pull[c] = pull_0[c] = gradient_0 * share;
        total_gradient[c] = -pull_0[c] * sum_0[c] * share;
        if (streams > 1) {
            const real gradient_1 = work->out_gradient[1][node * padded + channel + c];
            own[SELF_1 * padded + c] = gradient_1;
            pull[padded + c] = pull_1[c] = gradient_1 * share;
            total_gradient[c] -= pull_1[c] * sum_1[c] * share;
        }
    }
    for (index slot = begin; slot < end; slot++) {
        const index edge = work->in_edge[slot], at = edge * padded + channel;
        const real *restrict from = work->node + work->source[edge] * row + channel;
        const real *restrict gates = work->gates + at;
        const real *restrict incoming = work->logits_gradient + at;
        real *restrict gradient = work->edge_gradient + at;
        EACH_LANE(c) {
            real of_gate = pull_0[c] * from[VALUE_0 * padded + c] + total_gradient[c];
            if (streams > 1)
                of_gate += pull_1[c] * from[VALUE_1 * padded + c];
            gradient[c] = of_gate * gates[c] * (1 - gates[c]) + incoming[c];
            at_target[c] += gradient[c];
        }
    }
    EACH_LANE(c)
        own[AT_TARGET * padded + c] = at_target[c];
}

static void clear_padding(real *row, index parts, index width, index padded)
{
    for (index part = 0; part < parts; part++)
        memset(row + part * padded + width, 0, (size_t)(padded - width) * sizeof *row);
}

static void target_task(void *argument, index number)
{
    const struct gate *work = argument;
    for (index node = begin_of(number); node < end_of(number, work->nodes); node++) {
        for (index channel = 0; channel < work->padded; channel += LANES) {
            if (work->streams == 1)
                target_block(work, node, channel, 1);
            else
                target_block(work, node, channel, 2);
        }
        for (index slot = work->in_start[node]; slot < work->in_start[node + 1]; slot++)
            clear_padding(work->edge_gradient + work->in_edge[slot] * work->padded, 1, work->width, work->padded);
    }
}

/* From the source's side: gradients of what it gave the gate and its neighbours. */
static inline __attribute__((always_inline)) void
source_block(const struct gate *work, index node, index channel, const int streams)
{
    const index padded = work->padded;
    real at_source[LANES] = {0}, value_0[LANES] = {0}, value_1[LANES] = {0};
    for (index slot = work->out_start[node]; slot < work->out_start[node + 1]; slot++) {
        const index edge = work->out_edge[slot], at = edge * padded + channel;
        const real *restrict gradient = work->edge_gradient + at;
        const real *restrict gates = work->gates + at;
        const real *restrict pull = work->pull + work->target[edge] * streams * padded + channel;
        EACH_LANE(c) {
            at_source[c] += gradient[c];
            value_0[c] += gates[c] * pull[c];
            if (streams > 1)
                value_1[c] += gates[c] * pull[padded + c];
        }
    }
    real *restrict own = work->node_gradient + node * (2 + 2 * streams) * padded + channel;
    EACH_LANE(c) {
        own[AT_SOURCE * padded + c] = at_source[c];
        own[VALUE_0 * padded + c] = value_0[c];
        if (streams > 1)
            own[VALUE_1 * padded + c] = value_1[c];
    }
}

static void source_task(void *argument, index number)
{
    const struct gate *work = argument;
    const index parts = 2 + 2 * work->streams;
    for (index node = begin_of(number); node < end_of(number, work->nodes); node++) {
        for (index channel = 0; channel < work->padded; channel += LANES) {
            if (work->streams == 1)
                source_block(work, node, channel, 1);
            else
                source_block(work, node, channel, 2);
        }
        clear_padding(work->node_gradient + node * parts * work->padded, parts, work->width, work->padded);
    }
}

void gate_forward(index threads, index nodes, index padded, index streams, const index *source, const index *in_start,
                  const index *in_edge, const real *node, real *logits, real *out_0, real *out_1)
{
    struct gate work = {.nodes = nodes, .padded = padded, .streams = streams, .source = source, .in_start = in_start,
                        .in_edge = in_edge, .node = node, .logits = logits, .out = {out_0, out_1}};
    run_tasks(threads, tasks_of(nodes), sum_task, &work);
}

void gate_backward(index threads, index nodes, index width, index padded, index streams, const index *source,
                   const index *target, const index *in_start, const index *in_edge, const index *out_start,
                   const index *out_edge, const real *node, const real *logits, const real *logits_gradient,
                   const real *out_gradient_0, const real *out_gradient_1, real *node_gradient, real *edge_gradient,
                   real *gates, real *pull)
{
    struct gate work = {.nodes = nodes, .width = width, .padded = padded, .streams = streams, .source = source,
                        .target = target, .in_start = in_start, .in_edge = in_edge, .out_start = out_start,
                        .out_edge = out_edge, .node = node, .logits = (real *)logits,
                        .logits_gradient = logits_gradient, .out_gradient = {out_gradient_0, out_gradient_1},
                        .node_gradient = node_gradient, .edge_gradient = edge_gradient, .gates = gates, .pull = pull};
    run_tasks(threads, tasks_of(nodes), target_task, &work);
    run_tasks(threads, tasks_of(nodes), source_task, &work);
}
