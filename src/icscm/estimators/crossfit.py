"""Cross-fitting: scores of learners for held-out rows, and the contribution of each column."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from joblib import Parallel, delayed
from sklearn.base import clone

from icscm._lazy import special
from icscm._types import Array, FloatArray, IntArray
from icscm.estimators.judging import Contributions, Judge
from icscm.estimators.learners import TableClassifier, limit_threads
from icscm.progress import track
from icscm.tables.columns import is_frame, open_frame, take_columns, take_rows
from icscm.tables.labels import shuffle_within

# Contributions: columns drawn from other rows so often, for at most so many rows and columns.
_N_DRAWS: Final = 3
_MAX_CELLS: Final = 1_000_000
_MIN_DRAWN: Final = 2_000
_MAX_COLUMNS: Final = 200
_MIN_COLUMNS: Final = 10
# Cells of all tables that are predicted for, and rows and cells of one of them.
_MAX_PREDICTED: Final = 300_000_000
_ROWS_AT_ONCE: Final = 50_000
_CELLS_AT_ONCE: Final = 5_000_000


@dataclass(frozen=True)
class CrossFit:
    """The learner, the two labels, and the folds (train, test) that no row is scored within."""

    learner: Any
    classes: Array
    folds: list[Any]
    seed: int
    n_jobs: int | None

    def run(
        self, X: Any, columns: IntArray, judge: Judge, deviances: Mapping[int, float]
    ) -> tuple[FloatArray, Contributions]:
        """Scores (row, learner), and contributions of the columns.

        Boosting is fitted in addition to the user's learner, and both are combined: effects that a
        learner of the wrong form has missed must not look like differences between environments. Of
        many columns boosting uses those that explain most by themselves.
        """
        learners = [self.learner]
        if not isinstance(self.learner, TableClassifier) or self.learner.kind != "hgb":
            informative = np.argsort([-deviances.get(j, 0.0) for j in columns.tolist()])
            learners.append(TableClassifier("hgb", 0, np.sort(informative[:_MAX_COLUMNS])))
        table, n_rows, folds = take_columns(X, columns), len(judge.labels), self.folds
        y = self.classes[judge.labels]
        tasks = [(learner, train, test) for learner in learners for train, test in folds]
        scores = np.zeros((n_rows, len(learners)))
        with limit_threads(n_rows * len(columns)):
            fitted = Parallel(self._limit_jobs(tasks))(
                delayed(clone(learner).fit)(take_rows(table, train), y[train])
                for learner, train, _ in track(tasks, len(tasks))
            )
            for place, (model, (_, _, test)) in enumerate(zip(fitted, tasks, strict=True)):
                scores[test, place // len(folds)] = _score(model, take_rows(table, test))
            return scores, self._draw(table, columns, judge, fitted, scores)

    def _limit_jobs(self, tasks: list[Any]) -> int | None:
        """No more processes or threads than there are tasks."""
        return self.n_jobs and min(self.n_jobs, len(tasks))

    def _draw(
        self, table: Any, columns: IntArray, judge: Judge, fitted: list[Any], scores: FloatArray
    ) -> Contributions:
        """Predict again with each column drawn from other rows of the same environment.

        Of many columns, only those with which the scores vary most.
        """
        rng, chosen = np.random.default_rng(self.seed), columns
        most = _MAX_PREDICTED // (_N_DRAWS * min(len(scores), _MIN_DRAWN) * len(columns))
        if len(columns) > (most := min(max(most, _MIN_COLUMNS), _MAX_COLUMNS)):
            variances = judge.measure_variation(columns, scores[:, 0])
            chosen = np.sort(columns[np.argsort(-variances, kind="stable")[:most]])
        n_each = _N_DRAWS * len(chosen)
        most = min(_MAX_CELLS // n_each, _MAX_PREDICTED // (n_each * len(columns)))
        share = max(_MIN_DRAWN, most) / len(judge.labels)
        tests = [np.asarray(test) for _, test in self.folds]
        if share < 1:
            tests = [np.sort(rng.choice(t, max(1, int(share * len(t))), False)) for t in tests]
        rows = np.concatenate(tests)
        values, start = np.empty((_N_DRAWS, len(rows), len(chosen), scores.shape[1])), 0
        places = np.searchsorted(columns, chosen)
        for fold, test in enumerate(tests):
            part = slice(start, start + len(test))
            start += len(test)
            models = fitted[fold :: len(self.folds)]
            drawn = [shuffle_within(judge.environments[test], rng) for _ in range(_N_DRAWS)]
            order = np.concatenate(drawn)
            size = max(1, min(_ROWS_AT_ONCE, _CELLS_AT_ONCE // len(columns)) // len(order))
            chunks = [slice(k, k + size) for k in range(0, len(chosen), size)]
            found = Parallel(self._limit_jobs(chunks), prefer="threads")(
                delayed(_score_drawn)(models, table, test, places[chunk], order) for chunk in chunks
            )
            for chunk, each in zip(chunks, found, strict=True):
                shape = len(places[chunk]), _N_DRAWS, len(test), scores.shape[1]
                own = scores[test] - each.reshape(shape)
                values[:, part, chunk] = own.transpose(1, 2, 0, 3)
        return Contributions(rows, chosen, values)


def _score(model: Any, X: Any) -> FloatArray:
    """Log odds of the positive class, or the decision function of the learner."""
    if hasattr(model, "predict_proba"):
        chance: FloatArray = np.asarray(model.predict_proba(X))[:, 1]
        return np.asarray(special.logit(chance.clip(1e-5, 1.0 - 1e-5)))
    return np.asarray(model.decision_function(X), dtype=float)


def _score_drawn(
    models: list[Any], table: Any, test: Array, columns: IntArray, order: Array
) -> FloatArray:
    """Scores (column, draw and row; model), each column in turn drawn from other rows.

    The rows are repeated once for each column and draw: few calls of many rows take less time.
    """
    n_draws = len(order) // len(test)
    X = take_rows(table, np.tile(test, n_draws * len(columns)))
    every = np.arange(len(order) * len(columns))
    frame, drawn = open_frame(X) if is_frame(X) else None, []
    for k, j in enumerate(columns.tolist()):
        rows = every.copy()
        rows[k * len(order) : (k + 1) * len(order)] = order  # numbers within the first copy
        if frame is None:
            X[:, j] = X[rows, j]
        else:
            drawn.append(frame[:, j][rows])
    if frame is not None:  # all at once: a frame of many columns takes long to make
        X = frame.with_columns(*drawn).to_native()
    return np.column_stack([_score(model, X) for model in models])
