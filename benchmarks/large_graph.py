"""One large graph: an epoch of training by samples of neighbourhoods and its validation, in one thread.

``python -m benchmarks.large_graph [--json] [--nodes 10000 100000 1000000] [--predict]``

Generated: ten undirected edges per node, listed in both directions (10,000,000 edges, 20,000,000 rows, for 1,000,000
nodes), seven in ten of them within one of ten communities; sixteen noisy numbers per node. The community is to be told.
A tenth of the nodes teaches, another tenth validates. The network is the default for the nodes of one graph.

- pack: from arrays in memory to the packed file that training maps.
- encode: the random walk encoding of the whole graph, exact up to 20,000 nodes and estimated beyond.
- train: all steps of an epoch.
- validate: scores of the validation nodes on the whole graph, in blocks.
- predict: with ``--predict``, all nodes.

Times are those of the processor, which other programs do not lengthen. Each size has a process of its own, whose
greatest resident memory is shown. The exponent is that of train and validate together.
"""

import argparse
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import torch
from lightning.pytorch import Callback
from torch_geometric.data import Data

from benchmarks.measure import exponent, peak_mb, show
from lspe.data import GraphData, from_pyg
from lspe.experiment import GraphSource, fit_to_data, override, read_experiment, with_own_data
from lspe.nn.blocks import run_bounded
from lspe.sources import DEFAULT_FOR_NODES_OF_ONE_GRAPH
from lspe.training.fitting import fresh_module, objective_for, run_epochs
from lspe.training.module import EpochResult, TrainingModule

NODES = (10_000, 100_000, 1_000_000)
EDGES_PER_NODE, WITHIN, COMMUNITIES, NUMBERS = 10, 0.7, 10, 16
LIMIT_MB, LIMIT_EXPONENT = 8 * 1024, 1.1


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", action="store_true", help="print JSON instead of a table")
    parser.add_argument("--nodes", type=int, nargs="+", default=NODES, help="of each graph")
    parser.add_argument("--predict", action="store_true", help="also predict all nodes")
    parser.add_argument("--here", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.here:
        print(json.dumps(measure(arguments.nodes[0], predict=arguments.predict)))
        return
    results = {f"{nodes:,} nodes": in_a_process(nodes, predict=arguments.predict) for nodes in arguments.nodes}
    if len(results) > 1:
        seconds = [one["train_s"] + one["validate_s"] for one in results.values()]
        results["all"] = {"exponent": exponent(arguments.nodes, seconds)}
    if arguments.json:
        print(json.dumps(results, indent=2))
    else:
        show(f"one graph; limits: {LIMIT_MB} MiB, exponent {LIMIT_EXPONENT}", results)


def in_a_process(nodes: int, *, predict: bool) -> dict[str, float]:
    command = [sys.executable, "-m", "benchmarks.large_graph", "--here", "--nodes", str(nodes)]
    done = subprocess.run([*command, *["--predict"][:predict]], stdout=subprocess.PIPE, text=True, check=True)
    result: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return result


def generate(nodes: int) -> Data:
    random = np.random.default_rng(0)
    community = random.integers(0, COMMUNITIES, nodes)
    members = np.argsort(community, kind="stable")
    start = np.searchsorted(community[members], np.arange(COMMUNITIES + 1))
    source = random.integers(0, nodes, EDGES_PER_NODE * nodes)
    target = random.integers(0, nodes, len(source))
    within = random.random(len(source)) < WITHIN
    first, size = start[community[source[within]]], np.diff(start)[community[source[within]]]
    target[within] = members[first + (random.random(len(size)) * size).astype(np.int64)]
    part = random.random(nodes)
    x = random.standard_normal((nodes, NUMBERS), dtype=np.float32)
    x[np.arange(nodes), community] += 1.0
    return Data(
        x=torch.from_numpy(x),
        edge_index=torch.from_numpy(np.stack([np.append(source, target), np.append(target, source)])),
        y=torch.from_numpy(community),
        train_mask=torch.from_numpy(part < 0.1),
        val_mask=torch.from_numpy((part >= 0.1) & (part < 0.2)),
        test_mask=torch.from_numpy(part >= 0.2),
    )


class Watch(Callback):
    """Ends the epoch as a run does, and keeps its result."""

    result: EpochResult
    begin: float
    trained: float
    validated: float

    def on_train_epoch_start(self, trainer: Any, pl_module: TrainingModule) -> None:
        self.begin = time.process_time()

    def on_train_epoch_end(self, trainer: Any, pl_module: TrainingModule) -> None:
        self.trained = time.process_time()
        self.result = pl_module.finish_epoch()
        self.validated = time.process_time()


def measure(nodes: int, *, predict: bool) -> dict[str, float]:
    torch.set_num_threads(1)
    graph = generate(nodes)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "graph.lspe"
        begin = time.process_time()
        data = from_pyg(graph).save(path)
        del graph
        packed = time.process_time()
        own = with_own_data(read_experiment(DEFAULT_FOR_NODES_OF_ONE_GRAPH), GraphSource(path=str(path)))
        experiment = override(own, ["training.neighbours=[10, 5]"])  # as it is chosen where the graph is large
        data = data.with_encodings(experiment.model.encodings)
        encoded = time.process_time()
        result = {"edges": data.graphs.num_edges.sum() / 2, "pack_s": packed - begin, "encode_s": encoded - packed}
        experiment = fit_to_data(experiment, data)
        module = fresh_module(experiment, data, objective_for(experiment, data))
        watch = Watch()
        run_epochs(module, watch, 1, device="cpu")
        result |= {
            "steps": len(module.loader),
            "train_s": watch.trained - watch.begin,
            "validate_s": watch.validated - watch.trained,
            "val_accuracy": watch.result.val.scores["accuracy"],
        }
        if predict:
            result["predict_s"] = prediction(module, data)
    return {**{name: float(value) for name, value in result.items()}, "peak_mb": peak_mb()}


def prediction(module: TrainingModule, data: GraphData) -> float:
    begin = time.process_time()
    with torch.inference_mode():
        run_bounded(module.reported_network.eval(), data.graphs.batch())
    return time.process_time() - begin


if __name__ == "__main__":
    main()
