"""Tables from the small files alone: those of the repository."""

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from lspe.cli.main import app
from lspe.errors import UserError
from lspe.experiment.value import CONFIG
from lspe.reproduce.small_files import SMALL_FILES
from lspe.reproduce.tables import rows_found_in

RESULTS = Path(__file__).parents[2] / "results"


def lspe(*arguments: object) -> str:
    result = CliRunner().invoke(app, [str(one) for one in arguments])
    if isinstance(result.exception, UserError):
        raise result.exception
    assert result.exit_code == 0, result.output
    return result.output


def test_what_is_kept_of_a_run_is_small() -> None:
    runs = [path.parent for path in RESULTS.rglob(f"seed*/**/{CONFIG}")]
    assert runs
    for run in runs:
        assert {path.name for path in run.iterdir() if path.is_file()} <= set(SMALL_FILES)


def test_every_run_that_is_kept_is_in_a_table() -> None:
    campaigns = {path.parents[3] for path in RESULTS.rglob(f"seed*/{CONFIG}")}
    found = {f / row.name for f in campaigns for rows in rows_found_in(f).values() for row in rows}
    assert found == {path.parent.parent for path in RESULTS.rglob(f"seed*/{CONFIG}")}


def test_tables_print_from_the_small_files() -> None:
    printed = lspe("reproduce", "--show", "--out", RESULTS / "zinc-fast")
    cells = next(line.split() for line in printed.splitlines() if "zinc/gatedgcn-lspe" in line)
    assert cells[:5] == ["zinc/gatedgcn-lspe", "41", "1", "mae", "0.1061"]
    assert "0.0930 ± 0.0030" in printed
    assert "moltox21" not in printed


def test_what_predicts_as_one_has_one_score() -> None:
    printed = lspe("reproduce", "--show", "--out", RESULTS / "moltox21-plus")
    folder = RESULTS / "moltox21-plus/moltox21/gatedgcn-lspe-plus/seed41"
    score = json.loads((folder / "summary.json").read_text())["together"]["test"]["together"]["roc_auc"]
    assert f" {score:.4f} " in next(line for line in printed.splitlines() if "gatedgcn-lspe-plus" in line)


def test_the_rest_of_a_table_is_empty_and_counted(tmp_path: Path) -> None:
    results = tmp_path / "results"
    folder = RESULTS / "zinc-fast"
    printed = lspe(
        "reproduce", "zinc", "--only", "zinc/gatedgcn*", "--seeds", 1, "--show", "--out", folder, "--results", results
    )
    assert "2 of 4 done, 0 running, 2 left" in printed
    seeds_left_open = lspe("reproduce", "zinc", "--only", "zinc/gatedgcn*", "--show", "--out", folder)
    assert "2 of 4 done, 0 running, 2 left" in seeds_left_open
    assert (results / "zinc.md").read_text().count("| – |") > 2
    assert (results / "zinc/gatedgcn/seed41/metrics.csv").read_bytes() == (
        folder / "zinc/gatedgcn/seed41/metrics.csv"
    ).read_bytes()


def test_without_a_table_there_is_nothing_to_train(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="which table"):
        lspe("reproduce", "--out", tmp_path)
    assert "has no runs" in lspe("reproduce", "--show", "--out", tmp_path)
