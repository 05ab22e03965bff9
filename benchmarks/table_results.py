"""What :mod:`benchmarks.tables` has found, as tables of Markdown."""

import itertools
import json
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.table_jobs import SPLITS, TABLES, Job, metric_of, place_of
from lspe.experiment.task import LOWER_IS_BETTER


def tabulate(out: Path, methods: Iterable[str], sizes: Sequence[int | None] = (None,)) -> str:
    """A row per table, random splits and scaffold split apart, a column per method: mean ± sd, and median seconds."""
    methods = list(methods)
    rows = [["table", *methods], ["---"] * (len(methods) + 1)]
    for table, size in itertools.product(TABLES, sizes):
        for name, splits in (("random", SPLITS[:-1]), ("scaffold", SPLITS[-1:])):
            jobs = [Job(table, split, size) for split in splits]
            cells = [_cell([place_of(out, job, method) for job in jobs]) for method in methods]
            if any(cells):
                arrow = "↓" if metric_of(table) in LOWER_IS_BETTER else "↑"
                what = name if size is None else f"{name}, {size} molecules"
                rows.append([f"{table}, {what}, {metric_of(table)} {arrow}", *cells])
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


NETWORK_ALONE = "one network without descriptors"
PARTS: dict[str, Callable[[dict[str, Any]], list[float]]] = {
    NETWORK_ALONE: lambda found: _of_members(found, with_descriptors=False),
    "one network with them": lambda found: _of_members(found, with_descriptors=True),
    "all networks": lambda found: [found["alone"]["networks"][found["metric"]]],
    "forest": lambda found: [found["alone"]["forest"][found["metric"]]],
    "together": lambda found: [found["score"]],
}


def tabulate_parts(out: Path, without_descriptors: str) -> str:
    """What each part of our default has by itself; of one network the mean over those of the kind.

    Where all of its networks have descriptors, those of the method `without_descriptors` stand beside them.
    """
    rows = [["table", *PARTS], ["---"] * (len(PARTS) + 1)]
    for table in TABLES:
        for name, splits in (("random", SPLITS[:-1]), ("scaffold", SPLITS[-1:])):
            default, without = (
                _found([place_of(out, Job(table, split), method) for split in splits])
                for method in ("lspe", without_descriptors)
            )
            found = [one for one in default if "members" in one and "alone" in one]
            if found:
                parts = {name: [part(one) for one in found] for name, part in PARTS.items()}
                parts[NETWORK_ALONE] += [_of_members(one, with_descriptors=False) for one in without]
                scores = [[np.mean(values) for values in part if values] for part in parts.values()]
                rows.append([f"{table}, {name}", *(f"{np.mean(each):.3f}" if each else "" for each in scores)])
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


def tabulate_variants(out: Path, methods: Iterable[str]) -> str:
    """The default's networks in other ways beside the default's own, on the splits that both have, and how many.

    ``together`` is with the forest, where there is one. The last column is the error (RMSE, or what an AUC lacks of 1)
    of what predicts in the end as a share of the default's, the geometric mean over the splits; a method's last row
    has the mean over the tables and its standard error.
    """
    rows = [["table", "what", "splits", "networks", "default", "together", "default", "error"], ["---"] * 8]
    for method in methods:
        ratios = []
        for table in TABLES:
            for name, splits in (("random", SPLITS[:-1]), ("scaffold", SPLITS[-1:])):
                jobs = [Job(table, split) for split in splits]
                pairs = [_found([place_of(out, job, method), place_of(out, job, "lspe")]) for job in jobs]
                pairs = [pair for pair in pairs if len(pair) == 2]
                if pairs:
                    cells, ratio = _beside_default(pairs)
                    rows.append([f"{table}, {name}", method, str(len(pairs)), *cells, f"{ratio:.3f}"])
                    ratios += [ratio] if name == "random" else []
        if len(ratios) > 1:
            error = np.std(np.log(ratios), ddof=1) / np.sqrt(len(ratios))
            mean = np.exp(np.mean(np.log(ratios)))
            rows.append(
                [f"{len(ratios)} tables, random", method, "", "", "", "", "", f"{mean:.3f} ± {mean * error:.3f}"]
            )
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


def _beside_default(pairs: list[list[dict[str, Any]]]) -> tuple[list[str], float]:
    """The scores of networks and of all together, each beside the default's, and the share of the error."""
    parts = (
        ["networks", "together"] if all("forest" in one["alone"] for pair in pairs for one in pair) else ["networks"]
    )
    metric = pairs[0][0]["metric"]
    scores = np.array([[[one["alone"][part][metric] for one in pair] for part in parts] for pair in pairs])
    means = [f"{value:.3f}" for value in scores.mean(axis=0).reshape(-1)]
    errors = scores if metric in LOWER_IS_BETTER else 1 - scores
    ratio = np.exp(np.log(errors[:, -1, 0] / errors[:, -1, 1]).mean())
    return [*means, *[""] * (4 - len(means))], float(ratio)


def _of_members(found: dict[str, Any], *, with_descriptors: bool) -> list[float]:
    return [one["score"] for one in found["members"] if (one["descriptors"] != "none") == with_descriptors]


def tabulate_trust(out: Path) -> str:
    """How far to trust our default: the share of test values in their 90 % intervals, or the calibration error.

    The error of a few hundred molecules is mostly chance: beside it stand the mean of what chance alone would make of
    the random splits, where that was noted, and the error of their molecules together.
    """
    rows = [["table", "what", "random splits", "scaffold", "by chance", "random splits together"], ["---"] * 6]
    for table in TABLES:
        what = "coverage" if metric_of(table) == "rmse" else "calibration_error"
        random, scaffold = (
            _found([place_of(out, Job(table, split), "lspe") for split in splits])
            for splits in (SPLITS[:-1], SPLITS[-1:])
        )
        if random or scaffold:
            values = [[one[what] for one in found] for found in (random, scaffold)]
            cells = [f"{np.mean(each):.3f} ({min(each):.3f} to {max(each):.3f})" if each else "" for each in values]
            by_chance = [one[f"{what}_by_chance"] for one in random if f"{what}_by_chance" in one]
            cells.append(f"{np.mean(by_chance):.3f}" if by_chance else "")
            rows.append([table, what.replace("_", " "), *cells, _error_together(random)])
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


def _found(paths: list[Path]) -> list[dict[str, Any]]:
    return [json.loads(path.read_text()) for path in paths if path.exists()]


def _error_together(found: list[dict[str, Any]]) -> str:
    """The calibration error over the test molecules of several splits."""
    bins = [one["bins"] for one in found if "bins" in one]
    if not bins:
        return ""
    count, excess = np.sum(bins, axis=0).T
    return f"{np.abs(excess).sum() / count.sum():.3f}"


def _cell(paths: list[Path]) -> str:
    found = _found(paths)
    if not found:
        return ""
    scores = [one["score"] for one in found]
    spread = f" ± {np.std(scores):.3f}" if len(scores) > 1 else ""
    some = f", {len(found)} of {len(paths)} splits" if len(found) < len(paths) else ""
    return f"{np.mean(scores):.3f}{spread} ({np.mean([one['seconds'] for one in found]):.0f} s{some})"
