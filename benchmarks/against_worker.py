"""Takes training steps, or predicts, whenever a line on the standard input says so; answers with the seconds.

Run by :mod:`benchmarks.against` with the version of lspe on its path; uses only names that every version has.
"""

import sys
import time

import torch
from torch_geometric.data import Batch, Data

import lspe


def main(preset: str, path: str) -> None:
    tensors = torch.load(path)
    batch = Batch(_base_cls=Data, **tensors)
    batch._num_graphs = len(tensors["ptr"]) - 1
    torch.manual_seed(0)
    network = lspe.build_network(preset)
    optimizer = torch.optim.Adam(network.parameters(), 1e-3, fused=True)

    def step() -> None:
        network.train()
        optimizer.zero_grad()
        output = network(batch)
        (output - batch.y[: len(output)].nan_to_num()).abs().mean().backward()
        optimizer.step()

    @torch.inference_mode()
    def infer() -> None:
        network.eval()
        network(batch)

    for line in sys.stdin:
        work = {"step": step, "infer": infer}[line.strip()]
        begin = time.perf_counter()
        work()
        print(time.perf_counter() - begin, flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
