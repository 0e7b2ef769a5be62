"""Anchor boosting (Londschien et al. 2025), with the environments as anchors, for numbers.

It uses the package `anchorboosting` (`pip install anchorboosting`), which boosts LightGBM's trees
by the loss

    1/2 mean((1 - P) residuals)^2 + gamma/2 mean(P residuals)^2

with P the mean over the rows of an environment: gamma = 1 is least squares, and a larger gamma asks
for residuals whose mean is alike in all environments. The number of trees and gamma are chosen by
leaving out each training environment in turn, by mean squared error. The depth and the least gain
are those that the package's documentation recommends.
"""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from itertools import product
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import NDArray
from pandas.api.types import is_numeric_dtype

if TYPE_CHECKING:
    import pandas

Floats = NDArray[np.float64]

GAMMAS = (1.0, 2.0, 5.0, 10.0)
NUMBERS_OF_TREES = (30, 100)
MAX_DEPTH = 3
MIN_GAIN = 0.1
# Levels of a category beyond the most frequent are read as missing.
MAX_LEVELS = 250


def is_installed() -> bool:
    """Whether the package is here."""
    return find_spec("anchorboosting") is not None


@dataclass(frozen=True, eq=False)
class Codes:
    """Columns as LightGBM reads them: numbers, and codes of the levels of the training rows."""

    levels: dict[str, list[Any]]
    columns: list[str]

    @classmethod
    def learn(cls, X: pandas.DataFrame) -> Self:
        """Take the levels of all columns that are not numbers, the most frequent first."""
        levels = {
            name: X[name].astype(object).value_counts().index[:MAX_LEVELS].tolist()
            for name in X
            if not is_numeric_dtype(X[name].dtype)
        }
        return cls(levels=levels, columns=list(X))

    @property
    def categorical(self) -> list[int]:
        """Positions of the columns with levels."""
        return [position for position, name in enumerate(self.columns) if name in self.levels]

    def encode(self, X: pandas.DataFrame) -> Floats:
        """Return numbers; levels that were not learned, and missing values, are NaN."""
        encoded = np.full(X.shape, np.nan)
        for position, name in enumerate(self.columns):
            if name in self.levels:
                code = {level: number for number, level in enumerate(self.levels[name])}
                values = X[name].astype(object).map(code)
            else:
                values = X[name]
            encoded[:, position] = values.to_numpy(dtype=float, na_value=np.nan)
        return encoded


class AnchorBoosting:
    """A regressor; `gamma_` and `n_trees_` are what it has chosen."""

    def fit(self, X: pandas.DataFrame, y: Floats, environments: NDArray[Any]) -> Self:
        """Choose gamma and the number of trees, and boost on all rows."""
        self._codes = Codes.learn(X)
        self._centre = float(y.mean())
        self._scale = float(y.std()) or 1.0
        design = self._codes.encode(X)
        outcome = (y - self._centre) / self._scale
        anchors = np.unique(environments, return_inverse=True)[1].astype(np.int64)
        self.gamma_, self.n_trees_ = self._choose(design, outcome, anchors)
        self._model = self._boost(design, outcome, anchors, self.gamma_)
        return self

    def _choose(self, design: Floats, y: Floats, anchors: NDArray[np.int64]) -> tuple[float, int]:
        """Leave out each environment in turn; the least mean over environments is best."""
        losses = dict.fromkeys(product(GAMMAS, NUMBERS_OF_TREES), 0.0)
        for anchor in range(int(anchors.max()) + 1):
            is_out = anchors == anchor
            remaining = np.unique(anchors[~is_out], return_inverse=True)[1].astype(np.int64)
            for gamma in GAMMAS:
                model = self._boost(design[~is_out], y[~is_out], remaining, gamma)
                for n_trees in NUMBERS_OF_TREES:
                    predicted = model.predict(design[is_out], num_iteration=n_trees)
                    losses[gamma, n_trees] += float(((y[is_out] - predicted) ** 2).mean())
        return min(losses, key=lambda setting: losses[setting])

    def _boost(self, design: Floats, y: Floats, anchors: NDArray[np.int64], gamma: float) -> Any:
        booster = import_module("anchorboosting").AnchorBooster(
            gamma=gamma,
            num_boost_round=max(NUMBERS_OF_TREES),
            max_depth=MAX_DEPTH,
            min_gain_to_split=MIN_GAIN,
            num_threads=1,
            verbose=-1,
        )
        categorical = self._codes.categorical
        return booster.fit(design, y, Z=anchors, categorical_feature=categorical)

    def predict(self, X: pandas.DataFrame) -> Floats:
        """Predict the number."""
        predicted = self._model.predict(self._codes.encode(X), num_iteration=self.n_trees_)
        return np.asarray(predicted * self._scale + self._centre)
