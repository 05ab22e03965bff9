/* Layers of full attention backward. The gradients of h and p stay in one place: they begin as those of what comes out of
   a layer and become those of what goes in. */
#include "full_layers.h"

/* Gradient of what a normalisation is applied to, of that of what comes out of it. */
static struct norm norm_with_gradient(const struct full *stack, integer layer, integer which, integer number,
                                      const struct piece *piece, const struct place *place)
{
    struct norm norm = norm_at(stack, layer, which, number,
                               rows_of(place->sum[which], piece->nodes, stack->width, stack->padded),
                               place->statistics);
    norm.gradient = within(stack, stack->gradient + piece->first * stack->streams * stack->padded, OF_H, piece->nodes);
    return norm;
}

static void find_sums(const struct full *stack, integer layer, integer which, integer number, integer threads,
                      const struct piece *piece)
{
    const struct place place = place_of_piece(stack, layer, piece);
    const struct norm norm = norm_with_gradient(stack, layer, which, number, piece, &place);
    find_gradient_sums(threads, &norm);
}

static void begin(struct full *stack, integer number, integer threads)
{
    const struct piece piece = piece_of(stack, number);
    real *gradient = stack->gradient + piece.first * stack->streams * stack->padded;
    memset(gradient, 0, (size_t)(piece.nodes * stack->streams * stack->padded) * sizeof(real));
    for (integer s = 0; s < stack->streams; s++) {
        const struct rows to = within(stack, gradient, s, piece.nodes), from = stack->call->out_gradient[s];
        for (integer row = 0; row < to.count && !left_out(from); row++)
            memcpy(row_at(to, row), row_at(from, piece.first + row), (size_t)to.width * sizeof(real));
    }
    find_sums(stack, stack->call->count - 1, 1, number, threads, &piece);
}

/* Gradients of weight and bias of a normalisation, and the means that the gradient of its rows needs. */
static void put_sums_together(const struct full *stack, integer which, real *of_weight, real *of_bias)
{
    const _Bool of_rows = stack->call->layer[stack->layer].norm[which].of_rows != 0;
    const integer width = stack->width;
    const double rows = (double)stack->nodes;
    struct gradient_sums sums = {0};
    for (integer number = 0; number < stack->pieces; number++) {
        const struct piece piece = piece_of(stack, number);
        add_gradient_sums(&sums, sums_of_piece(stack, which, number, piece.first), piece.nodes, width);
    }
    for (integer c = 0; c < width; c++) {
        of_weight[c] = (real)sums.product[c];
        of_bias[c] = (real)sums.gradient[c];
        stack->means[c] = of_rows ? (real)(sums.gradient[c] / rows) : 0;
        stack->means[width + c] = of_rows ? (real)(sums.product[c] / rows) : 0;
    }
}

/* A group's sums, as its pieces add to them; the first one begins them. */
struct summing {
    struct partial to;
    _Bool first;
};

static struct summing sums_with(const struct full *stack, integer number)
{
    const integer group = group_with(stack, number);
    return (struct summing){partial_of(stack, group), number == first_of_group(stack, group)};
}

/* Of a bundle's maps: gradient [nodes, rows], x [nodes, columns]. */
static void add_map_gradient(const struct full *stack, const struct summing *sums, integer threads, integer which,
                             integer nodes, struct matrix gradient, struct matrix x)
{
    const struct bundle *bundle = &stack->bundle[which];
    const struct matrix so_far = {sums->to.of[which], bundle->columns}, nothing = {NULL, 0};
    product_of_transposed(threads, bundle->rows, bundle->columns, nodes, gradient, x, sums->first ? nothing : so_far,
                          sums->to.of[which], bundle->columns);
}

static void add_bias_gradient(const struct full *stack, const struct summing *sums, integer bias, integer nodes,
                              const real *gradient, integer padded)
{
    real *sum = sums->to.biases + bias * stack->hidden;
    for (integer c = 0; c < padded; c += LANES) {
        vector total = sums->first ? all(0) : load(sum + c);
        for (integer row = 0; row < nodes; row++)
            total += load(gradient + row * padded + c);
        store(sum + c, total);
    }
}

static void drop_gradient(const struct full *stack, integer threads, integer seed, const struct piece *piece,
                          struct rows gradient)
{
    const struct full_layer *layer = &stack->call->layer[stack->layer];
    if (layer->dropout > 0)
        drop_rows(threads, layer->seed[seed], layer->dropout, piece->first, gradient, gradient);
}

static real *take_room(struct full *stack, integer count)
{
    real *room = room_for_piece(count + 1);
    if (room == NULL)
        stack->failed = 1;
    return room;
}

/* From the gradient of what comes out of a layer to that of what comes out of its first normalisation. */
static void second_half(struct full *stack, integer number, integer threads)
{
    const struct piece piece = piece_of(stack, number);
    const struct place place = place_of_piece(stack, stack->layer, &piece);
    const struct summing sums = sums_with(stack, number);
    const integer nodes = piece.nodes, padded = stack->padded, hidden = stack->hidden, step = stack->streams * padded;
    real *room = take_room(stack, nodes * (padded + 2 * hidden));
    if (room == NULL)
        return;
    real *of_sum = room, *of_hidden = room + nodes * padded, *more = of_hidden + nodes * hidden;
    struct norm norm = norm_with_gradient(stack, stack->layer, 1, number, &piece, &place);
    norm.x_gradient = rows_of(of_sum, nodes, stack->width, padded);
    find_x_gradient(threads, &norm);
    clear_padding(norm.x_gradient);

    const struct rows in_hidden = rows_of(place.hidden, nodes, 2 * stack->width, hidden);
    const real *fed = dropped(stack, threads, 1, &piece, in_hidden, more);
    add_map_gradient(stack, &sums, threads, W2, nodes, matrix_of(of_sum, padded), matrix_of(fed, hidden));
    add_bias_gradient(stack, &sums, W2_BIAS, nodes, of_sum, padded);
    product(threads, nodes, hidden, padded, matrix_of(of_sum, padded), stack->panels[stack->layer][W2],
            (struct matrix){NULL, 0}, of_hidden, hidden);
    drop_gradient(stack, threads, 1, &piece, rows_of(of_hidden, nodes, 2 * stack->width, hidden));
    for (integer at = 0; at < nodes * hidden; at += LANES)
        store(of_hidden + at, where(load(place.hidden + at) <= 0, all(0), load(of_hidden + at)));
    add_map_gradient(stack, &sums, threads, W1, nodes, matrix_of(of_hidden, hidden), matrix_of(place.middle, padded));
    add_bias_gradient(stack, &sums, W1_BIAS, nodes, of_hidden, hidden);
    const _Bool residual = stack->call->layer[stack->layer].residual != 0;
    product(threads, nodes, padded, hidden, matrix_of(of_hidden, hidden), stack->panels[stack->layer][W1],
            residual ? matrix_of(of_sum, padded) : (struct matrix){NULL, 0}, norm.gradient.at, step);
    find_sums(stack, stack->layer, 0, number, threads, &piece);
}

/* From the gradient of what O makes of an attention to that of the attention's maps of the nodes, and through them to
   what goes in, [nodes, columns] at `to`. */
static _Bool attention_backward_of(struct full *stack, const struct summing *sums, integer number, integer threads,
                                   integer stream, const struct piece *piece, const struct place *place,
                                   const real *of_out, struct matrix start, real *to, real *room)
{
    const integer nodes = piece->nodes, padded = stack->padded, step = stack->streams * padded;
    const integer which = stream == OF_H ? ATTENTION : ATTENTION_P, map = stream == OF_H ? O : O_P;
    const integer bias = stream == OF_H ? O_BIAS : O_P_BIAS, seed = stream == OF_H ? 0 : 2;
    real *of_maps = room, *of_attention = room + nodes * PARTS * padded, *more = of_attention + nodes * padded;
    const struct rows found = rows_of(place->attention[stream], nodes, stack->width, padded);
    const real *given = dropped(stack, threads, seed, piece, found, more);
    add_map_gradient(stack, sums, threads, map, nodes, matrix_of(of_out, padded), matrix_of(given, padded));
    add_bias_gradient(stack, sums, bias, nodes, of_out, padded);
    product(threads, nodes, padded, padded, matrix_of(of_out, padded), stack->panels[stack->layer][map],
            (struct matrix){NULL, 0}, of_attention, padded);
    drop_gradient(stack, threads, seed, piece, rows_of(of_attention, nodes, stack->width, padded));

    struct attention attention = attention_of(stack, piece, place, stream);
    const integer table = stack->call->kind.at == NULL ? 0 : group_with(stack, number) * stack->rows * step;
    attention.gradient = of_attention;
    attention.maps_gradient = of_maps;
    attention.edges_gradient = stack->edge_maps_gradient + table + stream * padded;
    attention.channel_gradient = sums->to.channel + stream * padded;
    attention.factor_gradient = sums->to.factor + stream * 2 * stack->call->heads;
    if (!attend_to_piece(threads, &attention, piece, 1))
        return 0;
    for (integer part = 0; part < nodes * PARTS && stack->width < padded; part++)
        memset(of_maps + part * padded + stack->width, 0, (size_t)(padded - stack->width) * sizeof(real));
    add_map_gradient(stack, sums, threads, which, nodes, matrix_of(of_maps, PARTS * padded),
                     matrix_of(place->in + stream * padded, step));
    product(threads, nodes, stack->bundle[which].columns, PARTS * padded, matrix_of(of_maps, PARTS * padded),
            stack->panels[stack->layer][which], start, to, step);
    return 1;
}

/* From there to the gradient of what goes into the layer, and what the layer before needs of it. */
static void first_half(struct full *stack, integer number, integer threads)
{
    const struct piece piece = piece_of(stack, number);
    const struct place place = place_of_piece(stack, stack->layer, &piece);
    const struct summing sums = sums_with(stack, number);
    const integer nodes = piece.nodes, padded = stack->padded, step = stack->streams * padded;
    const _Bool residual = stack->call->layer[stack->layer].residual != 0;
    real *gradient = stack->gradient + piece.first * step;
    real *room = take_room(stack, nodes * padded * (PARTS + 4));
    if (room == NULL)
        return;
    real *of_sum = room, *of_turn = room + nodes * padded, *more = of_turn + nodes * padded;
    if (sums.first)
        memset(sums.to.channel, 0, (size_t)(stack->streams * (padded + 2 * stack->call->heads)) * sizeof(real));
    struct norm norm = norm_with_gradient(stack, stack->layer, 0, number, &piece, &place);
    norm.x_gradient = rows_of(of_sum, nodes, stack->width, padded);
    find_x_gradient(threads, &norm);
    clear_padding(norm.x_gradient);
    if (stack->streams == 2) {
        const struct rows out = rows_of(of_turn, nodes, stack->width, padded);
        tanh_backward(&(struct activation){.threads = threads, .x = rows_of(place.turn, nodes, stack->width, padded),
                                           .other = within(stack, gradient, OF_P, nodes), .out = out});
        clear_padding(out);
    }
    for (integer row = 0; row < nodes && residual; row++)
        memcpy(gradient + row * step, of_sum + row * padded, (size_t)padded * sizeof(real));
    _Bool done = attention_backward_of(stack, &sums, number, threads, OF_H, &piece, &place, of_sum,
                                       residual ? matrix_of(gradient, step) : (struct matrix){NULL, 0}, gradient, more);
    if (done && stack->streams == 2)
        done = attention_backward_of(stack, &sums, number, threads, OF_P, &piece, &place, of_turn,
                                     matrix_of(gradient + padded, step), gradient + padded, more);
    if (!done)
        stack->failed = 1;
    else if (stack->layer > 0)
        find_sums(stack, stack->layer - 1, 1, number, threads, &piece);
}

static void finish(struct full *stack, integer number, integer threads)
{
    (void)threads;
    const struct piece piece = piece_of(stack, number);
    for (integer s = 0; s < stack->streams; s++) {
        const struct rows to = stack->call->in_gradient[s];
        const struct rows from = within(stack, stack->gradient + piece.first * stack->streams * stack->padded, s,
                                        piece.nodes);
        for (integer row = 0; row < from.count; row++)
            memcpy(row_at(to, piece.first + row), row_at(from, row), (size_t)stack->padded * sizeof(real));
    }
}

static enum answer backward(struct full *stack, integer tables)
{
    const struct full_layers *call = stack->call;
    const integer parameters = parameters_count(stack), width = stack->width;
    const piece_function halves[2] = {first_half, second_half};
    enum answer answer = for_each_piece(stack, begin);
    for (stack->layer = call->count - 1; stack->layer >= 0 && answer == DONE; stack->layer--) {
        real *gradients = call->parameters_gradient.at + stack->layer * parameters;
        map_edge_features(stack);
        memset(stack->edge_maps_gradient, 0, (size_t)tables * sizeof(real));
        for (integer which = 1; which >= 0 && answer == DONE; which--) {
            real *of_norm = gradients + parameters - (which == 0 ? 4 : 2) * width;
            put_sums_together(stack, which, of_norm, of_norm + width);
            answer = for_each_group(stack, halves[which]);
        }
        if (answer == DONE)
            unpack_partial(stack, gradients);
    }
    return answer == DONE ? for_each_piece(stack, finish) : answer;
}

static void clear(real *numbers, integer count)
{
    if (count > 0)
        memset(numbers, 0, (size_t)count * sizeof(real));
}

enum answer full_layers_backward(const struct full_layers *call)
{
    const enum answer answer = check_full(call, 1);
    if (answer != DONE)
        return answer;
    struct full stack = full_of(call);
    const integer step = stack.streams * stack.padded, sums = sums_size(&stack), means = in_lines(2 * stack.width);
    const integer panels = panels_size(&stack), partial = stack.groups * gradients_size(&stack);
    const integer tables = in_lines((call->kind.at == NULL ? 1 : stack.groups) * stack.rows * step);
    const integer edges_room = step * stack.padded, gradient = in_lines(stack.nodes * step);
    real *room = room_for_call(panels + edge_features_size(&stack) + partial + tables + edges_room + 2 * sums + means
                               + gradient);
    if (room == NULL)
        return NO_MEMORY;
    pack_panels(&stack, room, 1);
    stack.partial = take_edge_features(&stack, room + panels);
    stack.edge_maps_gradient = stack.partial + partial;
    stack.edges_room = stack.edge_maps_gradient + tables;
    stack.sums[0] = stack.edges_room + edges_room;
    stack.sums[1] = stack.sums[0] + sums;
    stack.means = stack.sums[1] + sums;
    stack.gradient = stack.means + means;
    clear(call->edge_gradient.at, stack.rows * stack.padded);
    clear(call->added_gradient.at, stack.width);
    return backward(&stack, tables);
}
