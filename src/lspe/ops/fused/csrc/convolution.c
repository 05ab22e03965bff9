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

/* What is seen by some of the maps: its rows, the maps [columns, maps * padded], gradients of both. */
struct input {
    struct matrix rows, maps;
    integer columns;
    real *gradient; /* rows padded to whole vectors of 16 numbers */
    integer gradient_row;
};

struct convolution {
    integer pieces, width, padded, streams, threads;
    const integer *node_cuts, *edge_cuts; /* [pieces + 1]: first nodes, first edges */
    const integer *source, *target, *in_start, *in_edge, *out_start, *out_edge;
    struct input h, p, e;
    const real *bias; /* of a row of `node`, then of an edge */
    real *values;     /* [nodes, streams], kept for the backward pass */
    real *logits;     /* [edges] */
    real *out[2];     /* [nodes], one for each stream */

    const real *logits_gradient, *out_gradient[2];
    real *partial; /* [pieces, ...]: gradients of the maps of h, p, e, then of the bias of a row of `node` */
    integer partial_size;
    _Bool failed;
};

/* One piece. */
struct gate {
    integer first_node, nodes, first_edge, edges, width, padded, streams;
    const integer *source, *target, *in_start, *in_edge, *out_start, *out_edge; /* of the whole batch */
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
    return work->in_start[work->first_node + node];
}
static inline integer out_begin(const struct gate *work, integer node)
{
    return work->out_start[work->first_node + node];
}
static inline integer in_edge(const struct gate *work, integer slot) { return work->in_edge[slot] - work->first_edge; }
static inline integer out_edge(const struct gate *work, integer slot)
{
    return work->out_edge[slot] - work->first_edge;
}
static inline integer source_of(const struct gate *work, integer edge)
{
    return work->source[work->first_edge + edge] - work->first_node;
}
static inline integer target_of(const struct gate *work, integer edge)
{
    return work->target[work->first_edge + edge] - work->first_node;
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

static struct gate piece_of(const struct convolution *work, integer number)
{
    const integer *nodes = work->node_cuts + number, *edges = work->edge_cuts + number;
    const integer rows = nodes[0] * work->padded, edge_rows = edges[0] * work->padded;
    return (struct gate){
        .first_node = nodes[0], .nodes = nodes[1] - nodes[0], .first_edge = edges[0], .edges = edges[1] - edges[0],
        .width = work->width, .padded = work->padded, .streams = work->streams, .source = work->source,
        .target = work->target, .in_start = work->in_start, .in_edge = work->in_edge, .out_start = work->out_start,
        .out_edge = work->out_edge, .values = work->values + rows * work->streams, .logits = work->logits + edge_rows,
        .out = {work->out[0] + rows, work->out[1] + rows}, .logits_gradient = work->logits_gradient + edge_rows,
        .out_gradient = {work->out_gradient[0] + rows, work->out_gradient[1] + rows}};
}

static struct matrix rows_from(struct matrix matrix, integer first)
{
    return (struct matrix){matrix.at + first * matrix.row, matrix.row};
}

static void forward_piece(struct convolution *work, integer number, integer threads)
{
    struct gate piece = piece_of(work, number);
    const integer padded = work->padded, row = parts(&piece) * padded;
    piece.node = malloc((size_t)(piece.nodes * row) * sizeof(real));
    if (piece.node == NULL) {
        work->failed = 1;
        return;
    }
    for (integer node = 0; node < piece.nodes; node++)
        memcpy(piece.node + node * row, work->bias, (size_t)row * sizeof(real));
    for (integer edge = 0; edge < piece.edges; edge++)
        memcpy(piece.logits + edge * padded, work->bias + row, (size_t)padded * sizeof(real));
    product(piece.nodes, 4 * padded, work->h.columns, rows_from(work->h.rows, piece.first_node), work->h.maps, 1,
            piece.node, row);
    if (work->streams == 2)
        product(piece.nodes, 4 * padded, work->p.columns, rows_from(work->p.rows, piece.first_node), work->p.maps, 1,
                piece.node + SELF * padded, row);
    product(piece.edges, padded, work->e.columns, rows_from(work->e.rows, piece.first_edge), work->e.maps, 1,
            piece.logits, padded);
    run_tasks(threads, tasks_of(piece.nodes), sum_task, &piece);
    free(piece.node);
}

/* From the gradient of some maps' results to those of their input's rows [first, first + rows) and of the maps. */
static real *input_backward(const struct input *input, integer first, integer rows, struct matrix gradient,
                            integer columns, real *maps_gradient)
{
    product_with_transposed(rows, input->gradient_row, columns, gradient, input->maps, 0,
                            input->gradient + first * input->gradient_row, input->gradient_row);
    product_of_transposed(input->columns, columns, rows, rows_from(input->rows, first), gradient, 0, maps_gradient,
                          columns);
    return maps_gradient + input->columns * columns;
}

static void backward_piece(struct convolution *work, integer number, integer threads)
{
    struct gate piece = piece_of(work, number);
    const integer padded = work->padded, streams = work->streams, row = parts(&piece) * padded;
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

    real *partial = work->partial + number * work->partial_size;
    partial = input_backward(&work->h, piece.first_node, piece.nodes, (struct matrix){piece.node_gradient, row},
                             4 * padded, partial);
    if (streams == 2)
        partial = input_backward(&work->p, piece.first_node, piece.nodes,
                                 (struct matrix){piece.node_gradient + SELF * padded, row}, 4 * padded, partial);
    partial = input_backward(&work->e, piece.first_edge, piece.edges, (struct matrix){piece.edge_gradient, padded},
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
static void set_cuts(struct convolution *work, integer pieces, const integer *cuts)
{
    work->node_cuts = cuts;
    work->edge_cuts = cuts + pieces + 1;
    while (pieces > 1 && cuts[pieces - 1] == cuts[pieces])
        pieces--;
    work->pieces = pieces;
}

/* Pieces side by side where there are enough of them for all threads; else all threads on one after the other. */
static integer run(struct convolution *work, void (*piece)(struct convolution *, integer, integer), task as_task)
{
    if (work->pieces >= 2 * work->threads)
        run_tasks(work->threads, work->pieces, as_task, work);
    else
        for (integer number = 0; number < work->pieces; number++)
            piece(work, number, work->threads);
    return work->failed;
}

/* Inputs: h, p (null without a second stream) and e, their rows, their columns, and their packed maps. `cuts` for
   `pieces` pieces. Results and values have padded rows. Returns 0, or 1 where memory ran out. */
integer convolution_forward(integer threads, integer pieces, const integer *cuts, integer width, integer padded,
                            const integer *source, const integer *in_start, const integer *in_edge, const real *h,
                            integer h_row, integer h_columns, const real *of_h, const real *p, integer p_row,
                            integer p_columns, const real *of_p, const real *e, integer e_row, integer e_columns,
                            const real *of_e, const real *bias, real *values, real *logits, real *out_0, real *out_1)
{
    struct convolution work = {.threads = threads, .width = width, .padded = padded,
                               .streams = p == NULL ? 1 : 2, .source = source, .in_start = in_start,
                               .in_edge = in_edge, .bias = bias, .values = values, .logits = logits,
                               .out = {out_0, out_1}};
    set_cuts(&work, pieces, cuts);
    work.h = (struct input){.rows = {h, h_row}, .maps = {of_h, 4 * padded}, .columns = h_columns};
    work.p = (struct input){.rows = {p, p_row}, .maps = {of_p, 4 * padded}, .columns = p_columns};
    work.e = (struct input){.rows = {e, e_row}, .maps = {of_e, padded}, .columns = e_columns};
    return run(&work, forward_piece, forward_task);
}

/* Gradients of h, p, e (rows padded), and of the maps of h, p, e and the bias of a row of `node`, one behind the other
   in `total`. `partial` is room for as many numbers a piece that is not empty. */
integer convolution_backward(integer threads, integer pieces, const integer *cuts, integer width, integer padded,
                             const integer *source, const integer *target, const integer *in_start,
                             const integer *in_edge, const integer *out_start, const integer *out_edge, const real *h,
                             integer h_row, integer h_columns, const real *of_h, const real *p, integer p_row,
                             integer p_columns, const real *of_p, const real *e, integer e_row, integer e_columns,
                             const real *of_e, const real *values, const real *logits, const real *logits_gradient,
                             const real *out_gradient_0, const real *out_gradient_1, real *h_gradient,
                             integer h_gradient_row, real *p_gradient, integer p_gradient_row, real *e_gradient,
                             integer e_gradient_row, integer partial_size, real *partial, real *total)
{
    struct convolution work = {.threads = threads, .width = width, .padded = padded,
                               .streams = p == NULL ? 1 : 2, .source = source, .target = target,
                               .in_start = in_start, .in_edge = in_edge, .out_start = out_start, .out_edge = out_edge,
                               .values = (real *)values, .logits = (real *)logits,
                               .logits_gradient = logits_gradient, .out_gradient = {out_gradient_0, out_gradient_1},
                               .partial = partial, .partial_size = partial_size};
    set_cuts(&work, pieces, cuts);
    work.h = (struct input){.rows = {h, h_row}, .maps = {of_h, 4 * padded}, .columns = h_columns,
                            .gradient = h_gradient, .gradient_row = h_gradient_row};
    work.p = (struct input){.rows = {p, p_row}, .maps = {of_p, 4 * padded}, .columns = p_columns,
                            .gradient = p_gradient, .gradient_row = p_gradient_row};
    work.e = (struct input){.rows = {e, e_row}, .maps = {of_e, padded}, .columns = e_columns, .gradient = e_gradient,
                            .gradient_row = e_gradient_row};
    const integer failed = run(&work, backward_piece, backward_task);
    clear(total, partial_size);
    for (integer number = 0; number < work.pieces && !failed; number++)
        for (integer c = 0; c < partial_size; c++)
            total[c] += partial[number * partial_size + c];
    return failed;
}
