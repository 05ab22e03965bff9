"""Whether a source holds graphs, told without loading what reads them."""

from __future__ import annotations

import os
from pathlib import Path

PYG, OGB = "pyg:", "ogb:"
"""Begin the names of data sets of PyG and of OGB."""

EDGES, BINARY, TYPED = "raw/edge.csv.gz", "raw/data.npz", "raw/triplet-type-list.csv.gz"
"""One of these is in each archive of OGB."""


def are_graphs(source: str | os.PathLike[str]) -> bool:
    """Whether a source holds graphs, not a table of molecules."""
    return is_named(str(source)) or is_stored_graphs(source)


def is_named(source: str) -> bool:
    """Whether a source is a data set of PyG or of OGB by name."""
    return source.startswith((PYG, OGB))


def is_stored_graphs(path: str | os.PathLike[str]) -> bool:
    """Whether a path is a file or folder of graphs to learn from; a Parquet file may be a table of molecules too."""
    name = Path(path)
    if name.suffix.lower() == ".parquet" and os.path.isfile(name):
        import pyarrow.parquet as pq

        try:
            return "edge_index" in pq.read_schema(name).names
        except (OSError, ValueError):
            return False
    return os.path.isdir(name) or name.suffix.lower() in (".npz", ".json") or is_archive(name)


def is_archive(path: str | os.PathLike[str]) -> bool:
    """Whether a path is an archive of OGB: a folder with raw tables, or a zip file with such a folder."""
    if os.path.isdir(path):
        return any(os.path.isfile(os.path.join(path, file)) for file in (EDGES, BINARY, TYPED))
    return str(path).lower().endswith(".zip") and os.path.isfile(path)
