"""The mean of a score over environments, with its interval, and that of a new environment.

Scores of few environments differ by more than their intervals explain, so they are pooled by random
effects (`icscm.stats.random_effects`): the value theta_e in environment e is drawn from a normal
distribution around a mean, with the standard deviation tau between environments, and its estimate
has the standard error s_e. Environments are weighted by 1 / (s_e^2 + tau^2).
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from icscm._lazy import special
from icscm.stats.random_effects import pool_effects
from icscm.validation.scores import Score, Z

# Standard errors below this share of the largest would give an environment all of the weight.
_MIN_ERROR_SHARE = 0.1
# Standard errors are at least this, also where all of them are 0.
_MIN_ERROR = 1e-6
# With fewer environments the intervals would be extremely wide.
_MIN_ENVIRONMENTS_OF_INTERVALS = 3


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
class _PoolingScale:
    """The scale on which a score is pooled: there it is nearly normal, and has no bounds."""

    to_effect: Callable[[float], float]
    to_score: Callable[[float], float]


def pool_score(name: str, scores: Sequence[Score | None]) -> PooledScore | None:
    """Pool a score by random effects, over the environments in which it is defined.

    An AUC is pooled on the scale of log odds. With two environments there is a mean, but intervals
    would be extremely wide, so they are NaN. None if no environment has a score with an interval.
    """
    is_auc = name == "auc"
    scale = _PoolingScale(to_effect=float, to_score=float)
    if is_auc:
        scale = _PoolingScale(to_effect=special.logit, to_score=special.expit)

    effects = np.full(len(scores), np.nan)
    standard_errors = np.full(len(scores), np.nan)
    for environment, score in enumerate(scores):
        if score is None:
            continue
        centre = score.value
        if is_auc and centre in (0, 1):  # which have no log odds
            centre = (score.low + score.high) / 2
        effects[environment] = scale.to_effect(centre)
        standard_errors[environment] = _find_standard_error(score, centre, scale)

    n_environments = int(np.isfinite(effects + standard_errors).sum())
    smallest_error = 0.0
    if n_environments:
        smallest_error = max(_MIN_ERROR_SHARE * np.nanmax(standard_errors), _MIN_ERROR)
    pooled = pool_effects(effects, np.maximum(standard_errors, smallest_error))
    if pooled is None:
        return None

    confidence = prediction = (np.nan, np.nan)
    if n_environments >= _MIN_ENVIRONMENTS_OF_INTERVALS:
        confidence = pooled.confidence or confidence
        prediction = pooled.interval or prediction
    return PooledScore(
        value=float(scale.to_score(pooled.mean)),
        low=float(scale.to_score(confidence[0])),
        high=float(scale.to_score(confidence[1])),
        new_low=float(scale.to_score(prediction[0])),
        new_high=float(scale.to_score(prediction[1])),
        tau=pooled.tau,
        n_environments=n_environments,
    )


def _find_standard_error(score: Score, centre: float, scale: _PoolingScale) -> float:
    """Return the standard error that the longer finite side of an interval stands for.

    With the half width h of a 95% interval it is  h / 1.96.  NaN if neither end is finite.
    """
    half_widths = [
        abs(scale.to_effect(end) - scale.to_effect(centre)) for end in (score.low, score.high)
    ]
    finite = [half_width for half_width in half_widths if np.isfinite(half_width)]
    return max(finite, default=np.nan) / Z
