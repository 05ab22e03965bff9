"""Whole networks against the authors' release, in float64: scores, losses, gradients, BN statistics."""

from pathlib import Path

import pytest
import torch
from torch import Tensor
from torch.nn import functional as F
from torch_geometric.data import Data

from lspe.config import validate
from lspe.experiment.catalogue import build_network
from lspe.experiment.preset import Preset
from lspe.nn import PNA, Network, positional_loss
from tests.reference.release import (
    Case,
    SlippedPNA,
    assert_buffers,
    assert_close,
    assert_gradients,
    files,
    folder,
    load_weights,
    topology,
)

TOLERANCE = 1e-8
FLOAT32_LOSS = 1e-7  # the release rounds the orthogonality term of its positional loss to float32
FILES = files("net_*.npz")

pytestmark = pytest.mark.skipif(folder() is None, reason="set LSPE_REFVECTORS to the folder of reference vectors")


def build(case: Case) -> Network:
    meta = case.meta
    zinc, name = meta["family"] == "ZINC", meta["model"].lower()
    lspe = case.get("state/p_out.weight") is not None
    model = {
        "name": name,
        "layers": meta["L"],
        "hidden_dim": meta["hidden_dim"],
        "readout": meta["readout"],
        "lspe": lspe,
        "final": "structure+position" if case.get("state/Whp.weight") is not None else "structure",
        # eigenvectors stand in for random walks: the network is the same but for the random signs of training,
        # which the stored numbers were made without
        "encoding": "none" if meta["pe_init"] == "no_pe" else "rwpe",
        "k": 0 if meta["pe_init"] == "no_pe" else meta["pos_enc_dim"],
        "normalize_positions": lspe and _normalizes(zinc, name, meta["use_lapeig_loss"]),
        "position_epsilon": 1e-16 if zinc else 1e-6,
    }
    if name == "gatedgcn":
        model["size_norm"] = lspe or not zinc
        model["residual"] = zinc or not lspe  # without residuals by a slip
    elif name == "pna":
        model["edge_dim"] = meta["edge_dim"]
        model["delta"] = meta["avg_d_log"]
        model["towers"] = meta["towers"] if zinc else None
        model["aggregators"] = meta["aggregators"].split()
        model["scalers"] = meta["scalers"].split()
    else:
        model["heads"] = meta["n_heads"]
    preset = {
        "name": "reference",
        "dataset": "reference",
        "task": {
            "kind": "regression" if zinc else "binary",
            "outputs": case["eval/scores"].size(1),
            "metric": "mae" if zinc else "roc_auc",
        },
        "features": {
            "kind": "categorical",
            "node_types": meta["num_atom_type"],
            "edge_types": meta["num_bond_type"],
        }
        if zinc
        else {"kind": "ogb"},
        "model": model,
        "training": {},
    }
    network = build_network(validate(Preset, preset, "reference")).double()
    if name == "pna" and lspe and not zinc:
        for layer in network.layers:
            assert isinstance(layer, PNA)
            layer.__class__ = SlippedPNA
    load_weights(network, case)
    return network


def _normalizes(zinc: bool, name: str, positional_loss: bool) -> bool:
    if zinc:
        return name in ("gatedgcn", "pna")
    return name in ("san", "graphit") or positional_loss


def data_of(case: Case) -> Data:
    return Data(
        x=case["in/x"],
        edge_index=case.edge_index,
        edge_attr=case["in/edge_attr"],
        random_walk_pe=case.get("in/pos_enc"),
        batch=case["in/batch"],
    )


def task_loss(case: Case, scores: Tensor) -> Tensor:
    y = case["in/y"]
    if case.meta["family"] == "ZINC":
        return F.l1_loss(scores, y)
    labelled = ~y.isnan()
    return F.binary_cross_entropy_with_logits(scores[labelled], y[labelled])


@pytest.mark.parametrize("mode", ["train", "eval"])
@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_network(path: Path, mode: str) -> None:
    case = Case(path)
    network = build(case)
    assert sum(parameter.numel() for parameter in network.parameters()) == case.meta["n_params"]
    network.train(mode == "train")
    graph = topology(case)
    out = network.run(data_of(case), graph)

    assert_close(out.output, case[f"{mode}/scores"], TOLERANCE, "scores")
    assert_close(out.h, case[f"{mode}/h_final"], TOLERANCE, "final node features")
    if case.get(f"{mode}/p_final") is not None:
        assert_close(out.p, case[f"{mode}/p_final"], TOLERANCE, "final positions")
    loss, tolerance = task_loss(case, out.output), TOLERANCE
    if case.meta["use_lapeig_loss"]:
        assert_close(loss, case[f"{mode}/task_loss"], TOLERANCE, "task loss")
        loss = loss + case.meta["alpha_loss"] * positional_loss(
            out.p,
            graph.real_edge_index,
            graph.batch,
            graph.num_graphs,
            weight=case.meta["lambda_loss"],
            scaling="released",
        )
        tolerance = FLOAT32_LOSS
    assert_close(loss, case[f"{mode}/loss"], tolerance, "loss")
    loss.backward()
    assert_gradients(network, case, mode, TOLERANCE)
    if mode == "train":
        assert_buffers(network, case, TOLERANCE)


def _added_pairs_share_a_feature(path: Path) -> bool:
    case = Case(path)
    return case.real is not None and not case["in/edge_attr"][~case.real].any()


@pytest.mark.parametrize("path", list(filter(_added_pairs_share_a_feature, FILES)), ids=lambda path: path.stem)
def test_added_pairs_need_not_be_listed(path: Path) -> None:
    """Where all added pairs carry the same feature, listing only the real edges gives the same scores."""
    case = Case(path)
    real = case.real
    network = build(case).eval()
    graph, data = topology(case), data_of(case)
    data.edge_index, data.edge_attr = data.edge_index[:, real], data.edge_attr[real]
    graph = type(graph)(data.edge_index, graph.num_nodes, graph.batch, kernel=graph._kernel)
    assert_close(network(data, graph), case["eval/scores"], TOLERANCE, "scores")


def test_files_are_there() -> None:
    assert FILES
    assert torch.get_default_dtype() == torch.float32
