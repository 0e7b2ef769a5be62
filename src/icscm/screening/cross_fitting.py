"""A model of some columns that has not seen the rows it is asked about.

The rows are dealt to folds at random; rows of a group stay together. Boosted trees are fitted on
all folds but one and score the rows of that one. Folds of whole environments would find a few
shortcuts more, but reject true causes in a fifth of simulated tables: a model extrapolates badly
into an environment whose columns are distributed otherwise, and its errors look like differences.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np

from icscm._types import Array, FloatArray, IntArray
from icscm.engine.threads import count_threads, run_ahead
from icscm.progress import track
from icscm.screening.boosting import BinnedRows, BoostedTrees, boost
from icscm.screening.outcomes import Outcome, fit_levels
from icscm.screening.screened_table import ScreenedTable

Result = TypeVar("Result")


@dataclass(frozen=True, eq=False)
class FoldModel:
    """A model with the rows that it did not see; `arranged` are their bins as trees read them."""

    rows: IntArray
    model: BoostedTrees
    arranged: Array
    scores: FloatArray


@dataclass(frozen=True, eq=False)
class CrossFit:
    """A cross-fitted model of some columns.

    `columns` are their numbers in the table. `scores` (row, output) contain the levels of the
    environments, which were fitted to the cross-fitted scores of all rows.
    """

    columns: IntArray
    folds: list[FoldModel]
    scores: FloatArray

    def compute_contributions(
        self, table: ScreenedTable, *, n_jobs: int | None
    ) -> list[FloatArray]:
        """Return the contribution of each column to the scores of all rows (row, output)."""
        shares = [table.compute_shares(column) for column in self.columns.tolist()]

        def contribute(position: int) -> FloatArray:
            contributions = np.zeros_like(self.scores)
            for fold in self.folds:
                if fold.model.uses(position):
                    contributions[fold.rows] = fold.model.compute_contributions(
                        fold.arranged,
                        table.places.numbers[fold.rows],
                        column=position,
                        shares=shares[position],
                    )
            return contributions

        return run_in_threads(contribute, range(len(self.columns)), n_jobs)

    def compute_joint_contribution(
        self, table: ScreenedTable, positions: Sequence[int], *, n_draws: int, seed: int
    ) -> FloatArray:
        """Return what several columns contribute together: as if they were one.

        The columns are drawn together from other rows of the environment, `n_draws` times.
        """
        rng = np.random.default_rng(seed)
        contributions = np.zeros_like(self.scores)
        for fold in self.folds:
            environments = table.places.numbers[fold.rows]
            by_environment = np.argsort(environments, kind="stable")
            for _ in range(n_draws):
                drawn_rows = np.empty(len(environments), dtype=np.int64)
                shuffled = np.lexsort((rng.random(len(environments)), environments))
                drawn_rows[by_environment] = shuffled
                drawn = fold.arranged.copy()
                drawn[:, positions] = fold.arranged[drawn_rows][:, positions]
                contributions[fold.rows] += (fold.scores - fold.model.score(drawn)) / n_draws
        return contributions


def cross_fit(
    outcome: Outcome,
    table: ScreenedTable,
    columns: IntArray,
    fold_numbers: IntArray,
    *,
    n_jobs: int | None,
) -> CrossFit:
    """Cross-fit boosted trees on some columns; `fold_numbers` has the fold of each row."""
    selected = table.columns.take_columns(columns)

    def fit(fold: int) -> FoldModel:
        training_rows = np.flatnonzero(fold_numbers != fold)
        rows = np.flatnonzero(fold_numbers == fold)
        training = BinnedRows(
            bins=np.ascontiguousarray(selected.bins[:, training_rows]),
            n_bins=selected.n_bins,
            is_nominal=selected.is_nominal,
        )
        model = boost(outcome.take(training_rows), training, table.places.take(training_rows))
        arranged = model.arrange(selected.bins[:, rows])
        return FoldModel(rows, model, arranged, model.score(arranged))

    folds = run_in_threads(fit, range(int(fold_numbers.max()) + 1), n_jobs)
    scores = np.zeros((table.n_rows, outcome.n_outputs))
    for fold in folds:
        scores[fold.rows] = fold.scores
    levels = fit_levels(outcome, scores, table.places)
    return CrossFit(columns=columns, folds=folds, scores=scores + levels[table.places.numbers])


def run_in_threads(
    function: Callable[[int], Result], arguments: Iterable[int], n_jobs: int | None
) -> list[Result]:
    """Call a function for each number, in threads if `n_jobs` asks for them, and tell the progress.

    Threads suffice: the kernels, which take nearly all of the time, release the GIL.
    """
    numbers = list(arguments)
    results = run_ahead(function, numbers, count_threads(n_jobs))
    return list(track(results, len(numbers)))
