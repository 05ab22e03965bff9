"""The data behind the pictures against known facts, and the files they become."""

import os
import xml.etree.ElementTree as ET
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings

from lspe.data import GraphData, load_benchmark
from lspe.errors import UserError
from lspe.isomorphism import random_walk_test, weisfeiler_lehman_test
from lspe.plots import FIGURES, draw
from lspe.plots.distinct import count_distinct, distinct_encodings
from lspe.plots.drawable_graphs import Sketch, sketch_graph, sketch_smiles
from lspe.plots.drawing import draw_graph
from lspe.plots.examples import BICYCLOPENTYL, DECALIN, EXAMPLES
from lspe.plots.molecules import PAPER_MOLECULES, colour_molecules
from lspe.plots.scores import read_k_study, score_against_k, training_curves
from lspe.plots.style import kind_colours
from lspe.training.run import Run
from tests.graphs import random_graphs
from tests.members import save as save_run


@pytest.fixture(scope="module")
def zinc(tmp_path_factory: pytest.TempPathFactory) -> Iterator[GraphData]:
    if not (folder := os.environ.get("LSPE_DATA")) or not (Path(folder) / "zinc12k_graphs.npz").exists():
        pytest.skip("LSPE_DATA has no zinc12k_graphs.npz")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("LSPE_CACHE", str(tmp_path_factory.mktemp("cache")))
        yield load_benchmark("zinc")


def sketch_of(name: str) -> Sketch:
    """An example by name, or a molecule by SMILES."""
    return EXAMPLES[name].sketch() if name in EXAMPLES else sketch_smiles(name)


def test_distinct_encodings_of_zinc_are_those_of_the_paper(zinc: GraphData) -> None:
    laplacian, walk = count_distinct(zinc.split("val"))
    assert len(walk.nodes) == 1000
    assert (laplacian.distinct == laplacian.nodes).all()  # "all graphs lie on the diagonal line"
    pairs, graphs = walk.points()
    points = {(int(n), int(distinct)): int(count) for (n, distinct), count in zip(pairs, graphs, strict=True)}
    assert points[23, 21] == 30
    assert sum(points.values()) == 1000
    assert all(distinct <= n for n, distinct in points)


def test_the_picture_shows_every_point_once(zinc: GraphData) -> None:
    counts = count_distinct(zinc.split("val"))
    figure = distinct_encodings(*counts)
    for axes, one in zip(figure.axes, counts, strict=False):
        pairs, graphs = one.points()
        marks = axes.collections[0]
        drawn = {(*place, value) for place, value in zip(marks.get_offsets().tolist(), marks.get_array(), strict=True)}
        assert drawn == {(*pair, value) for pair, value in zip(pairs.tolist(), graphs, strict=True)}


def test_molecules_of_the_paper_have_their_numbers_of_colours(zinc: GraphData) -> None:
    found = colour_molecules(zinc.split("val"), zinc.features.vocabulary, PAPER_MOLECULES)
    assert [(one.distinct, one.sketch.num_nodes) for one in found] == [(24, 24), (21, 21), (10, 14), (13, 18)]
    for one in found:  # nodes of one colour are isomorphic, as the paper says
        orbits = nx.Graph(one.sketch.edges.tolist())
        matcher = nx.isomorphism.GraphMatcher(orbits, orbits)
        reached = {(i, image[i]) for image in matcher.isomorphisms_iter() for i in image}
        same = {(i, j) for i, a in enumerate(one.kinds) for j, b in enumerate(one.kinds) if a == b}
        assert same == reached


def test_drawn_molecules_are_the_molecules_of_the_table(zinc: GraphData) -> None:
    pandas = pytest.importorskip("pandas")
    table_path = Path(os.environ["LSPE_DATA"]) / "zinc12k.csv.gz"
    if not table_path.exists():
        pytest.skip("LSPE_DATA has no zinc12k.csv.gz")
    table = pandas.read_csv(table_path).query("split == 'val'").reset_index()
    for one in colour_molecules(zinc.split("val"), zinc.features.vocabulary, PAPER_MOLECULES):
        expected = sketch_smiles(table["smiles"][one.index])
        assert Counter(zip(one.sketch.names, one.sketch.charges, strict=True)) == Counter(
            zip(expected.names, expected.charges, strict=True)
        )
        assert Counter(one.sketch.orders) == Counter(expected.orders)
        assert nx.is_isomorphic(
            one.sketch.to_networkx(), expected.to_networkx(), node_match=lambda a, b: a["element"] == b["element"]
        )


@pytest.mark.parametrize(
    "first, second, walk, refinement",
    [
        (DECALIN, BICYCLOPENTYL, 5, None),
        ("csl-11-2", "csl-11-3", 3, None),
        ("rook", "shrikhande", None, None),
    ],
)
def test_examples_are_told_apart_as_known(first: str, second: str, walk: int | None, refinement: int | None) -> None:
    a, b = (sketch_of(name).to_networkx() for name in (first, second))
    assert not nx.is_isomorphic(a, b)
    assert random_walk_test(a, b).step == walk
    assert weisfeiler_lehman_test(a, b).step == refinement


def test_examples_have_the_degrees_they_are_named_for() -> None:
    degrees = {name: {degree for _, degree in one.sketch().to_networkx().degree()} for name, one in EXAMPLES.items()}
    assert degrees["three-regular"] == {3}
    assert degrees["csl-11-2"] == degrees["csl-11-3"] == {4}
    assert degrees["rook"] == degrees["shrikhande"] == {6}
    assert nx.is_isomorphic(EXAMPLES["rook"].sketch().to_networkx(), nx.line_graph(nx.complete_bipartite_graph(4, 4)))


@pytest.mark.parametrize("smiles", ["C", "[Na+].[Cl-]", "CC(=O)Oc1ccccc1C(=O)O", "C" * 60, "F[P-](F)(F)(F)(F)F"])
def test_sketches_of_molecules_keep_atoms_apart(smiles: str) -> None:
    sketch = sketch_smiles(smiles)
    distances = np.linalg.norm(sketch.places[:, None] - sketch.places[None], axis=2)
    assert np.isfinite(sketch.places).all()
    assert (distances[~np.eye(sketch.num_nodes, dtype=bool)] > 0.3).all()


@pytest.mark.parametrize("smiles", ["C12C3C4C1C5C2C3C45", "C1C2CC3CC1CC(C2)C3", "CC(=O)Oc1ccccc1C(=O)O"])
def test_no_bond_is_drawn_under_an_atom(smiles: str) -> None:
    sketch = sketch_smiles(smiles)
    for i, j in sketch.edges:
        points = sketch.places[i] + np.linspace(0, 1, 50)[:, None] * (sketch.places[j] - sketch.places[i])
        others = np.delete(sketch.places, [i, j], axis=0)
        assert np.linalg.norm(points[:, None] - others[None], axis=2).min() > 0.19


def test_labels_show_charges() -> None:
    sketch = sketch_smiles("[Fe+2].[O-]C")
    assert [sketch.label(node) for node in range(3)] == ["Fe2+", "O−", "C"]


@settings(max_examples=30, deadline=None)
@given(random_graphs(max_nodes=8, directed=True, self_loops=True))
def test_sketches_of_graphs_keep_their_edges(data: Any) -> None:
    graph = nx.DiGraph()
    graph.add_nodes_from(range(data.num_nodes))
    graph.add_edges_from(data.edge_index.t().tolist())
    sketch = sketch_graph(graph)
    assert set(map(tuple, sketch.edge_index.t().tolist())) == set(graph.edges)
    assert np.isfinite(sketch.places).all()
    undirected = sketch_graph(graph.to_undirected())
    assert set(map(tuple, undirected.edge_index.t().tolist())) == set(graph.edges) | {(j, i) for i, j in graph.edges}


def test_directions_and_loops_are_drawn() -> None:
    from matplotlib.figure import Figure
    from matplotlib.patches import Circle

    graph = nx.DiGraph([("a", "b"), ("b", "c"), ("c", "a"), ("c", "c"), ("c", "long name")])
    axes = Figure().subplots()
    draw_graph(axes, sketch_graph(graph), ["white"] * 4, ["a", "b", "c", ""])
    arrows = [text.arrow_patch for text in axes.texts if text.arrow_patch is not None]
    circles = [patch for patch in axes.patches if isinstance(patch, Circle)]
    assert len(arrows) == 4
    assert len(circles) == 4 + 1
    assert [text.get_text() for text in axes.texts if text.get_text()] == ["a", "b", "c"]


def test_colours_differ() -> None:
    for count in (1, 3, 6, 7, 24):
        assert len({tuple(np.atleast_1d(colour)) for colour in kind_colours(count)}) == count


def test_figures_become_the_same_files_every_time(tmp_path: Path) -> None:
    paths = [draw("csl", out=tmp_path / name) for name in ("first", "second")]
    assert [path.suffix for path in paths[0]] == [".png", ".svg"]
    assert [path.read_bytes() for path in paths[0]] == [path.read_bytes() for path in paths[1]]
    root = ET.parse(paths[0][1]).getroot()
    assert root.tag.endswith("svg")


def test_all_draws_what_needs_no_source(zinc: GraphData, tmp_path: Path) -> None:
    paths = draw("all", out=tmp_path, form="svg")
    assert {path.stem for path in paths} == set(FIGURES) - {"k-study", "curves"}
    assert all(ET.parse(path).getroot().tag.endswith("svg") for path in paths)


def test_k_study_is_read_and_drawn_with_its_best_k(tmp_path: Path) -> None:
    table = tmp_path / "k.csv"
    rows = [(20, 0.093, 0.003), (4, 0.13, 0.004), (24, 0.095, 0.002)]
    lines = [f"zinc/gatedgcn-lspe,{k},{test},{sd}" for k, test, sd in rows]
    lines += ["moltox21/pna-lspe,8,0.75,0.01", "moltox21/pna-lspe,16,0.76,0.01"]
    table.write_text("\n".join(["preset,k,test,test_sd", *lines]))
    study = read_k_study(table)
    assert [score.k for score in study["zinc/gatedgcn-lspe"]] == [4, 20, 24]
    figure = score_against_k(study)
    labels = [[text.get_text() for text in axes.get_legend().get_texts()] for axes in figure.axes]
    assert labels == [
        ["ours, mean ± sd", "best, k = 20", "paper, k = 20"],
        ["ours, mean ± sd", "best, k = 16", "paper, k = 16"],
    ]
    assert [axes.get_ylabel() for axes in figure.axes] == ["test MAE", "test ROC AUC"]
    assert draw("k-study", [table], out=tmp_path, form="png") == [tmp_path / "k-study.png"]


@pytest.mark.parametrize(
    "content, message",
    [
        (None, "does not exist"),
        ("preset,k,test\n", "no column 'test_sd'"),
        ("preset,k,test,test_sd\n", "has no rows"),
        ("preset,k,test,test_sd\nzinc/gatedgcn-lspe,four,1,1\n", "row 2: k, test and test_sd must be numbers"),
        ("preset,k,test,test_sd\nzinc/gatedgcn-lspe,4,nan,1\n", "row 2: the score is not a finite number"),
    ],
)
def test_bad_k_studies_are_refused_in_words(content: str | None, message: str, tmp_path: Path) -> None:
    table = tmp_path / "k.csv"
    if content is not None:
        table.write_text(content)
    with pytest.raises(UserError, match=message):
        draw("k-study", [table], out=tmp_path)


@pytest.mark.parametrize(
    "name, sources, message",
    [
        ("decalins", [], "did you mean 'decalin'"),
        ("k-study", [], "lspe plot k-study k-study.csv"),
        ("curves", [], "lspe plot curves RUN"),
        ("csl", ["x.csv"], "takes no source"),
        ("k-study", ["a.csv", "b.csv"], "one table"),
    ],
)
def test_wrong_names_and_sources_are_refused_in_words(
    name: str, sources: list[str], message: str, tmp_path: Path
) -> None:
    with pytest.raises(UserError, match=message):
        draw(name, sources, out=tmp_path)


def test_curves_show_every_epoch_of_every_run(tmp_path: Path) -> None:
    runs = [save_run(tmp_path / name, seed=seed) for seed, name in enumerate(["first", "second"])]
    rows = [(1, 1.5, 1.6, 1.2, 1.3, 1e-3), (2, 0.7, 0.9, 0.6, 0.8, 5e-4), (3, 0.5, "", 0.4, "", 2e-4)]
    for run in runs:
        header = "epoch,train_loss,val_loss,train_rmse,val_rmse,lr"
        (run / "metrics.csv").write_text("\n".join([header, *(",".join(map(str, row)) for row in rows)]))
    figure = training_curves([Run.open(run) for run in runs])
    loss, score, rate = figure.axes
    assert [axes.get_title(loc="left") for axes in figure.axes] == ["Loss", "RMSE", "Learning rate"]
    assert len(loss.lines) == len(score.lines) == 4  # training and validation of two runs
    np.testing.assert_array_equal(loss.lines[0].get_xydata(), [(1, 1.5), (2, 0.7), (3, 0.5)])
    np.testing.assert_array_equal(score.lines[1].get_ydata(), [1.3, 0.8, np.nan])
    assert [line.get_label() for line in rate.lines] == ["first", "second"]
    assert draw("curves", runs, out=tmp_path, form="png") == [tmp_path / "curves.png"]


def test_curves_of_a_run_without_epochs_or_with_another_score_are_refused(tmp_path: Path) -> None:
    fresh = save_run(tmp_path / "fresh")
    with pytest.raises(UserError, match="no epoch has finished"):
        draw("curves", [fresh], out=tmp_path)
    binary = save_run(tmp_path / "binary", "binary")
    with pytest.raises(UserError, match="scored differently"):
        draw("curves", [fresh, binary], out=tmp_path)
