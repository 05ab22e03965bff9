/* GatedGCN's convolution: the maps of nodes and edges, the gated sums over the in-edges of each node, their gradients.

   A batch is worked on in pieces that no edge leaves; rows of nodes and edges are counted from the first of a piece.
   Rows are `padded` numbers long, a multiple of LANES, of which the first `width` matter.

   The maps of a node stand side by side in a row of `node`, in 2 + 2 * streams parts: what the gate gets from a target,
   what it gets from a source, what a node gives itself and its neighbours (the values), and the same of the second
   stream, values first. The first input h makes the first four parts, the second input p all from the third on. */
#include "product.h"
#include "tasks.h"

#include <stdlib.h>

enum { AT_TARGET, AT_SOURCE, SELF, VALUE, SECOND_VALUE, SECOND_SELF };
static const integer SELF_OF[2] = {SELF, SECOND_SELF};

static const real EPSILON = (real)1e-6;

/* A call, and how it is cut. */
struct batch {
    struct convolution call;
    integer padded, pieces;
    const integer *node_cuts, *edge_cuts; /* [pieces + 1]: first nodes, first edges */
    _Bool failed;
};

/* One piece. */
struct gate {
    integer first_node, nodes, first_edge, edges, width, padded, streams;
    struct edges all; /* of the whole batch */
    real *node;
    real *values, *logits, *out[2];

    const real *logits_gradient, *out_gradient[2];
    real *node_gradient, *edge_gradient;
    real *gates; /* [edges] */
    real *pull;  /* [nodes, streams]: gradient of the sum of gated values */
};

static inline integer parts(const struct gate *work) { return 2 + 2 * work->streams; }
static inline const real *row_of(const struct gate *work, integer node)
{
    return work->node + node * parts(work) * work->padded;
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

static inline void add_to(real *sum, vector value) { store(sum, load(sum) + value); }

static inline void clear(real *values, integer count) { memset(values, 0, (size_t)count * sizeof *values); }

static void sum_task(void *argument, integer number)
{
    const struct gate copy = *(const struct gate *)argument, *work = &copy;
    const integer padded = work->padded, streams = work->streams;
    real total[padded];
    for (integer node = begin_of(number); node < end_of(number, work->nodes); node++) {
        const real *own = row_of(work, node);
        memcpy(work->values + node * streams * padded, own + VALUE * padded, (size_t)(streams * padded) * sizeof(real));
        clear(total, padded);
        for (integer stream = 0; stream < streams; stream++)
            clear(work->out[stream] + node * padded, padded);
        for (integer slot = in_begin(work, node); slot < in_begin(work, node + 1); slot++) {
            const integer edge = in_edge(work, slot);
            const real *from = row_of(work, source_of(work, edge));
            real *logits = work->logits + edge * padded;
            for (integer c = 0; c < padded; c += LANES) {
                const vector logit = load(logits + c) + load(own + AT_TARGET * padded + c)
                                     + load(from + AT_SOURCE * padded + c);
                const vector gate = sigmoid(logit);
                store(logits + c, logit);
                add_to(total + c, gate);
                for (integer stream = 0; stream < streams; stream++)
                    add_to(work->out[stream] + node * padded + c, gate * load(from + (VALUE + stream) * padded + c));
            }
        }
        for (integer stream = 0; stream < streams; stream++) {
            const real *self = own + SELF_OF[stream] * padded;
            real *out = work->out[stream] + node * padded;
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
    const struct gate copy = *(const struct gate *)argument, *work = &copy;
    const integer padded = work->padded, streams = work->streams;
    real total[padded], of_total[padded], sums[streams * padded];
    for (integer node = begin_of(number); node < end_of(number, work->nodes); node++) {
        real *own = work->node_gradient + node * parts(work) * padded;
        real *pull = work->pull + node * streams * padded;
        clear(total, padded);
        clear(sums, streams * padded);
        for (integer slot = in_begin(work, node); slot < in_begin(work, node + 1); slot++) {
            const integer edge = in_edge(work, slot);
            const real *from = work->values + source_of(work, edge) * streams * padded;
            for (integer c = 0; c < padded; c += LANES) {
                const vector gate = sigmoid(load(work->logits + edge * padded + c));
                store(work->gates + edge * padded + c, gate);
                add_to(total + c, gate);
                for (integer stream = 0; stream < streams; stream++)
                    add_to(sums + stream * padded + c, gate * load(from + stream * padded + c));
            }
        }
        clear(own + AT_TARGET * padded, padded);
        for (integer c = 0; c < padded; c += LANES) {
            const vector share = 1 / (load(total + c) + EPSILON);
            vector gradient_of_total = {0};
            for (integer stream = 0; stream < streams; stream++) {
                const vector gradient = load(work->out_gradient[stream] + node * padded + c);
                store(own + SELF_OF[stream] * padded + c, gradient);
                store(pull + stream * padded + c, gradient * share);
                gradient_of_total -= gradient * share * load(sums + stream * padded + c) * share;
            }
            store(of_total + c, gradient_of_total);
        }
        for (integer slot = in_begin(work, node); slot < in_begin(work, node + 1); slot++) {
            const integer edge = in_edge(work, slot);
            const real *from = work->values + source_of(work, edge) * streams * padded;
            real *gradients = work->edge_gradient + edge * padded;
            for (integer c = 0; c < padded; c += LANES) {
                const vector gate = load(work->gates + edge * padded + c);
                vector of_gate = load(of_total + c);
                for (integer stream = 0; stream < streams; stream++)
                    of_gate += load(pull + stream * padded + c) * load(from + stream * padded + c);
                const vector gradient = of_gate * gate * (1 - gate) + load(work->logits_gradient + edge * padded + c);
                store(gradients + c, gradient);
                add_to(own + AT_TARGET * padded + c, gradient);
            }
            clear(gradients + work->width, padded - work->width);
        }
    }
}

/* From the source's side: gradients of what it gave the gate and its neighbours. With them its row is complete. */
static void source_task(void *argument, integer number)
{
    const struct gate copy = *(const struct gate *)argument, *work = &copy;
    const integer padded = work->padded, streams = work->streams, row = parts(work) * padded;
    for (integer node = begin_of(number); node < end_of(number, work->nodes); node++) {
        real *own = work->node_gradient + node * row;
        clear(own + AT_SOURCE * padded, padded);
        clear(own + VALUE * padded, streams * padded);
        for (integer slot = out_begin(work, node); slot < out_begin(work, node + 1); slot++) {
            const integer edge = out_edge(work, slot);
            const real *pull = work->pull + target_of(work, edge) * streams * padded;
            for (integer c = 0; c < padded; c += LANES) {
                const vector gate = load(work->gates + edge * padded + c);
                add_to(own + AT_SOURCE * padded + c, load(work->edge_gradient + edge * padded + c));
                for (integer stream = 0; stream < streams; stream++)
                    add_to(own + (VALUE + stream) * padded + c, gate * load(pull + stream * padded + c));
            }
        }
        for (integer part = 0; part < parts(work); part++)
            clear(own + part * padded + work->width, padded - work->width);
    }
}

static struct gate piece_of(const struct batch *work, integer number)
{
    const struct convolution *call = &work->call;
    const integer *nodes = work->node_cuts + number, *edges = work->edge_cuts + number;
    struct gate piece = {.first_node = nodes[0], .nodes = nodes[1] - nodes[0], .first_edge = edges[0],
                         .edges = edges[1] - edges[0], .width = call->width, .padded = work->padded,
                         .streams = call->streams, .all = call->edges, .values = row_at(call->values, nodes[0]),
                         .logits = row_at(call->logits, edges[0])};
    if (!left_out(call->logits_gradient))
        piece.logits_gradient = row_at(call->logits_gradient, edges[0]);
    for (integer stream = 0; stream < call->streams; stream++) {
        if (!left_out(call->out[stream]))
            piece.out[stream] = row_at(call->out[stream], nodes[0]);
        if (!left_out(call->out_gradient[stream]))
            piece.out_gradient[stream] = row_at(call->out_gradient[stream], nodes[0]);
    }
    return piece;
}

static struct matrix rows_from(struct rows rows, integer first) { return (struct matrix){row_at(rows, first), rows.step}; }
static struct matrix all_rows(struct rows rows) { return (struct matrix){rows.at, rows.step}; }

static void forward_piece(struct batch *work, integer number, integer threads)
{
    const struct convolution *call = &work->call;
    struct gate piece = piece_of(work, number);
    const integer padded = work->padded, row = parts(&piece) * padded;
    if (piece.nodes == 0)
        return;
    piece.node = malloc((size_t)(piece.nodes * row) * sizeof(real));
    if (piece.node == NULL) {
        work->failed = 1;
        return;
    }
    for (integer node = 0; node < piece.nodes; node++)
        memcpy(piece.node + node * row, call->bias.at, (size_t)row * sizeof(real));
    for (integer edge = 0; edge < piece.edges; edge++)
        memcpy(piece.logits + edge * padded, call->bias.at + row, (size_t)padded * sizeof(real));
    product(piece.nodes, 4 * padded, call->h.x.width, rows_from(call->h.x, piece.first_node), all_rows(call->h.maps), 1,
            piece.node, row);
    if (call->streams == 2)
        product(piece.nodes, 4 * padded, call->p.x.width, rows_from(call->p.x, piece.first_node),
                all_rows(call->p.maps), 1, piece.node + SELF * padded, row);
    if (piece.edges > 0)
        product(piece.edges, padded, call->e.x.width, rows_from(call->e.x, piece.first_edge), all_rows(call->e.maps), 1,
                piece.logits, padded);
    run_tasks(threads, tasks_of(piece.nodes), sum_task, &piece);
    free(piece.node);
}

/* From the gradient of some maps' results to those of their input's rows [first, first + rows) and of the maps. */
static real *input_backward(const struct input *input, _Bool add, integer first, integer rows,
                            struct matrix gradient, integer columns, real *maps_gradient)
{
    if (rows > 0) {
        product_with_transposed(rows, input->gradient.width, columns, gradient, all_rows(input->maps), add,
                                row_at(input->gradient, first), input->gradient.step);
        product_of_transposed(input->x.width, columns, rows, rows_from(input->x, first), gradient, 0, maps_gradient,
                              columns);
    } else {
        clear(maps_gradient, input->x.width * columns);
    }
    return maps_gradient + input->x.width * columns;
}

static void backward_piece(struct batch *work, integer number, integer threads)
{
    const struct convolution *call = &work->call;
    struct gate piece = piece_of(work, number);
    const integer padded = work->padded, streams = call->streams, row = parts(&piece) * padded;
    real *partial = row_at(call->partial, number);
    const _Bool add = call->add_gradients != 0;
    if (piece.nodes == 0) {
        clear(partial, call->partial.width);
        return;
    }
    real *room = malloc((size_t)(piece.nodes * (row + streams * padded) + 2 * piece.edges * padded) * sizeof(real));
    if (room == NULL) {
        work->failed = 1;
        return;
    }
    piece.node_gradient = room;
    piece.pull = room + piece.nodes * row;
    piece.edge_gradient = piece.pull + piece.nodes * streams * padded;
    piece.gates = piece.edge_gradient + piece.edges * padded;
    run_tasks(threads, tasks_of(piece.nodes), target_task, &piece);
    run_tasks(threads, tasks_of(piece.nodes), source_task, &piece);

    partial = input_backward(&call->h, add, piece.first_node, piece.nodes, (struct matrix){piece.node_gradient, row},
                             4 * padded, partial);
    if (streams == 2)
        partial = input_backward(&call->p, add, piece.first_node, piece.nodes,
                                 (struct matrix){piece.node_gradient + SELF * padded, row}, 4 * padded, partial);
    partial = input_backward(&call->e, add, piece.first_edge, piece.edges, (struct matrix){piece.edge_gradient, padded},
                             padded, partial);
    clear(partial, row);
    for (integer node = 0; node < piece.nodes; node++)
        for (integer c = 0; c < row; c += LANES)
            add_to(partial + c, load(piece.node_gradient + node * row + c));
    free(room);
}

static void forward_task(void *work, integer number) { forward_piece(work, number, 1); }
static void backward_task(void *work, integer number) { backward_piece(work, number, 1); }

/* The cuts are made for a fixed number of pieces, of which the last ones may be empty. */
static struct batch batch_of(const struct convolution *call)
{
    const integer *cuts = call->cuts.at;
    integer pieces = call->cuts.count / 2 - 1;
    struct batch work = {.call = *call, .padded = call->logits.width, .node_cuts = cuts,
                         .edge_cuts = cuts + pieces + 1};
    while (pieces > 1 && cuts[pieces - 1] == cuts[pieces])
        pieces--;
    work.pieces = pieces;
    return work;
}

/* Pieces side by side where there are enough of them for all threads; else all threads on one after the other. */
static enum answer run(struct batch *work, void (*piece)(struct batch *, integer, integer), task as_task)
{
    const integer threads = work->call.threads;
    if (work->pieces >= 2 * threads)
        run_tasks(threads, work->pieces, as_task, work);
    else
        for (integer number = 0; number < work->pieces; number++)
            piece(work, number, threads);
    return work->failed ? NO_MEMORY : DONE;
}

static _Bool fits(struct input input, integer rows, integer maps_width)
{
    return sized(input.x, rows, input.x.width) && input.maps.count >= input.x.width && input.x.width > 0
           && sized(input.maps, input.maps.count, maps_width);
}

static _Bool padded_like(struct rows rows, integer count, integer width)
{
    return sized(rows, count, width) && rows.step == width;
}

static enum answer check_sizes(const struct convolution *call)
{
    const integer nodes = call->edges.nodes, edges = call->edges.source.count, padded = call->logits.width;
    const integer streams = call->streams, cuts = call->cuts.count;
    NEED_SIZES(call->threads >= 1 && (streams == 1 || streams == 2) && nodes >= 0);
    NEED_SIZES(call->width > 0 && padded >= call->width && padded % LANES == 0 && padded <= WIDEST);
    NEED_SIZES(fits(call->h, nodes, 4 * padded) && fits(call->e, edges, padded));
    NEED_SIZES(streams == 1 ? left_out(call->p.x) : fits(call->p, nodes, 4 * padded));
    NEED_SIZES(padded_like(call->values, nodes, streams * padded) && padded_like(call->logits, edges, padded));
    NEED_SIZES(call->cuts.at != NULL && cuts >= 4 && cuts % 2 == 0);
    NEED_SIZES(sized_indices(call->edges.source, edges) && sized_indices(call->edges.in_start, nodes + 1));
    NEED_SIZES(sized_indices(call->edges.in_edge, edges));
    return DONE;
}

/* Edges that lead to (or away from) the nodes of a piece are edges of the piece, and begin (or end) in it. */
static _Bool stays_inside(struct indices start, struct indices edge, struct indices other_end, const integer *nodes,
                          const integer *edges)
{
    for (integer slot = start.at[nodes[0]]; slot < start.at[nodes[1]]; slot++) {
        const integer number = edge.at[slot];
        if (number < edges[0] || number >= edges[1])
            return 0;
        if (other_end.at[number] < nodes[0] || other_end.at[number] >= nodes[1])
            return 0;
    }
    return 1;
}

static enum answer check_indices(const struct convolution *call, struct indices start, struct indices edge,
                                 struct indices other_end)
{
    const integer pieces = call->cuts.count / 2 - 1, edges = call->edges.source.count;
    const integer *node_cuts = call->cuts.at, *edge_cuts = call->cuts.at + pieces + 1;
    const struct indices of_nodes = {call->cuts.at, pieces + 1}, of_edges = {call->cuts.at + pieces + 1, pieces + 1};
    NEED_INDICES(rises_to(of_nodes, call->edges.nodes) && rises_to(of_edges, edges) && rises_to(start, edges));
    for (integer piece = 0; piece < pieces; piece++)
        NEED_INDICES(stays_inside(start, edge, other_end, node_cuts + piece, edge_cuts + piece));
    return DONE;
}

enum answer convolution_forward(const struct convolution *call)
{
    const struct edges edges = call->edges;
    enum answer answer = check_sizes(call);
    if (answer != DONE)
        return answer;
    NEED_SIZES(sized_line(call->bias, (3 + 2 * call->streams) * call->logits.width));
    for (integer stream = 0; stream < call->streams; stream++)
        NEED_SIZES(padded_like(call->out[stream], edges.nodes, call->logits.width));
    answer = check_indices(call, edges.in_start, edges.in_edge, edges.source);
    if (answer != DONE)
        return answer;
    struct batch work = batch_of(call);
    return run(&work, forward_piece, forward_task);
}

enum answer convolution_backward(const struct convolution *call)
{
    const struct edges edges = call->edges;
    const integer nodes = edges.nodes, count = edges.source.count, padded = call->logits.width;
    enum answer answer = check_sizes(call);
    if (answer != DONE)
        return answer;
    NEED_SIZES(sized_indices(edges.target, count) && sized_indices(edges.out_start, nodes + 1));
    NEED_SIZES(sized_indices(edges.out_edge, count) && padded_like(call->logits_gradient, count, padded));
    for (integer stream = 0; stream < call->streams; stream++)
        NEED_SIZES(padded_like(call->out_gradient[stream], nodes, padded));
    const struct input *inputs[3] = {&call->h, &call->e, &call->p};
    integer size = (2 + 2 * call->streams) * padded;
    for (integer i = 0; i < 1 + call->streams; i++) {
        const struct input *input = inputs[i];
        NEED_SIZES(input->gradient.width <= input->maps.count && input->gradient.width >= input->x.width);
        NEED_SIZES(sized(input->gradient, input->x.count, input->gradient.width));
        size += input->x.width * input->maps.width;
    }
    answer = check_indices(call, edges.in_start, edges.in_edge, edges.source);
    if (answer == DONE)
        answer = check_indices(call, edges.out_start, edges.out_edge, edges.target);
    if (answer != DONE)
        return answer;
    struct batch work = batch_of(call);
    NEED_SIZES(sized_line(call->total, size) && sized(call->partial, call->partial.count, size));
    NEED_SIZES(call->partial.count >= work.pieces);
    answer = run(&work, backward_piece, backward_task);
    clear(call->total.at, size);
    for (integer number = 0; number < work.pieces && answer == DONE; number++)
        for (integer c = 0; c < size; c++)
            call->total.at[c] += row_at(call->partial, number)[c];
    return answer;
}
