/* Edges in the order of one of their ends, by counting. */
#include "real.h"

/* start [rows + 1] and order [count]: the edges that end in row r are order[start[r]] to order[start[r + 1]], in their
   own order. Returns -1, or the first edge whose end is not a row. */
integer edges_by_end(integer count, integer rows, const integer *end, integer *start, integer *order)
{
    memset(start, 0, (size_t)(rows + 1) * sizeof *start);
    for (integer edge = 0; edge < count; edge++) {
        if (end[edge] < 0 || end[edge] >= rows)
            return edge;
        start[end[edge] + 1]++;
    }
    for (integer row = 0; row < rows; row++)
        start[row + 1] += start[row];
    for (integer edge = 0; edge < count; edge++)
        order[start[end[edge]]++] = edge;
    memmove(start + 1, start, (size_t)rows * sizeof *start);
    start[0] = 0;
    return -1;
}

/* Cuts a batch into pieces of about `nodes_a_piece` nodes that no edge joins, and whose edges stand together. `cuts`
   [2, pieces + 1]: where the nodes and where the edges of each piece begin; the last ones are empty where there are
   fewer. `lowest` is room for count + 1 numbers. */
void edges_cuts(integer count, integer nodes, const integer *source, const integer *target, integer nodes_a_piece,
                integer pieces, integer *lowest, integer *cuts)
{
    lowest[count] = nodes;
    for (integer edge = count - 1; edge >= 0; edge--) {
        const integer end = source[edge] < target[edge] ? source[edge] : target[edge];
        lowest[edge] = end < lowest[edge + 1] ? end : lowest[edge + 1];
    }
    integer highest = -1, piece = 0;
    cuts[0] = cuts[pieces + 1] = 0;
    for (integer edge = 0; edge <= count; edge++) {
        const _Bool closed = lowest[edge] > highest, large = lowest[edge] - cuts[piece] >= nodes_a_piece;
        if (closed && large && edge < count && piece + 1 < pieces) {
            piece++;
            cuts[piece] = lowest[edge];
            cuts[pieces + 1 + piece] = edge;
        }
        if (edge < count) {
            highest = source[edge] > highest ? source[edge] : highest;
            highest = target[edge] > highest ? target[edge] : highest;
        }
    }
    for (piece++; piece <= pieces; piece++) {
        cuts[piece] = nodes;
        cuts[pieces + 1 + piece] = count;
    }
}
