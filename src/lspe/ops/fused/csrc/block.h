/* A block of targets of one graph, all sources, one head after the other. Matrices are [sources, row] with vectors over
   the targets, columns are [width, row]; both end in zeros. */
#ifndef LSPE_BLOCK_H
#define LSPE_BLOCK_H

#include "attention.h"

#define TARGETS 64 /* of a block at most: a multiple of LANES */

struct block {
    const struct attention *work;
    integer graph, first, n;               /* first node and number of nodes of the graph */
    integer target, targets, row;          /* targets [target, target + targets) of it, in whole vectors */
    integer wide, first_slot, slots;       /* channels of a head in whole eights; the edges that lead to the targets */
    integer *place;                        /* [slots]: where each edge stands in a matrix */
    real *factor;                          /* [slots]: factor of each edge, without its number */
    real *open;                            /* matrix: factor of pairs that are not edges, without its number; else 0 */
    real *of_edges;                        /* matrix: weights of edges with one head; zeros between heads */
    real *scores, *weights, *pulls;        /* matrices */
    real *query, *scaled, *gradient, *sum; /* columns */
    real *rows, *of_sources;               /* [row, wide], [sources, wide] */
    real *line;                            /* [row] */
};

/* Memory for the blocks of a graph; returns where `more` numbers stand behind it, or null where there is none. */
real *take_block(struct block *own, const struct attention *work, integer graph, integer more);
/* The next block of targets; false where there is none. */
_Bool next_block(struct block *own);
/* The columns of a head: queries of pairs that are not edges, as they are and times channel and rate. */
void read_queries(const struct block *own, integer head);
void read_columns(const struct block *own, const real *from, integer step, real *columns);
/* Puts the weights of edges with a head into their matrix, or zeros. */
void weigh_edges(const struct block *own, integer head);
void forget_edges(const struct block *own);

/* to [sources, row]: for each pair the sum over the channels of a target's column times a source's row. */
void multiply_channels(const struct block *own, const real *columns, const real *rows, integer step, real *to);
/* to [width, row]: for each channel and target the sum over the sources of matrix times row. */
void sum_sources(const struct block *own, const real *matrix, const real *rows, integer step, real *to);
/* to [sources, ..], rows `step` apart, gains for each channel the sum over the targets of matrix times column. */
void add_targets(const struct block *own, const real *matrix, const real *columns, real *to, integer step);

static const real LIMIT = 5, EPSILON = (real)1e-6;

static inline integer whole_vectors(integer count) { return (count + LANES - 1) / LANES * LANES; }

static inline vector clamped(vector score)
{
    score = where(score > LIMIT, all(LIMIT), score);
    return where(score < -LIMIT, all(-LIMIT), score);
}

static inline mask within_limits(vector score) { return (score >= -LIMIT) & (score <= LIMIT); }

#endif
