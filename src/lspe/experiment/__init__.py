"""What is trained on what and how, as one value: task, features, network, protocol, data.

>>> experiment = override(read_experiment("zinc/gatedgcn-lspe"), ["model.layers=4"])
>>> data = load_data(experiment)

A *preset* is a named experiment; the YAML files below ``presets/`` are the rows of the paper's tables, and the
defaults for one's own data.
"""

from lspe.experiment.catalogue import build_network, count_parameters, describe, list_presets, load_preset
from lspe.experiment.data import fit_to_data, load_data
from lspe.experiment.overriding import override, with_epochs, with_protocol, with_table
from lspe.experiment.preset import PaperRow, Preset
from lspe.experiment.reading import read_experiment
from lspe.experiment.table_source import TableSource
from lspe.experiment.task import Task
from lspe.experiment.value import CONFIG, OWN, Experiment

__all__ = [
    "CONFIG",
    "OWN",
    "Experiment",
    "PaperRow",
    "Preset",
    "TableSource",
    "Task",
    "build_network",
    "count_parameters",
    "describe",
    "fit_to_data",
    "list_presets",
    "load_data",
    "load_preset",
    "override",
    "read_experiment",
    "with_epochs",
    "with_protocol",
    "with_table",
]
