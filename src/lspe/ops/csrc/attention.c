/* Attention over all pairs of nodes of each graph, and its gradients. A task is one head of one graph.

   A row of `maps` has five parts, each `padded` numbers long: q, k, v, and q and k of the pairs that are not edges. Head h
   has the channels [h * width, (h + 1) * width) of each. Weights w_ij = f_ij exp(clamp(score)) of the pairs j -> i that are
   no edges come from a row of products; those of edges are written over it. */
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
    const integer *graph_start, *source, *in_start, *in_edge;
    const real *maps, *edges; /* [nodes, PARTS, padded], [edges, padded] */
    const real *channel;      /* [heads * width]: what the shared embedding of added pairs multiplies q by */
    struct factor real_factor, added_factor;
    real *out; /* [nodes, padded] */

    const real *gradient; /* of out */
    real *maps_gradient, *edges_gradient;
    real *channel_gradient; /* [graphs, heads * width] */
    real *factor_gradient;  /* [graphs, heads, 2]: of the real and of the added factor, where they are numbers */
    _Bool failed;
};

static const real LIMIT = 5, EPSILON = (real)1e-6;

/* One head of one graph. Its keys (of added pairs) and values are laid out so that vectors go over the n sources j, or so
   that they go over the channels: rows are rounded up to whole vectors and end in zeros. */
struct head {
    const struct attention *work;
    integer graph, first, n, row, wide, channel;
    real *keys, *values;                         /* [width, row] */
    real *by_source;                             /* [n, wide]: the values in the forward pass, the keys in the other */
    real *keys_gradient, *values_gradient;       /* [width, row] */
    real *powers, *weights, *factors, *inside;   /* [row] for one target: exp(score), w, f, and 1 within the limits */
    real *edge_powers, *edge_inside, *of_weight; /* [most in-edges of a node], the same, [row] */
    real *query, *sum;                           /* [width], [wide] */
};

static inline const real *part(const struct head *head, integer node, integer part)
{
    return head->work->maps + ((head->first + node) * PARTS + part) * head->work->padded + head->channel;
}

static inline real *part_gradient(const struct head *head, integer node, integer part)
{
    return head->work->maps_gradient + ((head->first + node) * PARTS + part) * head->work->padded + head->channel;
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

static inline vector clamped(vector score)
{
    score = where(score > LIMIT, all(LIMIT), score);
    return where(score < -LIMIT, all(-LIMIT), score);
}

static inline vector within_limits(vector score)
{
    return where((score >= -LIMIT) & (score <= LIMIT), all(1), all(0));
}

static inline const real *factor_row(const struct head *head, const struct factor *factor, integer target)
{
    const integer side = head->work->side;
    return factor->matrix ? factor->matrix + (head->graph * side + target) * side : NULL;
}

static void read_columns(const struct head *head, integer which, real *columns)
{
    for (integer c = 0; c < head->work->width; c++) {
        for (integer j = 0; j < head->n; j++)
            columns[c * head->row + j] = part(head, j, which)[c];
        memset(columns + c * head->row + head->n, 0, (size_t)(head->row - head->n) * sizeof(real));
    }
}

static void read_rows(const struct head *head, integer which)
{
    const integer width = head->work->width;
    for (integer j = 0; j < head->n; j++) {
        memcpy(head->by_source + j * head->wide, part(head, j, which), (size_t)width * sizeof(real));
        memset(head->by_source + j * head->wide + width, 0, (size_t)(head->wide - width) * sizeof(real));
    }
}

static inline integer source_of(const struct head *head, integer slot)
{
    return head->work->source[head->work->in_edge[slot]] - head->first;
}

/* powers, factors and weights of all pairs that lead to a target, edges left at zero. */
static void weigh_added_pairs(const struct head *head, integer target)
{
    const struct attention *work = head->work;
    const real rate = 1 / (real)sqrt((double)work->width);
    const real *query = part(head, target, Q_ADDED), *given = factor_row(head, &work->added_factor, target);
    for (integer c = 0; c < work->width; c++)
        head->query[c] = query[c] * work->channel[head->channel + c] * rate;
    for (integer j = 0; j < head->n; j++)
        head->factors[j] = given ? given[j] : work->added_factor.number;
    for (integer j = 0; j < head->row; j += LANES) {
        vector score = {0};
        for (integer c = 0; c < work->width; c++)
            score += head->query[c] * load(head->keys + c * head->row + j);
        store(head->powers + j, exponential(clamped(score)));
        store(head->inside + j, within_limits(score));
    }
    memset(head->powers + head->n, 0, (size_t)(head->row - head->n) * sizeof(real));
    head->powers[target] = 0;
    for (integer slot = work->in_start[head->first + target]; slot < work->in_start[head->first + target + 1]; slot++)
        head->powers[source_of(head, slot)] = 0;
    for (integer j = 0; j < head->row; j += LANES)
        store(head->weights + j, load(head->powers + j) * load(head->factors + j));
}

/* Scores of the edges that lead to a target: their powers, and their weights added to the others. */
static void weigh_edges(const struct head *head, integer target)
{
    const struct attention *work = head->work;
    const real rate = 1 / (real)sqrt((double)work->width);
    const real *query = part(head, target, Q), *given = factor_row(head, &work->real_factor, target);
    const integer begin = work->in_start[head->first + target], end = work->in_start[head->first + target + 1];
    for (integer slot = begin; slot < end; slot += LANES) {
        const integer count = end - slot < LANES ? end - slot : LANES;
        vector score = {0};
        for (integer lane = 0; lane < count; lane++) {
            const real *key = part(head, source_of(head, slot + lane), K);
            const real *edge = work->edges + work->in_edge[slot + lane] * work->padded + head->channel;
            real sum = 0;
            for (integer c = 0; c < work->width; c++)
                sum += query[c] * key[c] * edge[c];
            score[lane] = sum * rate;
        }
        const vector power = exponential(clamped(score)), inside = within_limits(score);
        for (integer lane = 0; lane < count; lane++) {
            const integer j = source_of(head, slot + lane);
            head->edge_powers[slot - begin + lane] = power[lane];
            head->edge_inside[slot - begin + lane] = inside[lane];
            head->weights[j] += power[lane] * (given ? given[j] : work->real_factor.number);
        }
    }
}

static real total_weight(const struct head *head)
{
    vector total = {0};
    for (integer j = 0; j < head->row; j += LANES)
        total += load(head->weights + j);
    return sum_of(total) + EPSILON;
}

/* sum = sum_j weight_j row_j over the rows laid out by source. */
static void sum_over_sources(const struct head *head, const real *weights)
{
    for (integer c = 0; c < head->wide; c += LANES) {
        vector sum = {0};
        for (integer j = 0; j < head->n; j++)
            sum += weights[j] * load(head->by_source + j * head->wide + c);
        store(head->sum + c, sum);
    }
}

static void attend(const struct head *head)
{
    const struct attention *work = head->work;
    read_columns(head, K_ADDED, head->keys);
    read_rows(head, V);
    for (integer target = 0; target < head->n; target++) {
        weigh_added_pairs(head, target);
        weigh_edges(head, target);
        sum_over_sources(head, head->weights);
        const real share = 1 / total_weight(head);
        real *out = work->out + (head->first + target) * work->padded + head->channel;
        for (integer c = 0; c < work->width; c++)
            out[c] = head->sum[c] * share;
    }
}

/* Gradients of the scores of a target's edges, given those of its weights. Returns that of the real factor. */
static real edges_backward(const struct head *head, integer target)
{
    const struct attention *work = head->work;
    const real rate = 1 / (real)sqrt((double)work->width);
    const real *given = factor_row(head, &work->real_factor, target), *query = part(head, target, Q);
    const integer begin = work->in_start[head->first + target], end = work->in_start[head->first + target + 1];
    real *query_gradient = part_gradient(head, target, Q), of_factor = 0;
    for (integer slot = begin; slot < end; slot++) {
        const integer j = source_of(head, slot), edge = work->in_edge[slot] * work->padded + head->channel;
        const real of_power = head->of_weight[j] * head->edge_powers[slot - begin];
        const real factor = given ? given[j] : work->real_factor.number;
        const real of_score = of_power * factor * head->edge_inside[slot - begin] * rate;
        const real *key = part(head, j, K), *map = work->edges + edge;
        real *key_gradient = part_gradient(head, j, K), *map_gradient = work->edges_gradient + edge;
        for (integer c = 0; c < work->width; c++) {
            query_gradient[c] += of_score * key[c] * map[c];
            key_gradient[c] += of_score * query[c] * map[c];
            map_gradient[c] = of_score * query[c] * key[c];
        }
        of_factor += of_power;
    }
    return of_factor;
}

/* Gradients of the scores of the added pairs of a target. Returns that of the added factor. */
static real added_pairs_backward(const struct head *head, integer target, real *channel_gradient)
{
    const struct attention *work = head->work;
    const real rate = 1 / (real)sqrt((double)work->width);
    vector of_factor = {0};
    for (integer j = 0; j < head->row; j += LANES) {
        const vector of_power = load(head->of_weight + j) * load(head->powers + j);
        of_factor += of_power;
        store(head->powers + j, of_power * load(head->factors + j) * load(head->inside + j)); /* now of the score */
    }
    sum_over_sources(head, head->powers);
    const real *query = part(head, target, Q_ADDED);
    real *query_gradient = part_gradient(head, target, Q_ADDED);
    for (integer c = 0; c < work->width; c++) {
        const real gradient = head->sum[c] * rate;
        query_gradient[c] = gradient * work->channel[head->channel + c];
        channel_gradient[c] += gradient * query[c];
        real *keys_gradient = head->keys_gradient + c * head->row;
        for (integer j = 0; j < head->row; j += LANES)
            store(keys_gradient + j, load(keys_gradient + j) + load(head->powers + j) * head->query[c]);
    }
    return sum_of(of_factor);
}

static void attend_backward(const struct head *head)
{
    const struct attention *work = head->work;
    const integer width = work->width, row = head->row;
    real *channel_gradient = work->channel_gradient + head->graph * work->heads * width + head->channel;
    real *factor_gradient = work->factor_gradient + (head->graph * work->heads + head->channel / width) * 2;
    read_columns(head, K_ADDED, head->keys);
    read_rows(head, K_ADDED);
    read_columns(head, V, head->values);
    memset(head->keys_gradient, 0, (size_t)(width * row) * sizeof(real));
    memset(head->values_gradient, 0, (size_t)(width * row) * sizeof(real));
    memset(channel_gradient, 0, (size_t)width * sizeof(real));
    for (integer node = 0; node < head->n; node++) {
        memset(part_gradient(head, node, Q), 0, (size_t)width * sizeof(real));
        memset(part_gradient(head, node, K), 0, (size_t)width * sizeof(real));
    }
    factor_gradient[0] = factor_gradient[1] = 0;
    for (integer target = 0; target < head->n; target++) {
        const integer at = (head->first + target) * work->padded + head->channel;
        const real *gradient = work->gradient + at, *out = work->out + at;
        weigh_added_pairs(head, target);
        weigh_edges(head, target);
        const real share = 1 / total_weight(head);
        real of_total = 0;
        for (integer c = 0; c < width; c++)
            of_total -= gradient[c] * out[c];
        for (integer j = 0; j < row; j += LANES) {
            vector of_weight = all(of_total);
            const vector weight = load(head->weights + j) * share;
            for (integer c = 0; c < width; c++) {
                real *values_gradient = head->values_gradient + c * row + j;
                of_weight += gradient[c] * load(head->values + c * row + j);
                store(values_gradient, load(values_gradient) + gradient[c] * weight);
            }
            store(head->of_weight + j, of_weight * share);
        }
        factor_gradient[0] += edges_backward(head, target);
        factor_gradient[1] += added_pairs_backward(head, target, channel_gradient);
    }
    for (integer node = 0; node < head->n; node++)
        for (integer c = 0; c < width; c++) {
            part_gradient(head, node, K_ADDED)[c] = head->keys_gradient[c * row + node];
            part_gradient(head, node, V)[c] = head->values_gradient[c * row + node];
        }
}

static void head_task(struct attention *work, integer number, void (*of_head)(const struct head *))
{
    const integer graph = number / work->heads, first = work->graph_start[graph];
    const integer n = work->graph_start[graph + 1] - first, row = (n + LANES - 1) / LANES * LANES;
    integer most = 0;
    for (integer node = first; node < first + n; node++) {
        const integer degree = work->in_start[node + 1] - work->in_start[node];
        most = degree > most ? degree : most;
    }
    const integer wide = (work->width + LANES - 1) / LANES * LANES, columns = work->width * row;
    real *room = malloc((size_t)(4 * columns + n * wide + 5 * row + 2 * most + work->width + wide) * sizeof(real));
    if (room == NULL) {
        work->failed = 1;
        return;
    }
    real *by_source = room + 4 * columns, *lines = by_source + n * wide, *rest = lines + 5 * row;
    struct head head = {.work = work, .graph = graph, .first = first, .n = n, .row = row, .wide = wide,
                        .channel = number % work->heads * work->width, .keys = room, .values = room + columns,
                        .keys_gradient = room + 2 * columns, .values_gradient = room + 3 * columns,
                        .by_source = by_source, .powers = lines, .weights = lines + row, .factors = lines + 2 * row,
                        .inside = lines + 3 * row, .of_weight = lines + 4 * row, .edge_powers = rest,
                        .edge_inside = rest + most, .query = rest + 2 * most, .sum = rest + 2 * most + work->width};
    memset(head.factors, 0, (size_t)row * sizeof(real));
    of_head(&head);
    free(room);
}

static void forward_task(void *work, integer number) { head_task(work, number, attend); }
static void backward_task(void *work, integer number) { head_task(work, number, attend_backward); }

/* -1, or the first edge that joins two graphs. */
integer edge_across_graphs(integer graphs, const integer *graph_start, const integer *source, const integer *in_start,
                           const integer *in_edge)
{
    for (integer graph = 0; graph < graphs; graph++)
        for (integer node = graph_start[graph]; node < graph_start[graph + 1]; node++)
            for (integer slot = in_start[node]; slot < in_start[node + 1]; slot++) {
                const integer from = source[in_edge[slot]];
                if (from < graph_start[graph] || from >= graph_start[graph + 1])
                    return in_edge[slot];
            }
    return -1;
}

/* `factors`: of edges and of added pairs, used where the matrix is null. Returns 0, or 1 where memory ran out. */
integer attention_forward(integer threads, integer graphs, integer heads, integer width, integer padded, integer side,
                          const integer *graph_start, const integer *source, const integer *in_start,
                          const integer *in_edge, const real *maps, const real *edges, const real *channel,
                          const real *factors, const real *real_matrix, const real *added_matrix, real *out)
{
    struct attention work = {.graphs = graphs, .heads = heads, .width = width, .padded = padded, .side = side,
                             .graph_start = graph_start, .source = source, .in_start = in_start, .in_edge = in_edge,
                             .maps = maps, .edges = edges, .channel = channel,
                             .real_factor = {factors[0], real_matrix}, .added_factor = {factors[1], added_matrix},
                             .out = out};
    run_tasks(threads, graphs * heads, forward_task, &work);
    return work.failed;
}

integer attention_backward(integer threads, integer graphs, integer heads, integer width, integer padded,
                           integer side, const integer *graph_start, const integer *source, const integer *in_start,
                           const integer *in_edge, const real *maps, const real *edges, const real *channel,
                           const real *factors, const real *real_matrix, const real *added_matrix, const real *out,
                           const real *gradient, real *maps_gradient, real *edges_gradient, real *channel_gradient,
                           real *factor_gradient)
{
    struct attention work = {.graphs = graphs, .heads = heads, .width = width, .padded = padded, .side = side,
                             .graph_start = graph_start, .source = source, .in_start = in_start, .in_edge = in_edge,
                             .maps = maps, .edges = edges, .channel = channel,
                             .real_factor = {factors[0], real_matrix}, .added_factor = {factors[1], added_matrix},
                             .out = (real *)out, .gradient = gradient, .maps_gradient = maps_gradient,
                             .edges_gradient = edges_gradient, .channel_gradient = channel_gradient,
                             .factor_gradient = factor_gradient};
    run_tasks(threads, graphs * heads, backward_task, &work);
    return work.failed;
}
