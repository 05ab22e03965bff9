"""The encodings as transforms of PyTorch Geometric."""

from typing import Any

import torch
from torch import Tensor
from torch_geometric.data import Data
from torch_geometric.transforms import BaseTransform

from lspe.encodings.by_kind import encode, encode_pairs
from lspe.encodings.graphs import check_count
from lspe.encodings.kinds import EncodingKind, Level, check_encoding


class AddEncoding(BaseTransform):
    r"""Adds an encoding to a graph or to a whole batch of graphs.

    Weights are taken from ``edge_weight`` where the graph has it.

    Args:
        kind: ``rwpe``, ``lappe``, … (:data:`~lspe.encodings.KINDS`), or an :class:`~lspe.encodings.EncodingKind`.
        k: Number of columns.
        attr_name: The attribute to store the encoding in, shape :math:`[N, k]`, or :math:`[E, k]` for an encoding of
            pairs; that of the kind if left out. ``None`` appends it to ``x``, or to ``edge_attr``.

    """

    def __init__(self, kind: str | EncodingKind, k: int, attr_name: str | None = "") -> None:
        check_count(k, "k")
        self.kind = check_encoding(kind, k)
        self.k = k
        self.attr_name = self.kind.attribute if attr_name == "" else attr_name

    def forward(self, data: Data) -> Data:
        compute = encode if self.kind.level == "node" else encode_pairs
        return _with_attribute(data, self.attr_name, compute(self.kind, **_graphs_of(data), k=self.k), self.kind.level)

    def __repr__(self) -> str:
        return f"{self.__class__.__name__}({self.kind.name!r}, k={self.k})"


class RandomWalkEncoding(AddEncoding):
    r"""Adds :func:`random_walk_encoding` to a graph or to a whole batch of graphs; in place of PyG's
    :class:`~torch_geometric.transforms.AddRandomWalkPE`.

    Weights are taken from ``edge_weight`` where the graph has it.

    Args:
        k: Number of steps.
        attr_name: The attribute to store the encoding in, shape :math:`[N, k]`. ``None`` appends it to ``x``.

    """

    def __init__(self, k: int, attr_name: str | None = "") -> None:
        super().__init__("rwpe", k, attr_name)

    def __repr__(self) -> str:
        return f"{self.__class__.__name__}(k={self.k})"


class LaplacianEncoding(AddEncoding):
    r"""Adds the eigenvectors of :func:`laplacian_encoding` to a graph or to a whole batch of graphs; in place
    of PyG's :class:`~torch_geometric.transforms.AddLaplacianEigenvectorPE`.

    The signs are fixed, not random: :func:`random_signs` draws new ones at each step of a training. Weights
    are taken from ``edge_weight`` where the graph has it.

    Args:
        k: Number of eigenvectors. A graph of k nodes or fewer gets columns of zeros.
        attr_name: The attribute to store the encoding in, shape :math:`[N, k]`. ``None`` appends it to ``x``.

    """

    def __init__(self, k: int, attr_name: str | None = "") -> None:
        super().__init__("lappe", k, attr_name)

    def __repr__(self) -> str:
        return f"{self.__class__.__name__}(k={self.k})"


def _graphs_of(data: Data) -> dict[str, Any]:
    if not isinstance(data, Data) or data.edge_index is None:
        raise ValueError(f"the encodings need a `Data` or `Batch` object with `edge_index`, got {data}")
    return {
        "edge_index": data.edge_index,
        "num_nodes": data.num_nodes,
        "edge_weight": data.edge_weight,
        "batch": data.batch,
    }


def _with_attribute(data: Data, name: str | None, value: Tensor, level: Level) -> Data:
    features = "x" if level == "node" else "edge_attr"
    x = getattr(data, features)
    if name is not None:
        data[name] = value
    elif x is None:
        data[features] = value
    else:
        x = x[:, None] if x.dim() == 1 else x
        data[features] = torch.cat([x, value.to(x if x.is_floating_point() else x.device)], dim=1)

    slices = getattr(data, "_slice_dict", None)
    if slices is not None:  # a Batch: without these, `to_data_list` would leave the new attribute out
        name = features if name is None else name
        begins = data.ptr.cpu() if level == "node" else slices["edge_index"]
        data._slice_dict = {**slices, name: begins}
        data._inc_dict = {**data._inc_dict, name: torch.zeros(data.num_graphs, dtype=torch.long)}
    return data
