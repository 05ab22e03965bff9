"""The run folder: what a training leaves behind, and all that is needed to predict with it later.

::

    config.yaml      the whole experiment; ``lspe train config.yaml`` repeats it
    interface.json   what goes in and comes out: features and their vocabulary, names and scaling of the targets,
                     what was done with fragments, versions
    metrics.csv      one row an epoch
    curves.png       the same as a picture (written by ``lspe train``; :func:`lspe.plots.draw` draws it for anyone)
    last.ckpt        after the last epoch; training goes on from here
    best.ckpt        after the epoch of the best validation score
    summary.json     scores of both on every split, epochs, times, parameters, versions, hardware
    forest.lspe      trees that predict beside the network, and
    blend.json       how much each counts (of tables of molecules; see :mod:`lspe.blending`)
    report.html      scores, pictures and the worst predictions of a table at a glance
    known.lspe       the molecules of a table that were learned from, to say how near others are to them

Of several networks that predict as one, each has a folder of its own below, network0, network1, ….
"""

from __future__ import annotations

import csv
import io
import json
import os
from collections.abc import Mapping
from copy import deepcopy
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from lspe.data import GraphData, PackedGraphs
from lspe.errors import UserError
from lspe.experiment import Task, build_network
from lspe.experiment.reading import read_experiment
from lspe.experiment.value import CONFIG, Experiment
from lspe.features import Features, read_features
from lspe.nn import Network
from lspe.training import checkpoint
from lspe.training.environment import versions
from lspe.training.evaluation import Evaluation, evaluate, evaluation_batch_size
from lspe.training.objective import Objective, TargetScaling
from lspe.training.words import Which

FORMAT = 1
INTERFACE = "interface.json"
HISTORY = "metrics.csv"
SUMMARY = "summary.json"
_PUT_BACK = "Put back a copy of the file, or train again"
_IN_A_SUMMARY = {
    "metric": str,
    "task": str,
    "report": str,
    "reported": dict,
    "last": dict,
    "best": dict,
    "constant": dict,
}
REPEATS = f"# lspe train {CONFIG} repeats"
"""How the config.yaml begins that a training writes."""


class RunError(UserError):
    """A run folder that cannot be used."""


@dataclass(frozen=True, kw_only=True)
class Interface:
    """What a trained network takes and gives."""

    features: Features
    task_names: tuple[str, ...]
    class_names: tuple[str, ...]
    scaling: TargetScaling | None
    class_weights: tuple[float, ...] | None = None
    fragments: str = "keep"
    extra_names: tuple[str, ...] = ()

    @classmethod
    def of(cls, data: GraphData, objective: Objective, fragments: str = "keep") -> Interface:
        """Of a network trained on ``data``."""
        return cls(
            features=data.features,
            task_names=data.task_names,
            class_names=data.class_names,
            scaling=objective.scaling,
            class_weights=objective.class_weights,
            fragments=fragments,
            extra_names=data.extra_names,
        )

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        return {
            "format": FORMAT,
            "features": self.features.model_dump(mode="json"),
            "task_names": list(self.task_names),
            "class_names": list(self.class_names),
            "scaling": None if self.scaling is None else self.scaling.to_dict(),
            "class_weights": None if self.class_weights is None else list(self.class_weights),
            "fragments": self.fragments,
            "extra_names": list(self.extra_names),
            "versions": versions(),
        }

    def objective(self, task: Task) -> Objective:
        """Loss, scores, and the meaning of the network's output."""
        return Objective(task, self.scaling, self.class_weights)

    def fits(self, task: Task) -> bool:
        """Whether names and scaling are those of such a task."""
        names = self.class_names if task.kind == "multiclass" else self.task_names
        scaled = task.outputs if self.scaling is None else len(self.scaling.mean)
        return (
            len(names) == scaled == task.outputs
            and bool(self.class_names) == (task.kind == "multiclass")
            and (self.scaling is None or task.kind == "regression")
            and (self.class_weights is None or len(self.class_weights) == task.outputs)
        )

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Interface:
        """The inverse of :meth:`to_dict`; versions are for people to read."""
        weights = values.get("class_weights")  # which version 0.1 did not have
        return cls(
            features=read_features(values["features"]),
            task_names=tuple(values["task_names"]),
            class_names=tuple(values["class_names"]),
            scaling=None if values["scaling"] is None else TargetScaling.from_dict(values["scaling"]),
            class_weights=None if weights is None else tuple(weights),
            fragments=values["fragments"],
            extra_names=tuple(values.get("extra_names", ())),
        )


@dataclass(frozen=True)
class Run:
    """A run folder.

    >>> run = Run.open("runs/zinc-gatedgcn-lspe-seed41")
    >>> run.summary["reported"]["test"]["mae"]
    >>> network = run.network()
    """

    path: Path
    given: Network | None = field(default=None, compare=False, repr=False)

    @classmethod
    def open(cls, path: str | os.PathLike[str], network: Network | None = None) -> Run:
        """The run in folder ``path``; one whose network was given as an object takes one like it."""
        run = cls(Path(path), network)
        if not os.path.isdir(run.path):
            hint = (
                ": it is a file; lspe predict, lspe explore and lspe.load open models"
                if os.path.isfile(run.path)
                else ""
            )
            raise RunError(f"{path}: there is no such run folder{hint}")
        if not os.path.isfile(run.path / CONFIG):
            parts = sorted(one.parent for one in run.path.glob(f"*/{CONFIG}"))
            hint = f"; it holds runs: {', '.join(map(str, parts))}" if parts else ""
            raise RunError(f"{path} is not a run folder: it has no {CONFIG}{hint}")
        return run

    @cached_property
    def config(self) -> Experiment:
        """The whole experiment."""
        return read_experiment(str(self.path / CONFIG))

    @cached_property
    def interface(self) -> Interface:
        """What goes in and comes out."""
        values = self._json(INTERFACE)
        if values.get("format") != FORMAT:
            raise RunError(
                f"{self.path}: the run has format {values.get('format')}; this lspe reads format {FORMAT}: "
                "use the version that wrote it"
            )
        path = self.path / INTERFACE
        try:
            interface = Interface.from_dict(values)
        except (LookupError, TypeError, ValueError, AttributeError) as error:
            raise RunError(f"{path} is damaged: {type(error).__name__} {error}. {_PUT_BACK}") from None
        if not interface.fits(self.config.task):
            raise RunError(f"{path} does not belong to the {CONFIG} beside it, which has another task. {_PUT_BACK}")
        return interface

    @property
    def objective(self) -> Objective:
        """Loss, scores, and the meaning of the network's output."""
        return self.interface.objective(self.config.task)

    @property
    def is_finished(self) -> bool:
        """Whether training came to its end."""
        return (self.path / SUMMARY).is_file()

    @property
    def summary(self) -> dict[str, Any]:
        """The scores and what they were got with."""
        if not self.is_finished:
            raise RunError(f"{self.path}: training has not finished; go on with: lspe train {self.path} --resume")
        values = self._json(SUMMARY)
        if not all(isinstance(values.get(key), kind) for key, kind in _IN_A_SUMMARY.items()):
            raise RunError(
                f"{self.path / SUMMARY} is damaged. Delete it; lspe train {self.path} --resume makes it again"
            )
        return values

    @property
    def history(self) -> list[dict[str, float | None]]:
        """metrics.csv: one row per epoch; a score that is not defined is ``None``."""
        path = self.path / HISTORY
        try:
            text = path.read_text(encoding="utf-8")
            rows = [
                {name: float(value) if value else None for name, value in row.items()}
                for row in csv.DictReader(io.StringIO(text))
            ]
        except FileNotFoundError:
            return []
        except (OSError, ValueError, TypeError, csv.Error) as error:
            raise RunError(f"{path} is damaged: {error}. {_PUT_BACK}") from None
        metric = self.config.task.metric
        if rows and not rows[0].keys() >= {"epoch", "lr", "train_loss", "val_loss", f"train_{metric}", f"val_{metric}"}:
            raise RunError(f"{path} is damaged or another run's: it has no column train_{metric}. {_PUT_BACK}")
        return rows

    def checkpoint(self, which: Which = "reported") -> dict[str, Any]:
        """Everything in ``last.ckpt`` or ``best.ckpt``; ``reported`` is the one the protocol names."""
        return checkpoint.load(self._checkpoint_path(which))

    def _checkpoint_path(self, which: Which) -> Path:
        name = self.config.training.protocol.report if which == "reported" else which
        return self.path / f"{name}.ckpt"

    def network(self, which: Which = "reported") -> Network:
        """The trained network, in evaluation mode, with the weights that count (averaged ones where there are)."""
        state = self.checkpoint(which)
        network = build_network(self.config) if self.given is None else deepcopy(self.given)
        with checkpoint.in_use(self._checkpoint_path(which)):
            weights = state["network"] if state["average"] is None else state["average"]["network"]
            network.load_state_dict(weights)
        return network.eval()

    def evaluate(self, graphs: PackedGraphs, which: Which = "reported") -> Evaluation:
        """Loss and scores on graphs with the features and encoding that the run was trained with."""
        training = self.config.training
        return evaluate(
            self.network(which),
            graphs,
            self.objective,
            training.positional_loss,
            batch_size=evaluation_batch_size(training),
        )

    def _json(self, name: str) -> dict[str, Any]:
        path = self.path / name
        try:
            values = json.loads(path.read_text(encoding="utf-8"))
        except FileNotFoundError:
            raise RunError(f"{path} is missing: the run folder is not complete") from None
        except (OSError, ValueError, RecursionError) as error:
            raise RunError(f"{path} is damaged: {error}. {_PUT_BACK}") from None
        if not isinstance(values, dict):
            raise RunError(f"{path} is damaged: expected an object. {_PUT_BACK}")
        return values


def check_free(folder: Path) -> None:
    """Refuse a new run in a folder that holds one, or a config.yaml of somebody's own.

    A training that ended before its first checkpoint has left nothing that could not be made again.
    """
    config = folder / CONFIG
    if not os.path.exists(config):
        return
    if any(folder.glob("*.ckpt")) or any(folder.glob("*/*.ckpt")) or (folder / SUMMARY).exists():
        raise RunError(
            f"{folder} already holds a run. Go on with it: lspe train {folder} --resume; or choose another --out"
        )
    with config.open("rb") as file:
        if not file.readline().startswith(REPEATS.encode()):
            raise RunError(f"{folder} has a {CONFIG} that no training wrote; choose another --out to leave it as it is")


def go_on_with(folder: Path) -> str:
    """What to do when a file of a run could not be written and the reason is mended."""
    return f"go on with: lspe train {folder} --resume"


def open_runs(path: str | Path, network: Network | None = None) -> list[Run]:
    """The single runs of a folder, whether it is one run or holds several; see :meth:`Run.open`."""
    run = Run.open(path, network)
    below = sorted(one.parent for one in run.path.glob(f"*/{CONFIG}"))
    return [Run.open(one, network) for one in below] if below else [run]
