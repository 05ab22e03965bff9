/* Batch normalisation with what stands around it: out = residual + relu(weight * (scale * x - mean) * rate + bias).

   Sums over rows are formed in `real` within chunks of rows, and those of the chunks are put together in double. */
#ifndef LSPE_NORM_H
#define LSPE_NORM_H

#include "tasks.h"

#define MOST_LAYERS 16 /* in one call (MOST_LAYERS in layout.py) */

#define CHUNK 128 /* rows */

struct norm {
    struct rows x, residual, out, gradient, x_gradient;
    struct line scale; /* [rows], or left out for ones */
    const real *weight, *bias, *mean, *rate;
    const real *mean_gradient, *mean_product; /* means over the rows of g and g * normalised x; zeros in evaluation */
    real *sums;                               /* [chunks, 2, width] */
    integer relu;
};

static inline integer chunks_of(integer rows) { return (rows + CHUNK - 1) / CHUNK; }

/* Mean, and sum of squared deviations from it, of each chunk: into `sums`. */
void find_moments(integer threads, const struct norm *work);

/* The same of many rows at once, one channel after the other, as they come together. */
struct moments {
    double rows, mean[WIDEST], squares[WIDEST];
};
/* Adds what was found of `rows` rows. */
void add_moments(struct moments *all, const real *sums, integer rows, integer width);

/* Mean, variance and rate [3, width] of a normalisation: those of the rows, if it goes by them, which then go into the
   running ones; else these. */
void settle_statistics(const struct normal *norm, const struct moments *moments, integer width, real *statistics);

void normalise(integer threads, const struct norm *work);

/* Sums over each chunk of the gradient g behind the ReLU, and of g * normalised x: into `sums`. */
void find_gradient_sums(integer threads, const struct norm *work);

struct gradient_sums {
    double gradient[WIDEST], product[WIDEST];
};
void add_gradient_sums(struct gradient_sums *all, const real *sums, integer rows, integer width);

/* Into x_gradient. */
void find_x_gradient(integer threads, const struct norm *work);

#endif
