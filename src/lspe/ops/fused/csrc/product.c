#include "product.h"

#include <stdlib.h>

#define TALL 6          /* rows of a tile */
#define ROWS_AT_ONCE 96 /* as many rows of a as stay in the first cache while all panels go by */
#define DEEP 128        /* as many rows of a and b at a time, where the sum goes over rows */
#define FEW_ROWS 18     /* of the result, for which it does not pay to bring b into panels */

struct multiplication {
    integer rows, columns, inner;
    struct matrix a, b, start;
    real *c;
    integer c_row;
};

/* A tile of c, kept in registers while the sum runs. a_row and a_step: how far apart numbers of a are from one row of
   the result to the next, and from one term of the sum to the next. */
static inline __attribute__((always_inline)) void tile(const integer tall, const integer wide, integer inner,
                                                       const real *a, integer a_row, integer a_step,
                                                       struct matrix b, struct matrix start, real *c, integer c_row)
{
    vector sum[TALL][VECTORS];
    for (integer i = 0; i < tall; i++)
        for (integer j = 0; j < wide; j++)
            sum[i][j] = start.at == NULL ? all(0) : load(start.at + i * start.row + j * LANES);
    for (integer k = 0; k < inner; k++)
        for (integer i = 0; i < tall; i++) {
            const vector left = all(a[i * a_row + k * a_step]);
            for (integer j = 0; j < wide; j++)
                sum[i][j] += left * load(b.at + k * b.row + j * LANES);
        }
    for (integer i = 0; i < tall; i++)
        for (integer j = 0; j < wide; j++)
            store(c + i * c_row + j * LANES, sum[i][j]);
}

static inline __attribute__((always_inline)) void tiles_of_width(const integer wide, integer rows, integer inner,
                                                                 const real *a, integer a_row, integer a_step,
                                                                 struct matrix b, struct matrix start, real *c,
                                                                 integer c_row)
{
    for (; rows >= TALL; rows -= TALL) {
        tile(TALL, wide, inner, a, a_row, a_step, b, start, c, c_row);
        a += TALL * a_row;
        c += TALL * c_row;
        if (start.at != NULL)
            start.at += TALL * start.row;
    }
    switch (rows) {
    case 5: tile(5, wide, inner, a, a_row, a_step, b, start, c, c_row); break;
    case 4: tile(4, wide, inner, a, a_row, a_step, b, start, c, c_row); break;
    case 3: tile(3, wide, inner, a, a_row, a_step, b, start, c, c_row); break;
    case 2: tile(2, wide, inner, a, a_row, a_step, b, start, c, c_row); break;
    case 1: tile(1, wide, inner, a, a_row, a_step, b, start, c, c_row); break;
    }
}

/* Some rows of `wide` columns of c, as many as a panel has. */
static void tiles(integer wide, integer rows, integer inner, const real *a, integer a_row, integer a_step,
                  struct matrix b, struct matrix start, real *c, integer c_row)
{
    switch (wide / LANES) {
#if VECTORS == 4
    case 4: tiles_of_width(4, rows, inner, a, a_row, a_step, b, start, c, c_row); break;
    case 3: tiles_of_width(3, rows, inner, a, a_row, a_step, b, start, c, c_row); break;
#endif
    case 2: tiles_of_width(2, rows, inner, a, a_row, a_step, b, start, c, c_row); break;
    case 1: tiles_of_width(1, rows, inner, a, a_row, a_step, b, start, c, c_row); break;
    }
}

static inline integer smaller(integer one, integer other) { return one < other ? one : other; }

static inline struct matrix from(struct matrix start, integer row, integer column)
{
    return start.at == NULL ? start : (struct matrix){start.at + row * start.row + column, start.row};
}

static void rows_task(void *argument, integer number)
{
    const struct multiplication work = *(const struct multiplication *)argument;
    const integer first = number * ROWS_AT_ONCE, rows = smaller(ROWS_AT_ONCE, work.rows - first);
    for (integer column = 0, end; column < work.columns; column = end) {
        end = panel_end(work.columns, column);
        tiles(end - column, rows, work.inner, work.a.at + first * work.a.row, work.a.row, 1,
              (struct matrix){work.b.at + column * work.inner, end - column}, from(work.start, first, column),
              work.c + first * work.c_row + column, work.c_row);
    }
}

void product(integer threads, integer rows, integer columns, integer inner, struct matrix a, const real *b,
             struct matrix start, real *c, integer c_row)
{
    struct multiplication work = {rows, columns, inner, a, {b, 0}, start, c, c_row};
    run_tasks(threads, (rows + ROWS_AT_ONCE - 1) / ROWS_AT_ONCE, rows_task, &work);
}

/* A tile of c, from row `row` of each a on, in the panel that begins at `column`. */
static inline __attribute__((always_inline)) void tile_of_terms(const integer tall, const integer wide, integer terms,
                                                                const struct term *term, integer row, integer column,
                                                                struct matrix start, real *c, integer c_row)
{
    vector sum[TALL][VECTORS];
    for (integer i = 0; i < tall; i++)
        for (integer j = 0; j < wide; j++)
            sum[i][j] = start.at == NULL ? all(0) : load(start.at + i * start.row + j * LANES);
    for (integer t = 0; t < terms; t++) {
        const real *a = term[t].a.at + row * term[t].a.row, *b = term[t].b + column * term[t].inner;
        const integer a_row = term[t].a.row, inner = term[t].inner;
        for (integer k = 0; k < inner; k++, b += wide * LANES)
            for (integer i = 0; i < tall; i++) {
                const vector left = all(a[i * a_row + k]);
                for (integer j = 0; j < wide; j++)
                    sum[i][j] += left * load(b + j * LANES);
            }
    }
    for (integer i = 0; i < tall; i++)
        for (integer j = 0; j < wide; j++)
            store(c + i * c_row + j * LANES, sum[i][j]);
}

static inline __attribute__((always_inline)) void panel_of_terms(const integer wide, integer rows, integer column,
                                                                 integer terms, const struct term *term,
                                                                 struct matrix start, real *c, integer c_row)
{
    integer row = 0;
    for (; row + TALL <= rows; row += TALL)
        tile_of_terms(TALL, wide, terms, term, row, column, from(start, row, column), c + row * c_row + column, c_row);
    const struct matrix rest = from(start, row, column);
    c += row * c_row + column;
    switch (rows - row) {
    case 5: tile_of_terms(5, wide, terms, term, row, column, rest, c, c_row); break;
    case 4: tile_of_terms(4, wide, terms, term, row, column, rest, c, c_row); break;
    case 3: tile_of_terms(3, wide, terms, term, row, column, rest, c, c_row); break;
    case 2: tile_of_terms(2, wide, terms, term, row, column, rest, c, c_row); break;
    case 1: tile_of_terms(1, wide, terms, term, row, column, rest, c, c_row); break;
    }
}

void sum_of_products(integer rows, integer columns, integer terms, const struct term *term, struct matrix start, real *c,
                     integer c_row)
{
    for (integer column = 0, end; column < columns; column = end) {
        end = panel_end(columns, column);
        switch ((end - column) / LANES) {
#if VECTORS == 4
        case 4: panel_of_terms(4, rows, column, terms, term, start, c, c_row); break;
        case 3: panel_of_terms(3, rows, column, terms, term, start, c, c_row); break;
#endif
        case 2: panel_of_terms(2, rows, column, terms, term, start, c, c_row); break;
        case 1: panel_of_terms(1, rows, column, terms, term, start, c, c_row); break;
        }
    }
}

static void columns_task(void *argument, integer number)
{
    const struct multiplication work = *(const struct multiplication *)argument;
    const integer column = number * PANEL, wide = smaller(PANEL, work.columns - column);
    real panel[DEEP * PANEL];
    struct matrix start = from(work.start, 0, column);
    if (work.rows <= FEW_ROWS) {
        tiles(wide, work.rows, work.inner, work.a.at, 1, work.a.row, from(work.b, 0, column), start,
                      work.c + column, work.c_row);
        return;
    }
    for (integer first = 0; first == 0 || first < work.inner; first += DEEP) {
        const integer deep = smaller(DEEP, work.inner - first);
        struct matrix b = from(work.b, first, column);
        if (b.row != wide) { /* else it is such a panel */
            for (integer k = 0; k < deep; k++)
                for (integer c = 0; c < wide; c += LANES)
                    store(panel + k * wide + c, load(b.at + k * b.row + c));
            b = (struct matrix){panel, wide};
        }
        tiles(wide, work.rows, deep, work.a.at + first * work.a.row, 1, work.a.row, b, start, work.c + column,
              work.c_row);
        start = (struct matrix){work.c + column, work.c_row};
    }
}

void product_of_transposed(integer threads, integer rows, integer columns, integer inner, struct matrix a,
                           struct matrix b, struct matrix start, real *c, integer c_row)
{
    struct multiplication work = {rows, columns, inner, a, b, start, c, c_row};
    run_tasks(threads, (columns + PANEL - 1) / PANEL, columns_task, &work);
}

enum answer try_product(const struct trial *call)
{
    const struct rows a = call->a, b = call->b, c = call->c;
    const integer inner = b.count, columns = b.width, rows = call->transposed ? a.width : a.count;
    const struct matrix left = {a.at, a.step}, right = {b.at, b.step}, nothing = {NULL, 0};
    NEED_SIZES(columns % LANES == 0 && sized(b, inner, columns) && sized(c, rows, columns));
    NEED_SIZES(call->transposed ? sized(a, inner, rows) : sized(a, rows, inner));
    if (call->transposed) {
        product_of_transposed(1, rows, columns, inner, left, right, nothing, c.at, c.step);
        return DONE;
    }
    real *panels = malloc((size_t)(inner * columns + 1) * sizeof(real));
    if (panels == NULL)
        return NO_MEMORY;
    for (integer k = 0; k < inner; k++)
        for (integer column = 0; column < columns; column++)
            *in_panels(panels, inner, columns, k, column) = row_at(b, k)[column];
    product(1, rows, columns, inner, left, panels, nothing, c.at, c.step);
    free(panels);
    return DONE;
}
