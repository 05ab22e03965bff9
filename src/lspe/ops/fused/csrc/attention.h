/* Attention over all pairs of nodes of each graph, and its gradients.

   A row of `maps` has five parts, each `padded` numbers long: q, k, v, and q and k of the pairs that are not edges.
   Head h has the channels [h * width, (h + 1) * width) of each. The weight of a pair j -> i is f_ij exp(clamp(score)).

   Pairs are worked on in blocks of some targets with all sources of their graph, one head after the other: matrices
   [sources, targets], whose vectors go over the targets. Edges are few: what they weigh is computed apart and added. */
#ifndef LSPE_ATTENTION_H
#define LSPE_ATTENTION_H

#include "tasks.h"

enum { Q, K, V, Q_ADDED, K_ADDED, PARTS };

/* A number for all pairs, times a matrix [graphs, side, side] with the target first where there is one. */
struct factor {
    real number;
    const real *matrix;
};

/* Nodes and edges are counted from the first of the batch; of what belongs to nodes a part may be given, which begins
   with `first_node`, and `powers` then begin with the first edge that leads to it. */
struct attention {
    integer first_node, heads, width, padded, side;
    integer edge_step; /* how far apart the rows of `edges` are */
    const integer *graph_start, *source, *in_start, *in_edge;
    const integer *kind;      /* [edges]: the row of each edge in `edges`, or null: each has its own */
    const real *maps, *edges; /* [nodes, PARTS, padded], [.., edge_step] */
    const real *channel;      /* [heads * width]: what the shared embedding of added pairs multiplies q by */
    struct factor real_factor, added_factor;
    real *powers; /* [edges in the order of in_edge, heads]: exp(clamp(score)), negative where the score is clamped */
    real *totals; /* [nodes, heads]: sums of the weights of a target */
    real *out;    /* [nodes, padded] */

    const real *gradient;   /* of out */
    real *maps_gradient;
    real *edges_gradient;   /* of `edges`: added to what is there */
    real *channel_gradient; /* [heads * width]: added to what is there */
    real *factor_gradient;  /* [heads, 2], of the two numbers: added to what is there */
};

/* The heads [first, end) of one graph. False where there is no memory. */
_Bool attend(const struct attention *work, integer graph, integer first, integer end);
_Bool attend_backward(const struct attention *work, integer graph, integer first, integer end);

static inline real score_rate(const struct attention *work) { return 1 / (real)sqrt((double)work->width); }

static inline const real *part(const struct attention *work, integer node, integer which)
{
    return work->maps + ((node - work->first_node) * PARTS + which) * work->padded;
}

static inline real *part_gradient(const struct attention *work, integer node, integer which)
{
    return work->maps_gradient + ((node - work->first_node) * PARTS + which) * work->padded;
}

/* The first power of a slot, that is of a place in in_edge. */
static inline real *powers_at(const struct attention *work, integer slot)
{
    return work->powers + (slot - work->in_start[work->first_node]) * work->heads;
}

/* Where the row of an edge begins in `edges`. */
static inline integer edge_row(const struct attention *work, integer edge)
{
    return (work->kind != NULL ? work->kind[edge] : edge) * work->edge_step;
}

#endif
