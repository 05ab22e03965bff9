/* Layers of full attention forward. A layer opens with the attentions and what is made of them, up to the first
   normalisation; its feed-forward part goes up to the second one, which closes it. */
#include "full_layers.h"

static void copy_rows(struct rows from, struct rows to)
{
    for (integer row = 0; row < from.count; row++)
        memcpy(row_at(to, row), row_at(from, row), (size_t)from.width * sizeof(real));
    clear_padding(to);
}

/* x times a map and its bias, and the residual [nodes, ..] where there is one: into out [nodes, padded]. */
static void map_with_residual(const struct full *stack, integer threads, integer which, integer bias, integer nodes,
                              struct matrix x, struct matrix residual, real *out)
{
    const integer padded = stack->padded;
    const real *add = stack->biases[stack->layer] + bias * stack->hidden;
    struct matrix start = matrix_of(add, 0);
    if (residual.at != NULL) {
        for (integer row = 0; row < nodes; row++)
            for (integer c = 0; c < padded; c += LANES)
                store(out + row * padded + c, load(residual.at + row * residual.row + c) + load(add + c));
        start = matrix_of(out, padded);
    }
    product(threads, nodes, padded, stack->bundle[which].columns, x, stack->panels[stack->layer][which], start, out,
            padded);
}

static struct rows some_rows(struct rows rows, const struct piece *piece)
{
    return rows_of(row_at(rows, piece->first), piece->nodes, rows.width, rows.step);
}

/* Rows of h or p that come out of the layer, where they are rows of both for the next one or those of the call. */
static struct rows rows_behind(const struct full *stack, integer layer, integer stream, const struct piece *piece,
                               real *next)
{
    const _Bool last = layer + 1 == stack->call->count;
    return last ? some_rows(stack->call->out[stream], piece) : within(stack, next, stream, piece->nodes);
}

/* From what goes in to what the first normalisation is applied to, and to the positions that come out. */
static _Bool open_layer(const struct full *stack, integer threads, const struct piece *piece, const struct place *place,
                        real *next, real *room)
{
    const integer padded = stack->padded, nodes = piece->nodes, step = stack->streams * padded;
    const _Bool residual = stack->call->layer[stack->layer].residual != 0;
    const struct matrix nothing = {NULL, 0};
    for (integer s = 0; s < stack->streams; s++) {
        const integer which = s == OF_H ? ATTENTION : ATTENTION_P;
        product(threads, nodes, PARTS * padded, stack->bundle[which].columns, matrix_of(place->in + s * padded, step),
                stack->panels[stack->layer][which], nothing, place->maps[s], PARTS * padded);
        const struct attention attention = attention_of(stack, piece, place, s);
        if (!attend_to_piece(threads, &attention, piece, 0))
            return 0;
        const struct rows found = rows_of(place->attention[s], nodes, stack->width, padded);
        clear_padding(found);
        const struct matrix x = matrix_of(dropped(stack, threads, s == OF_H ? 0 : 2, piece, found, room), padded);
        if (s == OF_H)
            map_with_residual(stack, threads, O, O_BIAS, nodes, x, residual ? matrix_of(place->in, step) : nothing,
                              place->sum[0]);
        else
            map_with_residual(stack, threads, O_P, O_P_BIAS, nodes, x, nothing, place->turn);
    }
    if (stack->streams == 2) {
        const struct rows p_in = within(stack, place->in, OF_P, nodes);
        const struct rows p_out = rows_behind(stack, stack->layer, OF_P, piece, next);
        tanh_forward(&(struct activation){.threads = threads, .x = rows_of(place->turn, nodes, stack->width, padded),
                                          .other = residual ? p_in : (struct rows){0}, .out = p_out});
        clear_padding(p_out);
    }
    return 1;
}

static void normalise_rows(const struct full *stack, integer layer, integer which, integer number, integer threads,
                           const struct place *place, struct rows out)
{
    struct norm norm = norm_at(stack, layer, which, number,
                               rows_of(place->sum[which], out.count, stack->width, stack->padded), place->statistics);
    norm.out = out;
    normalise(threads, &norm);
}

static void feed_forward(const struct full *stack, integer number, integer threads, const struct piece *piece,
                         const struct place *place, real *room)
{
    const integer padded = stack->padded, hidden = stack->hidden, nodes = piece->nodes;
    const struct rows middle = rows_of(place->middle, nodes, stack->width, padded);
    normalise_rows(stack, stack->layer, 0, number, threads, place, middle);
    clear_padding(middle);
    product(threads, nodes, hidden, padded, matrix_of(place->middle, padded), stack->panels[stack->layer][W1],
            matrix_of(stack->biases[stack->layer] + W1_BIAS * stack->hidden, 0), place->hidden, hidden);
    for (integer at = 0; at < nodes * hidden; at += LANES) {
        const vector x = load(place->hidden + at);
        store(place->hidden + at, where(x < 0, all(0), x));
    }
    const struct rows found = rows_of(place->hidden, nodes, 2 * stack->width, hidden);
    const _Bool residual = stack->call->layer[stack->layer].residual != 0;
    map_with_residual(stack, threads, W2, W2_BIAS, nodes,
                      matrix_of(dropped(stack, threads, 1, piece, found, room), hidden),
                      residual ? matrix_of(place->middle, padded) : (struct matrix){NULL, 0}, place->sum[1]);
}

static void look_at_rows(const struct full *stack, integer which, integer number, integer threads,
                         const struct place *place, integer nodes)
{
    if (!stack->call->layer[stack->layer].norm[which].of_rows)
        return;
    const struct norm norm = norm_at(stack, stack->layer, which, number,
                                     rows_of(place->sum[which], nodes, stack->width, stack->padded), place->statistics);
    find_moments(threads, &norm);
}

static void take_in(const struct full *stack, const struct piece *piece, real *to)
{
    for (integer s = 0; s < stack->streams; s++)
        copy_rows(some_rows(stack->call->in[s], piece), within(stack, to, s, piece->nodes));
}

static void close_layer(const struct full *stack, integer layer, integer number, integer threads,
                        const struct piece *piece, const struct place *place, real *next)
{
    const struct rows out = rows_behind(stack, layer, OF_H, piece, next);
    normalise_rows(stack, layer, 1, number, threads, place, out);
    clear_padding(out);
}

static real *take_room(struct full *stack, integer count)
{
    real *room = room_for_piece(count + 1);
    if (room == NULL)
        stack->failed = 1;
    return room;
}

/* What goes into a layer of the memory, behind the last one nothing. */
static real *in_of(const struct full *stack, integer layer, const struct piece *piece)
{
    return layer < stack->call->count ? place_of_piece(stack, layer, piece).in : NULL;
}

static void first_half(struct full *stack, integer number, integer threads)
{
    const struct piece piece = piece_of(stack, number);
    const struct place place = place_of_piece(stack, stack->layer, &piece);
    real *room = take_room(stack, piece.nodes * stack->padded);
    if (room == NULL)
        return;
    if (stack->layer == 0) {
        take_in(stack, &piece, place.in);
    } else {
        const struct place before = place_of_piece(stack, stack->layer - 1, &piece);
        close_layer(stack, stack->layer - 1, number, threads, &piece, &before, place.in);
    }
    if (!open_layer(stack, threads, &piece, &place, in_of(stack, stack->layer + 1, &piece), room))
        stack->failed = 1;
    look_at_rows(stack, 0, number, threads, &place, piece.nodes);
}

static void second_half(struct full *stack, integer number, integer threads)
{
    const struct piece piece = piece_of(stack, number);
    const struct place place = place_of_piece(stack, stack->layer, &piece);
    real *room = take_room(stack, piece.nodes * stack->hidden);
    if (room == NULL)
        return;
    feed_forward(stack, number, threads, &piece, &place, room);
    look_at_rows(stack, 1, number, threads, &place, piece.nodes);
}

static void finish(struct full *stack, integer number, integer threads)
{
    const integer last = stack->call->count - 1;
    const struct piece piece = piece_of(stack, number);
    const struct place place = place_of_piece(stack, last, &piece);
    close_layer(stack, last, number, threads, &piece, &place, NULL);
}

static void find_statistics(const struct full *stack, integer which, real *statistics)
{
    const struct normal *norm = &stack->call->layer[stack->layer].norm[which];
    struct moments moments = {0};
    for (integer number = 0; number < stack->pieces && norm->of_rows; number++) {
        const struct piece piece = piece_of(stack, number);
        add_moments(&moments, sums_of_piece(stack, which, number, piece.first), piece.nodes, stack->width);
    }
    settle_statistics(norm, &moments, stack->width, statistics + 3 * which * stack->width);
}

static enum answer forward_in_memory(struct full *stack)
{
    const piece_function halves[2] = {first_half, second_half};
    const struct piece beginning = piece_of(stack, 0);
    for (stack->layer = 0; stack->layer < stack->call->count; stack->layer++) {
        map_edge_features(stack);
        for (integer which = 0; which < 2; which++) {
            const enum answer answer = for_each_piece(stack, halves[which]);
            if (answer != DONE)
                return answer;
            find_statistics(stack, which, place_of_piece(stack, stack->layer, &beginning).statistics);
        }
    }
    return for_each_piece(stack, finish);
}

/* A piece through a layer, where nothing is kept but what comes out. */
static void whole_layer(struct full *stack, integer number, integer threads)
{
    const struct piece piece = piece_of(stack, number);
    const integer step = stack->streams * stack->padded, size = size_alone(stack, &piece);
    real *room = take_room(stack, size + piece.nodes * stack->hidden);
    if (room == NULL)
        return;
    struct place place = place_alone(stack, &piece, room);
    real *next = stack->turns[(stack->layer + 1) % 2] + piece.first * step;
    place.in = stack->turns[stack->layer % 2] + piece.first * step;
    place.statistics = stack->statistics;
    if (stack->layer == 0)
        take_in(stack, &piece, place.in);
    if (!open_layer(stack, threads, &piece, &place, next, room + size)) {
        stack->failed = 1;
        return;
    }
    feed_forward(stack, number, threads, &piece, &place, room + size);
    close_layer(stack, stack->layer, number, threads, &piece, &place, next);
}

static enum answer forward_in_pieces(struct full *stack)
{
    enum answer answer = DONE;
    for (stack->layer = 0; stack->layer < stack->call->count && answer == DONE; stack->layer++) {
        map_edge_features(stack);
        find_statistics(stack, 0, stack->statistics);
        find_statistics(stack, 1, stack->statistics);
        answer = for_each_piece(stack, whole_layer);
    }
    return answer;
}

enum answer full_layers_forward(const struct full_layers *call)
{
    const enum answer answer = check_full(call, 0);
    if (answer != DONE)
        return answer;
    struct full stack = full_of(call);
    const integer panels = panels_size(&stack), statistics = in_lines(6 * stack.width), sums = sums_size(&stack);
    const integer turn = keeps(&stack) ? 0 : in_lines(stack.nodes * stack.streams * stack.padded);
    real *room = room_for_call(panels + edge_features_size(&stack) + statistics + 2 * sums + 2 * turn);
    if (room == NULL)
        return NO_MEMORY;
    pack_panels(&stack, room, 0);
    stack.statistics = take_edge_features(&stack, room + panels);
    stack.sums[0] = stack.statistics + statistics;
    stack.sums[1] = stack.sums[0] + sums;
    stack.turns[0] = stack.sums[1] + sums;
    stack.turns[1] = stack.turns[0] + turn;
    return keeps(&stack) ? forward_in_memory(&stack) : forward_in_pieces(&stack);
}
