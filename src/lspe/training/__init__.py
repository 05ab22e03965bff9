"""From a preset and a data set to a run folder.

>>> experiment = read_experiment("nci/gatedgcn-lspe")
>>> run = train(experiment, load_data(experiment), Path("runs/nci"))
>>> run.summary["reported"]["test"]["mae"]

The names are loaded on first use: presets need the protocols and nothing of what trains with them.
"""

from typing import TYPE_CHECKING

from lspe._lazy import names_on_use

if TYPE_CHECKING:
    from lspe.training.evaluation import Evaluation, evaluate
    from lspe.training.experiment import (
        Experiment,
        TableSource,
        load_data,
        override,
        read_experiment,
        with_epochs,
        with_protocol,
        with_table,
    )
    from lspe.training.fitting import Interrupted, fit
    from lspe.training.run import Interface, Run, RunError
    from lspe.training.several import open_runs, train
    from lspe.training.tasks import Objective, TargetScaling

_HOME = {
    "Evaluation": ".evaluation",
    "Experiment": ".experiment",
    "Interface": ".run",
    "Interrupted": ".fitting",
    "Objective": ".tasks",
    "Run": ".run",
    "RunError": ".run",
    "TableSource": ".experiment",
    "TargetScaling": ".tasks",
    "evaluate": ".evaluation",
    "fit": ".fitting",
    "load_data": ".experiment",
    "open_runs": ".several",
    "override": ".experiment",
    "read_experiment": ".experiment",
    "train": ".several",
    "with_epochs": ".experiment",
    "with_protocol": ".experiment",
    "with_table": ".experiment",
}

__all__ = [
    "Evaluation",
    "Experiment",
    "Interface",
    "Interrupted",
    "Objective",
    "Run",
    "RunError",
    "TableSource",
    "TargetScaling",
    "evaluate",
    "fit",
    "load_data",
    "open_runs",
    "override",
    "read_experiment",
    "train",
    "with_epochs",
    "with_protocol",
    "with_table",
]

__getattr__, __dir__ = names_on_use(__name__, _HOME)
