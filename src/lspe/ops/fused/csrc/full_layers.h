/* Layers of full attention one after the other.

   A batch is worked on in pieces of whole graphs. What is made of a piece is still in the caches when the next step
   needs it; pieces wait for each other only where a normalisation looks at all rows. */
#ifndef LSPE_FULL_LAYERS_H
#define LSPE_FULL_LAYERS_H

#include "attention.h"
#include "dropout.h"
#include "norm.h"
#include "product.h"
#include "room.h"

enum { OF_H, OF_P };
enum { E_MAP = 5, E_ADDED, MAPS_A_STREAM, O_MAP = 2 * MAPS_A_STREAM, O_P_MAP, W1_MAP, W2_MAP, ALL_MAPS };
enum { O_BIAS, O_P_BIAS, W1_BIAS, W2_BIAS, BIASES };
#define MOST_GROUPS 8 /* of pieces whose gradients of the maps are summed by one thread */

/* Maps that are one product of matrices: `parts` of them side by side, of an input of `segments` side by side, all
   padded. */
enum { ATTENTION, ATTENTION_P, O, O_P, W1, W2, EDGES, BUNDLES };
struct bundle {
    integer parts, first, every; /* the maps first, first + every, .. */
    integer outputs, segments, inputs;
    integer rows, columns; /* parts and segments, padded */
};

/* What a layer makes of a piece. Of rows of h and p those of h stand first. */
struct place {
    real *in;                     /* [nodes, streams, padded] */
    real *maps[2], *attention[2]; /* [nodes, PARTS, padded], [nodes, padded] */
    real *totals[2], *powers[2];  /* [nodes, heads], [edges, heads] */
    real *sum[2];                 /* [nodes, padded]: what the two normalisations are applied to */
    real *middle, *hidden, *turn; /* [nodes, padded] between them, [nodes, hidden], [nodes, padded] before tanh */
    real *statistics;             /* [2, 3, width]: mean, variance and rate of both normalisations */
};

/* What a group of pieces sums: gradients of the bundles but EDGES, each [rows, columns], of biases [BIASES, hidden], of
   the channels [streams, padded] and of the factors [streams, heads, 2]. */
struct partial {
    real *of[EDGES], *biases, *channel, *factor;
};

struct full {
    const struct full_layers *call;
    integer nodes, edges, width, padded, hidden, streams, graphs, pieces, groups, rows; /* rows of edges' features */
    integer layer;
    struct bundle bundle[BUNDLES];
    real *panels[MOST_LAYERS][BUNDLES], *biases[MOST_LAYERS]; /* biases [BIASES, hidden] */
    real *edge, *edge_maps;   /* [rows, padded], [rows, streams, padded] of one layer */
    real *channel;            /* [streams, padded] of one layer */
    real *sums[2], *means;    /* of the chunks of rows, piece after piece; [2, width] of one layer */
    real *statistics;         /* of a layer, where no memory keeps them */
    real *turns[2];           /* rows of h and p by turns, where no memory keeps them */
    real *gradient;           /* [nodes, streams, padded]: of what comes out of a layer or goes in */
    real *edge_maps_gradient; /* [groups, or 1 without kinds, rows, streams, padded] */
    real *edges_room;         /* for a bundle EDGES */
    real *partial;            /* of all groups */
    _Bool failed;
};

static inline integer padded_to_16(integer width) { return (width + 15) / 16 * 16; }

enum answer check_full(const struct full_layers *call, _Bool backward);
struct full full_of(const struct full_layers *call);
static inline _Bool keeps(const struct full *stack) { return stack->call->memory[0].at != NULL; }

/* A piece: graphs, nodes and slots, that is places in in_edge, [first, end) of each. */
struct piece {
    integer first_graph, end_graph, first, nodes, first_slot, slots;
};
struct piece piece_of(const struct full *stack, integer number);
typedef void (*piece_function)(struct full *stack, integer piece, integer threads);
enum answer for_each_piece(struct full *stack, piece_function each);
/* The pieces of a group in order, by one thread. */
enum answer for_each_group(struct full *stack, piece_function each);
static inline integer first_of_group(const struct full *stack, integer group)
{
    return group * stack->pieces / stack->groups;
}
integer group_with(const struct full *stack, integer piece);

/* The piece in the memory of its layer; in room for it alone. */
struct place place_of_piece(const struct full *stack, integer layer, const struct piece *piece);
struct place place_alone(const struct full *stack, const struct piece *piece, real *room);
integer size_alone(const struct full *stack, const struct piece *piece);

/* Numbers for all maps; they are brought into panels for the forward or the backward pass. */
integer panels_size(const struct full *stack);
void pack_panels(struct full *stack, real *room, _Bool backward);

/* Room for the features of edges and what the maps of a layer make of them; returns the end of what it takes. */
integer edge_features_size(const struct full *stack);
real *take_edge_features(struct full *stack, real *room);
/* What the maps of the layer make of the features of edges and of added pairs. */
void map_edge_features(struct full *stack);

integer parameters_count(const struct full *stack);
integer gradients_size(const struct full *stack);
struct partial partial_of(const struct full *stack, integer group);
/* From what the groups summed to the gradients of the layer's parameters but those of normalisations, of the features
   of edges and added pairs, and of the factors. */
void unpack_partial(struct full *stack, real *gradients);

struct attention attention_of(const struct full *stack, const struct piece *piece, const struct place *place,
                              integer stream);
/* False where there is no memory. */
_Bool attend_to_piece(integer threads, const struct attention *work, const struct piece *piece, _Bool backward);
/* x, or what dropout leaves of it in `room`. */
real *dropped(const struct full *stack, integer threads, integer seed, const struct piece *piece, struct rows x,
              real *room);
struct norm norm_at(const struct full *stack, integer layer, integer which, integer number, struct rows x,
                    real *statistics);
static inline real *sums_of_piece(const struct full *stack, integer which, integer number, integer first)
{
    return stack->sums[which] + (first / CHUNK + number) * 2 * stack->width;
}
static inline integer sums_size(const struct full *stack)
{
    return in_lines((stack->nodes / CHUNK + stack->pieces + 1) * 2 * stack->width);
}

static inline struct matrix matrix_of(const real *at, integer row) { return (struct matrix){at, row}; }
/* Rows of h or p within rows of both. */
static inline struct rows within(const struct full *stack, real *rows, integer stream, integer nodes)
{
    return (struct rows){rows + stream * stack->padded, nodes, stack->width, stack->streams * stack->padded};
}
static inline struct rows rows_of(real *at, integer count, integer width, integer step)
{
    return (struct rows){at, count, width, step};
}
static inline void clear_padding(struct rows rows)
{
    const integer padding = padded_to_16(rows.width) - rows.width;
    for (integer row = 0; row < rows.count && padding > 0; row++)
        memset(row_at(rows, row) + rows.width, 0, (size_t)padding * sizeof(real));
}

#endif
