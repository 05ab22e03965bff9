#include "block.h"

#include "room.h"

#define CHANNELS 8 /* of a head at a time: so many columns are kept in registers */
#define inlined static inline __attribute__((always_inline)) /* so that the number of channels is known when compiled */

static integer smaller(integer one, integer other) { return one < other ? one : other; }

real *take_block(struct block *own, const struct attention *work, integer graph, integer more)
{
    const integer first = work->graph_start[graph], n = work->graph_start[graph + 1] - first;
    const integer row = whole_vectors(smaller(n, TARGETS)), wide = (work->width + CHANNELS - 1) / CHANNELS * CHANNELS;
    const integer matrix = n * row, columns = work->width * row;
    const integer slots = work->in_start[first + n] - work->in_start[first], index = sizeof(integer) / sizeof(real);
    const integer of_slots = in_lines(slots * (index + 1));
    real *room = room_for_task(of_slots + 5 * matrix + 4 * columns + (row + n) * wide + row + more + 1);
    if (room == NULL)
        return NULL;
    real *matrices = room + of_slots, *of_columns = matrices + 5 * matrix;
    real *of_rows = of_columns + 4 * columns;
    *own = (struct block){.work = work, .graph = graph, .first = first, .n = n, .target = -TARGETS, .row = row,
                          .wide = wide, .place = (integer *)room, .factor = room + slots * index, .open = matrices,
                          .of_edges = matrices + matrix, .scores = matrices + 2 * matrix,
                          .weights = matrices + 3 * matrix, .pulls = matrices + 4 * matrix, .query = of_columns,
                          .scaled = of_columns + columns, .gradient = of_columns + 2 * columns,
                          .sum = of_columns + 3 * columns, .rows = of_rows, .of_sources = of_rows + row * wide,
                          .line = of_rows + (row + n) * wide};
    memset(own->of_edges, 0, (size_t)matrix * sizeof(real));
    return own->line + row;
}

static real matrix_at(const struct block *own, const struct factor *factor, integer i, integer j)
{
    const integer side = own->work->side;
    return factor->matrix == NULL ? 1 : factor->matrix[(own->graph * side + own->target + i) * side + j];
}

/* Which pairs are edges, and the factors of those and of the others. */
static void read_pairs(const struct block *own)
{
    const struct attention *work = own->work;
    for (integer j = 0; j < own->n; j++) {
        for (integer i = 0; i < own->targets; i++)
            own->open[j * own->row + i] = matrix_at(own, &work->added_factor, i, j);
        for (integer i = own->targets; i < own->row; i++)
            own->open[j * own->row + i] = 0;
    }
    for (integer i = 0; i < own->targets; i++) {
        const integer node = own->first + own->target + i;
        own->open[(own->target + i) * own->row + i] = 0;
        for (integer slot = work->in_start[node]; slot < work->in_start[node + 1]; slot++) {
            const integer j = work->source[work->in_edge[slot]] - own->first;
            own->open[j * own->row + i] = 0;
            own->place[slot - own->first_slot] = j * own->row + i;
            own->factor[slot - own->first_slot] = matrix_at(own, &work->real_factor, i, j);
        }
    }
}

_Bool next_block(struct block *own)
{
    own->target += TARGETS;
    if (own->target >= own->n)
        return 0;
    own->targets = smaller(TARGETS, own->n - own->target);
    own->row = whole_vectors(own->targets);
    const integer *in_start = own->work->in_start + own->first + own->target;
    own->first_slot = in_start[0];
    own->slots = in_start[own->targets] - in_start[0];
    read_pairs(own);
    return 1;
}

void read_columns(const struct block *own, const real *from, integer step, real *columns)
{
    const integer width = own->work->width, row = own->row, targets = own->targets;
    for (integer c = 0; c < width; c++) {
        for (integer i = 0; i < targets; i++)
            columns[c * row + i] = from[i * step + c];
        for (integer i = targets; i < row; i++)
            columns[c * row + i] = 0;
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
    const struct block work = *own;
    const integer heads = work.work->heads;
    const real *powers = powers_at(work.work, work.first_slot) + head, number = work.work->real_factor.number;
    for (integer slot = 0; slot < work.slots; slot++) {
        const real power = powers[slot * heads];
        work.of_edges[work.place[slot]] += (power < 0 ? -power : power) * work.factor[slot] * number;
    }
}

void forget_edges(const struct block *own)
{
    const struct block work = *own;
    for (integer slot = 0; slot < work.slots; slot++)
        work.of_edges[work.place[slot]] = 0;
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

#define SOURCES 8 /* at a time */

typedef real eight __attribute__((vector_size(CHANNELS * sizeof(real))));
typedef real stored_eight __attribute__((vector_size(CHANNELS * sizeof(real)), aligned(sizeof(real)), may_alias));

static void put_rows(const struct block *own, const real *columns)
{
    const struct block work = *own;
    const integer width = work.work->width;
    for (integer i = 0; i < work.targets; i++)
        for (integer c = 0; c < work.wide; c++)
            work.rows[i * work.wide + c] = c < width ? columns[c * work.row + i] : 0;
}

/* Vectors go over the channels here. */
void add_targets(const struct block *own, const real *matrix, const real *columns, real *to, integer step)
{
    const struct block work = *own;
    const integer width = work.work->width;
    put_rows(own, columns);
    for (integer j = 0; j < work.n; j += SOURCES)
        for (integer c = 0; c < work.wide; c += CHANNELS) {
            const real *row[SOURCES];
            eight sum[SOURCES];
            for (integer k = 0; k < SOURCES; k++) {
                row[k] = matrix + smaller(j + k, work.n - 1) * work.row;
                sum[k] = (eight){0};
            }
            for (integer i = 0; i < work.targets; i++) {
                const eight channels = *(const stored_eight *)(work.rows + i * work.wide + c);
                for (integer k = 0; k < SOURCES; k++)
                    sum[k] += row[k][i] * channels;
            }
            for (integer k = 0; k < SOURCES && j + k < work.n; k++)
                *(stored_eight *)(work.of_sources + (j + k) * work.wide + c) = sum[k];
        }
    for (integer j = 0; j < work.n; j++)
        for (integer c = 0; c < width; c++)
            to[j * step + c] += work.of_sources[j * work.wide + c];
}
