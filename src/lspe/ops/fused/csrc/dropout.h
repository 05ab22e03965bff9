/* Dropout: out = x / (1 - p) where a number drawn for its place is not below p, else 0 (NaN stays NaN).

   The number is a hash of the seed and the place alone: results are the same bits for every number of threads, and the
   backward pass draws them again instead of keeping them. */
#ifndef LSPE_DROPOUT_H
#define LSPE_DROPOUT_H

#include "tasks.h"

/* The first row of x and out is number `first_row`; out may be x itself. */
void drop_rows(integer threads, uint64_t seed, double p, integer first_row, struct rows x, struct rows out);
/* The same, and the rows of `residual` added. */
void drop_and_add(integer threads, uint64_t seed, double p, integer first_row, struct rows x, struct rows residual,
                  struct rows out);

#endif
