"""The official archives' layouts, as small archives written here, read by our converters and by PyG's or OGB's own."""

import gzip
import io
import json
import pickle
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from torch_geometric.data import Data
from torch_geometric.datasets import TUDataset
from torch_geometric.io import read_tu_data

from lspe.data import DataError, GraphData, load_benchmark
from lspe.data.benchmarks import cifar10, imdb, ogb, zinc
from lspe.data.molecules.descriptors import RDKIT_NAMES

Molecule = dict[str, Any]


def molecule(seed: int) -> Molecule:
    """A molecule as the pickles of ZINC hold it."""
    generator = torch.Generator().manual_seed(seed)
    n = int(torch.randint(2, 8, (1,), generator=generator))
    bonds = torch.zeros(n, n, dtype=torch.long)
    for i in range(1, n):
        j = int(torch.randint(0, i, (1,), generator=generator))
        bonds[i, j] = bonds[j, i] = int(torch.randint(1, 4, (1,), generator=generator))
    return {
        "num_atom": n,
        "atom_type": torch.randint(0, 28, (n,), generator=generator),
        "bond_type": bonds,
        "logP_SA_cycle_normalized": torch.randn(1, generator=generator),
    }


def zinc_archive(path: Path, parts: dict[str, list[Molecule]]) -> Path:
    with zipfile.ZipFile(path, "w") as archive:
        for name, molecules in parts.items():
            archive.writestr(f"molecules/{name}.pickle", pickle.dumps(molecules))
    return path


@pytest.fixture
def zinc_parts() -> dict[str, list[Molecule]]:
    return {
        name: [molecule(100 * number + seed) for seed in range(size)]
        for number, (name, size) in enumerate((("train", 9), ("val", 5), ("test", 4)))
    }


def assert_is_molecule(data: Data, expected: Molecule) -> None:
    adjacency = torch.zeros_like(expected["bond_type"])
    adjacency[data.edge_index[0], data.edge_index[1]] = data.edge_attr
    assert torch.equal(adjacency, expected["bond_type"])
    assert torch.equal(data.x, expected["atom_type"])
    assert data.y.item() == expected["logP_SA_cycle_normalized"].item()


def test_zinc_full_from_its_archive(tmp_path: Path, zinc_parts: dict[str, list[Molecule]]) -> None:
    archive = zinc_archive(tmp_path / "molecules.zip", zinc_parts)
    zinc.from_archive(tmp_path / "set.lspe", archive, None)
    data = GraphData.open(tmp_path / "set.lspe")
    assert {name: len(part) for name, part in data.splits.items()} == {"train": 9, "val": 5, "test": 4}
    for name, molecules in zinc_parts.items():
        for ours, expected in zip(data.split(name), molecules, strict=True):
            assert_is_molecule(ours, expected)


def test_zinc_subset_is_chosen_by_the_index_files(tmp_path: Path, zinc_parts: dict[str, list[Molecule]]) -> None:
    archive = zinc_archive(tmp_path / "molecules.zip", zinc_parts)
    chosen = {"train": [7, 0, 3], "val": [4], "test": [1, 2]}
    indices = {}
    for name, numbers in chosen.items():
        indices[name] = tmp_path / f"{name}.index"
        indices[name].write_text(",".join(map(str, numbers)) + "\n")
    zinc.from_archive(tmp_path / "set.lspe", archive, indices)
    data = GraphData.open(tmp_path / "set.lspe")
    for name, numbers in chosen.items():
        assert len(data.split(name)) == len(numbers)
        for ours, number in zip(data.split(name), numbers, strict=True):
            assert_is_molecule(ours, zinc_parts[name][number])


class Evil:
    def __reduce__(self) -> tuple[Callable[..., Any], tuple[str]]:
        return exec, ("raise SystemExit('code from the archive was run')",)


def test_code_in_a_pickle_is_refused_not_run(tmp_path: Path, zinc_parts: dict[str, list[Molecule]]) -> None:
    zinc_parts["val"][2]["bond_type"] = Evil()
    archive = zinc_archive(tmp_path / "molecules.zip", zinc_parts)
    with pytest.raises(DataError, match=r"asks for builtins\.exec"):
        zinc.from_archive(tmp_path / "set.lspe", archive, None)
    assert not (tmp_path / "set.lspe").exists()


def test_an_archive_that_is_another_one_is_refused(
    tmp_path: Path, zinc_parts: dict[str, list[Molecule]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("LSPE_DATA", raising=False)
    zinc_archive(tmp_path / "molecules.zip", zinc_parts)
    with pytest.raises(
        DataError, match=r"gives parts of \[9, 5, 4\] molecules; there should be \[220011, 24445, 5000\]"
    ):
        load_benchmark("zinc-full", tmp_path)
    del zinc_parts["test"]
    archive = zinc_archive(tmp_path / "other.zip", zinc_parts)
    with pytest.raises(DataError, match=r"has no test.pickle"):
        zinc.from_archive(tmp_path / "set.lspe", archive, None)


def tu_archive(path: Path, name: str) -> Path:
    """Three graphs: a triangle, an isolated node with a loop, a path with an edge listed twice. Labels 1 and 3."""
    edges = [(1, 2), (2, 1), (2, 3), (3, 2), (1, 3), (3, 1), (4, 4), (5, 6), (6, 5), (5, 6), (6, 7), (7, 6)]
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr(f"{name}/{name}_A.txt", "".join(f"{i}, {j}\n" for i, j in edges))
        archive.writestr(f"{name}/{name}_graph_indicator.txt", "1\n1\n1\n2\n3\n3\n3\n")
        archive.writestr(f"{name}/{name}_graph_labels.txt", "3\n1\n3\n")
    return path


def test_tudataset_is_read_as_pyg_reads_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    archive = tu_archive(tmp_path / "IMDB-BINARY.zip", "IMDB-BINARY")
    monkeypatch.setattr(imdb, "k_folds", lambda count, folds, labels: [])
    imdb.build(tmp_path / "set.lspe", archive, "IMDB-BINARY")
    ours = GraphData.open(tmp_path / "set.lspe").graphs
    with zipfile.ZipFile(archive) as files:
        files.extractall(tmp_path)
    theirs, slices, _ = read_tu_data(str(tmp_path / "IMDB-BINARY"), "IMDB-BINARY")
    assert ours.num_nodes.tolist() == theirs._num_nodes == [3, 1, 3]
    for number, data in enumerate(ours):
        begin, end = slices["edge_index"][number : number + 2].tolist()
        expected = theirs.edge_index[:, begin:end].numpy()
        order = np.lexsort(expected)
        np.testing.assert_array_equal(data.edge_index, expected[:, order])
        assert data.y.item() == theirs.y[number].item()


def test_the_official_imdb_archive_without_folds_gets_stratified_ones(shared_data: Path, tmp_path: Path) -> None:
    with (
        zipfile.ZipFile(shared_data / "IMDB-MULTI.zip") as given,
        zipfile.ZipFile(tmp_path / "IMDB-MULTI.zip", "w") as out,
    ):
        for name in given.namelist():
            if "10fold_idx" not in name:
                out.writestr(name, given.read(name))
    data = load_benchmark("imdb-multi", tmp_path)
    assert "made here" in data.source
    assert len(data.folds) == 10
    for fold in data.folds:
        assert np.bincount(data.graphs.y[fold["test"]]).tolist() == [50, 50, 50]
        assert np.bincount(data.graphs.y[fold["val"]]).tolist() == [50, 50, 50]
    reference = TUDataset.url
    assert imdb._URL.startswith(reference)


def test_a_small_imdb_archive_is_not_the_benchmark(tmp_path: Path) -> None:
    tu_archive(tmp_path / "IMDB-BINARY.zip", "IMDB-BINARY")
    with pytest.raises(DataError, match="holds 3 graphs; IMDB-BINARY has 1000"):
        load_benchmark("imdb-binary", tmp_path)
    tu_archive(tmp_path / "IMDB-MULTI.zip", "IMDB-BINARY")
    with pytest.raises(DataError, match=r"has no IMDB-MULTI/IMDB-MULTI_A.txt"):
        load_benchmark("imdb-multi", tmp_path)


def ogb_tables(graphs: int, tasks: int, seed: int = 0) -> dict[str, np.ndarray]:
    """Random graphs as OGB's raw tables: one row a node, an undirected edge, a graph. Labels have gaps."""
    generator = np.random.default_rng(seed)
    num_nodes = generator.integers(1, 7, graphs)
    num_edges = np.where(num_nodes > 1, num_nodes - 1, 0)
    edges = np.array([(i - 1, i) for n in num_nodes for i in range(1, n)]).reshape(-1, 2)
    labels = generator.integers(0, 2, (graphs, tasks)).astype(float)
    labels[generator.random((graphs, tasks)) < 0.4] = np.nan
    order = generator.permutation(graphs)
    return {
        "raw/num-node-list": num_nodes,
        "raw/num-edge-list": num_edges,
        "raw/edge": edges,
        "raw/node-feat": generator.integers(0, (119, 4, 12, 12, 10, 6, 6, 2, 2), (num_nodes.sum(), 9)),
        "raw/edge-feat": generator.integers(0, (5, 6, 2), (num_edges.sum(), 3)),
        "raw/graph-label": labels,
        "split/scaffold/train": order[: graphs - 4],
        "split/scaffold/valid": order[graphs - 4 : graphs - 2],
        "split/scaffold/test": order[graphs - 2 :],
    }


def ogb_archive(path: Path, name: str, tables: dict[str, np.ndarray]) -> Path:
    with zipfile.ZipFile(path, "w") as archive:
        for table, values in tables.items():
            text = pd.DataFrame(values).to_csv(header=False, index=False)
            archive.writestr(f"{name}/{table}.csv.gz", gzip.compress(text.encode()))
        archive.writestr(f"{name}/RELEASE_v1.txt", "")
    return path


@pytest.mark.parametrize("block", [3, 1000])
@pytest.mark.parametrize(("name", "folder", "tasks"), [("molpcba", "pcba", 128), ("moltox21", "tox21", 12)])
def test_ogbs_archives_are_read_as_ogb_reads_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, folder: str, tasks: int, block: int
) -> None:
    monkeypatch.setattr(ogb, "_BLOCK", block)
    tables = ogb_tables(11, tasks)
    archive = ogb_archive(tmp_path / f"{folder}.zip", folder, tables)
    ogb.from_archive(tmp_path / "set.lspe", archive, name, tuple(map(str, range(tasks))))
    ours = GraphData.open(tmp_path / "set.lspe")

    with zipfile.ZipFile(archive) as files:
        files.extractall(tmp_path)
    for expected, data in zip(read_with_ogb(tmp_path / folder / "raw"), ours.graphs, strict=True):
        assert data.num_nodes == expected["num_nodes"]
        np.testing.assert_array_equal(data.x, expected["node_feat"])
        order = np.lexsort(expected["edge_index"])
        np.testing.assert_array_equal(data.edge_index, expected["edge_index"][:, order])
        np.testing.assert_array_equal(data.edge_attr, expected["edge_feat"][order])
    np.testing.assert_array_equal(ours.graphs.y, tables["raw/graph-label"].astype(np.float32))
    for part, theirs in (("train", "train"), ("val", "valid"), ("test", "test")):
        np.testing.assert_array_equal(ours.splits[part], tables[f"split/scaffold/{theirs}"])
    assert (ours.task, ours.num_outputs, ours.graphs[0].y.shape) == ("binary", tasks, (1, tasks))
    assert np.isnan(ours.graphs.y).any()


def read_with_ogb(folder: Path) -> list[dict[str, Any]]:
    import sys
    import types

    stand_in = types.ModuleType("outdated")
    stand_in.check_outdated = lambda *_: (False, "")  # type: ignore[attr-defined]
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(sys.modules, "outdated", stand_in)  # OGB would ask the network for a newer version
        from ogb.io.read_graph_raw import read_csv_graph_raw
    graphs: list[dict[str, Any]] = read_csv_graph_raw(str(folder), add_inverse_edge=True)
    return graphs


def test_descriptors_of_ogbs_molecules(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, session_cache: None) -> None:
    """Those of the SMILES in the archive's own mapping; of one that is not read, nothing is known."""
    monkeypatch.setattr(ogb, "_TOX21_MOLECULES", 11)
    archive = ogb_archive(tmp_path / "tox21.zip", "tox21", ogb_tables(11, 12))
    smiles = ["C" * n for n in range(1, 11)] + ["C(C)(C)(C)(C)C"]
    with_mapping(archive, smiles)
    data = load_benchmark("moltox21", tmp_path, descriptors=["rdkit", "morgan"])
    counts = data.descriptors["rdkit"][:, RDKIT_NAMES.index("HeavyAtomCount")]
    assert counts[:10].tolist() == list(range(1, 11))
    assert np.isnan(data.descriptors["rdkit"][10]).all()
    assert data.descriptors["morgan"].any(axis=1).tolist() == [True] * 10 + [False]
    assert not load_benchmark("moltox21", tmp_path).descriptors


def test_smiles_that_are_missing_are_said_to_be(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    archive = ogb_archive(tmp_path / "tox21.zip", "tox21", ogb_tables(11, 12))
    with pytest.raises(DataError, match=r"has no mapping/mol.csv.gz; it is not OGB's archive"):
        ogb.smiles_of_moltox21(tmp_path)
    with_mapping(archive, ["C"] * 11)
    with pytest.raises(DataError, match="there are SMILES of 11 molecules; moltox21 has 7831"):
        ogb.smiles_of_moltox21(tmp_path)
    (tmp_path / "tox21_graphs.npz").touch()
    with pytest.raises(DataError, match=r"has tox21_graphs.npz, but not tox21.csv.gz, where the SMILES"):
        ogb.smiles_of_moltox21(tmp_path)


def with_mapping(archive: Path, smiles: list[str]) -> None:
    text = pd.DataFrame({"NR-AR": 0, "mol_id": "TOX1", "smiles": smiles}).to_csv(index=False)
    with zipfile.ZipFile(archive, "a") as files:
        files.writestr("tox21/mapping/mol.csv.gz", gzip.compress(text.encode()))


@pytest.mark.parametrize(
    ("table", "damage", "message"),
    [
        ("raw/graph-label", lambda t: np.where(np.isnan(t), 2, t), "a label is 2; labels are 0, 1 or empty"),
        ("raw/node-feat", lambda t: t + 100, r"node-feat.csv.gz: feature 0 is \d+; it has entries 0 … 118"),
        ("raw/edge-feat", lambda t: t[:-1], "edge-feat.csv.gz: .* rows of 3 values expected"),
        ("raw/node-feat", lambda t: np.vstack([t, t[:1]]), "node-feat.csv.gz: more rows than the graphs need"),
        ("raw/edge", lambda t: t + 50, "has an edge"),
        ("split/scaffold/test", lambda t: t[:1], "do not hold each of the 11 graphs exactly once"),
        ("raw/edge", None, "has no raw/edge.csv.gz"),
    ],
)
def test_a_damaged_ogb_archive_says_what_is_wrong(
    tmp_path: Path, table: str, damage: Callable[[np.ndarray], np.ndarray] | None, message: str
) -> None:
    tables = ogb_tables(11, 12)
    if damage is None:
        del tables[table]
    else:
        tables[table] = damage(tables[table])
    archive = ogb_archive(tmp_path / "tox21.zip", "tox21", tables)
    with pytest.raises(DataError, match=message):
        ogb.from_archive(tmp_path / "set.lspe", archive, "moltox21", ("t",) * 12)
    assert not (tmp_path / "set.lspe").exists()


def test_a_small_ogb_archive_is_not_the_benchmark(tmp_path: Path) -> None:
    ogb_archive(tmp_path / "pcba.zip", "pcba", ogb_tables(11, 128))
    with pytest.raises(DataError, match="holds 11 graphs; molpcba has 437929"):
        load_benchmark("molpcba", tmp_path)


def test_ogbs_addresses_are_those_of_its_own_list() -> None:
    from importlib.util import find_spec

    folder = Path(find_spec("ogb").origin).parent  # type: ignore[union-attr, arg-type]
    master = pd.read_csv(folder / "graphproppred" / "master.csv", index_col=0)
    for name, archive, tasks in (("moltox21", ogb._TOX21, ogb._TOX21_TASKS), ("molpcba", ogb._PCBA, ogb._PCBA_TASKS)):
        assert archive.url == master[f"ogbg-{name}"]["url"].replace("http://", "https://")
        assert int(master[f"ogbg-{name}"]["num tasks"]) == len(tasks)


def superpixel_graph(seed: int) -> dict[str, torch.Tensor]:
    generator = torch.Generator().manual_seed(seed)
    n = int(torch.randint(9, 15, (1,), generator=generator))
    return {
        "x": torch.rand(n, 3, generator=generator),
        "edge_index": torch.randint(0, n, (2, 8 * n), generator=generator),
        "edge_attr": torch.rand(8 * n, generator=generator),
        "y": torch.randint(0, 10, (1,), generator=generator),
        "pos": torch.rand(n, 2, generator=generator),
    }


def cifar10_archive(path: Path, content: object) -> Path:
    buffer = io.BytesIO()
    torch.save(content, buffer)
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("CIFAR10_v2.pt", buffer.getvalue())
    return path


def test_cifar10_from_pygs_archive(tmp_path: Path) -> None:
    parts = [[superpixel_graph(10 * part + seed) for seed in range(4 - part)] for part in range(3)]
    archive = cifar10_archive(tmp_path / "CIFAR10_v2.zip", parts)
    cifar10.from_archive(tmp_path / "set.lspe", archive)
    data = GraphData.open(tmp_path / "set.lspe")
    for name, part in zip(("train", "val", "test"), parts, strict=True):
        for ours, expected in zip(data.split(name), part, strict=True):
            assert torch.equal(ours.x, torch.cat([expected["x"], expected["pos"]], dim=1))
            assert torch.equal(ours.y, expected["y"])
            pairs = set(zip(*ours.edge_index.tolist(), ours.edge_attr[:, 0].tolist(), strict=True))
            assert pairs == set(zip(*expected["edge_index"].tolist(), expected["edge_attr"].tolist(), strict=True))
    with pytest.raises(DataError, match=r"parts of \(4, 3, 2\) graphs; CIFAR10 has \(45000, 5000, 10000\)"):
        load_benchmark("cifar10", tmp_path)


def test_folds_of_csl_in_another_order_are_read_the_same(tmp_path: Path) -> None:
    first = load_benchmark("csl", tmp_path)
    folds = {part: [fold[part].tolist()[::-1] for fold in first.folds] for part in ("train", "val", "test")}
    (tmp_path / "csl_5fold.json").write_text(json.dumps(folds))
    again = load_benchmark("csl", tmp_path)
    assert again.graphs.path != first.graphs.path
    for ours, expected in zip(again.folds, first.folds, strict=True):
        for part in expected:
            np.testing.assert_array_equal(ours[part], expected[part])
