"""Predictions for files of graphs: a table with a row per graph, node, edge or link."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from lspe.data.graphs.named import read_named
from lspe.data.graphs.recognition import is_named
from lspe.data.graphs.storage import read_graphs
from lspe.data.words import Level
from lspe.errors import UserError
from lspe.files.tables import check_output, open_table
from lspe.predict.embeddings import open_embeddings
from lspe.predict.links import asking_for, read_pairs
from lspe.predict.predictor import Predictor
from lspe.predict.tables import new_cells, new_names

if TYPE_CHECKING:
    from torch_geometric.data import Data

Path_ = str | os.PathLike[str]
TOP = 100
"""Links of each graph that are looked for, if nobody says how many."""

_PLACES: dict[Level, tuple[str, ...]] = {
    "graph": (),
    "node": ("node",),
    "edge": ("source", "target"),
    "link": ("source", "target"),
}


@dataclass(frozen=True)
class GraphSummary:
    """What became of files of graphs."""

    graphs: int
    rows: int
    level: str
    seconds: float

    def __str__(self) -> str:
        of_nodes = "" if self.level == "graph" else f" with {self.rows:,} {self.level}s"
        return f"{self.graphs:,} graphs{of_nodes} in {self.seconds:.1f} s"


def _places(graphs: Sequence[Data], level: Level) -> list[NDArray[np.int64]]:
    """Where each prediction stands within its graph."""
    if level == "graph":
        return []
    if level == "node":
        return [np.concatenate([np.arange(graph.num_nodes) for graph in graphs])]
    name = "edge_index" if level == "edge" else "edge_label_index"
    return list(np.concatenate([graph[name].reshape(2, -1).numpy() for graph in graphs], axis=1))


def predict_graph_files(
    predictor: Predictor,
    source: Path_,
    output: Path_,
    *,
    embeddings: Path_ | None = None,
    pairs: Path_ | None = None,
    top: int | None = None,
) -> GraphSummary:
    """Predict the graphs of a file, of a folder of files, or of a data set of PyG.

    The table has the number of the ``graph`` (from 0), where nodes are predicted that of the ``node`` within it, where
    edges are those of their ``source`` and ``target``, and the predictions. Of links, `pairs` is a table of those that
    are asked for; without it they are the `top` ones of each graph that are not there and most likely to be.
    """
    if predictor.level != "link" and (pairs is not None or top is not None):
        raise UserError(f"--pairs and --top are for links, and {predictor.members[0].name} predicts {predictor.level}s")
    if pairs is not None and top is not None:
        raise UserError("--pairs names the pairs to predict, and --top looks for the likeliest ones: choose one")
    check_output(output)
    started = time.perf_counter()
    graphs = (read_named(str(source)) if is_named(str(source)) else read_graphs(source)).graphs
    if predictor.level == "link":
        found = (
            read_pairs(pairs, graphs)
            if pairs is not None
            else [predictor.likeliest_links(one, top or TOP)[0] for one in graphs]
        )
        graphs = [asking_for(graph, its_pairs) for graph, its_pairs in zip(graphs, found, strict=True)]
    numbers = ["graph", *_PLACES[predictor.level]]
    begin = rows = 0
    with ExitStack() as stack:
        vectors = None
        if embeddings is not None:
            predictor.check_single("vectors")
            vectors = stack.enter_context(open_embeddings(embeddings))
        names = {**dict.fromkeys(numbers, True), **new_names(predictor, numbers)}
        writer = stack.enter_context(open_table(output, names))
        for piece, part in predictor.predict_graphs(graphs):
            where = np.column_stack([begin + part.row_of, *_places(piece, predictor.level)]).tolist()
            writer.write([[*place, *cells] for place, cells in zip(where, new_cells(predictor, part), strict=True)])
            if vectors is not None:
                vectors.write(begin, [""] * len(piece), part)
            begin += len(piece)
            rows += len(where)
    return GraphSummary(len(graphs), rows, predictor.level, time.perf_counter() - started)
