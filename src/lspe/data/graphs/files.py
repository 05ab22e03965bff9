"""One graph from a file: a GraphML or GML file, a list of edges, or JSON."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Hashable
from pathlib import Path
from typing import Any

from lspe.data.errors import DataError

GRAPH_SUFFIXES = (".graphml", ".gml", ".edgelist", ".edges", ".json")


def is_graph_file(path: str | os.PathLike[str]) -> bool:
    """Whether the name of a file says that it holds one graph."""
    return Path(path).suffix.lower() in GRAPH_SUFFIXES


def read_graph_file(path: str | os.PathLike[str]) -> Any:
    """The networkx graph in a file; the suffix says how it is written.

    - ``.graphml`` and ``.gml``: directed or not, as the file says; an edge attribute ``weight`` counts.
    - ``.edgelist`` and ``.edges``: an undirected edge a line, two names and perhaps a weight; ``#`` begins a comment.
    - ``.json``: ``{"edges": [[0, 1], [1, 2, 0.5]], "nodes": [0, 1, 2, 3], "directed": false}`` with edges of two
      nodes and perhaps a weight; only the edges are needed. Also what networkx writes as node-link data.
    """
    import networkx as nx

    name = Path(path)
    readers: dict[str, Callable[[Path], Any]] = {
        ".graphml": nx.read_graphml,
        ".gml": lambda file: nx.read_gml(file, label=None),
        ".edgelist": _read_edges,
        ".edges": _read_edges,
        ".json": _read_json,
    }
    if name.suffix.lower() not in readers:
        raise DataError(f"{path} does not end in {', '.join(GRAPH_SUFFIXES)}: it is not clear how to read it")
    try:
        graph = readers[name.suffix.lower()](name)
    except FileNotFoundError:
        raise DataError(f"{path} does not exist") from None
    except IsADirectoryError:
        raise DataError(f"{path} is a folder, not a graph") from None
    except OSError as error:
        raise DataError(f"{path} cannot be read: {error.strerror}") from None
    except RecursionError:
        raise DataError(f"{path} is not a {name.suffix.lower()} graph: lists in lists without end") from None
    except DataError as error:
        raise DataError(f"{path}: {error}") from None
    except (nx.NetworkXError, ValueError, SyntaxError, LookupError, TypeError) as error:
        raise DataError(f"{path} is not a {name.suffix.lower()} graph: {error}") from None
    if not len(graph):
        raise DataError(f"{path} has no nodes")
    for *ends, weight in graph.edges(data="weight", default=1.0):
        _weight(weight, f"{path}, edge {ends[0]!r} to {ends[1]!r}")
    return graph


def _read_edges(path: Path) -> Any:
    import networkx as nx

    graph = nx.Graph()
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1):
        parts = line.partition("#")[0].replace(",", " ").split()
        if not parts:
            continue
        if len(parts) not in (2, 3):
            raise DataError(f"line {number}: {line!r} is not an edge: two names and perhaps a weight")
        weight = _weight(parts[2], f"line {number}") if len(parts) == 3 else 1.0
        graph.add_edge(parts[0], parts[1], weight=weight)
    return graph


def _read_json(path: Path) -> Any:
    import networkx as nx

    values = json.loads(path.read_text(encoding="utf-8"))
    if not isinstance(values, dict):
        raise DataError('expected an object such as {"edges": [[0, 1], [1, 2]]}')
    if "links" in values or any(isinstance(edge, dict) for edge in values.get("edges", [])):
        return nx.node_link_graph(values, edges="links" if "links" in values else "edges")
    if "edges" not in values:
        raise DataError(f"there is no 'edges' among {sorted(values)}")
    graph = nx.DiGraph() if values.get("directed") else nx.Graph()
    for node in values.get("nodes", []):
        graph.add_node(_node(node, "nodes"))
    for number, edge in enumerate(values["edges"]):
        place = f"edges[{number}]"
        if not isinstance(edge, list) or len(edge) not in (2, 3):
            raise DataError(f"{place}: {edge!r} is not an edge: two nodes and perhaps a weight")
        weight = _weight(edge[2], place) if len(edge) == 3 else 1.0
        graph.add_edge(_node(edge[0], place), _node(edge[1], place), weight=weight)
    return graph


def _node(value: Any, place: str) -> Hashable:
    if isinstance(value, bool) or not isinstance(value, int | str):
        raise DataError(f"{place}: {value!r} cannot name a node; use a number or a text")
    return value


def _weight(value: Any, place: str) -> float:
    try:
        return float(value)
    except (TypeError, ValueError):
        raise DataError(f"{place}: the weight {value!r} is not a number") from None
