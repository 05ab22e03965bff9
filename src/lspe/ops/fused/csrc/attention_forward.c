#include "block.h"

/* The edges of a graph: exp(clamp(score)) of some heads, negative where the score is clamped. */
static void find_powers(const struct attention *work, integer first_node, integer end_node, integer first, integer end)
{
    const integer heads = whole_vectors(end - first), width = work->width;
    const real rate = score_rate(work);
    real scores[heads], products[work->padded];
    memset(scores, 0, sizeof scores);
    for (integer node = first_node; node < end_node; node++)
        for (integer slot = work->in_start[node]; slot < work->in_start[node + 1]; slot++) {
            const integer edge = work->in_edge[slot];
            const real *query = part(work, node, Q), *key = part(work, work->source[edge], K);
            const real *map = work->edges + edge_row(work, edge);
            for (integer c = 0; c < work->padded; c += LANES)
                store(products + c, load(query + c) * load(key + c) * load(map + c));
            for (integer head = first; head < end; head++) {
                real sum = 0;
                for (integer c = head * width; c < (head + 1) * width; c++)
                    sum += products[c];
                scores[head - first] = sum * rate;
            }
            for (integer head = 0; head < heads; head += LANES) {
                const vector score = load(scores + head), power = exponential(clamped(score));
                store(scores + head, where(within_limits(score), power, -power));
            }
            memcpy(powers_at(work, slot) + first, scores, (size_t)(end - first) * sizeof(real));
        }
}

/* From scores to weights, in place; their sums over the sources into `line`. */
static void weigh(const struct block *own)
{
    const struct block work = *own;
    const real number = work.work->added_factor.number;
    for (integer i = 0; i < work.row; i += LANES) {
        vector total = all(EPSILON);
        for (integer at = i; at < work.n * work.row; at += work.row) {
            const vector power = exponential(clamped(load(work.scores + at))) * load(work.open + at);
            const vector weight = power * number + load(work.of_edges + at);
            total += weight;
            store(work.scores + at, weight);
        }
        store(work.line + i, total);
    }
}

static void write_out(const struct block *own, integer head)
{
    const struct block block = *own;
    const struct attention work = *own->work;
    for (integer i = 0; i < block.targets; i++) {
        const integer node = block.first + block.target + i - work.first_node;
        const real total = block.line[i], share = 1 / total;
        real *out = work.out + node * work.padded + head * work.width;
        work.totals[node * work.heads + head] = total;
        for (integer c = 0; c < work.width; c++)
            out[c] = block.sum[c * block.row + i] * share;
    }
}

static void attend_in_block(const struct block *own, integer head)
{
    const struct attention *work = own->work;
    const integer channel = head * work->width, step = PARTS * work->padded;
    read_queries(own, head);
    weigh_edges(own, head);
    multiply_channels(own, own->scaled, part(work, own->first, K_ADDED) + channel, step, own->scores);
    weigh(own);
    forget_edges(own);
    sum_sources(own, own->scores, part(work, own->first, V) + channel, step, own->sum);
    write_out(own, head);
}

_Bool attend(const struct attention *work, integer graph, integer first, integer end)
{
    struct block own;
    if (take_block(&own, work, graph, 0) == NULL)
        return 0;
    find_powers(work, own.first, own.first + own.n, first, end);
    while (next_block(&own))
        for (integer head = first; head < end; head++)
            attend_in_block(&own, head);
    return 1;
}
