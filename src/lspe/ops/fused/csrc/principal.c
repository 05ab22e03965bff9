/* PNA's aggregates of the messages m_ij = a_i + b_j + c_ij over the in-edges of each node, and their gradients.

   Rows of channels are `padded` numbers long, a multiple of LANES; the first towers * width are those of the towers,
   one after the other. A row of `node` has three parts: a, b, and what a node adds to its own update. Aggregates stand
   tower by tower, [towers, nodes, row]: in each row the aggregates of the tower one after the other, then zeros. */
#include "tasks.h"

enum { MEAN, SUM, MAX, MIN, STD, KINDS };
enum { AT_TARGET, AT_SOURCE, OF_SELF, PARTS };

static const real VARIANCE_FLOOR = (real)1e-5;

static inline integer padded_of(const struct aggregation *work) { return work->edge.width; }

static inline vector message(const struct aggregation *work, integer edge, integer c)
{
    const real *from = row_at(work->node, work->edges.source.at[edge]) + AT_SOURCE * padded_of(work);
    return load(from + c) + load(row_at(work->edge, edge) + c);
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

static inline struct statistics statistics_of(const struct aggregation *work, integer node, integer c)
{
    const integer begin = work->edges.in_start.at[node], end = work->edges.in_start.at[node + 1];
    const vector first = message(work, work->edges.in_edge.at[begin], c);
    struct statistics s = {.sum = first, .max = first, .min = first};
    for (integer slot = begin + 1; slot < end; slot++) {
        const vector m = message(work, work->edges.in_edge.at[slot], c);
        s.sum += m;
        s.max = where((m > s.max) | (m != m), m, s.max); /* NaN stays */
        s.min = where((m < s.min) | (m != m), m, s.min);
    }
    s.mean = s.sum / (real)(end - begin);
    vector squares = {0};
    for (integer slot = begin; slot < end; slot++) {
        const vector m = message(work, work->edges.in_edge.at[slot], c) - s.mean;
        squares += m * m;
    }
    s.deviation = root(squares / (real)(end - begin) + VARIANCE_FLOOR);
    return s;
}

/* A row of channels <-> the pieces of the towers' rows that hold aggregate `number`. */
static inline real *piece(const struct aggregation *work, struct rows aggregates, integer tower, integer node,
                          integer number)
{
    return row_at(aggregates, tower * work->edges.nodes + node) + number * work->width;
}

static void aggregate_task(void *argument, integer number)
{
    const struct aggregation copy = *(const struct aggregation *)argument, *work = &copy;
    const integer padded = padded_of(work), width = work->width;
    real rows[KINDS * padded];
    for (integer node = begin_of(number); node < end_of(number, work->edges.nodes); node++) {
        const real *own = row_at(work->node, node) + AT_TARGET * padded;
        const integer degree = work->edges.in_start.at[node + 1] - work->edges.in_start.at[node];
        if (degree == 0)
            memset(rows, 0, sizeof rows);
        for (integer c = 0; c < padded && degree > 0; c += LANES) {
            const struct statistics s = statistics_of(work, node, c);
            const vector at_target = load(own + c);
            store(rows + MEAN * padded + c, s.mean + at_target);
            store(rows + SUM * padded + c, s.sum + at_target * (real)degree);
            store(rows + MAX * padded + c, s.max + at_target);
            store(rows + MIN * padded + c, s.min + at_target);
            store(rows + STD * padded + c, s.deviation);
        }
        for (integer tower = 0; tower < work->towers; tower++) {
            for (integer a = 0; a < work->kinds.count; a++)
                memcpy(piece(work, work->aggregates, tower, node, a), rows + work->kinds.at[a] * padded + tower * width,
                       (size_t)width * sizeof(real));
            real *rest = piece(work, work->aggregates, tower, node, work->kinds.count);
            memset(rest, 0, (size_t)(work->aggregates.width - work->kinds.count * width) * sizeof(real));
        }
    }
}

/* Messages that are all the greatest (or least) of a node share its gradient evenly. */
static void message_gradients(const struct aggregation *work, integer node, integer c, const real *gradients)
{
    const integer begin = work->edges.in_start.at[node], end = work->edges.in_start.at[node + 1], padded = padded_of(work);
    const real degree = (real)(end - begin);
    const struct statistics s = statistics_of(work, node, c);
    vector greatest = {0}, least = {0};
    for (integer slot = begin; slot < end; slot++) {
        const vector m = message(work, work->edges.in_edge.at[slot], c);
        greatest += where(m == s.max, all(1), all(0));
        least += where(m == s.min, all(1), all(0));
    }
    const vector of_all = load(gradients + MEAN * padded + c) / degree + load(gradients + SUM * padded + c);
    const vector of_greatest = load(gradients + MAX * padded + c) / greatest;
    const vector of_least = load(gradients + MIN * padded + c) / least;
    const vector of_deviation = load(gradients + STD * padded + c) / (degree * s.deviation);
    for (integer slot = begin; slot < end; slot++) {
        const integer edge = work->edges.in_edge.at[slot];
        const vector m = message(work, edge, c);
        const vector gradient = of_all + where(m == s.max, of_greatest, all(0)) + where(m == s.min, of_least, all(0))
                                + of_deviation * (m - s.mean);
        store(row_at(work->edge_gradient, edge) + c, gradient);
    }
}

static void target_task(void *argument, integer number)
{
    const struct aggregation copy = *(const struct aggregation *)argument, *work = &copy;
    const integer padded = padded_of(work), width = work->width;
    real gradients[KINDS * padded];
    for (integer node = begin_of(number); node < end_of(number, work->edges.nodes); node++) {
        real *own = row_at(work->node_gradient, node) + AT_TARGET * padded;
        const integer degree = work->edges.in_start.at[node + 1] - work->edges.in_start.at[node];
        memset(gradients, 0, sizeof gradients);
        if (degree > 0)
            for (integer tower = 0; tower < work->towers; tower++)
                for (integer a = 0; a < work->kinds.count; a++) {
                    const real *from = piece(work, work->aggregates_gradient, tower, node, a);
                    real *to = gradients + work->kinds.at[a] * padded + tower * width;
                    for (integer o = 0; o < width; o++)
                        to[o] += from[o];
                }
        for (integer c = 0; c < padded; c += LANES) {
            store(own + c, load(gradients + MEAN * padded + c) + load(gradients + MAX * padded + c)
                               + load(gradients + MIN * padded + c)
                               + load(gradients + SUM * padded + c) * (real)degree);
            if (degree > 0)
                message_gradients(work, node, c, gradients);
        }
    }
}

static void source_task(void *argument, integer number)
{
    const struct aggregation copy = *(const struct aggregation *)argument, *work = &copy;
    const integer padded = padded_of(work);
    for (integer node = begin_of(number); node < end_of(number, work->edges.nodes); node++) {
        real *own = row_at(work->node_gradient, node) + AT_SOURCE * padded;
        memset(own, 0, (size_t)padded * sizeof(real));
        for (integer slot = work->edges.out_start.at[node]; slot < work->edges.out_start.at[node + 1]; slot++) {
            const real *gradient = row_at(work->edge_gradient, work->edges.out_edge.at[slot]);
            for (integer c = 0; c < padded; c += LANES)
                store(own + c, load(own + c) + load(gradient + c));
        }
    }
}

static enum answer check_aggregation(const struct aggregation *call)
{
    const integer nodes = call->edges.nodes, edges = call->edges.source.count, padded = padded_of(call);
    NEED_SIZES(call->threads >= 1 && nodes >= 0 && call->towers >= 1 && call->width >= 1);
    NEED_SIZES(padded % LANES == 0 && padded <= WIDEST && call->towers * call->width <= padded);
    NEED_SIZES(sized(call->node, nodes, PARTS * padded) && sized(call->edge, edges, padded));
    NEED_SIZES(sized_indices(call->edges.source, edges) && sized_indices(call->edges.in_start, nodes + 1));
    NEED_SIZES(sized_indices(call->edges.in_edge, edges) && sized_indices(call->kinds, call->kinds.count));
    NEED_INDICES(all_below(call->edges.source, nodes) && all_below(call->edges.in_edge, edges));
    NEED_INDICES(rises_to(call->edges.in_start, edges) && all_below(call->kinds, KINDS));
    return DONE;
}

enum answer principal_forward(const struct aggregation *call)
{
    const integer nodes = call->edges.nodes, row = call->aggregates.width;
    const enum answer answer = check_aggregation(call);
    if (answer != DONE)
        return answer;
    NEED_SIZES(sized(call->aggregates, call->towers * nodes, row) && row >= call->kinds.count * call->width);
    run_tasks(call->threads, tasks_of(nodes), aggregate_task, (void *)call);
    return DONE;
}

/* Writes the first two parts of node_gradient. */
enum answer principal_backward(const struct aggregation *call)
{
    const integer nodes = call->edges.nodes, edges = call->edges.source.count, row = call->aggregates_gradient.width;
    const enum answer answer = check_aggregation(call);
    if (answer != DONE)
        return answer;
    NEED_SIZES(sized(call->aggregates_gradient, call->towers * nodes, row) && row >= call->kinds.count * call->width);
    NEED_SIZES(sized(call->node_gradient, nodes, call->node.width) && sized(call->edge_gradient, edges, padded_of(call)));
    NEED_SIZES(sized_indices(call->edges.out_start, nodes + 1) && sized_indices(call->edges.out_edge, edges));
    NEED_INDICES(rises_to(call->edges.out_start, edges) && all_below(call->edges.out_edge, edges));
    run_tasks(call->threads, tasks_of(nodes), target_task, (void *)call);
    run_tasks(call->threads, tasks_of(nodes), source_task, (void *)call);
    return DONE;
}

/* The update: what a node adds itself, and the maps of its aggregates, each times a number of its own. */
static void update_task(void *argument, integer number)
{
    const struct updating copy = *(const struct updating *)argument, *work = &copy;
    const integer width = work->width, nodes = work->scale.count, padded = work->node.width / PARTS;
    for (integer node = begin_of(number); node < end_of(number, nodes); node++) {
        real *restrict out = row_at(work->out, node);
        memcpy(out, row_at(work->node, node) + OF_SELF * padded, (size_t)(work->towers * width) * sizeof *out);
        for (integer tower = 0; tower < work->towers; tower++)
            for (integer s = 0; s < work->scale.width; s++) {
                const real *restrict from = row_at(work->mapped, tower * nodes + node) + s * width;
                const real scale = row_at(work->scale, node)[s];
                for (integer o = 0; o < width; o++)
                    out[tower * width + o] += scale * from[o];
            }
    }
}

static void update_gradient_task(void *argument, integer number)
{
    const struct updating copy = *(const struct updating *)argument, *work = &copy;
    const integer width = work->width, all_towers = work->towers * width, nodes = work->scale.count;
    const integer padded = work->node_gradient.width / PARTS, scalers = work->scale.width;
    for (integer node = begin_of(number); node < end_of(number, nodes); node++) {
        const real *restrict gradient = row_at(work->gradient, node);
        real *own = row_at(work->node_gradient, node) + OF_SELF * padded;
        memcpy(own, gradient, (size_t)all_towers * sizeof(real));
        memset(own + all_towers, 0, (size_t)(padded - all_towers) * sizeof(real));
        for (integer tower = 0; tower < work->towers; tower++) {
            real *restrict to = row_at(work->mapped, tower * nodes + node);
            for (integer s = 0; s < scalers; s++) {
                const real scale = row_at(work->scale, node)[s];
                for (integer o = 0; o < width; o++)
                    to[s * width + o] = scale * gradient[tower * width + o];
            }
            memset(to + scalers * width, 0, (size_t)(work->mapped.width - scalers * width) * sizeof(real));
        }
    }
}

static enum answer check_update(const struct updating *call, struct rows node)
{
    const integer nodes = call->scale.count, scalers = call->scale.width;
    NEED_SIZES(call->threads >= 1 && call->towers >= 1 && call->width >= 1 && sized(call->scale, nodes, scalers));
    NEED_SIZES(node.width % PARTS == 0 && node.width / PARTS >= call->towers * call->width);
    NEED_SIZES(sized(node, nodes, node.width) && call->mapped.width >= scalers * call->width);
    NEED_SIZES(sized(call->mapped, call->towers * nodes, call->mapped.width));
    return DONE;
}

enum answer update_forward(const struct updating *call)
{
    const enum answer answer = check_update(call, call->node);
    if (answer != DONE)
        return answer;
    NEED_SIZES(sized(call->out, call->scale.count, call->towers * call->width));
    run_tasks(call->threads, tasks_of(call->scale.count), update_task, (void *)call);
    return DONE;
}

/* Writes the gradient of `mapped`, into it, and the third part of node_gradient. */
enum answer update_backward(const struct updating *call)
{
    const enum answer answer = check_update(call, call->node_gradient);
    if (answer != DONE)
        return answer;
    NEED_SIZES(sized(call->gradient, call->scale.count, call->towers * call->width));
    run_tasks(call->threads, tasks_of(call->scale.count), update_gradient_task, (void *)call);
    return DONE;
}
