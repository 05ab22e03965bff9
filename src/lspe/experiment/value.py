"""An experiment: a preset together with all that one training adds to it, complete enough to be repeated."""

from pathlib import Path
from typing import Annotated, Self

import yaml
from pydantic import Field, model_validator

from lspe.experiment.graph_source import GraphSource
from lspe.experiment.preset import Preset
from lspe.experiment.protocol import PAPER_SEEDS, Seed
from lspe.experiment.table_source import TableSource
from lspe.nn.readout import READOUTS, level_of

CONFIG = "config.yaml"
OWN = "own"
"""The data set of presets for one's own data."""


class Experiment(Preset):
    """A preset with the seed of its weights and order, the fold, and the table or graphs of one's own data.

    ``member`` is which network of an ensemble this is. With ``seeds``, or where the data come in folds and no ``fold``
    is chosen, it is several trainings, one per seed and fold.
    """

    table: TableSource | None = None
    graphs: GraphSource | None = None
    seed: Seed = PAPER_SEEDS[0]
    fold: Annotated[int, Field(ge=0)] | None = None
    member: Annotated[int, Field(ge=0)] | None = None
    seeds: tuple[Seed, ...] = ()

    @model_validator(mode="after")
    def _outputs_are_those_of_the_level(self) -> Self:
        readout, level = self.model.readout, self.task.level
        gives = level_of(readout)
        if gives != level:
            raise ValueError(
                f"model.readout={readout!r} gives an output per {gives}, but targets are those of {level}s: "
                f"use {READOUTS[level]!r}"
            )
        return self

    def to_yaml(self, folder: Path) -> str:
        """The whole experiment, as it is written to a file in ``folder``; :func:`read_experiment` reads it."""
        values = self.model_dump(mode="json")
        if self.graphs is not None:
            values["graphs"]["path"] = self.graphs.relative_to(folder)
        return yaml.safe_dump(values, sort_keys=False, allow_unicode=True)
