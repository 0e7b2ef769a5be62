"""Forward selection by internal-external cross-validation, of numbers and of several classes.

`paper.selection.select_forward` has that of two classes. Here regressions are by least squares, of
the number or of an indicator of each class, so that all of them follow from sums of products: with
G = Z'Z and M = Z'Y summed over the rows of the training environments,

    coefficients = (G + ridge)^-1 M

for the rows and columns of G and M that belong to the predictors chosen.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from paper.selection import (
    FORWARD_ROWS,
    HETEROGENEITY,
    LEAST_GAIN,
    MAX_STEPS,
    compute_auc,
    encode_columns,
)

if TYPE_CHECKING:
    import pandas

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

RIDGE = 1.0
# An environment with fewer rows is not left out.
MIN_ROWS_OUT = 10
# Scores of a model without columns: R^2, and AUC.
SCORE_OF_NUMBERS = 0.0
SCORE_OF_CLASSES = 0.5


@dataclass(frozen=True, eq=False)
class LeftOut:
    """An environment left out: its rows, and the sums of products over all other rows.

    `design` and `outcome` are its own rows of Z and Y; `gram` is Z'Z, `moments` Z'Y of the others.
    """

    design: Floats
    outcome: Floats
    gram: Floats
    moments: Floats


def select_forward(
    X: pandas.DataFrame,
    y: NDArray[Any],
    environments: NDArray[Any],
    *,
    is_number: bool,
    seed: int = 0,
) -> list[str]:
    """Add the column with which a regression does best in environments left out in turn.

    The performance is the mean over environments less its standard deviation, of R^2 or of the mean
    AUC of a class against the others. It ends when no column adds 0.001. After the idea of de Jong
    et al. (2021), doi 10.1002/sim.8981; at most 4,000 rows and 10 columns.
    """
    rows = np.random.default_rng(seed).permutation(len(y))[:FORWARD_ROWS]
    blocks = encode_columns(X.iloc[rows])
    Z = np.hstack([np.ones((len(rows), 1)), *blocks.values()])
    Y = as_outputs(y[rows], is_number=is_number)
    parts = leave_out(Z, Y, environments[rows])

    positions: dict[str, list[int]] = {}
    n_before = 1  # the intercept
    for name, block in blocks.items():
        positions[name] = list(range(n_before, n_before + block.shape[1]))
        n_before += block.shape[1]

    chosen: list[str] = []
    used = [0]
    score = SCORE_OF_NUMBERS if is_number else SCORE_OF_CLASSES
    while parts and len(chosen) < MAX_STEPS:
        scores = {
            name: validate(parts, [*used, *positions[name]], is_number=is_number)
            for name in blocks
            if name not in chosen
        }
        best = max(scores, key=lambda name: scores[name], default=None)
        if best is None or scores[best] < score + LEAST_GAIN:
            break
        score = scores[best]
        chosen.append(best)
        used += positions[best]
    return [name for name in X if name in chosen]


def as_outputs(y: NDArray[Any], *, is_number: bool) -> Floats:
    """Return the number as one column, or an indicator of each class."""
    if is_number:
        return np.asarray(y, dtype=np.float64)[:, np.newaxis]
    return np.asarray(y[:, np.newaxis] == np.unique(y), dtype=np.float64)


def leave_out(Z: Floats, Y: Floats, environments: NDArray[Any]) -> list[LeftOut]:
    """Prepare each environment to be left out."""
    gram = Z.T @ Z
    moments = Z.T @ Y
    parts = []
    for name in np.unique(environments):
        is_out = environments == name
        if is_out.sum() >= MIN_ROWS_OUT:
            own_Z, own_Y = Z[is_out], Y[is_out]
            parts.append(
                LeftOut(
                    design=own_Z,
                    outcome=own_Y,
                    gram=gram - own_Z.T @ own_Z,
                    moments=moments - own_Z.T @ own_Y,
                )
            )
    return parts


def validate(parts: list[LeftOut], used: list[int], *, is_number: bool) -> float:
    """The mean score in environments left out, less its standard deviation."""
    penalty = RIDGE * np.eye(len(used))
    penalty[0, 0] = 1e-6  # the intercept
    measure = measure_r2 if is_number else measure_auc
    scores = []
    for part in parts:
        gram = part.gram[np.ix_(used, used)]
        beta = np.linalg.solve(gram + penalty, part.moments[used])
        score = measure(part.outcome, part.design[:, used] @ beta)
        if np.isfinite(score):
            scores.append(score)
    if not scores:
        return -np.inf
    spread = float(np.std(scores, ddof=1)) if len(scores) > 1 else 0.0
    return float(np.mean(scores)) - HETEROGENEITY * spread


def measure_r2(Y: Floats, predicted: Floats) -> float:
    """R^2 of the only output."""
    variance = float(Y[:, 0].var())
    if variance == 0.0:
        return np.nan
    return 1.0 - float(((Y[:, 0] - predicted[:, 0]) ** 2).mean()) / variance


def measure_auc(Y: Floats, predicted: Floats) -> float:
    """The mean AUC of the classes that are there."""
    aucs = [
        compute_auc(Y[:, k].astype(np.int64), predicted[:, k])
        for k in range(Y.shape[1])
        if 0.0 < Y[:, k].mean() < 1.0
    ]
    return float(np.mean(aucs)) if aucs else np.nan
