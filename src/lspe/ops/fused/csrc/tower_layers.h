/* PNA layers with towers, one after the other. Nodes stand in the order of their degrees from the first layer to the
   last; a row of streams holds h and, behind it, p. */
#ifndef LSPE_TOWER_LAYERS_H
#define LSPE_TOWER_LAYERS_H

#include "dropout.h"
#include "norm.h"
#include "principal.h"

enum { H, P };

static const real SLOPE = (real)0.01; /* of the leaky ReLU */

/* What a layer computes: the streams that go in; of each stream what sources give, the update, and what the mixing map
   makes of it behind normalisation or as it is; mean, variance and rate of the normalisation. */
struct tower_place {
    real *streams, *sources[2], *updates[2], *mixed[2], *statistics;
};

struct tower_stack {
    const struct tower_layers *call;
    struct order order;
    integer nodes, width, streams, values, edge_dim, wide_edge;
    integer padded, row;      /* of a stream's rows of numbers, and of the streams together */
    integer layer;
    struct tower_place place; /* of this layer */
    real *next;               /* the streams that come out of it */
    struct principal work[2]; /* its aggregations */
    real *size_scale, *sums;  /* [nodes], and those of chunks of rows */
    real *table, *values_at[2], *edge_maps;
    real *mix;                /* [streams, width, vectors] in panels, then the biases [streams, vectors] */
    real *gradient;           /* of the streams, [nodes, row] */
    real *normal_gradient, *updates_gradient[2]; /* of what is normalised, and before */
    real *mix_partial, *means, *table_gradient;
    _Bool failed;
};

static inline integer vectors_of(const struct tower_stack *stack) { return whole_vectors(stack->width); }
static inline integer sums_size(const struct tower_stack *stack) { return chunks_of(stack->nodes) * 2 * stack->width; }

/* Checks a call. `backward` needs more than forward. */
enum answer check_tower_layers(const struct tower_layers *call, _Bool backward);
void make_tower_stack(const struct tower_layers *call, struct tower_stack *stack);
integer tower_parameters(const struct tower_layers *call, integer layer);

/* Room that both directions take, and what they begin with: the order, the table, the scale of the nodes. */
integer common_room(const struct tower_stack *stack);
enum answer begin_tower_stack(struct tower_stack *stack, _Bool backward, real *room);
/* Goes to a layer: its place, its maps, and what its edges give. `backward` takes the mixing maps the other way. */
void go_to_layer(struct tower_stack *stack, integer layer, _Bool backward);

/* Rows of streams in the order of the batch to those of the stack, and back. */
void take_streams_in(const struct tower_stack *stack, const struct rows *from, real *to);
void give_streams_out(const struct tower_stack *stack, const real *from, const struct rows *to);

/* Some rows of an array of the stack. */
static inline struct rows node_rows(const struct tower_stack *stack, real *at, integer first, integer count)
{
    return (struct rows){at + first * stack->padded, count, stack->width, stack->padded};
}
/* The normalisation of some rows of the updates of h. */
struct norm tower_norm(const struct tower_stack *stack, integer first, integer count);
/* What the mixing map of a stream is applied to, of some rows: the rows themselves, or others in `room`. */
struct rows before_mixing(const struct tower_stack *stack, integer stream, integer first, integer count, real *room);
/* Dropout of rows from number `first` on, of a stream. */
void drop_nodes(const struct tower_stack *stack, integer stream, integer first, struct rows x, struct rows out);

#endif
