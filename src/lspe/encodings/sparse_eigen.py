"""A few eigenvectors of the Laplacian of one large graph."""

import inspect
from collections.abc import Callable

import numpy as np
import scipy.sparse
from numpy.typing import NDArray
from scipy.sparse.csgraph import connected_components
from scipy.sparse.linalg import ArpackNoConvergence, LinearOperator, eigsh, splu

from lspe.encodings.graphs import is_small, normalised_sparse_adjacency

Array = NDArray[np.float64]

_SHIFT = 1e-6
_RESTARTS = 200
_SAME = 1e-9
# ARPACK needs random vectors where a Krylov space ends early; older versions of SciPy cannot be given a seed.
_SEED = {"rng": 0} if "rng" in inspect.signature(eigsh).parameters else {}


def smallest_laplacian_eigenpairs(adjacency: scipy.sparse.csr_array, count: int) -> tuple[Array, Array]:
    r"""The `count` smallest eigenvalues of :math:`\Delta = I - D^{-1/2} A D^{-1/2}` and their orthonormal
    eigenvectors. The graph is made undirected first.

    The Laplacian of a graph in several parts has the eigenpairs of its parts. A part with edges has the
    eigenvalue 0 once, with the eigenvector :math:`D^{1/2} 1`; an isolated node has the eigenvalue 1.

    Shapes:
        - **adjacency:** :math:`[n, n]`
        - **output:** :math:`[c]` and :math:`[n, c]` with :math:`c = \min(count, n)`
    """
    adjacency = adjacency.maximum(adjacency.T).tocsr()
    n = adjacency.shape[0]
    has_edges = adjacency.sum(1) > 0
    _, part_of_node = connected_components(adjacency, directed=False)
    parts = np.split(np.argsort(part_of_node, kind="stable"), np.bincount(part_of_node).cumsum()[:-1])
    linked = [part for part in parts if has_edges[part[0]]]

    values, columns = [np.empty(0)], [np.empty((n, 0))]
    for part in linked[:count]:
        wanted = 1 if len(linked) >= count else min(count, part.size)
        part_values, part_vectors = _eigenpairs_of_part(adjacency[part][:, part], wanted)
        values.append(part_values)
        columns.append(np.zeros((n, wanted)))
        columns[-1][part] = part_vectors
    isolated = np.flatnonzero(~has_edges)[:count]
    values.append(np.ones(isolated.size))
    columns.append(np.zeros((n, isolated.size)))
    columns[-1][isolated, np.arange(isolated.size)] = 1.0

    merged = np.concatenate(values)
    order = np.argsort(merged, kind="stable")[:count]
    return merged[order], np.concatenate(columns, axis=1)[:, order]


def _eigenpairs_of_part(adjacency: scipy.sparse.csr_array, count: int) -> tuple[Array, Array]:
    n = adjacency.shape[0]
    constant = np.sqrt(adjacency.sum(1))[:, None]
    constant /= np.linalg.norm(constant)
    if count == 1:
        return np.zeros(1), constant

    laplacian = scipy.sparse.eye_array(n, format="csr") - normalised_sparse_adjacency(adjacency)
    if is_small(n) or 4 * count > n:
        values, vectors = np.linalg.eigh(laplacian.toarray())
        return np.maximum(values[:count], 0.0), vectors[:, :count]

    try:
        basis = _leading_vectors(lambda x: 2.0 * x - laplacian @ x, constant, count)
    except ArpackNoConvergence:
        shifted = scipy.sparse.csc_array(laplacian + _SHIFT * scipy.sparse.eye_array(n))
        solve = splu(shifted, permc_spec="MMD_AT_PLUS_A", diag_pivot_thresh=0.0, options={"SymmetricMode": True}).solve
        basis = _leading_vectors(solve, constant, count)
    basis, _ = np.linalg.qr(basis)
    values, rotation = np.linalg.eigh(basis.T @ (laplacian @ basis))
    return np.maximum(values[:count], 0.0), basis @ rotation[:, :count]


def _leading_vectors(operator: Callable[[Array], Array], known: Array, count: int) -> Array:
    """Eigenvectors of a positive semi-definite operator, those of the `count` largest eigenvalues among them.

    A Krylov method that starts from one vector can overlook copies of a repeated eigenvalue. So what has been
    found is projected out and the method run again, until no larger eigenvalue remains.
    """
    values, vectors = _largest_eigenpairs(operator, known, count - 1)
    found = np.hstack([known, vectors])
    while True:
        next_value, next_vector = _largest_eigenpairs(operator, found, 1)
        if next_value[0] <= np.sort(values)[1 - count] * (1 + _SAME):
            return found
        values, found = np.append(values, next_value), np.hstack([found, next_vector])


def _largest_eigenpairs(operator: Callable[[Array], Array], without: Array, count: int) -> tuple[Array, Array]:
    """The largest eigenvalues of the operator on the space orthogonal to the columns of `without`."""
    n = without.shape[0]
    start = np.random.default_rng(0).standard_normal((n,))

    def project(x: Array) -> Array:
        return x - without @ (without.T @ x)

    values, vectors = eigsh(
        LinearOperator((n, n), matvec=lambda x: project(operator(project(x.reshape(n)))), dtype=np.float64),
        k=count,
        which="LA",
        v0=project(start),
        ncv=max(40, 4 * count),
        maxiter=_RESTARTS,
        **_SEED,
    )
    return values, vectors
