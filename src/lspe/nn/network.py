"""The whole network: embed → layers → fuse → readout → head."""

from collections.abc import Iterable
from typing import Literal, NamedTuple

import torch
from torch import Tensor, nn
from torch_geometric.data import Data

from lspe.encodings import ENCODING_ATTRIBUTE, OptionalEncodingKind, random_signs
from lspe.nn.embed import Embedder
from lspe.nn.norm import center_and_normalize
from lspe.nn.readout import Readout, readout
from lspe.nn.topology import Topology
from lspe.ops import dropout

Final = Literal["structure", "structure+position", "structure+encoding"]


class Output(NamedTuple):
    """What a network knows of a batch.

    ``output`` ``[B, outputs]`` (``[N, outputs]`` without a readout, ``[E, outputs]`` of edges), ``h`` ``[N, d]`` the
    final node features, ``p`` ``[N, k]`` the final positions (``None`` where the network has none).
    """

    output: Tensor
    h: Tensor
    p: Tensor | None


class Network(nn.Module):
    r"""A network for graphs, with or without positions.

    .. math::
        h^0 = \mathrm{embed}(x), \quad p^0 = \mathrm{LL}_p(p^{\mathrm{PE}}), \quad
        h^L, p^L = \mathrm{layers}(h^0, p^0, e^0), \quad
        y = \mathrm{head}(\mathrm{readout}(\mathrm{fuse}(h^L, p^L)))

    The encoding enters in one of three places: with ``lspe`` it starts the positions p, which the layers learn on;
    without, it is added to :math:`h^0` (the same as the paper's concatenation, then a linear map); and with
    ``final="structure+encoding"`` it meets the structure only at the end.

    Args:
        embedder: features → h, e.
        layers: modules (h, p, e, topology) → (h, p, e).
        head: d → outputs.
        dim: d.
        encoding: ``none``, ``rwpe`` (read from ``data.random_walk_pe``) or ``lappe``
            (``data.laplacian_eigenvector_pe``; in training a random sign per column and graph).
        k: width of the encoding, and of the final positions.
        lspe: whether the layers learn positions.
        final: what is read out: ``structure`` h, ``structure+position`` a linear map of [h, p],
            ``structure+encoding`` the same with the embedded encoding as p.
        readout: ``mean``, ``sum`` or ``max`` of the nodes of a graph; ``none`` for nodes, ``edge`` for edges, where the
            head takes 2d + edge_dim.
        normalize_positions: centre the final positions per graph and scale them to unit norm.
        position_epsilon: under the root of that norm.
        dropout: before the projection of p and the fusion.

    """

    def __init__(
        self,
        embedder: Embedder,
        layers: Iterable[nn.Module],
        head: nn.Module,
        *,
        dim: int,
        encoding: OptionalEncodingKind = "none",
        k: int = 0,
        lspe: bool = False,
        final: Final = "structure",
        readout: Readout = "mean",
        normalize_positions: bool = False,
        position_epsilon: float = 1e-6,
        dropout: float = 0.0,
    ) -> None:
        super().__init__()
        check_combination(encoding, k, lspe, final)
        self.embedder = embedder
        self.layers = nn.ModuleList(layers)
        self.head = head
        self.dim = dim
        self.encoding = encoding
        self.k = k
        self.lspe = lspe
        self.final = final
        self.readout: Readout = readout
        self.normalize_positions = normalize_positions
        self.position_epsilon = position_epsilon
        self.dropout = dropout
        if encoding != "none":
            self.embed_p = nn.Linear(k, dim)
        if lspe or final == "structure+encoding":
            self.project_p = nn.Linear(dim, k)
        if final != "structure":
            self.fuse = nn.Linear(dim + k, dim)

    def forward(self, data: Data, topology: Topology | None = None) -> Tensor:
        """``[B, outputs]``, ``[N, outputs]`` or ``[E, outputs]``, as the readout says; see :meth:`run`."""
        return self.run(data, topology).output

    def run(self, data: Data, topology: Topology | None = None) -> Output:
        """Output, final node features and final positions of a ``Data`` or ``Batch``."""
        graph = Topology.of(data) if topology is None else topology
        h, p, e = self.embedder.nodes(data), None, self.embedder.edges(data)
        p_start = self._embed_encoding(data, graph, h)
        if self.lspe:
            p = p_start
        elif p_start is not None and self.final != "structure+encoding":
            h = h + p_start
        graph = graph.with_added_pair(self.embedder.added_pair())
        for layer in self.layers:
            h, p, e = layer(h, p, e, graph)

        p = self._final_positions(p if self.lspe else p_start, graph)
        if self.final != "structure":
            assert p is not None
            h = self.fuse(dropout(torch.cat([h, p], dim=-1), self.dropout, self.training))
        return Output(self.head(readout(h, e, graph, self.readout)), h, p)

    def _embed_encoding(self, data: Data, graph: Topology, h: Tensor) -> Tensor | None:
        """LL_p of the encoding, ``[N, d]``."""
        if self.encoding == "none":
            return None
        name = ENCODING_ATTRIBUTE[self.encoding]
        encoding = getattr(data, name, None)
        if encoding is None:
            transform = "RandomWalkEncoding" if self.encoding == "rwpe" else "LaplacianEncoding"
            raise ValueError(f"the data have no {name!r}: apply lspe.encodings.{transform}(k={self.k}) to them first")
        if encoding.size(0) != graph.num_nodes:
            raise ValueError(f"{name!r} has {encoding.size(0)} rows, but the graphs have {graph.num_nodes} nodes")
        if encoding.size(-1) != self.k:
            raise ValueError(f"{name!r} has {encoding.size(-1)} columns, but the network takes k={self.k}")
        encoding = encoding.to(h.dtype)
        if self.encoding == "lappe" and self.training:
            encoding = random_signs(encoding, graph.batch)
        return self.embed_p(encoding)

    def _final_positions(self, p: Tensor | None, graph: Topology) -> Tensor | None:
        """``[N, d]`` → ``[N, k]``."""
        if p is None or not hasattr(self, "project_p"):
            return None
        p = self.project_p(dropout(p, self.dropout, self.training))
        if self.normalize_positions:
            p = center_and_normalize(p, graph.batch, graph.num_graphs, self.position_epsilon)
        return p


def check_combination(encoding: str, k: int, lspe: bool, final: str) -> None:
    """Say so where no network has positions of this kind."""
    if encoding == "none" and (lspe or final != "structure"):
        raise ValueError(f"lspe={lspe}, final={final!r} need an encoding to start from: choose 'rwpe' or 'lappe'")
    if encoding != "none" and k < 1:
        raise ValueError(f"encoding {encoding!r} needs a width k ≥ 1, not {k}")
    if final == "structure+position" and not lspe:
        raise ValueError(
            "final='structure+position' needs lspe=True, for without it no positions are learned: "
            "choose lspe=True or final='structure'"
        )
    if final == "structure+encoding" and lspe:
        raise ValueError("final='structure+encoding' is for networks without lspe; with it use 'structure+position'")
