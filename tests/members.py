"""Networks with random weights as runs, for tests of predicting that need no training."""

from pathlib import Path
from typing import Any

import torch

from lspe.experiment import Task, build_network
from lspe.experiment.overriding import override
from lspe.experiment.reading import read_experiment
from lspe.experiment.value import Experiment
from lspe.features import Features, OGBFeatures, table_sizes
from lspe.predict.member import Member
from lspe.training.objective import TargetScaling
from lspe.training.run import Interface

OGB = OGBFeatures()
SMILES = [
    *(
        "CCO",
        "c1ccccc1",
        "CC(=O)Oc1ccccc1C(=O)O",
        "C1CCC2CCCCC2C1",
        "C1CCCC1C1CCCC1",
        "[Na+].[Cl-]",
        "C",
        "N[C@@H](C)C(=O)O",
    ),
    *(
        "OCC1OC(O)C(O)C(O)C1O",
        "Cn1cnc2c1c(=O)n(C)c(=O)n2C",
        "F/C=C/F",
        "F/C=C\\F",
        "CCCCCCCCCCCC",
        "O=S(=O)(N)c1ccc(Cl)cc1",
    ),
]


def member(
    kind: str = "regression",
    *settings: str,
    tasks: tuple[str, ...] = ("y",),
    classes: tuple[str, ...] = (),
    scaling: TargetScaling | None = None,
    features: Features = OGB,
    fragments: str = "keep",
    preset: str = "own/gatedgcn-lspe",
    seed: int = 0,
) -> Member:
    """A network with random weights and running statistics that are not those of the start."""
    experiment = override(read_experiment(preset), ["model.layers=2", "model.hidden_dim=16", *settings])
    metric: Any = {"regression": "rmse", "binary": "roc_auc", "multiclass": "accuracy"}[kind]
    task = Task(kind=kind, outputs=len(classes) or len(tasks), metric=metric)  # type: ignore[arg-type]
    experiment = Experiment(**{**experiment.model_dump(), "task": task.model_dump(), "features": table_sizes(features)})
    torch.manual_seed(seed)
    network = build_network(experiment)
    with torch.no_grad():
        for name, value in network.state_dict().items():
            if "running" in name:
                value.uniform_(0.5, 1.5)
    interface = Interface(
        features=features, task_names=tasks, class_names=classes, scaling=scaling, fragments=fragments
    )
    return Member(f"run{seed}", experiment, interface, network.eval())


def save(folder: Path, *args: Any, **options: Any) -> Path:
    """The same as a run folder."""
    member(*args, **options).save(folder)
    return folder
