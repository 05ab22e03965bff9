/* PNA's aggregates of the messages m_ij = a_i + b_j + c_ij over the in-edges of each node, and their gradients.

   Rows of channels are `padded` numbers long, a multiple of LANES; the first towers * width are those of the towers,
   one after the other. A row of `node` has three parts: a, b, and what a node adds to its own update. Aggregates stand
   tower by tower, [towers, nodes, row]: in each row the aggregates of the tower one after the other, then zeros. */
#include "tasks.h"

enum { MEAN, SUM, MAX, MIN, STD, KINDS };
enum { AT_TARGET, AT_SOURCE, OF_SELF, PARTS };

struct principal {
    integer nodes, padded, towers, width, row, count;
    const integer *kinds; /* [count] */
    const integer *source, *in_start, *in_edge, *out_start, *out_edge;
    const real *node, *edge;
    real *aggregates;

    const real *aggregates_gradient;
    real *node_gradient, *edge_gradient;
};

static const real VARIANCE_FLOOR = (real)1e-5;

static inline vector message(const struct principal *work, integer edge, integer c)
{
    const real *from = work->node + (work->source[edge] * PARTS + AT_SOURCE) * work->padded;
    return load(from + c) + load(work->edge + edge * work->padded + c);
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
    const integer begin = work->in_start[node], end = work->in_start[node + 1];
    const vector first = message(work, work->in_edge[begin], c);
    struct statistics s = {.sum = first, .max = first, .min = first};
    for (integer slot = begin + 1; slot < end; slot++) {
        const vector m = message(work, work->in_edge[slot], c);
        s.sum += m;
        s.max = where((m > s.max) | (m != m), m, s.max); /* NaN stays */
        s.min = where((m < s.min) | (m != m), m, s.min);
    }
    s.mean = s.sum / (real)(end - begin);
    vector squares = {0};
    for (integer slot = begin; slot < end; slot++) {
        const vector m = message(work, work->in_edge[slot], c) - s.mean;
        squares += m * m;
    }
    s.deviation = root(squares / (real)(end - begin) + VARIANCE_FLOOR);
    return s;
}

/* A row of channels <-> the pieces of the towers' rows that hold aggregate `number`. */
static inline real *piece(const struct principal *work, real *aggregates, integer tower, integer node, integer number)
{
    return aggregates + (tower * work->nodes + node) * work->row + number * work->width;
}

static void aggregate_task(void *argument, integer number)
{
    const struct principal copy = *(const struct principal *)argument, *work = &copy;
    const integer padded = work->padded, width = work->width;
    real rows[KINDS * padded];
    for (integer node = begin_of(number); node < end_of(number, work->nodes); node++) {
        const real *own = work->node + (node * PARTS + AT_TARGET) * padded;
        const integer degree = work->in_start[node + 1] - work->in_start[node];
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
            for (integer a = 0; a < work->count; a++)
                memcpy(piece(work, work->aggregates, tower, node, a), rows + work->kinds[a] * padded + tower * width,
                       (size_t)width * sizeof(real));
            real *rest = piece(work, work->aggregates, tower, node, work->count);
            memset(rest, 0, (size_t)(work->row - work->count * width) * sizeof(real));
        }
    }
}

/* Messages that are all the greatest (or least) of a node share its gradient evenly. */
static void message_gradients(const struct principal *work, integer node, integer c, const real *gradients)
{
    const integer begin = work->in_start[node], end = work->in_start[node + 1], padded = work->padded;
    const real degree = (real)(end - begin);
    const struct statistics s = statistics_of(work, node, c);
    vector greatest = {0}, least = {0};
    for (integer slot = begin; slot < end; slot++) {
        const vector m = message(work, work->in_edge[slot], c);
        greatest += where(m == s.max, all(1), all(0));
        least += where(m == s.min, all(1), all(0));
    }
    const vector of_all = load(gradients + MEAN * padded + c) / degree + load(gradients + SUM * padded + c);
    const vector of_greatest = load(gradients + MAX * padded + c) / greatest;
    const vector of_least = load(gradients + MIN * padded + c) / least;
    const vector of_deviation = load(gradients + STD * padded + c) / (degree * s.deviation);
    for (integer slot = begin; slot < end; slot++) {
        const integer edge = work->in_edge[slot];
        const vector m = message(work, edge, c);
        const vector gradient = of_all + where(m == s.max, of_greatest, all(0)) + where(m == s.min, of_least, all(0))
                                + of_deviation * (m - s.mean);
        store(work->edge_gradient + edge * padded + c, gradient);
    }
}

static void target_task(void *argument, integer number)
{
    const struct principal copy = *(const struct principal *)argument, *work = &copy;
    const integer padded = work->padded, width = work->width;
    real gradients[KINDS * padded];
    for (integer node = begin_of(number); node < end_of(number, work->nodes); node++) {
        real *own = work->node_gradient + (node * PARTS + AT_TARGET) * padded;
        const integer degree = work->in_start[node + 1] - work->in_start[node];
        memset(gradients, 0, sizeof gradients);
        if (degree > 0)
            for (integer tower = 0; tower < work->towers; tower++)
                for (integer a = 0; a < work->count; a++) {
                    const real *from = piece(work, (real *)work->aggregates_gradient, tower, node, a);
                    real *to = gradients + work->kinds[a] * padded + tower * width;
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
    const struct principal copy = *(const struct principal *)argument, *work = &copy;
    const integer padded = work->padded;
    for (integer node = begin_of(number); node < end_of(number, work->nodes); node++) {
        real *own = work->node_gradient + (node * PARTS + AT_SOURCE) * padded;
        memset(own, 0, (size_t)padded * sizeof(real));
        for (integer slot = work->out_start[node]; slot < work->out_start[node + 1]; slot++) {
            const real *gradient = work->edge_gradient + work->out_edge[slot] * padded;
            for (integer c = 0; c < padded; c += LANES)
                store(own + c, load(own + c) + load(gradient + c));
        }
    }
}

void principal_forward(integer threads, integer nodes, integer padded, integer towers, integer width, integer row,
                       integer count, const integer *kinds, const integer *source, const integer *in_start,
                       const integer *in_edge, const real *node, const real *edge, real *aggregates)
{
    struct principal work = {.nodes = nodes, .padded = padded, .towers = towers, .width = width, .row = row,
                             .count = count, .kinds = kinds, .source = source, .in_start = in_start,
                             .in_edge = in_edge, .node = node, .edge = edge, .aggregates = aggregates};
    run_tasks(threads, tasks_of(nodes), aggregate_task, &work);
}

/* Writes the first two parts of node_gradient. */
void principal_backward(integer threads, integer nodes, integer padded, integer towers, integer width, integer row,
                        integer count, const integer *kinds, const integer *source, const integer *in_start,
                        const integer *in_edge, const integer *out_start, const integer *out_edge, const real *node,
                        const real *edge, const real *aggregates_gradient, real *node_gradient, real *edge_gradient)
{
    struct principal work = {.nodes = nodes, .padded = padded, .towers = towers, .width = width, .row = row,
                             .count = count, .kinds = kinds, .source = source, .in_start = in_start,
                             .in_edge = in_edge, .out_start = out_start, .out_edge = out_edge, .node = node,
                             .edge = edge, .aggregates_gradient = aggregates_gradient,
                             .node_gradient = node_gradient, .edge_gradient = edge_gradient};
    run_tasks(threads, tasks_of(nodes), target_task, &work);
    run_tasks(threads, tasks_of(nodes), source_task, &work);
}

/* The update: what a node adds itself, and the maps of its aggregates, each times a number of its own. */
struct update {
    integer nodes, padded, towers, width, row, scalers;
    const real *scale; /* [nodes, scalers] */
    const real *node;
    real *mapped; /* [towers, nodes, row]: in each row the tower's maps, one for each scaler, then zeros */
    real *out;    /* [nodes, towers * width] */

    const real *gradient;
    integer gradient_row;
    real *node_gradient;
};

static void update_task(void *argument, integer number)
{
    const struct update copy = *(const struct update *)argument, *work = &copy;
    const integer width = work->width;
    for (integer node = begin_of(number); node < end_of(number, work->nodes); node++) {
        real *restrict out = work->out + node * work->towers * width;
        memcpy(out, work->node + (node * PARTS + OF_SELF) * work->padded, (size_t)(work->towers * width) * sizeof *out);
        for (integer tower = 0; tower < work->towers; tower++)
            for (integer s = 0; s < work->scalers; s++) {
                const real *restrict from = work->mapped + (tower * work->nodes + node) * work->row + s * width;
                const real scale = work->scale[node * work->scalers + s];
                for (integer o = 0; o < width; o++)
                    out[tower * width + o] += scale * from[o];
            }
    }
}

static void update_gradient_task(void *argument, integer number)
{
    const struct update copy = *(const struct update *)argument, *work = &copy;
    const integer width = work->width, all_towers = work->towers * width;
    for (integer node = begin_of(number); node < end_of(number, work->nodes); node++) {
        const real *restrict gradient = work->gradient + node * work->gradient_row;
        real *own = work->node_gradient + (node * PARTS + OF_SELF) * work->padded;
        memcpy(own, gradient, (size_t)all_towers * sizeof(real));
        memset(own + all_towers, 0, (size_t)(work->padded - all_towers) * sizeof(real));
        for (integer tower = 0; tower < work->towers; tower++) {
            real *restrict to = work->mapped + (tower * work->nodes + node) * work->row;
            for (integer s = 0; s < work->scalers; s++) {
                const real scale = work->scale[node * work->scalers + s];
                for (integer o = 0; o < width; o++)
                    to[s * width + o] = scale * gradient[tower * width + o];
            }
            memset(to + work->scalers * width, 0, (size_t)(work->row - work->scalers * width) * sizeof(real));
        }
    }
}

void update_forward(integer threads, integer nodes, integer padded, integer towers, integer width, integer row,
                    integer scalers, const real *scale, const real *node, const real *mapped, real *out)
{
    struct update work = {.nodes = nodes, .padded = padded, .towers = towers, .width = width, .row = row,
                          .scalers = scalers, .scale = scale, .node = node, .mapped = (real *)mapped, .out = out};
    run_tasks(threads, tasks_of(nodes), update_task, &work);
}

/* Writes the gradient of `mapped`, and the third part of node_gradient. */
void update_backward(integer threads, integer nodes, integer padded, integer towers, integer width, integer row,
                     integer scalers, const real *scale, const real *gradient, integer gradient_row,
                     real *node_gradient, real *mapped_gradient)
{
    struct update work = {.nodes = nodes, .padded = padded, .towers = towers, .width = width, .row = row,
                          .scalers = scalers, .scale = scale, .mapped = mapped_gradient, .gradient = gradient,
                          .gradient_row = gradient_row, .node_gradient = node_gradient};
    run_tasks(threads, tasks_of(nodes), update_gradient_task, &work);
}
