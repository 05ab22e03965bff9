"""Numbers from molecules."""

from __future__ import annotations

from typing import Any, Literal, Self, overload

import numpy as np
from numpy.typing import NDArray
from sklearn.base import RegressorMixin
from sklearn.metrics import r2_score

from lspe.estimators.base import Estimator
from lspe.estimators.inputs import number_targets


class LSPERegressor(RegressorMixin, Estimator):
    """One or several numbers of a molecule, by a network with learned positions.

    >>> model = LSPERegressor().fit(smiles, y)
    >>> model.predict(["CCO"])

    Parameters and attributes are those of :class:`lspe.estimators.base.Estimator`.
    """

    def fit(self, X: Any, y: Any, sample_weight: Any | None = None) -> Self:
        """Learn ``y``, [M] or [M, T], of the molecules ``X``. NaN in a table of targets is a label not known."""
        return self._fit(X, number_targets(y, "regression"), sample_weight)

    @overload
    def predict(self, X: Any, return_std: Literal[False] = False) -> NDArray[np.float64]: ...
    @overload
    def predict(self, X: Any, return_std: Literal[True]) -> tuple[NDArray[np.float64], NDArray[np.float64]]: ...
    def predict(self, X: Any, return_std: bool = False) -> Any:
        """Values in the units of ``y``, [M] or [M, T]; with ``return_std`` also their spread over the networks.

        >>> mean, sd = LSPERegressor(networks=3).fit(smiles, y).predict(["CCO"], return_std=True)
        """
        return self._predict(X, return_std=return_std)

    def score(self, X: Any, y: Any, sample_weight: Any | None = None) -> float:
        """R², over several targets their mean; labels that are not known do not count."""
        values = np.asarray(y, dtype=np.float64).reshape(len(y), -1)
        predicted = self.predict(X).reshape(values.shape)
        weights = np.ones(len(values)) if sample_weight is None else np.asarray(sample_weight)
        known = ~np.isnan(values)
        return float(
            np.mean(
                [
                    r2_score(values[one, t], predicted[one, t], sample_weight=weights[one])
                    for t, one in enumerate(known.T)
                ]
            )
        )
