"""Our default for a chemist's table against what else they would use, on the same divisions of public tables.

    python -m benchmarks.tables --out results/tables                    # everything that is not there yet
    python -m benchmarks.tables --tables freesolv esol --splits 0 1     # some of it
    python -m benchmarks.tables --peers PYTHON      # with LightGBM and chemprop, in an environment with the extra bench
    python -m benchmarks.tables --sizes 100 300 1000 --picture curves.png                 # learning curves
    python -m benchmarks.tables --methods lspe "lspe, pre-trained"      # what a start from descriptors brings

Tables are read from $LSPE_DATA. Each (table, split, method) leaves a small JSON file and is not done again. With
``--runs DIR`` the run folders of ours are kept: what was interrupted goes on, and where only the forest or the blending
changed, the networks are not trained again. Splits 0 to 4 are random (80/10/10), ``scaffold`` is by scaffold. All
methods may use the validation part as they like: forests learn from it, chemprop and our networks choose epochs by it.
With a size, so many molecules that are not tested are drawn, a ninth of them for validation, and all of the test part
is predicted; tables with fewer are passed over. Where chemprop has no number for a molecule, because a descriptor of
its own is not defined, the mean of the others stands for it, and the file says of how many. Ours, pre-trained, is the
default whose networks begin from what :mod:`benchmarks.pretraining` has learned, with half the learning rate; half rate
is the control of those networks.
"""

import argparse
import itertools
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import lspe
from benchmarks.learning_curves import draw_learning_curves
from benchmarks.table_jobs import SPLITS, TABLES, TOX21, Job, metric_of, place_of
from benchmarks.table_results import tabulate, tabulate_parts, tabulate_trust, tabulate_variants
from lspe.predict.calibration import BINS, bins_of
from lspe.training import Run, open_runs

START = Path(__file__).parents[1] / "results" / "pretraining" / "network"
NO_DESCRIPTORS = "networks, no descriptors"
NO_FOREST, HALF_RATE = "training.forest=false", "training.protocol.lr=5e-4"
OURS: dict[str, dict[str, Any]] = {
    "lspe": {},
    NO_DESCRIPTORS: {"descriptors": "none", "settings": [NO_FOREST]},
    "networks, half rate": {"settings": [NO_FOREST, HALF_RATE]},
    "lspe, pre-trained": {"start": START, "settings": [HALF_RATE]},
}
"""The default, and others that show what descriptors beside the readout bring, and a start from them."""

Scores = dict[str, Any]
Method = Callable[[Job, argparse.Namespace], Scores]


def ours(method: str, options: dict[str, Any]) -> Method:
    def run(job: Job, arguments: argparse.Namespace) -> Scores:
        settings = [*options.get("settings", [])]
        if "seed" in job.division:
            settings.append(f"table.split_seed={job.split}")
        with run_folder(arguments.runs, place_of(Path(), job, method).stem) as folder:
            trained = lspe.train(
                job.path,
                targets=[job.target],
                on_invalid="skip",
                split=job.division["split"],
                out=folder,
                resume=folder.exists(),
                **{**options, "settings": settings},
            )
            together = trained.summary.get("together")
            test = trained.summary["reported"]["test"] if together is None else together["test"]["together"]
            parts: Scores = {"members": members(trained.path, metric_of(job.table))}
            if together is not None:
                parts |= {"weights": together["weights"], "alone": together["test"], **trust(together, job, trained)}
        return {"score": test["rmse" if "rmse" in test else "roc_auc"], **parts}

    return run


@contextmanager
def run_folder(runs: Path | None, name: str) -> Iterator[Path]:
    """A folder below ``runs``, which stays, or one that is forgotten."""
    if runs is not None:
        yield runs / name
        return
    with tempfile.TemporaryDirectory() as folder:
        yield Path(folder) / name


def members(folder: Path, metric: str) -> list[dict[str, Any]]:
    """Of each network by itself the test score, and which descriptors it sees."""
    return [
        {"descriptors": run.config.model.beside, "score": run.summary["reported"]["test"][metric]}
        for run in open_runs(folder)
    ]


def trust(together: dict[str, Any], job: Job, trained: Run) -> dict[str, Any]:
    """How many test values lie in their 90 % intervals, or how far probabilities are from frequencies, also by chance.

    ``bins``: of the test molecules in each bin of probabilities, how many there are and how many more of them are yes
    than was said; so that those of several splits can be added up.
    """
    if "intervals" in together:
        return {"coverage": together["intervals"]["test_coverage"]}
    data = job.data()
    test = data.splits["test"]
    predicted = lspe.load(trained.path).predict([data.smiles[row] for row in test], processes=1)
    number, excess = bins_of(predicted), data.graphs.graph["y"][test, 0] - predicted
    bins = np.stack([np.bincount(number, minlength=BINS), np.bincount(number, excess, minlength=BINS)], axis=1)
    errors = {
        f"calibration_error{which}": together["calibration"][f"test_error{which}"] for which in ("", "_by_chance")
    }
    return {**errors, "bins": bins.round(6).tolist()}


def forest(kind: str) -> Method:
    def run(job: Job, arguments: argparse.Namespace) -> Scores:
        from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor

        x, y, train, test = arrays(job, kind)
        model = RandomForestClassifier if is_binary(y) else RandomForestRegressor
        fitted = model(500, random_state=0, n_jobs=arguments.threads).fit(x[train], y[train])
        predicted = fitted.predict_proba(x[test])[:, 1] if is_binary(y) else fitted.predict(x[test])
        return {"score": score(y[test], predicted)}

    return run


LIGHTGBM = """
import sys, numpy as np, lightgbm
a = np.load(sys.argv[1])
kind = lightgbm.LGBMClassifier if set(np.unique(a["y"])) <= {0, 1} else lightgbm.LGBMRegressor
model = kind(n_jobs=int(sys.argv[3]), verbose=-1).fit(a["x"], a["y"])
p = model.predict_proba(a["new"])[:, 1] if kind is lightgbm.LGBMClassifier else model.predict(a["new"])
np.save(sys.argv[2], p)
"""


def lightgbm(job: Job, arguments: argparse.Namespace) -> Scores:
    x, y, train, test = arrays(job, "rdkit")
    with tempfile.TemporaryDirectory() as folder:
        given, found = Path(folder) / "given.npz", Path(folder) / "found.npy"
        np.savez(given, x=x[train], y=y[train], new=x[test])
        command = [arguments.peers, "-c", LIGHTGBM, str(given), str(found), str(arguments.threads)]
        subprocess.run(command, check=True, capture_output=True)
        return {"score": score(y[test], np.load(found))}


def chemprop(*, descriptors: bool) -> Method:
    def run(job: Job, arguments: argparse.Namespace) -> Scores:
        data = job.data()
        y, test = data.graphs.graph["y"][:, 0], data.splits["test"]
        frame = pd.DataFrame({"smiles": data.smiles, "y": y, "split": "train"})
        for name, part in data.splits.items():
            frame.loc[part, "split"] = name
        kind = "classification" if is_binary(y) else "regression"
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)

            def call(verb: str, rows: pd.DataFrame, *options: Any) -> None:
                table = folder / f"{verb}.csv"
                rows.to_csv(table, index=False)
                more = rdkit_for_chemprop(job, rows.index, folder / f"{verb}.npz") if descriptors else []
                program = Path(arguments.peers).with_name("chemprop")
                command = [program, verb, "-i", table, "--smiles-columns", "smiles", *options, *more]
                subprocess.run(command, check=True, capture_output=True)

            about = ["--target-columns", "y", "--splits-column", "split", "--task-type", kind]
            call("train", frame, *about, "-o", folder / "run")
            new = frame.loc[test, ["smiles"]]
            call("predict", new, "--model-paths", folder / "run/model_0/best.pt", "-o", folder / "found.csv")
            predicted = pd.read_csv(folder / "found.csv")["y"].to_numpy()
        defined = ~np.isnan(predicted)
        filled = np.where(defined, predicted, predicted[defined].mean())
        undefined = {} if defined.all() else {"undefined": int((~defined).sum())}
        return {"score": score(y[test], filled), **undefined}

    return run


def rdkit_for_chemprop(job: Job, rows: Any, path: Path) -> list[Any]:
    """What makes it use RDKit's descriptors: its own, or, of Tox21, those that forests get.

    Of some metals one of its own is infinite, and it refuses the table.
    """
    if TABLES[job.table][0] != TOX21:
        return ["--molecule-featurizers", "rdkit_2d"]
    np.savez(path, arrays(job, "rdkit")[0][rows])
    return ["--descriptors-path", path]


METHODS: dict[str, Method] = {
    **{name: ours(name, options) for name, options in OURS.items()},
    "forest, Morgan": forest("morgan"),
    "forest, descriptors": forest("rdkit"),
    "LightGBM, descriptors": lightgbm,
    "chemprop": chemprop(descriptors=False),
    "chemprop, RDKit": chemprop(descriptors=True),
}
PEERS = {"LightGBM, descriptors", "chemprop", "chemprop, RDKit"}


def arrays(job: Job, kind: str) -> tuple[Any, Any, Any, Any]:
    """Descriptors and labels of all molecules, which of them are learned from, and which are tested."""
    data = job.data()
    x = np.nan_to_num(np.asarray(data.descriptors[kind], dtype=np.float32))
    if kind == "morgan":
        x = (x > 0).astype(np.float32)
    learned = np.concatenate([data.splits["train"], data.splits["val"]])
    return x, data.graphs.graph["y"][:, 0], learned, data.splits["test"]


def is_binary(y: Any) -> bool:
    return set(np.unique(y)) <= {0.0, 1.0}


def score(y: Any, predicted: Any) -> float:
    from sklearn.metrics import roc_auc_score, root_mean_squared_error

    return float(roc_auc_score(y, predicted) if is_binary(y) else root_mean_squared_error(y, predicted))


def main(words: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=Path("results/tables"))
    parser.add_argument("--tables", nargs="+", choices=TABLES, default=list(TABLES))
    parser.add_argument("--splits", nargs="+", choices=SPLITS, default=list(SPLITS))
    parser.add_argument("--sizes", nargs="+", type=int, default=[None], help="molecules that are not tested")
    parser.add_argument("--picture", type=Path, help="draw the scores of the methods at these sizes")
    parser.add_argument("--methods", nargs="+", choices=METHODS, default=list(METHODS))
    parser.add_argument("--runs", type=Path, help="keep our run folders here, and go on with those that are there")
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    parser.add_argument("--peers", help="Python that has LightGBM and chemprop")
    arguments = parser.parse_args(words)
    arguments.out.mkdir(parents=True, exist_ok=True)
    absent = PEERS if arguments.peers is None else set()
    jobs = itertools.starmap(Job, itertools.product(arguments.tables, arguments.splits, arguments.sizes))
    for job, method in itertools.product(jobs, arguments.methods):
        path = place_of(arguments.out, job, method)
        if path.exists() or method in absent or not job.is_large_enough:
            continue
        job.data()  # descriptors are computed once for all methods and not counted
        begin = time.perf_counter()
        result = METHODS[method](job, arguments) | asdict(job)
        result |= {"method": method, "metric": metric_of(job.table)}
        result["seconds"] = round(time.perf_counter() - begin, 1)
        path.write_text(json.dumps(result, indent=1) + "\n")
        print(f"{path.stem}: {result['score']:.4f} in {result['seconds']:.0f} s", file=sys.stderr)
    print(
        tabulate(arguments.out, METHODS, arguments.sizes),
        tabulate_parts(arguments.out, NO_DESCRIPTORS),
        tabulate_variants(arguments.out, list(OURS)[1:]),
        tabulate_trust(arguments.out),
        sep="\n\n",
    )
    if arguments.picture is not None:
        draw_learning_curves(arguments.out, arguments.methods, arguments.sizes, arguments.picture)


if __name__ == "__main__":
    main()
