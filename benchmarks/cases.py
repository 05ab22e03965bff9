"""What training is measured on: a network, a batch and a loss by name.

- ``PRESET``: a preset with as many graphs as its recipe trains with; ``PRESET@32``: with 32. The default for a person's
  own table, ``own/gatedgcn-lspe``, gets molecules.
- ``gine-lspe``: ``LSPE`` around PyG's ``GINEConv``, as deep and wide as zinc/gatedgcn-lspe, on the same graphs.
"""

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn
from torch_geometric.data import Batch
from torch_geometric.nn import GINEConv

from benchmarks.molecules import smiles
from lspe.data import smiles_to_graphs
from lspe.experiment import Experiment, build_network, load_data, read_experiment
from lspe.nn import LSPE, Network
from lspe.training import Objective

GINE = "gine-lspe"


@dataclass(frozen=True)
class Case:
    network: Network
    batch: Batch
    objective: Objective

    def loss(self, output: Tensor, batch: Batch) -> Tensor:
        total, share = self.objective.loss(output, batch.y)
        return total / share


def read_case(name: str) -> Case:
    preset, _, graphs = name.partition("@")
    experiment = read_experiment("zinc/gatedgcn-lspe" if preset == GINE else preset)
    network, batch = first_batch(experiment, int(graphs or experiment.training.batch_size))
    if preset == GINE:
        network.layers = nn.ModuleList(gine_layer(network.dim) for _ in network.layers)
    return Case(network, batch, Objective(experiment.task))


def first_batch(experiment: Experiment, graphs: int) -> tuple[Network, Batch]:
    torch.manual_seed(0)
    network = build_network(experiment)
    if experiment.dataset == "own":
        molecules = smiles_to_graphs(smiles(graphs)).graphs.with_encoding("rwpe", experiment.model.k)
        batch = molecules.batch(np.arange(graphs))
        batch.y = torch.randn(graphs, experiment.task.outputs)
        return network, batch
    return network, load_data(experiment).graphs.batch(np.arange(graphs))


def gine_layer(dim: int) -> LSPE:
    def conv(in_dim: int) -> GINEConv:
        return GINEConv(nn.Sequential(nn.Linear(in_dim, dim), nn.ReLU(), nn.Linear(dim, dim)), edge_dim=dim)

    return LSPE(conv(2 * dim), conv(dim), dim)
