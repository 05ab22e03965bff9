#include "product.h"

/* sgemm_ or dgemm_ of the BLAS that PyTorch itself uses, handed over by the caller. It is meant for matrices whose
   columns stand one after the other: our c = a b is its c' = b' a'. Inside a parallel region it uses one thread.

   Sizes are handed over as 64 bits, of which a BLAS for 32 reads the low ones (where these come first). */
typedef void (*gemm)(const char *transpose_a, const char *transpose_b, const integer *m, const integer *n,
                     const integer *k, const real *alpha, const real *a, const integer *lda, const real *b,
                     const integer *ldb, const real *beta, real *c, const integer *ldc);

static gemm blas = NULL;

void set_product(void *function)
{
    const integer one = 1;
    const _Bool low_bits_first = *(const char *)&one == 1;
    blas = low_bits_first ? (gemm)function : NULL;
}

static void call_blas(const char *transpose_b, const char *transpose_a, integer rows, integer columns, integer inner,
                      struct matrix a, struct matrix b, _Bool add, real *c, integer c_row)
{
    const integer m = columns, n = rows, k = inner, lda = b.row, ldb = a.row, ldc = c_row;
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
    if (blas != NULL && inner > 0)
        call_blas("N", "N", rows, columns, inner, a, b, add, c, c_row);
    else
        multiply(rows, columns, inner, a, 1, b, b.row, 1, add, c, c_row);
}

void product_with_transposed(integer rows, integer columns, integer inner, struct matrix a, struct matrix b, _Bool add,
                             real *c, integer c_row)
{
    if (rows == 0 || columns == 0)
        return;
    if (blas != NULL && inner > 0)
        call_blas("T", "N", rows, columns, inner, a, b, add, c, c_row);
    else
        multiply(rows, columns, inner, a, 1, b, 1, b.row, add, c, c_row);
}

void product_of_transposed(integer rows, integer columns, integer inner, struct matrix a, struct matrix b, _Bool add,
                           real *c, integer c_row)
{
    if (rows == 0 || columns == 0)
        return;
    if (blas != NULL && inner > 0)
        call_blas("N", "T", rows, columns, inner, a, b, add, c, c_row);
    else
        multiply(rows, columns, inner, (struct matrix){a.at, 1}, a.row, b, b.row, 1, add, c, c_row);
}

enum answer try_product(const struct trial *call)
{
    const struct rows a = call->a, b = call->b, c = call->c;
    const integer inner = call->kind == 2 ? a.count : a.width;
    NEED_SIZES(call->kind >= 0 && call->kind <= 2 && sized(a, a.count, a.width) && sized(b, b.count, b.width));
    NEED_SIZES(inner == (call->kind == 1 ? b.width : b.count));
    NEED_SIZES(sized(c, call->kind == 2 ? a.width : a.count, call->kind == 1 ? b.count : b.width));
    void (*const kinds[3])(integer, integer, integer, struct matrix, struct matrix, _Bool, real *, integer)
        = {product, product_with_transposed, product_of_transposed};
    kinds[call->kind](c.count, c.width, inner, (struct matrix){a.at, a.step}, (struct matrix){b.at, b.step}, 0, c.at,
                      c.step);
    return DONE;
}
