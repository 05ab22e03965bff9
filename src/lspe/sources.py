"""What is to be trained: from what somebody names, a table, graphs, a preset, to an experiment."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias

from torch_geometric.data import Data

from lspe.config import validate
from lspe.data import GraphData, from_pyg
from lspe.data.graphs.recognition import are_graphs, is_named
from lspe.data.words import Level
from lspe.errors import UserError
from lspe.experiment import (
    CONFIG,
    Experiment,
    GraphSource,
    TableSource,
    list_presets,
    read_experiment,
)
from lspe.experiment.graph_source import PACKED
from lspe.experiment.overriding import override, with_epochs, with_own_data, with_protocol
from lspe.experiment.protocol import ProtocolKind
from lspe.own_parts import path_of

DEFAULT = "nci/gatedgcn-lspe"
DEFAULT_FOR_TABLES = "own/molecules"
DEFAULT_FOR_LARGE_TABLES = "own/many-molecules"
DEFAULT_FOR_GRAPHS = "own/gatedgcn-lspe"
DEFAULT_FOR_NODES = "own/nodes-gatedgcn-lspe"
DEFAULT_FOR_NODES_OF_ONE_GRAPH = "own/one-graph-gatedgcn-lspe"
DEFAULT_FOR_LINKS = "own/links-gatedgcn-lspe"

LARGE_TABLE = 100_000
"""Molecules beyond which what is known of each by descriptors takes longer than it is worth."""

Source: TypeAlias = str | os.PathLike[str] | Experiment | GraphData | Data | Sequence[Data]


def experiment_for(
    data: Source, preset: str | None, table: Mapping[str, Any], level: Level | None = None
) -> tuple[Experiment, GraphData | None]:
    """What is to be trained, and the graphs where they are in memory; ``table`` says how one's own is read."""
    if isinstance(data, Experiment):
        return data, None
    if not isinstance(data, str | os.PathLike):
        graphs = data if isinstance(data, GraphData) else from_pyg(data, level=level, task=table["task"])
        return with_own_data(read_experiment(preset or default_for(graphs)), None), graphs
    name = os.fspath(data)
    if is_experiment(name):
        if preset is not None:
            raise UserError(f"{name} says itself what to train: leave the preset {preset!r} out")
        return read_experiment(name), None
    if name.endswith(PACKED) or are_graphs(name):
        graph_source = _graph_source(name, level, table)
        chosen = preset or default_for(graph_source.load())
        return with_own_data(read_experiment(chosen), graph_source), None
    source = validate(TableSource, {"path": str(Path(name).absolute()), **table}, name)
    return with_own_data(read_experiment(preset or _default_for_table(source)), source), None


def _default_for_table(source: TableSource) -> str:
    """By the number of its rows, for which a small file need not be read."""
    try:
        is_small = os.path.getsize(source.path) < LARGE_TABLE
    except OSError:  # reading it will say what is wrong
        is_small = True
    return DEFAULT_FOR_TABLES if is_small or len(source.read()) <= LARGE_TABLE else DEFAULT_FOR_LARGE_TABLES


def _graph_source(name: str, level: Level | None, table: Mapping[str, Any]) -> GraphSource:
    """Where graphs are; what can only be said of a table is refused."""
    of_tables = {"targets": "--target", "smiles": "--smiles-column", "weight": "--weight-column"}
    for option, shown in {**of_tables, "split_column": "--split-column"}.items():
        if table[option] is not None:
            raise UserError(f"{name} holds graphs, and {shown} is for a table of molecules: leave it out")
    if table["split"] in ("scaffold", "time"):
        raise UserError(f"{name} holds graphs, which are not divided by {table['split']}: leave --split out")
    path = name if is_named(name) else str(Path(name).absolute())
    values = {"path": path, "level": level, "task": table["task"], "folds": table["folds"]}
    return validate(GraphSource, values, name)


def default_for(data: GraphData) -> str:
    """The preset for one's own graphs if nobody names one."""
    if data.level == "graph":
        return DEFAULT_FOR_GRAPHS
    if data.level == "link":
        return DEFAULT_FOR_LINKS
    return DEFAULT_FOR_NODES if data.divided == "graphs" else DEFAULT_FOR_NODES_OF_ONE_GRAPH


def is_experiment(name: str) -> bool:
    """Whether a text names a preset, a YAML file or a run folder, and not own data; a misspelt preset, too."""
    may_be_preset = name in list_presets() or not (os.path.exists(name) or Path(name).suffix or is_named(name))
    return may_be_preset or name.endswith((".yaml", ".yml")) or os.path.isfile(os.path.join(name, CONFIG))


def adjusted(
    experiment: Experiment,
    *,
    protocol: ProtocolKind | None = None,
    epochs: int | None = None,
    seeds: int | Sequence[int] | None = None,
    fold: int | None = None,
    settings: Mapping[str, Any] | Iterable[str] = (),
) -> Experiment:
    """The experiment with some of its values changed."""
    if protocol is not None:
        experiment = with_protocol(experiment, protocol)
    if epochs is not None:
        experiment = with_epochs(experiment, epochs)
    if seeds is not None:
        several = (seeds,) if isinstance(seeds, int) else tuple(seeds)
        values = {"seed": several[0], "seeds": several if len(several) > 1 else ()}
        experiment = validate(Experiment, {**experiment.model_dump(), **values}, "--seed")
    if fold is not None:
        experiment = validate(Experiment, {**experiment.model_dump(), "fold": fold}, "--fold")
    if isinstance(settings, Mapping):
        settings = [f"{place}={json.dumps(value, default=path_of)}" for place, value in settings.items()]
    return override(experiment, settings)


def default_folder(experiment: Experiment, data: Source) -> Path:
    """Where a run goes if nobody says: a run folder goes on in itself, others below runs/ by name and seed."""
    if isinstance(data, str | os.PathLike) and os.path.isfile(os.path.join(data, CONFIG)):
        return Path(data)
    name = experiment.name
    if experiment.table is not None:
        name = Path(experiment.table.path).name.split(".")[0]
    elif experiment.graphs is not None:
        name = experiment.graphs.name
    seeds = experiment.seeds or (experiment.seed,)
    return Path("runs") / f"{name.replace('/', '-')}-seed{'-'.join(map(str, seeds))}"
