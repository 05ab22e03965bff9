/* PNA's aggregation as one operator: rows come and go in the order of the batch. */
#include "principal.h"

static enum answer check(const struct aggregation *call)
{
    const integer nodes = call->edges.nodes, towers = call->towers, kinds = call->kinds.count;
    NEED_SIZES(call->threads >= 1 && towers >= 1);
    NEED_SIZES(call->scale.width >= 0 && call->message.count % towers == 0 && call->message.count >= towers);
    NEED_SIZES(call->x.width % towers == 0 && call->x.width <= WIDEST && call->message.count <= WIDEST);
    const integer width = call->message.count / towers, inputs = call->x.width / towers;
    NEED_SIZES(call->values.width % LANES == 0 && call->message.count <= call->values.width);
    NEED_SIZES(sized(call->x, nodes, towers * inputs));
    NEED_SIZES(sized(call->values, call->values.count, call->values.width));
    NEED_SIZES(sized(call->scale, nodes, call->scale.width));
    NEED_SIZES(sized(call->message, towers * width, call->message.width) && call->message.width >= 2 * inputs);
    NEED_SIZES(sized(call->update, towers * width, inputs + call->scale.width * kinds * width));
    NEED_SIZES(sized_line(call->message_bias, towers * width) && sized_line(call->update_bias, towers * width));
    return check_messages(&call->edges, call->kind, call->values.count, call->kinds);
}

static struct principal work_of(const struct aggregation *call, const struct order *order, _Bool *failed)
{
    const struct tower_maps maps = {call->message, call->update, call->message_bias, call->update_bias};
    struct principal work
        = aggregation_of(order, maps, call->scale, call->kinds, call->towers, call->x.width / call->towers);
    work.values = (struct matrix){call->values.at, call->values.step};
    work.values_count = call->kind.at == NULL ? 0 : call->values.count;
    work.sources = call->sources.at;
    work.failed = failed;
    return work;
}

/* Rows of the batch as the nodes stand, padded with zeros. */
static void take_in(const struct order *order, struct rows from, real *to, integer row)
{
    for (integer i = 0; i < order->nodes; i++) {
        memcpy(to + i * row, row_at(from, order->node[i]), (size_t)from.width * sizeof(real));
        clear(to + i * row + from.width, row - from.width);
    }
}

static void give_out(const struct order *order, const real *from, integer row, struct rows to)
{
    for (integer i = 0; i < order->nodes; i++)
        memcpy(row_at(to, order->node[i]), from + i * row, (size_t)to.width * sizeof(real));
}

enum answer principal_forward(const struct aggregation *call)
{
    const integer nodes = call->edges.nodes;
    enum answer answer = check(call);
    if (answer != DONE)
        return answer;
    _Bool failed = 0;
    struct order order = {0};
    struct principal work = work_of(call, &order, &failed);
    const integer integers = order_size(&call->edges) * (integer)(sizeof(integer) / sizeof(real));
    const integer packed = packed_size(&work), row = padded_inputs(&work);
    NEED_SIZES(sized(call->out, nodes, work.channels));
    NEED_SIZES(call->sources.count >= nodes * work.padded && (call->sources.at != NULL || nodes == 0));
    real *room = room_for_call(integers + packed + nodes * (row + work.padded));
    if (room == NULL)
        return NO_MEMORY;
    answer = find_order(&call->edges, call->kind, call->scale, 0, (integer *)room, &order);
    if (answer != DONE)
        return answer;
    work.packed = room + integers;
    real *x = work.packed + packed;
    work.x = (struct matrix){x, row};
    work.out = x + nodes * row;
    pack_towers(&work);
    take_in(&order, call->x, x, row);
    map_sources(call->threads, &work);
    aggregate_and_update(call->threads, &work);
    give_out(&order, work.out, work.padded, call->out);
    return failed ? NO_MEMORY : DONE;
}

enum answer principal_backward(const struct aggregation *call)
{
    const struct edges *edges = &call->edges;
    const integer nodes = edges->nodes, count = edges->source.count;
    enum answer answer = check(call);
    if (answer != DONE)
        return answer;
    _Bool failed = 0;
    struct order order = {0};
    struct principal work = work_of(call, &order, &failed);
    NEED_SIZES(call->sources.count >= nodes * work.padded && (call->sources.at != NULL || nodes == 0));
    NEED_SIZES(sized(call->gradient, nodes, work.channels) && sized(call->x_gradient, nodes, call->x.width));
    NEED_SIZES(sized(call->values_gradient, call->values.count, call->values.width));
    NEED_SIZES(sized(call->message_gradient, call->message.count, call->message.width));
    NEED_SIZES(sized(call->update_gradient, call->update.count, call->update.width));
    NEED_SIZES(sized_line(call->message_bias_gradient, call->message.count));
    NEED_SIZES(sized_line(call->update_bias_gradient, call->update.count));
    answer = check_sent(edges);
    if (answer != DONE)
        return answer;

    work.partial_size = partial_size(&work);
    const integer integers = order_size(edges) * (integer)(sizeof(integer) / sizeof(real));
    const integer packed = packed_size(&work), row = padded_inputs(&work), partial = MOST_GROUPS * work.partial_size;
    real *room = room_for_call(integers + packed + partial + nodes * (2 * row + work.padded)
                               + values_gradient_size(&work, count) + count * work.vectors);
    if (room == NULL)
        return NO_MEMORY;
    answer = find_order(edges, call->kind, call->scale, 1, (integer *)room, &order);
    if (answer != DONE)
        return answer;
    work.packed = room + integers;
    work.partial = work.packed + packed;
    real *x = work.partial + partial, *gradient = x + nodes * row;
    work.x_gradient = gradient + nodes * work.padded;
    work.values_gradient = work.x_gradient + nodes * row;
    work.messages_gradient = work.values_gradient + values_gradient_size(&work, count);
    work.x = (struct matrix){x, row};
    work.gradient = (struct matrix){gradient, work.padded};
    work.x_gradient_row = row;
    clear(work.partial, order.groups * work.partial_size);
    clear(work.x_gradient, nodes * row);
    clear(work.values_gradient, order.groups * work.values_count * work.vectors);
    pack_towers(&work);
    take_in(&order, call->x, x, row);
    take_in(&order, call->gradient, gradient, work.padded);
    gradient_to_messages(call->threads, &work);
    gradient_to_x(call->threads, &work);
    if (failed)
        return NO_MEMORY;
    give_out(&order, work.x_gradient, row, call->x_gradient);
    add_values_gradients(&work);
    for (integer row = 0; row < call->values.count; row++)
        memcpy(row_at(call->values_gradient, row), work.values_gradient + row * work.vectors,
               (size_t)work.vectors * sizeof(real));
    unpack_tower_gradients(&work, (struct tower_maps){call->message_gradient, call->update_gradient,
                                                      call->message_bias_gradient, call->update_bias_gradient});
    return DONE;
}
