/* What the forward and the backward pass of PNA layers with towers share. */
#include "tower_layers.h"

static inline integer streams_of(const struct tower_layers *call) { return call->positions ? 2 : 1; }

/* Whose maps they are changes from layer to layer, their sizes do not. */
static void take_aggregations(struct tower_stack *stack, integer layer)
{
    const struct tower_layers *call = stack->call;
    const struct tower_layer *of = &call->layer[layer];
    for (integer s = 0; s < stack->streams; s++) {
        const integer inputs = (s == H ? stack->streams : 1) * stack->width / call->towers;
        const struct tower_maps maps = {of->message[s], of->update[s], of->message_bias[s], of->update_bias[s]};
        struct principal work = aggregation_of(&stack->order, maps, call->scale, call->kinds, call->towers, inputs);
        work.packed = stack->work[s].packed;
        work.partial = stack->work[s].partial;
        work.partial_size = partial_size(&work);
        work.values_count = call->kind.at == NULL ? 0 : stack->values;
        work.values_gradient = stack->work[s].values_gradient;
        work.messages_gradient = stack->work[s].messages_gradient;
        work.failed = &stack->failed;
        stack->work[s] = work;
    }
}

void make_tower_stack(const struct tower_layers *call, struct tower_stack *stack)
{
    const integer width = call->layer[0].norm.weight.count, streams = streams_of(call);
    *stack = (struct tower_stack){.call = call, .nodes = call->edges.nodes, .width = width, .streams = streams,
                                  .values = call->table.count, .edge_dim = call->table.width,
                                  .wide_edge = whole_vectors(call->table.width)};
    take_aggregations(stack, 0);
    stack->padded = stack->work[H].padded;
    const integer of_h = padded_inputs(&stack->work[H]), of_p = whole_vectors((streams - 1) * width + stack->padded);
    stack->row = of_h > of_p ? of_h : of_p;
}

static integer memory_size(const struct tower_stack *stack)
{
    return stack->nodes * (stack->row + 3 * stack->streams * stack->padded) + 3 * stack->width;
}

integer tower_parameters(const struct tower_layers *call, integer layer)
{
    const struct tower_layer *of = &call->layer[layer];
    const integer width = of->norm.weight.count;
    integer count = 2 * width;
    for (integer s = 0; s < streams_of(call); s++)
        count += width * (of->message[s].width + of->update[s].width + of->mix[s].width + 3);
    return count;
}

static enum answer check_layer(const struct tower_layers *call, const struct tower_layer *layer, integer width)
{
    const struct normal *norm = &layer->norm;
    NEED_SIZES(layer->dropout >= 0 && layer->dropout <= 1);
    NEED_SIZES(sized_line(norm->weight, width) && sized_line(norm->bias, width));
    NEED_SIZES(sized_line(norm->running_mean, width) && sized_line(norm->running_variance, width));
    NEED_SIZES(!norm->of_rows || call->edges.nodes > 1);
    NEED_SIZES(!layer->scaled || sized_line(call->size_scale, call->edges.nodes));
    const integer tower = width / call->towers;
    for (integer s = 0; s < streams_of(call); s++) {
        const integer inputs = (s == H ? streams_of(call) : 1) * tower;
        NEED_SIZES(sized(layer->message[s], width, 2 * inputs + call->table.width));
        NEED_SIZES(sized(layer->update[s], width, inputs + call->scale.width * call->kinds.count * tower));
        NEED_SIZES(sized_line(layer->message_bias[s], width) && sized_line(layer->update_bias[s], width));
        NEED_SIZES(sized(layer->mix[s], width, width) && sized_line(layer->mix_bias[s], width));
    }
    return DONE;
}

enum answer check_tower_layers(const struct tower_layers *call, _Bool backward)
{
    const struct edges *edges = &call->edges;
    const integer nodes = edges->nodes, width = call->layer[0].norm.weight.count, streams = streams_of(call);
    NEED_SIZES(call->threads >= 1 && call->count >= 1 && call->count <= MOST_LAYERS && call->towers >= 1);
    NEED_SIZES(width >= LANES && width <= WIDEST && width % call->towers == 0 && call->scale.width >= 0);
    NEED_SIZES(call->memories == call->count || (!backward && call->memories == 2));
    const enum answer of_edges = check_messages(edges, call->kind, call->table.count, call->kinds);
    if (of_edges != DONE)
        return of_edges;
    NEED_SIZES(sized(call->table, call->table.count, call->table.width) && call->table.width <= WIDEST);
    NEED_SIZES(sized(call->scale, nodes, call->scale.width));
    for (integer l = 0; l < call->count; l++) {
        const enum answer answer = check_layer(call, &call->layer[l], width);
        if (answer != DONE)
            return answer;
    }
    struct tower_stack stack;
    make_tower_stack(call, &stack);
    for (integer m = 0; m < call->memories; m++)
        NEED_SIZES(call->memory[m].at != NULL && call->memory[m].count >= memory_size(&stack));
    integer parameters = 0;
    for (integer l = 0; l < call->count; l++)
        parameters += tower_parameters(call, l);
    for (integer s = 0; s < streams; s++) {
        if (backward) {
            NEED_SIZES(left_out(call->out_gradient[s]) || sized(call->out_gradient[s], nodes, width));
            NEED_SIZES(sized(call->in_gradient[s], nodes, width));
        } else {
            NEED_SIZES(sized(call->in[s], nodes, width) && sized(call->out[s], nodes, width));
        }
    }
    if (!backward)
        return DONE;
    NEED_SIZES(sized(call->table_gradient, call->table.count, call->table.width));
    NEED_SIZES(sized_line(call->parameters_gradient, parameters));
    return check_sent(edges);
}

static integer integers(const struct tower_stack *stack)
{
    return order_size(&stack->call->edges) * (integer)(sizeof(integer) / sizeof(real));
}
static integer packed_sizes(const struct tower_stack *stack)
{
    integer size = 0;
    for (integer s = 0; s < stack->streams; s++)
        size += packed_size(&stack->work[s]);
    return size;
}
static integer edge_maps_size(const struct tower_stack *stack)
{
    const integer vectors = vectors_of(stack);
    return vectors * stack->edge_dim > stack->width * stack->wide_edge ? vectors * stack->edge_dim
                                                                       : stack->width * stack->wide_edge;
}

integer common_room(const struct tower_stack *stack)
{
    return integers(stack) + packed_sizes(stack) + stack->nodes + sums_size(stack) + stack->values * stack->wide_edge
           + stack->streams * (stack->values + stack->width + 1) * vectors_of(stack) + edge_maps_size(stack);
}

enum answer begin_tower_stack(struct tower_stack *stack, _Bool backward, real *room)
{
    const struct tower_layers *call = stack->call;
    const integer vectors = vectors_of(stack);
    const enum answer answer = find_order(&call->edges, call->kind, call->scale, backward, (integer *)room,
                                          &stack->order);
    if (answer != DONE)
        return answer;
    room += integers(stack);
    for (integer s = 0; s < stack->streams; s++) {
        stack->work[s].packed = room;
        room += packed_size(&stack->work[s]);
        stack->values_at[s] = room;
        room += stack->values * vectors;
    }
    stack->size_scale = room;
    stack->sums = stack->size_scale + stack->nodes;
    stack->table = stack->sums + sums_size(stack);
    stack->mix = stack->table + stack->values * stack->wide_edge;
    stack->edge_maps = stack->mix + stack->streams * (stack->width + 1) * vectors;
    for (integer i = 0; i < stack->nodes && call->size_scale.at != NULL; i++)
        stack->size_scale[i] = call->size_scale.at[stack->order.node[i]];
    clear(stack->table, stack->values * stack->wide_edge);
    for (integer row = 0; row < stack->values; row++)
        memcpy(stack->table + row * stack->wide_edge, row_at(call->table, row),
               (size_t)stack->edge_dim * sizeof(real));
    return DONE;
}

static struct tower_place place_of(const struct tower_stack *stack, integer layer)
{
    struct tower_place place = {.streams = stack->call->memory[layer % stack->call->memories].at};
    real *next = place.streams + stack->nodes * stack->row;
    for (integer s = 0; s < stack->streams; s++) {
        place.sources[s] = next;
        place.updates[s] = place.sources[s] + stack->nodes * stack->padded;
        place.mixed[s] = place.updates[s] + stack->nodes * stack->padded;
        next = place.mixed[s] + stack->nodes * stack->padded;
    }
    place.statistics = next;
    return place;
}

/* What each row of the table gives the messages. */
static void map_table(const struct tower_stack *stack, integer stream)
{
    const struct principal *work = &stack->work[stream];
    const integer vectors = work->vectors;
    clear(stack->edge_maps, stack->edge_dim * vectors);
    for (integer o = 0; o < stack->width; o++)
        for (integer k = 0; k < stack->edge_dim; k++)
            *in_panels(stack->edge_maps, stack->edge_dim, vectors, k, o)
                = row_at(work->maps.message, o)[2 * work->inputs + k];
    product(stack->call->threads, stack->values, vectors, stack->edge_dim,
            (struct matrix){stack->table, stack->wide_edge}, stack->edge_maps, (struct matrix){NULL, 0},
            stack->values_at[stream], vectors);
}

static void pack_mixing(const struct tower_stack *stack, const struct tower_layer *layer, _Bool backward)
{
    const integer width = stack->width, vectors = vectors_of(stack);
    clear(stack->mix, stack->streams * (width + 1) * vectors);
    for (integer s = 0; s < stack->streams; s++) {
        real *to = stack->mix + s * width * vectors;
        for (integer o = 0; o < width; o++)
            for (integer k = 0; k < width; k++)
                *(backward ? in_panels(to, width, vectors, o, k) : in_panels(to, width, vectors, k, o))
                    = row_at(layer->mix[s], o)[k];
        memcpy(stack->mix + (stack->streams * width + s) * vectors, layer->mix_bias[s].at, (size_t)width * sizeof(real));
    }
}

void go_to_layer(struct tower_stack *stack, integer layer, _Bool backward)
{
    stack->layer = layer;
    stack->place = place_of(stack, layer);
    stack->next = backward ? NULL : place_of(stack, layer + 1).streams;
    take_aggregations(stack, layer);
    pack_mixing(stack, &stack->call->layer[layer], backward);
    for (integer s = 0; s < stack->streams; s++) {
        struct principal *work = &stack->work[s];
        pack_towers(work);
        map_table(stack, s);
        work->x = (struct matrix){stack->place.streams + s * stack->width, stack->row};
        work->values = (struct matrix){stack->values_at[s], work->vectors};
        work->sources = stack->place.sources[s];
        work->out = stack->place.updates[s];
        work->gradient = (struct matrix){stack->updates_gradient[s], stack->padded};
        work->x_gradient = stack->gradient == NULL ? NULL : stack->gradient + s * stack->width;
        work->x_gradient_row = stack->row;
    }
}

void take_streams_in(const struct tower_stack *stack, const struct rows *from, real *to)
{
    const size_t size = (size_t)stack->width * sizeof(real);
    clear(to, stack->nodes * stack->row);
    for (integer s = 0; s < stack->streams; s++)
        for (integer i = 0; i < stack->nodes && !left_out(from[s]); i++)
            memcpy(to + i * stack->row + s * stack->width, row_at(from[s], stack->order.node[i]), size);
}

void give_streams_out(const struct tower_stack *stack, const real *from, const struct rows *to)
{
    const size_t size = (size_t)stack->width * sizeof(real);
    for (integer s = 0; s < stack->streams; s++)
        for (integer i = 0; i < stack->nodes; i++)
            memcpy(row_at(to[s], stack->order.node[i]), from + i * stack->row + s * stack->width, size);
}

struct norm tower_norm(const struct tower_stack *stack, integer first, integer count)
{
    const struct tower_layer *of = &stack->call->layer[stack->layer];
    struct norm norm = {.x = node_rows(stack, stack->place.updates[H], first, count), .weight = of->norm.weight.at,
                        .bias = of->norm.bias.at, .mean = stack->place.statistics,
                        .rate = stack->place.statistics + 2 * stack->width, .sums = stack->sums,
                        .mean_gradient = stack->means};
    norm.mean_product = stack->means == NULL ? NULL : stack->means + stack->width;
    if (of->scaled)
        norm.scale = (struct line){stack->size_scale + first, count};
    return norm;
}

void drop_nodes(const struct tower_stack *stack, integer stream, integer first, struct rows x, struct rows out)
{
    const struct tower_layer *of = &stack->call->layer[stack->layer];
    for (integer i = 0; i < x.count; i++) {
        const struct rows one = {row_at(x, i), 1, x.width, x.step}, to = {row_at(out, i), 1, x.width, out.step};
        drop_rows(1, of->seed[stream], of->dropout, stack->order.node[first + i], one, to);
    }
}

struct rows before_mixing(const struct tower_stack *stack, integer stream, integer first, integer count, real *room)
{
    const struct rows updates = node_rows(stack, stack->place.updates[stream], first, count);
    const struct rows to = {room, count, stack->width, stack->padded};
    struct rows now = updates;
    if (stream == H) {
        struct norm norm = tower_norm(stack, first, count);
        norm.out = now = to;
        normalise(1, &norm);
    }
    if (stack->call->layer[stack->layer].dropout > 0) {
        drop_nodes(stack, stream, first, now, to);
        now = to;
    }
    return now;
}
