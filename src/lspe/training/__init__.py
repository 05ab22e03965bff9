"""From a preset and a data set to a run folder.

>>> experiment = read_experiment("nci/gatedgcn-lspe")  # of lspe.experiment
>>> run = train(experiment, load_data(experiment), Path("runs/nci"))
>>> run.summary["reported"]["test"]["mae"]

The names are loaded on first use, so that whoever only reads a run's files does not wait for Lightning.
"""

from typing import TYPE_CHECKING

from lspe._lazy import names_on_use

if TYPE_CHECKING:
    from lspe.training.evaluation import Evaluation, evaluate
    from lspe.training.fitting import Interrupted, fit
    from lspe.training.objective import Objective, TargetScaling
    from lspe.training.run import Interface, Run, RunError
    from lspe.training.seeds_and_folds import open_runs, train

_HOME = {
    "Evaluation": ".evaluation",
    "Interface": ".run",
    "Interrupted": ".fitting",
    "Objective": ".objective",
    "Run": ".run",
    "RunError": ".run",
    "TargetScaling": ".objective",
    "evaluate": ".evaluation",
    "fit": ".fitting",
    "open_runs": ".seeds_and_folds",
    "train": ".seeds_and_folds",
}

__all__ = [
    "Evaluation",
    "Interface",
    "Interrupted",
    "Objective",
    "Run",
    "RunError",
    "TargetScaling",
    "evaluate",
    "fit",
    "open_runs",
    "train",
]

__getattr__, __dir__ = names_on_use(__name__, _HOME)
