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
from lspe.predict.blend import FOREST, Blend, best_shares
from lspe.predict.calibration import calibration_error_by_chance, expected_calibration_error
from lspe.predict.intervals import COVERAGE, spread_of_one_network
from lspe.predict.splits import SplitPredictions, predict_split, scores_by_target, scores_of, together
from lspe.training.fitting import seen_by_member
from lspe.training.run import SUMMARY, Run, go_on_with, open_runs

Floats = NDArray[np.float64]

MOST_FOR_A_FOREST = 50_000
"""Molecules a forest is grown on, whose descriptors are in memory together; of more, as many drawn at random."""
_AT_ONCE = 10_000
_WIDTHS = ("narrow", "usual", "wide")
"""Half widths of intervals that a tenth, half and nine tenths of the test molecules stay below."""


@dataclass(frozen=True)
class Blended:
    """What networks and trees say of some molecules, by themselves and together, beside what is true.

    - `each`: of each network; where every molecule was held out by a single one, of that one;
    - `kinds` [K, M, outputs]: of each kind of trees, and how much it counts; K is 0 without a forest.
    """

    each: tuple[SplitPredictions, ...]
    kinds: Floats
    shares: Floats
    weights: Blend

    @classmethod
    def of_networks(cls, each: tuple[SplitPredictions, ...]) -> Blended:
        """Without a forest."""
        return cls(each, np.empty((0, *each[0].predicted.shape)), np.empty(0), Blend(1.0, 0.0))

    @property
    def networks(self) -> SplitPredictions:
        """The mean of the networks."""
        return replace(self.each[0], predicted=np.mean([one.predicted for one in self.each], axis=0))

    @property
    def forest(self) -> SplitPredictions | None:
        """The weighed mean of the trees."""
        return replace(self.each[0], predicted=np.tensordot(self.shares, self.kinds, 1)) if len(self.kinds) else None

    @property
    def both(self) -> SplitPredictions:
        """The prediction that counts."""
        networks, forest, intervals = self.networks, self.forest, self.weights.intervals
        predicted = self.weights.together(
            networks.predicted, None if forest is None else forest.predicted, networks.task
        )
        return replace(
            networks,
            predicted=predicted,
            half_widths=None if intervals is None else intervals.half_widths(self.spread),
        )

    @property
    def spread(self) -> Floats:
        """How far a network and the kinds of trees are apart, [M, outputs]."""
        count = len(self.each)
        weights = [np.full(count, self.weights.networks / count), self.weights.forest * self.shares]
        values = np.concatenate([np.stack([one.predicted for one in self.each]), self.kinds])
        return spread_of_one_network(values, np.concatenate(weights), count)

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
    held_out = tuple(predict_split(one, data, "val") for one in runs)
    parts = [seen_by_member(one.config, data).splits for one in runs]
    if all(np.array_equal(part["val"], parts[0]["val"]) for part in parts):
        parts = parts[:1]
    else:
        held_out = (together(held_out),)
    test = tuple(predict_split(one, data, "test") for one in runs)
    started = time.perf_counter()
    on_val, on_test = Blended.of_networks(held_out), Blended.of_networks(test)
    if run.config.training.forest:
        on_val, on_test = _with_forest(run, data, parts, on_val, on_test, threads)
    weights = on_val.weights
    if data.task == "regression":
        weights = weights.with_intervals(on_val.both.predicted - on_val.both.y, on_val.spread)
    else:
        weights = weights.with_calibration(on_val.both.y, on_val.both.predicted, data.task)
    on_val, on_test = replace(on_val, weights=weights), replace(on_test, weights=weights)
    weights.write(run.path)
    seconds = time.perf_counter() - started
    _add_to_summary(run, {"val": on_val, "test": on_test}, seconds)
    return on_test


def _with_forest(
    run: Run, data: GraphData, parts: Sequence[Splits], on_val: Blended, on_test: Blended, threads: int
) -> tuple[Blended, Blended]:
    """Grow the forest and choose how much each kind of trees, and then networks and forest count."""
    if run.config.dataset == OWN:
        kinds = np.concatenate([_held_out_kinds(data, part, threads) for part in parts], axis=1)
        forest = _fit(data, np.sort(np.concatenate([data.splits["train"], data.splits["val"]])), threads)
    else:  # what a benchmark validates on is not learned from: the forest that is judged is the one that is kept
        forest = _fit(data, data.splits["train"], threads)
        kinds = _in_pieces(forest.predict_kinds, data, data.splits["val"])
    networks = on_val.networks
    forest = forest.weighed(best_shares(networks.y, kinds, data.task))
    forest.save(run.path / FOREST)
    of_forest = np.tensordot(forest.shares, kinds, axes=1)
    weights = Blend.choose(networks.y, networks.predicted, of_forest, data.task)
    of_test = _in_pieces(forest.predict_kinds, data, data.splits["test"])
    return (
        replace(on_val, kinds=kinds, shares=forest.shares, weights=weights),
        replace(on_test, kinds=of_test, shares=forest.shares, weights=weights),
    )


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
    if weights.intervals is not None:
        test = parts["test"].both
        assert test.half_widths is not None
        inside = (np.abs(test.predicted - test.y) <= test.half_widths)[~np.isnan(test.y)]
        quantiles = np.quantile(test.half_widths, [0.1, 0.5, 0.9], axis=0).T.tolist()
        scores["intervals"] = {
            "coverage": COVERAGE,
            "half_widths": {
                name: dict(zip(_WIDTHS, values, strict=True))
                for name, values in zip(test.task_names, quantiles, strict=True)
            },
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
