"""A training step of the paper's networks on ZINC: ours beside three others, in one run.

``python -m benchmarks.training [PRESET ...] [--json] [--quick] [--repeats 7] [--threads 2] [--plot growth.png]``. Needs
ZINC in the data root ($LSPE_DATA) or the network.

- step: forward, loss, backward and Adam's update on a batch of 128 graphs, with fused operators.
- plain: the same with plain PyTorch.
- pyg: the same with convolutions as one writes them with PyG's ``MessagePassing`` (benchmarks/message_passing.py).
- floor: the products of matrices of forward and backward alone, at the padded widths, those of one input as one.
- inference: forward only, fused and plain.
- epoch: 10,000 graphs with batching; evaluated: and then validation and test. predict: 12,000 graphs. Each preset has a
  process of its own for these, whose largest memory is peak.

Without ``--quick`` the first preset's step is also timed at growing numbers of graphs, of nodes a graph (several
molecules taken as one), of layers and of encoding steps k.
"""

import argparse
import copy
import json
import multiprocessing
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch_geometric.data import Batch

from benchmarks.floor import products_of
from benchmarks.measure import Growth, interleaved, peak_mb, plot_growth, seconds, show
from benchmarks.message_passing import twin
from lspe import ops
from lspe.data import BatchLoader
from lspe.experiment import Experiment, build_network, load_data, override, read_experiment
from lspe.nn import Network, Topology
from lspe.training import Objective, evaluate
from lspe.training.evaluation import EVALUATION_BATCH

PRESETS = ("zinc/gatedgcn-lspe", "zinc/pna-lspe", "zinc/san-lspe", "zinc/graphit-lspe")
BATCH = 128


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("presets", nargs="*", metavar="PRESET", help=f"by default {', '.join(PRESETS)}")
    parser.add_argument("--json", action="store_true", help="print JSON instead of tables")
    parser.add_argument("--quick", action="store_true", help="the first preset only, and no growth")
    parser.add_argument("--repeats", type=int, default=7, help="interleaved, the median counts")
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--plot", type=Path, help="draw the growth into this file")
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    presets = arguments.presets or PRESETS
    presets = presets[:1] if arguments.quick else presets
    results: dict[str, dict[str, Any]] = steps(presets, arguments.repeats)
    for preset in presets:
        with multiprocessing.get_context("spawn").Pool(1) as pool:
            results[preset] |= pool.apply(epoch, (preset, arguments.threads))
    growths = {} if arguments.quick else growth_of(presets[0])
    if arguments.plot and growths:
        plot_growth(growths, arguments.plot)
    if arguments.json:
        if growths:
            results[presets[0]]["growth"] = {name: growth.to_dict() for name, growth in growths.items()}
        print(json.dumps(results, indent=2))
        return
    show(f"training, {BATCH} graphs, {arguments.threads} threads", results)
    show("ratios", {preset: ratios(row, results[presets[0]]) for preset, row in results.items()})
    if growths:
        show("growth", {name: {"exponent": growth.exponent} for name, growth in growths.items()})


def steps(presets: tuple[str, ...], repeats: int) -> dict[str, dict[str, float]]:
    """Milliseconds of a step of each preset, everything in turns with everything."""
    works: dict[tuple[str, str], Callable[[], object]] = {}
    for preset in presets:
        network, batch = first_batch(read_experiment(preset))
        slow = twin(network)
        works |= {
            (preset, "step_ms"): stepper(network, batch),
            (preset, "plain_ms"): plainly(stepper(network, batch)),
            (preset, "pyg_ms"): plainly(stepper(slow, batch)),
            (preset, "floor_ms"): products_of(plainly(lambda network=network, batch=batch: network(batch))),
            (preset, "inference_ms"): inference(network, batch),
            (preset, "inference_plain_ms"): plainly(inference(network, batch)),
        }
    results: dict[str, dict[str, float]] = {preset: {} for preset in presets}
    for (preset, name), time in zip(works, interleaved(list(works.values()), repeats), strict=True):
        results[preset][name] = 1e3 * time
    for row in results.values():
        row |= {"batch_graphs": BATCH, "graphs_per_s": 1e3 * BATCH / row["step_ms"]}
    return results


def ratios(row: dict[str, float], first: dict[str, float]) -> dict[str, float]:
    """What the absolute times come to, beside the first preset's plain step."""
    return {
        "plain / step": row["plain_ms"] / row["step_ms"],
        "pyg / step": row["pyg_ms"] / row["step_ms"],
        "step / floor": row["step_ms"] / row["floor_ms"],
        "inference plain / ours": row["inference_plain_ms"] / row["inference_ms"],
        "step / first plain": row["step_ms"] / first["plain_ms"],
    }


def first_batch(experiment: Experiment, graphs: int = BATCH) -> tuple[Network, Batch]:
    torch.manual_seed(0)
    return build_network(experiment), load_data(experiment).graphs.batch(np.arange(graphs))


def stepper(network: Network, batch: Batch, topology: Topology | None = None) -> Callable[[], object]:
    network.train()
    optimizer = torch.optim.Adam(network.parameters(), 1e-3, fused=True)

    def step() -> None:
        optimizer.zero_grad()
        loss(network(batch, topology), batch).backward()
        optimizer.step()

    return step


def loss(output: Tensor, batch: Batch) -> Tensor:
    return (output - batch.y[: len(output)]).abs().mean()


def inference(network: Network, batch: Batch) -> Callable[[], object]:
    network = copy.deepcopy(network).eval()

    @torch.inference_mode()
    def infer() -> None:
        network(batch)

    return infer


def plainly(work: Callable[[], object]) -> Callable[[], object]:
    def run() -> None:
        with ops.use("plain"):
            work()

    return run


def epoch(preset: str, threads: int) -> dict[str, float]:
    """Seconds of an epoch, of one with validation and test, of 12,000 predictions; and memory."""
    torch.set_num_threads(threads)
    experiment = read_experiment(preset)
    data = load_data(experiment)
    network, batch = first_batch(experiment)
    objective = Objective(experiment.task, None)
    optimizer = torch.optim.Adam(network.parameters(), 1e-3, fused=True)
    stepper(network, batch)()

    def train() -> None:
        network.train()
        for batch in BatchLoader(data.split("train"), BATCH, shuffle=True):
            optimizer.zero_grad()
            loss(network(batch), batch).backward()
            optimizer.step()

    @torch.inference_mode()
    def predict() -> None:
        network.eval()
        for batch in BatchLoader(data.graphs, EVALUATION_BATCH):
            network(batch)

    training = seconds(train)
    evaluation = seconds(lambda: [evaluate(network, data.split(name), objective) for name in ("val", "test")])
    return {
        "epoch_s": training,
        "evaluated_epoch_s": training + evaluation,
        "predict_s": seconds(predict),
        "peak_mb": peak_mb(),
    }


def growth_of(preset: str, repeats: int = 5) -> dict[str, Growth]:
    experiment = read_experiment(preset)

    def step_with(*changes: str, graphs: int = BATCH, molecules: int = 1) -> Callable[[], object]:
        network, batch = first_batch(override(experiment, changes), graphs * molecules)
        joined = Topology(batch.edge_index, batch.num_nodes, batch.batch // molecules, num_graphs=graphs)
        return stepper(network, batch, joined)

    few, layers, ks = (8, 16, 32, 64, 128, 256, 512), (2, 4, 8, 16, 32), (4, 8, 16, 32, 64)
    molecules = (1, 2, 4, 8, 16)
    return {
        "graphs": Growth(few, [step_with(graphs=count) for count in few], repeats),
        "molecules a graph": Growth(molecules, [step_with(graphs=32, molecules=count) for count in molecules], repeats),
        "layers": Growth(layers, [step_with(f"model.layers={count}") for count in layers], repeats),
        "k": Growth(ks, [step_with(f"model.k={k}") for k in ks], repeats),
    }


if __name__ == "__main__":
    main()
