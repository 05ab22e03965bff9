"""What is trained on what and how, as one value: task, features, network, protocol, data.

>>> experiment = override(read_experiment("zinc/gatedgcn-lspe"), ["model.layers=4"])
>>> data = load_data(experiment)

A *preset* is a named experiment; the YAML files below ``presets/`` are the rows of the paper's tables, and the
defaults for one's own data.

The names are loaded on first use: the command line needs the words and not PyTorch.
"""

from typing import TYPE_CHECKING

from lspe._lazy import names_on_use

if TYPE_CHECKING:
    from lspe.experiment.catalogue import build_network, count_parameters, describe_preset, list_presets, load_preset
    from lspe.experiment.data import fit_to_data, load_data
    from lspe.experiment.overriding import override, with_epochs, with_protocol, with_table
    from lspe.experiment.preset import PaperRow, Preset
    from lspe.experiment.reading import read_experiment
    from lspe.experiment.table_source import TableSource
    from lspe.experiment.task import Task
    from lspe.experiment.value import CONFIG, OWN, Experiment

_HOME = {
    "CONFIG": ".value",
    "OWN": ".value",
    "Experiment": ".value",
    "PaperRow": ".preset",
    "Preset": ".preset",
    "TableSource": ".table_source",
    "Task": ".task",
    "build_network": ".catalogue",
    "count_parameters": ".catalogue",
    "describe_preset": ".catalogue",
    "fit_to_data": ".data",
    "list_presets": ".catalogue",
    "load_data": ".data",
    "load_preset": ".catalogue",
    "override": ".overriding",
    "read_experiment": ".reading",
    "with_epochs": ".overriding",
    "with_protocol": ".overriding",
    "with_table": ".overriding",
}

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
    "describe_preset",
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

__getattr__, __dir__ = names_on_use(__name__, _HOME)
