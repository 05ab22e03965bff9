"""How much networks and a forest count in one prediction, as a file of the run folder."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from lspe.data.words import TaskKind
from lspe.errors import UserError
from lspe.files import write_json
from lspe.forest import Forest
from lspe.nn import Network
from lspe.predict.calibration import Calibration
from lspe.predict.intervals import Intervals
from lspe.training.run import Run, open_runs

BLEND = "blend.json"
FOREST = "forest.lspe"

Floats = NDArray[np.float64]
_WORTH_OF_ALIKE = 10
"""As many validation molecules as would have to speak against counting all alike."""


@dataclass(frozen=True)
class Blend:
    """The weights of the mean of all networks and of the forest, which add up to 1, and how far to trust both.

    Numbers have :class:`Intervals`, which hold for molecules like those the model was trained on; probabilities are
    calibrated, see :class:`Calibration`.
    """

    networks: float
    forest: float
    intervals: Intervals | None = None
    calibration: Calibration | None = None

    @classmethod
    def choose(cls, y: Floats, networks: Floats, forest: Floats, task: TaskKind) -> Blend:
        """The :func:`best_shares` of the two."""
        weight = best_shares(y, np.stack([networks, forest]), task)[0]
        return cls(weight, round(1 - weight, 3))

    def with_intervals(self, errors: Floats, spread: Floats) -> Blend:
        """With intervals by the errors [M, T] of molecules that were not trained on, and how far models are apart."""
        return replace(self, intervals=Intervals.fit(errors, spread))

    def with_calibration(self, y: Floats, predicted: Floats, task: TaskKind) -> Blend:
        """With calibrated probabilities, by molecules that were not trained on."""
        return replace(self, calibration=Calibration.fit(y, predicted, task))

    def together(self, networks: Floats, forest: Floats | None, task: TaskKind) -> Floats:
        """The prediction that counts."""
        both = networks if forest is None else self.networks * networks + self.forest * forest
        return both if self.calibration is None else self.calibration.apply(both, task)

    def write(self, folder: Path) -> None:
        """Into a run folder."""
        write_json(folder / BLEND, asdict(self))

    @classmethod
    def read(cls, folder: Path) -> Blend | None:
        """Of a run folder; ``None`` where there are only networks."""
        path = folder / BLEND
        if not path.is_file():
            return None
        try:
            values = json.loads(path.read_text(encoding="utf-8"))
            intervals, calibration = values.get("intervals"), values.get("calibration")
            weights = cls(
                float(values["networks"]),
                float(values["forest"]),
                None if intervals is None else Intervals.from_dict(intervals),
                None if calibration is None else Calibration.from_dict(calibration),
            )
        except (OSError, ValueError, LookupError, TypeError, AttributeError, RecursionError) as error:
            raise UserError(f"{path} is damaged ({error}): put back a copy of it, or train again") from None
        if not (0 <= weights.networks <= 1 and abs(weights.networks + weights.forest - 1) < 1e-6):
            raise UserError(f"{path} is damaged: its weights do not add up to 1. Put back a copy of it, or train again")
        return weights


def best_shares(y: Floats, parts: Floats, task: TaskKind) -> list[float]:
    """How much each of several predictions [parts, M, outputs] is to count, 1 in all.

    The shares with the lowest squared error, or log-loss, of molecules that none was trained on. Few molecules say
    little: they are drawn towards equal shares, as if some more had spoken for these.
    """
    from scipy.optimize import minimize

    equal = np.full(len(parts), 1 / len(parts))

    def loss(shares: Floats) -> float:
        return mean_loss(y, np.tensordot(shares, parts, 1), task)

    sums_to_one = {"type": "eq", "fun": lambda shares: shares.sum() - 1}
    found = minimize(loss, equal, bounds=[(0, 1)] * len(parts), constraints=sums_to_one, method="SLSQP").x
    best = found / found.sum() if np.isfinite(found).all() and loss(found) <= loss(equal) else equal
    drawn = (len(y) * best + _WORTH_OF_ALIKE * equal) / (len(y) + _WORTH_OF_ALIKE)
    return [round(float(share), 3) for share in drawn]


def mean_loss(y: Floats, predicted: Floats, task: TaskKind) -> float:
    """Squared error in units of each target's variance, or log-loss, over all known labels."""
    if task == "multiclass":
        chosen = predicted[np.arange(len(y)), y.reshape(-1).astype(np.int64)]
        return float(-np.log(np.maximum(chosen, 1e-6)).mean())
    known = ~np.isnan(y)
    truth = np.where(known, y, 0)
    if task == "binary":
        likely = np.clip(np.where(truth > 0.5, predicted, 1 - predicted), 1e-6, None)
        each = -np.log(likely)
    else:
        variance = [float(one[there].var()) if there.any() else 1.0 for one, there in zip(y.T, known.T, strict=True)]
        each = (predicted - truth) ** 2 / np.maximum(variance, 1e-12)
    return float(each[known].mean())


def units_of(path: Path, network: Network | None = None) -> Iterator[tuple[list[Run], Forest | None, Blend]]:
    """What predicts as one, with its weights: the networks of a folder and its forest, else each network alone."""
    weights = Blend.read(path)
    runs = open_runs(path, network)
    if weights is not None:
        yield runs, Forest.open(path / FOREST) if weights.forest else None, weights
    elif len(runs) == 1 and runs[0].path == path:
        yield runs, None, Blend(1.0, 0.0)
    else:
        for run in runs:
            yield from units_of(run.path, network)
