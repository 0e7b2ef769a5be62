"""The mean of a score over environments, with its interval, and that of a new environment.

Environments differ in how well a model predicts there, by more than the error of each score
explains. So scores are pooled by random effects (`icscm.stats.random_effects` has the estimator).
In environment e the score is theta_e, drawn from a normal distribution of mean mu and standard
deviation tau, and it is estimated with the standard error s_e. The weights are
u_e = 1 / (s_e^2 + tau^2), and of k environments the 95% intervals are

    mu:                   mean +- t(k - 1) sqrt(q / sum u_e)            (Hartung and Knapp 2001)
    a new environment:    mean +- t(k - 2) sqrt(tau^2 + 1 / sum u_e)    (Higgins and others 2009)

with q = max(1, sum u_e (theta_e - mean)^2 / (k - 1)), and t(d) the 97.5% quantile of Student's t
with d degrees of freedom.

What is pooled is an *effect*: the score itself or, of an AUC, its log odds, which are nearly normal
and have no bounds. Means and intervals are transformed back.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from icscm._lazy import special
from icscm.stats.random_effects import pool_effects
from icscm.validation.scores import Score, Z

# A smaller share of the largest standard error would give an environment nearly all of the weight.
_MIN_ERROR_SHARE: Final = 0.1
# Keeps the weights finite where all standard errors are 0.
_MIN_ERROR: Final = 1e-6
# With two, Student's t has a single degree of freedom: intervals would be extremely wide.
_MIN_ENVIRONMENTS_OF_INTERVALS: Final = 3


@dataclass(frozen=True)
class PooledScore(Score):
    """The random-effects mean of a score over environments, with its 95% interval.

    Attributes
    ----------
    value, low, high : float
        The mean and its interval (Hartung and Knapp); of an AUC computed on the scale of log odds.
    new_low, new_high : float
        95% prediction interval for a new environment; NaN with fewer than three.
    tau, n_environments : float, int
        Standard deviation between environments (of an AUC, of its log odds), and how many of
        them have the score.
    """

    new_low: float
    new_high: float
    tau: float
    n_environments: int


@dataclass(frozen=True)
class _Effect:
    """A score on the scale on which it is pooled, with its standard error."""

    value: float
    standard_error: float


@dataclass(frozen=True)
class _Interval:
    """The ends of an interval of scores; NaN where there is none."""

    low: float = np.nan
    high: float = np.nan


@dataclass(frozen=True)
class _Scale:
    """The scale on which a score is pooled."""

    to_effect: Callable[[float], float]
    to_score: Callable[[float], float]

    def make_interval(self, effects: tuple[float, float] | None) -> _Interval:
        """Return an interval of effects as one of scores."""
        if effects is None:
            return _Interval()
        low, high = effects
        return _Interval(low=float(self.to_score(low)), high=float(self.to_score(high)))


_LOG_ODDS = _Scale(to_effect=special.logit, to_score=special.expit)
_SCORE_ITSELF = _Scale(to_effect=float, to_score=float)


def pool_score(name: str, scores: Sequence[Score | None]) -> PooledScore | None:
    """Return the random-effects mean of a score, over the environments in which it is defined.

    With two environments there is a mean, but no interval: its ends are NaN. None if no environment
    has a score with an interval, since scores without standard errors cannot be weighted.
    """
    scale = _LOG_ODDS if name == "auc" else _SCORE_ITSELF
    effects: list[_Effect] = []
    for score in scores:
        effect = None if score is None else _find_effect(score, scale)
        if effect is not None:
            effects.append(effect)

    values = np.array([effect.value for effect in effects])
    standard_errors = np.array([effect.standard_error for effect in effects])
    largest_error = standard_errors.max(initial=0.0)
    smallest_error = max(_MIN_ERROR_SHARE * largest_error, _MIN_ERROR)
    pooled = pool_effects(values, np.maximum(standard_errors, smallest_error))
    if pooled is None:
        return None

    interval = _Interval()
    new_interval = _Interval()
    if len(effects) >= _MIN_ENVIRONMENTS_OF_INTERVALS:
        interval = scale.make_interval(pooled.confidence)
        new_interval = scale.make_interval(pooled.interval)
    return PooledScore(
        value=float(scale.to_score(pooled.mean)),
        low=interval.low,
        high=interval.high,
        new_low=new_interval.low,
        new_high=new_interval.high,
        tau=pooled.tau,
        n_environments=len(effects),
    )


def _find_effect(score: Score, scale: _Scale) -> _Effect | None:
    """Find the effect that a score stands for, and its standard error; None without an interval.

    A 95% interval that reaches h to each side has the standard error  h / 1.96.  Of two sides of
    different length the longer one counts, so that no score is taken for too precise; a side
    that has no end, or that ends at a score without an effect, does not count.
    """
    value = score.value
    if scale is _LOG_ODDS and value in (0, 1):
        # these have no log odds, and the middle of the interval is the nearest score that has
        value = (score.low + score.high) / 2

    effect = scale.to_effect(value)
    reaches = [abs(scale.to_effect(end) - effect) for end in (score.low, score.high)]
    finite_reaches = [reach for reach in reaches if np.isfinite(reach)]
    if not finite_reaches:
        return None
    return _Effect(value=effect, standard_error=max(finite_reaches) / Z)
