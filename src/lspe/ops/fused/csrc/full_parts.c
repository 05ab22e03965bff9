/* The parts of a layer of full attention as their own sources take them. */
#include "full_layers.h"

struct attention attention_of(const struct full *stack, const struct piece *piece, const struct place *place,
                              integer stream)
{
    const struct full_layers *call = stack->call;
    const struct full_layer *layer = &call->layer[stack->layer];
    return (struct attention){
        .first_node = piece->first, .heads = call->heads, .width = stack->width / call->heads, .padded = stack->padded,
        .side = layer->factor_matrix[0].width, .edge_step = stack->streams * stack->padded,
        .graph_start = call->graph_start.at, .source = call->edges.source.at, .in_start = call->edges.in_start.at,
        .in_edge = call->edges.in_edge.at, .kind = call->kind.at, .maps = place->maps[stream],
        .edges = stack->edge_maps + stream * stack->padded, .channel = stack->channel + stream * stack->padded,
        .real_factor = {(real)layer->factor[0], layer->factor_matrix[0].at},
        .added_factor = {(real)layer->factor[1], layer->factor_matrix[1].at}, .powers = place->powers[stream],
        .totals = place->totals[stream], .out = place->attention[stream]};
}

struct attending_piece {
    const struct attention *work;
    const struct piece *piece;
    integer heads_a_task;
    _Bool backward, failed;
};

static void heads_task(void *argument, integer number)
{
    struct attending_piece *run = argument;
    const integer first = number * run->heads_a_task, end = first + run->heads_a_task;
    for (integer graph = run->piece->first_graph; graph < run->piece->end_graph; graph++)
        if (!(run->backward ? attend_backward : attend)(run->work, graph, first, end))
            run->failed = 1;
}

/* Heads are apart in all that is summed over graphs, so that each may have a thread of its own. */
_Bool attend_to_piece(integer threads, const struct attention *work, const struct piece *piece, _Bool backward)
{
    struct attending_piece run = {work, piece, threads > 1 ? 1 : work->heads, backward, 0};
    run_tasks(threads, work->heads / run.heads_a_task, heads_task, &run);
    return !run.failed;
}

struct norm norm_at(const struct full *stack, integer layer, integer which, integer number, struct rows x,
                    real *statistics)
{
    const struct normal *norm = &stack->call->layer[layer].norm[which];
    struct norm work = {.x = x, .weight = norm->weight.at, .bias = norm->bias.at,
                        .mean = statistics + 3 * which * stack->width,
                        .rate = statistics + (3 * which + 2) * stack->width,
                        .sums = sums_of_piece(stack, which, number, piece_of(stack, number).first)};
    if (stack->means != NULL) {
        work.mean_gradient = stack->means;
        work.mean_product = stack->means + stack->width;
    }
    return work;
}

real *dropped(const struct full *stack, integer threads, integer seed, const struct piece *piece, struct rows x,
              real *room)
{
    const struct full_layer *layer = &stack->call->layer[stack->layer];
    if (layer->dropout == 0)
        return x.at;
    const struct rows out = rows_of(room, x.count, x.width, x.step);
    drop_rows(threads, layer->seed[seed], layer->dropout, piece->first, x, out);
    clear_padding(out);
    return room;
}
