#include "product.h"

#include <stddef.h>

/* sgemm_ or dgemm_ of the BLAS that PyTorch itself uses, handed over by the caller. It is meant for matrices whose
   columns stand one after the other: our c = a b is its c' = b' a'. Inside a parallel region it uses one thread. */
typedef void (*gemm)(const char *transpose_a, const char *transpose_b, const int32_t *m, const int32_t *n,
                     const int32_t *k, const real *alpha, const real *a, const int32_t *lda, const real *b,
                     const int32_t *ldb, const real *beta, real *c, const int32_t *ldc);

static gemm blas = NULL;

void set_product(void *function) { blas = (gemm)function; }

static void call_blas(const char *transpose_b, const char *transpose_a, integer rows, integer columns, integer inner,
                      struct matrix a, struct matrix b, _Bool add, real *c, integer c_row)
{
    const int32_t m = (int32_t)columns, n = (int32_t)rows, k = (int32_t)inner;
    const int32_t lda = (int32_t)b.row, ldb = (int32_t)a.row, ldc = (int32_t)c_row;
    const real one = 1, beta = add ? 1 : 0;
    blas(transpose_b, transpose_a, &m, &n, &k, &one, b.at, &lda, a.at, &ldb, &beta, c, &ldc);
}

/* Without a BLAS: slower, and right. a_step and b_step: how far apart are numbers that follow each other in `inner`. */
static void multiply(integer rows, integer columns, integer inner, struct matrix a, integer a_step, struct matrix b,
                     integer b_step, integer b_column, _Bool add, real *c, integer c_row)
{
    for (integer i = 0; i < rows; i++)
        for (integer j = 0; j < columns; j++) {
            real sum = add ? c[i * c_row + j] : 0;
            for (integer k = 0; k < inner; k++)
                sum += a.at[i * a.row + k * a_step] * b.at[k * b_step + j * b_column];
            c[i * c_row + j] = sum;
        }
}

void product(integer rows, integer columns, integer inner, struct matrix a, struct matrix b, _Bool add, real *c,
             integer c_row)
{
    if (rows == 0 || columns == 0)
        return;
    if (blas != NULL)
        call_blas("N", "N", rows, columns, inner, a, b, add, c, c_row);
    else
        multiply(rows, columns, inner, a, 1, b, b.row, 1, add, c, c_row);
}

void product_with_transposed(integer rows, integer columns, integer inner, struct matrix a, struct matrix b, _Bool add,
                             real *c, integer c_row)
{
    if (rows == 0 || columns == 0)
        return;
    if (blas != NULL)
        call_blas("T", "N", rows, columns, inner, a, b, add, c, c_row);
    else
        multiply(rows, columns, inner, a, 1, b, 1, b.row, add, c, c_row);
}

void product_of_transposed(integer rows, integer columns, integer inner, struct matrix a, struct matrix b, _Bool add,
                           real *c, integer c_row)
{
    if (rows == 0 || columns == 0)
        return;
    if (blas != NULL)
        call_blas("N", "T", rows, columns, inner, a, b, add, c, c_row);
    else
        multiply(rows, columns, inner, (struct matrix){a.at, 1}, a.row, b, b.row, 1, add, c, c_row);
}
