"""scikit-learn estimators over SMILES or PyG graphs.

>>> from lspe import LSPERegressor
>>> cross_val_score(LSPERegressor(), smiles, y, scoring="neg_root_mean_squared_error")
"""

from lspe.estimators.classifier import LSPEClassifier
from lspe.estimators.regressor import LSPERegressor

__all__ = ["LSPEClassifier", "LSPERegressor"]
