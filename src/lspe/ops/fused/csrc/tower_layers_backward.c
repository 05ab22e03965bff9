/* PNA layers with towers backward. The gradients of the streams stay in one place: they begin as those of what comes out
   of a layer, and where there is a residual what the aggregations give is added to them. */
#include "tower_layers.h"

#define ROW_GROUPS 8 /* of nodes, whose gradients of the mixing maps are summed by one thread */

static inline integer mix_size(const struct tower_stack *stack) { return (stack->width + 1) * vectors_of(stack); }

/* Gradients of a layer's parameters, as they stand side by side. */
struct parameters {
    struct tower_maps towers[2];
    real *mix[2], *mix_bias[2], *norm_weight, *norm_bias;
};

static struct parameters parameters_at(const struct tower_stack *stack, real *next)
{
    const struct tower_layer *of = &stack->call->layer[stack->layer];
    const integer width = stack->width;
    struct parameters at = {0};
    for (integer s = 0; s < stack->streams; s++) {
        const integer message = of->message[s].width, update = of->update[s].width;
        struct tower_maps *towers = &at.towers[s];
        towers->message = (struct rows){next, width, message, message};
        towers->message_bias = (struct line){next + width * message, width};
        towers->update = (struct rows){towers->message_bias.at + width, width, update, update};
        towers->update_bias = (struct line){towers->update.at + width * update, width};
        at.mix[s] = towers->update_bias.at + width;
        at.mix_bias[s] = at.mix[s] + width * width;
        next = at.mix_bias[s] + width;
    }
    at.norm_weight = next;
    at.norm_bias = next + width;
    return at;
}

/* The gradient behind the activation of a stream, of some rows. */
static void before_activation(const struct tower_stack *stack, integer stream, integer first, integer count, real *to)
{
    const _Bool residual = stack->call->layer[stack->layer].residual != 0;
    for (integer i = 0; i < count; i++) {
        real *gradient = stack->gradient + (first + i) * stack->row + stream * stack->width;
        const real *mixed = stack->place.mixed[stream] + (first + i) * stack->padded;
        for (integer c = 0; c < vectors_of(stack); c += LANES) {
            const vector x = load(mixed + c), value = stream == P ? hyperbolic_tangent(x) : x;
            const vector slope = stream == P ? 1 - value * value : where(x > 0, all(1), all(SLOPE));
            store(to + i * stack->padded + c, load(gradient + c) * slope);
        }
        if (!residual)
            clear(gradient, stack->width);
    }
}

/* From the gradient of a stream to that of what its mixing map was applied to, and of the map. */
static void mixing_backward(struct tower_stack *stack, integer group, integer stream, integer first, integer count,
                            real *room)
{
    const integer width = stack->width, padded = stack->padded, vectors = vectors_of(stack);
    real *of_mixed = room, *of_map = stack->mix_partial + (group * stack->streams + stream) * mix_size(stack);
    before_activation(stack, stream, first, count, of_mixed);
    const struct rows x = before_mixing(stack, stream, first, count, room + BLOCK * padded);
    product_of_transposed(1, width, vectors, count, (struct matrix){of_mixed, padded}, (struct matrix){x.at, x.step},
                          (struct matrix){of_map, vectors}, of_map, vectors);
    real *bias = of_map + width * vectors;
    for (integer i = 0; i < count; i++)
        for (integer c = 0; c < vectors; c += LANES)
            store(bias + c, load(bias + c) + load(of_mixed + i * padded + c));
    real *to = (stream == H ? stack->normal_gradient : stack->updates_gradient[stream]) + first * padded;
    product(1, count, vectors, width, (struct matrix){of_mixed, padded}, stack->mix + stream * width * vectors,
            (struct matrix){NULL, 0}, to, padded);
    const struct rows gradient = {to, count, width, padded};
    if (stack->call->layer[stack->layer].dropout > 0)
        drop_nodes(stack, stream, first, gradient, gradient);
}

static void mixing_task(void *argument, integer group)
{
    struct tower_stack *stack = argument;
    real *room = room_for_piece(2 * BLOCK * stack->padded);
    if (room == NULL) {
        stack->failed = 1;
        return;
    }
    const integer end = stack->nodes * (group + 1) / ROW_GROUPS;
    clear(stack->mix_partial + group * stack->streams * mix_size(stack), stack->streams * mix_size(stack));
    for (integer first = stack->nodes * group / ROW_GROUPS; first < end; first += BLOCK)
        for (integer s = 0; s < stack->streams; s++)
            mixing_backward(stack, group, s, first, smaller(BLOCK, end - first), room);
}

static void add_mixing_gradients(const struct tower_stack *stack, const struct parameters *to)
{
    const integer width = stack->width, vectors = vectors_of(stack);
    for (integer s = 0; s < stack->streams; s++)
        for (integer o = 0; o <= width; o++) {
            real *row = o < width ? to->mix[s] + o * width : to->mix_bias[s];
            clear(row, width);
            for (integer group = 0; group < ROW_GROUPS; group++) {
                const real *more = stack->mix_partial + (group * stack->streams + s) * mix_size(stack) + o * vectors;
                for (integer k = 0; k < width; k++)
                    row[k] += more[k];
            }
        }
}

static void norm_backward_of_rows(struct tower_stack *stack, const struct parameters *to)
{
    const integer width = stack->width, threads = stack->call->threads;
    const _Bool of_rows = stack->call->layer[stack->layer].norm.of_rows != 0;
    struct norm norm = tower_norm(stack, 0, stack->nodes);
    struct gradient_sums sums = {0};
    norm.gradient = node_rows(stack, stack->normal_gradient, 0, stack->nodes);
    norm.x_gradient = node_rows(stack, stack->updates_gradient[H], 0, stack->nodes);
    find_gradient_sums(threads, &norm);
    add_gradient_sums(&sums, stack->sums, stack->nodes, width);
    for (integer c = 0; c < width; c++) {
        to->norm_weight[c] = (real)sums.product[c];
        to->norm_bias[c] = (real)sums.gradient[c];
        stack->means[c] = of_rows ? (real)(sums.gradient[c] / (double)stack->nodes) : 0;
        stack->means[width + c] = of_rows ? (real)(sums.product[c] / (double)stack->nodes) : 0;
    }
    find_x_gradient(threads, &norm);
}

/* From the gradient of what rows of the table gave the messages to that of the table, and of the map. */
static void table_backward(const struct tower_stack *stack, integer stream, struct rows of_message)
{
    const struct principal *work = &stack->work[stream];
    const integer width = stack->width, wide = stack->wide_edge, threads = stack->call->threads;
    const struct matrix gradient = {work->values_gradient, work->vectors};
    real *maps = stack->edge_maps;
    add_values_gradients(work);
    product_of_transposed(threads, width, wide, stack->values, gradient, (struct matrix){stack->table, wide},
                          (struct matrix){NULL, 0}, maps, wide);
    for (integer o = 0; o < width; o++)
        memcpy(row_at(of_message, o) + 2 * work->inputs, maps + o * wide, (size_t)stack->edge_dim * sizeof(real));
    clear(maps, width * wide);
    for (integer o = 0; o < width; o++)
        for (integer k = 0; k < stack->edge_dim; k++)
            *in_panels(maps, width, wide, o, k) = row_at(work->maps.message, o)[2 * work->inputs + k];
    product(threads, stack->values, wide, width, gradient, maps, (struct matrix){stack->table_gradient, wide},
            stack->table_gradient, wide);
}

static void aggregation_backward(const struct tower_stack *stack, integer stream, const struct parameters *to)
{
    const struct principal *work = &stack->work[stream];
    const integer threads = stack->call->threads;
    clear(work->partial, stack->order.groups * work->partial_size);
    clear(work->values_gradient, stack->order.groups * work->values_count * work->vectors);
    gradient_to_messages(threads, work);
    gradient_to_x(threads, work);
    unpack_tower_gradients(work, to->towers[stream]);
    table_backward(stack, stream, to->towers[stream].message);
}

static void take_room(struct tower_stack *stack, real *room)
{
    const integer nodes = stack->nodes, padded = stack->padded, vectors = vectors_of(stack);
    stack->gradient = room;
    stack->normal_gradient = stack->gradient + nodes * stack->row;
    stack->updates_gradient[H] = stack->normal_gradient + nodes * padded;
    stack->updates_gradient[P] = stack->updates_gradient[H] + nodes * padded;
    stack->mix_partial = stack->updates_gradient[P] + nodes * padded;
    stack->means = stack->mix_partial + ROW_GROUPS * stack->streams * mix_size(stack);
    stack->table_gradient = stack->means + 2 * stack->width;
    real *messages = stack->table_gradient + stack->values * stack->wide_edge;
    real *values = messages + stack->order.messages * vectors, *partial = values + values_gradient_size(&stack->work[H], stack->order.messages);
    for (integer s = 0; s < stack->streams; s++) {
        stack->work[s].messages_gradient = messages;
        stack->work[s].values_gradient = values;
        stack->work[s].partial = partial;
    }
}

static integer backward_room(const struct tower_stack *stack)
{
    const integer nodes = stack->nodes, vectors = vectors_of(stack), edges = stack->call->edges.source.count;
    return nodes * (stack->row + 3 * stack->padded) + ROW_GROUPS * stack->streams * mix_size(stack) + 2 * stack->width
           + stack->values * stack->wide_edge + edges * vectors
           + values_gradient_size(&stack->work[H], edges) + MOST_GROUPS * partial_size(&stack->work[H]);
}

enum answer tower_layers_backward(const struct tower_layers *call)
{
    enum answer answer = check_tower_layers(call, 1);
    if (answer != DONE)
        return answer;
    struct tower_stack stack;
    make_tower_stack(call, &stack);
    const integer common = common_room(&stack);
    real *room = room_for_call(common + backward_room(&stack)), *gradients = call->parameters_gradient.at;
    if (room == NULL)
        return NO_MEMORY;
    answer = begin_tower_stack(&stack, 1, room);
    if (answer != DONE)
        return answer;
    take_room(&stack, room + common);
    take_streams_in(&stack, call->out_gradient, stack.gradient);
    clear(stack.table_gradient, stack.values * stack.wide_edge);
    gradients += call->parameters_gradient.count;
    for (integer layer = call->count - 1; layer >= 0 && !stack.failed; layer--) {
        go_to_layer(&stack, layer, 1);
        gradients -= tower_parameters(call, layer);
        const struct parameters to = parameters_at(&stack, gradients);
        run_tasks(call->threads, ROW_GROUPS, mixing_task, &stack);
        add_mixing_gradients(&stack, &to);
        norm_backward_of_rows(&stack, &to);
        for (integer s = 0; s < stack.streams && !stack.failed; s++)
            aggregation_backward(&stack, s, &to);
    }
    if (stack.failed)
        return NO_MEMORY;
    give_streams_out(&stack, stack.gradient, call->in_gradient);
    for (integer row = 0; row < stack.values; row++)
        memcpy(row_at(call->table_gradient, row), stack.table_gradient + row * stack.wide_edge,
               (size_t)stack.edge_dim * sizeof(real));
    return DONE;
}
