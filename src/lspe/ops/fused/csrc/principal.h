/* PNA's aggregation: messages m_ij = a_i + b_j + c_ij, their aggregates over the in-edges of each node, and the update
   by a node itself and its aggregates.

   What scales the aggregates of a node depends on its in-degree alone, so nodes stand in the order of their degrees, and
   a segment of them has one map of the aggregates, the scalers in it, instead of one for each scaler. What a target adds
   to its messages, a, shifts mean, maximum and minimum by itself and the sum by degree times itself: the map of a
   segment's nodes to their update has that in it, and only b + c are aggregated.

   Towers of `width` channels stand side by side in rows of `padded` numbers. The results of a tower's products are whole
   vectors: what they hold behind its channels is written over by the next tower, and rows are long enough for the last.
   Segments are worked on in groups, each of which sums gradients for itself: sums do not depend on the number of
   threads. */
#ifndef LSPE_PRINCIPAL_H
#define LSPE_PRINCIPAL_H

#include "product.h"
#include "room.h"

enum { MEAN, SUM, MAX, MIN, STD, KINDS };

#define BLOCK 96      /* nodes of a segment, at most */
#define MOST_GROUPS 8 /* of segments */

static inline integer whole_vectors(integer count) { return (count + LANES - 1) / LANES * LANES; }
static inline integer smaller(integer one, integer other) { return one < other ? one : other; }
static inline void clear(real *at, integer count) { memset(at, 0, (size_t)count * sizeof(real)); }

/* The nodes by in-degree, and their messages. Nodes and messages are counted as they stand here. */
struct order {
    integer nodes, messages, segments, groups;
    integer *node;              /* [nodes]: which node of the batch stands here */
    integer *start;             /* [nodes + 1]: the first of the messages it gets */
    integer *source, *value;    /* [messages]: who sends it, and the row of what its edge gives */
    integer *sent_start, *sent; /* [nodes + 1], [messages]: those that a node sends; for the backward pass */
    integer *segment;           /* [segments + 1]: first nodes; those of a segment have one degree and one scale */
};

/* Looks at the edges by target, at `kind`, which says of each edge which of so many rows of values is its own (or is left
   out, and each has one), and at the kinds of aggregates, each at most once. Then at the edges by source. */
enum answer check_messages(const struct edges *edges, struct indices kind, integer rows, struct indices kinds);
enum answer check_sent(const struct edges *edges);

/* Numbers of `integer` that it takes. */
integer order_size(const struct edges *edges);
/* WRONG_INDICES where an edge is not once among those by target. */
enum answer find_order(const struct edges *edges, struct indices kind, struct rows scale, _Bool backward, integer *room,
                       struct order *order);
static inline integer degree_of(const struct order *order, integer node)
{
    return order->start[node + 1] - order->start[node];
}
static inline integer group_begin(const struct order *order, integer group)
{
    return group * order->segments / order->groups;
}

/* The maps of an aggregation as they are given, or where their gradients go. */
struct tower_maps {
    struct rows message, update;
    struct line message_bias, update_bias;
};

struct principal {
    const struct order *order;
    struct tower_maps maps;
    struct rows scale; /* of the batch's nodes */
    const integer *kinds;
    integer place[KINDS]; /* which of the aggregators a kind is, or -1 */
    integer towers, inputs, width, aggregators, scalers;
    integer channels, vectors, padded; /* of all towers: in all, in whole vectors, and with room for the last tower */
    integer wide, wide_inputs;         /* width and inputs in whole vectors */

    struct matrix x;          /* [nodes, towers * inputs], readable up to `padded_inputs` */
    struct matrix values;     /* what edges give, readable in whole vectors */
    real *sources, *out;      /* [nodes, padded] */
    struct matrix gradient;   /* of out, readable up to `padded` */
    real *x_gradient;         /* [nodes, towers * inputs] in rows x_gradient_row apart; added to what is there */
    integer x_gradient_row;
    real *messages_gradient;  /* [messages, vectors] */
    real *values_gradient;    /* [groups, rows of values, vectors], or [messages, vectors] where each has its own */
    integer values_count;     /* 0: each message has its own */

    real *packed;             /* the maps in panels, see principal_maps.c */
    real *partial;            /* [groups, partial_size] */
    integer partial_size;
    _Bool *failed;
};

/* The sizes of an aggregation from its maps. */
struct principal aggregation_of(const struct order *order, struct tower_maps maps, struct rows scale,
                                struct indices kinds, integer towers, integer inputs);
/* How long rows of x and of its gradient have to be. */
static inline integer padded_inputs(const struct principal *work)
{
    return whole_vectors((work->towers - 1) * work->inputs + work->wide_inputs);
}
static inline integer aggregates_row(const struct principal *work) { return work->aggregators * work->padded + LANES; }

/* From x to sources, then from sources to out. */
void map_sources(integer threads, const struct principal *work);
void aggregate_and_update(integer threads, const struct principal *work);
/* From the gradient of out to those of the messages and values, then to that of x; and of the maps, into `partial`. */
void gradient_to_messages(integer threads, const struct principal *work);
void gradient_to_x(integer threads, const struct principal *work);

/* Brings the maps into panels, into `packed` of so many numbers. */
integer packed_size(const struct principal *work);
void pack_towers(const struct principal *work);
const real *map_of_sources(const struct principal *work, integer tower);  /* [inputs, wide] */
const real *back_to_sources(const struct principal *work, integer tower); /* [width, wide_inputs] */

/* The maps of a segment. Of each tower: of the aggregates, [aggregators, width, wide] in panels of one aggregator each;
   of what a target adds, [width, wide]; of the node itself, [inputs, wide] in panels, and its bias [wide]. Backward:
   [aggregators, width, wide] for the gradient of the aggregates, and [width, wide_inputs] in panels for that of x. */
enum direction { FORWARD, TO_MESSAGES, TO_X };
struct segment_maps {
    real *of_aggregates, *of_target, *own, *bias, *back_to_aggregates, *back_to_x, *room;
};
integer segment_maps_size(const struct principal *work);
struct segment_maps segment_maps_in(const struct principal *work, real *room);
/* Whether two segments have the same maps. */
_Bool same_maps(const struct principal *work, integer one, integer other);
/* Those that a direction needs. */
void find_segment_maps(const struct principal *work, integer segment, enum direction direction,
                       const struct segment_maps *maps);

/* Gradients of a segment's maps, of each tower: of those of the aggregates, [aggregators, width, wide]; of that of the
   node itself, transposed, [width, wide_inputs]; of its bias, [wide]. */
struct segment_sums {
    real *of_aggregates, *own, *bias, *room;
};
integer segment_sums_size(const struct principal *work);
struct segment_sums segment_sums_in(const struct principal *work, real *room);
void clear_segment_sums(const struct segment_sums *sums);
/* Adds them to those of a group's towers. */
void add_segment_sums(const struct principal *work, integer group, integer segment, const struct segment_maps *maps,
                      const struct segment_sums *sums);

/* Numbers for `values_gradient`, and the groups' added up into the first. */
integer values_gradient_size(const struct principal *work, integer messages);
void add_values_gradients(const struct principal *work);

/* Where the gradients of a group's maps are summed: those of the update [scalers, aggregators, width, wide] of each
   tower, then of what sources, target and the node itself are multiplied by, [width, wide_inputs] each, then both
   biases, [wide]. */
enum { OF_SOURCE, OF_TARGET, OF_SELF, PARTS };
integer partial_size(const struct principal *work);
static inline real *update_sums(const struct principal *work, integer group, integer tower)
{
    const integer size = work->scalers * work->aggregators * work->width * work->wide;
    return work->partial + group * work->partial_size + tower * size;
}
static inline real *part_sums(const struct principal *work, integer group, integer tower, integer part)
{
    const integer before = work->towers * work->scalers * work->aggregators * work->width * work->wide;
    return work->partial + group * work->partial_size + before
           + (tower * PARTS + part) * work->width * work->wide_inputs;
}
static inline real *bias_sums(const struct principal *work, integer group, integer tower)
{
    return part_sums(work, group, work->towers, 0) + tower * 2 * work->wide;
}
/* Adds the groups' up and puts them where they belong. */
void unpack_tower_gradients(const struct principal *work, struct tower_maps gradients);

/* What is aggregated of the messages of the nodes from `first` on: rows of aggregates. */
void aggregate(const struct principal *work, integer first, integer count, real *aggregates);
/* From the gradients of the aggregates to those of messages and values. */
void aggregate_backward(const struct principal *work, integer group, integer first, integer count,
                        const real *of_aggregates);

#endif
