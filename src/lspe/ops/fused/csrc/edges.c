/* Edges in the order of one of their ends, by counting, and in pieces that no edge leaves. */
#include "real.h"

enum answer edges_by_end(const struct edge_order *call)
{
    const integer count = call->end.count, rows = call->start.count - 1, *end = call->end.at;
    NEED_SIZES(rows >= 0 && call->start.at != NULL && sized_indices(call->end, count));
    NEED_SIZES(sized_indices(call->edge, count) && sized_indices(call->wrong, 1));
    integer *start = call->start.at, *order = call->edge.at;
    memset(start, 0, (size_t)(rows + 1) * sizeof *start);
    for (integer edge = 0; edge < count; edge++) {
        if (end[edge] < 0 || end[edge] >= rows) {
            call->wrong.at[0] = edge;
            return DONE;
        }
        start[end[edge] + 1]++;
    }
    for (integer row = 0; row < rows; row++)
        start[row + 1] += start[row];
    for (integer edge = 0; edge < count; edge++)
        order[start[end[edge]]++] = edge;
    memmove(start + 1, start, (size_t)rows * sizeof *start);
    start[0] = 0;
    call->wrong.at[0] = -1;
    return DONE;
}

enum answer find_cuts(const struct edge_cuts *call)
{
    const integer count = call->source.count, nodes = call->nodes, pieces = call->pieces;
    const integer *source = call->source.at, *target = call->target.at;
    integer *lowest = call->room.at, *cuts = call->cuts.at;
    NEED_SIZES(nodes >= 0 && pieces >= 1 && sized_indices(call->target, count) && sized_indices(call->source, count));
    NEED_SIZES(sized_indices(call->room, count + 1) && sized_indices(call->cuts, 2 * (pieces + 1)));
    NEED_INDICES(all_below(call->source, nodes) && all_below(call->target, nodes));
    lowest[count] = nodes;
    for (integer edge = count - 1; edge >= 0; edge--) {
        const integer end = source[edge] < target[edge] ? source[edge] : target[edge];
        lowest[edge] = end < lowest[edge + 1] ? end : lowest[edge + 1];
    }
    integer highest = -1, piece = 0, share = 1;
    cuts[0] = cuts[pieces + 1] = 0;
    for (integer edge = 0; edge < count; edge++) {
        const _Bool closed = lowest[edge] > highest, large = lowest[edge] * pieces >= share * nodes;
        if (closed && large && lowest[edge] > 0) {
            piece++;
            cuts[piece] = lowest[edge];
            cuts[pieces + 1 + piece] = edge;
            share = lowest[edge] * pieces / nodes + 1;
        }
        highest = source[edge] > highest ? source[edge] : highest;
        highest = target[edge] > highest ? target[edge] : highest;
    }
    for (piece++; piece <= pieces; piece++) {
        cuts[piece] = nodes;
        cuts[pieces + 1 + piece] = count;
    }
    return DONE;
}
