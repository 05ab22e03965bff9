"""The card of a model: what it predicts, what it was trained on, how good it is, and where not to trust it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from lspe.data.molecules.smiles import parse
from lspe.predict.known import KnownMolecules
from lspe.predict.predictor import Predictor
from lspe.training.run import Run, open_runs
from lspe.training.summary import calibration_in_words, intervals_in_words, score_rows, weights_in_words

_SAMPLE = 500
"""Known molecules that are compared with all others to say how near neighbours usually are."""


def model_card(run: Run, predictor: Predictor, *, molecules: bool = True) -> str:
    """Markdown; ``molecules`` says whether those trained on are handed on with the model."""
    title = ", ".join(predictor.task_names)
    parts = [
        f"# Model card: {title}",
        _what(predictor),
        "## Data\n\n" + _data(run, predictor),
        "## Scores\n\n" + _scores(run),
        "## Trust\n\n" + _trust(run, predictor),
        "## Limits\n\n" + _limits(predictor),
        "## Contents\n\n" + _contents(run, predictor, molecules=molecules),
    ]
    return "\n\n".join(parts) + "\n"


def _what(predictor: Predictor) -> str:
    kind = {
        "regression": "numbers in the units of the table",
        "binary": "the probability of yes",
        "multiclass": f"the probability of each class ({', '.join(predictor.class_names)})",
    }[predictor.task]
    needs = f", and further numbers of each: {', '.join(predictor.extra_names)}" if predictor.extra_names else ""
    return f"Predicts {kind} ({predictor.task}) from SMILES{needs}."


def _data(run: Run, predictor: Predictor) -> str:
    table = run.config.table
    first = open_runs(run.path)[0].summary
    counts = first["graphs"]
    lines = [f"- {run.config.dataset if table is None else Path(table.path).name}"]
    learned = counts["train"] + counts.get("val", 0)
    lines.append(f"- {learned:,} molecules to learn and validate from, {counts.get('test', 0):,} kept apart to test")
    if division := first.get("division"):
        lines.append(f"- divided {division}")
    if table is not None:
        lines.append(f"- salts and mixtures: {table.fragments}; rows of the same molecule: {table.duplicates}")
    known = predictor.known
    if known is not None:
        lines += [f"- {line}" for line in _labels(known, predictor)]
    return "\n".join(lines)


def _labels(known: KnownMolecules, predictor: Predictor) -> list[str]:
    if predictor.task == "multiclass":
        counts = Counter(known.y.reshape(-1).tolist())
        return [f"{name}: {counts[number]:,}" for number, name in enumerate(predictor.class_names)]
    lines = []
    for name, column in zip(predictor.task_names, known.y.T, strict=True):
        there = column[~np.isnan(column)]
        if predictor.task == "binary":
            lines.append(f"{name}: {len(there):,} labels, {int(there.sum()):,} yes")
        elif len(there):
            lines.append(f"{name}: {len(there):,} values, {there.min():.4g} to {there.max():.4g}, sd {there.std():.3g}")
    return lines


def _scores(run: Run) -> str:
    summary = run.summary
    several = "parts" in summary and "together" not in summary
    summaries = [one.summary for one in open_runs(run.path)] if several else [summary]
    tables = [_table(score_rows(one)) for one in summaries]
    return "\n\n".join([*tables, *(words for words in [weights_in_words(summary)] if words)])


def _table(rows: Sequence[Sequence[str]]) -> str:
    lines = ["| " + " | ".join(row) + " |" for row in rows]
    lines.insert(1, "|" + " --- |" * len(rows[0]))
    return "\n".join(lines)


def _trust(run: Run, predictor: Predictor) -> str:
    summary = run.summary
    lines = []
    for words in (intervals_in_words(summary), calibration_in_words(summary)):
        if words:
            lines.append(f"- {words}")
    if len(predictor.weights) > 1:
        lines.append("- each prediction comes with the standard deviation over its models")
    return "\n".join(lines) or "Predictions come without intervals."


def _limits(predictor: Predictor) -> str:
    known = predictor.known
    if known is None:
        return "The molecules it was trained on are not known."
    elements: Counter[str] = Counter()
    sizes = []
    for smiles in known.smiles:
        atoms = [atom.GetSymbol() for atom in parse(smiles, fragments=predictor.fragments).GetAtoms()]
        elements.update(set(atoms))
        sizes.append(len(atoms))
    low, high = np.percentile(sizes, [2.5, 97.5])
    shown = ", ".join(f"{name} ({count:,})" for name, count in elements.most_common())
    lines = [
        f"- elements it has seen, and in how many molecules: {shown}",
        f"- 95 % of them have {low:.0f} to {high:.0f} heavy atoms",
        f"- {_neighbourhood(known)}",
        "- what was measured differently, at another place or time, may differ more than the scores say",
    ]
    return "\n".join(lines)


def _neighbourhood(known: KnownMolecules) -> str:
    """How similar the nearest other molecule of the training set usually is."""
    count = len(known.smiles)
    if count < 2:
        return "it has seen a single molecule"
    rows = np.random.default_rng(0).choice(count, min(count, _SAMPLE), replace=False)
    tanimoto, _ = known.similarities(known.vectors[rows], known.bits[rows])
    tanimoto[np.arange(len(rows)), rows] = -1
    nearest = tanimoto.max(axis=1)
    rare, usual = np.percentile(nearest, [5, 50])
    return (
        f"the nearest other molecule it has seen has a Tanimoto similarity of {usual:.2f} in the median, and of less "
        f"than {rare:.2f} for one in twenty: trust predictions less for molecules that are further away"
    )


def _contents(run: Run, predictor: Predictor, *, molecules: bool) -> str:
    networks = len(predictor.members)
    weights = sum(parameter.numel() for parameter in predictor.members[0].network.parameters())
    model = run.config.model
    made = ", ".join(f"{name} {version}" for name, version in run.summary["versions"].items())
    lines = [
        f"- {networks} network{'s' * (networks > 1)} ({model.name}, {model.layers} layers, {weights:,} weights each)",
        *(["- a forest on descriptors and Morgan counts"] if predictor.forests else []),
        "- the molecules it was trained on, with their labels"
        if molecules and predictor.known is not None
        else "- no molecules it was trained on",
        f"- made with {made}",
    ]
    return "\n".join(lines)
