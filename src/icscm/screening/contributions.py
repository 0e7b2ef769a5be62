"""What each column contributes to the model, and how the residuals depend on that.

The *contribution* c of a column to a row is the difference that the column makes to the row's log
odds: the log odds as they are, less their mean after the column was *shuffled*. To shuffle a column
is to give each row the value of another row of the same environment, as in permutation importance.

Suppose the true effect of the column in an environment is (1 + s) times the effect that the model
has learned. Then the true log odds are those of the model plus s c, and a regression of the
residuals on c has *slope* s:

    s = 0       the model is right about the column here
    s = 0.5     the effect is half as large again here
    s = -1      the column has no effect here

A column whose slopes differ between environments is used by the model as if its effect were the
same in all of them, which it is not.

Slopes are estimated by one step of Newton's method from 0, with gradients g and hessians h
(`icscm.screening.residuals`), in each environment by itself.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from icscm._types import FloatArray, IntArray
from icscm.screening.residuals import Residuals
from icscm.stats.heterogeneity import Heterogeneity, compare_effects

# With less information a slope is not determined. As a ridge, it keeps joint slopes finite where
# two columns contribute the same.
MIN_INFORMATION: Final = 1e-3
# Joint slopes of many columns need many rows, and an environment may have few.
MAX_JOINT_COLUMNS: Final = 30


@dataclass(frozen=True, eq=False)
class LearnerContributions:
    """What some columns contribute to the scores of each learner, in some rows.

    `rows` and `columns` are their numbers in the table: large tables are sampled. `values` has the
    axes (shuffle, row, column, learner), since each column is shuffled several times.
    """

    rows: IntArray
    columns: IntArray
    values: FloatArray

    def combine(self, learner_slopes: FloatArray) -> "Contributions":
        """Return the contributions to the log odds, given the slope of each learner's scores.

        The log odds are the scores weighted by these slopes, and so are the contributions.
        """
        by_shuffle = self.values @ learner_slopes
        n_shuffles = len(by_shuffle)
        return Contributions(
            rows=self.rows,
            columns=self.columns,
            values=by_shuffle.mean(axis=0),
            variances=by_shuffle.var(axis=0, ddof=1) / n_shuffles,
        )


@dataclass(frozen=True, eq=False)
class ColumnContribution:
    """What one column contributes to the log odds of some rows.

    `values` are means over several shuffles. Since the shuffles are few the means are inexact, and
    `variances` say by how much.
    """

    column: int
    rows: IntArray
    values: FloatArray
    variances: FloatArray


@dataclass(frozen=True, eq=False)
class Contributions:
    """What some columns contribute to the log odds of some rows.

    `values` and `variances` are by row and column, and otherwise as in `ColumnContribution`.
    """

    rows: IntArray
    columns: IntArray
    values: FloatArray
    variances: FloatArray

    def iterate_columns(self) -> Iterator[ColumnContribution]:
        """Yield the contribution of each column."""
        for index, column in enumerate(self.columns.tolist()):
            yield ColumnContribution(
                column=column,
                rows=self.rows,
                values=self.values[:, index],
                variances=self.variances[:, index],
            )

    def centre_by_environment(self, residuals: Residuals) -> "Contributions":
        """Return the contributions less the mean of each column in the row's environment.

        The model has an intercept for each environment, which has taken up the mean. So a slope
        must be fitted to what deviates from it, with the hessians as weights.
        """
        centred = np.empty_like(self.values)
        for _, rows in residuals.iterate_environments():
            hessians = residuals.hessians[rows]
            means = np.average(self.values[rows], axis=0, weights=hessians)
            centred[rows] = self.values[rows] - means
        return replace(self, values=centred)


@dataclass(frozen=True, eq=False)
class Slopes:
    """Slopes of the residuals on the contributions, by column and environment.

    `information` is the inverse of the variance of each slope. Both are 0 where an environment has
    no rows, or no slope was fitted for the column.
    """

    estimates: FloatArray
    information: FloatArray

    def compare_environments(self) -> Heterogeneity:
        """Measure for each column how much its slope differs between environments."""
        return compare_effects(self.estimates, weights=self.information)


def fit_separate_slopes(centred: Contributions, residuals: Residuals) -> Slopes:
    """Fit the slope of the residuals on each column's contribution, one column at a time.

        slope = sum(g c) / sum(h c^2)        information = sum(h c^2)

    with contributions c, centred by environment. A slope that is fitted by itself is more precise
    than one fitted jointly with others, but takes over the effects of columns that are alike.
    """
    shape = len(centred.columns), residuals.n_environments
    estimates = np.zeros(shape)
    information = np.zeros(shape)
    for environment, rows in residuals.iterate_environments():
        c = centred.values[rows]
        g = residuals.gradients[rows]
        h = residuals.hessians[rows]

        column_information = h @ c**2
        information[:, environment] = column_information
        estimates[:, environment] = c.T @ g / np.maximum(column_information, MIN_INFORMATION)
    return Slopes(estimates=estimates, information=information)


def fit_joint_slopes(
    centred: Contributions, residuals: Residuals, fitted_columns: IntArray
) -> Slopes:
    """Fit the slopes on the contributions of some columns, by their position, in one regression.

        slopes = V C' g        V = (C' H C + ridge)^-1        information = 1 / diagonal of V

    with contributions C, centred by environment, and H the diagonal matrix of the hessians.

    Some shortcuts only show jointly. If the time between two dates is the shortcut, neither date
    has an effect by itself.
    """
    ridge = MIN_INFORMATION * np.eye(len(fitted_columns))
    shape = len(centred.columns), residuals.n_environments
    estimates = np.zeros(shape)
    information = np.zeros(shape)
    for environment, rows in residuals.iterate_environments():
        c = centred.values[rows]
        g = residuals.gradients[rows]
        h = residuals.hessians[rows]

        C = c[:, fitted_columns]
        V = np.linalg.inv((C * h[:, np.newaxis]).T @ C + ridge)
        estimates[fitted_columns, environment] = V @ (c.T @ g)[fitted_columns]
        information[fitted_columns, environment] = 1.0 / V.diagonal()
    return Slopes(estimates=estimates, information=information)


def find_largest_contributions(
    contributions: FloatArray, max_columns: int = MAX_JOINT_COLUMNS
) -> IntArray:
    """Return the positions of the columns with the largest squared contributions, sorted."""
    squares = (contributions**2).sum(axis=0)
    descending = np.argsort(-squares, kind="stable")
    return np.sort(descending[:max_columns])
