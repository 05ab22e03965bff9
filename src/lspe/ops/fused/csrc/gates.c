/* GatedGCN's gates: the gated sums over the in-edges of each node of a piece, and their gradients. */
#include "gates.h"

static const integer SELF_OF[2] = {SELF, SECOND_SELF};
static const real EPSILON = (real)1e-6;
#define WIDE (PRECISION == 32 ? 2 : 1) /* vectors at once; exp of double precision is called for each number */

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

static inline void add_to(real *sum, vector value) { store(sum, load(sum) + value); }

static inline void clear(real *values, integer count) { memset(values, 0, (size_t)count * sizeof *values); }

/* A part of a row, and none of the next. */
static inline void put(real *row, integer part, integer width, const real *values)
{
    memcpy(row + part * width, values, (size_t)width * sizeof *values);
}

#define inlined static inline __attribute__((always_inline)) /* so that the number of streams is known when compiled */

/* in + branch; all of it where there is no residual. */
static inline void close_row(const struct closing *closing, integer stream, integer at, vector branch)
{
    const real *in = closing->in[stream];
    store(closing->out[stream] + at, in == NULL ? branch : load(in + at) + branch);
}

static inline vector normal_and_relu(const real *norm, integer padded, vector x)
{
    const vector normal = (x - load(norm)) * load(norm + RATE * padded);
    const vector y = normal * load(norm + WEIGHT * padded) + load(norm + BIAS * padded);
    return where(y < all(0), all(0), y);
}

/* `wide` vectors of a node's sums from column c on, and of its edges' logits: a single one would wait for itself, and how
   many edges there are is a surprise each time. */
inlined void sum_columns(const struct gate *work, const integer streams, const struct closing *closing, integer node,
                         integer c, const integer wide)
{
    const integer padded = work->padded, width = work->width, row = row_of_parts(width, streams);
    const real *own = work->node + node * row + c;
    vector total[WIDE], sum[2][WIDE];
    for (integer v = 0; v < wide; v++)
        total[v] = sum[0][v] = sum[1][v] = all(0);
    for (integer slot = in_begin(work, node); slot < in_begin(work, node + 1); slot++) {
        const integer edge = in_edge(work, slot);
        const real *from = work->node + source_of(work, edge) * row + c;
        for (integer v = 0; v < wide; v++, from += LANES) {
            const integer at = edge * padded + c + v * LANES;
            const vector logit = load(work->logits + at) + load(own + AT_TARGET * width + v * LANES)
                                 + load(from + AT_SOURCE * width);
            const vector gate = sigmoid(logit);
            if (closing != NULL)
                close_row(closing, E, at, normal_and_relu(closing->norm[E] + c + v * LANES, padded, logit));
            else
                store(work->logits + at, logit);
            total[v] += gate;
            for (integer stream = 0; stream < streams; stream++)
                sum[stream][v] += gate * load(from + (VALUE + stream) * width);
        }
    }
    for (integer v = 0; v < wide; v++, own += LANES) {
        const integer at = node * padded + c + v * LANES;
        const vector share = 1 / (total[v] + EPSILON);
        for (integer stream = 0; stream < streams; stream++)
            sum[stream][v] = load(own + SELF_OF[stream] * width) + sum[stream][v] * share;
        if (closing == NULL) {
            for (integer stream = 0; stream < streams; stream++)
                store(work->sums[stream] + at, sum[stream][v]);
            continue;
        }
        const vector scaled = sum[0][v] * (closing->scale == NULL ? 1 : closing->scale[node]);
        close_row(closing, H, at, normal_and_relu(closing->norm[H] + c + v * LANES, padded, scaled));
        if (streams == 2)
            close_row(closing, P, at, hyperbolic_tangent(sum[1][v]));
    }
}

inlined void sum_rows(const struct gate *work, const integer streams, const struct closing *closing, integer first,
                      integer end)
{
    const integer padded = work->padded;
    for (integer node = first; node < end; node++) {
        integer c = 0;
        for (; c + WIDE * LANES <= padded; c += WIDE * LANES)
            sum_columns(work, streams, closing, node, c, WIDE);
        for (; c < padded; c += LANES)
            sum_columns(work, streams, closing, node, c, 1);
    }
}

static void sum_task(void *argument, integer number)
{
    const struct gate work = *(const struct gate *)argument;
    const integer begin = begin_of(number), end = end_of(number, work.nodes);
    const struct closing closing = work.closing == NULL ? (struct closing){0} : *work.closing;
    if (work.closing != NULL && work.streams == 2)
        sum_rows(&work, 2, &closing, begin, end);
    else if (work.closing != NULL)
        sum_rows(&work, 1, &closing, begin, end);
    else if (work.streams == 2)
        sum_rows(&work, 2, NULL, begin, end);
    else
        sum_rows(&work, 1, NULL, begin, end);
}

/* From the target's side: gates, gradients of the logits, of what the target gave the gate, and of its own values.
   The normalised sum is s = sum_j g_j v_j / t with t = sum_j g_j + epsilon, so that
   dL/dg_j = (v_j - s) . dL/ds / t. */
inlined void target_rows(const struct gate *work, const integer streams, integer first, integer end)
{
    const integer padded = work->padded, width = work->width;
    real total[padded], sum[streams * padded], of_total[padded], of_target[padded];
    for (integer node = first; node < end; node++) {
        real *own = work->node_gradient + node * row_of_parts(width, streams);
        real *pull = work->pull + node * streams * padded;
        clear(total, padded);
        clear(sum, streams * padded);
        clear(of_target, padded);
        for (integer slot = in_begin(work, node); slot < in_begin(work, node + 1); slot++) {
            const integer edge = in_edge(work, slot);
            const real *values = work->values + source_of(work, edge) * streams * padded;
            for (integer c = 0; c < padded; c += LANES) {
                const vector gate = sigmoid(load(work->logits + edge * padded + c));
                store(work->gates + edge * padded + c, gate);
                add_to(total + c, gate);
                for (integer stream = 0; stream < streams; stream++)
                    add_to(sum + stream * padded + c, gate * load(values + stream * padded + c));
            }
        }
        for (integer c = 0; c < padded; c += LANES) {
            const vector share = 1 / (load(total + c) + EPSILON);
            vector gradient_of_total = all(0);
            for (integer stream = 0; stream < streams; stream++) {
                const vector gradient = load(work->sums_gradient[stream] + node * padded + c);
                store(pull + stream * padded + c, gradient * share);
                gradient_of_total -= gradient * share * load(sum + stream * padded + c) * share;
            }
            store(of_total + c, gradient_of_total);
        }
        for (integer slot = in_begin(work, node); slot < in_begin(work, node + 1); slot++) {
            const integer edge = in_edge(work, slot);
            const real *values = work->values + source_of(work, edge) * streams * padded;
            real *gradients = work->edge_gradient + edge * padded;
            for (integer c = 0; c < padded; c += LANES) {
                const vector gate = load(work->gates + edge * padded + c);
                vector of_gate = load(of_total + c);
                for (integer stream = 0; stream < streams; stream++)
                    of_gate += load(pull + stream * padded + c) * load(values + stream * padded + c);
                const vector gradient = of_gate * gate * (1 - gate) + load(gradients + c);
                store(gradients + c, gradient);
                add_to(of_target + c, gradient);
            }
        }
        put(own, AT_TARGET, width, of_target);
        for (integer stream = 0; stream < streams; stream++)
            put(own, SELF_OF[stream], width, work->sums_gradient[stream] + node * padded);
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
    const integer padded = work->padded, width = work->width, row = row_of_parts(width, streams);
    real of_source[padded], of_values[streams * padded];
    for (integer node = first; node < end; node++) {
        real *own = work->node_gradient + node * row;
        clear(of_source, padded);
        clear(of_values, streams * padded);
        for (integer slot = out_begin(work, node); slot < out_begin(work, node + 1); slot++) {
            const integer edge = out_edge(work, slot);
            const real *pull = work->pull + target_of(work, edge) * streams * padded;
            for (integer c = 0; c < padded; c += LANES) {
                const vector gate = load(work->gates + edge * padded + c);
                add_to(of_source + c, load(work->edge_gradient + edge * padded + c));
                for (integer stream = 0; stream < streams; stream++)
                    add_to(of_values + stream * padded + c, gate * load(pull + stream * padded + c));
            }
        }
        put(own, AT_SOURCE, width, of_source);
        for (integer stream = 0; stream < streams; stream++)
            put(own, VALUE + stream, width, of_values + stream * padded);
        clear(own + parts_of(streams) * width, row - parts_of(streams) * width);
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
