"""A trained network, or an ensemble of them, that takes molecules and gives values, probabilities and vectors."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lspe.data.molecules.conversion import MoleculeGraphs
from lspe.data.packed.container import Array
from lspe.data.words import DescriptorKind, Level
from lspe.devices import choose_device
from lspe.errors import UserError
from lspe.forest import KINDS, Forest
from lspe.predict.calibration import Calibration
from lspe.predict.graphs import is_graph, pack_graphs
from lspe.predict.intervals import Intervals
from lspe.predict.known import KnownMolecules, Neighbour, fingerprints_of
from lspe.predict.member import GraphsWithEncodings, Member, check_same_kind
from lspe.predict.molecules import AT_ONCE, as_texts, check_molecules_fit, pieces_of, read_pieces
from lspe.predict.predictions import Embeddings, Floats, Predictions, combined

if TYPE_CHECKING:
    from torch_geometric.data import Data

    from lspe.predict.explanation import Explanation
    from lspe.predict.tables import TableSummary

Piece = TypeVar("Piece")


class Predictor:
    """One or several trained networks of the same task; several are an ensemble, whose prediction is their mean.

    Forests may stand beside the networks; `weights` say how much each network, then each forest counts.

    A prediction depends on the molecule alone: neither on what else is predicted with it nor on the order (up to the
    rounding of float32).

    Attributes:
        level: what a prediction belongs to: ``graph``, ``node``, ``edge`` or ``link``.
        task: ``regression``, ``binary`` or ``multiclass``.
        task_names: of the targets.
        class_names: of a multi-class target.
        intervals: how wide those are that hold 90 % of the true values; ``None`` where there are none.
        calibration: what is done with probabilities so that they are frequencies; ``None`` where nothing is.
        known: the molecules it was trained on; ``None`` where they are not kept.
        card: of a model that was exported: what it was trained on, how good it is and where not to trust it.
        reasons: of the last call: why a molecule, by its position, has no value.

    """

    def __init__(
        self,
        members: Sequence[Member],
        *,
        forests: Sequence[Forest] = (),
        weights: Sequence[float] | None = None,
        intervals: Intervals | None = None,
        calibration: Calibration | None = None,
        known: KnownMolecules | None = None,
        card: str = "",
        device: str = "auto",
    ) -> None:
        if not members:
            raise UserError("there is no run to predict with")
        self.members = list(members)
        self.forests = list(forests)
        count = len(self.members) + len(self.forests)
        given = np.ones(count) if weights is None else np.array(weights)
        if given.shape != (count,):
            raise ValueError(f"{given.shape} weights for {count} networks and forests")
        self.weights: Floats = given / given.sum()
        self.intervals = intervals
        self.calibration = calibration
        self.known = known
        self.card = card
        first = self.members[0]
        self.level = first.level
        self.task = first.experiment.task.kind
        self.task_names = first.interface.task_names
        self.class_names = first.interface.class_names
        self.features = first.interface.features
        self.fragments = first.fragments
        self.extra_names = first.interface.extra_names
        self.reasons: dict[int, str] = {}
        targets = len(self.task_names)
        if intervals is not None and {len(intervals.constants), len(intervals.slopes)} != {targets}:
            raise UserError(f"there are intervals of {len(intervals.constants)} targets; {first.name} has {targets}")
        for other in self.members[1:]:
            check_same_kind(first, other)
        for member in self.members:
            member.network.to(choose_device(device)).eval()

    def predict(
        self,
        molecules: str | Data | Iterable[str] | Iterable[Data],
        *,
        return_std: bool = False,
        extra: ArrayLike | None = None,
        processes: int | None = None,
    ) -> Any:
        """Values in original units, or probabilities: [M] of one output, else [M, outputs].

        Of a network that predicts nodes, edges or links: a list of such arrays, one row per node or edge as it is
        given, or per pair ``edge_label_index`` [2, P] of each graph; of a single molecule or graph only its array. A
        molecule that cannot be read gets NaN; :attr:`reasons` says why.

        Args:
            molecules: SMILES, one or many (list, array, Series), or PyG graphs with the features trained on.
            extra: the further numbers [M, E] that the model was trained with (``--extra-column``).
            return_std: also give the standard deviation over the networks of an ensemble.
            processes: that read SMILES; as many as there are cores if not given.

        """
        parts = list(self._pieces(molecules, processes, extra))
        if self.level != "graph":
            return self._of_graphs(
                parts, single=isinstance(molecules, str) or is_graph(molecules), return_std=return_std
            )
        mean = _without_single_axis(_stacked([part.mean for part in parts], self._outputs))
        if not return_std:
            return mean
        self._check_several()
        return mean, _without_single_axis(_stacked([part.sd for part in parts if part.sd is not None], self._outputs))

    def _of_graphs(self, parts: list[Predictions], *, single: bool, return_std: bool) -> Any:
        """The predictions of nodes, edges or links, divided among graphs."""
        if return_std:
            self._check_several()
        both = []
        for name in ("mean", "sd") if return_std else ("mean",):
            rows = [part.by_molecule(_without_single_axis(getattr(part, name)), part.num_targets) for part in parts]
            of_all = [one for piece in rows for one in piece]
            both.append(of_all[0] if single else of_all)
        return tuple(both) if return_std else both[0]

    def _check_several(self) -> None:
        if len(self.weights) == 1:
            raise UserError("the standard deviation is over the networks of an ensemble, and there is only one")

    def predict_interval(self, molecules: str | Iterable[str], **options: Any) -> tuple[Floats, Floats]:
        """The ends of intervals that hold 90 % of the true values, [M] or [M, outputs] each.

        They are as wide as the errors on molecules that were held out in training, wider where networks and trees are
        further apart, and hold for molecules like those. `options` are ``extra`` and ``processes`` of :meth:`predict`.
        """
        if self.intervals is None:
            raise UserError(
                "intervals are there for a table's regression, of a single run with enough molecules to judge them by"
            )
        parts = list(self._pieces(molecules, **{"processes": None, **options}))
        mean, half = (
            _without_single_axis(_stacked([getattr(part, name) for part in parts], self._outputs))
            for name in ("mean", "half_widths")
        )
        return mean - half, mean + half

    def embed(
        self, molecules: str | Data | Iterable[str] | Iterable[Data], *, processes: int | None = None
    ) -> Embeddings:
        """The vectors a network makes of molecules before its head: of the whole, of each atom, and the positions.

        Of an ensemble they are those of its first network: each network has coordinates of its own, which have no mean.
        """
        graph: list[NDArray[np.float32]] = []
        atoms: list[NDArray[np.float32]] = []
        positions: list[NDArray[np.float32]] = []
        for part in self._pieces(molecules, processes):
            vectors = part.vectors
            whole = np.full((part.count, vectors.graph.shape[1]), np.nan, dtype=np.float32)
            whole[part.rows] = vectors.graph
            graph.append(whole)
            atoms += part.by_molecule(vectors.node, part.num_nodes)
            if vectors.position is not None:
                positions += part.by_molecule(vectors.position, part.num_nodes)
        nothing = np.empty((0, self.members[0].graph_width), np.float32)
        return Embeddings(np.concatenate([nothing, *graph]), atoms, positions)

    def nearest(self, molecules: str | Iterable[str], count: int = 1) -> list[list[Neighbour]]:
        """For each molecule the training molecules that are most like it; none for one that cannot be read."""
        self.check_known()
        found: list[list[Neighbour]] = []
        texts = [molecules] if isinstance(molecules, str) else as_texts(molecules)
        for begin, part in zip(range(0, len(texts), AT_ONCE), self._pieces(texts, None), strict=True):
            near = self.nearest_of(texts[begin : begin + AT_ONCE], part, count)
            found += [near.get(row, []) for row in range(part.count)]
        return found

    def nearest_of(self, smiles: Sequence[str], part: Predictions, count: int = 1) -> dict[int, list[Neighbour]]:
        """The training molecules nearest to those of a piece that could be read, by their row in it."""
        assert self.known is not None
        bits = fingerprints_of([smiles[row] for row in part.rows.tolist()], self.fragments)
        about = self.known.nearest(part.vectors.graph, bits, count=count, task=self.task, class_names=self.class_names)
        return dict(zip(part.rows.tolist(), about, strict=True))

    def explain(self, smiles: str, *, extra: ArrayLike | None = None) -> Explanation:
        """What each atom and bond adds to the prediction of a molecule, and which training molecules are like it.

        Explained are the networks, by integrated gradients; what a forest says stands beside it as one number. `extra`
        [E] are the further numbers of the molecule that the model was trained with.
        """
        from lspe.predict.explanation import explain

        return explain(self, smiles, extra=extra)

    def predict_table(
        self,
        table: str | os.PathLike[str],
        output: str | os.PathLike[str],
        *,
        smiles_column: str | None = None,
        embeddings: str | os.PathLike[str] | None = None,
        nearest: bool = False,
        processes: int | None = None,
    ) -> TableSummary:
        """Predict a table of any length (``-`` is the standard input and output) in bounded memory.

        `output` (CSV, TSV or Parquet by its name) gets every row and column of `table`, the predictions, and a column
        ``reason``. `embeddings` (npz or Parquet) gets the vectors of molecules, atoms and positions.
        `nearest` adds the training molecule that is most like each one, and how similar it is.
        """
        from lspe.predict.tables import predict_table

        return predict_table(
            self,
            table,
            output,
            smiles_column=smiles_column,
            embeddings=embeddings,
            nearest=nearest,
            processes=processes,
        )

    def predict_graphs(self, graphs: Iterable[Data]) -> Iterator[tuple[list[Data], Predictions]]:
        """PyG graphs, a piece at a time, with their predictions."""
        if self.forests or self.extra_names:
            raise UserError("the model takes descriptors or extra columns beside the graphs: predict SMILES")
        for piece in pieces_of(graphs):
            packed = pack_graphs(piece, self.features, self.members[0].name, self.level)
            yield piece, self._predict(MoleculeGraphs(packed, np.arange(len(piece)), {}))

    def likeliest_links(self, graph: Data, top: int = 100) -> tuple[NDArray[np.int64], Floats]:
        """The pairs of nodes that are not joined and are most likely to be: [2, P], and how likely, the best first."""
        from lspe.predict.links import likeliest_pairs

        return likeliest_pairs(self, graph, top)

    def predict_pieces(
        self,
        pieces: Iterable[Piece],
        smiles_of: Callable[[Piece], Sequence[str]],
        processes: int | None = None,
        extra_of: Callable[[Piece], Array] | None = None,
    ) -> Iterator[tuple[Piece, Predictions]]:
        """Each piece of a stream of molecules with its predictions, in order, in bounded memory.

        ``extra_of`` gives the further numbers [M, E] of a piece, where the model takes some.
        """
        if self.level in ("edge", "link"):
            raise UserError(
                f"{self.members[0].name} predicts {self.level}s, and SMILES do not say which comes when: give graphs, "
                "PyG's Data"
            )
        if extra_of is None:
            self.checked_extra(None, 0)
        for member in self.members:
            check_molecules_fit(member.interface.features, member.name)
        for piece, molecules in read_pieces(
            pieces, smiles_of, self.features, self.fragments, processes, self.descriptors
        ):
            if extra_of is not None and self.extra_names:
                molecules = replace(molecules, extra=extra_of(piece)[molecules.rows])
            yield piece, self._predict(molecules)

    def check_level(self, level: Level, what: str) -> None:
        """Refuse what only predictions of a level can give."""
        if self.level != level:
            raise UserError(
                f"{what} a prediction per {level}, and {self.members[0].name} predicts {self.level}s: "
                "lspe.load(run).predict gives an array for each graph"
            )

    def check_single(self, what: str) -> None:
        """Refuse what an ensemble cannot give."""
        if len(self.members) > 1:
            raise UserError(f"{what} are those of one network, and there are {len(self.members)}: choose one run")

    def check_known(self) -> None:
        """Refuse to compare with training molecules that are not there."""
        if self.known is None:
            raise UserError(
                "the molecules that the model was trained on are not kept with it: train it again on its table, or "
                "export it with them"
            )

    def checked_extra(self, extra: ArrayLike | None, count: int) -> Floats:
        """The further numbers of molecules, [M, E]; refused where they are not those the model was trained with."""
        names = ", ".join(self.extra_names)
        if extra is None and self.extra_names:
            raise UserError(
                f"the model was trained with further numbers of each molecule ({names}): give them as extra=..., or "
                "predict a table that has these columns"
            )
        numbers = np.zeros((count, 0)) if extra is None else np.asarray(extra, dtype=np.float64)
        if numbers.shape != (count, len(self.extra_names)):
            raise UserError(f"extra has shape {numbers.shape}, but the model takes ({names or 'nothing'}) of {count}")
        return numbers

    @property
    def descriptors(self) -> tuple[DescriptorKind, ...]:
        """What networks and forests take beside the graphs."""
        wanted = {member.experiment.model.beside for member in self.members}
        return tuple(kind for kind in KINDS if self.forests or kind in wanted)

    @property
    def _outputs(self) -> int:
        return self.members[0].experiment.task.outputs

    def _pieces(self, molecules: Any, processes: int | None, extra: ArrayLike | None = None) -> Iterator[Predictions]:
        """The predictions of molecules in memory, a piece at a time; fills :attr:`reasons`."""
        if getattr(molecules, "ndim", 1) != 1:
            raise UserError(f"give one column of SMILES, not a table of shape {tuple(molecules.shape)}")
        everything = [molecules] if isinstance(molecules, str) or is_graph(molecules) else list(molecules)
        numbers = self.checked_extra(extra, len(everything))
        coming = iter(pieces_of(numbers))
        self.reasons = {}
        begin = 0
        are_graphs = bool(everything) and is_graph(everything[0])
        found = (
            self.predict_graphs(everything)
            if are_graphs
            else self.predict_pieces(pieces_of(everything), as_texts, processes, lambda _: np.stack(next(coming)))
        )
        for piece, part in found:
            self.reasons |= {begin + row: reason for row, reason in part.reasons.items()}
            begin += len(piece)
            yield part

    def _predict(self, molecules: MoleculeGraphs) -> Predictions:
        encoded = GraphsWithEncodings(molecules.graphs, molecules.descriptors, molecules.extra)
        first, *others = self.members
        values, vectors = first.apply(encoded)
        each = [values, *(member.values(encoded) for member in others)]
        weights = [*self.weights[: len(each)]]
        for forest, weight in zip(self.forests, self.weights[len(each) :], strict=True):
            each += [*forest.predict_kinds(molecules.descriptors, molecules.extra)]
            weights += [*(weight * forest.shares)]
        return combined(
            np.stack(each),
            np.array(weights),
            len(self.members),
            molecules,
            self.level,
            vectors,
            self.calibrated,
            self.intervals,
        )

    def calibrated(self, mean: Floats) -> Floats:
        """Probabilities as frequencies, where it is known how."""
        return mean if self.calibration is None else self.calibration.apply(mean, self.task)


def _stacked(parts: list[Floats], width: int) -> Floats:
    return np.concatenate([np.empty((0, width)), *parts])


def _without_single_axis(values: Floats) -> Floats:
    return values[:, 0] if values.shape[1] == 1 else values
