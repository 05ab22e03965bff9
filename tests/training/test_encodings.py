"""Every encoding from data to a prediction: as the start of p, as a plain input, and of pairs."""

from pathlib import Path

import networkx as nx
import numpy as np
import pytest
import torch
from torch_geometric.data import Data

import lspe
from lspe.encodings import KINDS, find_kind
from lspe.errors import UserError
from tests.graphs import from_networkx

SMALL = {"model.layers": 1, "model.hidden_dim": 8, "training.batch_size": 8}
SAN = "model={name: san, layers: 1, hidden_dim: 8, heads: 2, lspe: true, encoding: rwpe, k: 3"


@pytest.fixture(scope="module")
def graphs() -> list[Data]:
    """Random graphs whose target is how many edges they have."""
    found = []
    for seed in range(24):
        data = from_networkx(nx.gnm_random_graph(5 + seed % 4, 4 + seed % 7, seed=seed))
        data.x = torch.zeros(data.num_nodes, dtype=torch.long)
        data.y = torch.tensor([[data.num_edges / 10]])
        found.append(data)
    return found


def check_run(graphs: list[Data], folder: Path, settings: object) -> lspe.Run:
    run = lspe.train(graphs, settings=settings, epochs=1, out=folder, threads=1)  # type: ignore[arg-type]
    predicted = np.asarray(lspe.load(run.path).predict(graphs))
    assert np.isfinite(predicted).all()
    alone = np.concatenate([np.asarray(lspe.load(run.path).predict([graph])) for graph in graphs[:3]])
    np.testing.assert_allclose(alone, predicted[:3], atol=1e-5)
    return run


@pytest.mark.parametrize("kind", [name for name in KINDS if find_kind(name).level == "node"])
def test_an_encoding_of_nodes_starts_the_positions(kind: str, graphs: list[Data], tmp_path: Path) -> None:
    run = check_run(graphs, tmp_path / "run", {**SMALL, "model.encoding": kind, "model.k": 4})
    assert (run.config.model.encoding, run.config.model.lspe) == (kind, True)


@pytest.mark.parametrize("kind", [name for name in KINDS if find_kind(name).level == "pair"])
def test_an_encoding_of_pairs_meets_the_edges(kind: str, graphs: list[Data], tmp_path: Path) -> None:
    k = find_kind(kind).width or 4
    run = check_run(graphs, tmp_path / "run", {**SMALL, "model.pair_encoding": kind, "model.pair_k": k})
    assert run.network().embed_pair.weight.shape == (8, k)


def test_an_encoding_of_pairs_meets_all_pairs_of_full_attention(graphs: list[Data], tmp_path: Path) -> None:
    check_run(graphs, tmp_path / "run", [f"{SAN}, pair_encoding: rrwp, pair_k: 5}}"])


def test_an_encoding_as_a_plain_input(graphs: list[Data], tmp_path: Path) -> None:
    plain = {"model.lspe": False, "model.final": "structure", "model.normalize_positions": False}
    run = check_run(graphs, tmp_path / "run", {**SMALL, **plain, "model.encoding": "heat", "model.k": 4})
    assert not run.network().lspe


def test_signs_need_not_be_drawn(graphs: list[Data], tmp_path: Path) -> None:
    settings = {**SMALL, "model.encoding": "lappe", "model.k": 4, "model.signs": "invariant"}
    check_run(graphs, tmp_path / "run", settings)


@pytest.mark.parametrize(
    "settings, message",
    [
        ({"model.encoding": "rpwe"}, r"model\.\w+: there is no encoding 'rpwe'; there are rwpe"),
        ({"model.encoding": "rrwp"}, "'rrwp' is an encoding of pairs, and here one of nodes is needed"),
        ({"model.pair_encoding": "heat", "model.pair_k": 3}, "'heat' is an encoding of nodes"),
        ({"model.pair_encoding": "rrwp"}, "at least one column, not k = 0"),
        ({"model.signs": "invariant"}, "signs='invariant' is for encodings with signs"),
        ({"model.encoding": "nowhere:f"}, "there is no module 'nowhere'"),
    ],
)
def test_what_does_not_fit_is_refused_before_anything_is_computed(
    settings: dict[str, object], message: str, graphs: list[Data], tmp_path: Path
) -> None:
    with pytest.raises(UserError, match=message):
        lspe.train(graphs, settings=settings, epochs=1, out=tmp_path / "run")
    assert not (tmp_path / "run").exists()
