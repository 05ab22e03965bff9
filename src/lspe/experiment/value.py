"""An experiment: a preset together with all that one training adds to it, complete enough to be repeated."""

from typing import Annotated, Self

import yaml
from pydantic import Field, model_validator

from lspe.experiment.preset import Preset
from lspe.experiment.protocol import PAPER_SEEDS, Seed
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
    seed: Seed = PAPER_SEEDS[0]
    fold: Annotated[int, Field(ge=0)] | None = None
    seeds: tuple[Seed, ...] = ()

    @model_validator(mode="after")
    def _one_output_per_graph(self) -> Self:
        if self.model.readout == "none":
            raise ValueError(
                "model.readout='none' gives an output per node, but targets are those of graphs: use 'mean'"
            )
        return self

    def to_yaml(self) -> str:
        """The whole experiment; :func:`read_experiment` reads it."""
        return yaml.safe_dump(self.model_dump(mode="json"), sort_keys=False, allow_unicode=True)
