"""A training step: ours beside three others, in one run.

``python -m benchmarks.training [CASE ...] [--json] [--quick] [--repeats 7] [--threads 2] [--plot growth.png]``. Needs
ZINC and CIFAR10 in the data root ($LSPE_DATA) or the network. What a CASE may be, benchmarks/cases.py says.

- step: forward, loss, backward and Adam's update on a batch, with fused operators.
- plain: the same with plain PyTorch.
- pyg: the same with convolutions as one writes them with PyG's ``MessagePassing`` (benchmarks/message_passing.py).
- floor: the products of matrices of forward and backward alone (benchmarks/floor.py).
- inference: forward only, fused, plain and the floor of its products in turns, in a process that does nothing else, as
  people predict. The first dozens of batches are not counted: plain PyTorch was seen to change its speed by half
  meanwhile, for a reason that is not known (page faults are not it).
- epoch, of the cases on ZINC: 10,000 graphs with batching; evaluated: and then validation and test. predict: 12,000
  graphs. Each has a process of its own for these, whose largest memory is peak.

Without CASE and ``--quick`` the step of zinc/gatedgcn-lspe is also timed at growing numbers of graphs, of nodes a graph
(several molecules taken as one), of layers and of encoding steps k.
"""

import argparse
import json
import multiprocessing
import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from torch_geometric.data import Batch

from benchmarks.cases import Case, first_batch, read_case
from benchmarks.floor import products_of
from benchmarks.measure import Growth, interleaved, peak_mb, plot_growth, seconds, show
from benchmarks.message_passing import twin
from lspe import ops
from lspe.data import BatchLoader
from lspe.experiment import load_data, override, read_experiment
from lspe.nn import Topology
from lspe.training import Objective, evaluate
from lspe.training.evaluation import EVALUATION_BATCH
from lspe.training.flat import FlatParameters

EPOCHS = ("zinc/gatedgcn-lspe", "zinc/pna-lspe", "zinc/san-lspe", "zinc/graphit-lspe")
CASES = (*EPOCHS, "zinc/gatedgcn-lspe@32", "own/gatedgcn-lspe", "cifar10/gatedgcn-lspe", "gine-lspe")
BATCH = 128
SETTLING = 40


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("cases", nargs="*", metavar="CASE", help=f"by default {', '.join(CASES)}")
    parser.add_argument("--json", action="store_true", help="print JSON instead of tables")
    parser.add_argument("--quick", action="store_true", help="the first case only, and no growth")
    parser.add_argument("--repeats", type=int, default=7, help="interleaved, the median counts")
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--plot", type=Path, help="draw the growth into this file")
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    cases = tuple(arguments.cases) or CASES
    cases = cases[:1] if arguments.quick else cases
    results: dict[str, dict[str, Any]] = steps(cases, arguments.repeats)
    for case in cases:
        results[case] |= alone(inference, case, arguments.threads, arguments.repeats)
        if case in EPOCHS:
            results[case] |= alone(epoch, case, arguments.threads)
    growths = {} if arguments.quick or arguments.cases else growth_of(EPOCHS[0])
    if arguments.plot and growths:
        plot_growth(growths, arguments.plot)
    if arguments.json:
        grown = {"growth": {name: growth.to_dict() for name, growth in growths.items()}} if growths else {}
        print(json.dumps({**results, **grown}, indent=2))
        return
    show(f"training, {arguments.threads} threads", results)
    show("ratios", {case: ratios(row) for case, row in results.items()})
    if growths:
        show("growth", {name: {"exponent": growth.exponent} for name, growth in growths.items()})


def alone(work: Callable[..., dict[str, float]], *arguments: object) -> dict[str, float]:
    """Work in a process of its own."""
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        return pool.apply(work, arguments)


def steps(names: tuple[str, ...], repeats: int) -> dict[str, dict[str, float]]:
    """Milliseconds of a step of each case, everything in turns with everything."""
    works: dict[tuple[str, str], Callable[[], object]] = {}
    graphs: dict[str, int] = {}
    for name in names:
        case = read_case(name)
        slow = replace(case, network=twin(case.network))
        graphs[name] = case.batch.num_graphs
        step = stepper(case)
        works |= {
            (name, "step_ms"): step,
            (name, "plain_ms"): plainly(step),
            (name, "pyg_ms"): plainly(stepper(slow)),
            (name, "floor_ms"): products_of(plainly(lambda case=case: case.network(case.batch))),
        }
    results: dict[str, dict[str, float]] = {name: {"batch_graphs": count} for name, count in graphs.items()}
    for (name, what), time in zip(works, interleaved(list(works.values()), repeats), strict=True):
        results[name][what] = 1e3 * time
    for row in results.values():
        row["graphs_per_s"] = 1e3 * row["batch_graphs"] / row["step_ms"]
    return results


def ratios(row: dict[str, float]) -> dict[str, float]:
    """What the absolute times come to."""
    return {
        "plain / step": row["plain_ms"] / row["step_ms"],
        "pyg / step": row["pyg_ms"] / row["step_ms"],
        "step / floor": row["step_ms"] / row["floor_ms"],
        "inference plain / ours": row["inference_plain_ms"] / row["inference_ms"],
        "inference ours / floor": row["inference_ms"] / row["inference_floor_ms"],
    }


def stepper(case: Case, topology: Topology | None = None) -> Callable[..., None]:
    """As the trainer takes a step: with all parameters in one vector."""
    case.network.train()
    parameters = FlatParameters(case.network.parameters())
    optimizer = torch.optim.Adam(parameters.tensors, 1e-3, fused=True)

    def step(batch: Batch = case.batch) -> None:
        parameters.forget_gradients()
        with parameters.gathered():
            case.loss(case.network(batch, topology), batch).backward()
        parameters.gather_gradients()
        optimizer.step()

    return step


def inference(name: str, threads: int, repeats: int) -> dict[str, float]:
    """Milliseconds of a forward pass."""
    torch.set_num_threads(threads)
    case = read_case(name)
    network = case.network.eval()

    @torch.inference_mode()
    def infer() -> None:
        network(case.batch)

    works = [infer, plainly(infer), products_of(plainly(lambda: network(case.batch)), gradients=False)]
    interleaved(works, SETTLING)
    ours, plain, floor = interleaved(works, repeats)
    return {"inference_ms": 1e3 * ours, "inference_plain_ms": 1e3 * plain, "inference_floor_ms": 1e3 * floor}


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
    case = read_case(preset)
    network, objective = case.network, case.objective
    step = stepper(case)
    step()

    def train() -> None:
        for batch in BatchLoader(data.split("train"), BATCH, shuffle=True):
            step(batch)

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
        batch.y = batch.y[:graphs]
        return stepper(Case(network, batch, Objective(experiment.task)), joined)

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
