/* Eigenvectors of the normalised Laplacians of small graphs, in double. */
#include "eigen.h"
#include "graphs.h"
#include "tasks.h"

#include <stdlib.h>

/* dsyevd_ of the LAPACK that PyTorch itself uses; sizes as 64 bits, as in product.c. */
typedef void (*eigensolver)(const char *job, const char *triangle, const integer *n, double *a, const integer *lda,
                            double *values, double *work, const integer *work_size, integer *integers,
                            const integer *integers_size, integer *failed);

static eigensolver solve = NULL;

void set_eigensolver(void *function)
{
    const integer one = 1;
    const _Bool low_bits_first = *(const char *)&one == 1;
    solve = low_bits_first ? (eigensolver)function : NULL;
}

#define GRAPHS_A_TASK 8
#define MOST_HERE 200 /* nodes of a graph up to which LAPACK is slower than eigen.c */
static const double TIE = 1e-6; /* entries as large as the largest up to this are equally large */

struct solving {
    const struct eigenpairs *call;
    enum answer answer;
};

/* A -> I - D^-1/2 A D^-1/2 of the graph made undirected: of two different weights the larger one counts. */
static void make_laplacian(integer n, double *matrix, double *scale)
{
    for (integer i = 0; i < n; i++)
        for (integer j = 0; j < i; j++) {
            const double a = matrix[i * n + j], b = matrix[j * n + i];
            matrix[i * n + j] = matrix[j * n + i] = a > b ? a : b;
        }
    for (integer i = 0; i < n; i++) {
        double degree = 0;
        for (integer j = 0; j < n; j++)
            degree += matrix[i * n + j];
        scale[i] = degree > 0 ? 1 / sqrt(degree) : 0;
    }
    for (integer i = 0; i < n; i++)
        for (integer j = 0; j < n; j++)
            matrix[i * n + j] = (i == j) - matrix[i * n + j] * scale[i] * scale[j];
}

/* 1, or -1 where the first of the largest entries is negative. */
static double sign_of(integer n, const double *vector)
{
    double most = 0;
    for (integer i = 0; i < n; i++)
        most = fabs(vector[i]) > most ? fabs(vector[i]) : most;
    for (integer i = 0; i < n; i++)
        if (fabs(vector[i]) >= (1 - TIE) * most)
            return vector[i] < 0 ? -1 : 1;
    return 1;
}

/* Room for the graphs of a task, of up to `most` nodes. */
struct solver_room {
    double *matrix, *values, *work;
    integer *integers, work_size, integers_size;
};

static integer larger(integer one, integer other) { return one > other ? one : other; }

static struct solver_room make_room(integer most)
{
    struct solver_room room = {.work_size = larger(1 + 6 * most + 2 * most * most, room_for_eigenpairs(most)),
                               .integers_size = 3 + 5 * most};
    room.matrix = malloc((size_t)(most * most + most + room.work_size) * sizeof(double));
    room.integers = malloc((size_t)room.integers_size * sizeof(integer));
    if (room.matrix != NULL) {
        room.values = room.matrix + most * most;
        room.work = room.values + most;
    }
    return room;
}

/* The first `wanted` eigenvectors of the matrix in its room, n numbers each; null where they are not found. */
static const double *find_vectors(struct solver_room room, integer n, integer wanted)
{
    if (n <= MOST_HERE) {
        double *vectors = room.work, *rest = room.work + n * n;
        return symmetric_eigenpairs(n, wanted, room.matrix, room.values, vectors, rest) ? vectors : NULL;
    }
    integer failed = 1;
    if (solve != NULL)
        solve("V", "U", &n, room.matrix, &n, room.values, room.work, &room.work_size, room.integers,
              &room.integers_size, &failed);
    return failed == 0 ? room.matrix : NULL;
}

static void solve_task(void *argument, integer number)
{
    struct solving *work = argument;
    const struct eigenpairs *call = work->call;
    const struct small_graphs *graphs = &call->graphs;
    const integer begin = number * GRAPHS_A_TASK, count = graphs_of(graphs), k = call->vectors.width;
    const integer end = begin + GRAPHS_A_TASK < count ? begin + GRAPHS_A_TASK : count;
    const struct solver_room room = make_room(most_nodes(graphs, begin, end));
    if (room.matrix == NULL || room.integers == NULL)
        work->answer = NO_MEMORY;
    for (integer one = begin; one < end && work->answer == DONE; one++) {
        const integer n = nodes_of(graphs, one), first = graphs->node_start.at[one];
        if (n == 0 || n > graphs->largest)
            continue;
        read_adjacency(graphs, one, room.matrix, n);
        make_laplacian(n, room.matrix, room.values);
        const double *vectors = find_vectors(room, n, k + 1);
        if (vectors == NULL)
            work->answer = NOT_SERVED;
        for (integer c = 1; c <= k && c < n && vectors != NULL; c++) {
            const double *vector = vectors + c * n, sign = sign_of(n, vector);
            row_at(call->values, one)[c - 1] = (real)(room.values[c] > 0 ? room.values[c] : 0);
            for (integer i = 0; i < n; i++)
                row_at(call->vectors, first + i)[c - 1] = (real)(sign * vector[i]);
        }
    }
    free(room.matrix);
    free(room.integers);
}

enum answer laplacian_eigenpairs(const struct eigenpairs *call)
{
    const integer count = graphs_of(&call->graphs), k = call->vectors.width;
    const enum answer answer = check_graphs(&call->graphs, call->vectors.count);
    if (answer != DONE)
        return answer;
    NEED_SIZES(call->threads >= 1 && k >= 1 && sized(call->vectors, call->vectors.count, k));
    NEED_SIZES(sized(call->values, count, k));
    struct solving work = {call, DONE};
    run_tasks(call->threads, (count + GRAPHS_A_TASK - 1) / GRAPHS_A_TASK, solve_task, &work);
    return work.answer;
}
