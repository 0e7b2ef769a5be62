"""Which `p`: chosen by cross-validation."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from icscm._types import Array
from icscm.estimators.base import CoverClassifier
from icscm.exceptions import IcscmError, IcscmWarning
from icscm.sources.memory import open_memory

# As in the paper.
N_FOLDS = 5


@dataclass(frozen=True)
class PChoice:
    """Errors of cross-validation for each `p` that was tried, and the best."""

    p_values: tuple[float, ...]
    errors: tuple[float, ...]
    best: float


def choose_p(
    learner: CoverClassifier,
    X: Any,
    y: Any,
    environments: Any,
    p_values: Sequence[float],
    *,
    n_folds: int = N_FOLDS,
    seed: int = 0,
    on_fold: Callable[[], None] | None = None,
) -> PChoice:
    """Find the `p` of smallest error by cross-validation; of equally good ones that nearest 1.

    Folds hold equal shares of each label in each environment, as far as the numbers allow. The
    thresholds of each fold are found without it. `on_fold`, if given, is called after each.
    """
    folds = _make_folds(y, environments, n_folds, seed)
    wrong = np.zeros(len(p_values), dtype=np.int64)
    for fold in range(n_folds):
        rows, held_out = np.flatnonzero(folds != fold), np.flatnonzero(folds == fold)
        seen = _take(X, rows), y[rows], None if environments is None else environments[rows]
        unseen = _take(X, held_out)
        # that a fold has few samples or gives no rule is what its error tells
        with warnings.catch_warnings(action="ignore", category=IcscmWarning):
            for i, each in enumerate(_learn_each(learner, *seen, p_values)):
                wrong[i] += (each.predict(unseen) != y[held_out]).sum()
        if on_fold is not None:
            on_fold()
    best = min(range(len(p_values)), key=lambda i: (wrong[i], abs(np.log(p_values[i]))))
    return PChoice(tuple(p_values), tuple((wrong / len(y)).tolist()), p_values[best])


def _learn_each(
    learner: CoverClassifier,
    X: Any,
    y: Array,
    environments: Array | None,
    p_values: Sequence[float],
) -> Iterator[CoverClassifier]:
    """The learner fitted with each p, on a table that is binned once."""
    samples = open_memory(X, y, environments, preparation=learner.prepare())
    for p in p_values:
        again = replace(samples, source=samples.source.start_again())
        yield clone(learner).set_params(p=p).fit_counts(again)


def _make_folds(y: Array, environments: Array | None, n_folds: int, seed: int) -> NDArray[np.intp]:
    """The fold of each row: the rows of a label in an environment are dealt out in turn."""
    smallest = min(int((y == label).sum()) for label in set(y.tolist()))
    if smallest < n_folds:
        raise IcscmError(
            f"cross-validation in {n_folds} folds needs {n_folds} rows of each class; one has "
            f"{smallest}; give a single p instead"
        )
    rng = np.random.default_rng(seed)
    order = np.concatenate([rng.permutation(rows) for rows in _list_cells(y, environments)])
    folds = np.empty(len(y), dtype=np.intp)
    folds[order] = np.arange(len(y)) % n_folds
    return folds


def _list_cells(y: Array, environments: Array | None) -> Iterator[NDArray[np.intp]]:
    """The rows of each label in each environment."""
    import pandas

    label = pandas.factorize(y, sort=True)[0]
    environment = 0 if environments is None else pandas.factorize(environments)[0]
    cell = label * (int(np.max(environment)) + 1) + environment
    for number in np.unique(cell):
        yield np.flatnonzero(cell == number)


def _take(X: Any, rows: NDArray[np.intp]) -> Any:
    return X.take(rows) if hasattr(X, "column_names") else X[rows]
