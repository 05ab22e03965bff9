"""A set of graphs with everything that learning from it needs: targets, their meaning, splits, features."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any

import numpy as np

from lspe.data.errors import CorruptFileError, DataError
from lspe.data.packed.cache import build_once
from lspe.data.packed.container import Array, open_arrays
from lspe.data.packed.links import LinkGraphs
from lspe.data.packed.sets import PackedGraphs
from lspe.data.packed.writer import PackedWriter
from lspe.data.report import Report
from lspe.data.splits import Splits, rotate_validation
from lspe.data.words import DescriptorKind, Divided, Level, OptionalDescriptorKind, TaskKind
from lspe.features import Features, read_features


@dataclass(frozen=True, kw_only=True)
class Description:
    """What a set is, apart from its graphs.

    - `level`: what a target belongs to: a row of ``y`` per ``graph``, per ``node``, per ``edge`` or per ``link``, a
      pair of nodes that is joined or not.
    - `task` ``regression``: ``y`` [R, T] float; ``binary``: ``y`` [R, T] float 0 or 1, NaN where there is
      no label; ``multiclass``: ``y`` [R] long below `num_outputs`, -1 where there is no label.
    - `divided`: what the splits number: ``graphs``, or ``targets``, rows of ``y``, where the graphs are seen as a
      whole in every part (one graph, for instance, some of whose nodes teach and others test). Of links, every part
      sees only the edges that teach.
    - `task_names`: one per column of ``y``; `class_names`: one per class of a multi-class target.
    - `report`: what was found in the table the graphs come from, where they come from one.
    """

    name: str
    task: TaskKind
    num_outputs: int
    task_names: tuple[str, ...]
    features: Features
    source: str
    class_names: tuple[str, ...] = ()
    report: Report | None = None
    level: Level = "graph"
    divided: Divided = "graphs"

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        return {
            "name": self.name,
            "task": self.task,
            "num_outputs": self.num_outputs,
            "task_names": list(self.task_names),
            "features": self.features.model_dump(mode="json"),
            "source": self.source,
            "class_names": list(self.class_names),
            "report": self.report and self.report.to_dict(),
            "level": self.level,
            "divided": self.divided,
        }

    @staticmethod
    def from_dict(values: Mapping[str, Any]) -> Description:
        """The inverse of :meth:`to_dict`."""
        return Description(
            **{
                **values,
                "task_names": tuple(values["task_names"]),
                "class_names": tuple(values["class_names"]),
                "features": read_features(values["features"]),
                "report": values["report"] and Report.from_dict(values["report"]),
            }
        )


@dataclass(frozen=True, kw_only=True)
class GraphData(Description):
    """Graphs, what is to be learned from them, and how they are divided.

    Either `splits` holds the indices of ``train``, ``val`` and ``test``, or `folds` holds one such division
    a fold and :meth:`fold` chooses one. `descriptors` are numbers of each graph as a whole by kind, [G, width], where
    the graphs are molecules. `groups` [G] numbers what must not be in two parts: scaffolds, or molecules that occur
    more than once. `smiles` [G], `smiles_column` and `molecule_names` [G] are those of the table the
    graphs come from, and `division` says how they were divided. `extra` [G, E] are further numbers that are known of
    each graph.
    """

    graphs: PackedGraphs
    splits: Splits = field(default_factory=dict)
    folds: list[Splits] = field(default_factory=list)
    descriptors: Mapping[DescriptorKind, Array] = field(default_factory=dict)
    groups: Array | None = None
    smiles: Sequence[str] | None = None
    smiles_column: str | None = None
    molecule_names: Sequence[str] | None = None
    extra_names: tuple[str, ...] = ()
    extra: Array | None = None
    division: str = ""

    def split(self, name: str) -> PackedGraphs:
        """The graphs of one split; where targets are divided, all graphs, with the targets of this split known."""
        if name not in self.splits:
            if self.folds:
                raise DataError(
                    f"{self.name} has {len(self.folds)} folds; choose one first: data.fold(0).split({name!r})"
                )
            raise DataError(f"{self.name} has no split {name!r}; it has {', '.join(self.splits) or 'none'}")
        if self.divided == "targets":
            return self.graphs.with_known_targets(self.splits[name])
        return self.graphs.select(self.splits[name])

    def fold(self, number: int) -> GraphData:
        """The same data divided as fold `number` says."""
        if not 0 <= number < len(self.folds):
            raise DataError(f"{self.name} has {len(self.folds)} folds, numbered from 0; there is no fold {number}")
        return replace(self, splits=self.folds[number])

    def member(self, number: int, parts: int) -> GraphData:
        """The same data as one member of an ensemble sees it: part `number` of all that is not tested validates."""
        if self.level != "graph":
            raise DataError(
                f"{self.name} has targets of {self.level}s; several members share out graphs with targets of their "
                "own: leave members out, or train with several seeds"
            )
        divisions = rotate_validation(self.splits, parts, labels=self.strata, groups=self.groups)
        if not 0 <= number < parts:
            raise DataError(f"{self.name} is divided among {parts} members, numbered from 0; there is no {number}")
        return replace(self, splits=divisions[number])

    @property
    def strata(self) -> Array | None:
        """What to stratify by: the classes, where there is one target and none of them is too rare for it."""
        y = self.graphs.graph["y"]
        if self.task == "regression" or (self.task == "binary" and y.shape[1] > 1):
            return None
        labels = y.reshape(-1).astype(np.int64)
        return labels if np.unique(labels, return_counts=True)[1].min() > 1 else None

    def with_encoding(self, kind: str, k: int) -> GraphData:
        """The same data with an encoding (:meth:`PackedGraphs.with_encoding`)."""
        return self.with_encodings([(kind, k)])

    def with_encodings(self, encodings: Iterable[tuple[str, int]]) -> GraphData:
        """The same data with several encodings, each a kind and its number of columns."""
        return replace(self, graphs=self.graphs.with_encodings(encodings))

    def with_descriptors(self, kind: OptionalDescriptorKind) -> GraphData:
        """The same data with these descriptors, and the extra numbers, as a column of the graphs, for networks."""
        others = {name: column for name, column in self.graphs.graph.items() if name != "descriptors"}
        if kind == "none" and not self.extra_names:
            return self if len(others) == len(self.graphs.graph) else self._with_columns(others)
        parts = [] if self.extra is None else [self.extra]
        if kind != "none" and kind not in self.descriptors:
            raise DataError(
                f"{self.name} has no {kind} descriptors: these are of molecules that come as SMILES in a table. "
                "Leave them out: model.descriptors=none (--descriptors none)"
            )
        if kind != "none":
            parts.append(self.descriptors[kind])
        mapped = len(parts) == 1 and parts[0].dtype == np.float32  # stays on disk
        joined = parts[0] if mapped else np.concatenate(parts, axis=1, dtype=np.float32)
        return self._with_columns({**others, "descriptors": joined})

    def _with_columns(self, columns: dict[str, Array]) -> GraphData:
        """The same data with these columns of graphs, which no file holds."""
        return replace(self, graphs=replace(self.graphs, graph=columns, path=None))

    def save(self, path: Path) -> GraphData:
        """Write everything to ``path``, and give it back as mapped from there."""
        about = Description(**{one.name: getattr(self, one.name) for one in fields(Description)})
        GraphData.write(path, about, [self.graphs], splits=self.splits, folds=self.folds)
        return GraphData.open(path, verify=False)

    @classmethod
    def open(cls, path: Path, *, verify: bool = True) -> GraphData:
        """Map what :meth:`write` wrote."""
        file = open_arrays(path, verify=verify)
        try:
            about = Description.from_dict(file.meta)
        except (KeyError, TypeError, ValueError):
            raise CorruptFileError(
                f"{path} does not describe its graphs as this lspe does. Delete it and prepare it again."
            ) from None
        splits: Splits = {}
        folds: dict[int, Splits] = {}
        for name, indices in file.arrays.items():
            match name.split("/"):
                case ["split", part]:
                    splits[part] = indices
                case ["fold", number, part]:
                    folds.setdefault(int(number), {})[part] = indices
        return cls(
            **vars(about),
            graphs=(LinkGraphs if about.level == "link" else PackedGraphs).from_file(file),
            splits=splits,
            folds=[folds[number] for number in sorted(folds)],
        )

    @staticmethod
    def write(
        path: Path,
        about: Description,
        parts: Iterable[PackedGraphs],
        *,
        splits: Splits | None = None,
        folds: Iterable[Splits] = (),
        index_dtype: type[np.unsignedinteger[Any]] = np.uint32,
    ) -> None:
        """Write graphs, given in parts so that they need not be in memory together, with all that belongs
        to them.
        """
        with PackedWriter(path, index_dtype=index_dtype) as writer:
            for part in parts:
                writer.append(part)
            divided = {f"split/{name}": indices for name, indices in (splits or {}).items()}
            for number, fold in enumerate(folds):
                divided |= {f"fold/{number}/{name}": indices for name, indices in fold.items()}
            writer.finish(about.to_dict(), {name: np.asarray(one, dtype=np.int64) for name, one in divided.items()})

    @staticmethod
    def open_or_build(path: Path, build: Callable[[Path], None]) -> GraphData:
        """Open `path`; `build` writes it first where it is missing or damaged."""
        return build_once(path, lambda: build(path), lambda: GraphData.open(path))
