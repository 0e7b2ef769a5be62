"""Replication: the share of informative environments among those that could show an effect.

With n rows of an environment, of which p are positive, the hessian is h = n p (1 - p); h_1 and h_0
are its parts where a rule is true and where it is false. By environment

    w_e = h_1 h_0 / (h_1 + h_0)      the information of the cut on an effect
    w*_e = h_e pi (1 - pi)           the same if its share pi were that of all environments
    eff(w) = (sum w)^2 / sum w^2     the effective number of environments

and replication is (eff(w) - 1) / (eff(w*) - 1): about 1 where a rule is informative in all
environments, 0 where in a single one. One without cases has no hessian, and does not count against
the rule. pi (1 - pi) cancels: eff(w*) is that of the hessians. Where it is about 1, one environment
has nearly all information: replication is NaN, and nothing is rejected.
"""

from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from icscm._types import Array, BoolArray, CountArray, FloatArray
from icscm.stats.heterogeneity import TINY, fit_common_effects

# Below this, one environment has nearly all information and replication is NaN.
LEAST_EXPECTED: Final = 0.1
# Replications that differ by less are equal: the order of a sum must not decide anything.
_DECIMALS: Final = 6
# Replications that lie nearer to the least one are for the search itself to decide.
_SLACK: Final = 2e-6


def measure_replication(tables: CountArray, samples: CountArray) -> FloatArray:
    """Replication of cuts, given the leaf of each (n, label, K) and all samples (label, K).

    >>> samples = np.array([[80, 90, 70, 99], [20, 10, 30, 0]])  # the last has no cases
    >>> cause = [[8, 12, 7, 0], [10, 5, 15, 0]]
    >>> artefact = [[0, 0, 0, 0], [0, 0, 14, 0]]
    >>> measure_replication(np.array([cause, artefact]), samples).round(2).tolist()
    [0.93, 0.0]
    """
    sizes = (tables[:, 0] + tables[:, 1]).astype(np.float64)
    informs = sizes * (samples.sum(axis=0) - sizes) * compute_factors(samples)
    return _compare(count_effective(informs), _compute_hessians(samples)[np.newaxis])


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

    >>> hessians = np.array([[[31.0, 40.0, 40.0], [9.0, 0.0, 0.0]]])  # in one of three sites
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
    return ColumnReplication(
        replication=_compare(count_effective(information), h_by_environment),
        deviance=information.sum(axis=1),
    )


def find_replicated(tables: CountArray, samples: CountArray, least: float) -> BoolArray:
    """Which cuts are replicated, or have an undefined replication; see `measure_replication`."""
    return ~(measure_replication(tables, samples) < least)


def find_effective_bounds(samples: CountArray, least: float) -> tuple[float, float]:
    """Effective numbers below which a cut surely is not replicated, and from which on it is."""
    could = _count_expected(_compute_hessians(samples)[np.newaxis])[0]
    if least <= 0 or could < LEAST_EXPECTED:
        return 0.0, 0.0
    return 1.0 + (least - _SLACK) * float(could), 1.0 + (least + _SLACK) * float(could)


def find_lone_environment(samples: CountArray) -> int | None:
    """The environment that has nearly all information on the label, if there is one.

    >>> find_lone_environment(np.array([[80, 90, 99], [20, 0, 0]]))
    0
    """
    hessians = _compute_hessians(samples)
    is_lone = _count_expected(hessians[np.newaxis])[0] < LEAST_EXPECTED
    return int(hessians.argmax()) if is_lone and hessians.any() else None


def describe_lone(environment: Any) -> str:
    """The warning that this environment has nearly all information."""
    return (
        f"One environment ({environment}) has nearly all information on the label, so "
        "replication in other environments cannot be assessed; add cases from others, or define "
        "the environments by another column."
    )


def compute_factors(samples: CountArray) -> FloatArray:
    """By environment what n_1 n_0 is multiplied by to give w: p (1 - p) / n."""
    sizes = np.maximum(samples.sum(axis=0), 1)
    return np.asarray(_compute_hessians(samples) / sizes / sizes)


def count_effective(weights: Array) -> FloatArray:
    """Effective number of environments of weights (n, K), at least 1.

    >>> count_effective(np.array([[50.0, 50.0], [116.0, 6.0]])).round(2).tolist()
    [2.0, 1.1]
    """
    squares = (weights**2).sum(axis=1)
    effective: FloatArray = weights.sum(axis=1) ** 2 / np.maximum(squares, 1e-300)
    return np.maximum(effective, 1.0)


def _compute_hessians(samples: CountArray) -> FloatArray:
    return np.asarray(samples[0] * (samples[1] / np.maximum(samples.sum(axis=0), 1)))


def _count_expected(hessians: FloatArray) -> FloatArray:
    return (count_effective(hessians) - 1.0).round(_DECIMALS)


def _compare(effective: FloatArray, hessians: FloatArray) -> FloatArray:
    could = _count_expected(hessians)
    ratio = (effective - 1.0) / np.maximum(could, LEAST_EXPECTED)
    return np.where(could < LEAST_EXPECTED, np.nan, ratio).round(_DECIMALS)
