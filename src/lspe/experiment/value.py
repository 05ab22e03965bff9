"""An experiment: a preset together with all that one training adds to it, complete enough to be repeated."""

import yaml

from lspe.experiment.preset import Preset
from lspe.experiment.protocol import PAPER_SEEDS
from lspe.experiment.table_source import TableSource

CONFIG = "config.yaml"
OWN = "own"
"""The data set of presets for one's own data."""


class Experiment(Preset):
    """A preset with the seed of its weights and order, the fold, and the table of one's own data.

    With ``seeds``, or where the data come in folds and no ``fold`` is chosen, it is several trainings, one a seed
    and fold.
    """

    table: TableSource | None = None
    seed: int = PAPER_SEEDS[0]
    fold: int | None = None
    seeds: tuple[int, ...] = ()

    def to_yaml(self) -> str:
        """The whole experiment; :func:`read_experiment` reads it."""
        return yaml.safe_dump(self.model_dump(mode="json"), sort_keys=False, allow_unicode=True)
