/* Return probabilities of random walks on small graphs: the diagonals of M, ..., M^k, computed in double.

   Only the powers up to ceil(k / 2) are formed, each as a sparse M times the dense power before it:
   (M^(a+b))_ii = sum_j (M^a)_ij (M^b)_ji. What is computed for a graph depends on nothing else in the batch. */
#include "graphs.h"
#include "tasks.h"

#include <stdlib.h>

#define WIDE (VECTOR_BYTES / (integer)sizeof(double))
typedef double wide __attribute__((vector_size(VECTOR_BYTES)));
typedef double stored_wide __attribute__((vector_size(VECTOR_BYTES), aligned(sizeof(double)), may_alias));

#define GRAPHS_A_TASK 16

struct walks {
    const struct small_graphs *graphs;
    struct rows out; /* [nodes, k] */
    _Bool out_of_memory;
};

/* One graph of n nodes; rows of dense matrices are n rounded up to whole vectors. */
struct graph {
    integer n, row;
    double *matrix, *power, *next; /* [n, row], zero in the padding */
    integer *start, *column;       /* the matrix without its zeros */
    double *value;
};

static inline double dot(const double *a, const double *b, integer count)
{
    wide sum = {0};
    for (integer c = 0; c < count; c += WIDE)
        sum += *(const stored_wide *)(a + c) * *(const stored_wide *)(b + c);
    double total = 0;
    for (integer lane = 0; lane < WIDE; lane++)
        total += sum[lane];
    return total;
}

static _Bool is_symmetric(const struct graph *graph)
{
    for (integer i = 0; i < graph->n; i++)
        for (integer j = 0; j < i; j++)
            if (graph->matrix[i * graph->row + j] != graph->matrix[j * graph->row + i])
                return 0;
    return 1;
}

/* Adjacency -> D^-1/2 A D^-1/2 where that is symmetric, else D^-1 A; dense, and without its zeros. */
static void normalise(struct graph *graph, _Bool symmetric, double *scale)
{
    const integer n = graph->n, row = graph->row;
    for (integer i = 0; i < n; i++) {
        double total = 0;
        for (integer j = 0; j < n; j++)
            total += graph->matrix[i * row + j];
        scale[i] = total > 0 ? (symmetric ? 1 / sqrt(total) : total) : 0;
    }
    integer entries = 0;
    for (integer i = 0; i < n; i++) {
        graph->start[i] = entries;
        for (integer j = 0; j < n; j++) {
            double *entry = graph->matrix + i * row + j;
            if (*entry == 0)
                continue;
            *entry = symmetric ? *entry * scale[i] * scale[j] : *entry / scale[i];
            graph->column[entries] = j;
            graph->value[entries++] = *entry;
        }
    }
    graph->start[n] = entries;
}

static void multiply(const struct graph *graph, const double *power, double *next)
{
    for (integer i = 0; i < graph->n; i++) {
        double *to = next + i * graph->row;
        memset(to, 0, (size_t)graph->row * sizeof(double));
        for (integer entry = graph->start[i]; entry < graph->start[i + 1]; entry++) {
            const double *from = power + graph->column[entry] * graph->row;
            for (integer c = 0; c < graph->row; c += WIDE)
                *(stored_wide *)(to + c) += graph->value[entry] * *(const stored_wide *)(from + c);
        }
    }
}

static void transpose(const struct graph *graph, const double *from, double *to)
{
    for (integer i = 0; i < graph->n; i++)
        for (integer j = 0; j < graph->n; j++)
            to[j * graph->row + i] = from[i * graph->row + j];
}

/* `turned`: room for the transpose of a power, needed where the matrix is not symmetric. */
static void write_diagonals(const struct walks *work, struct graph *graph, _Bool symmetric, double *turned, real *out,
                            integer step)
{
    const integer n = graph->n, row = graph->row, k = work->out.width;
    memcpy(graph->power, graph->matrix, (size_t)(n * row) * sizeof(double));
    for (integer i = 0; i < n; i++)
        out[i * step] = (real)graph->matrix[i * row + i];
    if (!symmetric)
        memset(turned, 0, (size_t)(n * row) * sizeof(double));
    for (integer half = 1; 2 * half <= k; half++) {
        if (!symmetric)
            transpose(graph, graph->power, turned);
        const double *columns = symmetric ? graph->power : turned;
        for (integer i = 0; i < n; i++)
            out[i * step + 2 * half - 1] = (real)dot(graph->power + i * row, columns + i * row, row);
        if (2 * half == k)
            return;
        multiply(graph, graph->power, graph->next);
        for (integer i = 0; i < n; i++)
            out[i * step + 2 * half] = (real)dot(graph->next + i * row, columns + i * row, row);
        double *swap = graph->power;
        graph->power = graph->next;
        graph->next = swap;
    }
}

static void walks_task(void *argument, integer number)
{
    struct walks *work = argument;
    const struct small_graphs *graphs = work->graphs;
    const integer begin = number * GRAPHS_A_TASK, count = graphs_of(graphs);
    const integer end = begin + GRAPHS_A_TASK < count ? begin + GRAPHS_A_TASK : count;
    const integer n = most_nodes(graphs, begin, end), row = (n + WIDE - 1) / WIDE * WIDE;
    double *numbers = malloc((size_t)(4 * n * row + n * n + n) * sizeof(double));
    integer *places = malloc((size_t)(n * n + n + 1) * sizeof(integer));
    if (numbers == NULL || places == NULL)
        work->out_of_memory = 1;
    for (integer one = begin; one < end && !work->out_of_memory; one++) {
        const integer size = nodes_of(graphs, one);
        if (size > graphs->largest)
            continue;
        double *dense = numbers;
        struct graph graph = {.n = size, .row = (size + WIDE - 1) / WIDE * WIDE, .matrix = dense,
                              .power = dense + n * row, .next = dense + 2 * n * row, .start = places,
                              .column = places + n + 1, .value = dense + 4 * n * row};
        read_adjacency(graphs, one, graph.matrix, graph.row);
        const _Bool symmetric = is_symmetric(&graph);
        normalise(&graph, symmetric, dense + 4 * n * row + n * n);
        write_diagonals(work, &graph, symmetric, dense + 3 * n * row, row_at(work->out, graphs->node_start.at[one]),
                        work->out.step);
    }
    free(numbers);
    free(places);
}

enum answer return_probabilities(const struct walking *call)
{
    const enum answer answer = check_graphs(&call->graphs, call->out.count);
    if (answer != DONE)
        return answer;
    NEED_SIZES(call->threads >= 1 && call->out.width >= 1 && sized(call->out, call->out.count, call->out.width));
    struct walks work = {.graphs = &call->graphs, .out = call->out};
    run_tasks(call->threads, (graphs_of(&call->graphs) + GRAPHS_A_TASK - 1) / GRAPHS_A_TASK, walks_task, &work);
    return work.out_of_memory ? NO_MEMORY : DONE;
}
