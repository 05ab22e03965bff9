"""From files to batches: benchmarks by name, a person's own table, one packed format for all.

The names are loaded on first use: worker processes that turn molecules into graphs need neither PyTorch
nor pandas.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from lspe.data.benchmarks import Benchmark, available, load
    from lspe.data.errors import CorruptFileError, DataError
    from lspe.data.features import Features
    from lspe.data.graphdata import GraphData
    from lspe.data.loader import BatchLoader
    from lspe.data.molecules import smiles_to_data, smiles_to_graphs
    from lspe.data.packed import PackedGraphs, PackedWriter
    from lspe.data.pyg import from_pyg
    from lspe.data.reading import TableChunk, iter_table_chunks
    from lspe.data.table import Table, read_table

_HOME = {
    "BatchLoader": "loader",
    "Benchmark": "benchmarks",
    "CorruptFileError": "errors",
    "DataError": "errors",
    "Features": "features",
    "GraphData": "graphdata",
    "PackedGraphs": "packed",
    "PackedWriter": "packed",
    "Table": "table",
    "TableChunk": "reading",
    "available": "benchmarks",
    "from_pyg": "pyg",
    "iter_table_chunks": "reading",
    "load": "benchmarks",
    "read_table": "table",
    "smiles_to_data": "molecules",
    "smiles_to_graphs": "molecules",
}

__all__ = [
    "BatchLoader",
    "Benchmark",
    "CorruptFileError",
    "DataError",
    "Features",
    "GraphData",
    "PackedGraphs",
    "PackedWriter",
    "Table",
    "TableChunk",
    "available",
    "from_pyg",
    "iter_table_chunks",
    "load",
    "read_table",
    "smiles_to_data",
    "smiles_to_graphs",
]


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'lspe.data' has no attribute {name!r}")
    return getattr(import_module(f"lspe.data.{_HOME[name]}"), name)


def __dir__() -> list[str]:
    return sorted(__all__)
