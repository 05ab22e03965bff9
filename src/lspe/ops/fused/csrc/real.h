/* Numbers of one precision, alone and in vectors: the sources are compiled with PRECISION 32 and with 64. */
#ifndef LSPE_REAL_H
#define LSPE_REAL_H

#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

typedef int64_t integer;

#if PRECISION == 32
typedef float real;
typedef int32_t same_size;
#else
typedef double real;
typedef int64_t same_size;
#endif

/* Operators work on vectors lane by lane (a language extension of GCC and Clang). A comparison gives -1 or 0. */
#if defined(VECTOR_BYTES) /* as somebody wants it */
#elif defined(__AVX512F__)
#define VECTOR_BYTES 64
#elif defined(__AVX__)
#define VECTOR_BYTES 32
#else
#define VECTOR_BYTES 16
#endif
#define LANES (VECTOR_BYTES / (integer)sizeof(real))

typedef real vector __attribute__((vector_size(VECTOR_BYTES)));
typedef same_size mask __attribute__((vector_size(VECTOR_BYTES)));
typedef real stored_vector __attribute__((vector_size(VECTOR_BYTES), aligned(sizeof(real)), may_alias));

#include "api.h"

/* Leaves a function whose arguments do not fit together. */
#define NEED_SIZES(condition) \
    do { \
        if (!(condition)) \
            return WRONG_SIZES; \
    } while (0)
#define NEED_INDICES(condition) \
    do { \
        if (!(condition)) \
            return WRONG_INDICES; \
    } while (0)

/* Wider rows than this are left to the plain operators: some of each are kept on the stack. */
#define WIDEST 4096

/* Whether rows have these sizes and do not lie over each other. */
static inline _Bool sized(struct rows rows, integer count, integer width)
{
    return rows.count == count && rows.width == width && rows.step >= width && count >= 0 && width >= 0
           && (rows.at != NULL || count == 0 || width == 0);
}
static inline _Bool sized_line(struct line line, integer count)
{
    return line.count == count && (line.at != NULL || count == 0);
}
static inline _Bool sized_indices(struct indices indices, integer count)
{
    return indices.count == count && (indices.at != NULL || count == 0);
}
static inline _Bool left_out(struct rows rows) { return rows.at == NULL; }
static inline real *row_at(struct rows rows, integer number) { return rows.at + number * rows.step; }

/* Whether numbers rise from 0 to `last`. */
static inline _Bool rises_to(struct indices start, integer last)
{
    if (start.count < 1 || start.at == NULL || start.at[0] != 0 || start.at[start.count - 1] != last)
        return 0;
    for (integer i = 0; i + 1 < start.count; i++)
        if (start.at[i + 1] < start.at[i])
            return 0;
    return 1;
}
/* Whether all numbers are in [0, end). */
static inline _Bool all_below(struct indices indices, integer end)
{
    for (integer i = 0; i < indices.count; i++)
        if (indices.at[i] < 0 || indices.at[i] >= end)
            return 0;
    return 1;
}

static inline vector load(const real *from) { return *(const stored_vector *)from; }
static inline void store(real *to, vector values) { *(stored_vector *)to = values; }
static inline vector all(real value) { return value - (vector){0}; }
static inline vector where(mask condition, vector yes, vector no)
{
    return (vector)((condition & (mask)yes) | (~condition & (mask)no));
}

/* e^x, relative error below 2^-22. In single precision it stays within 1.2e-38 and 2.3e38: never zero, infinite or
   subnormal. NaN stays NaN. */
static inline vector exponential(vector x)
{
#if PRECISION == 32
    x = where(x > 88.3f, all(88.3f), x);
    x = where(x < -87.3f, all(-87.3f), x);
    const real shift = 12582912.0f; /* 1.5 * 2^23: adding it rounds to an integer, found in the low bits of the sum */
    const vector shifted = x * 1.44269504f + shift, turns = shifted - shift;
    const vector r = (x - turns * 0.693145752f) - turns * 1.42860677e-6f;
    vector tail = r * 0.00139262508f + 0.00836323288f;
    tail = tail * r + 0.0416665542f;
    tail = tail * r + 0.166665767f;
    tail = tail * r + 0.5f;
    const vector power = (vector)(((mask)shifted << 23) + 0x3f800000);
    return (1.0f + (r + r * r * tail)) * power;
#else
    for (integer lane = 0; lane < LANES; lane++)
        x[lane] = exp(x[lane]);
    return x;
#endif
}

static inline vector sigmoid(vector x) { return 1 / (1 + exponential(-x)); }

/* tanh x, relative error below 2^-21. */
static inline vector hyperbolic_tangent(vector x)
{
#if PRECISION == 32
    const vector far = 1 - 2 / (1 + exponential(x + x));
    const vector square = x * x;
    vector near = square * -0.00604516510f + 0.0209613291f;
    near = near * square - 0.0538432632f;
    near = near * square + 0.133327188f;
    near = near * square - 0.333333284f;
    near = x + x * square * near;
    return where(square < 0.4f, near, far);
#else
    for (integer lane = 0; lane < LANES; lane++)
        x[lane] = tanh(x[lane]);
    return x;
#endif
}

#endif
