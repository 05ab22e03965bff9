import pickle
from pathlib import Path

import numpy as np
import pytest
import torch
from torch_geometric.transforms import AddRandomWalkPE

from lspe.data import PackedGraphs
from lspe.data.packed import cached_encodings
from lspe.encodings import estimate_random_walk_encoding, laplacian_encoding, relative_walk_encoding
from lspe.encodings.random_walk import PROBES
from lspe.errors import UserError
from tests.graphs import CORNER_CASES


@pytest.fixture
def packed(tmp_path: Path) -> PackedGraphs:
    """The corner cases, mapped from a file."""
    graphs = list(CORNER_CASES.values())
    return PackedGraphs.from_arrays(
        [graph.num_nodes for graph in graphs],
        [graph.num_edges for graph in graphs],
        torch.cat([graph.edge_index for graph in graphs], dim=1).numpy(),
    ).save(tmp_path / "set.lspe")


def test_random_walk_encodings_are_those_of_each_graph(packed: PackedGraphs) -> None:
    encoded = packed.with_encoding("rwpe", 6)
    transform = AddRandomWalkPE(6, attr_name="expected")
    with_edges = 0
    for data in encoded:
        assert data.random_walk_pe.shape == (data.num_nodes, 6)
        if data.num_edges == 0:
            assert not data.random_walk_pe.any()
        else:
            torch.testing.assert_close(data.random_walk_pe, transform(data).expected)
            with_edges += 1
    assert with_edges > 8
    batch = encoded.batch([8, 1])
    assert torch.equal(batch.random_walk_pe, torch.cat([encoded[8].random_walk_pe, encoded[1].random_walk_pe]))


def test_laplacian_encodings_are_those_of_each_graph(packed: PackedGraphs) -> None:
    for data in packed.with_encoding("lappe", 4):
        expected, _ = laplacian_encoding(data.edge_index, data.num_nodes, 4)
        assert torch.equal(data.laplacian_eigenvector_pe, expected)


def test_encodings_of_pairs_are_those_of_the_edges_of_each_graph(packed: PackedGraphs) -> None:
    encoded = packed.with_encodings([("rwpe", 3), ("rrwp", 4)])
    for data in encoded:
        assert torch.equal(data.edge_relative_walk_pe, relative_walk_encoding(data.edge_index, data.num_nodes, 4))
    batch = encoded.batch([8, 1, 5])
    expected = relative_walk_encoding(batch.edge_index, None, 4, batch=batch.batch)
    assert torch.equal(batch.edge_relative_walk_pe, expected)
    assert torch.equal(pickle.loads(pickle.dumps(encoded)).batch([8, 1, 5]).edge_relative_walk_pe, expected)


def test_small_portions_give_the_same(packed: PackedGraphs, monkeypatch: pytest.MonkeyPatch) -> None:
    in_memory = PackedGraphs(packed.node_ptr, packed.edge_ptr, packed.source, packed.target)
    monkeypatch.setattr("lspe.data.packed.cached_encodings._NODES_AT_ONCE", 7)
    portions = in_memory.with_encoding("rwpe", 6).node["random_walk_pe"]
    np.testing.assert_array_equal(portions, packed.with_encoding("rwpe", 6).node["random_walk_pe"])


def test_an_encoding_is_computed_once_and_read_again(packed: PackedGraphs, monkeypatch: pytest.MonkeyPatch) -> None:
    first = packed.with_encoding("rwpe", 6).batch().random_walk_pe

    def never(*_: object) -> None:
        raise AssertionError("computed again")

    monkeypatch.setattr("lspe.data.packed.cached_encodings._compute", never)
    assert torch.equal(packed.select([0, 1]).with_encoding("rwpe", 6).batch().random_walk_pe, first[:3])
    with pytest.raises(AssertionError, match="computed again"):
        packed.with_encoding("rwpe", 7)
    with pytest.raises(AssertionError, match="computed again"):
        packed.with_encoding("lappe", 6)


@pytest.mark.parametrize("damage", ["cut", "changed", "of another set"])
def test_a_damaged_or_foreign_cache_is_made_anew(packed: PackedGraphs, tmp_path: Path, damage: str) -> None:
    expected = packed.with_encoding("rwpe", 6).node["random_walk_pe"].copy()
    [cached] = tmp_path.glob("set.rwpe6-*.lspe")
    content = bytearray(cached.read_bytes())
    if damage == "cut":
        cached.write_bytes(content[:-5])
    elif damage == "changed":
        content[-5] ^= 1
        cached.write_bytes(content)
    else:
        other = PackedGraphs.from_arrays([2], [0], np.empty((2, 0), dtype=np.int64)).save(tmp_path / "other.lspe")
        other.with_encoding("rwpe", 6)
        [foreign] = tmp_path.glob("other.rwpe6-*.lspe")
        cached.write_bytes(foreign.read_bytes())
    np.testing.assert_array_equal(packed.with_encoding("rwpe", 6).node["random_walk_pe"], expected)


def test_changed_graphs_get_their_own_encoding(tmp_path: Path) -> None:
    path = tmp_path / "set.lspe"
    ring = PackedGraphs.from_arrays([3], [6], [[0, 1, 1, 2, 2, 0], [1, 0, 2, 1, 0, 2]]).save(path)
    first = ring.with_encoding("rwpe", 3)[0].random_walk_pe
    chain = PackedGraphs.from_arrays([3], [4], [[0, 1, 1, 2], [1, 0, 2, 1]]).save(path)
    assert not torch.equal(chain.with_encoding("rwpe", 3)[0].random_walk_pe, first)


def test_a_set_in_a_read_only_folder_keeps_its_encoding_in_the_cache(
    packed: PackedGraphs, cache: Path, tmp_path: Path
) -> None:
    folder = tmp_path / "read only"
    folder.mkdir()
    elsewhere = packed.save(folder / "set.lspe")
    folder.chmod(0o555)
    try:
        elsewhere.with_encoding("rwpe", 3)
    finally:
        folder.chmod(0o755)
    assert [path.name.split("-")[0] for path in (cache / "encodings").glob("*.lspe")] == ["set.rwpe3"]
    assert not list(folder.glob("*rwpe*"))


def test_what_is_no_encoding_is_refused(packed: PackedGraphs) -> None:
    with pytest.raises(UserError, match="no encoding 'rw'"):
        packed.with_encoding("rw", 3)  # type: ignore[arg-type]
    with pytest.raises(UserError, match="k = 0"):
        packed.with_encoding("rwpe", 0)


def test_of_large_graphs_the_walk_is_estimated(packed: PackedGraphs, monkeypatch: pytest.MonkeyPatch) -> None:
    """Beside the exact one, which is there again when the graphs count as small."""
    exact = packed.with_encoding("rwpe", 5)
    degree = packed.with_encoding("degree", 1)
    sizes = packed.num_nodes
    limit = int(np.sort(sizes)[len(sizes) // 2])
    assert limit < sizes.max()
    monkeypatch.setattr(cached_encodings, "LARGEST_EXACT", limit)
    estimated = packed.with_encoding("rwpe", 5)
    for number, (one, other) in enumerate(zip(exact, estimated, strict=True)):
        if sizes[number] > limit:
            alone = estimate_random_walk_encoding(one.edge_index, int(sizes[number]), 5, probes=PROBES)
            torch.testing.assert_close(other.random_walk_pe, alone.value)
        else:
            torch.testing.assert_close(other.random_walk_pe, one.random_walk_pe, rtol=0, atol=0)
    assert any(not torch.equal(a.random_walk_pe, b.random_walk_pe) for a, b in zip(exact, estimated, strict=True))
    np.testing.assert_array_equal(packed.with_encoding("degree", 1).node["degree_pe"], degree.node["degree_pe"])
    monkeypatch.undo()
    np.testing.assert_array_equal(packed.with_encoding("rwpe", 5).node["random_walk_pe"], exact.node["random_walk_pe"])
