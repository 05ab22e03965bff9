"""Encodings of many small graphs, in C; :mod:`lspe.encodings` has their plain twins."""

from collections.abc import Mapping

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from lspe.ops.fused.library import library_for, threads

Index = NDArray[np.int64]


def small_graphs(
    edge_index: Tensor, edge_weight: Tensor | None, node_start: Index, edge_start: Index, largest: int
) -> dict[str, Tensor | int | None]:
    """Graphs of up to ``largest`` nodes as the C sources take them.

    Args:
        edge_index: ``[2, E]``, the edges of each graph side by side.
        edge_weight: ``[E]`` float64, or ``None`` for ones.
        node_start: ``[B + 1]``, where the nodes of each graph begin.
        edge_start: ``[B + 1]``, where its edges begin.
        largest: nodes of a graph at most; rows of larger ones stay as they are.

    """
    edge_index = edge_index.contiguous()
    weight = None if edge_weight is None else edge_weight.contiguous()
    return {
        "largest": largest,
        "node_start": torch.from_numpy(node_start),
        "edge_start": torch.from_numpy(edge_start),
        "source": edge_index[0],
        "target": edge_index[1],
        "weight": weight,
        "weights": 0 if weight is None else weight.numel(),
    }


def return_probabilities(graphs: Mapping[str, Tensor | int | None], out: Tensor) -> None:
    r"""Write the diagonals of :math:`\mathrm{RW}, \dots, \mathrm{RW}^k` into ``out`` ``[N, k]``.

    Computed in float64 from the powers up to ⌈k/2⌉.
    """
    library_for(out).call("return_probabilities", threads=threads(), graphs=graphs, out=out)


def laplacian_eigenpairs(graphs: Mapping[str, Tensor | int | None], vectors: Tensor, values: Tensor) -> None:
    """Write eigenvectors 1 to k into ``vectors`` ``[N, k]`` and their eigenvalues into ``values`` ``[B, k]``.

    Computed in float64, of graphs of more than 200 nodes by LAPACK: :class:`~lspe.ops.fused.library.Refused` where
    PyTorch has none of its own.
    """
    library_for(vectors).call("laplacian_eigenpairs", threads=threads(), graphs=graphs, vectors=vectors, values=values)
