"""The worth of a column in each environment, pooled: its mean, and what a new environment keeps.

The *worth* s_e of what a model says of a column in environment e is 1 where it is as true as the
model has learned it, 0 where it says nothing, and below 0 where it is reversed. How it is estimated
for any model is in `icscm.screening.worth`, and from counts in `icscm.search.worth`.

With random effects (`icscm.stats.random_effects`) a *new* environment has a worth above

    low = mean - min(t, 2) sqrt(tau^2 + error^2)

with probability .95, where t is the 95 % quantile of Student's t with one degree of freedom less
than there are environments. It is capped since with two or three degrees of freedom (2.9, 2.4)
every column would be doubtful. With three, four and five environments the probability is then .91,
.93 and .94.
"""

from dataclasses import dataclass
from typing import Final

import numpy as np

from icscm._lazy import special
from icscm._types import BoolArray, FloatArray
from icscm.stats.random_effects import estimate_tau_squared
from icscm.stats.splits import find_quantile

# A worth with a larger error is not known.
MAX_ERROR: Final = 50.0
# Of the one-sided interval of the worth in a new environment.
NEW_QUANTILE: Final = 0.95
MAX_T: Final = 2.0


@dataclass(frozen=True, eq=False)
class Worth:
    """What a column is worth by environment; NaN or an infinite error where that is not known.

    `information` is that of each worth, before errors are widened for rows that are alike.
    """

    values: FloatArray
    errors: FloatArray
    information: FloatArray

    @property
    def is_known(self) -> BoolArray:
        """Whether the worth is known, by environment."""
        return np.isfinite(self.values) & (self.errors < MAX_ERROR)


@dataclass(frozen=True)
class PooledWorth:
    """The worth of a column over all environments, and in a new one.

    Attributes
    ----------
    mean, error, tau : float
        The random-effects mean, its standard error, and the standard deviation of the true worth
        between environments.
    low : float
        What a new environment exceeds with probability .95.
    excess : float
        Heterogeneity beyond chance in units of deviance: max(Q - dof - 3 sqrt(2 dof), 0).
    p_value : float
        Of Cochran's Q: the chance of such differences if the worth is the same everywhere.
    dof : int
        Environments with a known worth, less one.
    ratio : float
        The mean if the worth is the same everywhere, in its standard errors.
    detectable_tau : float
        The standard deviation between environments from which on differences are significant at
        5 %, as a rule.
    """

    mean: float = np.nan
    error: float = np.inf
    tau: float = 0.0
    low: float = -np.inf
    excess: float = 0.0
    p_value: float = 1.0
    dof: int = 0
    ratio: float = 0.0
    detectable_tau: float = np.inf

    @property
    def low_share(self) -> float:
        """The part of its mean worth that a new environment exceeds with probability .95.

        A mean above 1 says that the model has learned too little of the column; a learner that
        learns all of it would use it by so much more. Below 1 it would not use it by less.
        """
        return self.low / max(1.0, self.mean)


def pool_worth(worth: Worth) -> PooledWorth:
    """Pool the worth of a column over environments (DerSimonian and Laird 1986)."""
    is_known = worth.is_known
    s = worth.values[is_known]
    v = worth.errors[is_known] ** 2
    dof = len(s) - 1
    if dof < 1:
        return PooledWorth()

    w = 1.0 / v
    Q = float((w * (s - np.average(s, weights=w)) ** 2).sum())
    tau_squared = float(estimate_tau_squared(Q - dof, dof, w))
    u = 1.0 / (v + tau_squared)
    mean = float(np.average(s, weights=u))
    error_squared = float(1.0 / u.sum())
    t = choose_t(dof)
    critical_value = find_quantile(0.05, dof)
    return PooledWorth(
        mean=mean,
        error=error_squared**0.5,
        tau=tau_squared**0.5,
        low=mean - t * (tau_squared + error_squared) ** 0.5,
        excess=max(Q - dof - 3.0 * (2.0 * dof) ** 0.5, 0.0),
        p_value=float(special.chdtrc(dof, Q)),
        dof=dof,
        ratio=float((w * s).sum() / w.sum() ** 0.5),
        detectable_tau=float(estimate_tau_squared(critical_value - dof, dof, w)) ** 0.5,
    )


def choose_t(dof: int) -> float:
    """Return the quantile of Student's t for a new environment, at most `MAX_T`."""
    return min(float(special.stdtrit(dof, NEW_QUANTILE)), MAX_T)


def compute_coverage(dof: int) -> float:
    """Return the probability that a new environment exceeds `PooledWorth.low`.

    >>> [round(compute_coverage(dof), 2) for dof in (2, 3, 20)]
    [0.91, 0.93, 0.95]
    """
    return float(special.stdtr(dof, choose_t(dof)))
