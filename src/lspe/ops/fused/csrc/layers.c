/* What the forward and the backward pass of GatedGCN layers share. */
#include "layers.h"

static inline integer streams_of(const struct gated_layers *call) { return call->positions ? 2 : 1; }

static integer layer_size(integer nodes, integer edges, integer width, integer streams)
{
    return (3 * streams * nodes + 2 * edges + 6) * padded_width(width);
}

integer parameters_of(integer width, integer streams)
{
    const integer maps = streams == 2 ? 9 : 5, biases = streams == 2 ? 7 : 5; /* A1 and A2 see h and p */
    return (maps * width + biases + 4) * width;
}

static _Bool is_padded(struct rows rows, integer count, integer width)
{
    return sized(rows, count, width) && rows.step == padded_width(width);
}

static enum answer check_layer(const struct gated_layer *layer, integer width, integer streams)
{
    NEED_SIZES(layer->dropout >= 0 && layer->dropout <= 1);
    for (integer m = 0; m < (streams == 2 ? 7 : 5); m++) {
        NEED_SIZES(sized(layer->map[m], width, streams == 2 && (m == A1 || m == A2) ? 2 * width : width));
        NEED_SIZES(sized_line(layer->bias[m], width));
    }
    for (integer n = 0; n < 2; n++) {
        const struct normal *norm = &layer->norm[n];
        NEED_SIZES(sized_line(norm->weight, width) && sized_line(norm->bias, width));
        NEED_SIZES(sized_line(norm->running_mean, width) && sized_line(norm->running_variance, width));
    }
    return DONE;
}

/* Edges that lead to (or away from) the nodes of a piece are edges of the piece, and begin (or end) in it. */
static _Bool stays_inside(struct indices start, struct indices edge, struct indices other_end, const integer *nodes,
                          const integer *edges)
{
    for (integer slot = start.at[nodes[0]]; slot < start.at[nodes[1]]; slot++) {
        const integer number = edge.at[slot];
        if (number < edges[0] || number >= edges[1])
            return 0;
        if (other_end.at[number] < nodes[0] || other_end.at[number] >= nodes[1])
            return 0;
    }
    return 1;
}

static enum answer check_indices(const struct gated_layers *call, struct indices start, struct indices edge,
                                 struct indices other_end)
{
    const integer pieces = call->cuts.count / 2 - 1, edges = call->edges.source.count;
    const struct indices of_nodes = {call->cuts.at, pieces + 1}, of_edges = {call->cuts.at + pieces + 1, pieces + 1};
    NEED_INDICES(rises_to(of_nodes, call->edges.nodes) && rises_to(of_edges, edges) && rises_to(start, edges));
    for (integer piece = 0; piece < pieces; piece++)
        NEED_INDICES(stays_inside(start, edge, other_end, of_nodes.at + piece, of_edges.at + piece));
    return DONE;
}

enum answer check_layers(const struct gated_layers *call, _Bool backward)
{
    const struct edges *edges = &call->edges;
    const integer nodes = edges->nodes, count = edges->source.count, width = call->layer[0].map[0].count;
    const integer streams = streams_of(call);
    NEED_SIZES(call->threads >= 1 && call->count >= 1 && call->count <= MOST_LAYERS && nodes >= 0);
    NEED_SIZES(width >= LANES && width <= WIDEST);
    NEED_SIZES(sized_indices(edges->source, count) && sized_indices(edges->target, count));
    NEED_SIZES(sized_indices(edges->in_start, nodes + 1) && sized_indices(edges->in_edge, count));
    NEED_SIZES(call->cuts.at != NULL && call->cuts.count >= 4 && call->cuts.count % 2 == 0);
    const _Bool keeps = keeps_memory(call);
    NEED_SIZES(keeps || !backward);
    for (integer l = 0; l < call->count; l++) {
        const struct gated_layer *layer = &call->layer[l];
        const enum answer answer = check_layer(layer, width, streams);
        if (answer != DONE)
            return answer;
        NEED_SIZES(!layer->scaled || sized_line(call->scale, nodes));
        NEED_SIZES(!keeps || sized_line(call->memory[l], layer_size(nodes, count, width, streams)));
        NEED_SIZES(!layer->norm[H].of_rows || (nodes > 1 && keeps));
        NEED_SIZES(!layer->norm[E].of_rows || (count > 1 && keeps));
    }
    for (integer s = 0; s <= streams; s++) {
        const integer rows = s == E ? count : nodes;
        if (backward) {
            NEED_SIZES(left_out(call->out_gradient[s]) || sized(call->out_gradient[s], rows, width));
            NEED_SIZES(is_padded(call->in_gradient[s], rows, width));
        } else {
            NEED_SIZES(sized(call->in[s], rows, width) && is_padded(call->out[s], rows, width));
            if (s != P && !left_out(call->table[s])) {
                NEED_SIZES(sized(call->table[s], call->table[s].count, width) && sized_indices(call->kind[s], rows));
                NEED_INDICES(all_below(call->kind[s], call->table[s].count));
            }
        }
    }
    NEED_SIZES(backward || streams == 2 || left_out(call->in[P]));
    const enum answer answer = check_indices(call, edges->in_start, edges->in_edge, edges->source);
    if (answer != DONE || !backward)
        return answer;
    NEED_SIZES(sized_indices(edges->out_start, nodes + 1) && sized_indices(edges->out_edge, count));
    NEED_SIZES(sized_line(call->parameters_gradient, call->count * parameters_of(width, streams)));
    return check_indices(call, edges->out_start, edges->out_edge, edges->target);
}

/* Of the pieces the last ones may be empty. */
struct stack stack_of(const struct gated_layers *call)
{
    const integer nodes = call->edges.nodes, width = call->layer[0].map[0].count;
    integer pieces = call->cuts.count / 2 - 1;
    const integer *node_cuts = call->cuts.at, *edge_cuts = call->cuts.at + pieces + 1;
    while (pieces > 1 && node_cuts[pieces - 1] == node_cuts[pieces])
        pieces--;
    const integer pairs = (nodes + 256) / 512; /* of groups: two threads have the same to do */
    integer groups = 2 * pairs < MOST_GROUPS ? 2 * pairs : MOST_GROUPS;
    groups = groups < pieces ? groups : pieces;
    return (struct stack){.call = call, .nodes = nodes, .edges = call->edges.source.count, .width = width,
                          .padded = padded_width(width), .pieces = pieces, .groups = groups < 1 ? 1 : groups,
                          .streams = streams_of(call),
                          .node_cuts = node_cuts, .edge_cuts = edge_cuts};
}

struct in_order {
    struct stack *stack;
    piece_function each;
};

static void piece_task(void *argument, integer piece)
{
    const struct in_order *work = argument;
    work->each(work->stack, piece, 1);
}

static void group_task(void *argument, integer group)
{
    const struct in_order *work = argument;
    for (integer piece = group_begin(work->stack, group); piece < group_begin(work->stack, group + 1); piece++)
        work->each(work->stack, piece, 1);
}

static enum answer run(struct stack *stack, piece_function each, integer tasks, task one)
{
    const integer threads = stack->call->threads;
    struct in_order work = {stack, each};
    if (tasks >= threads)
        run_tasks(threads, tasks, one, &work);
    else
        for (integer piece = 0; piece < stack->pieces; piece++)
            each(stack, piece, threads);
    return stack->failed ? NO_MEMORY : DONE;
}

enum answer for_pieces(struct stack *stack, piece_function each) { return run(stack, each, stack->pieces, piece_task); }
enum answer for_groups(struct stack *stack, piece_function each) { return run(stack, each, stack->groups, group_task); }

struct place place_of(const struct stack *stack, integer layer)
{
    const integer width = stack->width, padded = stack->padded;
    real *next = stack->call->memory[layer].at;
    struct place place = {0};
    for (integer s = 0; s <= stack->streams; s++) {
        const integer rows = stream_rows(stack, s);
        place.in[s] = (struct rows){next, rows, width, padded};
        next += rows * padded;
        place.sum[s] = (struct rows){next, rows, width, padded};
        next += rows * padded;
    }
    place.values = next;
    place.statistics = next + stack->nodes * stack->streams * padded;
    return place;
}

struct norm norm_of(const struct stack *stack, integer layer, integer stream, integer piece, struct rows x,
                    real *statistics)
{
    const struct gated_layer *of = &stack->call->layer[layer];
    const struct line scale = stack->call->scale;
    struct norm norm = {.relu = 1, .x = x, .weight = of->norm[stream].weight.at, .bias = of->norm[stream].bias.at,
                        .mean = statistics + 3 * stream * stack->width,
                        .rate = statistics + (3 * stream + 2) * stack->width};
    if (stream == H && of->scaled)
        norm.scale = (struct line){scale.at + stack->node_cuts[piece], x.count};
    if (stack->means[stream] != NULL) {
        norm.mean_gradient = stack->means[stream];
        norm.mean_product = stack->means[stream] + stack->width;
    }
    if (stack->sums[stream] != NULL)
        norm.sums = piece_sums(stack, stream, piece);
    return norm;
}
