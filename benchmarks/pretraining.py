"""A network that has learned molecules' descriptors, to start others from.

    python -m benchmarks.pretraining recombine TABLE [--molecules 10000]
    python -m benchmarks.pretraining learn OUT TABLE [TABLE ...] [--epochs 10] [--set model.layers=8]

``recombine`` writes a table of the molecules that come with RDKit and of new ones that BRICS makes of their fragments,
among which is more unusual chemistry than in sets of drug-like molecules.

``learn`` trains own/gatedgcn-lspe on all molecules of the tables to predict RDKit's 206 descriptors, standardised and
clipped, a part of them hidden in each molecule; molecules of the tables it is judged on are left out. It may be ended
and begun again. What such a start brings on small tables :mod:`benchmarks.tables` tells.
"""

import argparse
import csv
import random
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

import numpy as np
from rdkit import Chem
from rdkit.Chem import BRICS

from benchmarks.table_jobs import TABLES, Job
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
    arguments = parser.parse_args(words)
    if arguments.verb == "recombine":
        recombine(arguments.table, arguments.molecules)
    else:
        learn(arguments.out, arguments.molecules, arguments.epochs, arguments.set)


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


if __name__ == "__main__":
    main()
