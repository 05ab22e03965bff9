"""What the columns of a packed set have to be."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from lspe.data.errors import DataError
from lspe.data.packed.container import Array


def check_columns(
    node: Mapping[str, Array],
    edge: Mapping[str, Array],
    graph: Mapping[str, Array],
    graphs: int,
    nodes: int,
    edges: int,
) -> None:
    """Refuse names that PyG gives a meaning of its own, a wrong number of rows, and features that are no numbers.

    A target may be unknown, which is NaN.
    """
    for level, columns, rows in (("node", node, nodes), ("edge", edge, edges), ("graph", graph, graphs)):
        for name, column in columns.items():
            if "index" in name or name in ("batch", "ptr", "num_nodes", "adj", "face", "source", "target"):
                raise DataError(f"a column cannot be called {name!r}: PyG gives that name a meaning of its own")
            if len(column) != rows:
                raise DataError(f"{level} column {name!r} has {len(column)} rows for {rows} {level}s")
            if level != "graph" and name != "y" and column.dtype.kind == "f" and not np.isfinite(column).all():
                row = int(np.argwhere(~np.isfinite(column))[0, 0])
                raise DataError(f"{level} column {name!r} has a value that is not a number in row {row}")
