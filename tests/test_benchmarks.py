"""What the benchmarks compare does the same work."""

import inspect
import json
import subprocess
import sys
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np
import pytest
import torch
from rdkit import Chem
from torch import nn
from torch_geometric.data import Batch, Data

from benchmarks import floor, pretraining, table_results, tables
from benchmarks.cases import gine_layer
from benchmarks.floor import products_of
from benchmarks.learning_curves import draw_learning_curves, learning_curves
from benchmarks.measure import Growth
from benchmarks.message_passing import twin
from benchmarks.molecules import write_table as write_molecules
from benchmarks.table_jobs import TABLES, Job, place_of
from lspe import ops
from lspe.encodings import KINDS, RandomWalkEncoding
from lspe.experiment import build_network
from lspe.nn import Network
from lspe.training import Run
from tests.graphs import CORNER_CASES, cubic_8, decalin
from tests.small import write_table


def zinc_like(k: int) -> Batch:
    """Graphs of every kind with the features of ZINC and a k-step encoding."""
    random = torch.Generator().manual_seed(0)
    graphs = []
    for graph in [decalin(), *CORNER_CASES.values(), cubic_8()]:
        nodes, edges = graph.num_nodes, graph.edge_index.size(1)
        graphs.append(
            RandomWalkEncoding(k)(
                Data(
                    x=torch.randint(28, (nodes,), generator=random),
                    edge_index=graph.edge_index,
                    edge_attr=torch.randint(4, (edges,), generator=random),
                    num_nodes=nodes,
                )
            )
        )
    return Batch.from_data_list(graphs)


def network_of(name: str) -> Network:
    torch.manual_seed(0)
    if name != "gine-lspe":
        return build_network(f"zinc/{name}").double()
    network = build_network("zinc/gatedgcn-lspe")
    network.layers = nn.ModuleList(gine_layer(network.dim) for _ in range(4))
    return network.double()


# PyG's standard deviation is zero where ours is √ε
@pytest.mark.parametrize(
    ("name", "tolerance"),
    [("gatedgcn-lspe", 1e-8), ("pna-lspe", 1e-3), ("san-lspe", 1e-8), ("graphit-lspe", 1e-8), ("gine-lspe", 1e-8)],
)
def test_layers_by_message_passing_equal_ours(name: str, tolerance: float) -> None:
    network = network_of(name)
    batch = zinc_like(network.k)
    batch.random_walk_pe = batch.random_walk_pe.double()
    other = twin(network)
    expected = network(batch)
    with ops.use("plain"):
        found = other(batch)
    torch.testing.assert_close(found, expected, rtol=tolerance, atol=tolerance)
    (gradient,) = torch.autograd.grad(expected.sum(), [network.embed_p.weight])
    (of_other,) = torch.autograd.grad(found.sum(), [other.embed_p.weight])
    torch.testing.assert_close(of_other, gradient, rtol=1e2 * tolerance, atol=tolerance)


def shapes_of(run: Callable[[], None]) -> list[tuple[tuple[int, ...], tuple[int, ...]]]:
    triples = inspect.getclosurevars(run).nonlocals["triples"]
    return [(tuple(one.left.shape), tuple(one.right.shape)) for one in triples]


def test_products_of_one_input_are_counted_as_one() -> None:
    x, y, many = torch.randn(5, 59), torch.randn(5, 59), torch.randn(40, 5, 6)
    weights = torch.randn(3, 59, 20)

    def work() -> None:
        for weight in weights:
            x @ weight
        y @ weights[0]
        torch.bmm(many, torch.randn(40, 6, 7))
        torch.bmm(many, torch.randn(40, 6, 2))

    expected = [((5, 64), (64, 96)), ((5, 64), (64, 32)), ((40, 5, 6), (40, 6, 9))]
    assert shapes_of(products_of(work)) == expected
    one_way = products_of(work, gradients=False)
    for triple in inspect.getclosurevars(one_way).nonlocals["triples"]:
        triple.backward = pytest.fail
    one_way()


def test_towers_are_counted_in_the_quickest_arrangement(monkeypatch: pytest.MonkeyPatch) -> None:
    x = torch.randn(5, 30, 22)

    def work() -> None:
        for _ in range(3):
            torch.bmm(x, torch.randn(5, 22, 11))

    arrangements = [((5, 30, 22), (5, 22, 33)), ((5, 30, 32), (5, 32, 48)), ((30, 112), (112, 176))]
    for quickest, expected in enumerate(arrangements):
        monkeypatch.setattr(floor, "interleaved", lambda *_, best=quickest: [float(i != best) for i in range(3)])
        assert shapes_of(products_of(work)) == [expected]


def test_scaled_products_of_one_input_are_counted_as_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """By rows, where many have the same scale: the right sides are scaled and added up instead."""
    monkeypatch.setattr(floor, "interleaved", lambda *_: [0.0, 1.0, 2.0])
    x, weights = torch.randn(5, 30, 44), torch.randn(3, 5, 44, 11)

    def work(scale: torch.Tensor) -> None:
        for number, weight in enumerate(weights):
            torch.bmm(x, weight).transpose(0, 1) * scale[:, number].view(-1, 1, 1)

    for numbers, columns in ((torch.arange(90) % 2, 11), (torch.arange(90), 33)):
        found = shapes_of(products_of(partial(work, numbers.view(30, 3))))
        assert found == [((5, 30, 44), (5, 44, columns))]


def test_the_exponent_is_the_slope_of_the_logarithms() -> None:
    growth = Growth.__new__(Growth)
    growth.sizes, growth.seconds = [1, 2, 4], [3.0, 12.0, 48.0]
    assert growth.exponent == pytest.approx(2)


TINY = "--set model.layers=1 --set model.hidden_dim=8"
STEP = {"step_ms", "plain_ms", "pyg_ms", "floor_ms", "epoch_s", "peak_mb", "batch_graphs"}
ENCODING = {"us_per_graph", "pyg_us_per_graph", "ratio"}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("command", "place", "names"),
    [
        pytest.param("training --quick --repeats 1 --threads 1", "zinc/gatedgcn-lspe", STEP, marks=pytest.mark.rare),
        pytest.param("encodings --quick --repeats 1", "lappe", ENCODING, marks=pytest.mark.rare),
        pytest.param("encodings --quick --repeats 1", "kinds", {*KINDS}, marks=pytest.mark.rare),
        (f"ablation --epochs 1 --out {{folder}} --only none heat {TINY}", "heat", {"parameters", "validation", "test"}),
        ("data --quick --molecules 500", "molecules", {"molecules_per_s"}),
        ("own_table --molecules 60 --epochs 1", "fused", {"seconds", "graphs_per_s"}),
        ("large_graph --nodes 300 1000 --predict", "300 nodes", {"train_s", "validate_s", "predict_s", "peak_mb"}),
        (f"processes --epochs 1 {TINY}", "2 processes", {"graphs_per_s", "speed-up", "efficiency"}),
        pytest.param(
            "scale {table} --molecules 40 --processes 1",
            "pack 40",
            {"molecules_per_s", "cpu_us", "peak_mb", "disk_bytes"},
            marks=pytest.mark.rare,
        ),
        ("predict --molecules 500", None, {"molecules a second"}),
        ("estimators --splits 1 --epochs 1 --data freesolv", "freesolv", {"LSPE", "RF Morgan", "RF descriptors"}),
    ],
)
def test_every_benchmark_gives_json(
    command: str, place: str | None, names: set[str], shared_data: Path, tmp_path: Path
) -> None:
    table = tmp_path / "table.csv"
    write_molecules(table, 60)
    command = command.replace("{folder}", str(tmp_path)).replace("{table}", str(table))
    words = [sys.executable, "-m", *f"benchmarks.{command} --json".split()]
    done = subprocess.run(words, capture_output=True, text=True, check=True, cwd=Path(__file__).parents[1])
    result = json.loads(done.stdout)
    assert names <= set(result if place is None else result[place])


def only_small(monkeypatch: pytest.MonkeyPatch) -> None:
    """One table in the place of the public ones."""
    for name in list(TABLES):
        monkeypatch.delitem(TABLES, name)
    monkeypatch.setitem(TABLES, "small", ("small.csv", "ring"))


def test_tables_are_compared_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, session_cache: None) -> None:
    """Each result is a file of its own and is not computed again; all methods see the same division."""
    write_table(tmp_path / "small.csv", "binary")
    monkeypatch.setenv("LSPE_DATA", str(tmp_path))
    only_small(monkeypatch)
    arguments = ["--out", str(tmp_path / "out"), "--tables", "small", "--splits", "0", "--threads", "1"]
    arguments += ["--methods", "forest, Morgan", "forest, descriptors", "chemprop"]
    tables.main(arguments)
    files = sorted((tmp_path / "out").iterdir())
    assert [file.name for file in files] == [
        "small--0--forest-Morgan.json",
        "small--0--forest-descriptors.json",
    ]
    result = json.loads(files[1].read_text())
    assert result["score"] == 1.0  # rings are counted among the descriptors
    before = [file.stat().st_mtime_ns for file in files]
    tables.main(arguments)
    assert [file.stat().st_mtime_ns for file in files] == before
    assert "| small, random, roc_auc ↑ |" in table_results.tabulate(tmp_path / "out", tables.METHODS)
    for split, excess in (("0", 2.0), ("1", -1.0)):
        found = {"calibration_error": 0.03, "calibration_error_by_chance": 0.02, "bins": [[5, 0.0], [5, excess]]}
        place_of(tmp_path / "out", Job("small", split), "lspe").write_text(json.dumps(found))
    parts = {"alone": {"networks": {"roc_auc": 0.8}, "forest": {"roc_auc": 0.9}}, "score": 0.95, "metric": "roc_auc"}
    kinds = (("rdkit", 0.5), ("none", 0.4), ("rdkit", 0.7))
    parts["members"] = [{"descriptors": kind, "score": score} for kind, score in kinds]
    place_of(tmp_path / "out", Job("small", "scaffold"), "lspe").write_text(json.dumps({**found, **parts}))
    row = "| small, scaffold | 0.400 | 0.600 | 0.800 | 0.900 | 0.950 |"
    assert row in table_results.tabulate_parts(tmp_path / "out", "plain")
    alone = {"members": [{"descriptors": "none", "score": 0.6}]}
    place_of(tmp_path / "out", Job("small", "scaffold"), "plain").write_text(json.dumps(alone))
    row = row.replace("0.400", "0.500")
    assert row in table_results.tabulate_parts(tmp_path / "out", "plain")
    row = "| small | calibration error | 0.030 (0.030 to 0.030) | 0.030 (0.030 to 0.030) | 0.020 | 0.050 |"
    assert row in table_results.tabulate_trust(tmp_path / "out")


def test_variants_stand_beside_the_default_on_the_same_splits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    only_small(monkeypatch)
    monkeypatch.setitem(TABLES, "more", ("more.csv", "ring"))

    def write(table: str, method: str, **scores: tuple[float, ...]) -> None:
        for split, values in scores.items():
            alone = {
                part: {"roc_auc": one} for part, one in zip(("networks", "together", "forest"), values, strict=False)
            }
            found = {"alone": alone, "metric": "roc_auc"}
            place_of(tmp_path, Job(table, split[1:]), method).write_text(json.dumps(found))

    write("small", "lspe", s0=(0.8, 0.9, 0.6), s1=(0.7, 0.8, 0.6), s2=(0.1, 0.1, 0.6))
    write("small", "other", s0=(0.9, 0.95, 0.6), s1=(0.8, 0.6, 0.6), s3=(0.1, 0.1, 0.6))
    write("small", "networks", s0=(0.9, 0.9))
    write("more", "lspe", s0=(0.8, 0.9, 0.6))
    write("more", "other", s0=(0.8, 0.95, 0.6))
    rows = table_results.tabulate_variants(tmp_path, ["other", "networks", "none"]).splitlines()
    assert rows[2:] == [
        "| small, random | other | 2 | 0.850 | 0.750 | 0.775 | 0.850 | 1.000 |",
        "| more, random | other | 1 | 0.800 | 0.800 | 0.950 | 0.900 | 0.500 |",
        "| 2 tables, random | other |  |  |  |  |  | 0.707 ± 0.245 |",
        "| small, random | networks | 1 | 0.900 | 0.800 |  |  | 0.500 |",
    ]


def test_our_runs_are_kept_and_gone_on_with(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, session_cache: None
) -> None:
    write_table(tmp_path / "small.csv", "binary")
    monkeypatch.setenv("LSPE_DATA", str(tmp_path))
    only_small(monkeypatch)
    short = {"members": 1, "settings": ["training.protocol.max_epochs=1", "training.forest=false"]}
    monkeypatch.setitem(tables.METHODS, "short", tables.ours("short", short))
    options = f"--tables small --splits 0 --methods short --threads 1 --runs {tmp_path / 'runs'}".split()
    tables.main([*options, "--out", str(tmp_path / "first")])
    weights = tmp_path / "runs" / "small--0--short" / "last.ckpt"
    before = weights.stat().st_mtime_ns
    tables.main([*options, "--out", str(tmp_path / "second")])
    assert weights.stat().st_mtime_ns == before
    scores = [json.loads((tmp_path / out / "small--0--short.json").read_text())["score"] for out in ("first", "second")]
    assert scores[0] == scores[1]
    (member,) = json.loads((tmp_path / "first" / "small--0--short.json").read_text())["members"]
    assert member == {"descriptors": "rdkit", "score": scores[0]}


def test_a_learning_curve_has_the_same_test_part(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, session_cache: None
) -> None:
    write_table(tmp_path / "small.csv", "binary")
    monkeypatch.setenv("LSPE_DATA", str(tmp_path))
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    only_small(monkeypatch)
    options = ["--tables", "small", "--splits", "0", "--sizes", "9", "18", "--threads", "1"]
    tables.main([*options, "--out", str(tmp_path / "out"), "--methods", "forest, descriptors"])
    tested = []
    for size in (None, 9, 18):
        data = Job("small", "0", size).data()
        tested.append(sorted(np.array(data.smiles)[data.splits["test"]]))
        if size is not None:
            assert (len(data.splits["train"]), len(data.splits["val"])) == (size - size // 9, size // 9)
            assert (tmp_path / "out" / f"small--0--{size}--forest-descriptors.json").exists()
    assert tested[0] == tested[1] == tested[2]
    assert "| small, random, 9 molecules, roc_auc ↑ |" in table_results.tabulate(
        tmp_path / "out", tables.METHODS, (9, 18)
    )


def test_learning_curves_are_of_splits_that_all_methods_have(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    only_small(monkeypatch)
    scores = {("lspe", "0", 9): 0.6, ("lspe", "1", 9): 0.8, ("lspe", "0", 18): 0.9, ("lspe", "0", 27): 1.0}
    scores |= {("other", "0", 9): 0.4, ("other", "1", 9): 0.5, ("other", "0", 18): 0.7, ("other", "1", 18): 0.0}
    for (method, split, size), score in scores.items():
        place_of(tmp_path, Job("small", split, size), method).write_text(json.dumps({"score": score}))
    counts, lines = learning_curves(tmp_path, "small", ["lspe", "other"], [9, 18, 27]) or ([], {})
    assert counts == [9, 18]
    assert lines == {"lspe": pytest.approx([0.7, 0.9]), "other": pytest.approx([0.45, 0.7])}
    assert learning_curves(tmp_path, "small", ["lspe", "other"], [9, 27]) is None
    draw_learning_curves(tmp_path, ["lspe", "other"], [9, 18, 27], tmp_path / "curves.png")
    assert (tmp_path / "curves.png").read_bytes().startswith(b"\x89PNG")
    with pytest.raises(SystemExit, match="no table has two of these sizes"):
        draw_learning_curves(tmp_path, ["lspe", "other"], [9, 27], tmp_path / "curves.png")


def test_fragments_are_joined_to_new_molecules(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    known = [Chem.MolFromSmiles(smiles) for smiles in ("CCOc1ccccc1", "CC(=O)NC1CCCCC1", "c1ccncc1CN1CCOCC1")]
    monkeypatch.setattr(pretraining, "read_molecules", lambda _: known)
    pretraining.main(["recombine", str(tmp_path / "new.csv"), "--molecules", "5"])
    names = pretraining.known_smiles(tmp_path / "new.csv")
    assert names[:3] == [Chem.MolToSmiles(molecule) for molecule in known]
    assert len(set(names)) == 8
    assert all(Chem.MolFromSmiles(name) and "*" not in name for name in names)


def test_a_start_is_judged_on_molecules_it_has_not_seen(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, session_cache: None
) -> None:
    write_table(tmp_path / "small.csv", "binary")
    write_molecules(tmp_path / "others.csv", 40)
    monkeypatch.setenv("LSPE_DATA", str(tmp_path))
    only_small(monkeypatch)
    judged, others = (set(pretraining.known_smiles(tmp_path / name)) for name in ("small.csv", "others.csv"))
    with (tmp_path / "others.csv").open("a") as file:
        file.write("".join(f"{smiles},0\n" for smiles in judged))
    out = tmp_path / "out"
    pretraining.main(f"learn {out} {tmp_path / 'others.csv'} --epochs 1 --set model.layers=2".split())
    learned = [line.partition(",")[0] for line in (out / "molecules.csv").read_text().splitlines()[1:]]
    assert set(learned) == others - judged

    found = tmp_path / "found"
    settings = ["training.protocol.max_epochs=1", "training.protocol.lr=1e-9", "model.layers=2", tables.NO_FOREST]
    start = tables.ours("start", {"start": out / "run", "members": 1, "settings": settings})
    monkeypatch.setitem(tables.METHODS, "start", start)
    runs = tmp_path / "runs"
    tables.main(f"--tables small --splits 0 --methods start --threads 1 --out {found} --runs {runs}".split())
    before, after = (Run.open(folder).network().layers for folder in (out / "run", runs / "small--0--start"))
    torch.testing.assert_close(list(after.parameters()), list(before.parameters()), rtol=0, atol=1e-6)
    assert (found / "small--0--start.json").exists()
