/* Eigenvectors of small symmetric matrices: Householder reflections to a tridiagonal matrix, then QL with implicit
   shifts (tql2 of EISPACK). LAPACK prepares for large matrices, which takes most of the time of small ones. */
#include "eigen.h"

#define MOST_ROUNDS 60 /* for an eigenvalue; two are usual */
static const double PRECISE = 0x1p-52;

static double dot(integer n, const double *x, const double *y)
{
    double lane[8] = {0}, sum = 0;
    integer i = 0;
    for (; i + 8 <= n; i += 8)
        for (integer c = 0; c < 8; c++)
            lane[c] += x[i + c] * y[i + c];
    for (; i < n; i++)
        sum += x[i] * y[i];
    for (integer c = 0; c < 8; c++)
        sum += lane[c];
    return sum;
}

static void add_times(integer n, double *restrict x, double factor, const double *restrict y)
{
    for (integer i = 0; i < n; i++)
        x[i] += factor * y[i];
}

/* Q' A Q with the diagonal `on` and the numbers `off` beside it; row j of the matrix then holds, behind the diagonal,
   the vector v of the reflection I - rate v v' that made its column, Q being their product. */
static void make_tridiagonal(integer n, double *matrix, double *on, double *off, double *rate, double *product)
{
    for (integer j = 0; j < n; j++) {
        double *v = matrix + j * n + j + 1;
        const integer rest = n - j - 1;
        on[j] = matrix[j * n + j];
        off[j] = rest > 0 ? v[0] : 0;
        rate[j] = 0;
        const double below = rest > 1 ? dot(rest - 1, v + 1, v + 1) : 0;
        if (below == 0)
            continue;
        const double length = sqrt(v[0] * v[0] + below);
        off[j] = v[0] > 0 ? -length : length;
        v[0] -= off[j];
        rate[j] = 2 / (v[0] * v[0] + below);
        for (integer i = 0; i < rest; i++)
            product[i] = rate[j] * dot(rest, matrix + (j + 1 + i) * n + j + 1, v);
        add_times(rest, product, -rate[j] / 2 * dot(rest, product, v), v);
        for (integer i = 0; i < rest; i++) {
            double *row = matrix + (j + 1 + i) * n + j + 1;
            for (integer c = 0; c < rest; c++)
                row[c] -= v[i] * product[c] + product[i] * v[c];
        }
    }
}

static void rotate(integer n, double *restrict one, double *restrict next, double c, double s)
{
    for (integer k = 0; k < n; k++) {
        const double before = next[k];
        next[k] = s * one[k] + c * before;
        one[k] = c * one[k] - s * before;
    }
}

/* Turns a tridiagonal matrix into a diagonal one, and the rows of `vectors` with it. */
static _Bool make_diagonal(integer n, double *on, double *off, double *vectors)
{
    double shifted = 0, largest = 0;
    for (integer l = 0; l < n; l++) {
        const double size = fabs(on[l]) + fabs(off[l]);
        largest = size > largest ? size : largest;
        integer end = l, rounds = 0;
        while (fabs(off[end]) > PRECISE * largest) /* the last one is 0 */
            end++;
        while (end > l && fabs(off[l]) > PRECISE * largest) {
            if (rounds++ == MOST_ROUNDS)
                return 0;
            const double first = on[l], half = (on[l + 1] - first) / (2 * off[l]);
            const double way = half + (half < 0 ? -sqrt(half * half + 1) : sqrt(half * half + 1));
            on[l] = off[l] / way;
            on[l + 1] = off[l] * way;
            const double shift = first - on[l], second = on[l + 1], beside = off[l + 1];
            for (integer i = l + 2; i < n; i++)
                on[i] -= shift;
            shifted += shift;
            double p = on[end], c = 1, c2 = 1, c3 = 1, s = 0, s2 = 0;
            for (integer i = end - 1; i >= l; i--) {
                c3 = c2;
                c2 = c;
                s2 = s;
                const double g = c * off[i], h = c * p, r = sqrt(p * p + off[i] * off[i]);
                off[i + 1] = s * r;
                s = off[i] / r;
                c = p / r;
                p = c * on[i] - s * g;
                on[i + 1] = h + s * (c * g + s * on[i]);
                rotate(n, vectors + i * n, vectors + (i + 1) * n, c, s);
            }
            p = -s * s2 * c3 * beside * off[l] / second;
            off[l] = s * p;
            on[l] = c * p;
        }
        on[l] += shifted;
        off[l] = 0;
    }
    return 1;
}

static void swap(integer n, double *one, double *other)
{
    for (integer i = 0; i < n; i++) {
        const double value = one[i];
        one[i] = other[i];
        other[i] = value;
    }
}

_Bool symmetric_eigenpairs(integer n, integer wanted, double *matrix, double *values, double *vectors, double *room)
{
    double *off = room, *rate = off + n, *product = rate + n;
    make_tridiagonal(n, matrix, values, off, rate, product);
    memset(vectors, 0, (size_t)(n * n) * sizeof(double));
    for (integer i = 0; i < n; i++)
        vectors[i * n + i] = 1;
    if (!make_diagonal(n, values, off, vectors))
        return 0;
    for (integer one = 0; one < n && one < wanted; one++) {
        integer least = one;
        for (integer other = one + 1; other < n; other++)
            least = values[other] < values[least] ? other : least;
        if (least != one) {
            swap(1, values + one, values + least);
            swap(n, vectors + one * n, vectors + least * n);
        }
        for (integer j = n - 3; j >= 0; j--) {
            const double *v = matrix + j * n + j + 1;
            double *vector = vectors + one * n + j + 1;
            if (rate[j] != 0)
                add_times(n - j - 1, vector, -rate[j] * dot(n - j - 1, vector, v), v);
        }
    }
    return 1;
}
