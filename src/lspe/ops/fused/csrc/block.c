#include "block.h"

#include "room.h"

#define CHANNELS 8 /* of a head at a time: so many columns are kept in registers */
#define inlined static inline __attribute__((always_inline)) /* so that the number of channels is known when compiled */

static integer smaller(integer one, integer other) { return one < other ? one : other; }

real *take_block(struct block *own, const struct attention *work, integer graph, integer more)
{
    const integer first = work->graph_start[graph], n = work->graph_start[graph + 1] - first;
    const integer row = whole_vectors(smaller(n, TARGETS)), wide = whole_vectors(work->width);
    const integer matrix = n * row, columns = work->width * row, rows = row * wide;
    real *room = room_for_task(5 * matrix + 4 * columns + 2 * rows + row + more + 1);
    if (room == NULL)
        return NULL;
    real *of_columns = room + 5 * matrix, *of_rows = of_columns + 4 * columns;
    *own = (struct block){.work = work, .graph = graph, .first = first, .n = n, .row = row, .wide = wide,
                          .target = -TARGETS, .open = room, .of_edges = room + matrix, .scores = room + 2 * matrix,
                          .weights = room + 3 * matrix, .pulls = room + 4 * matrix, .query = of_columns,
                          .scaled = of_columns + columns, .gradient = of_columns + 2 * columns,
                          .sum = of_columns + 3 * columns, .rows = of_rows, .other_rows = of_rows + rows,
                          .line = of_rows + 2 * rows};
    memset(own->of_edges, 0, (size_t)matrix * sizeof(real));
    return own->line + row;
}

static void read_open_pairs(const struct block *own)
{
    const struct attention *work = own->work;
    const real *matrix = work->added_factor.matrix;
    memset(own->open, 0, (size_t)(own->n * own->row) * sizeof(real));
    for (integer j = 0; j < own->n; j++)
        for (integer i = 0; i < own->targets; i++)
            own->open[j * own->row + i]
                = matrix == NULL ? 1 : matrix[(own->graph * work->side + own->target + i) * work->side + j];
    for (integer i = 0; i < own->targets; i++) {
        own->open[(own->target + i) * own->row + i] = 0;
        for (integer slot = edges_begin(own, own->target + i); slot < edges_begin(own, own->target + i + 1); slot++)
            own->open[source_of(own, slot) * own->row + i] = 0;
    }
}

_Bool next_block(struct block *own)
{
    own->target += TARGETS;
    if (own->target >= own->n)
        return 0;
    own->targets = smaller(TARGETS, own->n - own->target);
    own->row = whole_vectors(own->targets);
    read_open_pairs(own);
    return 1;
}

void read_columns(const struct block *own, const real *from, integer step, real *columns)
{
    for (integer c = 0; c < own->work->width; c++) {
        for (integer i = 0; i < own->targets; i++)
            columns[c * own->row + i] = from[i * step + c];
        for (integer i = own->targets; i < own->row; i++)
            columns[c * own->row + i] = 0;
    }
}

void read_queries(const struct block *own, integer head)
{
    const struct attention *work = own->work;
    const real rate = score_rate(work), *channel = work->channel + head * work->width;
    read_columns(own, part(work, own->first + own->target, Q_ADDED) + head * work->width, PARTS * work->padded,
                 own->query);
    for (integer c = 0; c < work->width; c++)
        for (integer i = 0; i < own->row; i += LANES)
            store(own->scaled + c * own->row + i, load(own->query + c * own->row + i) * (channel[c] * rate));
}

void weigh_edges(const struct block *own, integer head)
{
    const struct attention *work = own->work;
    for (integer i = 0; i < own->targets; i++)
        for (integer slot = edges_begin(own, own->target + i); slot < edges_begin(own, own->target + i + 1); slot++) {
            const integer j = source_of(own, slot);
            const real power = powers_at(work, slot)[head];
            own->of_edges[j * own->row + i]
                += (power < 0 ? -power : power) * factor_of(work, &work->real_factor, own->graph, own->target + i, j);
        }
}

void forget_edges(const struct block *own)
{
    for (integer i = 0; i < own->targets; i++)
        for (integer slot = edges_begin(own, own->target + i); slot < edges_begin(own, own->target + i + 1); slot++)
            own->of_edges[source_of(own, slot) * own->row + i] = 0;
}

inlined void multiply(const integer channels, const _Bool first, const struct block *own, const real *columns,
                      const real *rows, integer step, real *to)
{
    const integer row = own->row, n = own->n;
    for (integer i = 0; i < row; i += LANES) {
        vector column[CHANNELS];
        for (integer c = 0; c < channels; c++)
            column[c] = load(columns + c * row + i);
        for (integer j = 0; j < n; j++) {
            vector sum = first ? all(0) : load(to + j * row + i);
            for (integer c = 0; c < channels; c++)
                sum += column[c] * rows[j * step + c];
            store(to + j * row + i, sum);
        }
    }
}

inlined void sum_up(const integer channels, const struct block *own, const real *matrix, const real *rows,
                    integer step, real *to)
{
    const integer row = own->row, n = own->n;
    for (integer i = 0; i < row; i += LANES) {
        vector sum[CHANNELS];
        for (integer c = 0; c < channels; c++)
            sum[c] = all(0);
        for (integer j = 0; j < n; j++) {
            const vector left = load(matrix + j * row + i);
            for (integer c = 0; c < channels; c++)
                sum[c] += left * rows[j * step + c];
        }
        for (integer c = 0; c < channels; c++)
            store(to + c * row + i, sum[c]);
    }
}

#define FOR_CHANNELS(count, DO) \
    switch (count) { \
    case 1: DO(1); break; \
    case 2: DO(2); break; \
    case 3: DO(3); break; \
    case 4: DO(4); break; \
    case 5: DO(5); break; \
    case 6: DO(6); break; \
    case 7: DO(7); break; \
    default: DO(CHANNELS); \
    }

void multiply_channels(const struct block *own, const real *columns, const real *rows, integer step, real *to)
{
#define BEGIN(count) multiply(count, 1, own, columns, rows, step, to)
#define GO_ON(count) multiply(count, 0, own, columns + c * own->row, rows + c, step, to)
    FOR_CHANNELS(own->work->width, BEGIN)
    for (integer c = CHANNELS; c < own->work->width; c += CHANNELS)
        FOR_CHANNELS(own->work->width - c, GO_ON)
}

void sum_sources(const struct block *own, const real *matrix, const real *rows, integer step, real *to)
{
#define SUM(count) sum_up(count, own, matrix, rows + c, step, to + c * own->row)
    for (integer c = 0; c < own->work->width; c += CHANNELS)
        FOR_CHANNELS(own->work->width - c, SUM)
}
