"""A named, complete experiment, and the row of the paper's tables it repeats."""

from lspe.config import Strict
from lspe.experiment.network import ModelConfig
from lspe.experiment.protocol import Training
from lspe.experiment.task import Metric, Task
from lspe.features import Features


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
