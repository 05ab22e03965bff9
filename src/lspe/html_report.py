"""report.html of a run: scores, pictures, and the molecules it predicts worst, in one file that needs nothing else."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Sequence
from html import escape
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from lspe.data.molecules.smiles import parse
from lspe.data.words import Fragments
from lspe.files.html import figure, paragraphs, side_by_side, write_page
from lspe.plots.molecule_pictures import molecule_svg
from lspe.predict.splits import SplitPredictions
from lspe.training.run import Run, open_runs
from lspe.training.summary import calibration_in_words, intervals_in_words, score_rows, weights_in_words

REPORT = "report.html"
WORST = 12

_PICTURES = {
    "parity.png": "Predicted against true values of the test molecules",
    "roc.png": "True against false positives of the test molecules",
    "intervals.png": "Intervals of the test molecules, and their true values",
    "reliability.png": "Probabilities against frequencies",
    "curves.png": "Loss and score during training",
}
_MEANING = {
    "at random": "Test molecules are like those learned from; molecules of a new series will be predicted less well.",
    "by scaffold": "No test molecule shares its scaffold with one learned from: the scores are those of new series.",
    "by time": "The test molecules are the latest, all else is older: the scores are those of molecules still to come.",
}


def write_report(run: Run, test: SplitPredictions, *, fragments: Fragments = "keep") -> Path:
    """Write the report of a run on a table, with what it predicts for its test molecules."""
    title = f"{', '.join(test.task_names)}: {run.path.name}"
    parts = [
        *paragraphs(_about(run, test)),
        "<h2>Scores</h2>",
        *_scores(run),
        "<h2>Pictures</h2>",
        *_pictures(run.path),
        *_worst(test, fragments),
        "<h2>Use it</h2>",
        *paragraphs([f"lspe predict {run.path} molecules.csv -o predicted.csv"], tag="pre"),
    ]
    path = run.path / REPORT
    write_page(path, title, parts)
    return path


def _about(run: Run, test: SplitPredictions) -> list[str]:
    first = open_runs(run.path)[0].summary
    table = run.config.table
    name = run.config.dataset if table is None else Path(table.path).name
    counts = first["graphs"]
    learned = counts["train"] + counts.get("val", 0)
    division = first["division"]
    told = f"{name}: {learned:,} molecules to learn and validate from, {len(test.y):,} to test"
    return [f"{told}, divided {division}." if division else f"{told}.", _MEANING.get(division, "")]


def _scores(run: Run) -> list[str]:
    """Of networks, forest and both, beside a constant; in words where the forest wins."""
    shown = []
    summary = run.summary
    several = "parts" in summary and "together" not in summary
    for one in open_runs(run.path) if several else [run]:
        header, *rows = score_rows(one.summary)
        lines = [_row(header, "th"), *(_row(row, "td") for row in rows)]
        shown += [f"<h3>{escape(one.path.name)}</h3>"] * several + [f"<table>{''.join(lines)}</table>"]
    return shown + paragraphs([weights_in_words(summary), intervals_in_words(summary), calibration_in_words(summary)])


def _row(cells: Sequence[str], tag: str) -> str:
    return "<tr>" + "".join(f"<{tag}>{escape(cell)}</{tag}>" for cell in cells) + "</tr>"


def _pictures(folder: Path) -> list[str]:
    shown = []
    for name, caption in _PICTURES.items():
        path = folder / name
        if path.is_file():
            data = b64encode(path.read_bytes()).decode()
            image = f'<img alt="{escape(caption)}" src="data:image/png;base64,{data}">'
            shown.append(figure(image, caption))
    return shown


def _worst(test: SplitPredictions, fragments: Fragments) -> list[str]:
    """The test molecules with the largest errors, drawn."""
    if "smiles" not in test.molecules:
        return []
    loss = losses(test)
    cards = []
    for row in np.argsort(-loss, kind="stable")[:WORST].tolist():
        smiles = test.molecules["smiles"][row]
        name = test.molecules["name"][row] if "name" in test.molecules else ""
        words = f"{name or smiles}: {_true_and_predicted(test, row)}"
        picture = molecule_svg(parse(smiles, fragments=fragments))
        cards.append(figure(picture, words))
    return ["<h2>Predicted worst</h2>", side_by_side(cards)]


def losses(test: SplitPredictions) -> NDArray[np.float64]:
    """How wrong the prediction of each molecule is, [M]: in standard deviations, or by the missing probability."""
    if test.task == "multiclass":
        return np.asarray(1 - test.predicted[np.arange(len(test.y)), test.y.reshape(-1).astype(np.int64)])
    off = np.abs(test.predicted - test.y)
    if test.task == "regression":
        spread = np.nanstd(test.y, axis=0)
        off = off / np.where(spread > 0, spread, 1.0)
    return np.asarray(np.where(np.isnan(off), -np.inf, off).max(axis=1))


def _true_and_predicted(test: SplitPredictions, row: int) -> str:
    if test.task == "multiclass":
        likeliest = int(test.predicted[row].argmax())
        said = f"{test.class_names[likeliest]} ({test.predicted[row, likeliest]:.0%})"
        return f"true {test.class_names[int(test.y[row])]}, predicted {said}"
    shown = []
    for name, true, predicted in zip(test.task_names, test.y[row], test.predicted[row], strict=True):
        if true == true:
            what = f"{name} " if len(test.task_names) > 1 else ""
            shown.append(f"{what}true {true:.4g}, predicted {predicted:.3g}")
    return "; ".join(shown)
