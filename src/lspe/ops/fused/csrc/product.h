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
   are a multiple of LANES. The last panel may be narrower; it has more than one vector where the one before can spare
   it, because a tile so narrow waits for its loads. */
#if defined(__AVX512VL__) || defined(__aarch64__)
#define VECTORS 4 /* of a panel: a tile of 6 rows fills 24 of the 32 registers */
#else
#define VECTORS 2 /* 12 of 16 registers */
#endif
#define PANEL (VECTORS * LANES)

/* First column of the panel that a column is in. */
static inline integer panel_begin(integer columns, integer column)
{
    const integer rest = columns % PANEL, shared = columns - rest - LANES; /* where the last two panels meet */
    return VECTORS > 2 && rest == LANES && columns > PANEL && column >= shared ? shared : column / PANEL * PANEL;
}
/* First column behind the panel that begins at `first`. */
static inline integer panel_end(integer columns, integer first)
{
    const integer end = first + PANEL;
    if (end >= columns)
        return columns;
    return panel_begin(columns, end - LANES) > first ? end - LANES : end;
}

static inline real *in_panels(real *panels, integer inner, integer columns, integer k, integer column)
{
    const integer first = panel_begin(columns, column), wide = panel_end(columns, first) - first;
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
