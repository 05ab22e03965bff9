"""Encodings of ZINC's 12,000 graphs, beside PyG's transforms, in one run and one thread.

``python -m benchmarks.encodings [--json] [--quick] [--repeats 5] [--plot growth.png]``. Needs ZINC in the data root
($LSPE_DATA) or the network.

- rwpe: 20 steps; PyG's ``AddRandomWalkPE``.
- lappe: 8 eigenvectors; PyG's ``AddLaplacianEigenvectorPE``, told that graphs are undirected, its quicker way.
- rwpe single, lappe single: our transforms called graph by graph, as PyG's are.

- kinds: every kind of encoding of the whole set, those of pairs at its edges, 20 columns (8 eigenvectors).

Whoever is called graph by graph gets 500 graphs drawn at random. Without ``--quick`` also: how the time of the random
walk encoding grows with the number of graphs, with k, and with the nodes of one large graph, exact and estimated.
"""

import argparse
import json
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

import numpy as np
import torch
from torch import Tensor
from torch_geometric.data import Data
from torch_geometric.transforms import AddLaplacianEigenvectorPE, AddRandomWalkPE, BaseTransform

from benchmarks.measure import Growth, interleaved, plot_growth, show
from lspe.data import load_benchmark
from lspe.encodings import (
    KINDS,
    EncodingKind,
    LaplacianEncoding,
    RandomWalkEncoding,
    encode,
    encode_pairs,
    estimate_random_walk_encoding,
    find_kind,
    laplacian_encoding,
    random_walk_encoding,
)

STEPS, EIGENVECTORS, SAMPLE = 20, 8, 500


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", action="store_true", help="print JSON instead of tables")
    parser.add_argument("--quick", action="store_true", help="no growth")
    parser.add_argument("--repeats", type=int, default=5, help="interleaved, the median counts")
    parser.add_argument("--plot", type=Path, help="draw the growth into this file")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    results = compare(arguments.repeats)
    kinds = every_kind(arguments.repeats)
    growths = {} if arguments.quick else growth()
    if arguments.plot and growths:
        plot_growth(growths, arguments.plot)
    if arguments.json:
        grown = {"growth": {name: one.to_dict() for name, one in growths.items()}} if growths else {}
        print(json.dumps({**results, "kinds": kinds, **grown}, indent=2))
        return
    show("microseconds a graph, ZINC-12k, one thread", results)
    show("every kind", {"us_per_graph": {name: one["us_per_graph"] for name, one in kinds.items()}})
    if growths:
        show("growth", {name: {"exponent": one.exponent} for name, one in growths.items()})


def compare(repeats: int) -> dict[str, dict[str, float]]:
    graphs = load_benchmark("zinc").graphs
    whole = graphs.batch()
    of_all = (whole.edge_index, whole.num_nodes)
    sample = [graphs[i] for i in np.random.default_rng(0).permutation(len(graphs))[:SAMPLE].tolist()]
    eigenvectors = AddLaplacianEigenvectorPE(EIGENVECTORS, is_undirected=True)
    works: dict[str, tuple[int, Callable[[], object]]] = {
        "rwpe": (len(graphs), lambda: random_walk_encoding(*of_all, STEPS, batch=whole.batch)),
        "lappe": (len(graphs), lambda: laplacian_encoding(*of_all, EIGENVECTORS, batch=whole.batch)),
        "rwpe single": (SAMPLE, partial(one_by_one, RandomWalkEncoding(STEPS), sample)),
        "lappe single": (SAMPLE, partial(one_by_one, LaplacianEncoding(EIGENVECTORS), sample)),
        "rwpe of pyg": (SAMPLE, partial(one_by_one, AddRandomWalkPE(STEPS), sample)),
        "lappe of pyg": (SAMPLE, partial(one_by_one, eigenvectors, sample)),
    }
    times = interleaved([work for _, work in works.values()], repeats)
    each = {name: 1e6 * time / count for (name, (count, _)), time in zip(works.items(), times, strict=True)}
    return {
        name: {
            "us_per_graph": each[name],
            "pyg_us_per_graph": each[f"{name.split()[0]} of pyg"],
            "ratio": each[f"{name.split()[0]} of pyg"] / each[name],
        }
        for name in ("rwpe", "lappe", "rwpe single", "lappe single")
    }


def every_kind(repeats: int) -> dict[str, dict[str, float]]:
    whole = load_benchmark("zinc").graphs.batch()

    def work(kind: EncodingKind) -> object:
        compute = encode if kind.level == "node" else encode_pairs
        k = kind.width or (EIGENVECTORS if kind.has_signs else STEPS)
        return compute(kind, whole.edge_index, whole.num_nodes, k, batch=whole.batch)

    times = interleaved([partial(work, find_kind(name)) for name in KINDS], repeats)
    return {name: {"us_per_graph": 1e6 * time / whole.num_graphs} for name, time in zip(KINDS, times, strict=True)}


def one_by_one(transform: BaseTransform, graphs: Sequence[Data]) -> None:
    for graph in graphs:
        transform(graph)


def growth(repeats: int = 3) -> dict[str, Growth]:
    """Graphs and k: batches of ZINC. Nodes: one random graph with 10 neighbours a node."""
    graphs = load_benchmark("zinc").graphs

    def of_batch(count: int, k: int) -> Callable[[], object]:
        batch = graphs.batch(np.arange(count))
        return lambda: random_walk_encoding(batch.edge_index, batch.num_nodes, k, batch=batch.batch)

    counts, ks = (100, 300, 1_000, 3_000, 10_000), (4, 8, 16, 32, 64)
    nodes, many_nodes = (500, 1_000, 2_000, 4_000), (10_000, 20_000, 40_000, 80_000)
    exact = [partial(random_walk_encoding, random_graph(n), n, 16) for n in nodes]
    estimates = [partial(estimate_random_walk_encoding, random_graph(n), n, 16, probes=32) for n in many_nodes]
    return {
        "graphs": Growth(counts, [of_batch(count, STEPS) for count in counts], repeats),
        "k": Growth(ks, [of_batch(1_000, k) for k in ks], repeats),
        "nodes, exact": Growth(nodes, exact, repeats),
        "nodes, estimate": Growth(many_nodes, estimates, repeats),
    }


def random_graph(nodes: int, neighbours: int = 10) -> Tensor:
    """``[2, nodes · neighbours]``: every edge in both directions."""
    ends = torch.randint(nodes, (2, nodes * neighbours // 2), generator=torch.Generator().manual_seed(nodes))
    return torch.cat([ends, ends.flip(0)], dim=1)


if __name__ == "__main__":
    main()
