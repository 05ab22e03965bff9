"""Change an experiment: single values by their place, or the protocol, the epochs, the data as a whole."""

from collections.abc import Iterable
from typing import Any, get_args

from lspe.config import ConfigError, read_yaml, unknown_name, validate
from lspe.experiment.graph_source import GraphSource
from lspe.experiment.network import NETWORKS
from lspe.experiment.protocol import FastProtocol, PaperProtocol, ProtocolKind
from lspe.experiment.table_source import TableSource
from lspe.experiment.value import OWN, Experiment


def override(experiment: Experiment, assignments: Iterable[str]) -> Experiment:
    """Change values by their place: ``model.layers=4``, ``training.protocol.lr=3e-4``, ``training.batch_size=32``.

    With another ``model.name`` the network keeps of the old one's values those that it has too.
    """
    values = experiment.model_dump()
    changed: set[str] = set()
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
        changed.add(place.strip())
    model = values["model"]
    if "model.name" in changed and isinstance(model, dict):
        values["model"] = {
            key: value for key, value in model.items() if f"model.{key}" in changed or _has(model["name"], key)
        }
    return validate(Experiment, values, "--set")


def _has(name: Any, key: str) -> bool:
    """Whether the network of that name has such a value; of one that does not exist, any."""
    return all(key in one.model_fields for one in NETWORKS if get_args(one.model_fields["name"].annotation) == (name,))


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


def with_protocol(experiment: Experiment, kind: ProtocolKind) -> Experiment:
    """The same experiment under the other protocol; learning rate, time limit and reported weights stay."""
    old = experiment.training.protocol
    if old.kind == kind:
        return experiment
    protocol = FastProtocol if kind == "fast" else PaperProtocol
    new = protocol(lr=old.lr, max_hours=old.max_hours, report=old.report)
    return experiment.model_copy(update={"training": experiment.training.model_copy(update={"protocol": new})})


def with_epochs(experiment: Experiment, epochs: int) -> Experiment:
    """The same experiment with so many epochs, however large the data are."""
    return override(experiment, [f"training.protocol.max_epochs={epochs}", "training.protocol.max_steps=null"])


def with_own_data(experiment: Experiment, source: TableSource | GraphSource | None) -> Experiment:
    """The network and protocol of an experiment for one's own data; what the data decide is filled in later.

    Without a source they are for graphs that are in memory already.
    """
    values = experiment.model_dump()
    values |= {"dataset": OWN, "table": None, "graphs": None, "paper": None}
    if source is not None:
        values["table" if isinstance(source, TableSource) else "graphs"] = source.model_dump()
    if values["features"]["kind"] != "ogb":
        values["features"] = {"kind": "ogb"}
    if values["model"]["name"] == "pna":
        values["model"]["delta"] = None
    values["training"]["standardize"] = True
    if not isinstance(source, TableSource):  # graphs have no SMILES to describe
        values["model"]["descriptors"] = "none"
        values["training"]["forest"] = False
    return validate(Experiment, values, experiment.name)
