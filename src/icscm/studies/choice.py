"""Which `p`: chosen by cross-validation."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from icscm._types import Array
from icscm.estimators.base import CoverClassifier
from icscm.exceptions import IcscmError, IcscmWarning
from icscm.sources.memory import open_memory
from icscm.tables.columns import take_rows

# As in the paper.
N_FOLDS = 5


@dataclass(frozen=True)
class PChoice:
    """What cross-validation found; see `choose_p`.

    Attributes
    ----------
    p_values, errors : tuple of float
        Each `p` that was tried, and its share of wrong predictions on rows held out.
    best : float
        The `p` of smallest error.
    """

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
    thresholds of each fold are found without it.

    Parameters
    ----------
    learner : SCMClassifier or ICSCMClassifier
        Its other parameters are kept; it is not changed.
    X, y, environments : as for `fit`
        The samples; labels and environments as arrays, environments may be None.
    p_values : sequence of float
        The `p` to try.
    n_folds : int, default=5
        As in the paper.
    seed : int, default=0
        Of the folds.
    on_fold : callable, optional
        Called after each fold.

    Returns
    -------
    PChoice
        The error of each `p`, and the best.

    Raises
    ------
    IcscmError
        Where a class has fewer rows than there are folds.
    """
    folds = _make_folds(y, environments, n_folds, seed)
    wrong = np.zeros(len(p_values), dtype=np.int64)
    for fold in range(n_folds):
        rows, held_out = np.flatnonzero(folds != fold), np.flatnonzero(folds == fold)
        seen = take_rows(X, rows), y[rows], None if environments is None else environments[rows]
        unseen = take_rows(X, held_out)
        # that a fold has few samples or gives no rule is what its error tells
        with warnings.catch_warnings(action="ignore", category=IcscmWarning):
            samples = open_memory(*seen, preparation=learner.prepare())
            for i, p in enumerate(p_values):
                again = replace(samples, source=samples.source.start_again())
                fitted = clone(learner).set_params(p=p).fit_counts(again)
                wrong[i] += (fitted.predict(unseen) != y[held_out]).sum()
        if on_fold is not None:
            on_fold()
    best = min(range(len(p_values)), key=lambda i: (wrong[i], abs(np.log(p_values[i]))))
    return PChoice(tuple(p_values), tuple((wrong / len(y)).tolist()), p_values[best])


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


def _list_cells(y: Array, environments: Array | None) -> list[NDArray[np.intp]]:
    """The rows of each label in each environment."""
    import pandas

    label = pandas.factorize(y, sort=True)[0]
    environment = label * 0 if environments is None else pandas.factorize(environments)[0]
    rows = pandas.Series(label).groupby([label, environment]).indices
    return [rows[cell] for cell in sorted(rows)]
