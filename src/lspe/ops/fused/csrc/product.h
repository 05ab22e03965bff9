/* Products of matrices whose rows stand one after the other. */
#ifndef LSPE_PRODUCT_H
#define LSPE_PRODUCT_H

#include "real.h"

/* A matrix whose rows are `row` numbers apart. */
struct matrix {
    const real *at;
    integer row;
};

/* c [rows, columns] = a [rows, inner] b [inner, columns], added to what c holds if `add`. */
void product(integer rows, integer columns, integer inner, struct matrix a, struct matrix b, _Bool add, real *c,
             integer c_row);

/* The same with b [columns, inner] transposed, and with a [inner, rows] transposed. */
void product_with_transposed(integer rows, integer columns, integer inner, struct matrix a, struct matrix b, _Bool add,
                             real *c, integer c_row);
void product_of_transposed(integer rows, integer columns, integer inner, struct matrix a, struct matrix b, _Bool add,
                           real *c, integer c_row);

#endif
