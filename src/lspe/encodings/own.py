"""Encodings of one's own: a function named by its import path, or values that the graphs bring along."""

import hashlib
import inspect
import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from lspe.encodings.graphs import check_graphs
from lspe.encodings.kinds import EncodingKind
from lspe.errors import UserError
from lspe.own_parts import import_part

_NEEDED = ("edge_index", "num_nodes", "k")


def kind_of_import_path(path: str) -> EncodingKind:
    """The :class:`EncodingKind`, or the function, that ``my_module:my_encoding`` names."""
    part = import_part(path)
    if isinstance(part, EncodingKind):
        return replace(part, name=path, source=_digest_of_source(part.compute))
    if not callable(part):
        raise UserError(f"{path} is a {type(part).__name__}, not a function or an lspe.encodings.EncodingKind")
    return EncodingKind(
        name=path,
        title=path.rpartition(":")[2],
        columns="columns",
        attribute=re.sub(r"\W", "_", path),
        equation=r"p_i = f(G)_i",
        compute=_OwnFunction(path, part, _options_of(path, part)),
        source=_digest_of_source(part),
    )


def kind_of_attribute(name: str) -> EncodingKind:
    """Values that stand on the nodes of the graphs already, in the attribute ``name``."""
    return EncodingKind(
        name=f"attribute:{name}",
        title=name,
        columns="columns",
        attribute=name,
        equation=r"p_i",
        compute=_Given(name),
        is_given=True,
    )


@dataclass(frozen=True)
class _OwnFunction:
    """A function of someone else's, called as lspe's own are: graph by graph where it does not take a batch."""

    path: str
    function: Callable[..., Tensor]
    options: frozenset[str]

    def __call__(
        self,
        edge_index: Tensor,
        num_nodes: int | None,
        k: int,
        *,
        edge_weight: Tensor | None = None,
        batch: Tensor | None = None,
        dtype: torch.dtype = torch.float32,
    ) -> Tensor:
        graphs = check_graphs(edge_index, num_nodes, edge_weight=edge_weight, batch=batch)
        if edge_weight is not None and "edge_weight" not in self.options:
            raise UserError(f"{self.path} takes no edge_weight, but the edges have weights")
        if "batch" in self.options:
            options: dict[str, Any] = {"edge_weight": edge_weight, "batch": batch, "dtype": dtype}
            options = {name: value for name, value in options.items() if name in self.options}
            return self._checked(self.function(edge_index, graphs.num_nodes, k, **options), graphs.num_nodes, k, dtype)
        parts = [torch.empty(0, k, dtype=dtype, device=edge_index.device)]
        for graph, size in enumerate(graphs.sizes.tolist()):
            edges = slice(int(graphs.edge_start[graph]), int(graphs.edge_start[graph + 1]))
            own_edges = (graphs.edge_index[:, edges] - int(graphs.node_start[graph])).to(edge_index.device)
            weight = {} if graphs.edge_weight is None else {"edge_weight": graphs.edge_weight[edges]}
            parts.append(self._checked(self.function(own_edges, size, k, **weight), size, k, dtype))
        return torch.cat(parts)

    def _checked(self, result: Any, rows: int, k: int, dtype: torch.dtype) -> Tensor:
        if not isinstance(result, Tensor):
            raise UserError(f"{self.path} gives a {type(result).__name__}, but an encoding is a tensor [{rows}, {k}]")
        if list(result.shape) != [rows, k]:
            raise UserError(f"{self.path} gives {list(result.shape)}, but an encoding of {rows} nodes is [{rows}, {k}]")
        if not bool(result.isfinite().all()):
            node = int((~result.isfinite()).any(1).nonzero()[0])
            raise UserError(f"{self.path} gives values for node {node} that are not finite")
        return result.detach().to(dtype)


@dataclass(frozen=True)
class _Given:
    """In the place of a function where there is nothing to compute."""

    name: str

    def __call__(self, *_: Any, **__: Any) -> Tensor:
        raise UserError(
            f"attribute:{self.name} is read from graphs that have the attribute {self.name!r}; it cannot be computed"
        )


def _options_of(path: str, function: Callable[..., Any]) -> frozenset[str]:
    """Which of the options a function takes; an error where it cannot be called as an encoding is."""
    parameters = inspect.signature(function).parameters
    missing = [name for name in _NEEDED if name not in parameters]
    if missing:
        raise UserError(
            f"{path}{inspect.signature(function)} has no {missing[0]!r}: an encoding is a function "
            "(edge_index, num_nodes, k) → [num_nodes, k], and may take edge_weight, batch and dtype too"
        )
    return frozenset({"edge_weight", "batch", "dtype"} & {*parameters})


def _digest_of_source(function: Callable[..., Any]) -> str | None:
    """Of the file that a function is written in."""
    try:
        file = inspect.getsourcefile(inspect.unwrap(function))
    except TypeError:
        return None
    return hashlib.sha256(Path(file).read_bytes()).hexdigest() if file and Path(file).is_file() else None
