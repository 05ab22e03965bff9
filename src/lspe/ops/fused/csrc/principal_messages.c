/* The aggregates of a node's messages, and the way back. */
#include "principal.h"

static const real VARIANCE_FLOOR = (real)1e-5;

static inline integer edges_begin(const struct principal *work, integer node)
{
    return work->call->edges.in_start.at[node];
}

static inline vector message(const struct principal *work, integer slot, integer c)
{
    const integer edge = work->call->edges.in_edge.at[slot];
    const real *from = row_at(work->call->sources, work->call->edges.source.at[edge]);
    return load(from + c) + load(row_at(work->call->edge, edge) + c);
}

static inline vector root(vector x)
{
    for (integer lane = 0; lane < LANES; lane++)
        x[lane] = sizeof(real) == sizeof(float) ? (real)sqrtf((float)x[lane]) : (real)sqrt((double)x[lane]);
    return x;
}

/* What b + c of the in-edges come to, for one vector of channels. */
struct statistics {
    vector sum, mean, max, min, deviation; /* deviation: the square root of variance + floor */
};

static inline struct statistics statistics_of(const struct principal *work, integer node, integer c)
{
    const integer begin = edges_begin(work, node), end = edges_begin(work, node + 1);
    const vector first = message(work, begin, c);
    struct statistics s = {.sum = first, .max = first, .min = first};
    for (integer slot = begin + 1; slot < end; slot++) {
        const vector m = message(work, slot, c);
        s.sum += m;
        s.max = where((m > s.max) | (m != m), m, s.max); /* NaN stays */
        s.min = where((m < s.min) | (m != m), m, s.min);
    }
    s.mean = s.sum / (real)(end - begin);
    vector squares = {0};
    for (integer slot = begin; slot < end; slot++) {
        const vector m = message(work, slot, c) - s.mean;
        squares += m * m;
    }
    s.deviation = root(squares / (real)(end - begin) + VARIANCE_FLOOR);
    return s;
}

void aggregate_node(const struct principal *work, integer node, const real *target)
{
    const struct indices kinds = work->call->kinds;
    const integer padded = work->padded, width = work->width;
    const integer degree = edges_begin(work, node + 1) - edges_begin(work, node);
    real rows[KINDS * padded];
    if (degree == 0)
        memset(rows, 0, sizeof rows);
    for (integer c = 0; c < padded && degree > 0; c += LANES) {
        const struct statistics s = statistics_of(work, node, c);
        const vector at_target = load(target + c);
        store(rows + MEAN * padded + c, s.mean + at_target);
        store(rows + SUM * padded + c, s.sum + at_target * (real)degree);
        store(rows + MAX * padded + c, s.max + at_target);
        store(rows + MIN * padded + c, s.min + at_target);
        store(rows + STD * padded + c, s.deviation);
    }
    real *to = row_at(work->call->aggregates, node);
    for (integer tower = 0; tower < work->towers; tower++)
        for (integer a = 0; a < kinds.count; a++, to += width)
            memcpy(to, rows + kinds.at[a] * padded + tower * width, (size_t)width * sizeof(real));
}

/* Messages that are all the greatest (or least) of a node share its gradient evenly. */
static inline void message_gradients(const struct principal *work, integer node, integer c, const real *gradients)
{
    const integer begin = edges_begin(work, node), end = edges_begin(work, node + 1), padded = work->padded;
    const real degree = (real)(end - begin);
    const struct statistics s = statistics_of(work, node, c);
    vector greatest = {0}, least = {0};
    for (integer slot = begin; slot < end; slot++) {
        const vector m = message(work, slot, c);
        greatest += where(m == s.max, all(1), all(0));
        least += where(m == s.min, all(1), all(0));
    }
    const vector of_all = load(gradients + MEAN * padded + c) / degree + load(gradients + SUM * padded + c);
    const vector of_greatest = load(gradients + MAX * padded + c) / greatest;
    const vector of_least = load(gradients + MIN * padded + c) / least;
    const vector of_deviation = load(gradients + STD * padded + c) / (degree * s.deviation);
    for (integer slot = begin; slot < end; slot++) {
        const vector m = message(work, slot, c);
        const vector gradient = of_all + where(m == s.max, of_greatest, all(0)) + where(m == s.min, of_least, all(0))
                                + of_deviation * (m - s.mean);
        store(row_at(work->call->edge_gradient, work->call->edges.in_edge.at[slot]) + c, gradient);
    }
}

void aggregate_node_backward(const struct principal *work, integer node, const real *of_aggregates, integer row,
                             real *of_target)
{
    const struct indices kinds = work->call->kinds;
    const integer padded = work->padded, width = work->width;
    const integer degree = edges_begin(work, node + 1) - edges_begin(work, node);
    if (degree == 0) {
        memset(of_target, 0, (size_t)padded * sizeof(real));
        return;
    }
    real gradients[KINDS * padded];
    memset(gradients, 0, sizeof gradients);
    for (integer tower = 0; tower < work->towers; tower++)
        for (integer a = 0; a < kinds.count; a++) {
            const real *restrict from = of_aggregates + tower * row + a * width;
            real *restrict to = gradients + kinds.at[a] * padded + tower * width;
            for (integer o = 0; o < width; o++)
                to[o] += from[o];
        }
    for (integer c = 0; c < padded; c += LANES) {
        store(of_target + c, load(gradients + MEAN * padded + c) + load(gradients + MAX * padded + c)
                                 + load(gradients + MIN * padded + c)
                                 + load(gradients + SUM * padded + c) * (real)degree);
        message_gradients(work, node, c, gradients);
    }
}
