"""What is done with a part, in this process: together the parts are what comes without a cluster."""

import sys
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pandas as pd
import pytest
from typer.testing import CliRunner

from lspe.cli.main import app
from lspe.cluster import encode_on_ray, jobs, predict_on_ray
from lspe.cluster.parts import Part
from lspe.cluster.ray_engine import Work, _cluster, _Worker
from lspe.data.encoding_files import write_encodings
from lspe.errors import UserError
from lspe.predict import Predictor
from tests.members import SMILES, member, save

ROWS = [*SMILES, "C1CC", "", *SMILES]


@pytest.fixture
def in_this_process(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The parts that were worked on, in order: the last first."""
    worked_on: list[int] = []

    def backwards(work: Work, parts: Sequence[Part], folder: Path, **_: Any) -> Iterator[tuple[Part, dict[str, Any]]]:
        for part in reversed(parts):
            worked_on.append(part.number)
            yield part, work(part, processes=1)

    monkeypatch.setattr(jobs, "work_on_parts", backwards)
    return worked_on


def write(path: Path) -> Path:
    frame = pd.DataFrame({"id": range(len(ROWS)), "Smiles": ROWS})
    frame.to_parquet(path) if path.suffix == ".parquet" else frame.to_csv(path, index=False)
    return path


@pytest.mark.parametrize("name", ["table.parquet", "table.csv"])
def test_predicted_parts_are_the_predicted_table(tmp_path: Path, in_this_process: list[int], name: str) -> None:
    model = Predictor([member(), member(seed=1)])
    table = write(tmp_path / name)
    expected = model.predict_table(table, tmp_path / "expected.parquet")
    summary = predict_on_ray(model, table, tmp_path / "parts", rows_per_part=7)
    written = pd.read_parquet(tmp_path / "parts")
    pd.testing.assert_frame_equal(written, pd.read_parquet(tmp_path / "expected.parquet"), atol=1e-6)
    assert replace(summary, seconds=0) == replace(expected, seconds=0)
    if name == "table.parquet":
        assert in_this_process == [4, 3, 2, 1, 0]
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted([name, "expected.parquet", "parts"])


@pytest.mark.parametrize("encoding", ["rwpe", "rrwp"])
def test_encoded_parts_are_the_encoded_table(tmp_path: Path, in_this_process: list[int], encoding: str) -> None:
    table = write(tmp_path / "table.parquet")
    expected = write_encodings(table, tmp_path / "expected.parquet", encoding=encoding, k=4)
    written = encode_on_ray(table, tmp_path / "parts", encoding=encoding, k=4, rows_per_part=7)
    assert written == expected
    frames = [pd.read_parquet(path) for path in (tmp_path / "parts", tmp_path / "expected.parquet")]
    pd.testing.assert_frame_equal(*(frame.astype({"smiles": str}) for frame in frames))


def test_what_goes_wrong_leaves_nothing_behind(tmp_path: Path, in_this_process: list[int]) -> None:
    table = write(tmp_path / "table.parquet")
    with pytest.raises(UserError, match="no column 'weight'"):
        predict_on_ray(Predictor([member()]), table, tmp_path / "parts", smiles_column="weight")
    with pytest.raises(UserError, match="is one graph"):
        encode_on_ray(tmp_path / "graph.gml", tmp_path / "parts")
    assert [path.name for path in tmp_path.iterdir()] == ["table.parquet"]


def test_a_part_is_tried_again_with_care_and_not_for_ever(tmp_path: Path) -> None:
    with_processes: list[int] = []

    def work(part: Part, processes: int) -> dict[str, Any]:
        with_processes.append(processes)
        raise UserError("row 7 is strange")

    row = {"number": 3, "path": "table.parquet", "begin": 0, "end": 9, "first": 0, "decimal_comma": False}
    answers = [_Worker(work, str(tmp_path))(row) for _ in range(5)]  # each in a process that followed a lost one
    assert with_processes == [1, 2, 2, 2]
    assert answers[0] == {"number": 3, "answer": '{"error": "row 7 is strange"}'}
    assert "was lost 4 times" in answers[4]["answer"]


@pytest.mark.parametrize(
    "address, said", [("", "could not be started: too slow"), ("here:1", "at RAY_ADDRESS=here:1 does not answer")]
)
def test_a_cluster_that_is_not_there_is_said(monkeypatch: pytest.MonkeyPatch, address: str, said: str) -> None:
    def init(**_: object) -> None:
        raise Exception("too slow")

    monkeypatch.setenv("RAY_ADDRESS", address)
    with pytest.raises(UserError, match=said), _cluster(SimpleNamespace(is_initialized=lambda: False, init=init), 2):
        pass


def test_the_command_says_what_is_missing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    run, table = str(save(tmp_path / "run")), str(write(tmp_path / "table.parquet"))
    for more, said in (
        ([], "name it with -o"),
        (["-o", str(tmp_path / "out"), "--embeddings", "x.npz"], "leave --embeddings or --engine ray out"),
        (["-o", str(tmp_path / "out")], r"pip install 'lspe\[ray\]'"),
    ):
        with pytest.raises(UserError, match=said):
            CliRunner().invoke(app, ["predict", run, table, "--engine", "ray", *more], catch_exceptions=False)
    command = ["encode", table, "--engine", "ray", "-o", str(tmp_path / "out")]
    with pytest.raises(UserError, match=r"pip install 'lspe\[ray\]'"):
        CliRunner().invoke(app, command, catch_exceptions=False)
