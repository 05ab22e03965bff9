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
