"""Data sets by name: PyG's own (``pyg:TUDataset/MUTAG``, ``pyg:ZINC``) and OGB's (``ogb:ogbn-arxiv``)."""

from __future__ import annotations

import inspect
from difflib import get_close_matches
from typing import Any

import numpy as np
import torch
from torch_geometric.data import Data

from lspe.data.errors import DataError
from lspe.data.graphs.ogb import find_archive, read_archive
from lspe.data.graphs.pyg import CLASSES
from lspe.data.graphs.recognition import OGB, PYG
from lspe.data.graphs.stored import StoredGraphs
from lspe.data.packed.pointers import pointers
from lspe.data.splits import NAMES
from lspe.locations import cache_root


def read_named(source: str) -> StoredGraphs:
    """The graphs of ``pyg:CLASS`` or ``pyg:CLASS/NAME``, which PyG downloads and keeps in the cache, or of
    ``ogb:NAME``, whose archive is in the data root.

    Where the class has parts of its own (``split="train"``, ``"val"`` and ``"test"``), these are the parts.
    """
    if source.startswith(OGB):
        return read_archive(find_archive(source.removeprefix(OGB)))
    kind, _, name = source.removeprefix(PYG).partition("/")
    make = _class_of(kind, source)
    takes = inspect.signature(make).parameters
    arguments: dict[str, Any] = {}
    if "root" in takes:
        arguments["root"] = str(cache_root() / "pyg" / kind)
    if name and "name" not in takes:
        raise DataError(f"{source}: {kind} has no name to choose by: write {PYG}{kind}")
    if name:
        arguments["name"] = name
    elif "name" in takes and takes["name"].default is inspect.Parameter.empty:
        raise DataError(f"{source}: {kind} holds several sets: write {PYG}{kind}/NAME")
    has_parts = "split" in takes and takes["split"].default == "train"
    given = [{"split": part} for part in NAMES] if has_parts else [{}]
    try:
        with torch.serialization.safe_globals(CLASSES):
            parts: list[list[Data]] = [list(make(**arguments, **one)) for one in given]
    except Exception as error:  # PyG's sets fail in many ways
        raise DataError(f"{source} could not be had from PyG: {type(error).__name__}: {error}") from error
    graphs = [graph for part in parts for graph in part]
    for graph in graphs:
        if not isinstance(graph, Data):
            raise DataError(f"{source} holds {type(graph).__name__}, not torch_geometric.data.Data")
    if not has_parts:
        return StoredGraphs(graphs, None)
    ptr = pointers([len(part) for part in parts])
    return StoredGraphs(graphs, None, {part: np.arange(ptr[i], ptr[i + 1]) for i, part in enumerate(NAMES)})


def _class_of(kind: str, source: str) -> Any:
    from torch_geometric import datasets

    if kind not in datasets.__all__ or not inspect.isclass(found := getattr(datasets, kind)):
        close = get_close_matches(kind, datasets.__all__, n=1)
        raise DataError(
            f"{source}: PyG has no data set {kind!r}" + (f"; did you mean {PYG}{close[0]}?" if close else "")
        )
    return found
