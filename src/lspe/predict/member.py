"""One trained network with all that predicting takes: what goes in, what comes out, and how."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from lspe.data import PackedGraphs
from lspe.data.packed.container import Array
from lspe.data.words import DescriptorKind, Fragments, Level
from lspe.errors import UserError
from lspe.experiment.value import CONFIG, Experiment
from lspe.files import write_json, write_text
from lspe.nn import Network, Output
from lspe.nn.blocks import run_bounded
from lspe.nn.readout import Readout, pool, width_of
from lspe.nn.topology import Topology
from lspe.training import checkpoint
from lspe.training.objective import Objective
from lspe.training.run import Interface, Run
from lspe.training.words import Which

_MOST_GRAPHS = 256
_MOST_PAIRS = 2**22
_MOST_EMBEDDED_PAIRS = 2**16


class Vectors(NamedTuple):
    """What a network makes of graphs before its head: ``graph`` [G, d], ``node`` [N, d], ``position`` [N, k].

    ``position`` is ``None`` where the network has none.
    """

    graph: NDArray[np.float32]
    node: NDArray[np.float32]
    position: NDArray[np.float32] | None


@dataclass(frozen=True)
class Member:
    """A trained network of an ensemble, which may be its only one."""

    name: str
    experiment: Experiment
    interface: Interface
    network: Network

    @classmethod
    def of_run(cls, run: Run, which: Which = "reported") -> Member:
        """The network of a run folder."""
        return cls(str(run.path), run.config, run.interface, run.network(which))

    @property
    def level(self) -> Level:
        """What a prediction belongs to."""
        return self.experiment.task.level

    @property
    def graph_width(self) -> int:
        """Of the vector that is read out of each graph."""
        return width_of(self._pooling, self.experiment.model.hidden_dim, 0)

    @property
    def fragments(self) -> Fragments:
        """What is done with molecules of several parts."""
        return self.interface.fragments  # type: ignore[return-value]

    @property
    def objective(self) -> Objective:
        """The meaning of the network's output."""
        return self.interface.objective(self.experiment.task)

    def save(self, folder: Path) -> None:
        """Write what :meth:`of_run` reads: a run folder that predicts, without scores."""
        folder.mkdir(parents=True, exist_ok=True)
        write_text(folder / CONFIG, self.experiment.to_yaml(folder))
        write_json(folder / "interface.json", self.interface.to_dict())
        weights = {"epoch": 0, "network": self.network.state_dict(), "average": None}
        checkpoint.save(folder / f"{self.experiment.training.protocol.report}.ckpt", weights)

    def values(self, graphs: GraphsWithEncodings) -> NDArray[np.float64]:
        """Values in original units, or probabilities.

        [G, outputs]; [N, outputs] where nodes, [E, outputs] where edges, [P, outputs] where pairs are predicted.
        """
        return self._in_units([result.output for result, _ in self._results(graphs)])

    def graph_vectors(self, graphs: GraphsWithEncodings) -> NDArray[np.float32]:
        """What the network reads out of each graph, [G, :attr:`graph_width`]."""
        read_out = [self._pooled(result, topology) for result, topology in self._results(graphs)]
        return _joined(read_out, self.graph_width).numpy()

    def apply(self, graphs: GraphsWithEncodings) -> tuple[NDArray[np.float64], Vectors]:
        """What :meth:`values` gives, and the vectors it was made from: some hundred bytes per node."""
        outputs, graph, node, position = [], [], [], []
        for result, topology in self._results(graphs):
            outputs.append(result.output)
            graph.append(self._pooled(result, topology))
            node.append(result.h)
            if result.p is not None:
                position.append(result.p)
        model = self.experiment.model
        vectors = Vectors(
            _joined(graph, self.graph_width).numpy(),
            _joined(node, model.hidden_dim).numpy(),
            _joined(position, model.k).numpy() if hasattr(self.network, "project_p") else None,
        )
        return self._in_units(outputs), vectors

    @torch.inference_mode()
    def _results(self, graphs: GraphsWithEncodings) -> Iterator[tuple[Output, Topology]]:
        """What the network makes of one batch after the other."""
        device = next(self.network.parameters()).device
        most_pairs = _MOST_EMBEDDED_PAIRS if hasattr(self.network, "embed_pair") else _MOST_PAIRS
        packed = graphs.for_network(self)
        # loading PyG takes longer than predicting a few molecules; a network of one's own may ask more of a batch
        batch_of = packed.tensors if self.level == "graph" and type(self.network) is Network else packed.batch
        for rows in _neighbouring(packed, most_pairs):
            batch = batch_of(rows).to(device)
            topology = Topology.of(batch)
            yield run_bounded(self.network, batch, topology=topology), topology
            packed.let_go()

    def _pooled(self, result: Output, topology: Topology) -> Tensor:
        return pool(result.h, topology, self._pooling)

    @property
    def _pooling(self) -> Readout:
        return self.network.readout if self.level == "graph" else "mean"

    def _in_units(self, outputs: list[Tensor]) -> NDArray[np.float64]:
        joined = _joined(outputs, self.experiment.task.outputs).double()
        return self.objective.predict(joined).numpy()


class GraphsWithEncodings:
    """Graphs with the encodings that networks ask for, each computed once, and with descriptors."""

    def __init__(
        self,
        graphs: PackedGraphs,
        descriptors: Mapping[DescriptorKind, Array] | None = None,
        extra: Array | None = None,
    ) -> None:
        self.graphs = graphs
        self.descriptors = descriptors or {}
        self.extra = extra
        self._by_encodings: dict[tuple[tuple[str, int], ...], PackedGraphs] = {}

    def for_network(self, member: Member) -> PackedGraphs:
        """The graphs as the network of `member` takes them."""
        model = member.experiment.model
        if model.encodings not in self._by_encodings:
            self._by_encodings[model.encodings] = self.graphs.with_encodings(model.encodings)
        graphs = self._by_encodings[model.encodings]
        wanted = model.beside
        if (wanted == "none" and not model.extra) or "descriptors" in graphs.graph:
            return graphs
        if wanted != "none" and wanted not in self.descriptors:
            raise UserError(
                f"{member.name} takes {wanted} descriptors, which only SMILES give: predict SMILES, or train with "
                "--descriptors none to predict graphs"
            )
        parts = [self.extra] if self.extra is not None else []
        if wanted != "none":
            parts.append(self.descriptors[wanted])
        return replace(graphs, graph={**graphs.graph, "descriptors": np.concatenate(parts, axis=1, dtype=np.float32)})


def _neighbouring(graphs: PackedGraphs, most_pairs: int) -> Iterator[NDArray[np.int64]]:
    """Neighbouring graphs for each batch, as many as fit.

    Attention over all pairs needs memory for B · n² of them, n the nodes of the largest graph, and d times as much
    where each pair has an embedding: a huge molecule gets a batch almost to itself.
    """
    sizes = graphs.num_nodes.tolist()
    begin = largest = 0
    for end, size in enumerate(sizes):
        largest = max(largest, size)
        if end - begin == _MOST_GRAPHS or (end > begin and (end - begin + 1) * largest**2 > most_pairs):
            yield np.arange(begin, end)
            begin, largest = end, size
    if begin < len(sizes):
        yield np.arange(begin, len(sizes))


def _joined(parts: list[Tensor], width: int) -> Tensor:
    if len(parts) == 1:
        return parts[0].cpu()
    return torch.cat(parts).cpu() if parts else torch.empty(0, width)


def check_same_kind(first: Member, other: Member) -> None:
    """The networks of an ensemble predict the same thing from the same features."""
    for what, one, another in (
        ("the level", first.level, other.level),
        ("the task", first.experiment.task.kind, other.experiment.task.kind),
        ("the targets", first.interface.task_names, other.interface.task_names),
        ("the classes", first.interface.class_names, other.interface.class_names),
        ("the treatment of fragments", first.interface.fragments, other.interface.fragments),
        ("the extra columns", first.interface.extra_names, other.interface.extra_names),
        ("the features", first.interface.features, other.interface.features),
    ):
        if one != another:
            raise UserError(
                f"these runs are no ensemble: {what} of {first.name} and of {other.name} differ ({one} and {another})"
            )
