/* GatedGCN's gated sums over the in-edges of each node, and their gradients. */
#include "tasks.h"

/* Rows are `padded` numbers long, a multiple of LANES, of which the first `width` matter.

   A row of `node` has 2 + 2 * streams parts, each `padded` long: what the gate gets from a target, what it gets from a
   source, and then for each stream what a node gives itself and what it gives its neighbours. */
struct gate {
    integer nodes, width, padded, streams;
    const integer *source, *target, *in_start, *in_edge, *out_start, *out_edge;
    const real *node;
    real *logits; /* [edges]: B3 e on entry of the forward pass, the logits after it */
    real *out[2]; /* [nodes], one for each stream */

    const real *logits_gradient, *out_gradient[2];
    real *node_gradient, *edge_gradient;
    real *gates; /* [edges] */
    real *pull;  /* [nodes, streams]: gradient of the sum of gated values */
};

enum { AT_TARGET, AT_SOURCE, SELF, VALUE }; /* SELF and VALUE of the second stream stand two further */

#define AHEAD 6 /* edges */
#define CACHE_LINE (64 / (integer)sizeof(real))

static const real EPSILON = (real)1e-6;

static inline const real *row_of(const struct gate *work, integer node)
{
    return work->node + node * (2 + 2 * work->streams) * work->padded;
}

/* Ask for what the sources give in time: the memory of nodes that are not in order is what these loops wait for. */
static inline void ask_ahead(const struct gate *work, integer slot, int from_part)
{
    const integer ahead = slot + AHEAD;
    if (ahead >= work->in_start[work->nodes])
        return;
    const real *from = row_of(work, work->source[work->in_edge[ahead]]);
    for (integer part = from_part; part < 2 + 2 * work->streams; part += 2)
        for (integer c = 0; c < work->padded; c += CACHE_LINE)
            __builtin_prefetch(from + part * work->padded + c);
}

static void add_to(real *sum, vector value) { store(sum, load(sum) + value); }

static void clear(real *values, integer count) { memset(values, 0, (size_t)count * sizeof *values); }

static void sum_task(void *argument, integer number)
{
    const struct gate *work = argument;
    const integer padded = work->padded;
    real total[padded];
    for (integer node = begin_of(number); node < end_of(number, work->nodes); node++) {
        const real *own = row_of(work, node);
        clear(total, padded);
        for (int stream = 0; stream < work->streams; stream++)
            clear(work->out[stream] + node * padded, padded);
        for (integer slot = work->in_start[node]; slot < work->in_start[node + 1]; slot++) {
            const integer edge = work->in_edge[slot];
            const real *from = row_of(work, work->source[edge]);
            ask_ahead(work, slot, AT_SOURCE);
            real *logits = work->logits + edge * padded;
            for (integer c = 0; c < padded; c += LANES) {
                const vector logit = load(logits + c) + load(own + AT_TARGET * padded + c)
                                     + load(from + AT_SOURCE * padded + c);
                const vector gate = sigmoid(logit);
                store(logits + c, logit);
                add_to(total + c, gate);
                for (int stream = 0; stream < work->streams; stream++)
                    add_to(work->out[stream] + node * padded + c,
                           gate * load(from + (VALUE + 2 * stream) * padded + c));
            }
        }
        for (int stream = 0; stream < work->streams; stream++) {
            real *out = work->out[stream] + node * padded;
            const real *self = own + (SELF + 2 * stream) * padded;
            for (integer c = 0; c < padded; c += LANES)
                store(out + c, load(self + c) + load(out + c) / (load(total + c) + EPSILON));
        }
    }
}

/* From the target's side: gates, gradients of the logits, of what the target gave the gate, and of its own values.
   The normalised sum is s = sum_j g_j v_j / t with t = sum_j g_j + epsilon, so that
   dL/dg_j = (v_j - s) . dL/ds / t. */
static void target_task(void *argument, integer number)
{
    const struct gate *work = argument;
    const integer padded = work->padded, streams = work->streams;
    real total[padded], of_total[padded], sums[streams * padded];
    for (integer node = begin_of(number); node < end_of(number, work->nodes); node++) {
        real *own = work->node_gradient + node * (2 + 2 * streams) * padded;
        real *pull = work->pull + node * streams * padded;
        clear(total, padded);
        clear(sums, streams * padded);
        for (integer slot = work->in_start[node]; slot < work->in_start[node + 1]; slot++) {
            const integer edge = work->in_edge[slot];
            const real *from = row_of(work, work->source[edge]);
            ask_ahead(work, slot, VALUE);
            for (integer c = 0; c < padded; c += LANES) {
                const vector gate = sigmoid(load(work->logits + edge * padded + c));
                store(work->gates + edge * padded + c, gate);
                add_to(total + c, gate);
                for (int stream = 0; stream < streams; stream++)
                    add_to(sums + stream * padded + c, gate * load(from + (VALUE + 2 * stream) * padded + c));
            }
        }
        clear(own + AT_TARGET * padded, padded);
        for (integer c = 0; c < padded; c += LANES) {
            const vector share = 1 / (load(total + c) + EPSILON);
            vector gradient_of_total = {0};
            for (int stream = 0; stream < streams; stream++) {
                const vector gradient = load(work->out_gradient[stream] + node * padded + c);
                store(own + (SELF + 2 * stream) * padded + c, gradient);
                store(pull + stream * padded + c, gradient * share);
                gradient_of_total -= gradient * share * load(sums + stream * padded + c) * share;
            }
            store(of_total + c, gradient_of_total);
        }
        for (integer slot = work->in_start[node]; slot < work->in_start[node + 1]; slot++) {
            const integer edge = work->in_edge[slot];
            const real *from = row_of(work, work->source[edge]);
            real *gradients = work->edge_gradient + edge * padded;
            for (integer c = 0; c < padded; c += LANES) {
                const vector gate = load(work->gates + edge * padded + c);
                vector of_gate = load(of_total + c);
                for (int stream = 0; stream < streams; stream++)
                    of_gate += load(pull + stream * padded + c) * load(from + (VALUE + 2 * stream) * padded + c);
                const vector gradient = of_gate * gate * (1 - gate) + load(work->logits_gradient + edge * padded + c);
                store(gradients + c, gradient);
                add_to(own + AT_TARGET * padded + c, gradient);
            }
            clear(gradients + work->width, padded - work->width);
        }
    }
}

/* From the source's side: gradients of what it gave the gate and its neighbours. */
static void source_task(void *argument, integer number)
{
    const struct gate *work = argument;
    const integer padded = work->padded, streams = work->streams;
    for (integer node = begin_of(number); node < end_of(number, work->nodes); node++) {
        real *own = work->node_gradient + node * (2 + 2 * streams) * padded;
        clear(own + AT_SOURCE * padded, padded);
        for (int stream = 0; stream < streams; stream++)
            clear(own + (VALUE + 2 * stream) * padded, padded);
        for (integer slot = work->out_start[node]; slot < work->out_start[node + 1]; slot++) {
            const integer edge = work->out_edge[slot];
            const real *pull = work->pull + work->target[edge] * streams * padded;
            for (integer c = 0; c < padded; c += LANES) {
                const vector gate = load(work->gates + edge * padded + c);
                add_to(own + AT_SOURCE * padded + c, load(work->edge_gradient + edge * padded + c));
                for (int stream = 0; stream < streams; stream++)
                    add_to(own + (VALUE + 2 * stream) * padded + c, gate * load(pull + stream * padded + c));
            }
        }
        for (integer part = 0; part < 2 + 2 * streams; part++)
            clear(own + part * padded + work->width, padded - work->width);
    }
}

void gate_forward(integer threads, integer nodes, integer padded, integer streams, const integer *source,
                  const integer *in_start, const integer *in_edge, const real *node, real *logits, real *out_0,
                  real *out_1)
{
    struct gate work = {.nodes = nodes, .padded = padded, .streams = streams, .source = source, .in_start = in_start,
                        .in_edge = in_edge, .node = node, .logits = logits, .out = {out_0, out_1}};
    run_tasks(threads, tasks_of(nodes), sum_task, &work);
}

void gate_backward(integer threads, integer nodes, integer width, integer padded, integer streams,
                   const integer *source, const integer *target, const integer *in_start, const integer *in_edge,
                   const integer *out_start, const integer *out_edge, const real *node, const real *logits,
                   const real *logits_gradient, const real *out_gradient_0, const real *out_gradient_1,
                   real *node_gradient, real *edge_gradient, real *gates, real *pull)
{
    struct gate work = {.nodes = nodes, .width = width, .padded = padded, .streams = streams, .source = source,
                        .target = target, .in_start = in_start, .in_edge = in_edge, .out_start = out_start,
                        .out_edge = out_edge, .node = node, .logits = (real *)logits,
                        .logits_gradient = logits_gradient, .out_gradient = {out_gradient_0, out_gradient_1},
                        .node_gradient = node_gradient, .edge_gradient = edge_gradient, .gates = gates, .pull = pull};
    run_tasks(threads, tasks_of(nodes), target_task, &work);
    run_tasks(threads, tasks_of(nodes), source_task, &work);
}
