"""The benchmarks by name."""

from __future__ import annotations

import pickle
import zipfile
import zlib
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import partial
from importlib import import_module
from typing import Any

from lspe.data.benchmarks.download import find
from lspe.data.errors import DataError
from lspe.data.graphdata import GraphData
from lspe.data.molecules.kept_descriptors import kept_descriptors
from lspe.data.words import DescriptorKind
from lspe.locations import Root, data_root

_DAMAGED = (zipfile.BadZipFile, zlib.error, EOFError, pickle.UnpicklingError, UnicodeDecodeError)


@dataclass(frozen=True)
class Benchmark:
    """A set known by name: one line about it, the files of the data root it is read from, and what opens it.

    ``folds`` is in how many ways it is divided for cross-validation; 0 where it comes with one division.
    ``smiles_by`` is what finds the SMILES of its graphs, where these are molecules that can be described.
    """

    name: str
    summary: str
    opened_by: str
    files: tuple[str, ...] = ()
    folds: int = 0
    smiles_by: str = ""

    def open(self, root: Root = None, descriptors: Iterable[DescriptorKind] = ()) -> GraphData:
        """Map the set, converting (and downloading) it first where it has to be; with descriptors if asked for."""
        try:
            data: GraphData = _function(self.opened_by)(root)
            if not (kinds := tuple(descriptors)):
                return data
            if not self.smiles_by:
                raise DataError(
                    f"{self.name} has no SMILES of which descriptors could be computed: leave them and the forest out "
                    "(model.descriptors=none, training.forest=false)"
                )
            smiles = partial(_function(self.smiles_by), root)
            return replace(data, descriptors={kind: kept_descriptors(data.graphs.path, smiles, kind) for kind in kinds})
        except _DAMAGED as error:
            where = next((path for file in self.files if (path := find(file, root))), data_root(root))
            raise DataError(f"{where} is damaged ({error}). Delete it and get it again.") from error


def _function(name: str) -> Callable[[Root], Any]:
    module, _, function = name.partition(":")
    found: Callable[[Root], Any] = getattr(import_module(f"lspe.data.benchmarks.{module}"), function)
    return found


_BENCHMARKS = (
    Benchmark("nci", "4,752 molecules that come with RDKit, penalised logP", "nci:load"),
    Benchmark("csl", "150 circular skip link graphs in 10 classes, 5 folds", "csl:load", folds=5),
    Benchmark(
        "zinc",
        "12,000 drug-like molecules, penalised logP",
        "zinc:load_subset",
        ("zinc12k_graphs.npz", "molecules.zip"),
    ),
    Benchmark(
        "zinc-full",
        "249,456 drug-like molecules, penalised logP",
        "zinc:load_full",
        ("zinc250k.csv.gz", "molecules.zip"),
    ),
    Benchmark(
        "moltox21",
        "7,831 molecules, 12 toxicity targets",
        "ogb:load_moltox21",
        ("tox21_graphs.npz", "tox21.zip"),
        smiles_by="ogb:smiles_of_moltox21",
    ),
    Benchmark("molpcba", "437,929 molecules, 128 assays", "ogb:load_molpcba", ("pcba.zip",)),
    Benchmark(
        "imdb-binary",
        "1,000 ego networks of actors in 2 classes, 10 folds",
        "imdb:load_binary",
        ("IMDB-BINARY.zip",),
        folds=10,
    ),
    Benchmark(
        "imdb-multi",
        "1,500 ego networks of actors in 3 classes, 10 folds",
        "imdb:load_multi",
        ("IMDB-MULTI.zip",),
        folds=10,
    ),
    Benchmark(
        "cifar10",
        "60,000 images as graphs of superpixels in 10 classes",
        "cifar10:load",
        ("cifar10_superpixels.npz", "CIFAR10_v2.zip"),
    ),
    Benchmark("cluster", "12,000 graphs of six communities, one of which each node belongs to", "sbm:load_cluster"),
    Benchmark("pattern", "14,000 graphs of communities with a pattern among them to find", "sbm:load_pattern"),
    Benchmark(
        "pubmed",
        "one graph of 19,717 papers that cite each other in 3 fields",
        "planetoid:load_pubmed",
        ("planetoid_pubmed.npz",),
    ),
    Benchmark(
        "citeseer",
        "one graph of 3,327 papers that cite each other in 6 fields",
        "planetoid:load_citeseer",
        ("planetoid_citeseer.npz",),
    ),
    Benchmark(
        "ca-astroph",
        "one graph of 18,772 authors who wrote together; half of the links are hidden",
        "astroph:load",
        ("ca_astroph.npz",),
    ),
)


def available() -> dict[str, Benchmark]:
    """Every benchmark by name."""
    return {benchmark.name: benchmark for benchmark in _BENCHMARKS}


def load_benchmark(
    name: str,
    root: Root = None,
    *,
    encoding: str | None = None,
    k: int | None = None,
    descriptors: Iterable[DescriptorKind] = (),
) -> GraphData:
    """A benchmark by name; if asked for, with an encoding of `k` columns on its nodes and descriptors of its molecules.

    It is read from `root` (else ``$LSPE_DATA``, else the user's cache) where its file is there, otherwise
    downloaded from its official source, converted once, and mapped from the converted file ever after.
    """
    if name not in available():
        raise DataError(f"there is no data set {name!r}; there are {', '.join(available())}")
    if (encoding is None) != (k is None):
        raise DataError("an encoding needs both its kind and its number of columns: encoding='rwpe', k=20")
    data = available()[name].open(root, descriptors)
    return data if encoding is None or k is None else data.with_encoding(encoding, k)
