"""From run folders, or files that hold a whole model, to what predicts."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from lspe.forest import Forest
from lspe.nn import Network
from lspe.predict.blend import Blend, units_of
from lspe.predict.known import KNOWN, KnownMolecules
from lspe.predict.member import Member
from lspe.predict.model_file import MODEL_SUFFIX, open_model
from lspe.predict.predictor import Predictor
from lspe.training.run import Run, RunError
from lspe.training.words import Which

Paths = str | os.PathLike[str] | Sequence[str | os.PathLike[str]]


def load(runs: Paths, *, which: Which = "reported", device: str = "auto", network: Network | None = None) -> Predictor:
    """The networks of one or several run folders, or of a file that ``lspe export`` wrote, ready to predict.

    Several runs, or a folder with several members, seeds or folds, are an ensemble; a run with a forest is a blend.

    >>> lspe.load("runs/logS").predict("CCO")
    >>> lspe.load("model.lspe").predict("CCO")

    Args:
        runs: run folders, or one file.
        which: the weights the protocol reports, those of the ``last`` epoch or of the ``best`` one.
        device: ``auto`` takes a GPU where there is one.
        network: where that of the runs was given as an object (:func:`lspe.train`), one like it; its weights do not
            count.

    """
    paths = [Path(runs)] if isinstance(runs, str | os.PathLike) else [Path(one) for one in runs]
    files = [path for path in paths if path.suffix == MODEL_SUFFIX and path.is_file()]
    if files and (len(paths) > 1 or which != "reported"):
        raise RunError(f"{files[0]} is a whole model with one set of weights: give it alone, without --weights")
    if files:
        return open_model(files[0], device=device)
    units = [unit for path in paths for unit in _units(path, which, network)]
    networks = [member for unit in units for member in unit.members]
    shares = [unit.blend.networks / len(unit.members) for unit in units for _ in unit.members]
    grown = [unit for unit in units if unit.forest is not None]
    alone = units[0].blend if len(units) == 1 and which == "reported" else Blend(1.0, 0.0)
    return Predictor(
        networks,
        forests=[unit.forest for unit in grown if unit.forest is not None],
        weights=[*shares, *(unit.blend.forest for unit in grown)],
        intervals=alone.intervals,
        calibration=alone.calibration,
        known=_known(paths[0]) if len(paths) == 1 else None,
        device=device,
    )


def _known(path: Path) -> KnownMolecules | None:
    return KnownMolecules.open(path / KNOWN) if (path / KNOWN).is_file() else None


@dataclass(frozen=True)
class _Unit:
    members: list[Member]
    forest: Forest | None
    blend: Blend


def _units(path: Path, which: Which, network: Network | None) -> Iterator[_Unit]:
    for runs, forest, blend in units_of(Run.open(path).path, network):
        yield _Unit([Member.of_run(run, which) for run in runs], forest, blend)
