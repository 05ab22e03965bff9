"""Figures about a set as the paper gives them."""

from typing import Any

import numpy as np

from lspe.data.graphdata import GraphData
from lspe.data.packed.cached_encodings import LARGEST_EXACT, is_estimated
from lspe.data.packed.targets import is_known
from lspe.encodings import find_kind
from lspe.features import describe


def in_a_sentence(data: GraphData) -> str:
    """What a set is, as it is shown before training."""
    nodes, count = int(data.graphs.num_nodes.sum()), len(data.graphs)
    what_they_are = f"{data.name}: {count:,} graphs with {nodes:,} nodes; {describe(data.features)}"
    if data.level == "link":
        edges = {name: int(data.split(name).y.sum()) for name in data.splits}
        hidden = f"{edges['val']:,} val and {edges['test']:,} test edges are hidden"
        return (
            f"{what_they_are}; which pairs are joined to predict per link; {edges['train']:,} edges are seen, {hidden}"
        )
    what = {
        "regression": f"{data.num_outputs} numbers to predict",
        "binary": f"{data.num_outputs} yes/no labels to predict",
        "multiclass": f"one of {data.num_outputs} classes to predict",
    }[data.task]
    sizes = ", ".join(f"{name} {len(part):,}" for name, part in data.splits.items()) or f"{len(data.folds)} folds"
    estimated = [kind for kind, _ in data.graphs.encodings if is_estimated(data.graphs, find_kind(kind))]
    note = f"; {', '.join(estimated)} estimated, as of all graphs beyond {LARGEST_EXACT:,} nodes" if estimated else ""
    parts = "graphs" if data.divided == "graphs" else f"labelled {data.level}s"
    return f"{what_they_are}; {what} per {data.level}; {parts}: {sizes}{note}"


def statistics(data: GraphData) -> dict[str, Any]:
    """Graphs, nodes and edges a graph, what is to be learned, how the set is divided."""
    nodes, edges, y = data.graphs.num_nodes, data.graphs.num_edges, data.graphs.y
    y = y[is_known(y)]
    figures: dict[str, Any] = {
        "name": data.name,
        "source": data.source,
        "graphs": len(data.graphs),
        "mean_nodes": float(nodes.mean()),
        "sd_nodes": float(nodes.std()),
        "min_nodes": int(nodes.min()),
        "max_nodes": int(nodes.max()),
        "mean_edges": float(edges.mean()),
        "graphs_without_edges": int((edges == 0).sum()),
        "level": data.level,
        "task": data.task,
        "tasks": len(data.task_names),
        "features": data.features.kind,
        "divided": data.divided,
        "splits": {name: len(part) for name, part in data.splits.items()},
        "folds": len(data.folds),
    }
    if data.task == "multiclass":
        figures["classes"] = np.bincount(y, minlength=data.num_outputs).tolist()
    elif data.task == "binary":
        figures["labels"] = int((~np.isnan(y)).sum())
        figures["positives"] = int(np.nansum(y))
    else:
        figures["target_mean"] = np.nanmean(y, axis=0).tolist()
        figures["target_sd"] = np.nanstd(y, axis=0).tolist()
    return figures
