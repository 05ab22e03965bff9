/* PNA's aggregation forward and backward, block after block of nodes. */
#include "principal.h"

static inline integer smaller(integer one, integer other) { return one < other ? one : other; }

static const struct matrix NOTHING = {NULL, 0};

static inline struct matrix from_row(struct rows rows, integer first, integer column)
{
    return (struct matrix){row_at(rows, first) + column, rows.step};
}

static inline void copy(real *to, const real *from, integer count) { memcpy(to, from, (size_t)count * sizeof(real)); }
static inline void clear(real *at, integer count) { memset(at, 0, (size_t)count * sizeof(real)); }

/* A piece of room for a block; a task does nothing where there is none. */
static real *block_room(const struct principal *work, integer count)
{
    real *room = room_for_piece(count + 1);
    if (room == NULL)
        *work->failed = 1;
    return room;
}

/* What the nodes of a block give the messages they send. */
static void sources_task(void *argument, integer number)
{
    const struct principal copied = *(const struct principal *)argument, *work = &copied;
    const integer first = number * BLOCK, count = smaller(BLOCK, work->nodes - first), wide = work->wide;
    const integer channels = work->towers * work->width;
    real *mapped = block_room(work, BLOCK * wide);
    for (integer tower = 0; tower < work->towers && mapped != NULL; tower++) {
        product(1, count, wide, work->inputs, from_row(work->call->x, first, tower * work->inputs),
                work->sources + tower * work->inputs * wide, NOTHING, mapped, wide);
        for (integer i = 0; i < count; i++)
            copy(row_at(work->call->sources, first + i) + tower * work->width, mapped + i * wide, work->width);
    }
    for (integer i = 0; i < count; i++)
        clear(row_at(work->call->sources, first + i) + channels, work->padded - channels);
}

/* What a block's nodes give themselves: to the messages they get, `targets` [BLOCK, padded], and to their update. */
static void map_own(const struct principal *work, integer first, integer count, real *targets, real *mapped)
{
    const integer wide = work->wide, width = work->width;
    for (integer tower = 0; tower < work->towers; tower++) {
        const struct matrix bias = {work->bias + tower * 2 * wide, 0};
        product(1, count, 2 * wide, work->inputs, from_row(work->call->x, first, tower * work->inputs),
                work->own + tower * work->inputs * 2 * wide, bias, mapped, 2 * wide);
        for (integer i = 0; i < count; i++) {
            copy(targets + i * work->padded + tower * width, mapped + i * 2 * wide, width);
            copy(row_at(work->call->out, first + i) + tower * width, mapped + (i * 2 + 1) * wide, width);
        }
    }
}

/* Adds the maps of the aggregates, each times a number of the node. */
static void add_update(const struct principal *work, integer first, integer count, real *mapped)
{
    const integer wide = work->wide, width = work->width, columns = work->scalers * wide;
    for (integer tower = 0; tower < work->towers; tower++) {
        product(1, count, columns, work->aggregates, from_row(work->call->aggregates, first, tower * work->aggregates),
                work->update + tower * work->aggregates * columns, NOTHING, mapped, columns);
        for (integer i = 0; i < count; i++) {
            real *restrict out = row_at(work->call->out, first + i) + tower * width;
            const real *scale = row_at(work->call->scale, first + i);
            for (integer s = 0; s < work->scalers; s++)
                for (integer o = 0; o < width; o++)
                    out[o] += scale[s] * mapped[i * columns + s * wide + o];
        }
    }
}

static void aggregate_task(void *argument, integer number)
{
    const struct principal copied = *(const struct principal *)argument, *work = &copied;
    const integer first = number * BLOCK, count = smaller(BLOCK, work->nodes - first);
    const integer columns = work->wide * (work->scalers > 2 ? work->scalers : 2);
    real *targets = block_room(work, BLOCK * (work->padded + columns));
    if (targets == NULL)
        return;
    real *mapped = targets + BLOCK * work->padded;
    clear(targets, BLOCK * work->padded);
    map_own(work, first, count, targets, mapped);
    for (integer i = 0; i < count; i++)
        aggregate_node(work, first + i, targets + i * work->padded);
    add_update(work, first, count, mapped);
}

/* From the gradients of a block's results to those of its messages. */
static void block_to_messages(const struct principal *work, integer group, integer first, integer count)
{
    const integer wide = work->wide, width = work->width, scaled = work->scalers * wide;
    const integer of_all = work->towers * work->wide_aggregates;
    real *of_mapped = block_room(work, BLOCK * (scaled + of_all));
    if (of_mapped == NULL)
        return;
    real *of_aggregates = of_mapped + BLOCK * scaled;
    clear(of_mapped, BLOCK * scaled);
    for (integer tower = 0; tower < work->towers; tower++) {
        for (integer i = 0; i < count; i++) {
            const real *gradient = row_at(work->call->gradient, first + i) + tower * width;
            const real *scale = row_at(work->call->scale, first + i);
            for (integer s = 0; s < work->scalers; s++)
                for (integer o = 0; o < width; o++)
                    of_mapped[i * scaled + s * wide + o] = scale[s] * gradient[o];
        }
        const struct matrix left = {of_mapped, scaled};
        product(1, count, work->wide_aggregates, scaled, left,
                work->of_update + tower * scaled * work->wide_aggregates, NOTHING,
                of_aggregates + tower * work->wide_aggregates, of_all);
        real *sums = update_sums(work, group, tower);
        product_of_transposed(1, work->aggregates, scaled, count,
                              from_row(work->call->aggregates, first, tower * work->aggregates), left,
                              (struct matrix){sums, scaled}, sums, scaled);
    }
    for (integer i = 0; i < count; i++)
        aggregate_node_backward(work, first + i, of_aggregates + i * of_all, work->wide_aggregates,
                                work->targets_gradient + (first + i) * work->padded);
}

/* The gradient of what a node gave the messages it sent. */
static void sum_sent(const struct principal *work, integer node, real *sum)
{
    const struct edges *edges = &work->call->edges;
    clear(sum, work->padded);
    for (integer slot = edges->out_start.at[node]; slot < edges->out_start.at[node + 1]; slot++) {
        const real *gradient = row_at(work->call->edge_gradient, edges->out_edge.at[slot]);
        for (integer c = 0; c < work->padded; c += LANES)
            store(sum + c, load(sum + c) + load(gradient + c));
    }
}

/* From the gradients of messages and results to that of x, for a block. */
static void block_to_x(const struct principal *work, integer group, integer first, integer count)
{
    const integer wide = work->wide, width = work->width, padded = work->padded, parts = PARTS * wide;
    real *sent = block_room(work, BLOCK * (padded + parts + work->wide_inputs));
    if (sent == NULL)
        return;
    real *of_parts = sent + BLOCK * padded, *of_x = of_parts + BLOCK * parts;
    for (integer i = 0; i < count; i++)
        sum_sent(work, first + i, sent + i * padded);
    clear(of_parts, BLOCK * parts);
    for (integer tower = 0; tower < work->towers; tower++) {
        real *bias = bias_sums(work, group, tower), *sums = part_sums(work, group, tower);
        for (integer i = 0; i < count; i++) {
            real *row = of_parts + i * parts;
            copy(row + OF_SOURCE * wide, sent + i * padded + tower * width, width);
            copy(row + OF_TARGET * wide, work->targets_gradient + (first + i) * padded + tower * width, width);
            copy(row + OF_SELF * wide, row_at(work->call->gradient, first + i) + tower * width, width);
            for (integer c = 0; c < parts; c += LANES)
                store(bias + c, load(bias + c) + load(row + c));
        }
        const struct matrix left = {of_parts, parts};
        product(1, count, work->wide_inputs, parts, left, work->of_parts + tower * parts * work->wide_inputs, NOTHING,
                of_x, work->wide_inputs);
        for (integer i = 0; i < count; i++)
            copy(row_at(work->call->x_gradient, first + i) + tower * work->inputs, of_x + i * work->wide_inputs,
                 work->inputs);
        product_of_transposed(1, work->inputs, parts, count, from_row(work->call->x, first, tower * work->inputs), left,
                              (struct matrix){sums, parts}, sums, parts);
    }
}

static integer blocks_of(const struct principal *work) { return (work->nodes + BLOCK - 1) / BLOCK; }

typedef void (*block_function)(const struct principal *work, integer group, integer first, integer count);

/* The blocks of a group, in order. */
static void for_group(const struct principal *work, integer group, block_function each)
{
    const integer blocks = blocks_of(work);
    for (integer block = group * blocks / work->groups; block < (group + 1) * blocks / work->groups; block++)
        each(work, group, block * BLOCK, smaller(BLOCK, work->nodes - block * BLOCK));
}
static void to_messages_task(void *argument, integer group) { for_group(argument, group, block_to_messages); }
static void to_x_task(void *argument, integer group) { for_group(argument, group, block_to_x); }

static struct principal work_of(const struct aggregation *call, _Bool *failed)
{
    const integer nodes = call->edges.nodes, width = call->message.count / call->towers;
    const integer inputs = call->x.width / call->towers, aggregates = call->kinds.count * width;
    const integer blocks = (nodes + BLOCK - 1) / BLOCK;
    return (struct principal){.call = call, .nodes = nodes, .towers = call->towers, .inputs = inputs, .width = width,
                              .padded = call->edge.width, .scalers = call->scale.width, .aggregates = aggregates,
                              .groups = blocks < 1 ? 1 : smaller(blocks, MOST_GROUPS), .wide = whole_vectors(width),
                              .wide_inputs = whole_vectors(inputs), .wide_aggregates = whole_vectors(aggregates),
                              .failed = failed};
}

static enum answer check(const struct aggregation *call)
{
    const struct edges *edges = &call->edges;
    const integer nodes = edges->nodes, towers = call->towers, padded = call->edge.width;
    NEED_SIZES(call->threads >= 1 && nodes >= 0 && towers >= 1 && call->kinds.count >= 0 && call->scale.width >= 0);
    NEED_SIZES(call->message.count % towers == 0 && call->message.count >= towers && call->x.width % towers == 0);
    const integer width = call->message.count / towers, inputs = call->x.width / towers;
    const integer aggregates = call->kinds.count * width, channels = towers * width;
    NEED_SIZES(padded % LANES == 0 && padded <= WIDEST && channels <= padded);
    NEED_SIZES(sized(call->x, nodes, towers * inputs) && sized(call->edge, edges->source.count, padded));
    NEED_SIZES(sized(call->scale, nodes, call->scale.width) && sized(call->message, channels, call->message.width));
    NEED_SIZES(call->message.width >= 2 * inputs && sized_line(call->message_bias, channels));
    NEED_SIZES(sized(call->update, channels, inputs + call->scale.width * aggregates));
    NEED_SIZES(sized_line(call->update_bias, channels) && sized(call->sources, nodes, padded));
    NEED_SIZES(sized(call->aggregates, nodes, towers * aggregates));
    NEED_SIZES(sized_indices(edges->source, edges->source.count) && sized_indices(edges->in_start, nodes + 1));
    NEED_SIZES(sized_indices(edges->in_edge, edges->source.count) && sized_indices(call->kinds, call->kinds.count));
    NEED_INDICES(all_below(edges->source, nodes) && all_below(edges->in_edge, edges->source.count));
    NEED_INDICES(rises_to(edges->in_start, edges->source.count) && all_below(call->kinds, KINDS));
    return DONE;
}

enum answer principal_forward(const struct aggregation *call)
{
    const enum answer answer = check(call);
    if (answer != DONE)
        return answer;
    NEED_SIZES(sized(call->out, call->edges.nodes, call->message.count));
    _Bool failed = 0;
    struct principal work = work_of(call, &failed);
    real *room = room_for_call(forward_maps_size(&work));
    if (room == NULL)
        return NO_MEMORY;
    pack_forward_maps(&work, room);
    run_tasks(call->threads, blocks_of(&work), sources_task, &work);
    run_tasks(call->threads, blocks_of(&work), aggregate_task, &work);
    return failed ? NO_MEMORY : DONE;
}

enum answer principal_backward(const struct aggregation *call)
{
    const struct edges *edges = &call->edges;
    const integer nodes = edges->nodes, count = edges->source.count;
    const enum answer answer = check(call);
    if (answer != DONE)
        return answer;
    NEED_SIZES(sized(call->gradient, nodes, call->message.count) && sized(call->x_gradient, nodes, call->x.width));
    NEED_SIZES(sized(call->edge_gradient, count, call->edge.width));
    NEED_SIZES(sized(call->message_gradient, call->message.count, call->message.width));
    NEED_SIZES(sized(call->update_gradient, call->update.count, call->update.width));
    NEED_SIZES(sized_line(call->message_bias_gradient, call->message.count));
    NEED_SIZES(sized_line(call->update_bias_gradient, call->update.count));
    NEED_SIZES(sized_indices(edges->out_start, nodes + 1) && sized_indices(edges->out_edge, count));
    NEED_INDICES(rises_to(edges->out_start, count) && all_below(edges->out_edge, count));
    _Bool failed = 0;
    struct principal work = work_of(call, &failed);
    work.partial_size = principal_partial_size(&work);
    const integer maps = backward_maps_size(&work), partial = work.groups * work.partial_size;
    real *room = room_for_call(maps + partial + nodes * work.padded);
    if (room == NULL)
        return NO_MEMORY;
    pack_backward_maps(&work, room);
    work.partial = room + maps;
    work.targets_gradient = work.partial + partial;
    clear(work.partial, partial);
    run_tasks(call->threads, work.groups, to_messages_task, &work);
    run_tasks(call->threads, work.groups, to_x_task, &work);
    if (failed)
        return NO_MEMORY;
    unpack_map_gradients(&work);
    return DONE;
}
