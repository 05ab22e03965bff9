"""Encodings of one's own, by import path and by the name of an attribute."""

import dataclasses
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
import torch
from torch_geometric.data import Batch, Data

import lspe
from lspe.data import PackedGraphs, from_pyg
from lspe.encodings import AddEncoding, EncodingKind, encode, find_kind, random_walk_encoding
from lspe.errors import UserError
from tests.graphs import bicyclopentyl, decalin, from_edges

MODULE = """
import torch
from lspe.encodings import find_kind

calls = []

def twice_the_degree(edge_index, num_nodes, k):
    calls.append(num_nodes)
    degree = torch.bincount(edge_index[0], minlength=num_nodes)
    return 2 * degree[:, None].repeat(1, k)

def batched(edge_index, num_nodes, k, *, edge_weight=None, batch=None):
    calls.append(batch)
    return torch.full((num_nodes, k), 3.0)

def wrong_shape(edge_index, num_nodes, k):
    return torch.ones(num_nodes, k + 1)

def infinite(edge_index, num_nodes, k):
    return torch.full((num_nodes, k), float("inf"))

def no_tensor(edge_index, num_nodes, k):
    return None

def no_k(edge_index, num_nodes):
    return None

kind = find_kind("rwpe")
number = 3
"""


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "stranger.py").write_text(MODULE)
    (tmp_path / "broken.py").write_text("1 / 0")
    yield tmp_path
    sys.modules.pop("stranger", None)


def test_a_function_is_found_where_one_works_and_called_graph_by_graph() -> None:
    batch = Batch.from_data_list([decalin(), from_edges(1, []), from_edges(3, [(0, 2)])])
    values = encode("stranger:twice_the_degree", batch.edge_index, None, 2, batch=batch.batch, dtype=torch.float64)
    assert values.dtype is torch.float64
    degree = torch.bincount(batch.edge_index[0], minlength=14)
    assert torch.equal(values, 2.0 * degree[:, None].repeat(1, 2))
    import stranger  # type: ignore[import-not-found]

    assert stranger.calls == [10, 1, 3]
    assert AddEncoding("stranger:twice_the_degree", 3)(decalin()).stranger_twice_the_degree.shape == (10, 3)


def test_a_function_that_takes_a_batch_gets_it_at_once() -> None:
    batch = Batch.from_data_list([decalin(), decalin()])
    assert encode("stranger:batched", batch.edge_index, None, 2, batch=batch.batch).tolist() == [[3.0, 3.0]] * 20
    import stranger

    assert len(stranger.calls) == 1
    assert torch.equal(stranger.calls[0], batch.batch)


def test_a_kind_may_be_named_too() -> None:
    edges = decalin().edge_index
    assert find_kind("stranger:kind").name == "stranger:kind"
    assert torch.equal(encode("stranger:kind", edges, 10, 4), random_walk_encoding(edges, 10, 4))


def test_a_kind_may_be_given_as_an_object() -> None:
    ones = EncodingKind("ones", "Ones", "columns", "ones_pe", "p_i = 1", lambda edges, n, k, **_: torch.ones(n, k))
    assert AddEncoding(ones, 2)(decalin()).ones_pe.tolist() == [[1.0, 1.0]] * 10


@pytest.mark.parametrize(
    "path, message",
    [
        ("strange:f", "there is no module 'strange' where Python looks"),
        ("stranger:twice_the_degre", "stranger.py has no 'twice_the_degre'; did you mean 'twice_the_degree'"),
        ("broken:f", "broken cannot be imported: ZeroDivisionError"),
        ("stranger:number", "is a int, not a function"),
        ("stranger:no_k", "has no 'k': an encoding is a function"),
        ("stranger:wrong_shape", r"gives \[10, 5\], but an encoding of 10 nodes is \[10, 4\]"),
        ("stranger:infinite", "gives values for node 0 that are not finite"),
        ("stranger:no_tensor", "gives a NoneType"),
        ("two words:f", "there is no encoding 'two words:f'; there are rwpe"),
        ("attribute:mine", "is read from graphs that have the attribute 'mine'; it cannot be computed"),
    ],
)
def test_what_cannot_be_used_is_refused_in_words(path: str, message: str) -> None:
    with pytest.raises(UserError, match=message):
        encode(path, decalin().edge_index, 10, 4)


def test_weights_are_not_left_out_silently() -> None:
    edges = decalin().edge_index
    with pytest.raises(UserError, match="takes no edge_weight, but the edges have weights"):
        encode("stranger:twice_the_degree", edges, 10, 4, edge_weight=torch.ones(edges.size(1)))


def test_what_another_version_of_a_file_computed_is_not_used_again(folder: Path) -> None:
    data = decalin()
    packed = PackedGraphs.from_arrays([10], [data.num_edges], data.edge_index.numpy()).save(folder / "set.lspe")
    first = packed.with_encoding("stranger:twice_the_degree", 2)[0].stranger_twice_the_degree
    import stranger

    stranger.calls.clear()
    packed.with_encoding("stranger:twice_the_degree", 2)
    assert not stranger.calls, "it was kept"
    (folder / "stranger.py").write_text(MODULE.replace("2 * degree", "5.5 * degree"))
    sys.modules.pop("stranger")
    second = packed.with_encoding("stranger:twice_the_degree", 2)[0].stranger_twice_the_degree
    torch.testing.assert_close(second, 2.75 * first)


def with_attribute(data: Data, y: float) -> Data:
    n = data.num_nodes
    return Data(
        x=torch.zeros(n, dtype=torch.long), edge_index=data.edge_index, y=torch.tensor([y]), mine=torch.rand(n, 3)
    )  # fmt: skip


def test_an_attribute_of_the_graphs_is_taken_as_it_is() -> None:
    graphs = [with_attribute(decalin(), 0.5), with_attribute(bicyclopentyl(), 1.5), with_attribute(decalin(), 2.5)]
    packed = from_pyg(graphs).graphs
    batch = packed.with_encoding("attribute:mine", 3).batch()
    assert torch.equal(batch.mine, torch.cat([one.mine for one in graphs]))
    with pytest.raises(UserError, match="the nodes of the graphs have no 'yours'; they have x, mine"):
        packed.with_encoding("attribute:yours", 3)
    with pytest.raises(UserError, match="'mine' has 3 columns, not k = 4: set"):
        packed.with_encoding("attribute:mine", 4)
    values = packed.node["mine"].copy()
    values[13, 1] = np.nan
    spoiled = dataclasses.replace(packed, node={**packed.node, "mine": values})
    with pytest.raises(UserError, match="graph 1 has values in 'mine' that are not finite"):
        spoiled.with_encoding("attribute:mine", 3)


@pytest.mark.parametrize("encoding", ["attribute:mine", "stranger:twice_the_degree"])
def test_a_network_learns_from_it_and_its_run_predicts_later(encoding: str, folder: Path) -> None:
    graphs = [with_attribute(decalin() if i % 2 else bicyclopentyl(), float(i % 2)) for i in range(20)]
    settings = [f"model.encoding={encoding}", "model.k=3", "model.layers=1", "model.hidden_dim=8"]
    run = lspe.train(graphs, settings=settings, epochs=1, out=folder / "run", threads=1)
    assert run.config.model.encoding == encoding
    predicted = lspe.load(run.path).predict(graphs[:4])
    assert np.isfinite(np.asarray(predicted)).all()
