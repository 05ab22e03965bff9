#include "real.h"

/* to[c, r] = from[r, c]; rows of `from` and of `to` are so many numbers apart. */
void transpose(index rows, index columns, const real *from, index from_row, real *to, index to_row)
{
    for (index c = 0; c < columns; c++)
        for (index r = 0; r < rows; r++)
            to[c * to_row + r] = from[r * from_row + c];
}
