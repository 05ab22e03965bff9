"""Encodings of tables and graph files, as written, against encodings computed one by one."""

import gzip
import json
from pathlib import Path

import networkx as nx
import numpy as np
import pandas as pd
import pytest
import torch
import typer
from typer.testing import CliRunner

from lspe.cli.encode import encode
from lspe.data.encoding_files import write_encodings
from lspe.data.errors import DataError
from lspe.data.graphs.files import read_graph_file
from lspe.encodings import KINDS, all_pairs, encode_pairs, find_kind, laplacian_encoding, random_walk_encoding
from lspe.encodings import encode as compute_encoding
from lspe.errors import UserError
from lspe.plots.drawable_graphs import sketch_smiles

SMILES = ["CCO", "C1CC", "c1ccccc1O", "", "[Na+].[Cl-]", "CC(C)(C)C"]
GOOD = [0, 2, 4, 5]

app = typer.Typer()
app.command()(encode)


@pytest.fixture
def table(tmp_path: Path) -> Path:
    path = tmp_path / "table.csv"
    path.write_text("name,Smiles\n" + "".join(f"m{i},{smiles}\n" for i, smiles in enumerate(SMILES)))
    return path


def expected(smiles: str, kind: str, k: int) -> np.ndarray:
    sketch = sketch_smiles(smiles)
    if kind == "rwpe":
        return random_walk_encoding(sketch.edge_index, sketch.num_nodes, k).numpy()
    return laplacian_encoding(sketch.edge_index, sketch.num_nodes, k).vectors.numpy()


@pytest.mark.parametrize("kind", ["rwpe", "lappe"])
def test_parquet_has_a_row_an_atom_and_a_reason_where_there_is_no_molecule(
    kind: str, table: Path, tmp_path: Path
) -> None:
    out = tmp_path / "out.parquet"
    result = CliRunner().invoke(app, [str(table), "-o", str(out), "--encoding", kind, "-k", "4"])
    assert result.exit_code == 0, result.output
    assert "4 of 6 graphs encoded, 17 nodes" in result.output
    assert "molecule 1, 'C1CC'" in result.output
    written = pd.read_parquet(out)
    assert list(written.columns) == ["molecule", "smiles", "atom", *(f"{kind}_{i}" for i in range(1, 5)), "reason"]
    for number in GOOD:
        rows = written[written["molecule"] == number]
        assert rows["smiles"].unique().tolist() == [SMILES[number]]
        assert rows["atom"].tolist() == list(range(len(rows)))
        values = rows[[f"{kind}_{i}" for i in range(1, 5)]].to_numpy()
        assert np.allclose(np.abs(values), np.abs(expected(SMILES[number], kind, 4)), atol=1e-6)
        assert rows["reason"].isna().all()
    for number in (1, 3):
        rows = written[written["molecule"] == number]
        assert len(rows) == 1
        assert rows["atom"].isna().all()
        assert rows[f"{kind}_1"].isna().all()
        assert "SMILES" in rows["reason"].item()


@pytest.mark.parametrize("kind", [name for name in KINDS if find_kind(name).level == "node"])
def test_every_encoding_of_nodes_is_written_as_it_is_computed(kind: str, table: Path, tmp_path: Path) -> None:
    write_encodings(table, tmp_path / "out.npz", encoding=kind, k=3)
    sketch = sketch_smiles(SMILES[2])
    with np.load(tmp_path / "out.npz") as file:
        rows = file["encoding"][file["offsets"][2] : file["offsets"][3]]
    values = compute_encoding(kind, sketch.edge_index, sketch.num_nodes, 3).numpy()
    assert np.allclose(np.abs(rows), np.abs(values), atol=1e-6)


@pytest.mark.parametrize("kind", [name for name in KINDS if find_kind(name).level == "pair"])
def test_an_encoding_of_pairs_has_a_row_for_every_two_atoms(kind: str, table: Path, tmp_path: Path) -> None:
    k = find_kind(kind).width or 3
    out = tmp_path / "out.parquet"
    result = CliRunner().invoke(app, [str(table), "-o", str(out), "--encoding", kind, "-k", str(k)])
    assert result.exit_code == 0, result.output
    assert f"4 of 6 graphs encoded, {3**2 + 7**2 + 2**2 + 5**2} pairs of nodes" in result.output
    columns = [f"{kind}_{i + 1}" for i in range(k)]
    written = pd.read_parquet(out)
    assert list(written.columns) == ["molecule", "smiles", "atom", "other_atom", *columns, "reason"]
    write_encodings(table, tmp_path / "out.npz", encoding=kind, k=k)
    for number in GOOD:
        sketch = sketch_smiles(SMILES[number])
        pairs = all_pairs(sketch.num_nodes)
        values = encode_pairs(kind, sketch.edge_index, sketch.num_nodes, k, pairs=pairs).numpy()
        rows = written[written["molecule"] == number]
        assert np.array_equal(rows[["atom", "other_atom"]].to_numpy(), pairs.T.numpy())
        assert np.allclose(rows[columns].to_numpy(), values, atol=1e-6)
        with np.load(tmp_path / "out.npz") as file:
            part = slice(*file["offsets"][number : number + 2])
            assert np.array_equal(file["nodes"][part], pairs[0].numpy())
            assert np.array_equal(file["others"][part], pairs[1].numpy())
            assert np.allclose(file["encoding"][part], values, atol=1e-6)


def test_pairs_of_a_graph_file_have_names(tmp_path: Path) -> None:
    (tmp_path / "g.json").write_text(json.dumps({"directed": True, "edges": [["a", "b"], ["b", "a", 3], ["b", "c"]]}))
    write_encodings(tmp_path / "g.json", tmp_path / "out.parquet", encoding="rrwp", k=2)
    written = pd.read_parquet(tmp_path / "out.parquet").set_index(["node", "other_node"])
    assert written.loc[("b", "a"), "rrwp_1"] == 0.75
    assert written.loc[("a", "c"), "rrwp_2"] == 0.25
    assert len(written) == 9


def test_npz_has_the_same_in_arrays(table: Path, tmp_path: Path) -> None:
    out = tmp_path / "out.npz"
    write_encodings(table, out, k=7)
    with np.load(out) as file:
        offsets, encoding = file["offsets"], file["encoding"]
        assert file["names"].tolist() == SMILES
        assert [bool(reason) for reason in file["reasons"]] == [i not in GOOD for i in range(6)]
        for number in range(6):
            rows = slice(offsets[number], offsets[number + 1])
            if number in GOOD:
                assert np.array_equal(encoding[rows], expected(SMILES[number], "rwpe", 7))
                assert file["nodes"][rows].tolist() == list(range(len(encoding[rows])))
            else:
                assert rows.start == rows.stop


def test_long_tables_are_written_in_pieces_that_join(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lspe.data.encoding_files._ROWS", 3)
    table = tmp_path / "long.csv.gz"
    smiles = ["C" * length if length % 5 else "C(" for length in range(1, 12)]
    with gzip.open(table, "wt") as file:
        file.write("smiles\n" + "\n".join(smiles))
    for suffix in ("parquet", "npz"):
        written = write_encodings(table, tmp_path / f"out.{suffix}", k=3)
        assert (written.rows, written.encoded) == (11, 9)
    rows = pd.read_parquet(tmp_path / "out.parquet")
    counts = rows.groupby("molecule", observed=True)["atom"].count().tolist()
    assert counts == [0 if length % 5 == 0 else length for length in range(1, 12)]
    with np.load(tmp_path / "out.npz") as file:
        assert np.diff(file["offsets"]).tolist() == counts
        assert np.array_equal(file["encoding"][:, 1], rows["rwpe_2"].dropna().to_numpy(np.float32))


def test_graph_files_keep_names_weights_and_directions(tmp_path: Path) -> None:
    graph = nx.DiGraph()
    graph.add_weighted_edges_from([("a", "b", 1.0), ("b", "a", 3.0), ("b", "c", 1.0), ("c", "a", 2.0)])
    nx.write_graphml(graph, tmp_path / "g.graphml")
    nx.write_gml(graph, tmp_path / "g.gml")
    (tmp_path / "g.json").write_text(json.dumps(nx.node_link_data(graph, edges="edges")))
    (tmp_path / "plain.json").write_text(
        json.dumps({"directed": True, "edges": [["a", "b"], ["b", "a", 3], ["b", "c"], ["c", "a", 2.0]]})
    )
    walk = torch.tensor([[0.0, 1.0, 0.0], [0.75, 0.0, 0.25], [1.0, 0.0, 0.0]])
    returns = torch.stack([torch.linalg.matrix_power(walk, step).diagonal() for step in range(1, 5)], 1)
    for name in ("g.graphml", "g.gml", "g.json", "plain.json"):
        out = tmp_path / "out.parquet"
        write_encodings(tmp_path / name, out, k=4)
        written = pd.read_parquet(out)
        assert list(written.columns[:3]) == ["graph", "file", "node"]
        assert len(written) == 3
        assert np.allclose(written[[f"rwpe_{i}" for i in range(1, 5)]].to_numpy(), returns, atol=1e-6), name


def test_lists_of_edges_are_undirected(tmp_path: Path) -> None:
    path = tmp_path / "g.edgelist"
    path.write_text("# a path\na b\nb,c 2.5  # heavier\n\n")
    graph = read_graph_file(path)
    assert not graph.is_directed()
    assert list(graph.edges(data="weight")) == [("a", "b", 1.0), ("b", "c", 2.5)]


@pytest.mark.parametrize(
    "name, content, message",
    [
        ("g.edgelist", "a b c d\n", "line 1: 'a b c d' is not an edge"),
        ("g.edges", "a b\na c heavy\n", "line 2: the weight 'heavy'"),
        ("g.edgelist", "# nothing\n", "has no nodes"),
        ("g.json", "[1, 2]", "expected an object"),
        ("g.json", '{"nodes": []}', "no 'edges'"),
        ("g.json", '{"edges": [[0]]}', r"edges\[0\]"),
        ("g.json", '{"edges": [[0, null]]}', "cannot name a node"),
        ("g.json", '{"edges": [[0, 1, -2]]}', "must be finite .* and not negative"),
        ("g.json", '{"edges":', "is not a .json graph"),
        ("g.graphml", "<graphml>", "is not a .graphml graph"),
        ("g.gml", "graph [", "is not a .gml graph"),
    ],
)
def test_bad_graph_files_are_refused_in_words(name: str, content: str, message: str, tmp_path: Path) -> None:
    (tmp_path / name).write_text(content)
    with pytest.raises(DataError, match=message):
        write_encodings(tmp_path / name, tmp_path / "out.npz")
    assert not list(tmp_path.glob("*out*")), "nothing half-written is left"


def test_what_cannot_be_written_is_refused_before_anything_is_read(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"\.parquet or \.npz"):
        write_encodings("missing.csv", tmp_path / "out.csv")
    with pytest.raises(UserError, match="at least one column"):
        write_encodings("missing.csv", tmp_path / "out.npz", k=0)
    with pytest.raises(DataError, match="does not exist"):
        write_encodings("missing.csv", tmp_path / "out.npz")
    with pytest.raises(UserError, match="there is no folder"):
        write_encodings("missing.csv", tmp_path / "no" / "out.npz")
    with pytest.raises(DataError, match="does not exist"):
        write_encodings("missing.graphml", tmp_path / "out.npz")
