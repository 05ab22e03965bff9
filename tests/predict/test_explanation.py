"""Why a model says what it says: contributions that add up, a planted rule that is found, and near molecules."""

import csv
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from rdkit import Chem
from scipy.stats import spearmanr
from typer.testing import CliRunner

import lspe
from lspe.cli.main import app
from lspe.data.errors import MoleculeError
from lspe.data.molecules.descriptors import describe
from lspe.plots import explained
from lspe.plots.explained import ExplanationFolder, draw_explanation
from lspe.predict.attribution import attribute
from lspe.predict.member import GraphsWithEncodings
from tests.members import member
from tests.small import write_table

SMALL = {"model.layers": 1, "model.hidden_dim": 8, "model.k": 4, "training.batch_size": 16}
ASPIRIN = "CC(=O)Oc1ccccc1C(=O)O"


pytestmark = pytest.mark.usefixtures("few_trees")


@pytest.fixture(scope="module", params=["regression", "binary", "multiclass"])
def model(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, session_cache: None
) -> lspe.Predictor:
    folder = tmp_path_factory.mktemp("explained")
    table = write_table(folder / "table.csv", request.param)
    run = lspe.train(table, out=folder / "run", members=2, epochs=2, settings=SMALL, threads=1)
    return lspe.load(run.path)


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"preset": "own/molecules"},
        {"kind": "binary"},
        {"kind": "multiclass", "classes": ("a", "b", "c")},
        {"settings": ("model.name=pna", "model.edge_dim=8", "model.delta=1.1", "model.size_norm=false")},
        {"preset": "zinc/graphit-lspe"},
        {"settings": ("model.lspe=false", "model.final=structure")},
        {"settings": ("model.encoding=none", "model.k=0", "model.lspe=false", "model.final=structure")},
    ],
    ids=["gatedgcn", "descriptors", "labels", "classes", "pna", "graphit", "encoding-at-the-input", "no-encoding"],
)
@pytest.mark.parametrize("smiles", ["C", ASPIRIN])
def test_contributions_add_up(smiles: str, options: dict[str, Any]) -> None:
    given = dict(options)
    one = member(given.pop("kind", "regression"), *given.pop("settings", ()), **given)
    graphs = GraphsWithEncodings(lspe.smiles_to_graphs([smiles]).graphs, {"rdkit": describe([smiles], "rdkit")})
    found = attribute(one, graphs.for_network(one))
    values, _ = one.apply(graphs)
    way = values[0] - found.baseline
    total = sum(part.sum(axis=0) for part in (found.nodes, found.positions, found.edges, found.descriptors[None]))
    np.testing.assert_allclose(total, way, atol=0.01 * np.abs(way).max())
    np.testing.assert_allclose(found.baseline + total + found.rest, values[0], rtol=1e-6, atol=1e-6)
    assert np.abs(found.nodes).sum() > 0


def test_the_parts_of_a_blend_add_up_to_its_prediction(model: lspe.Predictor) -> None:
    found = model.explain(ASPIRIN)
    np.testing.assert_allclose(found.value, np.atleast_1d(model.predict([ASPIRIN])[0]), rtol=1e-5)
    assert found.atoms.shape == (13, len(found.outputs))
    assert found.ends.tolist()[0] == [0, 1]
    assert (found.forest > 0).any()
    assert (found.descriptors != 0).any()


def test_near_molecules_are_named_with_their_labels(model: lspe.Predictor) -> None:
    assert model.known is not None
    first = model.known.smiles[3]
    [nearest, *others] = model.explain(first).neighbours
    assert (nearest.smiles, nearest.tanimoto, nearest.learned) == (first, 1.0, pytest.approx(1.0))
    assert len(nearest.labels) == len(model.task_names)
    assert others[0].tanimoto >= others[-1].tanimoto
    if model.task == "multiclass":
        assert nearest.labels[0] in model.class_names
    elif model.task == "regression":
        assert nearest.labels[0] == pytest.approx(float(model.known.y[3, 0]))


def test_known_molecules_are_those_not_tested(model: lspe.Predictor) -> None:
    assert model.known is not None
    tested = {row["smiles"] for row in _rows(Path(model.members[0].name).parent / "predictions.csv")}
    assert tested
    assert not tested & set(model.known.smiles)
    assert len(model.known.smiles) + len(tested) == 40


def test_the_command_line_draws_and_writes(model: lspe.Predictor, tmp_path: Path) -> None:
    run = Path(model.members[0].name).parent
    (tmp_path / "new.csv").write_text(f"id,smiles\na,C1CC\nb,{ASPIRIN}\n")
    out = tmp_path / "why"
    arguments = ["predict", str(run), str(tmp_path / "new.csv"), "-o", str(tmp_path / "out.csv"), "--explain", str(out)]
    result = CliRunner().invoke(app, arguments, catch_exceptions=False)
    assert "explained one molecule" in result.output
    assert "the forest's" in result.output
    pictures = {path.name for path in out.glob("*.svg")}
    assert pictures == ({"2-ring.svg", "2-large.svg"} if model.task == "binary" else {"2.svg"})
    page = (out / "index.html").read_text(encoding="utf-8")
    assert set(re.findall(r'src="([^"]+)"', page)) == pictures
    why = model.explain(ASPIRIN)
    shown = why.value.argmax() if model.task == "multiclass" else 0
    assert f"row 2: {ASPIRIN}, {why.outputs[shown]} {why.value[shown]:.3g}; nearest in training: " in page
    assert f"nearest in training: {why.neighbours[0].smiles}, " in page
    rows = _rows(out / "contributions.csv")
    name = why.outputs[0]
    by_part = {part: sum(float(row[name]) for row in rows if row["part"] == part) for part in {r["part"] for r in rows}}
    predicted = float(_rows(tmp_path / "out.csv")[1][name])
    assert by_part.pop("value") == pytest.approx(predicted, rel=1e-5)
    assert sum(by_part.values()) == pytest.approx(predicted, rel=1e-4)
    assert {row["smiles"] for row in _rows(out / "neighbours.csv")} == {ASPIRIN}


def test_pictures_and_refusals(model: lspe.Predictor, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = model.explain("CCO")
    assert draw_explanation(found, form="png").startswith(b"\x89PNG")
    assert b"<svg" in draw_explanation(found, form="svg")
    with pytest.raises(MoleculeError, match="is not a SMILES"):
        model.explain("C1CC")
    monkeypatch.setattr(explained, "MOST", 1)
    folder = ExplanationFolder(model, tmp_path / "why")
    folder.add(1, "CCO")
    with pytest.raises(lspe.errors.UserError, match="choose the rows that matter"):
        folder.add(2, "CCC")
    with pytest.raises(lspe.errors.UserError, match=r"are a folder .* without \.html"):
        ExplanationFolder(model, tmp_path / "why.html")
    assert not (tmp_path / "why.html").exists()


RULE = {"C": 0.4, "N": -1.0, "O": -1.5, "S": 0.9, "F": 0.1, "Cl": 1.3, "Br": 1.8}


def contributions(smiles: str) -> list[float]:
    """A logP of our own: an element's value, and a little for each hydrogen."""
    return [RULE[atom.GetSymbol()] + 0.1 * atom.GetTotalNumHs() for atom in Chem.MolFromSmiles(smiles).GetAtoms()]


def random_molecules(count: int, rng: np.random.Generator) -> list[str]:
    found: dict[str, None] = {}
    while len(found) < count:
        inner = rng.choice(list("CCCNOS"), rng.integers(2, 7))
        branches = ["", "", "(C)", "(F)", "(Cl)", "(O)"]
        text = "".join(one + (str(rng.choice(branches)) if one == "C" else "") for one in inner)
        found[f"{rng.choice(['C', 'F', 'Cl', 'Br'])}C{text}C"] = None
    return list(found)


@pytest.mark.slow
def test_a_planted_rule_is_found(tmp_path: Path) -> None:
    """Networks that learned a sum over atoms say which atoms it is the sum of."""
    molecules = random_molecules(340, np.random.default_rng(0))
    rows = [f"{smiles},{sum(contributions(smiles))}" for smiles in molecules[:300]]
    (tmp_path / "table.csv").write_text("\n".join(["smiles,y", *rows]) + "\n")
    settings = {
        "model.layers": 1,
        "model.hidden_dim": 24,
        "model.k": 8,
        "model.readout": "sum",
        "training.protocol.lr": 5e-3,
    }
    run = lspe.train(
        tmp_path / "table.csv",
        preset="own/gatedgcn-lspe",
        epochs=25,
        settings=settings,
        out=tmp_path / "run",
        threads=1,
    )
    assert run.summary["reported"]["test"]["r2"] > 0.95
    model = lspe.load(run.path)
    found = [model.explain(smiles).atoms[:, 0] for smiles in molecules[300:]]
    planted = [contributions(smiles) for smiles in molecules[300:]]
    assert spearmanr(np.concatenate(found), np.concatenate(planted))[0] >= 0.9


def _rows(path: Path) -> list[dict[str, str]]:
    return list(csv.DictReader(path.read_text().splitlines()))
