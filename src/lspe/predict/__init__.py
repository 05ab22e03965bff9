"""From molecules to predictions: a run, or several as an ensemble, applied to SMILES, graphs and tables of any length.

>>> model = load("runs/logS")
>>> model.predict(["CCO", "c1ccccc1"])
>>> model.predict_table("molecules.csv", "predicted.csv")
"""

from lspe.predict.loading import load
from lspe.predict.predictions import Embeddings
from lspe.predict.predictor import Predictor

__all__ = ["Embeddings", "Predictor", "load"]
