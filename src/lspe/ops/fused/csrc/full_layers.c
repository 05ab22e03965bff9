/* What the forward and the backward pass of layers of full attention share. */
#include "full_layers.h"

static inline integer streams_of(const struct full_layers *call) { return call->positions ? 2 : 1; }

/* Numbers for a layer on so many nodes and edges, and where the rows of a piece are among them. */
struct layout {
    integer nodes, edges, first, slot; /* of all; the first ones of the piece */
    real *memory;                      /* or null, to know the size alone */
    integer size;
};

static real *take(struct layout *layout, integer rows, integer width, integer first)
{
    real *at = layout->memory == NULL ? NULL : layout->memory + layout->size + first * width;
    layout->size += in_lines(rows * width);
    return at;
}

static struct place lay_out(struct layout *layout, integer width, integer heads, integer streams)
{
    const integer padded = padded_to_16(width), nodes = layout->nodes, first = layout->first;
    struct place place = {0};
    place.in = take(layout, nodes, streams * padded, first);
    for (integer s = 0; s < streams; s++) {
        place.maps[s] = take(layout, nodes, PARTS * padded, first);
        place.attention[s] = take(layout, nodes, padded, first);
        place.totals[s] = take(layout, nodes, heads, first);
        place.powers[s] = take(layout, layout->edges, heads, layout->slot);
    }
    place.sum[0] = take(layout, nodes, padded, first);
    place.sum[1] = take(layout, nodes, padded, first);
    place.middle = take(layout, nodes, padded, first);
    place.hidden = take(layout, nodes, padded_to_16(2 * width), first);
    if (streams == 2)
        place.turn = take(layout, nodes, padded, first);
    place.statistics = take(layout, 6, width, 0);
    return place;
}

integer full_memory(integer nodes, integer edges, integer width, integer heads, integer positions)
{
    struct layout layout = {.nodes = nodes, .edges = edges};
    lay_out(&layout, width, heads, positions ? 2 : 1);
    return layout.size;
}

struct place place_of_piece(const struct full *stack, integer layer, const struct piece *piece)
{
    struct layout layout = {.nodes = stack->nodes, .edges = stack->edges, .first = piece->first,
                            .slot = piece->first_slot, .memory = stack->call->memory[layer].at};
    return lay_out(&layout, stack->width, stack->call->heads, stack->streams);
}

struct place place_alone(const struct full *stack, const struct piece *piece, real *room)
{
    struct layout layout = {.nodes = piece->nodes, .edges = piece->slots, .memory = room};
    return lay_out(&layout, stack->width, stack->call->heads, stack->streams);
}

integer size_alone(const struct full *stack, const struct piece *piece)
{
    return full_memory(piece->nodes, piece->slots, stack->width, stack->call->heads, stack->call->positions);
}

static _Bool is_padded(struct rows rows, integer count, integer width)
{
    return sized(rows, count, width) && rows.step == padded_to_16(width);
}

static enum answer check_layer(const struct full_layers *call, const struct full_layer *layer, integer width)
{
    const integer streams = streams_of(call), graphs = call->graph_start.count - 1;
    const integer side = layer->factor_matrix[0].width;
    NEED_SIZES(layer->dropout >= 0 && layer->dropout <= 1);
    for (integer m = 0; m < O_MAP; m++) {
        const integer inputs = m < E_MAP ? streams * width : width;
        NEED_SIZES((streams == 1 && m >= MAPS_A_STREAM) || sized(layer->map[m], width, inputs));
    }
    NEED_SIZES(sized(layer->map[O_MAP], width, width) && sized_line(layer->bias[O_BIAS], width));
    NEED_SIZES(streams == 1 || (sized(layer->map[O_P_MAP], width, width) && sized_line(layer->bias[O_P_BIAS], width)));
    NEED_SIZES(sized(layer->map[W1_MAP], 2 * width, width) && sized_line(layer->bias[W1_BIAS], 2 * width));
    NEED_SIZES(sized(layer->map[W2_MAP], width, 2 * width) && sized_line(layer->bias[W2_BIAS], width));
    for (integer n = 0; n < 2; n++) {
        const struct normal *norm = &layer->norm[n];
        NEED_SIZES(sized_line(norm->weight, width) && sized_line(norm->bias, width));
        NEED_SIZES(sized_line(norm->running_mean, width) && sized_line(norm->running_variance, width));
        NEED_SIZES(!norm->of_rows || (call->edges.nodes > 1 && call->memory[0].at != NULL));
        const struct rows matrix = layer->factor_matrix[n];
        NEED_SIZES(left_out(matrix) == left_out(layer->factor_matrix[0]));
        NEED_SIZES(left_out(matrix) || (sized(matrix, graphs * side, side) && matrix.step == side));
    }
    for (integer graph = 0; graph < graphs && !left_out(layer->factor_matrix[0]); graph++)
        NEED_SIZES(call->graph_start.at[graph + 1] - call->graph_start.at[graph] <= side);
    return DONE;
}

static enum answer check_graphs_and_edges(const struct full_layers *call)
{
    const struct edges *edges = &call->edges;
    const struct indices start = call->graph_start;
    const integer nodes = edges->nodes, count = edges->source.count;
    NEED_SIZES(nodes >= 0 && sized_indices(edges->source, count) && sized_indices(edges->in_edge, count));
    NEED_SIZES(sized_indices(edges->in_start, nodes + 1));
    NEED_SIZES(call->kind.at == NULL ? call->edge.count == count : sized_indices(call->kind, count));
    NEED_INDICES(rises_to(start, nodes) && rises_to(edges->in_start, count) && all_below(edges->in_edge, count));
    NEED_INDICES(call->kind.at == NULL || all_below(call->kind, call->edge.count));
    for (integer graph = 0; graph + 1 < start.count; graph++) {
        const integer first = start.at[graph], end = start.at[graph + 1];
        for (integer slot = edges->in_start.at[first]; slot < edges->in_start.at[end]; slot++) {
            const integer from = edges->source.at[edges->in_edge.at[slot]];
            NEED_INDICES(from >= first && from < end);
        }
    }
    return DONE;
}

enum answer check_full(const struct full_layers *call, _Bool backward)
{
    const integer nodes = call->edges.nodes, edges = call->edges.source.count, width = call->added.count;
    const integer streams = streams_of(call), heads = call->heads;
    NEED_SIZES(call->threads >= 1 && call->count >= 1 && call->count <= MOST_LAYERS);
    NEED_SIZES(width >= LANES && 2 * width <= WIDEST && heads >= 1 && heads <= width && width % heads == 0);
    NEED_SIZES(sized_line(call->added, width) && sized(call->edge, call->edge.count, width));
    enum answer answer = check_graphs_and_edges(call);
    for (integer l = 0; l < call->count && answer == DONE; l++) {
        answer = check_layer(call, &call->layer[l], width);
        NEED_SIZES(call->memory[0].at == NULL
                   || sized_line(call->memory[l], full_memory(nodes, edges, width, heads, streams == 2)));
    }
    if (answer != DONE)
        return answer;
    NEED_SIZES(call->memory[0].at != NULL || !backward);
    for (integer s = 0; s < streams; s++) {
        if (!backward) {
            NEED_SIZES(sized(call->in[s], nodes, width) && is_padded(call->out[s], nodes, width));
            continue;
        }
        NEED_SIZES(left_out(call->out_gradient[s]) || sized(call->out_gradient[s], nodes, width));
        NEED_SIZES(is_padded(call->in_gradient[s], nodes, width));
    }
    if (!backward)
        return DONE;
    const struct full stack = full_of(call);
    NEED_SIZES(is_padded(call->edge_gradient, call->edge.count, width) && sized_line(call->added_gradient, width));
    NEED_SIZES(sized_line(call->factor_gradient, 2 * call->count));
    NEED_SIZES(sized_line(call->parameters_gradient, call->count * parameters_count(&stack)));
    return DONE;
}

static struct bundle bundle_of(integer parts, integer first, integer every, integer outputs, integer segments,
                               integer inputs)
{
    return (struct bundle){parts, first, every, outputs, segments, inputs, parts * padded_to_16(outputs),
                           segments * padded_to_16(inputs)};
}

#define NODES_A_PIECE 128
#define MOST_PIECES 256

struct full full_of(const struct full_layers *call)
{
    const integer nodes = call->edges.nodes, width = call->added.count, streams = streams_of(call);
    integer pieces = nodes / NODES_A_PIECE;
    pieces = pieces < 1 ? 1 : pieces < MOST_PIECES ? pieces : MOST_PIECES;
    return (struct full){
        .call = call, .nodes = nodes, .edges = call->edges.source.count, .width = width, .padded = padded_to_16(width),
        .hidden = padded_to_16(2 * width), .streams = streams, .graphs = call->graph_start.count - 1, .pieces = pieces,
        .groups = pieces < MOST_GROUPS ? pieces : MOST_GROUPS, .rows = call->edge.count,
        .bundle = {[ATTENTION] = bundle_of(PARTS, 0, 1, width, streams, width),
                   [ATTENTION_P] = bundle_of(streams == 2 ? PARTS : 0, MAPS_A_STREAM, 1, width, 1, width),
                   [O] = bundle_of(1, O_MAP, 1, width, 1, width),
                   [O_P] = bundle_of(streams == 2 ? 1 : 0, O_P_MAP, 1, width, 1, width),
                   [W1] = bundle_of(1, W1_MAP, 1, 2 * width, 1, width),
                   [W2] = bundle_of(1, W2_MAP, 1, width, 1, 2 * width),
                   [EDGES] = bundle_of(streams, E_MAP, MAPS_A_STREAM, width, 1, width)}};
}

/* The first graph whose nodes begin at or behind `node`. */
static integer graph_from(const struct full *stack, integer node)
{
    integer low = 0, high = stack->graphs;
    while (low < high) {
        const integer middle = (low + high) / 2;
        if (stack->call->graph_start.at[middle] < node)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

struct piece piece_of(const struct full *stack, integer number)
{
    const integer first_graph = graph_from(stack, number * stack->nodes / stack->pieces);
    const integer end_graph
        = number + 1 == stack->pieces ? stack->graphs : graph_from(stack, (number + 1) * stack->nodes / stack->pieces);
    const integer first = stack->call->graph_start.at[first_graph], end = stack->call->graph_start.at[end_graph];
    const integer *in_start = stack->call->edges.in_start.at;
    return (struct piece){first_graph, end_graph, first, end - first, in_start[first], in_start[end] - in_start[first]};
}

struct in_order {
    struct full *stack;
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
    for (integer piece = first_of_group(work->stack, group); piece < first_of_group(work->stack, group + 1); piece++)
        work->each(work->stack, piece, 1);
}

/* Tasks side by side where there are enough of them for all threads; else all threads on one piece after the other. */
static enum answer run(struct full *stack, piece_function each, integer tasks, task one)
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

enum answer for_each_piece(struct full *stack, piece_function each)
{
    return run(stack, each, stack->pieces, piece_task);
}

enum answer for_each_group(struct full *stack, piece_function each)
{
    return run(stack, each, stack->groups, group_task);
}

integer group_with(const struct full *stack, integer piece)
{
    integer group = 0;
    while (first_of_group(stack, group + 1) <= piece)
        group++;
    return group;
}
