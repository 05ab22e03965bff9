"""The paper's tables: which rows they have, and ours beside theirs."""

import csv
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
import torch
from typer.testing import CliRunner

from lspe.cli.main import app
from lspe.config import ConfigError
from lspe.data import DataError
from lspe.experiment import list_presets, load_preset
from lspe.reproduce import TABLES, Row, campaign, collect, reproduce, rows_of_table
from lspe.reproduce.results import HEADER, Result, as_text, baselines_as_text
from lspe.training import open_runs
from lspe.training.progress import Progress

OPTIONS = {"device": "cpu", "threads": 1}


@pytest.fixture(autouse=True, scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("LSPE_CACHE", str(tmp_path_factory.mktemp("cache")))
        patch.setenv("LSPE_DATA", str(tmp_path_factory.mktemp("data")))
        yield
    torch.set_num_threads(1)


@pytest.fixture(scope="module")
def csl(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[Result]]:
    """One epoch of both networks on all five folds."""
    folder = tmp_path_factory.mktemp("reproduced")
    return folder, reproduce("csl", folder, epochs=1, **OPTIONS)["csl"]


def test_every_row_of_the_paper_is_in_a_table_and_every_table_is_of_presets() -> None:
    rows = {row.preset for table in TABLES.values() for row in table}
    assert rows <= set(list_presets())
    assert {name for name in list_presets() if load_preset(name).paper is not None} <= rows
    assert [len(TABLES[name]) for name in ("table1", "ablation", "nonmolecular", "csl")] == [25, 8, 6, 2]
    assert [len(TABLES[name]) for name in ("zinc", "moltox21", "molpcba", "zinc-k")] == [15, 10, 5, 6]
    assert [len(TABLES[name]) for name in ("imdb-binary", "imdb-multi", "cifar10")] == [2, 2, 2]
    of_zinc = [name for name in list_presets() if name.startswith("zinc/") and load_preset(name).paper is not None]
    assert sorted(row.name for row in TABLES["zinc"]) == of_zinc


def test_the_study_of_k_has_a_row_for_each() -> None:
    names = [row.name for row in rows_of_table("k-study")]
    assert names[:2] == ["zinc/gatedgcn-lspe-k4", "zinc/gatedgcn-lspe-k8"]
    assert len(set(names)) == 12
    result = collect(rows_of_table("k-study")[0], Path("nowhere"))
    assert (result.preset, result.k, result.paper_test, result.runs) == ("zinc/gatedgcn-lspe", 4, None, 0)


def test_presets_are_tables_of_one_row() -> None:
    assert rows_of_table("zinc/pna") == (Row("zinc/pna"),)
    with pytest.raises(ConfigError, match="unknown table or preset 'tabel1': did you mean 'table1'"):
        rows_of_table("tabel1")


def test_ours_are_the_mean_and_spread_over_all_folds(csl: tuple[Path, list[Result]]) -> None:
    folder, results = csl
    assert [result.name for result in results] == ["csl/gatedgcn", "csl/gatedgcn-lspe"]
    for result in results:
        runs = open_runs(folder / result.name / "seed41")
        assert [run.config.fold for run in runs] == [0, 1, 2, 3, 4]
        scores = [run.summary["reported"]["test"]["accuracy"] for run in runs]
        assert (result.test, result.test_sd) == (pytest.approx(np.mean(scores)), pytest.approx(np.std(scores)))
        assert (result.runs, result.epochs, result.difference) == (5, 1, None)
        assert result.parameters == runs[0].summary["parameters"]


def test_the_table_is_written_as_csv_markdown_and_picture(csl: tuple[Path, list[Result]]) -> None:
    folder, results = csl
    with (folder / "csl.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert [float(row["test"]) for row in rows] == [result.test for result in results]
    assert {"preset", "k", "test", "test_sd"} <= rows[0].keys()  # what lspe plot k-study reads
    lines = (folder / "csl.md").read_text().splitlines()
    assert lines[0].split(" | ")[1:4] == ["seeds", "runs", "metric"]
    assert "csl/gatedgcn-lspe" in lines[3]
    assert (folder / "csl.png").read_bytes()[:4] == b"\x89PNG"


def test_finished_rows_are_not_trained_again(csl: tuple[Path, list[Result]]) -> None:
    folder, results = csl
    begun: list[str] = []

    class Begun(Progress):
        def begin(self, title: str, *_: object) -> None:
            begun.append(title)

    assert reproduce("csl", folder, epochs=1, progress=Begun(), **OPTIONS)["csl"] == results
    assert begun == []
    (folder / "csl/gatedgcn-lspe/seed41/fold3/summary.json").unlink()
    (folder / "csl/gatedgcn-lspe/seed41/fold3/last.ckpt").unlink()
    again = reproduce("csl", folder, epochs=1, progress=Begun(), **OPTIONS)["csl"]
    assert begun == ["csl/gatedgcn-lspe  seed 41  fold 3"]
    assert again[1].test == results[1].test


def test_a_data_set_that_is_not_there_does_not_stop_the_others(
    csl: tuple[Path, list[Result]], monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, results = csl
    load_data = campaign.load_data

    def only_one(experiment, root=None):  # type: ignore[no-untyped-def]
        if experiment.name == "csl/gatedgcn":
            raise DataError("csl.npz is not there")
        return load_data(experiment, root)

    monkeypatch.setattr(campaign, "load_data", only_one)
    (folder / "csl/gatedgcn/seed41/fold3/summary.json").unlink()
    (folder / "csl/gatedgcn-lspe/seed41/fold3/summary.json").unlink()
    first, second = reproduce("csl", folder, epochs=1, **OPTIONS)["csl"]
    assert (first.problem, second.problem) == ("csl.npz is not there", "")
    assert (first.runs, second.runs) == (4, 5)
    assert second.test == results[1].test
    monkeypatch.undo()
    again = reproduce("csl", folder, epochs=1, **OPTIONS)["csl"]
    assert [(one.runs, one.test, one.problem) for one in again] == [(5, one.test, "") for one in results]


def test_what_predicts_as_one_is_left_to_train(tmp_path: Path) -> None:
    [row] = reproduce("moltox21/gatedgcn-lspe-plus", tmp_path, seeds=1, **OPTIONS)["moltox21/gatedgcn-lspe-plus"]
    assert "several models that predict as one" in row.problem
    assert row.problem.endswith("lspe train moltox21/gatedgcn-lspe-plus")


def test_ours_stand_beside_the_papers() -> None:
    paper = collect(Row("zinc/pna"), Path("nowhere"))
    ours = Result(**{**vars(paper), "test": 0.15, "test_sd": 0.01, "runs": 4, "epochs": 99.5, "difference": 0.009})
    header, row = as_text([ours])
    assert tuple(header) == HEADER
    cells = dict(zip(HEADER, row, strict=True))
    assert cells["test"] == "0.1500 ± 0.0100"
    assert cells["paper"] == "0.1410 ± 0.0040"
    assert cells["difference"] == "+0.009"
    assert row[-3:] == ["100 / 451", "– / 79.7", "369,235"]


def test_table_2_lists_what_the_paper_quotes() -> None:
    results = [collect(row, Path("nowhere")) for row in rows_of_table("table2")]
    rows = baselines_as_text(results)
    assert ["zinc", "Graphormer", "0.1220 ± 0.0060", "quoted by the paper"] in rows
    assert ["zinc", "gatedgcn-lspe-posloss", "0.0900 ± 0.0010", "the paper"] in rows
    assert ["zinc", "gatedgcn-lspe-posloss", "–", "ours, 0 runs"] in rows
    assert [row[0] for row in rows[1:]].count("molpcba") == 8


def test_the_command_prints_the_table(csl: tuple[Path, list[Result]]) -> None:
    folder, results = csl
    result = CliRunner().invoke(app, ["reproduce", "csl", "--epochs", "1", "--out", str(folder), "--threads", "1"])
    assert result.exit_code == 0, result.output
    for one in results:
        assert one.name in result.output
        assert f"{one.test:.2f} ± {one.test_sd:.2f}" in result.output
