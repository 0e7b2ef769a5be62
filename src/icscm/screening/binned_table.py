"""The table that is screened: its rows, and sums over them by bin of a column and environment.

The columns are binned once, before the first model is fitted, and every test works on sums by bin,
so no test has to look at single values. The source of the data keeps its rows in an order of its
own. This module hides that: everywhere else in the screen, rows are in the order of the user's
table.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final

import numpy as np

from icscm._types import FloatArray, IntArray
from icscm.engine.clusters import square_sums
from icscm.engine.counts import Cut, MomentCube, RowAccess, RowSource, ValueCube
from icscm.engine.moments import make_moments
from icscm.screening.residuals import Residuals, compute_rates
from icscm.stats.design_effects import compute_design_effects
from icscm.stats.replication import measure_columns

# A column is a copy of a rejected one if it explains this share of the variance of its cut.
MIN_COPIED_SHARE: Final = 0.8


@dataclass(frozen=True)
class ColumnStrength:
    """What a column explains by itself.

    `replication` says in how many environments (`icscm.stats.replication`), `deviance` how much.
    """

    replication: float
    deviance: float


class BinnedTable:
    """A table with binned columns, an outcome (0 or 1) and an environment for each row.

    Attributes
    ----------
    outcomes, environments : array of shape (n_rows,)
        `environments` has numbers from 0 to `n_environments` - 1.
    columns : BinnedColumns
        What the bins mean.
    """

    def __init__(self, source: RowSource) -> None:
        assert source.rows is not None, "a screen needs the rows in this process"
        self._rows: RowAccess = source.rows
        # for each row of the table its number in the source
        self._source_rows = self._rows.list_in_table_order()
        cells = self._rows.list_cells()
        self.columns = source.columns
        self.n_environments = len(source.environments)
        self.outcomes = cells.outcomes[self._source_rows]
        self.environments = cells.environments[self._source_rows]

    # --- residuals --------------------------------------------------------------------------------

    def make_residuals(self, probabilities: FloatArray) -> Residuals:
        """Return what a model with these probabilities leaves unexplained in each row.

        Rows that belong together in groups, such as the visits of a patient, have smaller weights.
        They are alike and have less information than independent ones. The *design effect* of an
        environment is the factor by which that inflates variances, and each row of the environment
        has the weight 1 / design effect.
        """
        residuals = Residuals(
            outcomes=self.outcomes,
            probabilities=probabilities,
            weights=np.ones(len(probabilities)),
            environments=self.environments,
            n_environments=self.n_environments,
        )
        clusters = self._rows.list_clusters()
        if clusters is None:
            return residuals

        cluster_sums = square_sums(
            residuals.gradients,
            codes=clusters.codes[self._source_rows],
            starts=clusters.starts,
        )
        hessians = np.bincount(self.environments, residuals.hessians, self.n_environments)
        n_rows = np.bincount(self.environments, residuals.weights, self.n_environments)
        design_effects = compute_design_effects(cluster_sums, hessians, n_rows)
        return Residuals(
            outcomes=self.outcomes,
            probabilities=probabilities,
            weights=1.0 / design_effects[self.environments],
            environments=self.environments,
            n_environments=self.n_environments,
        )

    # --- sums by bin ------------------------------------------------------------------------------

    def sum_by_bin(
        self, values: FloatArray, columns: IntArray | None = None
    ) -> Iterator[ValueCube]:
        """Add up values of the rows in each bin of a column and each environment.

        Parameters
        ----------
        values : array of shape (n_rows, n_quantities)
            One or more quantities of each row, such as its gradient and its hessian.
        columns : array of int, optional
            The columns whose bins are wanted; all by default. A column that is constant has no
            bins and is left out.

        Yields
        ------
        ValueCube
            The sums of a block of columns.
        """
        source_values = np.empty_like(values)
        source_values[self._source_rows] = values
        yield from self._rows.sum_values(source_values, columns)

    def sum_residuals(
        self, residuals: Residuals, columns: IntArray | None = None
    ) -> Iterator[MomentCube]:
        """Add up gradients and hessians in each bin of a column and each environment."""
        values = np.column_stack((residuals.gradients, residuals.hessians))
        for cube in self.sum_by_bin(values, columns):
            yield make_moments(cube)

    # --- columns by themselves --------------------------------------------------------------------

    def measure_strengths(self) -> dict[int, ColumnStrength]:
        """Measure what each column explains by itself, around the rates of the environments."""
        rates = compute_rates(self.outcomes, self.environments, self.n_environments)
        residuals = self.make_residuals(rates[self.environments])
        strengths: dict[int, ColumnStrength] = {}
        for cube in self.sum_residuals(residuals):
            measured = measure_columns(cube.gradients, cube.hessians)
            for k, column in enumerate(cube.columns.tolist()):
                strengths[column] = ColumnStrength(
                    replication=float(measured.replication[k]),
                    deviance=float(measured.deviance[k]),
                )
        return strengths

    def measure_variation(self, columns: IntArray, scores: FloatArray) -> FloatArray:
        """Measure the variance of the scores between the bins of each of some columns.

        sum over bins  (sum of scores less their mean)^2 / number of rows
        """
        variation = np.zeros(len(columns))
        values = np.column_stack((scores - scores.mean(), np.ones(len(scores))))
        for cube in self.sum_by_bin(values, columns):
            sums = cube.sums.sum(axis=3)
            score_sums = sums[:, :, 0]
            n_rows = np.maximum(sums[:, :, 1], 1.0)
            numbers = np.searchsorted(columns, cube.columns)
            variation[numbers] = (score_sums**2 / n_rows).sum(axis=1)
        return variation

    def find_copied(self, column: int, rejected_cuts: Iterable[tuple[int, Cut]]) -> int | None:
        """Find the first rejected column that a column nearly copies, given the cuts of these.

        It does if its bins explain nearly all variance of the cut:

            sum over bins  n_b (rate_b - rate)^2  >=  .8 n rate (1 - rate)

        with the share of rows for which the cut's rule is true, by bin and over all rows.
        """
        bins = self._rows.read_bins(column)
        n_rows = np.bincount(bins)
        for rejected, cut in rejected_cuts:
            is_true = self._rows.find_true(self.columns.make_binned_rule(cut)).astype(float)
            n_true = np.bincount(bins, is_true)
            mean_square = (n_true**2 / np.maximum(n_rows, 1)).sum() / len(is_true)
            explained = mean_square - is_true.mean() ** 2
            if explained >= MIN_COPIED_SHARE * is_true.var() > 0:
                return rejected
        return None
