"""A predictor in other people's processes: pickled, in a map over data frames."""

import pickle
from collections.abc import Iterator
from pathlib import Path

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


def test_in_spark(model: Predictor, tmp_path: Path) -> None:
    sql = pytest.importorskip("pyspark.sql", reason="pyspark is not installed")
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
