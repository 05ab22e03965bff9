/* Products of matrices whose rows stand one after the other.

   Written here because of the sizes: with rows of some hundred numbers a BLAS spends a fifth of its time on bringing
   its operands into order. The maps of a layer are brought into panels once and serve all pieces of a batch. */
#ifndef LSPE_PRODUCT_H
#define LSPE_PRODUCT_H

#include "tasks.h"

/* A matrix whose rows are `row` numbers apart; 0: all rows are the same. */
struct matrix {
    const real *at;
    integer row;
};

/* A matrix [inner, columns] in panels: PANEL columns, then the next ones, each panel [inner, its width]. The columns
   are a multiple of LANES, so that the last panel may be half as wide. */
#define PANEL (2 * LANES)

static inline real *in_panels(real *panels, integer inner, integer columns, integer k, integer column)
{
    const integer first = column / PANEL * PANEL, wide = columns - first < PANEL ? columns - first : PANEL;
    return panels + first * inner + k * wide + column - first;
}

/* c [rows, columns] = start + a [rows, inner] b, where b is in panels; start may be c itself, or null for zeros. */
void product(integer threads, integer rows, integer columns, integer inner, struct matrix a, const real *b,
             struct matrix start, real *c, integer c_row);

/* The same of several products at once, by one thread: start + the sum of a [rows, inner] b over the terms. */
struct term {
    struct matrix a;
    const real *b;
    integer inner;
};
void sum_of_products(integer rows, integer columns, integer terms, const struct term *term, struct matrix start, real *c,
                     integer c_row);

/* c [rows, columns] = start + a' b with a [inner, rows] and b [inner, columns], columns a multiple of LANES. */
void product_of_transposed(integer threads, integer rows, integer columns, integer inner, struct matrix a,
                           struct matrix b, struct matrix start, real *c, integer c_row);

#endif
