"""The figures that the paper, PyG, OGB and TUDataset give for each benchmark, and that PROVENANCE lists."""

import errno
import json
import multiprocessing
import os
from pathlib import Path

import networkx as nx
import numpy as np
import pandas as pd
import pytest
import torch
from scipy.spatial.distance import cdist

from lspe.data import DataError, GraphData, available, load_benchmark
from lspe.data.benchmarks.cifar10 import nearest_by_place
from lspe.data.benchmarks.csl import SKIPS
from lspe.data.benchmarks.inventory import verify
from lspe.data.benchmarks.ogb import smiles_of_moltox21
from lspe.data.benchmarks.zinc import VOCABULARY, from_table
from lspe.data.molecules.processes import Refused
from lspe.data.molecules.smiles import parse_here
from tests.data.conftest import Benchmarks


def sizes(splits: dict[str, np.ndarray]) -> tuple[int, ...]:
    return tuple(len(splits[name]) for name in ("train", "val", "test"))


def test_zinc(benchmarks: Benchmarks, shared_data: Path) -> None:
    zinc = benchmarks["zinc"]
    assert sizes(zinc.splits) == (10_000, 1_000, 1_000)
    assert zinc.graphs.num_nodes.mean() == pytest.approx(23.155333, abs=1e-6)
    assert zinc.graphs.num_edges.mean() == pytest.approx(49.83, abs=5e-3)
    first = zinc.split("train")[0]
    assert (first.num_nodes, first.num_edges) == (29, 64)
    assert (zinc.task, zinc.num_outputs, zinc.features.node_types, zinc.features.edge_types) == ("regression", 1, 28, 4)
    assert set(np.unique(zinc.graphs.edge["edge_attr"])) == {1, 2, 3}
    assert first.is_undirected()
    assert zinc.split("val").y.shape == (1_000, 1)
    with np.load(shared_data / "zinc12k_graphs.npz") as file:
        assert tuple(file["atom_vocab"]) == VOCABULARY
        np.testing.assert_array_equal(zinc.graphs.y[:, 0], file["y"])


def test_zinc_with_encodings_separates_the_atoms_the_paper_shows(benchmarks: Benchmarks) -> None:
    validation = benchmarks["zinc"].split("val").with_encoding("rwpe", 24)
    for index, distinct, nodes in ((91, 24, 24), (967, 21, 21), (212, 10, 14), (672, 13, 18)):
        encoding = validation[index].random_walk_pe
        assert len(encoding) == nodes
        assert len(torch.unique((encoding * 1e6).round(), dim=0)) == distinct


def test_moltox21(benchmarks: Benchmarks) -> None:
    tox21 = benchmarks["moltox21"]
    assert sizes(tox21.splits) == (6264, 783, 784)
    y = tox21.graphs.y
    assert int((~np.isnan(y)).sum()) == 77_946
    assert np.nansum(y, axis=0).tolist() == [309, 237, 768, 300, 793, 350, 186, 942, 264, 372, 918, 423]
    assert tox21.graphs.num_nodes.mean() == pytest.approx(18.57, abs=5e-3)
    assert tox21.graphs.num_edges.mean() / 2 == pytest.approx(19.29, abs=5e-3)
    assert int((tox21.graphs.num_edges == 0).sum()) == 19
    assert (tox21.task, tox21.num_outputs, tox21.features.kind) == ("binary", 12, "ogb")
    assert tox21.graphs[0].x.shape[1] == 9
    assert tox21.graphs[0].edge_attr.shape[1] == 3


def test_the_smiles_of_moltox21_are_those_of_its_graphs(benchmarks: Benchmarks, shared_data: Path) -> None:
    smiles = smiles_of_moltox21(shared_data)
    refused = [row for row, one in enumerate(smiles) if isinstance(one, Refused)]
    assert all("[AlH3]" in smiles[row] for row in refused)
    atoms = [0 if row in refused else parse_here(one).GetNumAtoms() for row, one in enumerate(smiles)]
    expected = benchmarks["moltox21"].graphs.num_nodes.copy()
    expected[refused] = 0
    np.testing.assert_array_equal(atoms, expected)


@pytest.mark.parametrize(
    ("name", "graphs", "classes", "nodes", "edges", "first"),
    [("imdb-binary", 1000, 2, 19.77, 96.53, (20, 146)), ("imdb-multi", 1500, 3, 13.00, 65.94, (7, 42))],
)
def test_imdb(
    benchmarks: Benchmarks, name: str, graphs: int, classes: int, nodes: float, edges: float, first: tuple[int, int]
) -> None:
    imdb = benchmarks[name]
    assert (len(imdb.graphs), imdb.num_outputs, imdb.task) == (graphs, classes, "multiclass")
    assert np.bincount(imdb.graphs.y).tolist() == [500] * classes
    assert imdb.graphs.num_nodes.mean() == pytest.approx(nodes, abs=5e-3)
    assert imdb.graphs.num_edges.mean() / 2 == pytest.approx(edges, abs=5e-3)
    data = imdb.graphs[0]
    assert (data.num_nodes, data.num_edges) == first
    assert data.is_undirected()
    assert not data.has_self_loops()
    degree = torch.bincount(data.edge_index[1], minlength=data.num_nodes)
    assert torch.equal(data.x, degree.float().reshape(-1, 1))
    assert torch.equal(data.edge_attr, torch.ones(data.num_edges, 1))
    assert len(imdb.folds) == 10
    tested = np.sort(np.concatenate([fold["test"] for fold in imdb.folds]))
    np.testing.assert_array_equal(tested, np.arange(graphs))
    for fold in imdb.folds:
        np.testing.assert_array_equal(np.sort(np.concatenate([*fold.values()])), np.arange(graphs))
        assert len(fold["val"]) == graphs // 10
        rest = np.bincount(imdb.graphs.y[np.concatenate([fold["train"], fold["val"]])])
        assert np.abs(np.bincount(imdb.graphs.y[fold["val"]]) - rest / 9).max() < 1


def test_csl(benchmarks: Benchmarks, shared_data: Path) -> None:
    csl = benchmarks["csl"]
    assert len(csl.graphs) == 150
    assert [sizes(fold) for fold in csl.folds] == [(90, 30, 30)] * 5
    given = json.loads((shared_data / "csl_5fold.json").read_text())
    assert csl.folds[3]["val"].tolist() == sorted(given["val"][3])
    check_csl(csl.graphs.batch(), csl.graphs.y)


def test_csl_without_files(built_in: Benchmarks) -> None:
    csl = built_in["csl"]
    check_csl(csl.graphs.batch(), csl.graphs.y)
    for fold in csl.folds:
        assert sizes(fold) == (90, 30, 30)
        assert [np.bincount(csl.graphs.y[part]).tolist() for part in fold.values()] == [[9] * 10, [3] * 10, [3] * 10]
    assert csl.fold(2).split("val").y.tolist() == csl.graphs.y[csl.folds[2]["val"]].tolist()


def check_csl(batch: object, y: np.ndarray) -> None:
    assert batch.num_nodes == 150 * 41  # type: ignore[attr-defined]
    assert set(torch.bincount(batch.edge_index[1]).tolist()) == {4}  # type: ignore[attr-defined]
    assert np.bincount(y).tolist() == [15] * 10
    for number in (0, 37, 149):
        data = batch[number]  # type: ignore[index]
        graph = nx.Graph(data.edge_index.t().tolist())
        assert nx.is_isomorphic(graph, nx.circulant_graph(41, [1, SKIPS[y[number]]]))


def test_nci_needs_no_file(built_in: Benchmarks) -> None:
    nci = built_in["nci"]
    assert len(nci.graphs) > 4_500
    assert nci.graphs.num_nodes.min() >= 3
    assert nci.graphs.num_nodes.max() <= 60
    assert sizes(nci.splits) == (len(nci.graphs) - 2 * (len(nci.graphs) // 10), *[len(nci.graphs) // 10] * 2)
    assert np.isfinite(nci.graphs.y).all()
    vocabulary, x = nci.features.vocabulary, nci.graphs.node["x"]
    assert (nci.features.node_types, nci.features.edge_types) == (len(vocabulary) + 1, 5)
    in_training = np.concatenate([graph.x for graph in nci.split("train")])
    assert set(in_training) == set(range(len(vocabulary)))
    assert x.max() <= len(vocabulary)


def test_ncis_target_is_rdkits(built_in: Benchmarks) -> None:
    from rdkit import Chem
    from rdkit.Chem import Descriptors

    from lspe.data.benchmarks.nci import penalised_log_p, read_molecules, source_file

    mols = read_molecules(source_file())
    nci = built_in["nci"]
    assert len(mols) == len(nci.graphs)
    assert len({Chem.MolToSmiles(mol) for mol in mols}) == len(mols)
    for number in (0, 1, 100, 4000):
        assert nci.graphs.y[number, 0] == pytest.approx(penalised_log_p(mols[number]), abs=1e-5)
    mol = Chem.MolFromSmiles("C1CCCCCCCCC1")  # a ring of ten
    smaller = Chem.MolFromSmiles("C1CCCCC1")
    difference = penalised_log_p(mol) - Descriptors.MolLogP(mol)
    assert difference < penalised_log_p(smaller) - Descriptors.MolLogP(smaller) - 3


@pytest.mark.slow
def test_cifar10(benchmarks: Benchmarks) -> None:
    cifar10 = benchmarks["cifar10"]
    assert sizes(cifar10.splits) == (45_000, 5_000, 10_000)
    nodes = cifar10.graphs.num_nodes
    assert nodes.mean() == pytest.approx(117.63341666666666, abs=1e-9)
    assert (nodes.min(), nodes.max()) == (85, 150)
    np.testing.assert_array_equal(cifar10.graphs.num_edges, nodes * 8)
    assert np.bincount(cifar10.graphs.y[cifar10.splits["test"]]).tolist() == [1_000] * 10
    data = cifar10.split("test")[17]
    assert set(torch.bincount(data.edge_index[0]).tolist()) == {8}
    assert data.x.shape[1] == 5
    assert data.x.min() >= 0
    assert data.x.max() <= 1


def test_superpixels_point_to_their_nearest(shared_data: Path) -> None:
    with np.load(shared_data / "cifar10_superpixels.npz") as file:
        num_nodes = file["num_nodes"][:3]
        place = file["pos"][: num_nodes.sum(dtype=int)]
    (source, target), weight = nearest_by_place(num_nodes, place)
    start = edge = 0
    for count in num_nodes.astype(int):
        here = place[start : start + count] / 8 / 32
        distance = cdist(here, here)
        np.fill_diagonal(distance, np.inf)
        eighth = np.sort(distance, axis=1)[:, 7]
        sigma = np.sort(distance, axis=1)[:, :8].mean(axis=1)
        kernel = np.exp(-((distance / sigma[:, None]) ** 2))
        kernel = (kernel + kernel.T) / 2
        edges = slice(edge, edge + 8 * count)
        pairs = source[edges], target[edges]
        assert np.bincount(pairs[0]).tolist() == [8] * count
        assert (distance[pairs] <= eighth[pairs[0]] + 1e-12).all()
        np.testing.assert_allclose(weight[edges], kernel[pairs], rtol=1e-6)
        start, edge = start + count, edge + 8 * count


def test_zinc_full_from_its_table_has_the_graphs_of_the_subset(
    benchmarks: Benchmarks, shared_data: Path, tmp_path: Path
) -> None:
    subset = benchmarks["zinc"]
    with np.load(shared_data / "zinc12k_graphs.npz") as file:
        rows = file["source_index"]
    table = pd.read_csv(shared_data / "zinc250k.csv.gz")
    assert table["split"].value_counts().to_dict() == {"train": 220_011, "val": 24_445, "test": 5_000}
    chosen = {name: part[:500] for name, part in subset.splits.items()}
    pieces = [table[table["split"] == name].iloc[rows[part]] for name, part in chosen.items()]
    pd.concat(pieces).to_csv(tmp_path / "some.csv.gz", index=False)

    from_table(tmp_path / "some.lspe", tmp_path / "some.csv.gz")
    some = GraphData.open(tmp_path / "some.lspe")
    for name, part in chosen.items():
        ours, theirs = some.split(name), subset.graphs.select(part)
        np.testing.assert_allclose(ours.y, theirs.y, rtol=1e-5, atol=1e-6)
        same = sum(
            torch.equal(a.x, b.x) and torch.equal(a.edge_index, b.edge_index) and torch.equal(a.edge_attr, b.edge_attr)
            for a, b in zip(ours, theirs, strict=True)
        )
        assert same == 500 if name == "train" else same >= 485  # a few published graphs number their atoms otherwise


def test_a_second_start_converts_nothing(shared_data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = load_benchmark("zinc", shared_data, encoding="rwpe", k=8)

    def never(*_: object) -> None:
        raise AssertionError("converted again")

    monkeypatch.setattr("lspe.data.benchmarks.zinc.from_arrays", never)
    monkeypatch.setattr("lspe.data.packed.cached_encodings._compute", never)
    again = load_benchmark("zinc", shared_data, encoding="rwpe", k=8)
    assert again.graphs.path == first.graphs.path
    assert torch.equal(again.graphs.batch([5]).random_walk_pe, first.graphs.batch([5]).random_walk_pe)


def test_a_damaged_packed_set_is_converted_anew(shared_data: Path) -> None:
    path = load_benchmark("csl", shared_data).graphs.path
    assert path is not None
    sound = path.read_bytes()
    path.write_bytes(sound[: len(sound) // 2])
    assert len(load_benchmark("csl", shared_data).graphs) == 150
    assert path.read_bytes() == sound


def test_a_changed_source_is_converted_anew(shared_data: Path, tmp_path: Path) -> None:
    root = tmp_path / "root"
    root.mkdir()
    for name in ("csl.npz", "csl_5fold.json"):
        (root / name).write_bytes((shared_data / name).read_bytes())
    before = load_benchmark("csl", root)
    with np.load(root / "csl.npz") as file:
        content = dict(file)
    np.savez(root / "csl.npz", **{**content, "y": content["y"][::-1]})
    after = load_benchmark("csl", root)
    assert after.graphs.path != before.graphs.path
    assert after.graphs.y.tolist() == before.graphs.y.tolist()[::-1]


def _prepare(cache: str, go: str) -> tuple[float, float]:
    os.environ["LSPE_CACHE"] = cache
    while not os.path.exists(go):
        pass
    graphs = load_benchmark("csl", encoding="rwpe", k=5).graphs
    return float(graphs.source.sum()), float(graphs.node["random_walk_pe"].sum())


def test_two_processes_preparing_the_same_set_do_not_get_into_each_others_way(tmp_path: Path, cache: Path) -> None:
    go = tmp_path / "go"
    with multiprocessing.get_context("spawn").Pool(2) as pool:
        answers = [pool.apply_async(_prepare, (str(cache), str(go))) for _ in range(2)]
        go.touch()
        sums = {answer.get(120) for answer in answers}
    assert len(sums) == 1
    assert verify() == dict.fromkeys((cache / "packed").glob("*.lspe"))
    assert len(verify()) == 2
    assert not list((cache / "packed").glob(".*.tmp"))


def test_nothing_is_ever_written_into_the_data_root(shared_data: Path) -> None:
    before = {entry.name: entry.stat().st_mtime_ns for entry in os.scandir(shared_data)}
    load_benchmark("csl", shared_data, encoding="rwpe", k=2)
    assert {entry.name: entry.stat().st_mtime_ns for entry in os.scandir(shared_data)} == before


def test_unknown_names_and_half_encodings_are_refused(built_in: Benchmarks) -> None:
    with pytest.raises(DataError, match=f"'zink'; there are {', '.join(available())}"):
        load_benchmark("zink")
    with pytest.raises(DataError, match="needs both"):
        load_benchmark("csl", encoding="rwpe")
    csl = built_in["csl"]
    with pytest.raises(DataError, match=r"data.fold\(0\).split\('train'\)"):
        csl.split("train")
    with pytest.raises(DataError, match="there is no fold 5"):
        csl.fold(5)
    with pytest.raises(DataError, match="no split 'valid'; it has train, val, test"):
        built_in["nci"].split("valid")


@pytest.mark.parametrize(
    ("name", "file"),
    [
        ("zinc", "zinc12k_graphs.npz"),
        ("moltox21", "tox21_graphs.npz"),
        ("imdb-multi", "IMDB-MULTI.zip"),
        ("molpcba", "pcba.zip"),
    ],
)
@pytest.mark.parametrize("damage", ["cut", "changed"])
def test_a_damaged_source_is_named(shared_data: Path, tmp_path: Path, name: str, file: str, damage: str) -> None:
    source = shared_data / (file if name != "molpcba" else "IMDB-MULTI.zip")
    content = bytearray(source.read_bytes())
    if damage == "cut":
        content = content[: len(content) // 2]
    else:
        content[len(content) // 3 : len(content) // 3 + 50] = bytes(50)
    (tmp_path / file).write_bytes(content)
    with pytest.raises(DataError, match=file):
        load_benchmark(name, tmp_path)


def test_a_cache_that_may_not_be_written_is_named(cache: Path) -> None:
    (cache / "packed").mkdir(parents=True)
    (cache / "packed").chmod(0o555)
    try:
        with pytest.raises(DataError, match="set LSPE_CACHE"):
            load_benchmark("csl")
    finally:
        (cache / "packed").chmod(0o755)


def test_a_full_disk_is_said_in_words(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def no_room(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("shutil.copyfileobj", no_room)
    with pytest.raises(DataError, match="no room left for"):
        load_benchmark("csl")
    assert not list((cache / "packed").glob("*.lspe"))
    monkeypatch.undo()


def test_what_a_killed_process_left_is_cleared_away(cache: Path, tmp_path: Path) -> None:
    path = load_benchmark("csl", tmp_path).graphs.path
    assert path is not None
    left = path.parent / f".{path.name}.abc.tmp"
    left.mkdir()
    (left / "0").write_bytes(b"half")
    path.unlink()
    load_benchmark("csl", tmp_path)
    assert path.exists()
    assert not left.exists()
