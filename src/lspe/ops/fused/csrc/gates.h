/* The gates of GatedGCN in one piece of a batch, which no edge leaves. Nodes and edges are counted from the first of the
   piece; rows are `padded` numbers long, a multiple of LANES, of which the first `width` matter.

   What the maps make of a node is a row of parts, each `width` numbers behind the one before: what the gate gets from a
   target, what it gets from a source, what a node gives itself and its neighbours (the values), and the same of the
   second stream, values first. The first input h makes the first four parts, the second input p all from the third on.
   Their gradients stand in such a row, too. The last vector of a part reaches into the next one, or behind the row. */
#ifndef LSPE_GATES_H
#define LSPE_GATES_H

#include "tasks.h"

enum { H, E, P }; /* streams */
enum { AT_TARGET, AT_SOURCE, SELF, VALUE, SECOND_VALUE, SECOND_SELF };
static inline integer parts_of(integer streams) { return 2 + 2 * streams; }
static inline integer padded_width(integer width) { return (width + 15) / 16 * 16; }
static inline integer row_of_parts(integer width, integer streams)
{
    return padded_width(parts_of(streams) * width + 15); /* one part or four, in whole vectors, may end behind the last */
}

enum { MEAN, RATE, WEIGHT, BIAS }; /* of a normalisation */

/* What closes a layer in the same pass over the edges, where normalisations go by running statistics and nothing is
   dropped: out = in + relu(BN(scale * sum)) of h, the same of e, without a scale, and in + tanh(sum) of p. What is behind
   the width of a row does not matter. */
struct closing {
    const real *norm[2]; /* [4, padded] of h and e: mean, rate, weight, bias */
    const real *scale;   /* [nodes], or left out for ones */
    const real *in[3];   /* left out where there are no residuals */
    real *out[3];
};

struct gate {
    integer first_node, nodes, first_edge, edges, width, padded, streams;
    struct edges all;       /* of the whole batch */
    real *node;             /* [nodes, row of parts] */
    real *logits, *sums[2]; /* logits begin as the edges' part of them */
    const struct closing *closing; /* or left out */

    const real *values, *sums_gradient[2]; /* values [nodes, streams, padded], as they were kept */
    real *node_gradient;                   /* [nodes, row of parts] */
    real *edge_gradient; /* of the logits: begins as what comes from elsewhere */
    real *gates;         /* [edges], room */
    real *pull;          /* [nodes, streams], room: gradient of the sum of gated values */
};

/* From node and logits to the whole logits and the sums, or to what comes out of the layer. */
void gates_forward(integer threads, const struct gate *piece);

/* From the gradients of sums and logits to those of node and of the edges' part of the logits. */
void gates_backward(integer threads, const struct gate *piece);

#endif
