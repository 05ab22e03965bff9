/* GatedGCN layers one after the other.

   A batch is worked on in pieces that no edge leaves. What is made of a piece is still in the caches when the next step
   needs it; only normalisations look at all rows, so that pieces wait for each other there, and where they go by running
   statistics each piece goes through all layers at once. */
#ifndef LSPE_LAYERS_H
#define LSPE_LAYERS_H

#include "dropout.h"
#include "gates.h"
#include "norm.h"
#include "product.h"
#include "room.h"

enum { B1, B2, A1, A2, B3, C1, C2 };
#define MOST_GROUPS 8 /* of pieces whose gradients of the maps are summed by one thread */

/* The maps of a layer in panels, as the forward or as the backward pass multiplies by them, and the bias of a row of
   parts, then of an edge. */
struct maps {
    real *of[3], *bias;
};

/* What a layer computes: the streams that go in, what the normalisations and tanh are applied to, the values; of both
   normalisations mean, variance and rate. */
struct place {
    struct rows in[3], sum[3];
    real *values, *statistics;
};

struct stack {
    const struct gated_layers *call;
    integer nodes, edges, width, padded, streams, pieces, groups;
    const integer *node_cuts, *edge_cuts; /* [pieces + 1]: first nodes, first edges */
    struct maps maps[MOST_LAYERS];
    struct rows mapped[2]; /* what the first layer's maps make of the tables of h and e, where there are some */
    real *sums[2];    /* of the chunks of rows of h and e, piece after piece */
    real *means[2];   /* [2, width] of h and e: means of the gradient, and of its product with the normalised rows */
    real *statistics; /* [count, 6, width] of the layers, where no memory keeps them */
    real *closings;   /* [count, 2, 4, padded]: what the normalisations of h and e are made of (struct closing) */
    real *partial;    /* [groups, partial_size]: gradients of the maps, then of the bias of a row of maps */
    integer layer, partial_size;
    _Bool failed;
};

static inline _Bool drops_branch(const struct gated_layer *layer) { return layer->dropout > 0 && layer->drop_branch; }

static inline _Bool keeps_memory(const struct gated_layers *call) { return call->memory[0].at != NULL; }

/* Checks a call. `backward` needs more than forward. */
enum answer check_layers(const struct gated_layers *call, _Bool backward);
struct stack stack_of(const struct gated_layers *call);

/* Numbers that `pack` takes for all layers; it brings the maps of all into panels. */
integer maps_size(const struct stack *stack);
void pack_forward(struct stack *stack, real *room);
void pack_backward(struct stack *stack, real *room);
/* Some columns of the maps: out = bias + x maps, or added to what is there where the bias is left out. */
void map_rows(integer threads, struct rows x, const real *maps, const real *bias, struct rows out);
/* All maps of h or e of a piece. */
void map_piece(const struct stack *stack, integer layer, integer piece, integer threads, integer stream, struct rows x,
               struct rows out);
/* The first layer's maps of the tables in which h and e were looked up, and the numbers that they take. */
integer tables_size(const struct stack *stack);
void map_tables(struct stack *stack, real *room);
/* Adds the groups' gradients of the maps of a layer and puts them where they belong. */
void unpack_gradients(const struct stack *stack, integer layer, real *gradients);
integer parameters_of(integer width, integer streams);

/* Calls for each piece, side by side where there are enough of them for all threads; else all threads on one piece
   after the other. Each call gets the number of threads it may use. */
typedef void (*piece_function)(struct stack *stack, integer piece, integer threads);
enum answer for_pieces(struct stack *stack, piece_function each);
/* The same, group after group: the pieces of a group in order, by one thread. */
enum answer for_groups(struct stack *stack, piece_function each);
static inline integer group_begin(const struct stack *stack, integer group)
{
    return group * stack->pieces / stack->groups;
}

struct place place_of(const struct stack *stack, integer layer);
static inline struct rows some_rows(struct rows rows, integer first, integer count)
{
    return (struct rows){rows.at == NULL ? NULL : row_at(rows, first), count, rows.width, rows.step};
}
static inline integer stream_rows(const struct stack *stack, integer stream)
{
    return stream == E ? stack->edges : stack->nodes;
}
static inline const integer *cuts_of(const struct stack *stack, integer stream)
{
    return stream == E ? stack->edge_cuts : stack->node_cuts;
}
/* The rows of a piece. */
static inline struct rows piece_rows(const struct stack *stack, struct rows rows, integer stream, integer piece)
{
    const integer *cuts = cuts_of(stack, stream);
    return some_rows(rows, cuts[piece], cuts[piece + 1] - cuts[piece]);
}
/* Where the sums of a piece's chunks stand: each piece begins a chunk. */
static inline real *piece_sums(const struct stack *stack, integer stream, integer piece)
{
    return stack->sums[stream] + (cuts_of(stack, stream)[piece] / CHUNK + piece) * 2 * stack->width;
}
static inline integer sums_size(const struct stack *stack, integer stream)
{
    return (stream_rows(stack, stream) / CHUNK + stack->pieces + 1) * 2 * stack->width;
}

/* The normalisation of h or e in a piece, by the statistics in `statistics` [6, width]. */
struct norm norm_of(const struct stack *stack, integer layer, integer stream, integer piece, struct rows x,
                    real *statistics);

#endif
