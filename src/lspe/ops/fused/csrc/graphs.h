/* Small graphs as dense matrices of doubles. */
#ifndef LSPE_GRAPHS_H
#define LSPE_GRAPHS_H

#include "real.h"

static inline integer graphs_of(const struct small_graphs *graphs) { return graphs->node_start.count - 1; }
static inline integer nodes_of(const struct small_graphs *graphs, integer number)
{
    return graphs->node_start.at[number + 1] - graphs->node_start.at[number];
}

/* Sizes fit, and the edges of each graph begin and end in it. */
static inline enum answer check_graphs(const struct small_graphs *graphs, integer nodes)
{
    const integer count = graphs_of(graphs), edges = graphs->source.count;
    NEED_SIZES(count >= 0 && graphs->largest >= 0 && graphs->largest <= WIDEST);
    NEED_SIZES(sized_indices(graphs->edge_start, count + 1) && sized_indices(graphs->source, edges));
    NEED_SIZES(sized_indices(graphs->target, edges) && (graphs->weight == NULL || graphs->weights == edges));
    NEED_INDICES(rises_to(graphs->node_start, nodes) && rises_to(graphs->edge_start, edges));
    for (integer number = 0; number < count; number++) {
        const integer first = graphs->node_start.at[number], end = graphs->node_start.at[number + 1];
        for (integer edge = graphs->edge_start.at[number]; edge < graphs->edge_start.at[number + 1]; edge++) {
            const integer source = graphs->source.at[edge], target = graphs->target.at[edge];
            NEED_INDICES(source >= first && source < end && target >= first && target < end);
        }
    }
    return DONE;
}

/* matrix [n, row]: the weights of the edges, parallel ones added up. */
static inline void read_adjacency(const struct small_graphs *graphs, integer number, double *matrix, integer row)
{
    const integer first = graphs->node_start.at[number];
    memset(matrix, 0, (size_t)(nodes_of(graphs, number) * row) * sizeof(double));
    for (integer edge = graphs->edge_start.at[number]; edge < graphs->edge_start.at[number + 1]; edge++)
        matrix[(graphs->source.at[edge] - first) * row + graphs->target.at[edge] - first]
            += graphs->weight ? graphs->weight[edge] : 1;
}

/* The most nodes of a graph that is served among the graphs [begin, end). */
static inline integer most_nodes(const struct small_graphs *graphs, integer begin, integer end)
{
    integer most = 0;
    for (integer number = begin; number < end; number++) {
        const integer nodes = nodes_of(graphs, number);
        most = nodes <= graphs->largest && nodes > most ? nodes : most;
    }
    return most;
}

#endif
