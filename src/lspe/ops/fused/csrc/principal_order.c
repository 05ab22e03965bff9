/* The nodes of a batch in the order of their in-degrees. */
#include "principal.h"

/* Each at most once. */
static _Bool are_kinds(struct indices kinds)
{
    _Bool seen[KINDS] = {0};
    for (integer a = 0; a < kinds.count; a++) {
        if (kinds.at[a] < 0 || kinds.at[a] >= KINDS || seen[kinds.at[a]])
            return 0;
        seen[kinds.at[a]] = 1;
    }
    return 1;
}

enum answer check_messages(const struct edges *edges, struct indices kind, integer rows, struct indices kinds)
{
    const integer nodes = edges->nodes, count = edges->source.count;
    NEED_SIZES(nodes >= 0 && sized_indices(edges->source, count) && sized_indices(edges->in_start, nodes + 1));
    NEED_SIZES(sized_indices(edges->in_edge, count) && sized_indices(kinds, kinds.count));
    NEED_SIZES(kind.at == NULL ? rows == count : sized_indices(kind, count));
    NEED_INDICES(all_below(edges->source, nodes) && all_below(edges->in_edge, count) && all_below(kind, rows));
    NEED_INDICES(rises_to(edges->in_start, count) && are_kinds(kinds));
    return DONE;
}

enum answer check_sent(const struct edges *edges)
{
    const integer count = edges->source.count;
    NEED_SIZES(sized_indices(edges->out_start, edges->nodes + 1) && sized_indices(edges->out_edge, count));
    NEED_INDICES(rises_to(edges->out_start, count) && all_below(edges->out_edge, count));
    return DONE;
}

integer order_size(const struct edges *edges)
{
    return 5 * edges->nodes + 4 * edges->source.count + 5;
}

/* Nodes of one degree keep their order. `begin` is room for a number more than there are edges. */
static void sort_nodes(const struct edges *edges, integer *begin, integer *node)
{
    const integer *start = edges->in_start.at;
    memset(begin, 0, (size_t)(edges->source.count + 2) * sizeof(integer));
    for (integer i = 0; i < edges->nodes; i++)
        begin[start[i + 1] - start[i] + 1]++;
    for (integer degree = 0; degree < edges->source.count; degree++)
        begin[degree + 1] += begin[degree];
    for (integer i = 0; i < edges->nodes; i++)
        node[begin[start[i + 1] - start[i]]++] = i;
}

/* `slot` [edges]: which message goes along an edge. */
static _Bool list_messages(const struct edges *edges, struct indices kind, const integer *place, integer *slot,
                           struct order *order)
{
    integer message = 0;
    memset(slot, -1, (size_t)order->messages * sizeof(integer));
    for (integer i = 0; i < order->nodes; i++) {
        const integer node = order->node[i];
        order->start[i] = message;
        for (integer at = edges->in_start.at[node]; at < edges->in_start.at[node + 1]; at++, message++) {
            const integer edge = edges->in_edge.at[at];
            order->source[message] = place[edges->source.at[edge]];
            order->value[message] = kind.at == NULL ? edge : kind.at[edge];
            slot[edge] = message;
        }
    }
    order->start[order->nodes] = message;
    for (integer edge = 0; edge < order->messages; edge++)
        if (slot[edge] < 0)
            return 0;
    return 1;
}

static void list_sent(const struct edges *edges, const integer *slot, struct order *order)
{
    integer sent = 0;
    for (integer i = 0; i < order->nodes; i++) {
        const integer node = order->node[i];
        order->sent_start[i] = sent;
        for (integer at = edges->out_start.at[node]; at < edges->out_start.at[node + 1]; at++, sent++)
            order->sent[sent] = slot[edges->out_edge.at[at]];
    }
    order->sent_start[order->nodes] = sent;
}

static _Bool alike(const struct order *order, struct rows scale, integer one, integer other)
{
    return degree_of(order, one) == degree_of(order, other)
           && memcmp(row_at(scale, order->node[one]), row_at(scale, order->node[other]),
                     (size_t)scale.width * sizeof(real)) == 0;
}

static void find_segments(struct rows scale, struct order *order)
{
    integer segments = 0;
    for (integer i = 0; i < order->nodes; i++) {
        const integer first = segments > 0 ? order->segment[segments - 1] : 0;
        if (segments == 0 || i - first == BLOCK || !alike(order, scale, first, i))
            order->segment[segments++] = i;
    }
    order->segment[segments] = order->nodes;
    order->segments = segments;
    order->groups = segments < 1 ? 1 : smaller(segments, MOST_GROUPS);
}

enum answer find_order(const struct edges *edges, struct indices kind, struct rows scale, _Bool backward, integer *room,
                       struct order *order)
{
    const integer nodes = edges->nodes, messages = edges->source.count;
    *order = (struct order){.nodes = nodes, .messages = messages};
    integer *slot = room, *place = slot + messages + 2;
    order->node = place + nodes;
    order->start = order->node + nodes;
    order->source = order->start + nodes + 1;
    order->value = order->source + messages;
    order->sent_start = order->value + messages;
    order->sent = order->sent_start + nodes + 1;
    order->segment = order->sent + messages;
    sort_nodes(edges, slot, order->node);
    for (integer i = 0; i < nodes; i++)
        place[order->node[i]] = i;
    NEED_INDICES(list_messages(edges, kind, place, slot, order));
    if (backward)
        list_sent(edges, slot, order);
    find_segments(scale, order);
    return DONE;
}
