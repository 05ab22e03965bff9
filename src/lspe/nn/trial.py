"""Try a layer that somebody else wrote on two small graphs, before a training relies on it."""

from typing import Any

import torch
from torch import Tensor, nn

from lspe.errors import UserError
from lspe.nn.topology import Topology


def try_layer(layer: nn.Module, name: str, *, dim: int, edge_dim: int, lspe: bool) -> None:
    """Say in words what is wrong with a layer (h, p, e, topology) → (h, p, e) named ``name``.

    Random numbers and the layer's statistics stay as they are; a layer without memory of its own (on the meta device)
    is not tried.
    """
    if any(parameter.device.type == "meta" for parameter in layer.parameters()):
        return
    edges = torch.tensor([[0, 1, 1, 2, 3, 4], [1, 0, 2, 1, 4, 3]])
    streams = {"h": (5, dim), "p": (5, dim), "e": (6, edge_dim)}
    was_training = layer.training
    with torch.random.fork_rng(devices=[]), torch.no_grad():
        given = {stream: torch.randn(shape) for stream, shape in streams.items() if stream != "p" or lspe}
        graph = Topology(edges, 5, torch.tensor([0, 0, 0, 1, 1]), added_pair=torch.zeros(edge_dim))
        try:
            results = layer.eval()(given["h"], given.get("p"), given["e"], graph)
        except UserError as error:
            raise UserError(f"{name}: {error}") from error
        except Exception as error:  # of whatever somebody else's layer does
            raise UserError(f"{name} fails on two small graphs: {type(error).__name__}: {error}") from error
        finally:
            layer.train(was_training)
    _check_results(name, results, given)


def _check_results(name: str, results: Any, given: dict[str, Tensor]) -> None:
    if not isinstance(results, tuple) or len(results) != 3:
        what = f"a tuple of {len(results)}" if isinstance(results, tuple) else f"a {type(results).__name__}"
        raise UserError(f"{name} gives {what}, but a layer gives three streams: (h, p, e)")
    for stream, result in zip(("h", "p", "e"), results, strict=True):
        expected = given.get(stream)
        if expected is None and result is None:
            continue
        shape = list(result.shape) if isinstance(result, Tensor) else type(result).__name__
        wanted = None if expected is None else list(expected.shape)
        if shape != wanted:
            raise UserError(f"{name} gives {shape} as {stream}, which has to be {wanted} as it was")
