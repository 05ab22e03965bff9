r"""From nodes to a prediction per graph with the means first: :math:`\overline{W x + b} = W \bar x + b`."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from lspe.nn.readout import NODES_OF_A_MOLECULE, Head, Readout, pool, readout_of_mean
from lspe.nn.topology import Topology
from lspe.ops import fusible, is_unchanged
from lspe.ops.choice import weight_and_bias
from lspe.ops.fused.dropout import draw_seeds
from lspe.ops.fused.readout import MOST_MAPS, Reading, predict

LINEAR = {"mean": (0.0,), "sum": (1.0,), "mean+sum": (0.0, 1 / NODES_OF_A_MOLECULE)}
"""Readouts that the mean of a graph's nodes and their number are enough for: parts of what the head is given, and what
each is times mean and number; 0: the mean itself."""


def predict_of_means(
    h: Tensor,
    p: Tensor,
    beside: Tensor | None,
    graph: Topology,
    kind: Readout,
    project: nn.Module | None,
    fuse: nn.Module,
    head: nn.Module,
) -> Tensor:
    r"""``[B, outputs]``: :math:`\mathrm{head}(\mathrm{fuse}(\bar h, \mathrm{project}(\bar p)))`.

    ``beside`` ``[B, d]`` stands beside what the head is given; without ``project`` p is taken as it is.
    """
    drops = isinstance(head, Head) and head.training and head.dropout > 0

    def equations(h: Tensor, p: Tensor, beside: Tensor | None, *seeds: Sequence[int]) -> Tensor:
        mean_h, mean_p = pool(torch.cat([h, p], dim=-1), graph, "mean").split([h.size(-1), p.size(-1)], dim=-1)
        fused = fuse(torch.cat([mean_h, mean_p if project is None else project(mean_p)], dim=-1))
        read_out = readout_of_mean(fused, graph, kind)
        given = read_out if beside is None else torch.cat([read_out, beside], dim=-1)
        return head(given, *seeds)

    are_rows = all(isinstance(x, Tensor) and x.dim() == 2 for x in (h, p, h if beside is None else beside))
    if not isinstance(head, Head) or project is None or not is_unchanged(head, Head) or not are_rows:
        return equations(h, p, beside)
    maps = [project, fuse, *head.hidden, head.out]
    if len(maps) > MOST_MAPS or not fusible(h, p, beside, maps=maps) or not 0 <= head.dropout <= 1:
        return equations(h, p, beside)
    seeds = draw_seeds(len(head.hidden)) if drops else []
    return predict(
        h, p, beside, graph.pairs.graph_start,
        Reading(LINEAR[kind], head.dropout if drops else 0.0, seeds),
        [parameter for one in maps for parameter in weight_and_bias(one)],
        plain=lambda h, p, beside: equations(h, p, beside, seeds),
    )  # fmt: skip
