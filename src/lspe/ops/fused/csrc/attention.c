/* Attention over all pairs as an operator of its own. */
#include "attention.h"

struct run {
    const struct attending *call;
    integer heads_a_task;
    _Bool backward, failed;
};

static struct attention work_of(const struct attending *call, integer graph)
{
    const integer channels = call->heads * call->width;
    return (struct attention){
        .heads = call->heads, .width = call->width, .padded = call->edge_maps.width,
        .edge_step = call->edge_maps.width,
        .side = call->factor_matrix[0].width, .graph_start = call->graph_start.at, .source = call->edges.source.at,
        .in_start = call->edges.in_start.at, .in_edge = call->edges.in_edge.at, .maps = call->maps.at,
        .edges = call->edge_maps.at, .channel = call->channel.at,
        .real_factor = {(real)call->factor[0], call->factor_matrix[0].at},
        .added_factor = {(real)call->factor[1], call->factor_matrix[1].at}, .powers = call->powers.at,
        .totals = call->totals.at, .out = call->out.at, .gradient = call->gradient.at,
        .maps_gradient = call->maps_gradient.at, .edges_gradient = call->edge_maps_gradient.at,
        .channel_gradient = call->channel_gradient.at + graph * channels,
        .factor_gradient = call->factor_gradient.at + graph * call->heads * 2};
}

static void clear(struct rows rows)
{
    if (rows.count > 0)
        memset(rows.at, 0, (size_t)(rows.count * rows.step) * sizeof(real));
}

static void heads_task(void *argument, integer number)
{
    struct run *run = argument;
    const struct attending *call = run->call;
    const integer tasks_a_graph = call->heads / run->heads_a_task;
    const integer graph = number / tasks_a_graph, first = number % tasks_a_graph * run->heads_a_task;
    const struct attention work = work_of(call, run->backward ? graph : 0);
    const _Bool done = (run->backward ? attend_backward : attend)(&work, graph, first, first + run->heads_a_task);
    if (!done)
        run->failed = 1;
}

/* Tasks are whole graphs where there are enough of them, else single heads. */
static enum answer run_heads(const struct attending *call, _Bool backward)
{
    const integer graphs = call->graph_start.count - 1;
    struct run run = {call, graphs < 8 * call->threads ? 1 : call->heads, backward, 0};
    run_tasks(call->threads, graphs * (call->heads / run.heads_a_task), heads_task, &run);
    return run.failed ? NO_MEMORY : DONE;
}

/* Every edge begins in the graph that it ends in. */
static _Bool within_graphs(const struct attending *call)
{
    const struct indices graph_start = call->graph_start;
    for (integer graph = 0; graph + 1 < graph_start.count; graph++) {
        const integer first = graph_start.at[graph], end = graph_start.at[graph + 1];
        for (integer slot = call->edges.in_start.at[first]; slot < call->edges.in_start.at[end]; slot++) {
            const integer from = call->edges.source.at[call->edges.in_edge.at[slot]];
            if (from < first || from >= end)
                return 0;
        }
    }
    return 1;
}

static _Bool padded_like(struct rows rows, integer count, integer width)
{
    return sized(rows, count, width) && rows.step == width;
}

static enum answer check(const struct attending *call)
{
    const integer nodes = call->edges.nodes, edges = call->edges.source.count, padded = call->edge_maps.width;
    const integer graphs = call->graph_start.count - 1, side = call->factor_matrix[0].width;
    NEED_SIZES(call->threads >= 1 && call->heads >= 1 && call->width >= 1 && nodes >= 0 && graphs >= 0);
    NEED_SIZES(padded % LANES == 0 && padded <= WIDEST && call->heads * call->width <= padded);
    NEED_SIZES(padded_like(call->maps, nodes, PARTS * padded) && padded_like(call->edge_maps, edges, padded));
    NEED_SIZES(sized_line(call->channel, call->heads * call->width) && padded_like(call->out, nodes, padded));
    NEED_SIZES(padded_like(call->powers, edges, call->heads) && padded_like(call->totals, nodes, call->heads));
    NEED_SIZES(sized_indices(call->edges.source, edges) && sized_indices(call->edges.in_start, nodes + 1));
    NEED_SIZES(sized_indices(call->edges.in_edge, edges));
    for (integer which = 0; which < 2; which++)
        NEED_SIZES(left_out(call->factor_matrix[which]) || padded_like(call->factor_matrix[which], graphs * side, side));
    NEED_SIZES(left_out(call->factor_matrix[0]) == left_out(call->factor_matrix[1]));
    NEED_INDICES(rises_to(call->graph_start, nodes) && rises_to(call->edges.in_start, edges));
    NEED_INDICES(all_below(call->edges.in_edge, edges) && within_graphs(call));
    for (integer graph = 0; graph < graphs && !left_out(call->factor_matrix[0]); graph++)
        NEED_SIZES(call->graph_start.at[graph + 1] - call->graph_start.at[graph] <= side);
    return DONE;
}

enum answer attention_forward(const struct attending *call)
{
    const enum answer answer = check(call);
    return answer == DONE ? run_heads(call, 0) : answer;
}

enum answer attention_backward(const struct attending *call)
{
    const integer nodes = call->edges.nodes, graphs = call->graph_start.count - 1, padded = call->edge_maps.width;
    const enum answer answer = check(call);
    if (answer != DONE)
        return answer;
    NEED_SIZES(padded_like(call->gradient, nodes, padded) && padded_like(call->maps_gradient, nodes, PARTS * padded));
    NEED_SIZES(padded_like(call->edge_maps_gradient, call->edges.source.count, padded));
    NEED_SIZES(padded_like(call->channel_gradient, graphs, call->heads * call->width));
    NEED_SIZES(padded_like(call->factor_gradient, graphs * call->heads, 2));
    clear(call->edge_maps_gradient);
    clear(call->channel_gradient);
    clear(call->factor_gradient);
    return run_heads(call, 1);
}
