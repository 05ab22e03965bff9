/* GatedGCN layers forward. A layer opens with the maps and the gates, which give its sums, and closes with what stands
   around them: normalisation, ReLU, tanh, residuals and dropout. */
#include "layers.h"

static struct rows whole(struct rows rows) { return (struct rows){rows.at, rows.count, rows.step, rows.step}; }

/* What the backward pass needs of the maps of a piece's nodes. */
static void keep_values(const struct stack *stack, integer nodes, const real *node, real *values)
{
    const integer width = stack->width, row = row_of_parts(width, stack->streams), streams = stack->streams;
    for (integer value = 0; value < nodes * streams; value++) {
        real *to = values + value * stack->padded;
        memcpy(to, node + value / streams * row + (VALUE + value % streams) * width, (size_t)width * sizeof(real));
        memset(to + width, 0, (size_t)(stack->padded - width) * sizeof(real));
    }
}

/* From the streams of a piece to its sums or, with `closing`, to what comes out; `node` is room for its rows of parts.
   Rows are those of the piece. */
static void open_layer(const struct stack *stack, integer layer, integer piece, integer threads, struct place place,
                       real *node, const struct closing *closing)
{
    const integer padded = stack->padded, width = stack->width, streams = stack->streams;
    const integer nodes = place.in[H].count, edges = place.in[E].count, row = row_of_parts(width, streams);
    const integer four = 4 * width, columns = padded_width(four);
    const struct maps maps = stack->maps[layer];
    map_piece(stack, layer, piece, threads, H, place.in[H], (struct rows){node, nodes, columns, row});
    if (streams == 2) {
        for (integer i = 0; i < nodes; i++)
            memcpy(node + i * row + four, maps.bias + four, (size_t)(row - four) * sizeof(real));
        map_rows(threads, place.in[P], maps.of[P], NULL, (struct rows){node + SELF * width, nodes, columns, row});
    }
    map_piece(stack, layer, piece, threads, E, place.in[E], whole(place.sum[E]));
    const struct gate gate = {.first_node = stack->node_cuts[piece], .nodes = nodes,
                              .first_edge = stack->edge_cuts[piece], .edges = edges, .width = width, .padded = padded,
                              .streams = streams, .all = stack->call->edges, .node = node,
                              .logits = place.sum[E].at, .sums = {place.sum[H].at, place.sum[P].at},
                              .closing = closing};
    gates_forward(threads, &gate);
    if (place.values != NULL)
        keep_values(stack, nodes, node, place.values);
}

static inline void clear_padding(struct rows rows, integer row)
{
    memset(row_at(rows, row) + rows.width, 0, (size_t)(rows.step - rows.width) * sizeof(real));
}

/* From the sums of a piece to the streams that come out, which are not those that went in: the last vector of a row may
   begin within the one before, and is computed of what went in. */
static void close_layer(const struct stack *stack, integer layer, integer piece, integer threads, struct place place,
                        const struct rows *out)
{
    const struct gated_layer *of = &stack->call->layer[layer];
    const _Bool late = drops_branch(of); /* the residual comes behind the dropout */
    struct rows residual[3] = {0};
    if (of->residual)
        memcpy(residual, place.in, sizeof residual);
    for (integer s = H; s <= E; s++) {
        struct norm norm = norm_of(stack, layer, s, piece, place.sum[s], place.statistics);
        norm.out = out[s];
        if (!late)
            norm.residual = residual[s];
        normalise(threads, &norm);
    }
    if (stack->streams == 2)
        tanh_forward(&(struct activation){.threads = threads, .x = place.sum[P], .out = out[P],
                                          .other = late ? (struct rows){0} : residual[P]});
    for (integer s = 0; s <= stack->streams; s++) {
        if (of->dropout > 0)
            drop_and_add(threads, of->seed[s], of->dropout, cuts_of(stack, s)[piece], out[s],
                         late ? residual[s] : (struct rows){0}, out[s]);
        for (integer row = 0; row < out[s].count && out[s].step > out[s].width; row++)
            clear_padding(out[s], row);
    }
}

/* A place in the memory of the whole batch, as far as it is that of a piece. */
static struct place of_piece(const struct stack *stack, struct place place, integer piece)
{
    for (integer s = 0; s <= stack->streams; s++) {
        place.in[s] = piece_rows(stack, place.in[s], s, piece);
        place.sum[s] = piece_rows(stack, place.sum[s], s, piece);
    }
    place.values += stack->node_cuts[piece] * stack->streams * stack->padded;
    return place;
}

static void copy_rows(struct rows from, struct rows to)
{
    for (integer row = 0; row < from.count; row++) {
        memcpy(row_at(to, row), row_at(from, row), (size_t)from.width * sizeof(real));
        clear_padding(to, row);
    }
}

static void take_in(const struct stack *stack, integer piece, const struct rows *to)
{
    for (integer s = 0; s <= stack->streams; s++)
        copy_rows(piece_rows(stack, stack->call->in[s], s, piece), to[s]);
}

/* What comes out of a layer: what goes into the next, or out of all. */
static void rows_behind(const struct stack *stack, integer layer, integer piece, struct rows *out)
{
    const _Bool last = layer + 1 == stack->call->count;
    const struct place next = last ? (struct place){0} : place_of(stack, layer + 1);
    for (integer s = 0; s <= stack->streams; s++)
        out[s] = piece_rows(stack, last ? stack->call->out[s] : next.in[s], s, piece);
}

static void close_in_memory(struct stack *stack, integer layer, integer piece, integer threads)
{
    struct rows out[3] = {0};
    rows_behind(stack, layer, piece, out);
    close_layer(stack, layer, piece, threads, of_piece(stack, place_of(stack, layer), piece), out);
}

static void next_layer(struct stack *stack, integer piece, integer threads)
{
    const struct place place = of_piece(stack, place_of(stack, stack->layer), piece);
    if (stack->layer == 0)
        take_in(stack, piece, place.in);
    else
        close_in_memory(stack, stack->layer - 1, piece, threads);
    if (place.in[H].count == 0)
        return;
    real *node = room_for_piece(place.in[H].count * row_of_parts(stack->width, stack->streams));
    if (node == NULL) {
        stack->failed = 1;
        return;
    }
    open_layer(stack, stack->layer, piece, threads, place, node, NULL);
    for (integer s = H; s <= E; s++)
        if (stack->call->layer[stack->layer].norm[s].of_rows) {
            const struct norm norm = norm_of(stack, stack->layer, s, piece, place.sum[s], place.statistics);
            find_moments(threads, &norm);
        }
}

static void finish(struct stack *stack, integer piece, integer threads)
{
    close_in_memory(stack, stack->call->count - 1, piece, threads);
}

static void find_statistics(const struct stack *stack, integer layer, integer stream, real *statistics)
{
    const struct normal *norm = &stack->call->layer[layer].norm[stream];
    const integer *cuts = cuts_of(stack, stream);
    struct moments moments = {0};
    for (integer piece = 0; piece < stack->pieces && norm->of_rows; piece++)
        add_moments(&moments, piece_sums(stack, stream, piece), cuts[piece + 1] - cuts[piece], stack->width);
    settle_statistics(norm, &moments, stack->width, statistics + 3 * stream * stack->width);
}

static enum answer forward_in_memory(struct stack *stack)
{
    for (stack->layer = 0; stack->layer < stack->call->count; stack->layer++) {
        const enum answer answer = for_pieces(stack, next_layer);
        if (answer != DONE)
            return answer;
        for (integer s = H; s <= E; s++)
            find_statistics(stack, stack->layer, s, place_of(stack, stack->layer).statistics);
    }
    return for_pieces(stack, finish);
}

static inline real *closing_norm(const struct stack *stack, integer layer, integer stream)
{
    return stack->closings + (2 * layer + stream) * 4 * stack->padded;
}

/* Where a layer closes in the pass over the edges of a piece. */
static struct closing closing_of(const struct stack *stack, integer layer, integer piece, const struct rows *in,
                                 const struct rows *out)
{
    const struct gated_layer *of = &stack->call->layer[layer];
    struct closing closing = {.scale = of->scaled ? stack->call->scale.at + stack->node_cuts[piece] : NULL};
    for (integer s = 0; s <= stack->streams; s++) {
        closing.in[s] = of->residual ? in[s].at : NULL;
        closing.out[s] = out[s].at;
    }
    for (integer s = H; s <= E; s++)
        closing.norm[s] = closing_norm(stack, layer, s);
    return closing;
}

/* A piece through all layers; nothing is kept. What a layer gives goes by turns into the rows that come out at the end
   and into others, such that the last layer's are the former. */
static void all_layers(struct stack *stack, integer piece, integer threads)
{
    const integer padded = stack->padded, width = stack->width, streams = stack->streams, count = stack->call->count;
    const integer nodes = stack->node_cuts[piece + 1] - stack->node_cuts[piece];
    const integer edges = stack->edge_cuts[piece + 1] - stack->edge_cuts[piece], row = row_of_parts(width, streams);
    if (nodes == 0)
        return;
    real *next = room_for_piece(nodes * row + 2 * (nodes * streams + edges) * padded), *node = next;
    if (node == NULL) {
        stack->failed = 1;
        return;
    }
    next += nodes * row;
    struct place place = {0};
    struct rows turns[2][3] = {0};
    for (integer s = 0; s <= streams; s++) {
        const integer rows = s == E ? edges : nodes;
        place.sum[s] = (struct rows){next, rows, width, padded};
        turns[1][s] = (struct rows){next + rows * padded, rows, width, padded};
        turns[0][s] = piece_rows(stack, stack->call->out[s], s, piece);
        next += 2 * rows * padded;
    }
    take_in(stack, piece, turns[count % 2]);
    for (integer layer = 0; layer < count; layer++) {
        const struct rows *out = turns[(count - layer - 1) % 2];
        memcpy(place.in, turns[(count - layer) % 2], sizeof place.in);
        place.statistics = stack->statistics + layer * 6 * width;
        const struct closing closing = closing_of(stack, layer, piece, place.in, out);
        const _Bool drops = stack->call->layer[layer].dropout > 0;
        open_layer(stack, layer, piece, threads, place, node, drops ? NULL : &closing);
        if (drops)
            close_layer(stack, layer, piece, threads, place, out);
    }
}

static enum answer forward_in_pieces(struct stack *stack)
{
    for (integer layer = 0; layer < stack->call->count; layer++)
        for (integer s = H; s <= E; s++) {
            real *statistics = stack->statistics + layer * 6 * stack->width;
            find_statistics(stack, layer, s, statistics);
            const struct norm norm = norm_of(stack, layer, s, 0, (struct rows){0}, statistics);
            const real *parts[4] = {[MEAN] = norm.mean, [RATE] = norm.rate, [WEIGHT] = norm.weight, [BIAS] = norm.bias};
            for (integer part = 0; part < 4; part++)
                memcpy(closing_norm(stack, layer, s) + part * stack->padded, parts[part],
                       (size_t)stack->width * sizeof(real));
        }
    return for_pieces(stack, all_layers);
}

enum answer gated_layers_forward(const struct gated_layers *call)
{
    const enum answer answer = check_layers(call, 0);
    if (answer != DONE)
        return answer;
    struct stack stack = stack_of(call);
    const integer maps = maps_size(&stack), statistics = call->count * 6 * stack.width;
    const integer closings = call->count * 8 * stack.padded;
    const integer sums = sums_size(&stack, H) + sums_size(&stack, E);
    real *room = room_for_call(maps + statistics + closings + sums + tables_size(&stack));
    if (room == NULL)
        return NO_MEMORY;
    pack_forward(&stack, room);
    stack.statistics = room + maps;
    stack.closings = stack.statistics + statistics;
    stack.sums[H] = stack.closings + closings;
    stack.sums[E] = stack.sums[H] + sums_size(&stack, H);
    map_tables(&stack, stack.sums[H] + sums);
    return keeps_memory(call) ? forward_in_memory(&stack) : forward_in_pieces(&stack);
}
