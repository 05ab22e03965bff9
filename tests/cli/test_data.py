"""``lspe data`` as people call it."""

import json
from pathlib import Path

import pytest
from PIL import Image
from typer.testing import CliRunner, Result

from lspe.cli.data import app
from lspe.data import available, load_benchmark


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Every test has a cache of its own."""
    monkeypatch.setenv("LSPE_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


def run(*arguments: str) -> Result:
    return CliRunner().invoke(app, list(arguments), catch_exceptions=False)


def test_list_says_what_there_is(tmp_path: Path) -> None:
    (tmp_path / "pcba.zip").touch()
    load_benchmark("csl", tmp_path)
    entries = {entry["name"]: entry for entry in json.loads(run("list", "--root", str(tmp_path), "--json").stdout)}
    assert entries.keys() == available().keys()
    assert entries["molpcba"]["source"] == str(tmp_path / "pcba.zip")
    assert entries["zinc"]["source"] == "download"
    assert entries["nci"]["source"] == "built in"
    assert len(entries["csl"]["prepared"]) == 1
    assert entries["zinc"]["prepared"] == []
    table = run("list", "--root", str(tmp_path)).stdout
    assert all(name in table for name in available())


def test_info_gives_the_figures(tmp_path: Path) -> None:
    figures = json.loads(run("info", "csl", "--root", str(tmp_path), "--json").stdout)
    assert (figures["graphs"], figures["mean_nodes"], figures["mean_edges"]) == (150, 41, 164)
    assert (figures["folds"], figures["classes"]) == (5, [15] * 10)
    assert "mean nodes            41.0000" in run("info", "csl", "--root", str(tmp_path)).stdout


def test_info_of_a_table_reports_its_rows(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("smiles,a,b\n" + "".join(f"{'C' * n},{n},{n / 3}\n" for n in range(1, 12)) + "broken,1,1\n")
    output = run("info", str(path), "--target", "b").stdout
    assert "11 of 12 rows used\n1 × left out" in output
    assert "target mean           2.0000" in output


@pytest.mark.parametrize("name", ["csl", "imdb-multi", "moltox21"])
def test_a_picture_of_sample_graphs(name: str, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    root = tmp_path if name == "csl" else request.getfixturevalue("shared_data")
    run("info", name, "--root", str(root), "--picture", str(tmp_path / "samples.png"))
    with Image.open(tmp_path / "samples.png") as picture:
        assert picture.width > 1200
        colours = picture.convert("RGB").getcolors(1 << 24)
    assert colours is not None
    assert len(colours) > 100  # lines, nodes and words, not an empty canvas


def test_prepare_and_verify(tmp_path: Path, cache: Path) -> None:
    assert run("verify").stdout == "nothing is prepared\n"
    assert (
        "csl: 150 graphs in" in run("prepare", "csl", "--root", str(tmp_path), "--encoding", "rwpe", "-k", "4").stdout
    )
    files = sorted((cache / "packed").glob("*.lspe"))
    assert len(files) == 2
    checked = run("verify")
    assert (checked.exit_code, checked.stdout.count("ok ")) == (0, 2)
    content = bytearray(files[0].read_bytes())
    content[-1] ^= 1
    files[0].write_bytes(content)
    checked = run("verify", "csl")
    assert checked.exit_code == 1
    assert f"DAMAGED  {files[0]}" in checked.stdout
    run("prepare", "csl", "--root", str(tmp_path), "--encoding", "rwpe", "-k", "4")
    assert run("verify").exit_code == 0
