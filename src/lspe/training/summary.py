"""summary.json: how it is made, and its scores as rows of a table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor

from lspe.data import GraphData, PackedGraphs
from lspe.experiment.protocol import ReportedWeights
from lspe.experiment.task import format_score, goodness, scores_for
from lspe.nn import Network
from lspe.training.callbacks import Bookkeeper
from lspe.training.distributed import world_size
from lspe.training.environment import hardware, versions
from lspe.training.evaluation import Evaluation, evaluate_parts, evaluation_batch_size
from lspe.training.module import TrainingModule
from lspe.training.objective import Objective
from lspe.training.run import Run

SPLITS = ("train", "val", "test")

CONSTANT = {
    "regression": "always the mean",
    "binary": "always the frequency",
    "multiclass": "always the largest class",
}
"""What a predictor says that knows only the training targets."""


def make_summary(run: Run, module: TrainingModule, data: GraphData, keeper: Bookkeeper) -> dict[str, Any]:
    """The scores of the last and the best weights on all splits, and how they came about."""
    experiment = run.config
    splits = {name: data.split(name) for name in SPLITS if name in data.splits and len(data.splits[name])}
    device = next(module.network.parameters()).device
    results: dict[str, Any] = {}
    whiches: tuple[ReportedWeights, ...] = ("last", "best")
    for which in whiches:
        epoch = run.checkpoint(which)["epoch"]
        if which == "best" and epoch == results["last"]["epoch"]:
            results["best"] = results["last"]
            continue
        network = run.network(which).to(device)
        evaluations = _evaluate(network, module, data, list(splits.values()))
        results[which] = {"epoch": epoch} | {name: one.to_dict() for name, one in zip(splits, evaluations, strict=True)}
    constant = module.objective.constant(torch.from_numpy(data.split("train").y.copy()))
    report: ReportedWeights = experiment.training.protocol.report
    seconds = [row["seconds"] or 0.0 for row in keeper.history]
    return {
        "preset": experiment.name,
        "dataset": experiment.dataset,
        "level": experiment.task.level,
        "task": experiment.task.kind,
        "metric": experiment.task.metric,
        "protocol": experiment.training.protocol.kind,
        "seed": experiment.seed,
        "fold": experiment.fold,
        "report": report,
        "reported": results[report],
        **results,
        "constant": {
            name: _score_of_constant(module.objective, constant, part.in_epoch(0, 0)) for name, part in splits.items()
        },
        "epochs": module.epoch,
        "stopped": keeper.stopped,
        "parameters": sum(parameter.numel() for parameter in module.network.parameters()),
        "division": data.division,
        "graphs": {name: len(graphs) for name, graphs in splits.items()},
        "targets": {name: int(graphs.known_targets.sum()) for name, graphs in splits.items()},
        "seconds_per_epoch": round(sum(seconds) / max(len(seconds), 1), 3),
        "total_seconds": round(sum(seconds), 1),
        "versions": versions(),
        "hardware": hardware(device, world_size()),
    }


def _evaluate(network: Network, module: TrainingModule, data: GraphData, parts: list[PackedGraphs]) -> list[Evaluation]:
    """Of each part; graphs of which all parts ask the same, their nodes or edges, go through the network once."""
    training = module.training_config
    batch_size = evaluation_batch_size(training)
    asked_alike = data.divided == "targets" and data.level != "link"
    together = [(data.graphs, parts)] if asked_alike else [(part, [part]) for part in parts]
    each = [
        evaluate_parts(network, graphs, some, module.objective, training.positional_loss, batch_size=batch_size)
        for graphs, some in together
    ]
    return [one for some in each for one in some]


def _score_of_constant(objective: Objective, constant: Tensor, graphs: PackedGraphs) -> dict[str, float | None]:
    """The scores of a predictor that always says the same."""
    y = torch.from_numpy(graphs.y.copy())
    scores = objective.scores()
    scores.sync_on_compute = False
    scores.update(constant.expand(len(y), -1), y)
    return {name: None if value != value else value for name, value in scores.compute().items()}


def score_rows(summary: Mapping[str, Any]) -> list[list[str]]:
    """A header and one row for each split: every score of the reported weights, then the metric of the other ones.

    The last row is what a predictor gets that knows the training targets and nothing of the graphs. Where networks and
    a forest predict as one, the rows are those of the networks, of the forest and of both.
    """
    metric, report = summary["metric"], summary["report"]
    other = "best" if report == "last" else "last"
    known = next(iter(summary["constant"].values()))
    scores = scores_for(summary["task"], summary.get("level", "graph"))  # version 0.1 had no level
    names = [name for name in scores if name in known]  # and fewer scores
    names.sort(key=lambda name: name != metric)
    if "together" in summary:
        return _rows_together(summary, names)
    rows = [["split", *names, f"{metric} ({other} epoch)"]]
    for split in SPLITS:
        if split in summary["reported"]:
            scores = summary["reported"][split]
            values = [format_score(name, scores[name]) for name in names]
            rows.append([split, *values, format_score(metric, summary[other][split][metric])])
    last = rows[-1][0]
    rows.append([*_row_of_constant(summary, last, names), ""])
    return rows


def _rows_together(summary: Mapping[str, Any], names: Sequence[str]) -> list[list[str]]:
    rows = [["", *names]]
    for split in ("val", "test"):
        for who, scores in summary["together"][split].items():
            rows.append([f"{split}, {who}", *(format_score(name, scores[name]) for name in names)])
    for target, scores in summary["together"].get("targets", {}).items():
        rows.append([f"test, {target}", *(format_score(name, scores[name]) for name in names)])
    rows.append(_row_of_constant(summary, "test", names))
    return rows


def _row_of_constant(summary: Mapping[str, Any], split: str, names: Sequence[str]) -> list[str]:
    scores = [format_score(name, summary["constant"][split][name]) for name in names]
    return [f"{split}, {CONSTANT[summary['task']]}", *scores]


def intervals_in_words(summary: Mapping[str, Any]) -> str:
    """How wide intervals are, and how many test values they hold; '' where there are none."""
    intervals = summary.get("together", {}).get("intervals")
    if intervals is None:
        return ""
    widths = ", ".join(f"{name} ± {_width_in_words(**widths)}" for name, widths in intervals["half_widths"].items())
    held = f"{intervals['coverage']:.0%} of new values are expected within {widths}"
    return f"{held}; {intervals['test_coverage']:.0%} of the test values are"


def _width_in_words(narrow: float, usual: float, wide: float) -> str:
    """Intervals are wider where networks and trees differ more."""
    if f"{narrow:.2g}" == f"{wide:.2g}":
        return f"{usual:.3g}"
    return f"{usual:.3g} ({narrow:.3g} to {wide:.3g}, by how far the models are apart)"


def calibration_in_words(summary: Mapping[str, Any]) -> str:
    """How far probabilities are from frequencies; '' where nobody looked."""
    calibration = summary.get("together", {}).get("calibration")
    if calibration is None or calibration["test_error"] is None:
        return ""
    words = (
        f"probabilities are {calibration['test_error']:.1%} off on average (calibration error of the test molecules)"
    )
    by_chance = calibration.get("test_error_by_chance")  # runs of before have none
    return words if by_chance is None else f"{words}; of as many molecules {by_chance:.1%} would be chance alone"


def weights_in_words(summary: Mapping[str, Any]) -> str:
    """How much networks and forest count, and which is better alone; '' where there is no forest."""
    together = summary.get("together")
    if together is None or not together["weights"]["forest"]:
        return ""
    networks, forest = (together["weights"][name] for name in ("networks", "forest"))
    text = f"the networks count {networks:.0%}, the forest {forest:.0%}, as was best on the validation parts"
    metric = summary["metric"]
    alone = {name: together["val"][name][metric] for name in ("networks", "forest")}
    if None in alone.values():
        return text
    better = max(alone, key=lambda name: goodness(metric, alone[name]))
    verb = "are" if better == "networks" else "is"
    return (
        f"{text}; of the two alone, the {better} {verb} better there ({metric} {format_score(metric, alone[better])})"
    )
