"""From files to batches: benchmarks by name, a person's own table, one packed format for all.

The names are loaded on first use: worker processes that turn molecules into graphs need neither PyTorch
nor pandas.
"""

from typing import TYPE_CHECKING

from lspe._lazy import names_on_use

if TYPE_CHECKING:
    from lspe.data.benchmarks.catalogue import Benchmark, available, load_benchmark
    from lspe.data.errors import CorruptFileError, DataError
    from lspe.data.graphdata import GraphData
    from lspe.data.graphs.pyg import from_pyg
    from lspe.data.loader import BatchLoader
    from lspe.data.molecules.conversion import smiles_to_data, smiles_to_graphs
    from lspe.data.packed.sets import PackedGraphs
    from lspe.data.packed.writer import PackedWriter
    from lspe.data.table.reading import TableChunk, iter_table_chunks
    from lspe.data.table.table import Table, read_table
    from lspe.features import Features

_HOME = {
    "BatchLoader": ".loader",
    "Benchmark": ".benchmarks.catalogue",
    "CorruptFileError": ".errors",
    "DataError": ".errors",
    "Features": "lspe.features",
    "GraphData": ".graphdata",
    "PackedGraphs": ".packed.sets",
    "PackedWriter": ".packed.writer",
    "Table": ".table.table",
    "TableChunk": ".table.reading",
    "available": ".benchmarks.catalogue",
    "from_pyg": ".graphs.pyg",
    "iter_table_chunks": ".table.reading",
    "load_benchmark": ".benchmarks.catalogue",
    "read_table": ".table.table",
    "smiles_to_data": ".molecules.conversion",
    "smiles_to_graphs": ".molecules.conversion",
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
    "load_benchmark",
    "read_table",
    "smiles_to_data",
    "smiles_to_graphs",
]

__getattr__, __dir__ = names_on_use(__name__, _HOME)
