"""The whole network: embed → layers → fuse → readout → head."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from typing import TYPE_CHECKING, Literal, NamedTuple

import torch
from torch import Tensor, nn

from lspe.encodings import EncodingKind, check_encoding, encode_pairs, find_kind, random_signs
from lspe.encodings.kinds import NONE
from lspe.nn.embed import Embedder
from lspe.nn.norm import BatchNorm, center_and_normalize
from lspe.nn.pooled import LINEAR, predict_of_means
from lspe.nn.readout import Readout, readout
from lspe.nn.sequence import run_layers
from lspe.nn.signs import SignInvariantEmbedding, Signs
from lspe.nn.topology import Topology
from lspe.ops import dropout, is_unchanged

if TYPE_CHECKING:
    from torch_geometric.data import Data

Final = Literal["structure", "structure+position", "structure+encoding"]


class Output(NamedTuple):
    """What a network knows of a batch.

    ``output`` ``[B, outputs]`` (``[N, outputs]`` without a readout, ``[E, outputs]`` of edges, ``[P, outputs]`` of the
    pairs ``edge_label_index``), ``h`` ``[N, d]`` the final node features, ``p`` ``[N, k]`` the final positions
    (``None`` where the network has none).
    """

    output: Tensor
    h: Tensor
    p: Tensor | None


class Embedded(NamedTuple):
    r"""What a network sees of graphs: :math:`h^0` ``[N, d]``, the embedded encoding ``p`` ``[N, d]``, :math:`e^0`
    ``[E, edge_dim]`` and the embedded descriptors ``[B, d]``; ``None`` where the network has none.
    """

    h: Tensor
    p: Tensor | None
    e: Tensor
    descriptors: Tensor | None


class Network(nn.Module):
    r"""A network for graphs, with or without positions.

    .. math::
        h^0 = \mathrm{embed}(x), \quad p^0 = \mathrm{LL}_p(p^{\mathrm{PE}}), \quad
        h^L, p^L = \mathrm{layers}(h^0, p^0, e^0), \quad
        y = \mathrm{head}(\mathrm{readout}(\mathrm{fuse}(h^L, p^L)))

    The encoding enters in one of three places: with ``lspe`` it starts the positions p, which the layers learn on;
    without, it is added to :math:`h^0` (the same as the paper's concatenation, then a linear map); and with
    ``final="structure+encoding"`` it meets the structure only at the end. An encoding of pairs is added to
    :math:`e^0`, of the edges and of the pairs that full attention adds, each through the same linear map:
    :math:`e_{ij}^0 = \mathrm{embed}(\mathrm{edge}_{ij}) + \mathrm{LL}_e(p_{ij}^{\mathrm{PE}})`.

    Args:
        embedder: features → h, e.
        layers: modules (h, p, e, topology) → (h, p, e).
        head: d → outputs.
        dim: d.
        encoding: ``none`` or a kind of encoding: ``rwpe`` (read from ``data.random_walk_pe``), ``lappe``
            (``data.laplacian_eigenvector_pe``), ….
        k: width of the encoding, and of the final positions.
        signs: of columns whose sign means nothing, those of ``lappe``: ``random`` ones in each step of training, or an
            embedding that is ``invariant`` (:class:`~lspe.nn.SignInvariantEmbedding`) in the place of the linear map.
        pair_encoding: ``none`` or a kind of encoding for pairs: ``rrwp`` (read from ``data.edge_relative_walk_pe``), …;
            that of the pairs which full attention adds is computed in each forward pass.
        pair_k: width of the encoding of pairs.
        normalize_encoding: put a BatchNorm before the linear maps of both encodings, whose columns may differ in size.
            The pairs that full attention adds are normalised by the running statistics of the edges.
        edge_dim: width of e; d if left out.
        lspe: whether the layers learn positions.
        final: what is read out: ``structure`` h, ``structure+position`` a linear map of [h, p],
            ``structure+encoding`` the same with the embedded encoding as p.
        readout: ``mean``, ``sum`` or ``max`` of the nodes of a graph; ``mean+sum``, where the head takes 2d; ``none``
            for nodes, ``edge`` for edges, where the head takes 2d + edge_dim, ``link`` for the pairs of nodes
            ``data.edge_label_index``.
        normalize_positions: centre the final positions per graph and scale them to unit norm.
        position_epsilon: under the root of that norm.
        dropout: before the projection of p and the fusion.
        descriptors: what takes ``data.descriptors``, numbers of the graph as a whole; its result stands beside the
            readout before the head.

    """

    def __init__(
        self,
        embedder: Embedder,
        layers: Iterable[nn.Module],
        head: nn.Module,
        *,
        dim: int,
        encoding: str | EncodingKind = NONE,
        k: int = 0,
        signs: Signs = "random",
        pair_encoding: str | EncodingKind = NONE,
        pair_k: int = 0,
        normalize_encoding: bool = False,
        edge_dim: int | None = None,
        lspe: bool = False,
        final: Final = "structure",
        readout: Readout = "mean",
        normalize_positions: bool = False,
        position_epsilon: float = 1e-6,
        dropout: float = 0.0,
        descriptors: nn.Module | None = None,
    ) -> None:
        super().__init__()
        check_combination(encoding, k, lspe, final)
        self.embedder = embedder
        self.layers = nn.ModuleList(layers)
        self.head = head
        self.dim = dim
        self.encoding = encoding if isinstance(encoding, str) else encoding.name
        self._kind = None if encoding == NONE else check_encoding(encoding, k, "node")
        self.signs = signs
        self.normalize_encoding = normalize_encoding
        self.pair_encoding = pair_encoding if isinstance(pair_encoding, str) else pair_encoding.name
        self._pair_kind = None if pair_encoding == NONE else check_encoding(pair_encoding, pair_k, "pair")
        self.pair_k = pair_k
        self.k = k
        self.lspe = lspe
        self.final = final
        self.readout: Readout = readout
        self.normalize_positions = normalize_positions
        self.position_epsilon = position_epsilon
        self.dropout = dropout
        self.descriptors = descriptors
        if self._kind is not None:
            check_signs(self._kind, signs, normalize_encoding)
            self.embed_p = SignInvariantEmbedding(k, dim) if signs == "invariant" else nn.Linear(k, dim)
            self.norm_p = BatchNorm(k) if normalize_encoding else None
        if self._pair_kind is not None:
            self.embed_pair = nn.Linear(pair_k, dim if edge_dim is None else edge_dim, bias=False)
            self.norm_pair = BatchNorm(pair_k) if normalize_encoding else None
        if lspe or final == "structure+encoding":
            self.project_p = nn.Linear(dim, k)
        if final != "structure":
            self.fuse = nn.Linear(dim + k, dim)

    def forward(self, data: Data, topology: Topology | None = None) -> Tensor:
        """``[B, outputs]``, ``[N, …]``, ``[E, …]`` or ``[P, …]``, as the readout says.

        The output of :meth:`run` without the rest: maps behind the layers, which are linear, see a row per graph where
        they may, instead of one per node.
        """
        if not self._may_pool_first():
            return self.run(data, topology).output
        graph = Topology.of(data) if topology is None else topology
        return self._finish_pooled(self._through_layers(self.embed(data, graph), data, graph), graph)

    def run(self, data: Data, topology: Topology | None = None) -> Output:
        """Output, final node features and final positions of a ``Data`` or ``Batch``."""
        graph = Topology.of(data) if topology is None else topology
        return self.run_from(self.embed(data, graph), data, graph)

    def embed(self, data: Data, graph: Topology) -> Embedded:
        """What the network sees of graphs before its first layer."""
        h, p = self.embed_nodes(data, graph)
        return Embedded(h, p, self.embed_edges(data, graph), self.embed_descriptors(data))

    def embed_nodes(self, data: Data, graph: Topology) -> tuple[Tensor, Tensor | None]:
        """``[N, d]`` of the features and, where there is an encoding, ``[N, d]`` of that."""
        h = self.embedder.nodes(data)
        return h, self._embed_encoding(data, graph, h)

    def embed_edges(self, data: Data, graph: Topology) -> Tensor:
        """:math:`e^0` ``[E, edge_dim]``."""
        e = self.embedder.edges(data)
        if self._pair_kind is None:
            return e
        of_edges = self._encoding(data, self._pair_kind, self.pair_k, graph.edges.count, "edges")
        of_edges = of_edges.to(e)
        return e + self.embed_pair(of_edges if self.norm_pair is None else self.norm_pair(of_edges))

    def embed_descriptors(self, data: Data) -> Tensor | None:
        """``[B, d]`` of the descriptors, where the network takes some."""
        if self.descriptors is None:
            return None
        if getattr(data, "descriptors", None) is None:
            raise ValueError("the data have no 'descriptors', which the network takes beside its readout")
        of_descriptors: Tensor = self.descriptors(data.descriptors)
        return of_descriptors

    def run_from(self, start: Embedded, data: Data, graph: Topology) -> Output:
        """The rest of the network; of ``data`` only what is said of pairs without an edge is still read."""
        return self.finish(self._through_layers(start, data, graph), data, graph)

    def _through_layers(self, start: Embedded, data: Data, graph: Topology) -> Embedded:
        """What the layers make of the streams; p is the start where they learn no positions."""
        h, p = self.start(start.h, start.p)
        graph = graph.with_added_pair(partial(self._added_pair, data, graph, start.e.dtype))
        h, p, e = run_layers(self.layers, h, p, start.e, graph)
        return start._replace(h=h, p=p if self.lspe else start.p, e=e)

    def start(self, h: Tensor, p: Tensor | None) -> tuple[Tensor, Tensor | None]:
        r""":math:`h^0` and :math:`p^0`; where no positions are learned, the encoding is part of :math:`h^0`."""
        if self.lspe or p is None:
            return h, p
        return (h if self.final == "structure+encoding" else h + p), None

    def finish(self, end: Embedded, data: Data, graph: Topology) -> Output:
        """From what the layers made of the streams to the output."""
        h, p = end.h, self._final_positions(end.p, graph)
        if self.final != "structure":
            assert p is not None
            h = self.fuse(dropout(torch.cat([h, p], dim=-1), self.dropout, self.training))
        read_out = readout(h, end.e, graph, self.readout, getattr(data, "edge_label_index", None))
        return Output(self._head_of(read_out, end.descriptors), h, p)

    def _may_pool_first(self) -> bool:
        """Whether graphs are read out linearly, and nobody changes or sees what is made of single nodes."""
        if type(self) is not Network or self.final == "structure" or self.readout not in LINEAR:
            return False
        drops = self.training and self.dropout > 0
        return not drops and all(is_unchanged(linear, nn.Linear) for linear in (self.project_p, self.fuse))

    def _finish_pooled(self, end: Embedded, graph: Topology) -> Tensor:
        """The output as :meth:`finish` has it; positions that are normalised are those of nodes."""
        by_node = self.normalize_positions
        p = self._final_positions(end.p, graph) if by_node else end.p
        assert p is not None
        project = None if by_node else self.project_p
        return predict_of_means(end.h, p, end.descriptors, graph, self.readout, project, self.fuse, self.head)

    def _head_of(self, read_out: Tensor, descriptors: Tensor | None) -> Tensor:
        """``[B, outputs]``, or of nodes, edges or pairs."""
        output: Tensor = self.head(read_out if descriptors is None else torch.cat([read_out, descriptors], dim=-1))
        return output

    def _added_pair(self, data: Data, graph: Topology, dtype: torch.dtype) -> Tensor:
        """What pairs without an edge have in full attention: ``[edge_dim]``, or ``[P, edge_dim]``, one each."""
        added = self.embedder.added_pair()
        if self._pair_kind is None:
            return added
        of_added = self._encoding_of_added_pairs(data, graph, dtype)
        return added + self.embed_pair(of_added if self.norm_pair is None else self.norm_pair.by_running(of_added))

    def _embed_encoding(self, data: Data, graph: Topology, h: Tensor) -> Tensor | None:
        """LL_p of the encoding, ``[N, d]``."""
        if self._kind is None:
            return None
        encoding = self._encoding(data, self._kind, self.k, graph.num_nodes, "nodes").to(h.dtype)
        if self.signs == "invariant":
            return self.embed_p(encoding, graph)
        if self._kind.has_signs and self.training:
            encoding = random_signs(encoding, graph.batch)
        return self.embed_p(encoding if self.norm_p is None else self.norm_p(encoding))

    def _encoding(self, data: Data, kind: EncodingKind, k: int, rows: int, of_what: str) -> Tensor:
        """``[rows, k]``, as it stands in the data."""
        encoding = getattr(data, kind.attribute, None)
        if encoding is None:
            transform = f"lspe.encodings.AddEncoding({kind.name!r}, k={k})"
            raise ValueError(f"the data have no {kind.attribute!r}: apply {transform} to them first")
        if encoding.size(0) != rows:
            raise ValueError(f"{kind.attribute!r} has {encoding.size(0)} rows, but the graphs have {rows} {of_what}")
        if encoding.size(-1) != k:
            raise ValueError(f"{kind.attribute!r} has {encoding.size(-1)} columns, but the network takes k={k}")
        return encoding

    def _encoding_of_added_pairs(self, data: Data, graph: Topology, dtype: torch.dtype) -> Tensor:
        """``[P, pair_k]`` of the pairs that full attention adds; the walks are those of the original graph."""
        assert self._pair_kind is not None
        weight = getattr(data, "edge_weight", None)
        if weight is not None and graph.real is not None:
            weight = weight[graph.real]
        with torch._C._DisableFuncTorch():  # the graphs are no part of what a transform looks at
            return encode_pairs(
                self._pair_kind, graph.real_edge_index, graph.num_nodes, self.pair_k,
                pairs=graph.pairs.unlisted_index, edge_weight=weight, batch=graph.batch, dtype=dtype,
            )  # fmt: skip

    def _final_positions(self, p: Tensor | None, graph: Topology) -> Tensor | None:
        """``[N, d]`` → ``[N, k]``."""
        if p is None or not hasattr(self, "project_p"):
            return None
        p = self.project_p(dropout(p, self.dropout, self.training))
        if self.normalize_positions:
            p = center_and_normalize(p, graph.batch, graph.num_graphs, self.position_epsilon)
        return p


def check_combination(encoding: str | EncodingKind, k: int, lspe: bool, final: str) -> None:
    """Say so where no network has positions of this kind."""
    if encoding == NONE and (lspe or final != "structure"):
        raise ValueError(f"lspe={lspe}, final={final!r} need an encoding to start from: choose 'rwpe', 'lappe', …")
    if encoding != NONE and k < 1:
        raise ValueError(f"encoding {find_kind(encoding).name!r} needs a width k ≥ 1, not {k}")
    if final == "structure+position" and not lspe:
        raise ValueError(
            "final='structure+position' needs lspe=True, for without it no positions are learned: "
            "choose lspe=True or final='structure'"
        )
    if final == "structure+encoding" and lspe:
        raise ValueError("final='structure+encoding' is for networks without lspe; with it use 'structure+position'")


def check_signs(kind: EncodingKind, signs: Signs, normalize_encoding: bool = False) -> None:
    """Say so where an encoding has no signs to be blind to, or where they would be seen."""
    if signs == "invariant" and normalize_encoding:
        raise ValueError("signs='invariant' goes without normalize_encoding, whose means would make it see the signs")
    if signs == "invariant" and not kind.has_signs:
        raise ValueError(f"signs='invariant' is for encodings with signs, such as 'lappe'; {kind.name!r} has none")
