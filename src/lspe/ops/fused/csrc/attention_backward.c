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

/* Gradients of the outputs of a head, into `line` 1 / total, into of_total [row] minus their products with the outputs:
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
    const struct block work = *own;
    const real number = work.work->added_factor.number;
    vector of_number = {0};
    for (integer i = 0; i < work.row; i += LANES) {
        const vector share = load(work.line + i), more = load(of_total + i);
        for (integer at = i; at < work.n * work.row; at += work.row) {
            const vector score = load(work.scores + at);
            const vector power = exponential(clamped(score)) * load(work.open + at), weight = power * number;
            const vector of_weight = (load(work.pulls + at) + more) * share;
            of_number += of_weight * power;
            store(work.weights + at, (weight + load(work.of_edges + at)) * share);
            store(work.pulls + at, of_weight);
            store(work.scores + at, where(within_limits(score), of_weight * weight, all(0)));
        }
    }
    return sum_of(of_number);
}

/* Gradients of the edges' scores with a head into of_scores [slots of the graph, heads]; returns that of the number of
   edges. */
static real pull_edges(const struct block *own, integer head, real *of_scores)
{
    const struct block block = *own;
    const struct attention *work = own->work;
    const integer heads = work->heads;
    const real *powers = powers_at(work, block.first_slot) + head, number = work->real_factor.number;
    real of_number = 0;
    of_scores += (block.first_slot - work->in_start[block.first]) * heads + head;
    for (integer slot = 0; slot < block.slots; slot++) {
        const real power = powers[slot * heads], of_power = block.pulls[block.place[slot]] * block.factor[slot];
        of_number += of_power * (power < 0 ? -power : power);
        of_scores[slot * heads] = power > 0 ? of_power * power * number : 0;
    }
    return of_number;
}

/* Gradients of queries of pairs that are not edges, and of the channels they are multiplied by. */
static void find_query_gradients(const struct block *own, integer head)
{
    const struct block block = *own;
    const struct attention work = *own->work;
    const integer channel = head * work.width, step = PARTS * work.padded;
    const real rate = score_rate(&work);
    real *of_query = part_gradient(&work, block.first + block.target, Q_ADDED) + channel;
    sum_sources(own, block.scores, part(&work, block.first, K_ADDED) + channel, step, block.sum);
    for (integer c = 0; c < work.width; c++) {
        const real scale = work.channel[channel + c] * rate;
        vector of_channel = {0};
        for (integer i = 0; i < block.row; i += LANES)
            of_channel += load(block.sum + c * block.row + i) * load(block.query + c * block.row + i);
        work.channel_gradient[channel + c] += sum_of(of_channel) * rate;
        for (integer i = 0; i < block.targets; i++)
            of_query[i * step + c] = block.sum[c * block.row + i] * scale;
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
    add_targets(own, own->scores, own->scaled, part_gradient(work, own->first, K_ADDED) + channel, step);
    add_targets(own, own->weights, own->gradient, part_gradient(work, own->first, V) + channel, step);
}

/* What the gradient of an edge's score in each channel adds to the gradients of what it was made of. */
static void add_edge_gradients(integer channels, const real *restrict of_channel, const real *restrict query,
                               const real *restrict key, const real *restrict map, real *restrict of_query,
                               real *restrict of_key, real *restrict of_map)
{
    for (integer c = 0; c < channels; c++) {
        const real q = query[c], k = key[c], m = map[c], gradient = of_channel[c];
        of_query[c] += gradient * k * m;
        of_key[c] += gradient * q * m;
        of_map[c] += gradient * q * k;
    }
}

static void edges_backward(const struct block *own, integer first, integer end, const real *of_scores)
{
    const struct attention work = *own->work;
    const integer begin = first * work.width, channels = (end - first) * work.width;
    const real rate = score_rate(&work);
    real of_channel[channels];
    for (integer node = own->first; node < own->first + own->n; node++)
        for (integer slot = work.in_start[node]; slot < work.in_start[node + 1]; slot++, of_scores += work.heads) {
            const integer edge = work.in_edge[slot], from = work.source[edge];
            const integer at = edge_row(&work, edge) + begin;
            for (integer head = first, c = 0; head < end; head++)
                for (integer to = c + work.width; c < to; c++)
                    of_channel[c] = of_scores[head] * rate;
            add_edge_gradients(channels, of_channel, part(&work, node, Q) + begin, part(&work, from, K) + begin,
                               work.edges + at, part_gradient(&work, node, Q) + begin,
                               part_gradient(&work, from, K) + begin, work.edges_gradient + at);
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
