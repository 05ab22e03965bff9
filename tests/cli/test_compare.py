"""``lspe compare`` and ``lspe plot`` as commands."""

import xml.etree.ElementTree as ET
from pathlib import Path

import networkx as nx
import pytest
import typer
from typer.testing import CliRunner

from lspe.cli.compare import compare
from lspe.cli.plot import plot
from lspe.encodings.kinds import KINDS
from lspe.errors import UserError

DECALIN, BICYCLOPENTYL = "C1CCC2CCCCC2C1", "C1CCC(C1)C1CCCC1"

app = typer.Typer()
app.command()(compare)
app.command()(plot)


def run(*arguments: str) -> str:
    result = CliRunner().invoke(app, arguments)
    if result.exception and not isinstance(result.exception, SystemExit):
        raise result.exception
    assert result.exit_code == 0, result.output
    return result.output


def test_the_paper_s_pair_is_told_apart_by_walks_alone(tmp_path: Path) -> None:
    picture = tmp_path / "pair.svg"
    output = run("compare", DECALIN, BICYCLOPENTYL, "--picture", str(picture))
    lines = [line.split() for line in output.splitlines()]
    assert ["random", "walk", "non-isomorphic", "5"] in lines
    assert ["1-WL", "possibly", "isomorphic", "–"] in lines
    assert ["rwpe", "yes", "5"] in lines
    assert ["degree", "no", "–"] in lines
    assert {line[0] for line in lines if line} >= {*KINDS}
    assert ET.parse(picture).getroot().tag.endswith("svg")


def test_elements_count_only_when_asked_for() -> None:
    assert "Neither test" in run("compare", "CCO", "CCN")
    output = run("compare", "CCO", "CCN", "--label", "element")
    assert "before any step" in output
    assert "rwpe" not in output, "no encoding is needed"
    assert "of 3 columns" in run("compare", "CCO", "CCN", "-k", "3")


def test_graph_files_and_smiles_can_be_mixed(tmp_path: Path) -> None:
    nx.write_graphml(nx.circulant_graph(10, [1]), tmp_path / "ring.graphml")
    output = run("compare", "C1CCCCCCCCC1", str(tmp_path / "ring.graphml"), "--picture", str(tmp_path / "p.png"))
    assert "Neither test" in output
    assert (tmp_path / "p.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize(
    "arguments, message",
    [
        (("C1CC", "CC"), "C1CC"),
        (("CC", "missing.graphml"), "missing.graphml does not exist"),
        (("CC", "CC", "--label", "charge"), "can only be 'element'"),
        (("CC", "CC", "--picture", "p.pdf"), r"ends in \.png or \.svg"),
    ],
)
def test_what_cannot_be_compared_is_refused_in_words(arguments: tuple[str, ...], message: str) -> None:
    with pytest.raises(UserError, match=message):
        run("compare", *arguments)


def test_plot_writes_what_it_says(tmp_path: Path) -> None:
    output = run("plot", "three-regular", "--out", str(tmp_path), "--format", "svg")
    assert (tmp_path / "three-regular.svg").exists()
    assert "three-regular.svg" in output.replace("\n", "")
    assert not (tmp_path / "three-regular.png").exists()
