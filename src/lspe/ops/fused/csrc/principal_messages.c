/* The aggregates of a node's messages, and the way back. Nodes of few messages have code of their own, which keeps them
   in registers. */
#include "principal.h"

#define FEW 4

static const real VARIANCE_FLOOR = (real)1e-5;

/* The messages of a node: where they come from, looked up once where there are few. */
struct messages {
    const struct principal *work;
    integer begin, count;
    const real *source[FEW], *value[FEW];
};

static inline const real *source_row(const struct principal *work, integer message)
{
    return work->sources + work->order->source[message] * work->padded;
}
static inline const real *value_row(const struct principal *work, integer message)
{
    return work->values.at + work->order->value[message] * work->values.row;
}

/* `few`: how many messages there are, or 0 for any number. */
static inline __attribute__((always_inline)) struct messages messages_of(const struct principal *work, const integer few,
                                                                         integer node)
{
    struct messages of = {.work = work, .begin = work->order->start[node], .count = few};
    if (few == 0)
        of.count = degree_of(work->order, node);
    for (integer i = 0; i < few; i++) {
        of.source[i] = source_row(work, of.begin + i);
        of.value[i] = value_row(work, of.begin + i);
    }
    return of;
}

static inline __attribute__((always_inline)) vector message(const struct messages *of, const integer few, integer number,
                                                            integer c)
{
    if (few > 0)
        return load(of->source[number] + c) + load(of->value[number] + c);
    return load(source_row(of->work, of->begin + number) + c) + load(value_row(of->work, of->begin + number) + c);
}

/* What b + c of the in-edges come to, for one vector of channels. */
struct statistics {
    vector sum, mean, max, min, deviation; /* deviation: the square root of variance + floor */
};

static inline vector root(vector x)
{
    for (integer lane = 0; lane < LANES; lane++)
        x[lane] = sizeof(real) == sizeof(float) ? (real)sqrtf((float)x[lane]) : (real)sqrt((double)x[lane]);
    return x;
}

static inline __attribute__((always_inline)) struct statistics statistics_of(const struct messages *of,
                                                                             const integer few, integer c)
{
    const vector first = message(of, few, 0, c);
    const integer count = few > 0 ? few : of->count;
    struct statistics s = {.sum = first, .max = first, .min = first};
    for (integer i = 1; i < count; i++) {
        const vector m = message(of, few, i, c);
        s.sum += m;
        s.max = where((m > s.max) | (m != m), m, s.max); /* NaN stays */
        s.min = where((m < s.min) | (m != m), m, s.min);
    }
    s.mean = s.sum / (real)count;
    vector squares = {0};
    for (integer i = 0; i < count; i++) {
        const vector m = message(of, few, i, c) - s.mean;
        squares += m * m;
    }
    s.deviation = root(squares / (real)count + VARIANCE_FLOOR);
    return s;
}

static inline __attribute__((always_inline)) void aggregate_nodes(const struct principal *work, const integer few,
                                                                  integer first, integer count, real *aggregates)
{
    const integer padded = work->padded, row = aggregates_row(work);
    for (integer i = 0; i < count; i++) {
        const struct messages of = messages_of(work, few, first + i);
        for (integer c = 0; c < work->vectors; c += LANES) {
            const struct statistics s = statistics_of(&of, few, c);
            const vector found[KINDS] = {s.mean, s.sum, s.max, s.min, s.deviation};
            for (integer kind = 0; kind < KINDS; kind++)
                if (work->place[kind] >= 0)
                    store(aggregates + i * row + work->place[kind] * padded + c, found[kind]);
        }
    }
}

/* Of one vector of channels; messages that are all the greatest (or least) of a node share its gradient evenly. */
static inline __attribute__((always_inline)) void message_gradients(const struct messages *of, const integer few,
                                                                    integer c, const vector *of_kind, real *sums)
{
    const struct principal *work = of->work;
    const integer count = few > 0 ? few : of->count;
    const struct statistics s = statistics_of(of, few, c);
    vector greatest = {0}, least = {0};
    for (integer i = 0; i < count; i++) {
        const vector m = message(of, few, i, c);
        greatest += where(m == s.max, all(1), all(0));
        least += where(m == s.min, all(1), all(0));
    }
    const vector of_all = of_kind[MEAN] / (real)count + of_kind[SUM];
    const vector of_greatest = of_kind[MAX] / greatest, of_least = of_kind[MIN] / least;
    const vector of_deviation = of_kind[STD] / ((real)count * s.deviation);
    for (integer i = 0; i < count; i++) {
        const vector m = message(of, few, i, c);
        const vector gradient = of_all + where(m == s.max, of_greatest, all(0)) + where(m == s.min, of_least, all(0))
                                + of_deviation * (m - s.mean);
        store(work->messages_gradient + (of->begin + i) * work->vectors + c, gradient);
        real *sum = sums + work->order->value[of->begin + i] * work->vectors + c;
        store(sum, work->values_count > 0 ? load(sum) + gradient : gradient);
    }
}

static inline __attribute__((always_inline)) void nodes_backward(const struct principal *work, const integer few,
                                                                 integer first, integer count,
                                                                 const real *of_aggregates, real *sums)
{
    const integer padded = work->padded, row = aggregates_row(work);
    for (integer i = 0; i < count; i++) {
        const struct messages of = messages_of(work, few, first + i);
        for (integer c = 0; c < work->vectors; c += LANES) {
            vector of_kind[KINDS] = {0};
            for (integer kind = 0; kind < KINDS; kind++)
                if (work->place[kind] >= 0)
                    of_kind[kind] = load(of_aggregates + i * row + work->place[kind] * padded + c);
            message_gradients(&of, few, c, of_kind, sums);
        }
    }
}

void aggregate(const struct principal *work, integer first, integer count, real *aggregates)
{
    switch (degree_of(work->order, first)) {
    case 0: break;
    case 1: aggregate_nodes(work, 1, first, count, aggregates); break;
    case 2: aggregate_nodes(work, 2, first, count, aggregates); break;
    case 3: aggregate_nodes(work, 3, first, count, aggregates); break;
    case FEW: aggregate_nodes(work, FEW, first, count, aggregates); break;
    default: aggregate_nodes(work, 0, first, count, aggregates); break;
    }
}

void aggregate_backward(const struct principal *work, integer group, integer first, integer count,
                        const real *of_aggregates)
{
    real *sums = work->values_gradient + group * work->values_count * work->vectors;
    switch (degree_of(work->order, first)) {
    case 0: break;
    case 1: nodes_backward(work, 1, first, count, of_aggregates, sums); break;
    case 2: nodes_backward(work, 2, first, count, of_aggregates, sums); break;
    case 3: nodes_backward(work, 3, first, count, of_aggregates, sums); break;
    case FEW: nodes_backward(work, FEW, first, count, of_aggregates, sums); break;
    default: nodes_backward(work, 0, first, count, of_aggregates, sums); break;
    }
}

integer values_gradient_size(const struct principal *work, integer messages)
{
    return (work->values_count > 0 ? MOST_GROUPS * work->values_count : messages) * work->vectors;
}

void add_values_gradients(const struct principal *work)
{
    const integer size = work->values_count * work->vectors;
    for (integer group = 1; group < work->order->groups; group++)
        for (integer i = 0; i < size; i++)
            work->values_gradient[i] += work->values_gradient[group * size + i];
}
