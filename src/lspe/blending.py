"""Networks and a forest as one model: trained beside each other, weighed on what neither has seen, and scored.

Each network of a run has a validation part of its own, and together these cover all, or much, of what is not tested
(those of a benchmark have the same, by which their mean is judged).
A forest grown for each of them on the same training part predicts the same molecules, so that the two can be weighed
against each other. The forest that is kept is grown on all that is not tested, of a benchmark on its training part.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lspe.data import GraphData
from lspe.data.packed.container import Array
from lspe.data.packed.pointers import Index
from lspe.data.splits import Splits
from lspe.experiment import OWN
from lspe.files import write_json
from lspe.forest import Forest
from lspe.predict.blend import COVERAGE, FOREST, Blend, best_shares
from lspe.predict.calibration import calibration_error_by_chance, expected_calibration_error
from lspe.predict.splits import SplitPredictions, predict_split, scores_by_target, scores_of, together
from lspe.training.fitting import seen_by_member
from lspe.training.run import SUMMARY, Run, go_on_with, open_runs

Floats = NDArray[np.float64]

MOST_FOR_A_FOREST = 50_000
"""Molecules a forest is grown on, whose descriptors are in memory together; of more, as many drawn at random."""
_AT_ONCE = 10_000


@dataclass(frozen=True)
class Blended:
    """What networks, forest and both together predict for some molecules, beside what is true."""

    networks: SplitPredictions
    forest: SplitPredictions | None
    weights: Blend

    @property
    def both(self) -> SplitPredictions:
        """The prediction that counts."""
        forest = None if self.forest is None else self.forest.predicted
        predicted = self.weights.together(self.networks.predicted, forest, self.networks.task)
        return replace(self.networks, predicted=predicted)

    def scores(self) -> dict[str, dict[str, float | None]]:
        """Of networks, forest and both."""
        parts = {"networks": self.networks, "forest": self.forest, "together": self.both}
        return {name: scores_of(part) for name, part in parts.items() if part is not None}


def is_blended(run: Run) -> bool:
    """Whether several networks, or networks and a forest, predict as one in a run."""
    return run.config.training.forest or (run.config.training.members or 1) > 1


def blend(run: Run, data: GraphData, *, threads: int = 1) -> Blended:
    """Grow the forest, choose the weights, and write both and their scores into the folder of a finished run."""
    if run.config.fold is not None:
        data = data.fold(run.config.fold)
    runs = open_runs(run.path, run.given)
    held_out = [predict_split(one, data, "val") for one in runs]
    test = _mean([predict_split(one, data, "test") for one in runs])
    parts = [seen_by_member(one.config, data).splits for one in runs]
    validation = together(held_out)
    if all(np.array_equal(part["val"], parts[0]["val"]) for part in parts):
        validation, parts = _mean(held_out), parts[:1]
    started = time.perf_counter()
    if run.config.training.forest:
        if run.config.dataset == OWN:
            kinds = np.concatenate([_held_out_kinds(data, part, threads) for part in parts], axis=1)
            forest = _fit(data, np.sort(np.concatenate([data.splits["train"], data.splits["val"]])), threads)
        else:  # what a benchmark validates on is not learned from: the forest that is judged is the one that is kept
            forest = _fit(data, data.splits["train"], threads)
            kinds = _in_pieces(forest.predict_kinds, data, data.splits["val"])
        shares = best_shares(validation.y, kinds, data.task)
        of_validation = np.average(kinds, axis=0, weights=shares)
        forest = forest.weighed(shares)
        forest.save(run.path / FOREST)
        weights = Blend.choose(validation.y, validation.predicted, of_validation, data.task)
        on_val = Blended(validation, replace(validation, predicted=of_validation), weights)
        of_test = _in_pieces(forest.predict, data, data.splits["test"])
        on_test = Blended(test, replace(test, predicted=of_test), weights)
    else:
        weights = Blend(1.0, 0.0)
        on_val, on_test = Blended(validation, None, weights), Blended(test, None, weights)
    if data.task == "regression":
        weights = weights.with_intervals(on_val.both.y, on_val.both.predicted)
    else:
        weights = weights.with_calibration(on_val.both.y, on_val.both.predicted, data.task)
    on_val, on_test = replace(on_val, weights=weights), replace(on_test, weights=weights)
    weights.write(run.path)
    seconds = time.perf_counter() - started
    _add_to_summary(run, {"val": on_val, "test": on_test}, seconds)
    return on_test


def _mean(predictions: Sequence[SplitPredictions]) -> SplitPredictions:
    """What several networks predict of the same graphs, as one."""
    return replace(predictions[0], predicted=np.mean([one.predicted for one in predictions], axis=0))


def _held_out_kinds(data: GraphData, part: Splits, threads: int) -> Floats:
    """What each kind of tree, grown on the training rows of a part, predicts for its validation rows."""
    return _in_pieces(_fit(data, part["train"], threads).predict_kinds, data, part["val"])


def _fit(data: GraphData, rows: Index, threads: int) -> Forest:
    if len(rows) > MOST_FOR_A_FOREST:
        rows = np.sort(np.random.default_rng(0).choice(rows, MOST_FOR_A_FOREST, replace=False))
    columns = data.graphs.graph
    return Forest.fit(
        _descriptors(data, rows),
        columns["y"][rows],
        data.task,
        outputs=data.num_outputs,
        extra=_extra(data, rows),
        weight=columns["weight"][rows] if "weight" in columns else None,
        threads=threads,
    )


def _in_pieces(predict: Callable[..., Floats], data: GraphData, rows: Index) -> Floats:
    """What a forest says of rows, [..., rows, outputs]; not all descriptors have to fit into memory."""
    parts = np.split(rows, range(_AT_ONCE, len(rows), _AT_ONCE))
    return np.concatenate([predict(_descriptors(data, part), _extra(data, part)) for part in parts], axis=-2)


def _extra(data: GraphData, rows: Index) -> Array | None:
    return data.extra[rows] if data.extra is not None and data.extra_names else None


def _descriptors(data: GraphData, rows: Index) -> dict[Any, Any]:
    return {kind: values[rows] for kind, values in data.descriptors.items()}


def _add_to_summary(run: Run, parts: dict[str, Blended], seconds: float) -> None:
    weights = parts["test"].weights
    scores: dict[str, Any] = {
        "weights": {"networks": weights.networks, "forest": weights.forest},
        **{split: part.scores() for split, part in parts.items()},
        "forest_seconds": round(seconds, 1),
    }
    if weights.half_widths:
        test = parts["test"].both
        inside = (np.abs(test.predicted - test.y) <= np.array(weights.half_widths))[~np.isnan(test.y)]
        scores["intervals"] = {
            "coverage": COVERAGE,
            "half_widths": dict(zip(test.task_names, weights.half_widths, strict=True)),
            "test_coverage": float(inside.mean()),
        }
    if weights.calibration is not None:
        test = parts["test"].both
        scores["calibration"] = {
            **weights.calibration.to_dict(),
            "test_error": expected_calibration_error(test.y, test.predicted, test.task),
            "test_error_by_chance": calibration_error_by_chance(test.y, test.predicted, test.task),
        }
    if len(parts["test"].networks.task_names) > 1:
        scores["targets"] = scores_by_target(parts["test"].both)
    write_json(run.path / SUMMARY, {**run.summary, "together": scores}, then=go_on_with(run.path))
