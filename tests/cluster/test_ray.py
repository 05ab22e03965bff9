"""On a Ray cluster of two processes: every row once, in order, with the same numbers, also when a process is lost."""

import os
import signal
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from lspe.cli.main import app
from lspe.cluster import encode_on_ray, jobs, predict_on_ray
from lspe.cluster.parts import Part
from lspe.data import TableChunk
from lspe.data.encoding_files import write_encodings
from lspe.predict import Predictor
from lspe.predict.tables import WiderTable
from tests.members import SMILES, member, save

ray = pytest.importorskip("ray", reason="Ray is an extra that .[dev] leaves out: make test-ray")
pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("default")]  # Ray's own warnings are no errors of ours

ROWS = [smiles for number in range(150) for smiles in (*SMILES, "C1CC", "C" * (1 + number % 40))]


@pytest.fixture(scope="module", autouse=True)
def cluster() -> Iterator[None]:
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    ray.init(num_cpus=2, include_dashboard=False, object_store_memory=200 * 2**20, log_to_driver=False)
    yield
    ray.shutdown()


@pytest.fixture(scope="module")
def model() -> Predictor:
    return Predictor([member()])


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("ray") / "table.parquet"
    pd.DataFrame({"number": range(len(ROWS)), "smiles": ROWS}).to_parquet(path, row_group_size=700)
    return path


class _EndsItsProcess(WiderTable):
    """Behind the first rows."""

    def rows(self, chunks: Iterable[TableChunk], processes: int | None = None) -> Iterator[Any]:
        yield next(super().rows(chunks, processes))
        os.kill(os.getpid(), signal.SIGKILL)


class _LosesAProcess(jobs._PredictPart):
    def __call__(self, part: Part, processes: int) -> dict[str, Any]:
        if part.number != 1 or processes > 1:
            return super().__call__(part, processes)
        return super(_LosesAProcess, replace(self, wider=_EndsItsProcess(**vars(self.wider)))).__call__(part, processes)


def test_a_process_that_is_lost_costs_no_row(
    tmp_path: Path, model: Predictor, table: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model.predict_table(table, tmp_path / "expected.parquet", processes=1)
    monkeypatch.setattr(jobs, "_PredictPart", _LosesAProcess)
    summary = predict_on_ray(model, table, tmp_path / "parts", workers=2, rows_per_part=1000)
    assert sorted(path.name for path in (tmp_path / "parts").iterdir()) == [
        f"part-{number:06d}.parquet" for number in range(3)
    ]
    written = pd.read_parquet(tmp_path / "parts")
    assert written["number"].tolist() == list(range(len(ROWS)))
    pd.testing.assert_frame_equal(written, pd.read_parquet(tmp_path / "expected.parquet"), check_exact=True)
    assert (summary.rows, summary.without) == (len(ROWS), 150)


def test_encodings_are_the_same(tmp_path: Path, table: Path) -> None:
    expected = write_encodings(table, tmp_path / "expected.parquet", k=4, processes=1)
    assert encode_on_ray(table, tmp_path / "parts", k=4, workers=2, rows_per_part=1000) == expected
    frames = [pd.read_parquet(path) for path in (tmp_path / "parts", tmp_path / "expected.parquet")]
    pd.testing.assert_frame_equal(*(frame.astype({"smiles": str}) for frame in frames))


def test_the_command(tmp_path: Path, table: Path, model: Predictor) -> None:
    command = ["predict", str(save(tmp_path / "run")), str(table), "--engine", "ray", "-o", str(tmp_path / "parts")]
    result = CliRunner().invoke(app, [*command, "--workers", "2"], catch_exceptions=False)
    assert f"{len(ROWS):,} molecules" in result.stderr
    assert pd.read_parquet(tmp_path / "parts")["number"].tolist() == list(range(len(ROWS)))


def test_a_predictor_in_a_job_of_ones_own(model: Predictor, table: Path) -> None:
    class Predict:
        def __init__(self, predictor: Predictor) -> None:
            self.predictor = predictor

        def __call__(self, batch: dict[str, Any]) -> dict[str, Any]:
            return {**batch, "y": self.predictor.predict(batch["smiles"], processes=1)}

    rows = ray.data.read_parquet(str(table), override_num_blocks=4)
    pool = ray.data.ActorPoolStrategy(size=2)  # with half a core each, so that one is left to read the table
    done = rows.map_batches(Predict, fn_constructor_args=(model,), batch_size=500, compute=pool, num_cpus=0.5)
    found = done.to_pandas().sort_values("number")
    np.testing.assert_allclose(found["y"], model.predict(ROWS, processes=1), rtol=1e-5)
