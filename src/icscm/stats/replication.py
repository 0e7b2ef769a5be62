"""Replication: the share of informative environments among those that could show an effect.

An effect that only one environment can show, since the rule is true of no row of the others, is not
replicated, and no test can tell whether it is the same elsewhere.

An environment e has n rows, positive at the rate p, and the hessian h_e = n p (1 - p), its
information on the outcome; h_1 and h_0 are the parts where a rule is true and where it is false:

    w_e    = h_1 h_0 / (h_1 + h_0)     the information on the effect of the rule
    w*_e   = h_e pi (1 - pi)           the same if its share pi were that of all environments
    eff(w) = (sum w)^2 / sum w^2       the effective number of environments (Kish 1965)

    replication = (eff(w) - 1) / (eff(w*) - 1)

It is about 1 where a rule is informative in all environments, and 0 where in a single one. An
environment without positives has no hessian, and does not count against the rule. pi (1 - pi)
cancels, so eff(w*) is that of the hessians. Where it is about 1, one environment has nearly all
information: replication is NaN, and nothing is rejected.
"""

from dataclasses import dataclass
from typing import Any, Final, NamedTuple

import numpy as np

from icscm._types import Array, BoolArray, CountArray, FloatArray
from icscm.stats.heterogeneity import TINY, fit_common_effects

# Below this, one environment has nearly all information and replication is NaN.
LEAST_EXPECTED: Final = 0.1
# Replications that differ by less are equal: the order of a sum must not decide anything.
_DECIMALS: Final = 6
# Replications that lie nearer to the required one are for the search itself to decide.
_SLACK: Final = 2e-6
# Above 0 where no environment has any weight.
_MIN_SQUARES: Final = 1e-300


def measure_replication(tables: CountArray, rows: CountArray) -> FloatArray:
    """Measure the replication of cuts, given their leaves and all rows (outcome, environment).

    `tables` (leaf, outcome, environment) has the rows n_0 on one side of each cut; n_1 are on the
    other. With the hessians h_1 = n_1 p (1 - p) and h_0 = n_0 p (1 - p) of the two sides,

        w_e = h_1 h_0 / (h_1 + h_0) = n_1 n_0 p (1 - p) / n

    >>> rows = np.array([[80, 90, 70, 99], [20, 10, 30, 0]])  # the last has no positives
    >>> cause = [[8, 12, 7, 0], [10, 5, 15, 0]]
    >>> artefact = [[0, 0, 0, 0], [0, 0, 14, 0]]
    >>> measure_replication(np.array([cause, artefact]), rows).round(2).tolist()
    [0.93, 0.0]
    """
    n_0 = (tables[:, 0] + tables[:, 1]).astype(np.float64)
    n_1 = rows.sum(axis=0) - n_0
    w = n_0 * n_1 * compute_factors(rows)
    hessians = _compute_hessians(rows)[np.newaxis]
    return _compute_replication(count_effective(w), hessians=hessians)


@dataclass(frozen=True, eq=False)
class ColumnReplication:
    """The replication of columns, and the deviance that each explains by itself."""

    replication: FloatArray
    deviance: FloatArray


def measure_columns(gradients: FloatArray, hessians: FloatArray) -> ColumnReplication:
    """Measure the replication of columns of any number of bins.

    From sums of g and h (column, bin, environment) without a model: g is the outcome less its
    environment's rate. With d the common effect of the row's bin,

        w_e = sum h (d - mean of d in e)^2 = sum h d^2 - (sum h d)^2 / sum h

    is the information of a column in environment e: for two bins that of the cut times the squared
    effect. Expected is w*_e = h_e times the variance of d over all rows. The deviance is what the
    common effects explain, the sum of w_e.

    >>> hessians = np.array([[[31.0, 40.0, 40.0], [9.0, 0.0, 0.0]]])  # in one of three
    >>> gradients = np.zeros((1, 2, 3))
    >>> gradients[0, :, 0] = -8.0, 8.0
    >>> measure_columns(gradients, hessians).replication.round(3).tolist()
    [0.0]
    """
    d = fit_common_effects(gradients, hessians, prior=1.0).of_bins
    h_by_environment = hessians.sum(axis=1)
    sum_hd = (hessians * d).sum(axis=1)
    sum_hdd = (hessians * d**2).sum(axis=1)
    information = sum_hdd - sum_hd**2 / np.maximum(h_by_environment, TINY)
    effective = count_effective(information)
    return ColumnReplication(
        replication=_compute_replication(effective, hessians=h_by_environment),
        deviance=information.sum(axis=1),
    )


def find_replicated(tables: CountArray, rows: CountArray, min_replication: float) -> BoolArray:
    """Find the cuts that are replicated, or whose replication is undefined.

    `tables` and `rows` are as in `measure_replication`.
    """
    is_unreplicated = measure_replication(tables, rows) < min_replication  # never for NaN
    return ~is_unreplicated


class EffectiveBounds(NamedTuple):
    """Effective numbers of environments that decide on a cut; between them rounding might.

    Below the first a cut surely is not replicated, from the second on it surely is.
    """

    unreplicated_below: float
    replicated_from: float


def find_effective_bounds(rows: CountArray, min_replication: float) -> EffectiveBounds:
    """Find the effective numbers of environments that decide whether a cut is replicated.

    Replication (eff(w) - 1) / (eff(w*) - 1) is the required one where

        eff(w) = 1 + min_replication (eff(w*) - 1)
    """
    hessians = _compute_hessians(rows)[np.newaxis]
    expected = float(_count_expected(hessians)[0])
    if min_replication <= 0 or expected < LEAST_EXPECTED:
        return EffectiveBounds(unreplicated_below=0.0, replicated_from=0.0)
    return EffectiveBounds(
        unreplicated_below=1.0 + (min_replication - _SLACK) * expected,
        replicated_from=1.0 + (min_replication + _SLACK) * expected,
    )


def find_lone_environment(rows: CountArray) -> int | None:
    """Find the environment that has nearly all information on the outcome, if there is one.

    >>> find_lone_environment(np.array([[80, 90, 99], [20, 0, 0]]))
    0
    """
    hessians = _compute_hessians(rows)
    if not hessians.any():
        return None
    is_lone = _count_expected(hessians[np.newaxis])[0] < LEAST_EXPECTED
    return int(hessians.argmax()) if is_lone else None


def describe_lone(environment: Any) -> str:
    """Return the text of the warning that this environment has nearly all information."""
    return (
        f"One environment ({environment}) has nearly all information on the label, so "
        "replication in other environments cannot be assessed; add cases from others, or define "
        "the environments by another column."
    )


def compute_factors(rows: CountArray) -> FloatArray:
    """Compute by environment the factor p (1 - p) / n of w = n_1 n_0 p (1 - p) / n."""
    n = np.maximum(rows.sum(axis=0), 1)
    return np.asarray(_compute_hessians(rows) / n / n)


def count_effective(w: Array) -> FloatArray:
    """Compute the effective number of environments of weights (cut, environment), at least 1.

        eff(w) = (sum w)^2 / sum w^2

    >>> count_effective(np.array([[50.0, 50.0], [116.0, 6.0]])).round(2).tolist()
    [2.0, 1.1]
    """
    squares = (w**2).sum(axis=1)
    effective: FloatArray = w.sum(axis=1) ** 2 / np.maximum(squares, _MIN_SQUARES)
    return np.maximum(effective, 1.0)


def _compute_hessians(rows: CountArray) -> FloatArray:
    """Compute the hessian of each environment,  n p (1 - p),  of rows (outcome, environment)."""
    negatives, positives = rows
    return np.asarray(negatives * (positives / np.maximum(rows.sum(axis=0), 1)))


def _count_expected(hessians: FloatArray) -> FloatArray:
    """Compute eff(w*) - 1: in how many environments besides one a cut could be informative."""
    return (count_effective(hessians) - 1.0).round(_DECIMALS)


def _compute_replication(effective: FloatArray, *, hessians: FloatArray) -> FloatArray:
    """Compute the replication of each cut from its eff(w), and hessians (cut, environment)."""
    expected = _count_expected(hessians)
    ratio = (effective - 1.0) / np.maximum(expected, LEAST_EXPECTED)
    return np.where(expected < LEAST_EXPECTED, np.nan, ratio).round(_DECIMALS)
