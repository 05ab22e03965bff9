"""Every layer against the authors' release, in float64: outputs, gradients, BN statistics."""

from pathlib import Path

import pytest
import torch
from torch import nn

from lspe.nn import PNA, SAN, GatedGCN, GraphiT, TowerPNA
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

TOLERANCE = 1e-10
FILES = files("layer_*.npz")

pytestmark = pytest.mark.skipif(folder() is None, reason="set LSPE_REFVECTORS to the folder of reference vectors")


def build_layer(case: Case, slip: bool = True) -> nn.Module:
    meta, d = case.meta, case.meta["d"]
    lspe = case.get("in/p") is not None
    kind = meta["layer"].split()[0].removesuffix("_lspe")
    if kind == "gatedgcn":
        return GatedGCN(d, lspe=lspe, size_norm=meta["graph_norm"], residual=meta["residual"])
    if kind == "pna":
        options = {
            "delta": meta["avg_d_log"],
            "lspe": lspe,
            "size_norm": meta["graph_norm"],
            "residual": meta["residual"],
            "aggregators": meta["aggregators"].split(),
            "scalers": meta["scalers"].split(),
        }
        if "towers" in meta:
            return TowerPNA(d, meta["edge_dim"], towers=meta["towers"], **options)
        return (SlippedPNA if lspe and slip else PNA)(d, meta["edge_dim"], **options)
    layer = {"san": SAN, "graphit": GraphiT}[kind]
    return layer(d, meta["heads"], lspe=lspe, residual=meta["residual"])


@pytest.mark.parametrize("mode", ["train", "eval"])
@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_layer(path: Path, mode: str) -> None:
    case = Case(path)
    layer = build_layer(case).double()
    load_weights(layer, case)
    layer.train(mode == "train")
    inputs = {key: case[f"in/{key}"].requires_grad_() for key in "hpe" if case.get(f"in/{key}") is not None}
    graph = topology(case)
    if case.real is not None:  # every pair is listed with an embedding of its own: the shared one is not used
        graph = graph.with_added_pair(torch.full((case.meta["d"],), 7.0, dtype=torch.float64))
    out = dict(zip("hpe", layer(inputs["h"], inputs.get("p"), inputs["e"], graph), strict=True))

    compared = [key for key in "hpe" if case.get(f"cot/{key}") is not None]
    for key in compared:
        assert_close(out[key], case[f"{mode}/out/{key}"], TOLERANCE, f"{mode} {key}")
    if mode == "train":
        assert_buffers(layer, case, TOLERANCE)
    loss = sum((case[f"cot/{key}"] * out[key]).sum() for key in compared)
    loss.backward()
    assert_close(loss, case[f"{mode}/loss"], TOLERANCE, f"{mode} loss")
    for key, tensor in inputs.items():
        expected = case.get(f"{mode}/grad_in/{key}")
        assert expected is not None
        assert_close(tensor.grad, expected, TOLERANCE, f"{mode} gradient of the input {key}")
    assert_gradients(layer, case, mode, TOLERANCE)


@pytest.mark.parametrize("path", files("layer_pna_notowers_lspe*.npz"), ids=lambda path: path.stem)
def test_our_pna_without_towers_learns_positions(path: Path) -> None:
    """Ours keeps to the paper: the same structure as the release, positions from the position branch."""
    case = Case(path)
    layer = build_layer(case, slip=False).double().eval()
    load_weights(layer, case)
    h, p, _ = layer(case["in/h"], case["in/p"], case["in/e"], topology(case))
    assert_close(h, case["eval/out/h"], TOLERANCE, "h")
    assert (p - case["eval/out/p"]).abs().max() > 1e-3
    p.sum().backward()
    assert layer.aggregate_p.update.weight.grad.abs().max() > 0


def test_files_are_there() -> None:
    assert FILES
