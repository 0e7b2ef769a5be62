"""Outcomes of any kind, on one scale: two classes, several classes, or numbers.

A model gives each row a *score*: the log odds of the second class, a logarithm of the probability
of each of several classes (up to a constant), or an expected number. What the screen needs to know
of an outcome is what its log-likelihood says of a score:

    gradient  w (y - mean)         how the log-likelihood changes with the score
    hessian   w v                  minus its second derivative: the information in the row
    loss      - log-likelihood     of the row, up to a constant

with the weight w of the row, the outcome y, and its mean and variance v under the model. A number
has another variance in each environment, which `measure_variances` estimates.

    outcome             score            mean                  v
    TwoClasses          log odds         1 / (1 + e^-score)    mean (1 - mean)
    SeveralClasses      one for each     softmax               mean (1 - mean)
    Numbers             the number       score                 1

Scores are arrays by (row, output), with one output unless there are several classes.
"""

from dataclasses import dataclass, replace
from typing import Final, Protocol, Self

import numpy as np

from icscm._lazy import special
from icscm._types import Array, FloatArray, IntArray

# The variance under the model that a row has at least: certain predictions keep some information.
MIN_VARIANCE: Final = 1e-6
# A level moves by at most this much in one step of Newton's method.
MAX_LEVEL_STEP: Final = 2.0
N_LEVEL_STEPS: Final = 6
# Rows that a bin is shrunk by, towards no effect: as if two more rows were as expected.
PRIOR_ROWS: Final = 2.0
# For numbers, whose effects are means, a bin of few rows is shrunk more.
PRIOR_ROWS_OF_NUMBERS: Final = 5.0


class Outcome(Protocol):
    """What the screen asks of an outcome; `make_outcome` chooses the class.

    Attributes
    ----------
    targets : array of shape (n_rows, n_outputs)
        The outcome in the scale of the mean: 0 or 1 for classes, standardised numbers otherwise.
    weights : array of shape (n_rows,)
        The relative weights of the rows: those above 0 have mean 1.
    n_outputs : int
        The number of scores that a row has.
    has_robust_errors : bool
        Whether errors must allow for a variance that the model does not know.
    """

    @property
    def targets(self) -> FloatArray: ...
    @property
    def weights(self) -> FloatArray: ...
    @property
    def n_outputs(self) -> int: ...
    @property
    def has_robust_errors(self) -> bool: ...

    def take(self, rows: Array) -> Self:
        """Return the outcome of some rows."""

    def compute_means(self, scores: FloatArray) -> FloatArray:
        """Return the expected targets by (row, output), given the scores."""

    def compute_variances(self, means: FloatArray) -> FloatArray:
        """Return the variance of the targets by (row, output), given their means."""

    def compute_information(self, means: FloatArray, directions: FloatArray) -> FloatArray:
        """Return the information of each row on a slope along `directions` (row, output)."""

    def compute_losses(self, scores: FloatArray) -> FloatArray:
        """Return minus the log-likelihood of each row, without its weight."""

    def measure_variances(self, scores: FloatArray, places: "Environments") -> FloatArray:
        """Measure the variance of the residuals in each environment; 1 for classes."""

    def compare_bins(
        self, observed: FloatArray, expected: FloatArray, n_rows: FloatArray
    ) -> FloatArray:
        """Return the effects of bins on the score: their observed targets against expected ones."""


@dataclass(frozen=True, eq=False)
class Environments:
    """The number of the environment of each row, and how many environments there are."""

    numbers: IntArray
    count: int

    def add_up(self, values: FloatArray) -> FloatArray:
        """Add up values by environment: of (row,) to (environment,), of (row, k) to (..., k)."""
        if values.ndim == 1:
            return np.bincount(self.numbers, values, self.count).astype(np.float64)
        sums = [np.bincount(self.numbers, column, self.count) for column in values.T]
        return np.stack(sums, axis=1)

    def take(self, rows: Array) -> "Environments":
        """Return the environments of some rows."""
        return Environments(self.numbers[rows], self.count)


# --- classes --------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class TwoClasses:
    """An outcome of two classes; the score is the log odds of the second."""

    targets: FloatArray
    weights: FloatArray
    prior: float
    n_outputs: int = 1
    has_robust_errors: bool = False

    def take(self, rows: Array) -> "TwoClasses":
        return replace(self, targets=self.targets[rows], weights=self.weights[rows])

    def compute_means(self, scores: FloatArray) -> FloatArray:
        means: FloatArray = special.expit(scores)
        return means

    def compute_variances(self, means: FloatArray) -> FloatArray:
        return np.maximum(means * (1.0 - means), MIN_VARIANCE)

    def compute_information(self, means: FloatArray, directions: FloatArray) -> FloatArray:
        """Return v d^2."""
        information: FloatArray = (self.compute_variances(means) * directions**2)[:, 0]
        return information

    def compute_losses(self, scores: FloatArray) -> FloatArray:
        """Return log(1 + e^score) - y score."""
        losses: FloatArray = (np.logaddexp(0.0, scores) - self.targets * scores)[:, 0]
        return losses

    def measure_variances(self, scores: FloatArray, places: Environments) -> FloatArray:
        del scores
        return np.ones(places.count)

    def compare_bins(
        self, observed: FloatArray, expected: FloatArray, n_rows: FloatArray
    ) -> FloatArray:
        """Return log odds ratios of observed to expected rows of the second class.

        Both classes get `PRIOR_ROWS` more rows, in the proportion of the whole table.
        """
        prior = PRIOR_ROWS * self.prior
        other_prior = PRIOR_ROWS * (1.0 - self.prior)
        log_ratio = np.log((observed + prior) / (expected + prior))
        others_observed = n_rows - observed + other_prior
        others_expected = n_rows - expected + other_prior
        return np.asarray(log_ratio - np.log(others_observed / others_expected))


@dataclass(frozen=True, eq=False)
class SeveralClasses:
    """An outcome of three or more classes; a row has a score for each, as in softmax."""

    targets: FloatArray
    weights: FloatArray
    priors: FloatArray
    n_outputs: int
    has_robust_errors: bool = False

    def take(self, rows: Array) -> "SeveralClasses":
        return replace(self, targets=self.targets[rows], weights=self.weights[rows])

    def compute_means(self, scores: FloatArray) -> FloatArray:
        log_sums = np.logaddexp.reduce(scores, axis=1, keepdims=True)
        return np.asarray(np.exp(scores - log_sums))

    def compute_variances(self, means: FloatArray) -> FloatArray:
        return np.maximum(means * (1.0 - means), MIN_VARIANCE)

    def compute_information(self, means: FloatArray, directions: FloatArray) -> FloatArray:
        """Return the variance of d under the predicted probabilities p: sum p d^2 - (sum p d)^2."""
        mean_direction = (means * directions).sum(axis=1)
        mean_square = (means * directions**2).sum(axis=1)
        variances: FloatArray = mean_square - mean_direction**2
        return variances.clip(min=0.0)

    def compute_losses(self, scores: FloatArray) -> FloatArray:
        """Return log(sum of e^score) - the score of the row's own class."""
        own_scores = (scores * self.targets).sum(axis=1)
        return np.asarray(np.logaddexp.reduce(scores, axis=1) - own_scores)

    def measure_variances(self, scores: FloatArray, places: Environments) -> FloatArray:
        del scores
        return np.ones(places.count)

    def compare_bins(
        self, observed: FloatArray, expected: FloatArray, n_rows: FloatArray
    ) -> FloatArray:
        """Return log ratios of observed to expected rows of each class."""
        del n_rows
        priors = PRIOR_ROWS * self.priors
        return np.log((observed + priors) / (expected + priors))


# --- numbers --------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Numbers:
    """An outcome of numbers, standardised; the score is the expected number.

    Residuals may vary more for some rows than for others, so errors are robust.
    """

    targets: FloatArray
    weights: FloatArray
    n_outputs: int = 1
    has_robust_errors: bool = True

    def take(self, rows: Array) -> "Numbers":
        return replace(self, targets=self.targets[rows], weights=self.weights[rows])

    def compute_means(self, scores: FloatArray) -> FloatArray:
        return scores

    def compute_variances(self, means: FloatArray) -> FloatArray:
        return np.ones_like(means)

    def compute_information(self, means: FloatArray, directions: FloatArray) -> FloatArray:
        """Return d^2; the variance of the environment is divided by elsewhere."""
        del means
        information: FloatArray = directions[:, 0] ** 2
        return information

    def compute_losses(self, scores: FloatArray) -> FloatArray:
        """Return half the squared error; the variance is divided by elsewhere."""
        losses: FloatArray = 0.5 * ((self.targets - scores) ** 2)[:, 0]
        return losses

    def measure_variances(self, scores: FloatArray, places: Environments) -> FloatArray:
        """Return the mean squared error in each environment."""
        squares = 2.0 * self.compute_losses(scores) * self.weights
        totals = np.maximum(places.add_up(self.weights), 1e-12)
        return np.maximum(places.add_up(squares) / totals, 1e-12)

    def compare_bins(
        self, observed: FloatArray, expected: FloatArray, n_rows: FloatArray
    ) -> FloatArray:
        """Return mean differences, of `PRIOR_ROWS_OF_NUMBERS` more rows."""
        return np.asarray((observed - expected) / (n_rows + PRIOR_ROWS_OF_NUMBERS))


# --- made -----------------------------------------------------------------------------------------


def make_outcome(values: Array, weights: FloatArray | None, *, is_number: bool) -> Outcome:
    """Make the outcome of the rows: numbers, or classes numbered from 0.

    Weights are relative (`icscm.tables.weights.read_weights`).
    """
    row_weights = np.ones(len(values)) if weights is None else weights
    if is_number:
        targets = standardise(values.astype(np.float64))[:, np.newaxis]
        return Numbers(targets=targets, weights=row_weights)

    n_classes = int(values.max()) + 1
    if n_classes <= 2:
        targets = values.astype(np.float64)[:, np.newaxis]
        prior = float(np.average(targets[:, 0], weights=row_weights))
        return TwoClasses(targets=targets, weights=row_weights, prior=prior)

    targets = np.eye(n_classes)[values]
    priors = np.average(targets, axis=0, weights=row_weights)
    return SeveralClasses(targets=targets, weights=row_weights, priors=priors, n_outputs=n_classes)


def standardise(numbers: FloatArray) -> FloatArray:
    """Return numbers less their mean, in standard deviations; neither may overflow."""
    largest = np.abs(numbers).max()
    scaled = numbers / largest if largest > 0 else numbers
    deviations = scaled - scaled.mean()
    deviations /= np.abs(deviations).max() or 1.0
    return np.asarray(deviations / (deviations.std() or 1.0))


# --- scores without columns -----------------------------------------------------------------------


def compute_gradients(outcome: Outcome, scores: FloatArray) -> FloatArray:
    """Return w (y - mean) by (row, output)."""
    residuals = outcome.targets - outcome.compute_means(scores)
    return np.asarray(residuals * outcome.weights[:, np.newaxis])


def compute_hessians(outcome: Outcome, scores: FloatArray) -> FloatArray:
    """Return w v by (row, output)."""
    variances = outcome.compute_variances(outcome.compute_means(scores))
    return np.asarray(variances * outcome.weights[:, np.newaxis])


def step_levels(outcome: Outcome, scores: FloatArray, places: Environments) -> FloatArray:
    """Return one step of Newton's method for the level of each environment (environment, output).

    step = sum of gradients / sum of hessians
    """
    gradients = places.add_up(compute_gradients(outcome, scores))
    hessians = places.add_up(compute_hessians(outcome, scores))
    return np.clip(gradients / (hessians + 1e-9), -MAX_LEVEL_STEP, MAX_LEVEL_STEP)


def fit_levels(outcome: Outcome, scores: FloatArray, places: Environments) -> FloatArray:
    """Fit the levels of the environments (environment, output), to be added to the scores.

    With its *level* the mean residual of an environment is 0: environments may differ in how
    frequent the outcome is, and only the effects of columns are compared between them.
    """
    levels = np.zeros((places.count, scores.shape[1]))
    for _ in range(N_LEVEL_STEPS):
        levels += step_levels(outcome, scores + levels[places.numbers], places)
    return levels


def compute_null_scores(outcome: Outcome, places: Environments) -> FloatArray:
    """Return the scores of a model that knows the environment of a row and nothing else."""
    no_scores = np.zeros((len(outcome.weights), outcome.n_outputs))
    levels = fit_levels(outcome, no_scores, places)
    return np.asarray(levels[places.numbers])


def compute_deviance(
    outcome: Outcome, scores: FloatArray, *, variances: FloatArray, places: Environments
) -> float:
    """Return the deviance of some scores: 2 sum w loss / variance of the environment."""
    weights = 2.0 * outcome.weights / variances[places.numbers]
    return float(weights @ outcome.compute_losses(scores))
