"""Property checks for one's own layers, networks and encodings.

Each check takes a function of a PyG ``Data`` (or ``Batch``) and raises ``AssertionError`` with the size of the
difference where the property does not hold::

    from lspe import testing

    testing.check_permutation_equivariance(lambda data: my_layer(data.x, data.edge_index), data)
    testing.check_batch_equals_singles(network.eval(), [data, other], level="graph")
"""

from collections.abc import Callable, Iterable, Sequence
from typing import Literal

import torch
from torch import Tensor, nn
from torch_geometric.data import Batch, Data

Function = Callable[[Data], Tensor]
Level = Literal["node", "edge", "graph"]


def permute_nodes(data: Data, order: Tensor) -> Data:
    """The same graph with its nodes in another order: row i of the new is row ``order[i]`` of the old.

    All node-level attributes go along; edges keep their order.
    """
    new_number = torch.empty_like(order)
    new_number[order] = torch.arange(order.numel(), device=order.device)
    permuted = data.clone()
    for key, value in data.to_dict().items():
        if key == "edge_index":
            permuted[key] = new_number[value]
        elif isinstance(value, Tensor) and data.is_node_attr(key):
            permuted[key] = value[order]
    return permuted


def check_permutation_equivariance(
    function: Function, data: Data, *, level: Level = "node", tolerance: float = 1e-5, seed: int = 0
) -> None:
    """Renumbering the nodes renumbers a node-level result and leaves a graph-level one as it is.

    So it does an edge-level one: the edges keep their order.
    """
    order = _permutation_within_graphs(data, seed)
    expected = function(data)
    if level == "node":
        expected = expected[order]
    _assert_close(function(permute_nodes(data, order)), expected, tolerance, "after renumbering the nodes")


def check_batch_equals_singles(
    function: Function, graphs: Sequence[Data], *, level: Level = "node", tolerance: float = 1e-5
) -> None:
    """A batch gives what its graphs give one by one. Put modules with BatchNorm or dropout in eval mode first."""
    together = function(Batch.from_data_list(list(graphs)))
    singles = [function(Batch.from_data_list([graph])) for graph in graphs]
    if level == "graph" and any(len(single) != 1 for single in singles):
        raise AssertionError("a graph-level function has to give one row per graph")
    _assert_close(together, torch.cat(singles), tolerance, "between a batch and its graphs one by one")


def check_sign_invariance(
    function: Function,
    data: Data,
    *,
    attribute: str = "laplacian_eigenvector_pe",
    tolerance: float = 1e-5,
    seed: int = 0,
) -> None:
    """Flipping the signs of columns of an encoding does not change the result."""
    generator = torch.Generator().manual_seed(seed)
    encoding = data[attribute]
    expected = function(data)
    patterns = torch.randint(0, 2, (4, encoding.size(-1)), generator=generator) * 2 - 1
    patterns[0] = -1
    for signs in patterns:
        flipped = data.clone()
        flipped[attribute] = encoding * signs.to(encoding)
        _assert_close(function(flipped), expected, tolerance, f"after flipping signs of {attribute}")


def check_finite(function: Function, data: Data, parameters: nn.Module | Iterable[Tensor] = ()) -> None:
    """Values, and gradients of the parameters, are free of NaN and infinity."""
    tensors = list(parameters.parameters()) if isinstance(parameters, nn.Module) else list(parameters)
    result = function(data)
    if not torch.isfinite(result).all():
        raise AssertionError(f"{int((~torch.isfinite(result)).sum())} of {result.numel()} values are not finite")
    if not tensors:
        return
    gradients = torch.autograd.grad(result.square().sum(), tensors, allow_unused=True)
    for number, gradient in enumerate(gradients):
        if gradient is not None and not torch.isfinite(gradient).all():
            raise AssertionError(f"the gradient of parameter {number} {tuple(gradient.shape)} is not finite")


def _permutation_within_graphs(data: Data, seed: int) -> Tensor:
    """A random order of the nodes in which those of one graph stay together."""
    generator = torch.Generator().manual_seed(seed)
    shuffled = torch.randperm(int(data.num_nodes), generator=generator)
    batch = getattr(data, "batch", None)
    if batch is None:
        return shuffled
    return shuffled[torch.argsort(batch.cpu()[shuffled], stable=True)]


def _assert_close(found: Tensor, expected: Tensor, tolerance: float, when: str) -> None:
    if found.shape != expected.shape:
        raise AssertionError(f"shape {tuple(found.shape)} instead of {tuple(expected.shape)} {when}")
    if not found.numel():
        return
    scale = max(1.0, float(expected.detach().abs().max()))
    error = float((found.detach() - expected.detach()).abs().max()) / scale
    if not error <= tolerance:
        raise AssertionError(f"results differ by {error:.3g} (allowed {tolerance:g}) {when}")
