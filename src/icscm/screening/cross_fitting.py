"""Cross-fitting: scores of rows by learners that were fitted without them, and contributions.

    folds        the learner is fitted on all rows but those of a fold, and scores these
    shuffles     in the rows of the fold each column is given the values of other rows of the same
                 environment, and the learner scores them again
    contribution the score as it is, less that with the column shuffled

No row's score comes from a learner that has seen the row, so differences between environments are
not what the learner has memorised.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

import numpy as np
from joblib import Parallel, delayed
from sklearn.base import clone

from icscm._lazy import special
from icscm._types import Array, FloatArray, IntArray
from icscm.progress import track
from icscm.screening.binned_table import BinnedTable
from icscm.screening.contributions import LearnerContributions
from icscm.tables.columns import is_frame, open_frame, take_columns, take_rows
from icscm.tables.environments import shuffle_within

# How often each column is shuffled, in at most so many cells (row, column and shuffle), but at
# least in so many rows.
N_SHUFFLES: Final = 3
MAX_SHUFFLED_CELLS: Final = 1_000_000
MIN_SHUFFLED_ROWS: Final = 2_000
# Columns whose contributions are computed, at most and at least.
MAX_COLUMNS: Final = 200
MIN_COLUMNS: Final = 10
# Cells of all tables that are predicted for, and rows and cells of one of them.
MAX_PREDICTED_CELLS: Final = 300_000_000
ROWS_AT_ONCE: Final = 50_000
CELLS_AT_ONCE: Final = 5_000_000
# Scores are log odds of probabilities at least so far from 0 and 1.
MIN_PROBABILITY: Final = 1e-5


class Fold(NamedTuple):
    """Rows that a learner is fitted on, and rows that it scores."""

    train: IntArray
    test: IntArray


@dataclass(frozen=True, eq=False)
class CrossFit:
    """Cross-fitted scores of the rows (row, learner), and contributions of columns to them."""

    scores: FloatArray
    contributions: LearnerContributions


@dataclass(frozen=True, eq=False)
class CrossFitting:
    """How learners are cross-fitted: the classes, the folds, and a seed for the shuffles."""

    classes: Array
    folds: Sequence[Fold]
    seed: int
    n_jobs: int | None

    def fit(
        self, learners: Sequence[Any], X: Any, *, columns: IntArray, table: BinnedTable
    ) -> CrossFit:
        """Cross-fit some learners on some columns of X, whose rows are those of `table`."""
        selected = take_columns(X, columns)
        y = self.classes[table.outcomes]
        tasks = [(learner, fold) for learner in learners for fold in self.folds]
        models = Parallel(self._limit_jobs(len(tasks)))(
            delayed(fit_clone)(learner, take_rows(selected, fold.train), y[fold.train])
            for learner, fold in track(tasks, len(tasks))
        )

        scores = np.zeros((len(y), len(learners)))
        for number, (model, (_, fold)) in enumerate(zip(models, tasks, strict=True)):
            learner_number = number // len(self.folds)
            scores[fold.test, learner_number] = score(model, take_rows(selected, fold.test))

        n_folds = len(self.folds)
        models_by_fold = [models[number::n_folds] for number in range(n_folds)]
        contributions = self._compute_contributions(
            selected, models_by_fold, scores, columns=columns, table=table
        )
        return CrossFit(scores=scores, contributions=contributions)

    def _limit_jobs(self, n_tasks: int) -> int | None:
        """No more processes or threads than there are tasks."""
        return self.n_jobs and min(self.n_jobs, n_tasks)

    def _compute_contributions(
        self,
        X: Any,
        models_by_fold: Sequence[list[Any]],
        scores: FloatArray,
        *,
        columns: IntArray,
        table: BinnedTable,
    ) -> LearnerContributions:
        """Score rows again with each column shuffled within environments.

        Of many columns, only those with which the scores vary most; of many rows, a sample.
        """
        rng = np.random.default_rng(self.seed)
        shuffled_columns = _choose_columns(columns, scores, table)
        rows_by_fold = _choose_rows(self.folds, len(scores), len(shuffled_columns), columns, rng)
        places = np.searchsorted(columns, shuffled_columns)

        n_rows = sum(len(rows) for rows in rows_by_fold)
        values = np.empty((N_SHUFFLES, n_rows, len(shuffled_columns), scores.shape[1]))
        start = 0
        for rows, models in zip(rows_by_fold, models_by_fold, strict=True):
            end = start + len(rows)
            environments = table.environments[rows]
            shuffles = [shuffle_within(environments, rng) for _ in range(N_SHUFFLES)]
            order = np.concatenate(shuffles)

            chunks = _split_columns(len(shuffled_columns), len(order), len(columns))
            scored_chunks = Parallel(self._limit_jobs(len(chunks)), prefer="threads")(
                delayed(score_shuffled)(models, X, rows, places[chunk], order) for chunk in chunks
            )
            for chunk, shuffled_scores in zip(chunks, scored_chunks, strict=True):
                shape = len(places[chunk]), N_SHUFFLES, len(rows), scores.shape[1]
                differences = scores[rows] - shuffled_scores.reshape(shape)
                values[:, start:end, chunk] = differences.transpose(1, 2, 0, 3)
            start = end
        return LearnerContributions(
            rows=np.concatenate(rows_by_fold), columns=shuffled_columns, values=values
        )


def _choose_columns(columns: IntArray, scores: FloatArray, table: BinnedTable) -> IntArray:
    """Choose the columns to shuffle: of too many, those with which the scores vary most."""
    n_shuffled_rows = min(len(scores), MIN_SHUFFLED_ROWS)
    affordable = MAX_PREDICTED_CELLS // (N_SHUFFLES * n_shuffled_rows * len(columns))
    n_chosen = min(max(affordable, MIN_COLUMNS), MAX_COLUMNS)
    if len(columns) <= n_chosen:
        return columns
    variation = table.measure_variation(columns, scores[:, 0])
    return np.sort(columns[np.argsort(-variation, kind="stable")[:n_chosen]])


def _choose_rows(
    folds: Sequence[Fold],
    n_rows: int,
    n_shuffled: int,
    columns: IntArray,
    rng: np.random.Generator,
) -> list[IntArray]:
    """Choose the rows in which columns are shuffled, by fold: the same share of each."""
    n_tables = N_SHUFFLES * n_shuffled
    affordable = min(
        MAX_SHUFFLED_CELLS // n_tables, MAX_PREDICTED_CELLS // (n_tables * len(columns))
    )
    share = max(MIN_SHUFFLED_ROWS, affordable) / n_rows
    tests = [np.asarray(fold.test) for fold in folds]
    if share >= 1:
        return tests
    return [np.sort(rng.choice(rows, max(1, int(share * len(rows))), False)) for rows in tests]


def _split_columns(n_shuffled: int, n_rows: int, n_columns: int) -> list[slice]:
    """Split the shuffled columns into chunks that are scored in one call each."""
    rows_at_once = min(ROWS_AT_ONCE, CELLS_AT_ONCE // n_columns)
    size = max(1, rows_at_once // n_rows)
    return [slice(start, start + size) for start in range(0, n_shuffled, size)]


def fit_clone(learner: Any, X: Any, y: Array) -> Any:
    """Fit a clone of a learner."""
    return clone(learner).fit(X, y)


def score(model: Any, X: Any) -> FloatArray:
    """Log odds of the positive class, or the decision function of the learner."""
    if hasattr(model, "predict_proba"):
        chance: FloatArray = np.asarray(model.predict_proba(X))[:, 1]
        return np.asarray(special.logit(chance.clip(MIN_PROBABILITY, 1.0 - MIN_PROBABILITY)))
    return np.asarray(model.decision_function(X), dtype=float)


def score_shuffled(
    models: Sequence[Any], X: Any, rows: IntArray, columns: IntArray, order: IntArray
) -> FloatArray:
    """Score some rows with each of some columns shuffled: (column, shuffle and row; model).

    `order` has the position among `rows` of the row whose value is taken, one shuffle after the
    other. The rows are repeated once for each column and shuffle: few calls of many rows take less
    time.
    """
    n_shuffles = len(order) // len(rows)
    repeated = take_rows(X, np.tile(rows, n_shuffles * len(columns)))
    positions = np.arange(len(order) * len(columns))
    frame = open_frame(repeated) if is_frame(repeated) else None

    shuffled_columns = []
    for number, column in enumerate(columns.tolist()):
        taken = positions.copy()
        # positions within the first copy of the rows
        taken[number * len(order) : (number + 1) * len(order)] = order
        if frame is None:
            repeated[:, column] = repeated[taken, column]
        else:
            shuffled_columns.append(frame[:, column][taken])
    if frame is not None:  # all at once: a frame of many columns takes long to make
        repeated = frame.with_columns(*shuffled_columns).to_native()
    return np.column_stack([score(model, repeated) for model in models])
