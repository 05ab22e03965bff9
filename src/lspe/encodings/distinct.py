"""How many nodes of a graph an encoding tells apart."""

from collections.abc import Iterator

import torch
from torch import Tensor


@torch.no_grad()
def uniqueness(encoding: Tensor, batch: Tensor | None = None, *, digits: int = 6) -> Tensor:
    r"""The number of distinct encodings in each graph.

    Two nodes have the same encoding when they agree in every column up to rounding: the values of a column
    are sorted and a gap of more than :math:`10^{-digits}` begins a new one. (Rounding each value by itself
    could tell 1/128 from 1/128 plus its last bit, as it lies in the middle of two six-digit numbers.)

    Shapes:
        - **encoding:** :math:`[N, k]`
        - **batch:** :math:`[N]`, the graph of each node; all nodes are one graph if left out
        - **output:** :math:`[B]`, int64
    """
    if encoding.dim() != 2:
        raise ValueError(f"encoding must have shape [number of nodes, k], got {list(encoding.shape)}")
    if not bool(encoding.isfinite().all()):
        node = int((~encoding.isfinite()).any(1).nonzero()[0])
        raise ValueError(f"the encoding of node {node} is not finite")
    if batch is None:
        batch = torch.zeros(encoding.size(0), dtype=torch.long, device=encoding.device)
        num_graphs = 1
    else:
        num_graphs = int(batch.max()) + 1 if batch.numel() else 0

    *_, kind = split_by_columns(batch.long(), encoding, digits=digits)
    graph_of_kind = torch.zeros(int(kind.max()) + 1 if kind.numel() else 0, dtype=torch.long, device=kind.device)
    graph_of_kind[kind] = batch.long()
    return torch.bincount(graph_of_kind, minlength=num_graphs)


@torch.no_grad()
def kinds_by_column(encoding: Tensor, *, digits: int = 6) -> Tensor:
    r"""The kind of each node after 1, 2, … k columns of the encoding: nodes of one kind agree in all of them.

    Two values are the same where :func:`uniqueness` says so. Kinds are numbered from 0 in the order of their
    encodings, so a kind that splits becomes neighbouring ones.

    Shapes:
        - **encoding:** :math:`[N, k]`
        - **output:** :math:`[k, N]`
    """
    alike = torch.zeros(encoding.size(0), dtype=torch.long, device=encoding.device)
    _, *kinds = split_by_columns(alike, encoding, digits=digits)
    return torch.stack(kinds)


def split_by_columns(kind: Tensor, encoding: Tensor, *, digits: int = 6) -> Iterator[Tensor]:
    """The kind of each node to begin with, then after each column, one after the other as they are asked for."""
    yield kind
    for column in encoding.double().unbind(1):
        kind = _split_by_value(kind, column, gap=10.0**-digits)
        yield kind


def _split_by_value(kind: Tensor, value: Tensor, gap: float) -> Tensor:
    """Split each kind of nodes where its sorted values have a gap; the kinds are numbered anew from 0.

    Shapes:
        - **kind**, **value**, **output:** :math:`[N]`
    """
    order = value.argsort(stable=True)
    order = order[kind[order].argsort(stable=True)]
    begins = (kind[order].diff() != 0) | (value[order].diff() > gap)
    split = torch.zeros_like(kind)
    split[order[1:]] = begins.long().cumsum(0)
    return split
