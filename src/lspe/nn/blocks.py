"""A trained network on a graph of any size: layer by layer, over blocks of nodes, in bounded memory."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from lspe.nn.block_order import BlockOrder, Rows
from lspe.nn.network import Embedded, Network, Output
from lspe.nn.topology import Topology

if TYPE_CHECKING:
    from torch_geometric.data import Data

MOST_AT_ONCE = 2**20
"""Nodes and edges up to which graphs are not cut into blocks."""

EDGES_PER_BLOCK = 2**18
"""Nodes and edges of a block; a layer of width 64 takes some 500 MiB for so many."""


def why_not_local(network: Network) -> str:
    """Why a node's output depends on more than the nodes within as many steps as there are layers; '' if it does not.

    A layer says of itself that it looks at nothing but a node, the edges into it and their sources:
    ``is_local = True``.
    """
    if network.signs == "invariant":
        return "signs='invariant' looks at neighbours before the first layer"
    if network.readout == "edge":
        return "readout='edge' gives an output per edge"
    for layer in network.layers:
        if not getattr(layer, "is_local", False):
            size = " with size_norm=True" if getattr(layer, "size_norm", False) else ""
            return f"{type(layer).__name__}{size} looks at more of the graph than the edges into a node"
    return ""


def run_bounded(
    network: Network, data: Data, targets: Tensor | None = None, *, topology: Topology | None = None
) -> Output:
    """As ``network.run(data, topology)``, in blocks where the graph is large and the network allows it.

    ``targets`` ``[N]`` bool says which nodes' rows are asked for; others may be zero.
    """
    size = int(data.num_nodes) + data.edge_index.size(1)
    if network.training or size <= MOST_AT_ONCE or why_not_local(network):
        return network.run(data, topology)
    return run_in_blocks(network, data, targets)


@torch.no_grad()
def run_in_blocks(
    network: Network, data: Data, targets: Tensor | None = None, *, edges_at_once: int | None = None
) -> Output:
    r"""What ``network.run(data)`` gives in evaluation mode, in memory for a few blocks beside the nodes' features.

    Each layer goes over the nodes in blocks: a block of nodes, the edges into it and their sources are a graph of their
    own, of which the layer's result is right for the nodes of the block. A node is part of every block it has an edge
    into, so time grows with nodes and edges together. Memory is :math:`O(N d)`, and that of a layer on a block.

    Args:
        network: in evaluation mode, of local layers (:func:`why_not_local`).
        data: one graph or a batch.
        targets: ``[N]`` bool, the nodes whose output is wanted; only what they depend on is computed, and rows of
            other nodes are zero. All if not given, or where the output is not that of single nodes.
        edges_at_once: nodes and edges of a block; ``EDGES_PER_BLOCK`` if not given.

    """
    if network.training:
        raise ValueError("a network in training mode normalises over all nodes: call network.eval() first")
    if reason := why_not_local(network):
        raise ValueError(f"the network cannot be run in blocks: {reason}")
    if network.readout != "none" or network.normalize_positions:
        targets = None
    order = BlockOrder.of(data, targets, len(network.layers))
    at_once = EDGES_PER_BLOCK if edges_at_once is None else edges_at_once

    starts = [network.embed_nodes(part, Topology.of(part)) for part in order.parts_of_nodes(data, at_once)]
    p_parts = [p_part for _, p_part in starts if p_part is not None]
    p_start = torch.cat(p_parts) if p_parts else None
    h, p = network.start(torch.cat([h_part for h_part, _ in starts]), p_start)
    del starts, p_parts
    e_kept: Rows | None = None
    for layer, nodes, e_needed in zip(network.layers, order.reach[1:], order.edges_needed, strict=True):
        h_new = h.new_empty(nodes, h.size(1))
        p_new = None if p is None else p.new_empty(nodes, p.size(1))
        e_new: Rows | None = None
        for first, last in pairwise(order.cuts(nodes, at_once)):
            block = order.block(first, last)
            graph = Topology(block.edge_index, len(block.nodes))
            if e_kept is None:
                e = network.embed_edges(block.edges_of(data), graph)
            else:
                e = e_kept.read(block.begin, block.begin + len(block.edges))
            h_block, p_block, e = layer(h[block.nodes], None if p is None else p[block.nodes], e, graph)
            h_new[first:last] = h_block[: last - first]
            if p_new is not None:
                p_new[first:last] = p_block[: last - first]
            if block.begin < e_needed:
                e_new = e_new or Rows(e_needed, e)
                e_new.write(block.begin, e[: e_needed - block.begin])
        h, p, e_kept = h_new, p_new, e_new
    end = Embedded(h, p if network.lspe else order.asked_for(p_start), h[:0], network.embed_descriptors(data))
    final = network.finish(end, data, order.without_edges(data))
    return Output(order.spread(final.output), order.spread(final.h), None if final.p is None else order.spread(final.p))
