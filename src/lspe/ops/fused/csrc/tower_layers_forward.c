/* PNA layers with towers forward: the aggregations give the updates; normalisation, mixing map, activation and residual
   make of them the streams of the next layer. */
#include "tower_layers.h"

/* Each stream is written in whole vectors; what they hold behind h is written over by p. */
static void activate(const struct tower_stack *stack, integer stream, integer first, integer count)
{
    const _Bool residual = stack->call->layer[stack->layer].residual != 0;
    for (integer i = first; i < first + count; i++) {
        const real *mixed = stack->place.mixed[stream] + i * stack->padded;
        const integer at = i * stack->row + stream * stack->width;
        for (integer c = 0; c < vectors_of(stack); c += LANES) {
            const vector x = load(mixed + c);
            vector out = stream == P ? hyperbolic_tangent(x) : where(x > 0, x, x * SLOPE);
            if (residual)
                out += load(stack->place.streams + at + c);
            store(stack->next + at + c, out);
        }
        if (stream + 1 == stack->streams)
            clear(stack->next + at + stack->width, stack->row - stack->streams * stack->width);
    }
}

static void close_task(void *argument, integer number)
{
    struct tower_stack *stack = argument;
    const integer first = number * BLOCK, count = smaller(BLOCK, stack->nodes - first), vectors = vectors_of(stack);
    real *room = room_for_piece(BLOCK * stack->padded);
    if (room == NULL) {
        stack->failed = 1;
        return;
    }
    for (integer s = 0; s < stack->streams; s++) {
        const struct rows x = before_mixing(stack, s, first, count, room);
        const real *bias = stack->mix + (stack->streams * stack->width + s) * vectors;
        product(1, count, vectors, stack->width, (struct matrix){x.at, x.step}, stack->mix + s * stack->width * vectors,
                (struct matrix){bias, 0}, stack->place.mixed[s] + first * stack->padded, stack->padded);
        activate(stack, s, first, count);
    }
}

static void find_statistics(const struct tower_stack *stack)
{
    const struct normal *norm = &stack->call->layer[stack->layer].norm;
    struct moments moments = {0};
    if (norm->of_rows) {
        const struct norm rows = tower_norm(stack, 0, stack->nodes);
        find_moments(stack->call->threads, &rows);
        add_moments(&moments, stack->sums, stack->nodes, stack->width);
    }
    settle_statistics(norm, &moments, stack->width, stack->place.statistics);
}

enum answer tower_layers_forward(const struct tower_layers *call)
{
    enum answer answer = check_tower_layers(call, 0);
    if (answer != DONE)
        return answer;
    struct tower_stack stack;
    make_tower_stack(call, &stack);
    const integer common = common_room(&stack);
    real *room = room_for_call(common + stack.nodes * stack.row);
    if (room == NULL)
        return NO_MEMORY;
    answer = begin_tower_stack(&stack, 0, room);
    if (answer != DONE)
        return answer;
    take_streams_in(&stack, call->in, call->memory[0].at);
    for (integer layer = 0; layer < call->count && !stack.failed; layer++) {
        go_to_layer(&stack, layer, 0);
        if (layer + 1 == call->count)
            stack.next = room + common;
        for (integer s = 0; s < stack.streams; s++) {
            map_sources(call->threads, &stack.work[s]);
            aggregate_and_update(call->threads, &stack.work[s]);
        }
        find_statistics(&stack);
        run_tasks(call->threads, (stack.nodes + BLOCK - 1) / BLOCK, close_task, &stack);
    }
    if (stack.failed)
        return NO_MEMORY;
    give_streams_out(&stack, stack.next, call->out);
    return DONE;
}
