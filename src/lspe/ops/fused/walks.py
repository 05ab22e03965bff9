"""Return probabilities of random walks on many small graphs, in C."""

from torch import Tensor

from lspe.ops.fused.library import library_for, threads


def return_probabilities(
    out: Tensor, edge_index: Tensor, edge_weight: Tensor | None, node_start: Tensor, edge_start: Tensor, largest: int
) -> None:
    r"""Write the diagonals of :math:`\mathrm{RW}, \dots, \mathrm{RW}^k` of all graphs of up to ``largest`` nodes.

    Computed in float64 from the powers up to ⌈k/2⌉. :func:`lspe.encodings.random_walk_encoding` is its plain twin.

    Args:
        out: ``[N, k]``, float32 or float64; rows of larger graphs stay as they are.
        edge_index: ``[2, E]``, the edges of each graph side by side.
        edge_weight: ``[E]`` float64, or ``None`` for ones.
        node_start: ``[B + 1]``, where the nodes of each graph begin.
        edge_start: ``[B + 1]``, where its edges begin.
        largest: nodes of a graph at most.

    """
    edge_index = edge_index.contiguous()
    weight = None if edge_weight is None else edge_weight.contiguous()
    library_for(out).call(
        "return_probabilities",
        threads=threads(),
        largest=largest,
        node_start=node_start,
        edge_start=edge_start,
        source=edge_index[0],
        target=edge_index[1],
        weight=weight,
        weights=0 if weight is None else weight.numel(),
        out=out,
    )
