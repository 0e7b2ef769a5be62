"""The model under test, and what it leaves unexplained in each row.

The learner was *cross-fitted*: the score of each row comes from a learner that was fitted without
the row. There may be several learners, so a row may have several scores. A logistic regression
turns the scores of a row into a probability p:

    log odds of p = sum over learners (slope x score) + intercept of the row's environment

Each environment has its own intercept because its rate of the outcome is allowed to differ; only
the effects of columns must not.

What the model leaves unexplained in a row with outcome y (0 or 1) and weight w are two derivatives
of the row's log-likelihood by its log odds:

    gradient g = w (y - p)          the residual
    hessian  h = w p (1 - p)        minus the second derivative: the information in the row

If the log odds of some rows are raised by d, their log-likelihood rises by about
(sum g) d - (sum h) d^2 / 2. That is why sums of g and h are all that the tests need.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Final

import numpy as np

from icscm._lazy import special
from icscm._types import FloatArray, IntArray
from icscm.stats.logistic import fit_logistic_regression

# A probability of 0 or 1 would have an infinite log-likelihood, and so would such a rate.
MIN_PROBABILITY: Final = 1e-6
MIN_RATE: Final = 1e-9
# A little shrinkage of slopes towards 0: they are determined even if all scores are equal.
RIDGE: Final = 1e-9


@dataclass(frozen=True, eq=False)
class ScoreModel:
    """A logistic regression: a slope for each learner's scores, an intercept by environment."""

    slopes: FloatArray
    intercepts: FloatArray

    def predict(self, scores: FloatArray, environments: IntArray) -> FloatArray:
        """Return the probability of each row; `scores` are by row and learner."""
        log_odds = scores @ self.slopes + self.intercepts[environments]
        probabilities: FloatArray = special.expit(log_odds)
        return probabilities.clip(MIN_PROBABILITY, 1.0 - MIN_PROBABILITY)


def fit_score_model(
    scores: FloatArray, outcomes: IntArray, environments: IntArray, n_environments: int
) -> ScoreModel:
    """Regress outcomes on the scores of the learners, with no slope below 0.

    A negative slope would use a learner against its own predictions, which happens if two learners
    agree closely. The learner with the most negative slope is left out (its slope is 0) until none
    is negative.
    """
    n_learners = scores.shape[1]
    learners = list(range(n_learners))
    while True:
        fit = fit_logistic_regression(
            scores[:, learners],
            outcomes,
            environments,
            n_environments=n_environments,
            initial_slope=1.0 / len(learners),
            ridge=RIDGE,
        )
        assert fit is not None  # with a ridge, slopes are always determined
        if len(learners) == 1 or fit.slopes.min() >= 0:
            break
        learners.pop(int(fit.slopes.argmin()))

    slopes = np.zeros(n_learners)
    slopes[learners] = fit.slopes
    return ScoreModel(slopes=slopes, intercepts=fit.intercepts)


@dataclass(frozen=True, eq=False)
class Residuals:
    """What a model leaves unexplained: a gradient and a hessian for each row.

    `environments` are the numbers of the rows' environments, from 0 to `n_environments` - 1.
    """

    outcomes: IntArray
    probabilities: FloatArray
    weights: FloatArray
    environments: IntArray
    n_environments: int

    @cached_property
    def gradients(self) -> FloatArray:
        """g = w (y - p)."""
        return (self.outcomes - self.probabilities) * self.weights

    @cached_property
    def hessians(self) -> FloatArray:
        """h = w p (1 - p)."""
        return self.probabilities * (1.0 - self.probabilities) * self.weights

    def take(self, rows: IntArray) -> "Residuals":
        """Return the residuals of some rows."""
        return Residuals(
            outcomes=self.outcomes[rows],
            probabilities=self.probabilities[rows],
            weights=self.weights[rows],
            environments=self.environments[rows],
            n_environments=self.n_environments,
        )

    def iterate_environments(self) -> Iterator[tuple[int, IntArray]]:
        """Yield the number of each environment that has rows, with the positions of its rows."""
        for environment in range(self.n_environments):
            rows = np.flatnonzero(self.environments == environment)
            if len(rows):
                yield environment, rows

    def compute_explained_deviance(self) -> float:
        """Return the deviance that the probabilities explain within environments.

        2 sum w log(P(y) / R(y)),  with P(y) the probability of the row's outcome by the model, and
        R(y) its rate in the row's environment: the best guess without any column.
        """
        rates = compute_rates(self.outcomes, self.environments, self.n_environments)
        row_rates = rates[self.environments].clip(MIN_RATE, 1.0 - MIN_RATE)

        log_likelihood_gains = np.where(
            self.outcomes == 1,
            np.log(self.probabilities / row_rates),
            np.log((1.0 - self.probabilities) / (1.0 - row_rates)),
        )
        return float(2.0 * (self.weights * log_likelihood_gains).sum())


def compute_rates(outcomes: IntArray, environments: IntArray, n_environments: int) -> FloatArray:
    """Return the share of rows with outcome 1 in each environment; 0 where there are no rows."""
    n_positives = np.bincount(environments, outcomes, n_environments)
    n_rows = np.bincount(environments, minlength=n_environments)
    return np.asarray(n_positives / np.maximum(n_rows, 1))
