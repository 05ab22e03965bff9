"""Does a start from a network that has learned molecules' descriptors help on small tables?

    python -m benchmarks.pretraining recombine TABLE [--molecules 10000]
    python -m benchmarks.pretraining learn OUT TABLE [TABLE ...] [--epochs 10] [--set model.layers=8]
    python -m benchmarks.pretraining judge OUT [--tables freesolv esol] [--splits 0 1]

``recombine`` writes a table of the molecules that come with RDKit and of new ones that BRICS makes of their fragments,
among which is more unusual chemistry than in sets of drug-like molecules.

``learn`` trains own/gatedgcn-lspe on all molecules of the tables to predict RDKit's 206 descriptors, standardised and
clipped, a part of them hidden in each molecule; molecules of the tables it is judged on are left out. It may be ended
and begun again. ``judge`` trains one network per table and division, from scratch and from there, with descriptors
beside its readout and without; each leaves a small JSON file in OUT and is not done again.
"""

import argparse
import csv
import json
import random
import tempfile
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from rdkit import Chem
from rdkit.Chem import BRICS

import lspe
from benchmarks.table_jobs import SPLITS, TABLES, Job, metric_of
from lspe.data import GraphData, read_table
from lspe.data.benchmarks.nci import read_molecules, source_file
from lspe.data.molecules.descriptors import RDKIT_NAMES
from lspe.data.molecules.smiles import MoleculeError, canonical
from lspe.experiment import override, read_experiment
from lspe.training import fit
from lspe.training.progress import progress_for_stdout

CLIPPED = 6.0
HIDDEN = 0.15
LARGEST_PART = 20
"""Heavy atoms of a fragment that is joined with another."""

WAYS: dict[str, tuple[bool, str]] = {
    "scratch": (False, "none"),
    "pre-trained": (True, "none"),
    "scratch, descriptors": (False, "rdkit"),
    "pre-trained, descriptors": (True, "rdkit"),
}


def main(words: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    verbs = parser.add_subparsers(dest="verb", required=True)
    recombining = verbs.add_parser("recombine")
    recombining.add_argument("table", type=Path)
    recombining.add_argument("--molecules", type=int, default=10_000, help="new ones")
    learning = verbs.add_parser("learn")
    learning.add_argument("out", type=Path)
    learning.add_argument("molecules", type=Path, nargs="+")
    learning.add_argument("--epochs", type=int, default=10)
    learning.add_argument("--set", action="append", default=[], help="of the network, as of lspe train")
    judging = verbs.add_parser("judge")
    judging.add_argument("out", type=Path)
    judging.add_argument("--tables", nargs="+", choices=TABLES, default=list(TABLES))
    judging.add_argument("--splits", nargs="+", choices=SPLITS, default=list(SPLITS))
    judging.add_argument("--lr", type=float, default=5e-4, help="of the networks that start from there")
    judging.add_argument("--set", action="append", default=[], help="of all networks, as of lspe train")
    arguments = parser.parse_args(words)
    if arguments.verb == "recombine":
        recombine(arguments.table, arguments.molecules)
    elif arguments.verb == "learn":
        learn(arguments.out, arguments.molecules, arguments.epochs, arguments.set)
    else:
        judge(arguments)


def recombine(table: Path, count: int) -> None:
    known = read_molecules(source_file())
    fragments = {name for molecule in known for name in BRICS.BRICSDecompose(molecule) if "*" in name}
    parts = [part for part in map(Chem.MolFromSmiles, sorted(fragments)) if part.GetNumHeavyAtoms() <= LARGEST_PART]
    random.seed(0)  # by which BRICS shuffles them
    names = {Chem.MolToSmiles(molecule): None for molecule in known}
    whole = len(names) + count
    for molecule in BRICS.BRICSBuild(parts, maxDepth=1, uniquify=False):
        molecule.UpdatePropertyCache(strict=False)
        names[Chem.MolToSmiles(molecule)] = None
        if len(names) == whole:
            break
    write_molecules(table, names)


def learn(out: Path, tables: list[Path], epochs: int, settings: list[str]) -> None:
    data = descriptors_as_targets(collected(out, tables))
    changes = [f"training.protocol.max_epochs={epochs}", "training.batch_size=128", *settings]
    experiment = override(read_experiment("own/gatedgcn-lspe"), changes)
    data = data.with_encodings(experiment.model.encodings)
    fit(experiment, data, out / "run", resume=(out / "run").exists(), progress=progress_for_stdout())


def collected(out: Path, tables: list[Path]) -> Path:
    """One table of all molecules, each once, without those that are judged by."""
    path = out / "molecules.csv"
    if path.exists():
        return path
    out.mkdir(parents=True, exist_ok=True)
    seen = {name for job in (Job(table, "0") for table in TABLES) for name in known_smiles(job.path)}
    new = dict.fromkeys(name for table in tables for name in known_smiles(table) if name not in seen)
    write_molecules(path.with_suffix(".tmp"), new)
    return path.with_suffix(".tmp").rename(path)


def write_molecules(table: Path, names: Iterable[str]) -> None:
    """With a number beside each, because tables are read with what is to be learned."""
    with table.open("w", newline="") as file:
        csv.writer(file).writerows([("smiles", "length"), *((name, len(name)) for name in names)])


def known_smiles(table: Path) -> list[str]:
    """The canonical SMILES of a table's molecules that can be read."""
    names = []
    for smiles in read_table(table, on_invalid="nan").smiles:
        try:
            names.append(canonical(smiles))
        except MoleculeError:
            continue
    return names


def descriptors_as_targets(table: Path) -> GraphData:
    """Descriptors that vary, in standard deviations from the mean; NaN where not defined, or hidden."""
    graphs = read_table(table, targets="length").to_graphs(seed=0, descriptors=("rdkit",))
    values = np.array(graphs.descriptors["rdkit"])
    train = values[graphs.splits["train"]]
    mean, spread = np.nanmean(train, axis=0), np.nanstd(train, axis=0)
    varied = spread > 1e-6
    values = np.clip((values - mean)[:, varied] / spread[varied], -CLIPPED, CLIPPED).astype(np.float32)
    values[np.random.default_rng(0).random(values.shape, dtype=np.float32) < HIDDEN] = np.nan
    names = tuple(name for name, use in zip(RDKIT_NAMES, varied, strict=True) if use)
    packed = replace(graphs.graphs, graph={**graphs.graphs.graph, "y": values})
    return replace(graphs, graphs=packed, num_outputs=len(names), task_names=names, descriptors={})


def judge(arguments: argparse.Namespace) -> None:
    for table in arguments.tables:
        for split in arguments.splits:
            for way in WAYS:
                path = place_of(arguments.out, table, split, way)
                if not path.exists():
                    started, descriptors = WAYS[way]
                    settings = [*arguments.set, *([f"training.protocol.lr={arguments.lr}"] if started else [])]
                    scores = judged(Job(table, split), arguments.out / "run", started, descriptors, settings)
                    path.write_text(json.dumps(scores, indent=1) + "\n")
    print(tabulate(arguments.out))


def place_of(out: Path, table: str, split: str, way: str) -> Path:
    return out / f"{table}--{split}--{way.replace(', ', '-')}.json"


def judged(job: Job, run: Path, start: bool, descriptors: Any, settings: list[str]) -> dict[str, float]:
    """Scores of one network on validation and test part."""
    settings = ["training.forest=false", *settings]
    if job.split != "scaffold":
        settings.append(f"table.split_seed={job.split}")
    settings += [f"model.{name}={value}" for name, value in body_of(run).items()]
    with tempfile.TemporaryDirectory() as folder:
        trained = lspe.train(
            job.path, targets=[job.target], on_invalid="skip", split=job.division["split"], members=1,
            descriptors=descriptors, settings=settings, start=run if start else None, out=Path(folder, "run"),
        )  # fmt: skip
        reported = trained.summary["reported"]
    return {part: reported[part][metric_of(job.table)] for part in ("val", "test")}


def body_of(run: Path) -> dict[str, Any]:
    """What the networks that start from a run must have as it has."""
    model = lspe.training.Run.open(run).config.model
    return {name: getattr(model, name) for name in ("layers", "hidden_dim", "k")}


def tabulate(out: Path) -> str:
    """A row per table, a column per way: the mean over the divisions that are there, on the test part."""
    rows = [["table", *WAYS], ["---"] * (len(WAYS) + 1)]
    for table in TABLES:
        cells = []
        for way in WAYS:
            paths = [place_of(out, table, split, way) for split in SPLITS]
            found = [json.loads(path.read_text())["test"] for path in paths if path.exists()]
            cells.append(f"{np.mean(found):.3f} ± {np.std(found):.3f} ({len(found)})" if found else "")
        if any(cells):
            rows.append([f"{table}, {metric_of(table)}", *cells])
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


if __name__ == "__main__":
    main()
