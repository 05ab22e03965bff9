"""Every preset trains as it is, on a few made-up graphs with the features and targets of its data set."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch_geometric.data import Data
from torch_geometric.utils import erdos_renyi_graph, to_undirected

from lspe.data import GraphData, from_pyg
from lspe.data.graphs.pyg import pack
from lspe.data.words import DESCRIPTOR_WIDTH
from lspe.experiment import Experiment, list_presets, override, read_experiment
from lspe.features import OGB_ATOM_TABLE, OGB_BOND_TABLE, CategoricalFeatures, Features
from lspe.training import fit

GRAPHS = 12


def made_up(experiment: Experiment) -> GraphData:
    """Random graphs that fit the experiment; each split is all of them."""
    generator = np.random.default_rng(0)
    torch.manual_seed(0)
    graphs = []
    for _ in range(GRAPHS):
        nodes = int(generator.integers(4, 9))
        edge_index = to_undirected(torch.cat([erdos_renyi_graph(nodes, 0.3), torch.tensor([[0], [1]])], dim=1))
        graphs.append(Data(edge_index=edge_index, num_nodes=nodes, **_features(experiment, nodes, edge_index.size(1))))
    task = experiment.task
    if task.level == "link":
        return from_pyg(graphs, level="link", name=experiment.dataset).with_encodings(experiment.model.encodings)
    packed, features = pack(graphs)
    count = GRAPHS if task.level == "graph" else int(packed.num_nodes.sum())
    if task.kind == "multiclass":
        y: Any = generator.integers(0, task.outputs, count)
    else:
        y = generator.normal(size=(count, task.outputs)).astype(np.float32)
        if task.kind == "binary":
            y = np.where(np.abs(y) < 0.2, np.nan, y > 0).astype(np.float32)
    getattr(packed, task.level)["y"] = y
    everything = np.arange(GRAPHS)
    model = experiment.model
    if model.beside != "none":
        width = DESCRIPTOR_WIDTH[model.beside]
        packed.graph["descriptors"] = generator.normal(size=(GRAPHS, width)).astype(np.float32)
    return GraphData(
        name=experiment.dataset,
        level=task.level,
        task=task.kind,
        num_outputs=task.outputs,
        task_names=tuple(f"y{number}" for number in range(task.outputs)),
        features=_described(experiment, features),
        source="made up",
        graphs=packed.with_encodings(model.encodings),
        splits={"train": everything, "val": everything},
    )


def _features(experiment: Experiment, nodes: int, edges: int) -> dict[str, torch.Tensor]:
    features = experiment.features
    if features.kind == "categorical":
        x, e = torch.randint(0, features.node_types, (nodes,)), torch.randint(1, features.edge_types, (edges,))
    elif features.kind == "ogb":
        x = torch.stack([torch.randint(0, size, (nodes,)) for size in OGB_ATOM_TABLE], dim=1)
        e = torch.stack([torch.randint(0, size, (edges,)) for size in OGB_BOND_TABLE], dim=1)
    elif features.kind == "continuous":
        x, e = torch.randn(nodes, features.node_features), torch.rand(edges, features.edge_features)
    else:
        return {}
    return {"x": x, "edge_attr": e}


def _described(experiment: Experiment, found: Features) -> Features:
    wanted = experiment.features
    if wanted.kind != "categorical":
        return found
    return CategoricalFeatures(node_types=wanted.node_types, edge_types=wanted.edge_types)


LINKS = [name for name in list_presets() if read_experiment(name).task.level == "link"]


@pytest.mark.parametrize("name", LINKS)
def test_links_are_learned_though_unjoined_pairs_change(name: str, tmp_path: Path) -> None:
    settings = ("training.hidden_share=0", "training.protocol.lr=0.01", "training.protocol.max_epochs=30")
    experiment = override(read_experiment(name), settings)
    run = fit(experiment, made_up(experiment), tmp_path / "run", device="cpu", threads=1)
    losses = [row["train_loss"] for row in run.history]
    assert np.mean(losses[-5:]) < np.mean(losses[:5])
    assert np.isfinite([row["val_loss"] for row in run.history]).all()


@pytest.mark.parametrize("name", [name for name in list_presets() if name not in LINKS])
def test_three_steps_lower_the_loss(name: str, tmp_path: Path) -> None:
    still = ("model.dropout=0", "model.head_dropout=0", "training.protocol.lr=2e-5", "training.protocol.max_epochs=3")
    experiment = read_experiment(name)
    if experiment.training.protocol.kind == "paper":
        still = (*still, "training.protocol.min_lr=1e-9")
    if experiment.training.positional_loss is not None:
        still = (*still, "training.positional_loss.weight=0")  # a term that has no gradient as released
    experiment = override(experiment, still)
    run = fit(experiment, made_up(experiment), tmp_path / "run", device="cpu", threads=1)
    losses = [row["train_loss"] for row in run.history]
    assert losses[2] < losses[0]
    assert np.isfinite([row["val_loss"] for row in run.history]).all()
    assert run.summary["protocol"] == experiment.training.protocol.kind
