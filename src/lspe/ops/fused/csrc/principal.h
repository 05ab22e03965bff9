/* PNA's aggregation: messages m_ij = a_i + b_j + c_ij, their aggregates over the in-edges of each node, and the update
   by a node itself and its aggregates.

   Towers of `width` channels stand side by side in rows of `padded` numbers; c, what an edge gives, comes in such rows,
   b, what a source gives, is kept in them. The maps of a tower are products of their own, of columns padded to whole
   vectors: their results are put together from there. Nodes are worked on in blocks, whose gradients of the maps are
   summed group after group, so that the sums do not depend on the number of threads. */
#ifndef LSPE_PRINCIPAL_H
#define LSPE_PRINCIPAL_H

#include "product.h"
#include "room.h"

enum { MEAN, SUM, MAX, MIN, STD, KINDS };
enum { OF_SOURCE, OF_TARGET, OF_SELF, PARTS }; /* what a node gives the messages it sends and gets, and its update */

#define BLOCK 96      /* nodes */
#define MOST_GROUPS 8 /* of blocks */

static inline integer whole_vectors(integer count) { return (count + LANES - 1) / LANES * LANES; }

struct principal {
    const struct aggregation *call;
    integer nodes, towers, inputs, width, padded, scalers, groups;
    integer aggregates;                              /* of a tower, kinds * width */
    integer wide, wide_inputs, wide_aggregates;      /* width, inputs, aggregates in whole vectors */
    real *sources, *own, *bias, *update;             /* forward, of each tower: [inputs, wide], [inputs, 2 * wide] for
                                                        target and self, [2 * wide], [aggregates, scalers * wide] */
    real *of_update, *of_parts;                      /* backward: [scalers * wide, wide_aggregates],
                                                        [PARTS * wide, wide_inputs] */
    real *targets_gradient;                          /* [nodes, padded] */
    real *partial;                                   /* [groups, partial_size] */
    integer partial_size;
    _Bool *failed;
};

/* Numbers that packing takes; it brings the maps of all towers into panels. */
integer forward_maps_size(const struct principal *work);
integer backward_maps_size(const struct principal *work);
void pack_forward_maps(struct principal *work, real *room);
void pack_backward_maps(struct principal *work, real *room);

/* Where the gradients of a group's maps are summed: those of the update, of the parts, and of the bias of the parts. */
integer principal_partial_size(const struct principal *work);
static inline real *update_sums(const struct principal *work, integer group, integer tower)
{
    const integer size = work->aggregates * work->scalers * work->wide;
    return work->partial + group * work->partial_size + tower * size;
}
static inline real *part_sums(const struct principal *work, integer group, integer tower)
{
    const integer before = work->towers * work->aggregates * work->scalers * work->wide;
    return work->partial + group * work->partial_size + before + tower * (work->inputs + 1) * PARTS * work->wide;
}
static inline real *bias_sums(const struct principal *work, integer group, integer tower)
{
    return part_sums(work, group, tower) + work->inputs * PARTS * work->wide;
}
/* Adds them up and puts them where they belong. */
void unpack_map_gradients(const struct principal *work);

/* The aggregates of a node, of its target's part of the messages. */
void aggregate_node(const struct principal *work, integer node, const real *target);
/* From the gradients of its aggregates, tower by tower `row` apart, to those of its messages and of its part of them. */
void aggregate_node_backward(const struct principal *work, integer node, const real *of_aggregates, integer row,
                             real *of_target);

#endif
