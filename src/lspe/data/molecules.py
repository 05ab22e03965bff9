"""Many molecules to graphs, in parallel processes, with bounded memory."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from typing import Any, TypeVar

from lspe.data.arrays import Array
from lspe.data.flat import both_directions
from lspe.data.packed import PackedGraphs
from lspe.data.smiles import MoleculeArrays

Piece = TypeVar("Piece")
Result = TypeVar("Result")


def to_packed(arrays: MoleculeArrays, graph: dict[str, Array] | None = None) -> PackedGraphs:
    """Graphs with every bond in both directions."""
    num_edges, edge_index, (edge_attr,) = both_directions(arrays.num_bonds, arrays.bonds, arrays.edge_attr)
    return PackedGraphs.from_arrays(
        arrays.num_nodes,
        num_edges,
        edge_index,
        node={"x": arrays.x},
        edge={"edge_attr": edge_attr},
        graph=graph,
    )


def map_in_processes(
    work: Callable[[Piece], Result], pieces: Iterable[Piece], *, processes: int | None = None
) -> Iterator[Result]:
    """``work(piece)`` for each piece, in order, at most a few pieces ahead of whoever takes the results.

    With one process (`processes` = 1) everything happens here. The processes are joblib's: unlike the
    standard library's they do not run the user's script again, so scripts need no ``if __name__ ==
    "__main__"``.
    """
    processes = processes or usable_cores()
    if processes == 1:
        yield from map(work, pieces)
        return
    from joblib.externals.loky import ProcessPoolExecutor  # type: ignore[import-untyped]

    with ProcessPoolExecutor(max_workers=processes) as pool:
        waiting: deque[Any] = deque()
        try:
            for piece in pieces:
                waiting.append(pool.submit(work, piece))
                if len(waiting) > 2 * processes:
                    yield waiting.popleft().result()
            while waiting:
                yield waiting.popleft().result()
        finally:
            for future in waiting:
                future.cancel()


def usable_cores() -> int:
    """Cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
