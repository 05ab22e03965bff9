/* GatedGCN layers backward. The gradients of the streams stay in one place: they begin as those of what comes out of a
   layer, and where there is a residual what the maps give is added to them. */
#include "layers.h"

/* The gradient of what is added to the residual of a piece: that of the stream, or what its dropout leaves of it, which
   goes into `room`. */
static struct rows of_branch(const struct stack *stack, integer layer, integer stream, integer piece, integer threads,
                             struct rows gradient, real *room)
{
    const struct gated_layer *of = &stack->call->layer[layer];
    if (!drops_branch(of))
        return gradient;
    const struct rows dropped = {room, gradient.count, gradient.width, stack->padded};
    drop_rows(threads, of->seed[stream], of->dropout, cuts_of(stack, stream)[piece], gradient, dropped);
    return dropped;
}

static inline integer branch_size(const struct stack *stack, integer layer, integer rows)
{
    return drops_branch(&stack->call->layer[layer]) ? rows * stack->padded : 0;
}

/* The gradients behind the dropout of streams, and their sums that the normalisations need. */
static void prepare(struct stack *stack, integer layer, integer piece, integer threads)
{
    const struct gated_layer *of = &stack->call->layer[layer];
    const struct place place = place_of(stack, layer);
    for (integer s = 0; s <= stack->streams; s++) {
        const struct rows gradient = piece_rows(stack, stack->call->in_gradient[s], s, piece);
        if (of->dropout > 0 && !of->drop_branch)
            drop_rows(threads, of->seed[s], of->dropout, cuts_of(stack, s)[piece], gradient, gradient);
        if (s == P)
            continue;
        real *room = room_for_piece(branch_size(stack, layer, gradient.count) + 1);
        if (room == NULL) {
            stack->failed = 1;
            return;
        }
        struct norm norm = norm_of(stack, layer, s, piece, piece_rows(stack, place.sum[s], s, piece), place.statistics);
        norm.gradient = of_branch(stack, layer, s, piece, threads, gradient, room);
        find_gradient_sums(threads, &norm);
    }
}

/* Of a piece: the gradients that are given, zeros for those that are not. */
static void begin(struct stack *stack, integer piece, integer threads)
{
    for (integer s = 0; s <= stack->streams; s++) {
        const struct rows to = piece_rows(stack, stack->call->in_gradient[s], s, piece);
        const struct rows from = stack->call->out_gradient[s];
        for (integer row = 0; row < to.count; row++) {
            memset(row_at(to, row), 0, (size_t)to.step * sizeof(real));
            if (!left_out(from))
                memcpy(row_at(to, row), row_at(from, cuts_of(stack, s)[piece] + row), (size_t)to.width * sizeof(real));
        }
    }
    prepare(stack, stack->call->count - 1, piece, threads);
}

/* Gradients of weight and bias of a normalisation, and the means that the gradient of its rows needs. */
static void put_sums_together(const struct stack *stack, integer layer, integer stream, real *of_weight, real *of_bias)
{
    const integer width = stack->width, *cuts = cuts_of(stack, stream);
    const double rows = (double)stream_rows(stack, stream);
    struct gradient_sums sums = {0};
    for (integer piece = 0; piece < stack->pieces; piece++)
        add_gradient_sums(&sums, piece_sums(stack, stream, piece), cuts[piece + 1] - cuts[piece], width);
    const _Bool of_rows = stack->call->layer[layer].norm[stream].of_rows != 0;
    for (integer c = 0; c < width; c++) {
        of_weight[c] = (real)sums.product[c];
        of_bias[c] = (real)sums.gradient[c];
        stack->means[stream][c] = of_rows ? (real)(sums.gradient[c] / rows) : 0;
        stack->means[stream][width + c] = of_rows ? (real)(sums.product[c] / rows) : 0;
    }
}

/* From the gradient of the maps' results to those of their input's rows and, added to what the group has, of the maps.
   What comes behind the latter is for the next input. */
static real *input_backward(const struct stack *stack, integer threads, struct rows x, struct rows x_gradient,
                            const real *maps, const real *gradient, integer row, integer columns, _Bool first,
                            real *of_maps)
{
    const integer padded = stack->padded;
    const struct matrix nothing = {NULL, 0}, given = {x_gradient.at, padded}, so_far = {of_maps, padded};
    const _Bool residual = stack->call->layer[stack->layer].residual != 0;
    product(threads, x.count, padded, columns, (struct matrix){gradient, row}, maps, residual ? given : nothing,
            x_gradient.at, padded);
    product_of_transposed(threads, columns, padded, x.count, (struct matrix){gradient, row},
                          (struct matrix){x.at, padded}, first ? nothing : so_far, of_maps, padded);
    return of_maps + columns * padded;
}

static integer group_of(const struct stack *stack, integer piece)
{
    integer group = 0;
    while (group_begin(stack, group + 1) <= piece)
        group++;
    return group;
}

/* Gradients of the sums and logits of a piece into its room, then of its maps. */
static void layer_of_piece(const struct stack *stack, integer piece, integer threads, real *room)
{
    const integer layer = stack->layer, padded = stack->padded, width = stack->width, streams = stack->streams;
    const integer row = row_of_parts(width, streams);
    const struct place place = place_of(stack, layer);
    struct rows in[3] = {0}, sum[3] = {0}, gradient[3] = {0}, branch[3] = {0};
    for (integer s = 0; s <= streams; s++) {
        in[s] = piece_rows(stack, place.in[s], s, piece);
        sum[s] = piece_rows(stack, place.sum[s], s, piece);
        gradient[s] = piece_rows(stack, stack->call->in_gradient[s], s, piece);
        branch[s] = of_branch(stack, layer, s, piece, threads, gradient[s], room);
        room += branch_size(stack, layer, gradient[s].count);
    }
    const integer nodes = in[H].count, edges = in[E].count;
    real *sums_gradient[2] = {room, room + nodes * padded};
    real *node_gradient = room + streams * nodes * padded, *pull = node_gradient + nodes * row;
    real *edge_gradient = pull + nodes * streams * padded, *gates = edge_gradient + edges * padded;

    for (integer s = H; s <= E; s++) {
        struct norm norm = norm_of(stack, layer, s, piece, sum[s], place.statistics);
        norm.gradient = branch[s];
        norm.x_gradient = (struct rows){s == H ? sums_gradient[0] : edge_gradient, sum[s].count, width, padded};
        find_x_gradient(threads, &norm);
    }
    if (streams == 2)
        tanh_backward(&(struct activation){.threads = threads, .x = sum[P], .other = branch[P],
                                           .out = {sums_gradient[1], nodes, width, padded}});
    const struct gate gate = {.first_node = stack->node_cuts[piece], .nodes = nodes,
                              .first_edge = stack->edge_cuts[piece], .edges = edges, .width = width, .padded = padded,
                              .streams = streams, .all = stack->call->edges,
                              .values = place.values + stack->node_cuts[piece] * streams * padded,
                              .logits = sum[E].at, .sums_gradient = {sums_gradient[0], sums_gradient[1]},
                              .node_gradient = node_gradient, .edge_gradient = edge_gradient, .gates = gates,
                              .pull = pull};
    gates_backward(threads, &gate);

    const struct maps maps = stack->maps[layer];
    const integer group = group_of(stack, piece);
    const _Bool first = piece == group_begin(stack, group);
    real *of_maps = stack->partial + group * stack->partial_size;
    of_maps = input_backward(stack, threads, in[H], gradient[H], maps.of[H], node_gradient, row, 4 * width, first,
                             of_maps);
    of_maps = input_backward(stack, threads, in[E], gradient[E], maps.of[E], edge_gradient, padded, width, first,
                             of_maps);
    if (streams == 2)
        of_maps = input_backward(stack, threads, in[P], gradient[P], maps.of[P], node_gradient + SELF * width, row,
                                 4 * width, first, of_maps);
    if (first)
        memset(of_maps, 0, (size_t)row * sizeof(real));
    for (integer node = 0; node < nodes; node++)
        for (integer c = 0; c < row; c += LANES)
            store(of_maps + c, load(of_maps + c) + load(node_gradient + node * row + c));
}

static void layer_backward(struct stack *stack, integer piece, integer threads)
{
    const integer nodes = stack->node_cuts[piece + 1] - stack->node_cuts[piece];
    const integer edges = stack->edge_cuts[piece + 1] - stack->edge_cuts[piece], streams = stack->streams;
    const integer row = row_of_parts(stack->width, streams);
    const integer rows = nodes * streams + edges;
    const integer size = nodes * row + 2 * rows * stack->padded + branch_size(stack, stack->layer, rows);
    real *room = room_for_piece(size > 0 ? size : 1);
    if (room == NULL) {
        stack->failed = 1;
        return;
    }
    layer_of_piece(stack, piece, threads, room);
    if (stack->layer > 0) /* while its gradients are still in the caches */
        prepare(stack, stack->layer - 1, piece, threads);
}

static enum answer backward(struct stack *stack)
{
    const integer parameters = parameters_of(stack->width, stack->streams), width = stack->width;
    enum answer answer = for_pieces(stack, begin);
    for (stack->layer = stack->call->count - 1; stack->layer >= 0 && answer == DONE; stack->layer--) {
        real *gradients = stack->call->parameters_gradient.at + stack->layer * parameters;
        for (integer s = H; s <= E; s++) {
            real *of_norm = gradients + parameters - (s == H ? 4 : 2) * width;
            put_sums_together(stack, stack->layer, s, of_norm, of_norm + width);
        }
        answer = for_groups(stack, layer_backward);
        if (answer == DONE)
            unpack_gradients(stack, stack->layer, gradients);
    }
    return answer;
}

enum answer gated_layers_backward(const struct gated_layers *call)
{
    const enum answer answer = check_layers(call, 1);
    if (answer != DONE)
        return answer;
    struct stack stack = stack_of(call);
    const integer maps = maps_size(&stack), padded = stack.padded;
    stack.partial_size = (stack.streams == 2 ? 9 : 5) * stack.width * padded + row_of_parts(stack.width, stack.streams);
    const integer partial = stack.groups * stack.partial_size, sums = sums_size(&stack, H) + sums_size(&stack, E);
    real *room = room_for_call(maps + partial + sums + 4 * stack.width);
    if (room == NULL)
        return NO_MEMORY;
    pack_backward(&stack, room);
    stack.partial = room + maps;
    stack.sums[H] = stack.partial + partial;
    stack.sums[E] = stack.sums[H] + sums_size(&stack, H);
    stack.means[H] = stack.sums[E] + sums_size(&stack, E);
    stack.means[E] = stack.means[H] + 2 * stack.width;
    return backward(&stack);
}
