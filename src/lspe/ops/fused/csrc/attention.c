/* Attention over all pairs of nodes of each graph, and its gradients.

   A row of `maps` has five parts, each `padded` numbers long: q, k, v, and q and k of the pairs that are not edges.
   Head h has the channels [h * width, (h + 1) * width) of each. The weight of a pair j -> i is f_ij exp(clamp(score)).
   Pairs that are not edges have the scores of a dense product; edges, fewer, are a sparse part that is added to it. */
#include "tasks.h"

#include <stdlib.h>

enum { Q, K, V, Q_ADDED, K_ADDED, PARTS };

/* One number for all pairs, or [graphs, side, side] with the target first. */
struct factor {
    real number;
    const real *matrix;
};

struct attention {
    integer graphs, heads, width, padded, side;
    integer heads_a_task, heads_row; /* heads_row: heads rounded up to whole vectors, or more */
    const integer *graph_start, *source, *in_start, *in_edge;
    const real *maps, *edges; /* [nodes, PARTS, padded], [edges, padded] */
    const real *channel;      /* [heads * width]: what the shared embedding of added pairs multiplies q by */
    struct factor real_factor, added_factor;
    real *edge_powers, *edge_inside; /* [edges, heads_row]: exp(clamp(score)), and 1 where the score is within limits */
    real *out;                       /* [nodes, padded] */

    const real *gradient; /* of out */
    real *maps_gradient, *edges_gradient;
    real *channel_gradient; /* [graphs, heads * width] */
    real *factor_gradient;  /* [graphs, heads, 2]: of the real and of the added factor, where they are numbers */
    _Bool failed;
};

static const real LIMIT = 5, EPSILON = (real)1e-6;

static inline vector clamped(vector score)
{
    score = where(score > LIMIT, all(LIMIT), score);
    return where(score < -LIMIT, all(-LIMIT), score);
}

static inline vector within_limits(vector score)
{
    return where((score >= -LIMIT) & (score <= LIMIT), all(1), all(0));
}

static inline real sum_of(vector x)
{
    real lanes[LANES];
    store(lanes, x);
    for (integer half = LANES / 2; half > 0; half /= 2)
        for (integer lane = 0; lane < half; lane++)
            lanes[lane] += lanes[lane + half];
    return lanes[0];
}

static inline integer whole_vectors(integer count) { return (count + LANES - 1) / LANES * LANES; }
static inline real score_rate(const struct attention *work) { return 1 / (real)sqrt((double)work->width); }

static inline const real *part(const struct attention *work, integer node, integer which)
{
    return work->maps + (node * PARTS + which) * work->padded;
}

static inline real *part_gradient(const struct attention *work, integer node, integer which)
{
    return work->maps_gradient + (node * PARTS + which) * work->padded;
}

static inline real factor_of(const struct attention *work, const struct factor *factor, integer graph, integer target,
                             integer source)
{
    return factor->matrix ? factor->matrix[(graph * work->side + target) * work->side + source] : factor->number;
}

/* The edges that lead to some nodes: all heads at once. */
static void edges_task(void *argument, integer number)
{
    const struct attention copy = *(const struct attention *)argument, *work = &copy;
    const real rate = score_rate(work);
    real scores[work->heads_row];
    memset(scores, 0, sizeof scores);
    const integer nodes = work->graph_start[work->graphs];
    for (integer node = begin_of(number); node < end_of(number, nodes); node++) {
        const real *restrict query = part(work, node, Q);
        for (integer slot = work->in_start[node]; slot < work->in_start[node + 1]; slot++) {
            const integer edge = work->in_edge[slot];
            const real *restrict key = part(work, work->source[edge], K);
            const real *restrict map = work->edges + edge * work->padded;
            for (integer head = 0; head < work->heads; head++) {
                real sum = 0;
                for (integer c = head * work->width; c < (head + 1) * work->width; c++)
                    sum += query[c] * key[c] * map[c];
                scores[head] = sum * rate;
            }
            for (integer head = 0; head < work->heads_row; head += LANES) {
                const vector score = load(scores + head);
                store(work->edge_powers + edge * work->heads_row + head, exponential(clamped(score)));
                store(work->edge_inside + edge * work->heads_row + head, within_limits(score));
            }
        }
    }
}

/* Some heads of one graph of n nodes. Keys (of added pairs) and values of a head are laid out so that vectors go over
   the n sources, [width, row], and so that they go over its channels, [n, wide]; both end in zeros. */
struct heads {
    const struct attention *work;
    integer graph, first, n, row, wide;
    real *added, *factors;                        /* [row], of one target: 1 for added pairs; their factors; else 0 */
    real *powers, *weights, *inside, *of_weights; /* [row], of one target and head */
    real *query, *gradient, *sum;                 /* [wide], of one target and head */
    real *keys, *values, *key_rows, *value_rows, *key_gradients, *value_gradients; /* of one head after the other */
};

static void read_columns(const struct heads *own, integer which, integer channel, real *columns)
{
    for (integer c = 0; c < own->work->width; c++) {
        for (integer j = 0; j < own->n; j++)
            columns[c * own->row + j] = part(own->work, own->first + j, which)[channel + c];
        memset(columns + c * own->row + own->n, 0, (size_t)(own->row - own->n) * sizeof(real));
    }
}

static void read_row(const struct heads *own, const real *from, real *row)
{
    memcpy(row, from, (size_t)own->work->width * sizeof(real));
    memset(row + own->work->width, 0, (size_t)(own->wide - own->work->width) * sizeof(real));
}

static void read_rows(const struct heads *own, integer which, integer channel, real *rows)
{
    for (integer j = 0; j < own->n; j++)
        read_row(own, part(own->work, own->first + j, which) + channel, rows + j * own->wide);
}

/* Edges that lead to a target, as slots. */
static inline integer edges_begin(const struct heads *own, integer target)
{
    return own->work->in_start[own->first + target];
}
static inline integer edges_end(const struct heads *own, integer target) { return edges_begin(own, target + 1); }
static inline integer source_of(const struct heads *own, integer slot)
{
    return own->work->source[own->work->in_edge[slot]] - own->first;
}

static void read_factors(const struct heads *own, integer target)
{
    for (integer j = 0; j < own->n; j++)
        own->added[j] = 1;
    own->added[target] = 0;
    for (integer slot = edges_begin(own, target); slot < edges_end(own, target); slot++)
        own->added[source_of(own, slot)] = 0;
    for (integer j = 0; j < own->n; j++)
        own->factors[j] = own->added[j] * factor_of(own->work, &own->work->added_factor, own->graph, target, j);
}

/* Scores of a target and all sources. Returns the sum of the weights, those of the edges with them. */
static real weigh(const struct heads *own, integer target, integer head, const real *keys)
{
    const struct attention *work = own->work;
    const real rate = score_rate(work), *query = part(work, own->first + target, Q_ADDED) + head * work->width;
    for (integer c = 0; c < work->width; c++)
        own->query[c] = query[c] * work->channel[head * work->width + c] * rate;
    vector total = {0};
    for (integer j = 0; j < own->row; j += LANES) {
        vector score = {0};
        for (integer c = 0; c < work->width; c++)
            score += own->query[c] * load(keys + c * own->row + j);
        const vector power = exponential(clamped(score)), weight = power * load(own->factors + j);
        store(own->powers + j, power);
        store(own->weights + j, weight);
        store(own->inside + j, within_limits(score));
        total += weight;
    }
    real sum = sum_of(total) + EPSILON;
    for (integer slot = edges_begin(own, target); slot < edges_end(own, target); slot++)
        sum += work->edge_powers[work->in_edge[slot] * work->heads_row + head]
               * factor_of(work, &work->real_factor, own->graph, target, source_of(own, slot));
    return sum;
}

static void attend(const struct heads *own, integer target, integer head)
{
    const struct attention *work = own->work;
    const integer offset = head % work->heads_a_task;
    const real *rows = own->value_rows + offset * own->n * own->wide;
    const real share = 1 / weigh(own, target, head, own->keys + offset * work->width * own->row);
    for (integer c = 0; c < own->wide; c += LANES) {
        vector sum = {0};
        for (integer j = 0; j < own->n; j++)
            sum += own->weights[j] * load(rows + j * own->wide + c);
        for (integer slot = edges_begin(own, target); slot < edges_end(own, target); slot++) {
            const integer j = source_of(own, slot);
            sum += work->edge_powers[work->in_edge[slot] * work->heads_row + head]
                   * factor_of(work, &work->real_factor, own->graph, target, j) * load(rows + j * own->wide + c);
        }
        store(own->sum + c, sum * share);
    }
    memcpy(work->out + (own->first + target) * work->padded + head * work->width, own->sum,
           (size_t)work->width * sizeof(real));
}

/* dL/dw_ij = (v_j - out_i) . dL/dout_i / total. */
static void attend_backward(const struct heads *own, integer target, integer head, real *channel_gradient,
                            real *factor_gradient)
{
    const struct attention *work = own->work;
    const integer width = work->width, row = own->row, wide = own->wide, offset = head % work->heads_a_task;
    const integer at = (own->first + target) * work->padded + head * width;
    const real *values = own->values + offset * width * row, *key_rows = own->key_rows + offset * own->n * wide;
    real *key_gradients = own->key_gradients + offset * own->n * wide;
    real *value_gradients = own->value_gradients + offset * own->n * wide;
    const real share = 1 / weigh(own, target, head, own->keys + offset * width * row);
    read_row(own, work->gradient + at, own->gradient);
    real of_total = 0;
    for (integer c = 0; c < width; c++)
        of_total -= own->gradient[c] * work->out[at + c];

    vector of_factor = {0};
    for (integer j = 0; j < row; j += LANES) {
        vector of_weight = all(of_total);
        for (integer c = 0; c < width; c++)
            of_weight += own->gradient[c] * load(values + c * row + j);
        of_weight *= share;
        store(own->of_weights + j, of_weight);
        const vector weight = load(own->weights + j);
        of_factor += of_weight * load(own->powers + j) * load(own->added + j);
        store(own->weights + j, weight * share);                          /* now the share of the total */
        const vector inside = load(own->inside + j);
        store(own->inside + j, where(inside > 0, of_weight * weight, all(0))); /* now the gradient of the score */
    }
    factor_gradient[1] += sum_of(of_factor);

    for (integer c = 0; c < wide; c += LANES) {
        const vector gradient = load(own->gradient + c), query = load(own->query + c);
        vector sum = {0};
        for (integer j = 0; j < own->n; j++) {
            real *key_gradient = key_gradients + j * wide + c, *value_gradient = value_gradients + j * wide + c;
            sum += own->inside[j] * load(key_rows + j * wide + c);
            store(key_gradient, load(key_gradient) + own->inside[j] * query);
            store(value_gradient, load(value_gradient) + own->weights[j] * gradient);
        }
        store(own->sum + c, sum * score_rate(work));
    }
    const real *query = part(work, own->first + target, Q_ADDED) + head * width;
    real *query_gradient = part_gradient(work, own->first + target, Q_ADDED) + head * width;
    for (integer c = 0; c < width; c++) {
        query_gradient[c] = own->sum[c] * work->channel[head * width + c];
        channel_gradient[c] += own->sum[c] * query[c];
    }

    for (integer slot = edges_begin(own, target); slot < edges_end(own, target); slot++) {
        const integer j = source_of(own, slot), edge = work->in_edge[slot] * work->heads_row + head;
        const real factor = factor_of(work, &work->real_factor, own->graph, target, j);
        const real of_power = own->of_weights[j] * work->edge_powers[edge];
        factor_gradient[0] += of_power;
        for (integer c = 0; c < wide; c += LANES) {
            real *value_gradient = value_gradients + j * wide + c;
            store(value_gradient,
                  load(value_gradient) + work->edge_powers[edge] * factor * share * load(own->gradient + c));
        }
        if (work->edge_inside[edge] > 0)
            work->edge_inside[edge] = of_power * factor; /* now gradient of the score */
    }
}

/* From the gradients of the edges' scores to those of what they were made of. */
static void edges_backward(const struct heads *own, integer first_head, integer end_head)
{
    const struct attention *work = own->work;
    const real rate = score_rate(work);
    for (integer node = own->first; node < own->first + own->n; node++)
        for (integer slot = work->in_start[node]; slot < work->in_start[node + 1]; slot++) {
            const integer edge = work->in_edge[slot], from = work->source[edge];
            const real *query = part(work, node, Q), *key = part(work, from, K);
            const real *map = work->edges + edge * work->padded;
            real *restrict query_gradient = part_gradient(work, node, Q);
            real *restrict key_gradient = part_gradient(work, from, K);
            real *restrict map_gradient = work->edges_gradient + edge * work->padded;
            for (integer head = first_head; head < end_head; head++) {
                const real of_score = work->edge_inside[edge * work->heads_row + head] * rate;
                for (integer c = head * work->width; c < (head + 1) * work->width; c++) {
                    query_gradient[c] += of_score * key[c] * map[c];
                    key_gradient[c] += of_score * query[c] * map[c];
                    map_gradient[c] = of_score * query[c] * key[c];
                }
            }
        }
}

static void forward_heads(const struct heads *own, integer first_head, integer end_head)
{
    for (integer head = first_head; head < end_head; head++) {
        const integer offset = head - first_head, channel = head * own->work->width;
        read_columns(own, K_ADDED, channel, own->keys + offset * own->work->width * own->row);
        read_rows(own, V, channel, own->value_rows + offset * own->n * own->wide);
    }
    for (integer target = 0; target < own->n; target++) {
        read_factors(own, target);
        for (integer head = first_head; head < end_head; head++)
            attend(own, target, head);
    }
}

static void backward_heads(const struct heads *own, integer first_head, integer end_head)
{
    const struct attention *work = own->work;
    const integer width = work->width, count = end_head - first_head;
    real *of_channels = work->channel_gradient + own->graph * work->heads * width;
    real *of_factors = work->factor_gradient + own->graph * work->heads * 2;
    for (integer head = first_head; head < end_head; head++) {
        const integer offset = head - first_head, channel = head * width;
        read_columns(own, K_ADDED, channel, own->keys + offset * width * own->row);
        read_columns(own, V, channel, own->values + offset * width * own->row);
        read_rows(own, K_ADDED, channel, own->key_rows + offset * own->n * own->wide);
    }
    memset(own->key_gradients, 0, (size_t)(count * own->n * own->wide) * sizeof(real));
    memset(own->value_gradients, 0, (size_t)(count * own->n * own->wide) * sizeof(real));
    memset(of_channels + first_head * width, 0, (size_t)(count * width) * sizeof(real));
    memset(of_factors + first_head * 2, 0, (size_t)(count * 2) * sizeof(real));
    for (integer target = 0; target < own->n; target++) {
        read_factors(own, target);
        for (integer head = first_head; head < end_head; head++)
            attend_backward(own, target, head, of_channels + head * width, of_factors + head * 2);
    }
    for (integer node = 0; node < own->n; node++) {
        const size_t bytes = (size_t)(count * width) * sizeof(real);
        memset(part_gradient(work, own->first + node, Q) + first_head * width, 0, bytes);
        memset(part_gradient(work, own->first + node, K) + first_head * width, 0, bytes);
        for (integer head = first_head; head < end_head; head++) {
            const integer at = ((head - first_head) * own->n + node) * own->wide;
            memcpy(part_gradient(work, own->first + node, K_ADDED) + head * width, own->key_gradients + at,
                   (size_t)width * sizeof(real));
            memcpy(part_gradient(work, own->first + node, V) + head * width, own->value_gradients + at,
                   (size_t)width * sizeof(real));
        }
    }
    edges_backward(own, first_head, end_head);
}

static void heads_task(struct attention *work, integer number, void (*run)(const struct heads *, integer, integer))
{
    const integer tasks_a_graph = work->heads / work->heads_a_task;
    const integer graph = number / tasks_a_graph, first_head = number % tasks_a_graph * work->heads_a_task;
    const integer first = work->graph_start[graph], n = work->graph_start[graph + 1] - first;
    const integer row = whole_vectors(n), wide = whole_vectors(work->width);
    const integer columns = work->heads_a_task * work->width * row, rows = work->heads_a_task * n * wide;
    real *room = malloc((size_t)(6 * row + 3 * wide + 2 * columns + 4 * rows) * sizeof(real));
    if (room == NULL) {
        work->failed = 1;
        return;
    }
    memset(room, 0, (size_t)(6 * row + 3 * wide) * sizeof(real));
    real *lines = room + 6 * row, *large = lines + 3 * wide, *by_source = large + 2 * columns;
    const struct heads own = {.work = work, .graph = graph, .first = first, .n = n, .row = row, .wide = wide,
                              .added = room, .factors = room + row, .powers = room + 2 * row,
                              .weights = room + 3 * row, .inside = room + 4 * row, .of_weights = room + 5 * row,
                              .query = lines, .gradient = lines + wide, .sum = lines + 2 * wide, .keys = large,
                              .values = large + columns, .key_rows = by_source, .value_rows = by_source + rows,
                              .key_gradients = by_source + 2 * rows, .value_gradients = by_source + 3 * rows};
    run(&own, first_head, first_head + work->heads_a_task);
    free(room);
}

static void forward_task(void *work, integer number) { heads_task(work, number, forward_heads); }
static void backward_task(void *work, integer number) { heads_task(work, number, backward_heads); }

/* Tasks are whole graphs where there are enough of them, else single heads. */
static enum answer run(struct attention *work, integer threads, task of_heads)
{
    work->heads_a_task = work->graphs < 8 * threads ? 1 : work->heads;
    run_tasks(threads, tasks_of(work->graph_start[work->graphs]), edges_task, work);
    run_tasks(threads, work->graphs * (work->heads / work->heads_a_task), of_heads, work);
    return work->failed ? NO_MEMORY : DONE;
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
    NEED_SIZES(padded_like(call->powers, edges, call->powers.width) && call->powers.width >= call->heads);
    NEED_SIZES(call->powers.width % LANES == 0 && call->powers.width <= WIDEST);
    NEED_SIZES(padded_like(call->inside, edges, call->powers.width));
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

static struct attention work_of(const struct attending *call)
{
    return (struct attention){
        .graphs = call->graph_start.count - 1, .heads = call->heads, .width = call->width,
        .padded = call->edge_maps.width, .side = call->factor_matrix[0].width, .heads_row = call->powers.width,
        .graph_start = call->graph_start.at, .source = call->edges.source.at, .in_start = call->edges.in_start.at,
        .in_edge = call->edges.in_edge.at, .maps = call->maps.at, .edges = call->edge_maps.at,
        .channel = call->channel.at, .real_factor = {(real)call->factor[0], call->factor_matrix[0].at},
        .added_factor = {(real)call->factor[1], call->factor_matrix[1].at}, .edge_powers = call->powers.at,
        .edge_inside = call->inside.at, .out = call->out.at, .gradient = call->gradient.at,
        .maps_gradient = call->maps_gradient.at, .edges_gradient = call->edge_maps_gradient.at,
        .channel_gradient = call->channel_gradient.at, .factor_gradient = call->factor_gradient.at};
}

enum answer attention_forward(const struct attending *call)
{
    const enum answer answer = check(call);
    if (answer != DONE)
        return answer;
    struct attention work = work_of(call);
    return run(&work, call->threads, forward_task);
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
    struct attention work = work_of(call);
    return run(&work, call->threads, backward_task);
}
