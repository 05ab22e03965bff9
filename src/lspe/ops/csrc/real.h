/* Numbers of one precision: the sources are compiled once with PRECISION 32 and once with 64. */
#ifndef LSPE_REAL_H
#define LSPE_REAL_H

#include <math.h>
#include <stdint.h>
#include <string.h>

typedef int64_t index;

/* Rows of features are worked on in blocks of so many channels; their widths are padded to a multiple of it. */
#define LANES 16
#define EACH_LANE(c) _Pragma("omp simd") for (int c = 0; c < LANES; c++)

#if PRECISION == 32

typedef float real;

/* e^x without branches, so that a loop over it becomes vector instructions; relative error below 2^-23.
   Below -87.3 it stays at 1.2e-38 and above 88.3 at 2.3e38: never zero, infinite or subnormal. NaN stays NaN. */
static inline real exponential(real x)
{
    x = x > 88.3f ? 88.3f : x;
    x = x < -87.3f ? -87.3f : x;
    const real turns = rintf(x * 1.44269504f);
    const real r = (x - turns * 0.693145752f) - turns * 1.42860677e-6f;
    real tail = 0.00139262508f;
    tail = tail * r + 0.00836323288f;
    tail = tail * r + 0.0416665542f;
    tail = tail * r + 0.166665767f;
    tail = tail * r + 0.5f;
    const int32_t bits = ((int32_t)turns + 127) << 23;
    real power;
    memcpy(&power, &bits, sizeof power);
    return (1.0f + (r + r * r * tail)) * power;
}

#else

typedef double real;

static inline real exponential(real x) { return exp(x); }

#endif

static inline real sigmoid(real x) { return 1 / (1 + exponential(-x)); }

#endif
