"""A batch of graphs as bare tensors, for networks that only look at them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor


class GraphTensors:
    """The tensors of a batch by name, as attributes of a PyG ``Batch`` of the same graphs.

    Predicting a few molecules takes less time than loading PyG; what networks ask of a ``Batch`` is answered here, too.
    """

    def __init__(
        self, values: Mapping[str, Tensor], levels: Mapping[str, str], num_nodes: int, num_graphs: int
    ) -> None:
        self._values = dict(values)
        self._levels = dict(levels)
        self.num_nodes = num_nodes
        self.num_graphs = num_graphs

    def __getattr__(self, name: str) -> Tensor:
        try:
            return self.__dict__["_values"][name]
        except KeyError:
            raise AttributeError(f"the graphs have no {name!r}") from None

    def __getitem__(self, name: str) -> Tensor:
        return self._values[name]

    def to(self, device: torch.device | str) -> GraphTensors:
        """The same on a device."""
        values = {name: value.to(device) for name, value in self._values.items()}
        return GraphTensors(values, self._levels, self.num_nodes, self.num_graphs)

    def to_dict(self) -> dict[str, Any]:
        """Everything by its name."""
        return dict(self._values)

    def is_node_attr(self, name: str) -> bool:
        """Whether nodes have it."""
        return self._levels[name] == "node"

    def is_edge_attr(self, name: str) -> bool:
        """Whether edges have it."""
        return self._levels[name] == "edge"
