"""The diffusion kernel of GraphiT."""

import math

import torch
from torch import Tensor

from lspe.encodings.graphs import check_count, check_graphs, normalised_adjacency


@torch.no_grad()
def diffusion_kernel(
    edge_index: Tensor,
    num_nodes: int | None,
    *,
    beta: float,
    steps: int,
    edge_weight: Tensor | None = None,
    batch: Tensor | None = None,
    dtype: torch.dtype = torch.float32,
) -> Tensor:
    r"""The p-step random walk kernel of every graph of a batch

    .. math::
        K = (\textrm{I}_n - \beta \Delta)^p, \qquad \Delta = \textrm{I}_n - D^{-1/2} A D^{-1/2}

    The graph is made undirected first: an edge in one direction counts as one in both. An isolated node has
    :math:`\Delta_{ii} = 1`.

    Args:
        edge_index: Edges, first row source and second row target.
        num_nodes: Number of nodes in total; may be ``None`` where `batch` is given.
        beta: How much is diffused in a step, β.
        steps: Number of steps, p.
        edge_weight: Weights, finite and not negative; ones if left out.
        batch: The graph of each node, ascending; all nodes are one graph if left out.
        dtype: Of the result. It is computed in float64.

    Shapes:
        - **edge_index:** :math:`[2, E]`
        - **edge_weight:** :math:`[E]`
        - **batch:** :math:`[N]`
        - **output:** :math:`[B, n_{\max}, n_{\max}]`, zero outside each graph: the layout of
          :func:`torch_geometric.utils.to_dense_batch`

    """
    check_count(steps, "steps")
    if not math.isfinite(beta):
        raise ValueError(f"beta must be finite, got {beta}")
    graphs = check_graphs(edge_index, num_nodes, edge_weight=edge_weight, batch=batch)
    largest = int(graphs.sizes.max()) if graphs.num_graphs else 0
    kernel = torch.zeros(graphs.num_graphs, largest, largest, dtype=dtype, device=edge_index.device)
    for chunk in graphs.dense_chunks():
        identity = chunk.is_node.double().diag_embed()
        step = (1.0 - beta) * identity + beta * normalised_adjacency(chunk.adjacency)
        n = min(step.size(1), largest)
        power = torch.linalg.matrix_power(step, steps)[:, :n, :n].to(dtype)
        kernel[torch.from_numpy(chunk.graphs), :n, :n] = power.to(kernel.device)
    return kernel
