"""What a preset says."""

from typing import Annotated, Literal

from pydantic import Field

from lspe.config import Strict
from lspe.nn.config import Features, ModelConfig
from lspe.training.protocol import Training

TaskKind = Literal["regression", "binary", "multiclass"]
Metric = Literal["mae", "rmse", "r2", "roc_auc", "ap", "accuracy"]


class Task(Strict):
    """What is predicted: ``outputs`` numbers, independent yes/no labels, or one of as many classes."""

    kind: TaskKind
    outputs: Annotated[int, Field(ge=1)]
    metric: Metric


class PaperRow(Strict):
    """A row of the paper's tables: mean and spread over seeds (IMDB: over folds), epochs and time on its GPU."""

    metric: Metric
    test: float
    test_sd: float
    train: float
    train_sd: float
    epochs: float
    epoch_s: float
    total_h: float
    parameters: int


class Preset(Strict):
    """A named, complete experiment."""

    name: str
    dataset: str
    task: Task
    features: Features
    model: ModelConfig
    training: Training
    paper: PaperRow | None = None
