"""Some graphs of a set in one picture, each with its target."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from torch_geometric.data import Data

from lspe.data import GraphData
from lspe.errors import UserError
from lspe.files import make_folder

_COLOURS = ("#56B4E9", "#D55E00", "#0072B2", "#009E73", "#F0E442", "#E69F00", "#CC79A7", "#000000")
"""Okabe's and Ito's colours; the most frequent type of node gets the first, which is a light one."""


LARGEST = 1_000
"""Nodes of a graph that is drawn; the places of more would take long to find and show nothing."""


def draw_samples(data: GraphData, path: str | os.PathLike[str], *, count: int = 8, seed: int = 0) -> None:
    """Draw `count` random graphs of the set, each with its target, into one picture."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure
    from matplotlib.lines import Line2D

    small = np.flatnonzero(data.graphs.num_nodes <= LARGEST)
    if not len(small):
        raise UserError(f"every graph of {data.name} has more than {LARGEST} nodes, too many to draw")
    chosen = np.sort(small[np.random.default_rng(seed).permutation(len(small))[:count]]).tolist()
    columns = min(4, len(chosen))
    rows = -(-len(chosen) // columns)
    figure = Figure(figsize=(3 * columns, 3.2 * rows), layout="constrained")
    FigureCanvasAgg(figure)
    figure.suptitle(f"{data.name}: {len(chosen)} of {len(data.graphs):,} graphs")
    graphs = [data.graphs[number] for number in chosen]
    colour = _colour_of_type(graphs, data)
    for position, (number, graph) in enumerate(zip(chosen, graphs, strict=True)):
        axes = figure.add_subplot(rows, columns, position + 1)
        _draw(axes, graph, data, colour)
        axes.set_title(f"{number}: {_target(data, number)}", fontsize=9)
    if colour:
        handles = [Line2D([], [], marker="o", linestyle="", color=one, label=name) for name, one in colour.items()]
        figure.legend(handles=handles, loc="outside lower center", ncols=min(12, len(handles)), frameon=False)
    make_folder(Path(path).parent)
    figure.savefig(path, dpi=130)


def _draw(axes: Any, graph: Data, data: GraphData, colour: dict[str, str]) -> None:
    from matplotlib.collections import LineCollection

    source, target = graph.edge_index.numpy()
    place = _places(graph, data)
    lines = list(np.stack([place[source], place[target]], axis=1))
    axes.add_collection(LineCollection(lines, colors="0.75", linewidths=0.8))
    size = float(np.clip(4000 / len(place), 8, 60))
    colours = _colours(graph, data, colour)
    axes.scatter(place[:, 0], place[:, 1], s=size, c=colours, edgecolors="0.25", linewidths=0.4, zorder=2)
    axes.set_aspect("equal", adjustable="datalim")
    axes.margins(0.08)
    axes.set_axis_off()


def _places(graph: Data, data: GraphData) -> NDArray[Any]:
    """Where to draw the nodes: where the image has them, on a circle, or where a spring layout puts them."""
    import networkx as nx

    if data.name == "cifar10":
        return graph.x[:, 3:5].numpy() * [1, -1]
    drawing = nx.Graph()
    drawing.add_nodes_from(range(graph.num_nodes))
    drawing.add_edges_from(graph.edge_index.t().tolist())
    if data.features.kind == "none":
        layout = nx.circular_layout(drawing)
    elif nx.is_connected(drawing) and graph.num_nodes > 1:
        layout = nx.kamada_kawai_layout(drawing)
    else:
        layout = nx.spring_layout(drawing, seed=0)
    return np.array([layout[node] for node in range(graph.num_nodes)])


def _types(graph: Data, data: GraphData) -> list[str]:
    """The name of each node's type, where nodes have types."""
    if data.features.kind == "categorical":
        names = data.features.vocabulary
        return [names[number] if number < len(names) else f"type {number}" for number in graph.x.tolist()]
    if data.features.kind == "ogb":
        from rdkit.Chem import GetPeriodicTable

        return [GetPeriodicTable().GetElementSymbol(min(number + 1, 118)) for number in graph.x[:, 0].tolist()]
    return []


def _colour_of_type(graphs: Sequence[Data], data: GraphData) -> dict[str, str]:
    """A colour for each type that occurs, the frequent ones first; the rare ones share a grey."""
    counts = Counter(name for graph in graphs for name in _types(graph, data))
    return {
        name: _COLOURS[rank] if rank < len(_COLOURS) else "0.9" for rank, (name, _) in enumerate(counts.most_common())
    }


def _colours(graph: Data, data: GraphData, colour: dict[str, str]) -> Any:
    """The superpixel's colour, the type's colour, or the value of the first feature."""
    from matplotlib import colormaps

    if data.name == "cifar10":
        return graph.x[:, :3].clamp(0, 1).numpy()
    if data.features.kind == "continuous":
        value = graph.x[:, 0].numpy()
        return colormaps["viridis"]((value - value.min()) / (np.ptp(value) + 1e-9))
    return [colour[name] for name in _types(graph, data)] or _COLOURS[0]


def _target(data: GraphData, number: int) -> str:
    if data.level != "graph":
        return f"{int(data.graphs.num_nodes[number])} nodes"
    y = data.graphs.graph["y"][number]
    if data.task == "multiclass":
        return data.class_names[int(y)] if data.class_names else f"class {int(y)}"
    if data.task == "regression":
        return ", ".join(f"{value:.3g}" for value in y[:3])
    positive = [name for name, value in zip(data.task_names, y, strict=True) if value == 1]
    return f"{len(positive)} of {int((~np.isnan(y)).sum())} positive"
