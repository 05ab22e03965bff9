"""summary.json: how it is made, and its scores as rows of a table."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lspe.data import GraphData
from lspe.training.callbacks import Bookkeeper
from lspe.training.distributed import world_size
from lspe.training.environment import hardware, versions
from lspe.training.module import TrainingModule
from lspe.training.protocol import Report
from lspe.training.run import Run
from lspe.training.tasks import SCORES

SPLITS = ("train", "val", "test")

DIGITS = {"accuracy": 2, "roc_auc": 4, "ap": 4}


def make_summary(run: Run, module: TrainingModule, data: GraphData, keeper: Bookkeeper) -> dict[str, Any]:
    """The scores of the last and the best weights on all splits, and how they came about."""
    experiment = run.config
    splits = {name: data.split(name) for name in SPLITS if name in data.splits and len(data.splits[name])}
    device = next(module.network.parameters()).device
    results: dict[str, Any] = {}
    whiches: tuple[Report, ...] = ("last", "best")
    for which in whiches:
        epoch = run.checkpoint(which)["epoch"]
        if which == "best" and epoch == results["last"]["epoch"]:
            results["best"] = results["last"]
            continue
        network = run.network(which).to(device)
        results[which] = {"epoch": epoch} | {
            name: module.evaluate(graphs, network).to_dict() for name, graphs in splits.items()
        }
    report: Report = experiment.training.protocol.report
    seconds = [row["seconds"] or 0.0 for row in keeper.history]
    return {
        "preset": experiment.name,
        "dataset": experiment.dataset,
        "task": experiment.task.kind,
        "metric": experiment.task.metric,
        "protocol": experiment.training.protocol.kind,
        "seed": experiment.seed,
        "fold": experiment.fold,
        "report": report,
        "reported": results[report],
        **results,
        "epochs": module.epoch,
        "stopped": keeper.stopped,
        "parameters": sum(parameter.numel() for parameter in module.network.parameters()),
        "graphs": {name: len(graphs) for name, graphs in splits.items()},
        "seconds_per_epoch": round(sum(seconds) / max(len(seconds), 1), 3),
        "total_seconds": round(sum(seconds), 1),
        "versions": versions(),
        "hardware": hardware(device, world_size()),
    }


def format_score(metric: str, value: float | Mapping[str, float] | None) -> str:
    """A score, or mean ± standard deviation, with as many digits as make sense for it; – if it is not defined."""
    if value is None:
        return "–"
    digits = DIGITS.get(metric, 4)
    if isinstance(value, Mapping):
        return f"{value['mean']:.{digits}f} ± {value['sd']:.{digits}f}"
    return f"{value:.{digits}f}"


def score_rows(summary: Mapping[str, Any]) -> list[list[str]]:
    """A header and one row for each split: every score of the reported weights, then the metric of the other ones."""
    metric, report = summary["metric"], summary["report"]
    other = "best" if report == "last" else "last"
    names = list(SCORES[summary["task"]])
    names.sort(key=lambda name: name != metric)
    rows = [["split", *names, f"{metric} ({other} epoch)"]]
    for split in SPLITS:
        if split in summary["reported"]:
            scores = summary["reported"][split]
            values = [format_score(name, scores[name]) for name in names]
            rows.append([split, *values, format_score(metric, summary[other][split][metric])])
    return rows
