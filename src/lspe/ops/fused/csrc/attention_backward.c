#include "block.h"

static inline real sum_of(vector x)
{
    real lanes[LANES];
    store(lanes, x);
    for (integer half = LANES / 2; half > 0; half /= 2)
        for (integer lane = 0; lane < half; lane++)
            lanes[lane] += lanes[lane + half];
    return lanes[0];
}

/* Gradients of the outputs of a head, and into `line` 1 / total; returns to [row] minus their products with the outputs:
   dL/dw_ij = (v_j - out_i) . dL/dout_i / total_i. */
static void read_gradients(const struct block *own, integer head, real *of_total)
{
    const struct attention *work = own->work;
    const integer node = own->first + own->target - work->first_node, channel = head * work->width;
    const integer at = node * work->padded + channel;
    read_columns(own, work->gradient + at, work->padded, own->gradient);
    read_columns(own, work->out + at, work->padded, own->sum);
    for (integer i = 0; i < own->row; i++)
        own->line[i] = i < own->targets ? 1 / work->totals[(node + i) * work->heads + head] : 0;
    for (integer i = 0; i < own->row; i += LANES) {
        vector sum = {0};
        for (integer c = 0; c < work->width; c++)
            sum -= load(own->gradient + c * own->row + i) * load(own->sum + c * own->row + i);
        store(of_total + i, sum);
    }
}

/* From scores and products of values and gradients (in `pulls`) to the shares of the weights, the gradients of the
   weights (in `pulls`) and of the scores. Returns the gradient of the number of added pairs. */
static real pull(const struct block *own, const real *of_total)
{
    const real number = own->work->added_factor.number;
    vector of_number = {0};
    for (integer i = 0; i < own->row; i += LANES) {
        const vector share = load(own->line + i), more = load(of_total + i);
        for (integer at = i; at < own->n * own->row; at += own->row) {
            const vector score = load(own->scores + at);
            const vector power = exponential(clamped(score)) * load(own->open + at), weight = power * number;
            const vector of_weight = (load(own->pulls + at) + more) * share;
            of_number += of_weight * power;
            store(own->weights + at, (weight + load(own->of_edges + at)) * share);
            store(own->pulls + at, of_weight);
            store(own->scores + at, where(within_limits(score), of_weight * weight, all(0)));
        }
    }
    return sum_of(of_number);
}

/* Gradients of the edges' scores with a head into of_scores [slots, heads]; returns that of the number of edges. */
static real pull_edges(const struct block *own, integer head, real *of_scores)
{
    const struct attention *work = own->work;
    const integer first_slot = work->in_start[own->first];
    real of_number = 0;
    for (integer i = 0; i < own->targets; i++)
        for (integer slot = edges_begin(own, own->target + i); slot < edges_begin(own, own->target + i + 1); slot++) {
            const integer j = source_of(own, slot);
            const real signed_power = powers_at(work, slot)[head], power = signed_power < 0 ? -signed_power : signed_power;
            const real of_power = own->pulls[j * own->row + i];
            const real factor = factor_of(work, &(struct factor){1, work->real_factor.matrix}, own->graph,
                                          own->target + i, j);
            of_number += of_power * power * factor;
            of_scores[(slot - first_slot) * work->heads + head]
                = signed_power > 0 ? of_power * power * factor * work->real_factor.number : 0;
        }
    return of_number;
}

/* Gradients of queries of pairs that are not edges, and of the channels they are multiplied by. */
static void find_query_gradients(const struct block *own, integer head)
{
    const struct attention *work = own->work;
    const integer channel = head * work->width, first = own->first + own->target;
    const real rate = score_rate(work);
    sum_sources(own, own->scores, part(work, own->first, K_ADDED) + channel, PARTS * work->padded, own->sum);
    for (integer c = 0; c < work->width; c++) {
        vector of_channel = {0};
        for (integer i = 0; i < own->row; i += LANES)
            of_channel += load(own->sum + c * own->row + i) * load(own->query + c * own->row + i);
        work->channel_gradient[channel + c] += sum_of(of_channel) * rate;
    }
    for (integer i = 0; i < own->targets; i++) {
        real *of_query = part_gradient(work, first + i, Q_ADDED) + channel;
        for (integer c = 0; c < work->width; c++)
            of_query[c] = own->sum[c * own->row + i] * work->channel[channel + c] * rate;
    }
}

static void read_rows(const struct block *own, const real *columns, real *rows)
{
    for (integer i = 0; i < own->targets; i++) {
        for (integer c = 0; c < own->work->width; c++)
            rows[i * own->wide + c] = columns[c * own->row + i];
        for (integer c = own->work->width; c < own->wide; c++)
            rows[i * own->wide + c] = 0;
    }
}

/* Adds to the gradients of keys of pairs that are not edges, and of values: sums over the targets, with vectors over the
   channels. */
static void add_source_gradients(const struct block *own, integer head)
{
    const struct attention *work = own->work;
    const integer channel = head * work->width;
    real of_key[LANES], of_value[LANES];
    read_rows(own, own->scaled, own->rows);
    read_rows(own, own->gradient, own->other_rows);
    for (integer c = 0; c < own->wide; c += LANES) {
        const integer count = work->width - c < LANES ? work->width - c : LANES;
        for (integer j = 0; j < own->n; j++) {
            const real *of_scores = own->scores + j * own->row, *shares = own->weights + j * own->row;
            vector key = {0}, value = {0};
            for (integer i = 0; i < own->targets; i++) {
                key += of_scores[i] * load(own->rows + i * own->wide + c);
                value += shares[i] * load(own->other_rows + i * own->wide + c);
            }
            store(of_key, key);
            store(of_value, value);
            real *key_gradient = part_gradient(work, own->first + j, K_ADDED) + channel + c;
            real *value_gradient = part_gradient(work, own->first + j, V) + channel + c;
            for (integer lane = 0; lane < count; lane++) {
                key_gradient[lane] += of_key[lane];
                value_gradient[lane] += of_value[lane];
            }
        }
    }
}

static void block_backward(const struct block *own, integer head, real *of_scores)
{
    const struct attention *work = own->work;
    const integer channel = head * work->width, step = PARTS * work->padded;
    real of_total[TARGETS];
    read_queries(own, head);
    read_gradients(own, head, of_total);
    weigh_edges(own, head);
    multiply_channels(own, own->scaled, part(work, own->first, K_ADDED) + channel, step, own->scores);
    multiply_channels(own, own->gradient, part(work, own->first, V) + channel, step, own->pulls);
    work->factor_gradient[2 * head + 1] += pull(own, of_total);
    forget_edges(own);
    work->factor_gradient[2 * head] += pull_edges(own, head, of_scores);
    find_query_gradients(own, head);
    add_source_gradients(own, head);
}

/* From the gradients of the edges' scores to those of what they were made of. */
static void edges_backward(const struct block *own, integer first, integer end, const real *of_scores)
{
    const struct attention *work = own->work;
    const real rate = score_rate(work);
    for (integer node = own->first; node < own->first + own->n; node++)
        for (integer slot = work->in_start[node]; slot < work->in_start[node + 1]; slot++, of_scores += work->heads) {
            const integer edge = work->in_edge[slot], from = work->source[edge];
            const real *query = part(work, node, Q), *key = part(work, from, K);
            const real *map = work->edges + edge_row(work, edge) * work->padded;
            real *restrict query_gradient = part_gradient(work, node, Q);
            real *restrict key_gradient = part_gradient(work, from, K);
            real *restrict map_gradient = work->edges_gradient + edge_row(work, edge) * work->padded;
            for (integer head = first; head < end; head++) {
                const real of_score = of_scores[head] * rate;
                for (integer c = head * work->width; c < (head + 1) * work->width; c++) {
                    query_gradient[c] += of_score * key[c] * map[c];
                    key_gradient[c] += of_score * query[c] * map[c];
                    map_gradient[c] += of_score * query[c] * key[c];
                }
            }
        }
}

_Bool attend_backward(const struct attention *work, integer graph, integer first, integer end)
{
    const integer first_node = work->graph_start[graph], end_node = work->graph_start[graph + 1];
    struct block own;
    real *of_scores
        = take_block(&own, work, graph, (work->in_start[end_node] - work->in_start[first_node]) * work->heads);
    if (of_scores == NULL)
        return 0;
    for (integer node = first_node; node < end_node; node++)
        for (integer which = 0; which < PARTS; which++)
            memset(part_gradient(work, node, which) + first * work->width, 0,
                   (size_t)((end - first) * work->width) * sizeof(real));
    while (next_block(&own))
        for (integer head = first; head < end; head++)
            block_backward(&own, head, of_scores);
    edges_backward(&own, first, end, of_scores);
    return 1;
}
