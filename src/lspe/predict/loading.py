"""From run folders to what predicts."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from lspe.data.packed.container import open_arrays
from lspe.forest import Forest
from lspe.predict.blend import units_of
from lspe.predict.known import KNOWN, KnownMolecules
from lspe.predict.member import Member
from lspe.predict.predictor import Predictor
from lspe.training.run import Run
from lspe.training.words import Which

Paths = str | os.PathLike[str] | Sequence[str | os.PathLike[str]]


def load(runs: Paths, *, which: Which = "reported", device: str = "auto") -> Predictor:
    """The networks of one or several run folders, ready to predict.

    Several runs, or a folder with several members, seeds or folds, are an ensemble; a run with a forest is a blend.

    >>> lspe.load("runs/logS").predict("CCO")

    Args:
        runs: run folders.
        which: the weights the protocol reports, those of the ``last`` epoch or of the ``best`` one.
        device: ``auto`` takes a GPU where there is one.

    """
    paths = [runs] if isinstance(runs, str | os.PathLike) else list(runs)
    members: list[Member] = []
    forests: list[Forest] = []
    weights: list[float] = []
    of_forests: list[float] = []
    units = [unit for path in paths for unit in units_of(Run.open(path).path)]
    for runs_of_unit, forest, blend in units:
        members += [Member.of_run(run, which) for run in runs_of_unit]
        weights += [blend.networks / len(runs_of_unit)] * len(runs_of_unit)
        if forest is not None:
            forests.append(forest)
            of_forests.append(blend.forest)
    half_widths = units[0][2].half_widths if len(units) == 1 and which == "reported" else ()
    known = Path(paths[0]) / KNOWN
    return Predictor(
        members,
        forests=forests,
        weights=[*weights, *of_forests],
        half_widths=half_widths,
        known=KnownMolecules.from_file(open_arrays(known)) if len(paths) == 1 and known.is_file() else None,
        device=device,
    )
