"""Where random walks from a node end, in a few random coordinates: close nodes have similar ones."""

import numpy as np
import scipy.sparse
import torch
from numpy.typing import NDArray
from torch import Tensor

from lspe.encodings.graphs import check_count, check_graphs
from lspe.encodings.kinds import EncodingKind

Matrix = NDArray[np.float64]
FIRST, LAST = 2, 8
"""Steps of the walks: one step alone would tell a node's neighbours and nothing of theirs."""
_SEED = 0


@torch.no_grad()
def walk_sketch(
    edge_index: Tensor,
    num_nodes: int | None,
    k: int,
    *,
    edge_weight: Tensor | None = None,
    batch: Tensor | None = None,
    dtype: torch.dtype = torch.float32,
) -> Tensor:
    r"""A sketch of the rows of the random walk's powers, for every node of one graph or of a batch of graphs

    .. math::
        p_i = \sqrt{k} \, D_i^{1/4} \, \frac{u_i}{\lVert u_i \rVert}, \qquad
        u_i = \sum_{m=2}^{8} \frac{(\mathrm{RW}^m R)_i}{\lVert (\mathrm{RW}^m R)_i \rVert}, \qquad
        R_{vc} \sim \mathcal{N}(0, 1)

    RWPE keeps of :math:`\mathrm{RW}^m` its diagonal, whether a walk comes back. This keeps whole rows, where it ends,
    compressed by random vectors R to k numbers: the angle between two rows of :math:`\mathrm{RW}^m R` is about that
    between the rows of :math:`\mathrm{RW}^m` (Johnson and Lindenstrauss), so :math:`p_i \cdot p_j` is large where walks
    from i and j meet, and grows with both degrees D. Time and memory are those of E · k numbers.

    A single column means nothing: R is drawn once, by the number of a node within its graph. Nodes in another order get
    other columns with about the same angles, so it is no encoding to tell graphs apart by. A node without edges has
    zeros.

    Args and shapes are those of :func:`~lspe.encodings.random_walk_encoding`.
    """
    check_count(k, "k")
    graphs = check_graphs(edge_index, num_nodes, edge_weight=edge_weight, batch=batch)
    total = graphs.num_nodes
    source, target = graphs.edge_index.cpu().numpy()
    weight = np.ones(source.size) if graphs.edge_weight is None else graphs.edge_weight.cpu().numpy()
    degree = np.bincount(source, weight, minlength=total)
    share = weight / np.where(degree > 0, degree, 1)[source]
    walk = scipy.sparse.csr_array((share, (source, target)), shape=(total, total))
    position = np.arange(total) - np.repeat(graphs.node_start[:-1], graphs.sizes)
    ends = np.random.default_rng(_SEED).standard_normal((int(graphs.sizes.max(initial=0)), k))[position]
    met = np.zeros((total, k))
    for step in range(1, LAST + 1):
        ends = walk @ ends
        if step >= FIRST:
            met += _of_length_one(ends)
    sketch = _of_length_one(met) * (np.sqrt(k) * degree**0.25)[:, None]
    return torch.from_numpy(sketch).to(dtype).to(edge_index.device)


def _of_length_one(rows: Matrix) -> Matrix:
    """Each row divided by its length; a row of zeros stays."""
    length = np.linalg.norm(rows, axis=1, keepdims=True)
    return np.asarray(rows / np.where(length > 0, length, 1))


WALK_SKETCH = EncodingKind(
    name="lspe.encodings.walk_sketch:WALK_SKETCH",
    title="Sketch of random walks",
    columns="random coordinates",
    attribute="walk_sketch_pe",
    equation=r"p_i = \sqrt{k} D_i^{1/4} u_i / |u_i|, \quad u_i = \sum_{m=2}^8 (RW^m R)_i / |(RW^m R)_i|",
    compute=walk_sketch,
)
