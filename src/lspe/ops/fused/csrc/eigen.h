/* Eigenvectors of small symmetric matrices, in double. */
#ifndef LSPE_EIGEN_H
#define LSPE_EIGEN_H

#include "real.h"

/* How many numbers `symmetric_eigenpairs` takes as room. */
static inline integer room_for_eigenpairs(integer n) { return n * (n + 3); }

/* The eigenvalues of a symmetric `matrix` [n, n], which is lost, ascending, and the eigenvectors of the first `wanted`
   of them, each in n numbers one after the other: `vectors` [n, n], of which the others mean nothing. Whether they were
   found. */
_Bool symmetric_eigenpairs(integer n, integer wanted, double *matrix, double *values, double *vectors, double *room);

#endif
