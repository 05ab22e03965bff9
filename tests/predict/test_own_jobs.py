"""A predictor in other people's processes: pickled, in a map over data frames."""

import pickle
import shutil
import sys
from collections.abc import Iterator

import numpy as np
import pandas as pd
import pytest

from lspe.predict import Predictor
from tests.members import SMILES, member

MOLECULES = [*SMILES, "C1CC"]


@pytest.fixture(scope="module")
def model() -> Predictor:
    return Predictor([member(), member(seed=1)])


def test_a_pickled_predictor_gives_the_same_numbers(model: Predictor) -> None:
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(again.predict(MOLECULES), model.predict(MOLECULES))
    assert again.reasons == model.reasons != {}


@pytest.mark.filterwarnings("default")  # Spark's own warnings are no errors of ours
@pytest.mark.skipif(shutil.which("java") is None, reason="Spark needs Java")
def test_in_spark(model: Predictor, monkeypatch: pytest.MonkeyPatch) -> None:
    sql = pytest.importorskip("pyspark.sql", reason="Spark is large, and no extra of ours has it: make test-ray")
    monkeypatch.setenv("PYSPARK_PYTHON", sys.executable)
    spark = sql.SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false").getOrCreate()

    def predicted(frames: Iterator[pd.DataFrame]) -> Iterator[pd.DataFrame]:
        for frame in frames:
            yield frame.assign(y=model.predict(frame["smiles"], processes=1))

    try:
        rows = spark.createDataFrame([(smiles,) for smiles in MOLECULES], "smiles string").repartition(2)
        found = rows.mapInPandas(predicted, "smiles string, y double").toPandas().set_index("smiles")["y"]
    finally:
        spark.stop()
    np.testing.assert_allclose(found[MOLECULES], model.predict(MOLECULES), rtol=1e-5)
