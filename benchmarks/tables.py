"""Our default for a chemist's table against what else they would use, on the same divisions of public tables.

    python -m benchmarks.tables --out results/tables                    # everything that is not there yet
    python -m benchmarks.tables --tables freesolv esol --splits 0 1     # some of it
    python -m benchmarks.tables --peers PYTHON      # with LightGBM and chemprop, in an environment with the extra bench
    python -m benchmarks.tables --sizes 100 300 1000                    # learning curves

Tables are read from $LSPE_DATA. Each (table, split, method) leaves a small JSON file and is not done again. With
``--runs DIR`` the run folders of ours are kept: what was interrupted goes on, and where only the forest or the blending
changed, the networks are not trained again. Splits 0 to 4 are random (80/10/10), ``scaffold`` is by scaffold. All
methods may use the validation part as they like: forests learn from it, chemprop and our networks choose epochs by it.
With a size, so many molecules that are not tested are drawn, a ninth of them for validation, and all of the test part
is predicted. Where chemprop has no number for a molecule, because a descriptor of its own is not defined, the mean of
the others stands for it, and the file says of how many.
"""

import argparse
import itertools
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import lspe
from lspe.data import GraphData, read_table
from lspe.experiment.task import LOWER_IS_BETTER
from lspe.predict.calibration import BINS, bins_of
from lspe.training import Run

TOX21 = "tox21.csv.gz"
TABLES: dict[str, tuple[str, str]] = {
    "esol": ("molnet/esol.csv.gz", "y"),
    "freesolv": ("molnet/freesolv.csv.gz", "y"),
    "bbbp": ("molnet/bbbp.csv.gz", "p_np"),
    "clintox": ("molnet/clintox.csv.gz", "CT_TOX"),
    "tox21-NR-AhR": (TOX21, "NR-AhR"),
    "tox21-SR-ARE": (TOX21, "SR-ARE"),
    "tox21-SR-MMP": (TOX21, "SR-MMP"),
}
SPLITS = ("0", "1", "2", "3", "4", "scaffold")
OURS: dict[str, dict[str, Any]] = {
    "lspe": {},
    "lspe, one network, no forest": {"members": 1, "settings": ["training.forest=false"]},
    "lspe, no descriptors": {"descriptors": "none", "settings": ["training.forest=false"]},
}


@dataclass(frozen=True)
class Job:
    """A table under one division, whole or with so many molecules that are not tested."""

    table: str
    split: str
    size: int | None = None

    @property
    def path(self) -> Path:
        if self.size is None:
            return Path(os.environ["LSPE_DATA"]) / TABLES[self.table][0]
        path = Path(tempfile.gettempdir(), "lspe-tables", f"{self.table}-{self.split}-{self.size}.csv")
        if not path.exists():
            path.parent.mkdir(exist_ok=True)
            self._drawn().to_csv(path, index=False)
        return path

    def _drawn(self) -> pd.DataFrame:
        data = Job(self.table, self.split).data()
        others = np.concatenate([data.splits["train"], data.splits["val"]])
        drawn = np.random.default_rng(0).permutation(others)[: self.size]
        parts = {"val": drawn[: len(drawn) // 9], "train": drawn[len(drawn) // 9 :], "test": data.splits["test"]}
        labels = data.graphs.graph["y"][:, 0]
        return pd.concat(
            pd.DataFrame({"smiles": np.array(data.smiles)[rows], self.target: labels[rows], "split": name})
            for name, rows in parts.items()
        )

    @property
    def target(self) -> str:
        return TABLES[self.table][1]

    @property
    def division(self) -> dict[str, Any]:
        if self.size is not None:
            return {"split": "column"}
        return {"split": "scaffold"} if self.split == "scaffold" else {"split": "random", "seed": int(self.split)}

    def data(self) -> GraphData:
        """With both kinds of descriptors."""
        table = read_table(self.path, targets=self.target, on_invalid="skip")
        return table.to_graphs(**self.division, descriptors=("rdkit", "morgan"))


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
            parts = {}
            if together is not None:
                parts = {"weights": together["weights"], "alone": together["test"], **trust(together, job, trained)}
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


def trust(together: dict[str, Any], job: Job, trained: Run) -> dict[str, Any]:
    """How many test values lie in their 90 % intervals, or how far probabilities are from frequencies.

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
    return {"calibration_error": together["calibration"]["test_error"], "bins": bins.round(6).tolist()}


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


def chemprop(more: list[str]) -> Method:
    def run(job: Job, arguments: argparse.Namespace) -> Scores:
        data = job.data()
        y = data.graphs.graph["y"][:, 0]
        frame = pd.DataFrame({"smiles": data.smiles, "y": y, "split": "train"})
        for name, part in data.splits.items():
            frame.loc[part, "split"] = name
        kind = "classification" if is_binary(y) else "regression"
        program = [Path(arguments.peers).with_name("chemprop")]
        with tempfile.TemporaryDirectory() as folder:
            table, new, found = (Path(folder) / name for name in ("table.csv", "new.csv", "found.csv"))
            frame.to_csv(table, index=False)
            frame.loc[data.splits["test"], ["smiles"]].to_csv(new, index=False)
            columns = ["--smiles-columns", "smiles"]
            about = ["--target-columns", "y", "--splits-column", "split", "--task-type", kind]
            subprocess.run(
                [*program, "train", "-i", table, *columns, *about, "-o", f"{folder}/run", *more],
                check=True,
                capture_output=True,
            )
            model = f"{folder}/run/model_0/best.pt"
            subprocess.run(
                [*program, "predict", "-i", new, *columns, "--model-paths", model, "-o", found, *more],
                check=True,
                capture_output=True,
            )
            predicted = pd.read_csv(found)["y"].to_numpy()
            defined = ~np.isnan(predicted)
            filled = np.where(defined, predicted, predicted[defined].mean())
            undefined = {} if defined.all() else {"undefined": int((~defined).sum())}
            return {"score": score(y[data.splits["test"]], filled), **undefined}

    return run


METHODS: dict[str, Method] = {
    **{name: ours(name, options) for name, options in OURS.items()},
    "forest, Morgan": forest("morgan"),
    "forest, descriptors": forest("rdkit"),
    "LightGBM, descriptors": lightgbm,
    "chemprop": chemprop([]),
    "chemprop, RDKit": chemprop(["--molecule-featurizers", "rdkit_2d"]),
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


def metric_of(table: str) -> str:
    return "rmse" if table in ("esol", "freesolv") else "roc_auc"


def place_of(out: Path, job: Job, method: str) -> Path:
    size = "" if job.size is None else f"--{job.size}"
    return out / f"{job.table}--{job.split}{size}--{method.replace(', ', '-').replace(' ', '-')}.json"


def tabulate(out: Path, sizes: Sequence[int | None] = (None,)) -> str:
    """A row per table, random splits and scaffold split apart, a column per method: mean ± sd, and mean seconds."""
    rows = [["table", *METHODS], ["---"] * (len(METHODS) + 1)]
    for table, size in itertools.product(TABLES, sizes):
        for name, splits in (("random", SPLITS[:-1]), ("scaffold", SPLITS[-1:])):
            jobs = [Job(table, split, size) for split in splits]
            cells = [_cell([place_of(out, job, method) for job in jobs]) for method in METHODS]
            if any(cells):
                arrow = "↓" if metric_of(table) in LOWER_IS_BETTER else "↑"
                what = name if size is None else f"{name}, {size} molecules"
                rows.append([f"{table}, {what}, {metric_of(table)} {arrow}", *cells])
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


def tabulate_trust(out: Path) -> str:
    """How far to trust our default: the share of test values in their 90 % intervals, or the calibration error.

    The error of a few hundred molecules is mostly chance: that of all random splits' molecules together stands beside.
    """
    rows = [["table", "what", "random splits", "scaffold", "random splits together"], ["---"] * 5]
    for table in TABLES:
        what = "coverage" if metric_of(table) == "rmse" else "calibration_error"
        random, scaffold = (
            _found([place_of(out, Job(table, split), "lspe") for split in splits])
            for splits in (SPLITS[:-1], SPLITS[-1:])
        )
        if random or scaffold:
            values = [[one[what] for one in found] for found in (random, scaffold)]
            cells = [f"{np.mean(each):.3f} ({min(each):.3f} to {max(each):.3f})" if each else "" for each in values]
            rows.append([table, what.replace("_", " "), *cells, _error_together(random)])
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


def _found(paths: list[Path]) -> list[Scores]:
    return [json.loads(path.read_text()) for path in paths if path.exists()]


def _error_together(found: list[Scores]) -> str:
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


def main(words: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=Path("results/tables"))
    parser.add_argument("--tables", nargs="+", choices=TABLES, default=list(TABLES))
    parser.add_argument("--splits", nargs="+", choices=SPLITS, default=list(SPLITS))
    parser.add_argument("--sizes", nargs="+", type=int, default=[None], help="molecules that are not tested")
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
        if path.exists() or method in absent:
            continue
        job.data()  # descriptors are computed once for all methods and not counted
        begin = time.perf_counter()
        result = METHODS[method](job, arguments) | asdict(job)
        result |= {"method": method, "metric": metric_of(job.table)}
        result["seconds"] = round(time.perf_counter() - begin, 1)
        path.write_text(json.dumps(result, indent=1) + "\n")
        print(f"{path.stem}: {result['score']:.4f} in {result['seconds']:.0f} s", file=sys.stderr)
    print(tabulate(arguments.out, arguments.sizes), tabulate_trust(arguments.out), sep="\n\n")


if __name__ == "__main__":
    main()
