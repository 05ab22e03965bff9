"""An experiment: a preset together with all that one training adds to it, complete enough to be repeated."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Any, Literal, Self

import numpy as np
import yaml
from pydantic import Field, TypeAdapter, model_validator

from lspe.config import ConfigError, Strict, read_yaml, read_yaml_file, unknown_name, validate
from lspe.data import BatchLoader, Features, GraphData, PackedGraphs, load, read_table
from lspe.data.locations import Root
from lspe.nn.config import Features as FeatureConfig
from lspe.presets import Preset, Task, load_preset
from lspe.presets.schema import TaskKind
from lspe.training.protocol import PAPER_SEEDS, FastProtocol, PaperProtocol, Seed
from lspe.training.tasks import SCORES

CONFIG = "config.yaml"
OWN = "own"
"""The data set of presets for one's own data."""


class TableSource(Strict):
    """A person's own table: where it is, what its columns mean, and how it is divided.

    What is not given is found out; see :func:`lspe.data.read_table` and :meth:`lspe.data.Table.to_graphs`.
    """

    path: str
    smiles: str | None = None
    targets: tuple[str, ...] | None = None
    task: TaskKind | None = None
    weight: str | None = None
    split: Literal["random", "scaffold", "column"] = "random"
    split_column: str | None = None
    split_seed: Seed = 0
    folds: Annotated[int, Field(ge=3)] | None = None
    fragments: Literal["keep", "largest", "error"] = "keep"
    on_invalid: Literal["error", "skip", "nan"] = "error"

    def load(self, processes: int | None = None) -> GraphData:
        """Read the table and turn its molecules into graphs, or take them from the cache."""
        table = read_table(
            self.path,
            smiles=self.smiles,
            targets=self.targets,
            task=self.task,
            weight=self.weight,
            split_column=self.split_column,
            on_invalid=self.on_invalid,
        )
        return table.to_graphs(
            fragments=self.fragments,
            split=self.split,
            folds=self.folds,
            seed=self.split_seed,
            processes=processes,
        )


class Experiment(Preset):
    """A preset with the seed of its weights and order, the fold, and the table of one's own data.

    With ``seeds``, or where the data come in folds and no ``fold`` is chosen, it is several trainings, one a seed
    and fold.
    """

    table: TableSource | None = None
    seed: Seed = PAPER_SEEDS[0]
    fold: Annotated[int, Field(ge=0)] | None = None
    seeds: tuple[Seed, ...] = ()

    @model_validator(mode="after")
    def _one_output_per_graph(self) -> Self:
        if self.model.readout == "none":
            raise ValueError(
                "model.readout='none' gives an output per node, but targets are those of graphs: use 'mean'"
            )
        return self

    def to_yaml(self) -> str:
        """The whole experiment; :func:`read_experiment` reads it."""
        return yaml.safe_dump(self.model_dump(mode="json"), sort_keys=False, allow_unicode=True)


def read_experiment(source: str) -> Experiment:
    """The experiment of a preset's name, of a YAML file, or of a run folder's config.yaml."""
    path = Path(source)
    if os.path.isfile(path / CONFIG):
        path = path / CONFIG
    elif os.path.isdir(path):
        raise ConfigError(f"{path} is a folder without {CONFIG}: name a run folder, a preset or a YAML file")
    if path.suffix not in (".yaml", ".yml"):
        return Experiment(**load_preset(source).model_dump())
    if not os.path.isfile(path):
        raise ConfigError(f"{path}: there is no such file")
    return validate(Experiment, {"name": path.stem, **read_yaml_file(path)}, str(path))


def override(experiment: Experiment, assignments: Iterable[str]) -> Experiment:
    """Change values by their place: ``model.layers=4``, ``training.protocol.lr=3e-4``, ``training.batch_size=32``."""
    values = experiment.model_dump()
    for assignment in assignments:
        place, equals, text = assignment.partition("=")
        if not equals:
            raise ConfigError(f"--set {assignment}: write place=value, for instance --set model.layers=4")
        *path, key = place.strip().split(".")
        group: Any = values
        for number, part in enumerate(path):
            if not isinstance(group, dict) or part not in group:
                raise ConfigError(f"--set {assignment}: {_unknown_place(part, group, path[:number])}")
            group = group[part]
        if not isinstance(group, dict):
            raise ConfigError(f"--set {assignment}: {'.'.join(path)} is a value and has nothing below it")
        group[key] = _value(text, f"--set {assignment}")
    return validate(Experiment, values, "--set")


def _value(text: str, source: str) -> Any:
    """A YAML value; numbers such as 3e-4, which YAML 1.1 takes for text, are numbers."""
    value = read_yaml(text, source)
    if isinstance(value, str):
        try:
            return float(value)
        except ValueError:
            return value
    return value


def _unknown_place(part: str, group: Any, path: list[str]) -> str:
    where = f" in {'.'.join(path)}" if path else ""
    if not isinstance(group, dict):
        return f"{'.'.join(path)} is a value and has nothing below it"
    return unknown_name("key", part, group) + where


def with_protocol(experiment: Experiment, kind: Literal["paper", "fast"]) -> Experiment:
    """The same experiment under the other protocol; learning rate, time limit and reported weights stay."""
    old = experiment.training.protocol
    if old.kind == kind:
        return experiment
    protocol = FastProtocol if kind == "fast" else PaperProtocol
    new = protocol(lr=old.lr, max_hours=old.max_hours, report=old.report)
    return experiment.model_copy(update={"training": experiment.training.model_copy(update={"protocol": new})})


def with_epochs(experiment: Experiment, epochs: int) -> Experiment:
    """The same experiment with at most so many epochs."""
    return override(experiment, [f"training.protocol.max_epochs={epochs}"])


def with_table(experiment: Experiment, table: TableSource | None) -> Experiment:
    """The network and protocol of an experiment for one's own table; what the data decide is filled in later.

    Without a table they are for graphs that are in memory already.
    """
    values = experiment.model_dump()
    values |= {"dataset": OWN, "table": None if table is None else table.model_dump(), "paper": None}
    if values["features"]["kind"] != "ogb":
        values["features"] = {"kind": "ogb"}
    if values["model"]["name"] == "pna":
        values["model"]["delta"] = None
    values["training"]["standardize"] = True
    return validate(Experiment, values, experiment.name)


def load_data(experiment: Experiment, root: Root = None, *, processes: int | None = None) -> GraphData:
    """The data of an experiment, with the encoding its network takes; folds are not chosen yet."""
    if experiment.table is not None:
        data = experiment.table.load(processes)
    elif experiment.dataset == OWN:
        raise ConfigError(f"{experiment.name} is for one's own data: name the table with --data table.csv")
    else:
        data = load(experiment.dataset, root)
    model = experiment.model
    return data if model.encoding == "none" else data.with_encoding(model.encoding, model.k)


def fit_to_data(experiment: Experiment, data: GraphData) -> Experiment:
    """Fill in what the data decide: the task of one's own data, feature tables that were made from them, PNA's δ."""
    experiment = _with(experiment, "features", _features(experiment, data.features))
    if experiment.dataset == OWN:
        scores = SCORES[data.task]
        metric = experiment.task.metric if experiment.task.metric in scores else scores[0]
        experiment = _with(experiment, "task", Task(kind=data.task, outputs=data.num_outputs, metric=metric))
    if data.task != experiment.task.kind or data.num_outputs != experiment.task.outputs:
        raise ConfigError(
            f"{experiment.name} is for a {experiment.task.kind} task with {experiment.task.outputs} outputs, but "
            f"{data.name} is a {data.task} task with {data.num_outputs}: set task.kind and task.outputs to these"
        )
    if experiment.task.metric not in SCORES[data.task]:
        raise ConfigError(
            f"{experiment.name}: a {data.task} task has no task.metric {experiment.task.metric!r}: "
            f"choose among {', '.join(SCORES[data.task])}"
        )
    model = experiment.model
    if model.name == "pna" and model.needs_delta:
        delta = mean_log_degree(data.split("train"))
        experiment = _with(experiment, "model", model.model_copy(update={"delta": delta}))
    return experiment


def mean_log_degree(graphs: PackedGraphs) -> float:
    """PNA's δ: the mean of log(in-degree + 1) over all nodes of ``graphs``."""
    total, nodes = 0.0, 0
    for batch in BatchLoader(graphs, 4096):
        degree = np.bincount(batch.edge_index[1].numpy(), minlength=int(batch.num_nodes))
        total += float(np.log(degree + 1.0).sum())
        nodes += len(degree)
    return total / max(nodes, 1)


def _features(experiment: Experiment, given: Features) -> Any:
    """The feature tables the network needs for these data; a difference to the preset is an error."""
    wanted, found = experiment.features, feature_config(given)
    if wanted.kind == found.kind and (given.unknown or given.kind == "ogb"):
        return wanted if given.kind == "ogb" else found
    if wanted != found:
        raise ConfigError(
            f"{experiment.name} takes features {wanted.model_dump()}, but the data {experiment.dataset} have "
            f"{found.model_dump()}: set features to these"
        )
    return wanted


def feature_config(given: Features) -> Any:
    """What stands on nodes and edges, as the network's configuration says it."""
    values: dict[str, Any] = {"kind": given.kind}
    if given.kind == "categorical":
        values |= {"node_types": given.atom_types, "edge_types": given.bond_types}
    elif given.kind == "continuous":
        values |= {"node_features": given.node_dim, "edge_features": given.edge_dim}
    return TypeAdapter(FeatureConfig).validate_python(values)


def _with(experiment: Experiment, field: str, value: Any) -> Experiment:
    return experiment.model_copy(update={field: value})
