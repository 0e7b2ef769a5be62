"""Rule sets and other classifiers compared on the same folds.

Each candidate is scored in two ways: on rows of the environments that it was trained on, and in
environments left out. What it loses from one to the other is the price of its shortcuts.
"""

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from icscm._changes import data_by_name
from icscm._lazy import special
from icscm._types import BoolArray, IntArray
from icscm.drawing import Figure
from icscm.drawing.columns import ScoreRow
from icscm.estimators.base import BaseRuleClassifier
from icscm.estimators.score import InvariantScoreClassifier
from icscm.estimators.tree import BaseTreeClassifier
from icscm.exceptions import IcscmError
from icscm.parameters import allow, check_value
from icscm.progress import track
from icscm.report.blocks import Document
from icscm.report.documents.comparison import write_document
from icscm.report.markdown import render_markdown
from icscm.report.score_plots import draw_comparison
from icscm.report.wording.comparison import describe_comparison
from icscm.report.wording.facts import Fact
from icscm.tables.environments import check_several
from icscm.validation.candidates import BASELINE, choose_candidates, format_score
from icscm.validation.cohort import Cohort, drop_columns, make_cohort
from icscm.validation.fitting import (
    Fitted,
    FoldScores,
    Values,
    average_values,
    describe_estimator,
    fit_fold,
    score_fold,
)
from icscm.validation.folds import Fold, leave_out_parts, leave_out_rows, make_fold_of_all_rows
from icscm.validation.scores import ALPHA, TITLES, Z, compute_group_variance

N_FOLDS = 3
# With more environments, they are held out in so many parts: each part costs a fit.
MAX_HELD_OUT = 10
# Scores in environments with fewer rows, or fewer positive ones, are too noisy.
MIN_ROWS = 200
MIN_POSITIVES = 20
MEASURES = "auc", "log_loss", "slope", "intercept", "error", "balanced_accuracy"
DRAWN = "auc", "log_loss", "slope", "error"
# The least and the largest value of a metric; others have no bounds.
_RANGES = {
    "auc": (0.0, 1.0),
    "error": (0.0, 1.0),
    "balanced_accuracy": (0.0, 1.0),
    "log_loss": (0.0, np.inf),
}
_SCORERS = {name: name for name in MEASURES}


@dataclass(frozen=True)
class CandidateScores:
    """The performance of one candidate; see `compare`.

    Attributes
    ----------
    name, kind : str
        Its name; "baseline", "rules" (not tested), "invariant" (rules tested for invariance),
        "trees" (our trees and forests), "scores" (our points scores) or "other".
    by_rows, by_environment : tuple of dict
        AUC, log loss, calibration slope and intercept, error and balanced accuracy (at 0.5; of
        rule sets by their rules) in each fold of rows, and in each held-out environment; None
        where the fit failed, or a metric is undefined.
    gain : tuple of float
        By rows: the error of the baseline minus that of the candidate, with its 95% interval.
    seconds : float
        Mean time of a fit.
    model : str or None
        The rules learned from all rows, or the size of a tree; None for other classifiers.
    failure : str or None
        Why a fit failed.
    """

    name: str
    kind: str
    by_rows: tuple[Values | None, ...]
    by_environment: tuple[Values | None, ...]
    gain: tuple[float, float, float] | None
    seconds: float
    model: str | None
    failure: str | None

    @property
    def rows(self) -> Values:
        """Means over the folds of rows; None where a fit failed."""
        return average_values(self.by_rows, MEASURES)

    @property
    def environments(self) -> Values:
        """Unweighted means over the held-out environments."""
        return average_values(self.by_environment, MEASURES)

    @property
    def intervals(self) -> dict[str, tuple[float, float] | None]:
        """95% interval of each mean over environments; None without two.

        By their spread:  mean +- t s / sqrt(k)  over k environments, t with k - 1 degrees of
        freedom.
        """
        return {
            name: None if mean is None else self._bound_mean(name, mean)
            for name, mean in self.environments.items()
        }

    def _bound_mean(self, name: str, mean: float) -> tuple[float, float] | None:
        """Return the interval of a metric's mean, within the range of its values."""
        values = self._list_values(name)
        n_values = len(values)
        if n_values < 2:
            return None
        standard_error = float(np.std(values, ddof=1)) / np.sqrt(n_values)
        t = float(special.stdtrit(n_values - 1, 1 - ALPHA / 2))
        half_width = t * standard_error
        lowest, highest = _RANGES.get(name, (-np.inf, np.inf))
        return max(mean - half_width, lowest), min(mean + half_width, highest)

    @property
    def worst(self) -> Values:
        """The worst value of each metric over the held-out environments."""
        return {
            name: None if mean is None else self._find_worst(name)
            for name, mean in self.environments.items()
        }

    def _find_worst(self, name: str) -> float:
        """Return a metric's value where it is worst."""
        return max(self._list_values(name), key=lambda value: _measure_loss(name, value))

    def _list_values(self, name: str) -> list[float]:
        """List a metric's values in the environments where it is defined."""
        known = [values[name] for values in self.by_environment if values is not None]
        return [value for value in known if value is not None]

    @property
    def summaries(self) -> dict[str, Values]:
        """Each summary of the values, by name."""
        return {"rows": self.rows, "environments": self.environments, "worst": self.worst}

    def to_row(self) -> dict[str, Any]:
        """Return the row of `Comparison.to_frame`."""
        row: dict[str, Any] = {"candidate": self.name}
        intervals = self.intervals
        for summary, values in self.summaries.items():
            for measure in MEASURES:
                row[f"{summary}_{measure}"] = values[measure]
                if summary == "environments":
                    low, high = intervals[measure] or (None, None)
                    row[f"{summary}_{measure}_low"] = low
                    row[f"{summary}_{measure}_high"] = high
        row["fit_seconds"] = self.seconds
        row["model"] = self.model
        return row

    def to_dict(self, environments: Sequence[str]) -> dict[str, Any]:
        """Return all of it but the folds of rows as plain values, with names of environments."""
        by_environment: list[dict[str, Any] | None] = []
        for environment, values in zip(environments, self.by_environment, strict=True):
            row = None if values is None else {"environment": environment, **values}
            by_environment.append(row)
        return {
            "name": self.name,
            "kind": self.kind,
            "by_environment": by_environment,
            "gain": self.gain,
            "model": self.model,
            "failure": self.failure,
            "fit_seconds": self.seconds,
            **self.summaries,
            "intervals": self.intervals,
        }


def _measure_loss(name: str, value: float) -> float:
    """Return how bad a value of a metric is: the larger, the worse."""
    if name in ("error", "log_loss"):
        return value
    if name == "slope":  # of calibration, at best 1
        return abs(value - 1)
    if name == "intercept":  # of calibration, at best 0
        return abs(value)
    return -value


@dataclass(frozen=True)
class Comparison:
    """Candidates compared on the same folds; see `compare`.

    Attributes
    ----------
    candidates : tuple of CandidateScores
        The majority-class baseline first.
    environments : tuple
        Those that were held out, one at a time.
    kept_in : dict
        Rows and positive rows of the environments too small to be held out.
    dropped : dict
        Why columns were dropped for all candidates, by name.
    n_rows, n_positive, n_folds : int
        Of the table, and folds of rows.

    Examples
    --------
    >>> from icscm import compare
    >>> from icscm.datasets import make_conjunction
    >>> data = make_conjunction(500, n_environments=3, random_state=1)
    >>> comparison = compare(
    ...     data.X, data.y, environments=data.environments, candidates=["logistic"]
    ... )
    >>> [candidate.name for candidate in comparison.candidates], comparison.n_rows
    (['baseline', 'logistic'], 1500)
    """

    candidates: tuple[CandidateScores, ...]
    environments: tuple[Any, ...]
    kept_in: dict[Any, tuple[int, int]]
    dropped: dict[str, str]
    n_rows: int
    n_positive: int
    n_folds: int

    def to_frame(self) -> pd.DataFrame:
        """Return a row for each candidate: by rows, by environment, the worst, and seconds.

        Means over held-out environments have a 95% interval, `environments_auc_low` and so on.
        """
        frame = pd.DataFrame([candidate.to_row() for candidate in self.candidates])
        numbers = [name for name in frame if name not in ("candidate", "model")]
        return frame.astype(dict.fromkeys(numbers, float))

    def to_markdown(self, facts: Sequence[Fact] = ()) -> str:
        """Write tables, rules and conclusions in Markdown, below facts about the data."""
        return render_markdown(self.write_document(facts))

    def write_document(self, facts: Sequence[Fact] = ()) -> Document:
        """Write tables, rules and conclusions as blocks, below facts about the data."""
        return write_document(self.to_dict(), facts, format_score)

    def to_dict(self) -> dict[str, Any]:
        """Return the whole comparison as plain values."""
        names = [str(label) for label in self.environments]
        small_environments = [
            {"environment": str(label), "n_rows": n_rows, "n_positive": n_positive}
            for label, (n_rows, n_positive) in self.kept_in.items()
        ]
        return {
            "candidates": [candidate.to_dict(names) for candidate in self.candidates],
            "environments": names,
            "kept_in": small_environments,
            "dropped": self.dropped,
            "n_rows": self.n_rows,
            "n_positive": self.n_positive,
            "n_folds": self.n_folds,
            "conclusions": list(self.conclusions),
        }

    @property
    def conclusions(self) -> tuple[str, ...]:
        """The results in sentences: AUC and calibration first, then the error at 0.5."""
        n_left_out = len(self.environments)
        lines = describe_comparison(
            self.candidates,
            n_left_out=n_left_out,
            n_environments=n_left_out + len(self.kept_in),
        )
        return tuple(lines)

    def plot(self) -> Figure:
        """Draw AUC, log loss, calibration slope and error, by rows and by environment."""
        names = [candidate.name for candidate in self.candidates]
        rows_by_measure: dict[str, list[ScoreRow]] = {measure: [] for measure in DRAWN}
        for candidate in self.candidates:
            by_rows = candidate.rows
            by_environment = candidate.environments
            worst = candidate.worst
            for measure, rows in rows_by_measure.items():
                row = ScoreRow(
                    by_rows=by_rows[measure],
                    by_environment=by_environment[measure],
                    worst=worst[measure],
                )
                rows.append(row)
        return draw_comparison(names, rows_by_measure, titles=TITLES)


@data_by_name
def compare(
    X: Any,
    y: Any,
    *,
    environments: Any,
    candidates: Sequence[str] | Mapping[str, Any] | None = None,
    n_folds: int = N_FOLDS,
    min_rows: int = MIN_ROWS,
    min_positives: int = MIN_POSITIVES,
    groups: Any = None,
    random_state: Any = 0,
) -> Comparison:
    """Compare rule sets and other classifiers by cross-validation.

    Each candidate is scored by cross-validation over rows, stratified by outcome and environment,
    and by leave-one-environment-out for each environment that is large enough, as is the
    majority-class baseline. More than 10 environments are held out in 10 parts, and scored one by
    one. Columns that our learners drop, such as identifiers, are dropped for all candidates.

    Parameters
    ----------
    X : array or frame of shape (n_samples, n_features)
        The columns: numbers, text, categories and booleans, missing values among them.
    y, environments : as for `ICSCMClassifier.fit`
        Outcomes of two classes, and the environment of each row.
    candidates : sequence of str or dict, optional
        Names: "scm", "icscm", "icscm-balanced" (p="balanced"), "icscm-exhaustive",
        "icscm-equivalence", each also with "-or" for disjunctions, "tree", "forest" (the invariant
        ones), "score", and scikit-learn's "plain-tree" (of at most 16 leaves), "plain-forest",
        "logistic", "boosting"; or "all". By default icscm, icscm-balanced, tree, forest, logistic
        and boosting. Or a dict of classifiers by name, which are passed
        X unchanged.
    n_folds : int, default=3
        Folds of rows.
    min_rows, min_positives : int, default=200 and 20
        Environments with fewer rows, or fewer positive ones, are not held out.
    groups : array-like of shape (n_samples,), str or list of str, optional
        Rows that belong together, such as those of a patient: never in training and test rows of
        one fold. Intervals of differences treat groups as independent, not rows.
    random_state : int, RandomState, Generator or None, default=0
        Random seed of the folds. By default all studies have the same, so that results of
        learners compared one by one are on the same folds; None draws others each time.

    Returns
    -------
    Comparison
        The scores, with `to_frame()`, `plot()` and `conclusions`, a list of sentences.

    Raises
    ------
    IcscmError
        If the table, a name or a number cannot be used. A candidate whose fit fails on a fold has
        no scores there; `failure` is the reason.

    Examples
    --------
    >>> from icscm import compare
    >>> from icscm.datasets import make_conjunction
    >>> data = make_conjunction(n_environments=3, random_state=1)
    >>> names = ["icscm", "logistic"]
    >>> comparison = compare(data.X, data.y, environments=data.environments, candidates=names)
    >>> comparison.to_frame()[["candidate", "rows_error", "environments_error"]].round(2)
      candidate  rows_error  environments_error
    0  baseline        0.13                0.13
    1     icscm        0.03                0.03
    2  logistic        0.03                0.03
    """
    check_value("n_folds", n_folds, allow("int [2, inf)"))
    check_value("min_rows", min_rows, allow("int [2, inf)"))
    check_value("min_positives", min_positives, allow("int [0, inf)"))
    estimators = choose_candidates(candidates)
    cohort = make_cohort(X, y, environments=environments, groups=groups)
    check_several(cohort.environment_labels)
    cohort, dropped = drop_columns(cohort)

    is_large = _find_large_environments(cohort, min_rows=min_rows, min_positives=min_positives)
    folds = _cut_folds(cohort, n_folds=n_folds, random_state=random_state, is_large=is_large)
    with warnings.catch_warnings(action="ignore"):  # the scores of a fold describe its problems
        results = _fit_and_score(estimators, cohort, folds)
        fits_of_all_rows = _fit_ours_to_all_rows(estimators, cohort)

    scores_of_candidates = [
        _summarize(
            name,
            estimator,
            results=results[name],
            of_all_rows=fits_of_all_rows.get(name),
            gain=_compute_gain(results[BASELINE], results[name], folds.order(cohort.group_codes)),
        )
        for name, estimator in estimators.items()
    ]

    labels = cohort.environment_labels
    large_environments = [labels[code] for code in np.flatnonzero(is_large)]
    return Comparison(
        candidates=tuple(scores_of_candidates),
        environments=tuple(large_environments),
        kept_in=_count_rows_of_environments(cohort, np.flatnonzero(~is_large)),
        dropped=dropped,
        n_rows=len(cohort),
        n_positive=int(cohort.is_positive.sum()),
        n_folds=n_folds,
    )


# --- folds ----------------------------------------------------------------------------------------


def _find_large_environments(cohort: Cohort, *, min_rows: int, min_positives: int) -> BoolArray:
    """Return which environments are large enough to be left out, by code."""
    n_rows = np.bincount(cohort.environment_codes)
    n_positive = np.bincount(cohort.environment_codes, cohort.is_positive)
    return np.asarray((n_rows >= min_rows) & (n_positive >= min_positives))


def _count_rows_of_environments(cohort: Cohort, codes: IntArray) -> dict[Any, tuple[int, int]]:
    """Count the rows and the positive rows of some environments, by label."""
    n_rows = np.bincount(cohort.environment_codes)
    n_positive = np.bincount(cohort.environment_codes, cohort.is_positive)
    return {
        cohort.environment_labels[code]: (int(n_rows[code]), int(n_positive[code]))
        for code in codes
    }


@dataclass(frozen=True)
class _Folds:
    """The folds on which every candidate is scored.

    Attributes
    ----------
    of_rows : list of Fold
        Rows of every environment are left out.
    of_environments : list of list of Fold
        A fold for each environment left out. Those of a list have the same training rows: without
        any of their environments.
    """

    of_rows: list[Fold]
    of_environments: list[list[Fold]]

    def order(self, values: IntArray | None) -> IntArray | None:
        """Return values of the rows in the order in which the folds of rows leave them out."""
        if values is None:
            return None
        return np.concatenate([values[fold.test_rows] for fold in self.of_rows])


def _cut_folds(cohort: Cohort, *, n_folds: int, random_state: Any, is_large: BoolArray) -> _Folds:
    """Cut folds of rows, and of the environments that are large enough."""
    codes_of_rows = cohort.environment_codes
    codes_of_large = codes_of_rows[is_large[codes_of_rows]]
    return _Folds(
        of_rows=leave_out_rows(cohort, n_folds, random_state),
        of_environments=leave_out_parts(cohort, deal_environments(codes_of_large)),
    )


def deal_environments(environment_codes: IntArray) -> list[list[int]]:
    """Return the codes of environments that are left out together, a list for each part.

    From the largest on they are dealt out to the parts in turn, like cards, so that parts are of
    similar size; of equal sizes the one that appears first comes first.
    """
    sizes = np.bincount(environment_codes)
    codes = pd.unique(environment_codes).tolist()  # as they appear
    largest_first = sorted(codes, key=lambda code: -sizes[code])
    n_parts = min(MAX_HELD_OUT, len(codes))
    return [sorted(largest_first[part::MAX_HELD_OUT]) for part in range(n_parts)]


# --- results --------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Result:
    """A candidate on a fold; without scores where its fit failed."""

    fold: Fold
    seconds: float
    failure: Exception | None
    scores: FoldScores | None

    @property
    def values(self) -> Values | None:
        """The scores without their intervals."""
        return None if self.scores is None else self.scores.values


@dataclass(frozen=True)
class _CandidateResults:
    """A candidate on the folds of rows, and on those of environments in the order of codes."""

    by_rows: list[_Result]
    by_environment: list[_Result]


def _fit_and_score(
    estimators: Mapping[str, Any], cohort: Cohort, folds: _Folds
) -> dict[str, _CandidateResults]:
    """Return the results of each candidate on all folds.

    A candidate is fitted once for all folds that have the same training rows. Of a fold all
    candidates are fitted together, since ours share its bins.
    """
    results: dict[str, list[_Result]] = {name: [] for name in estimators}
    folds_by_fit = [[fold] for fold in folds.of_rows] + folds.of_environments
    for folds_of_fit in track(folds_by_fit, len(folds_by_fit)):
        fits = fit_fold(estimators.values(), cohort, folds_of_fit[0])
        for name, fitted in zip(estimators, fits, strict=True):
            results[name] += [_score(fitted, cohort, fold) for fold in folds_of_fit]
    return {name: _sort_results(results[name], cohort) for name in estimators}


def _score(fitted: Fitted, cohort: Cohort, fold: Fold) -> _Result:
    """Score a fit on the test rows of a fold, unless it failed."""
    scores = None
    if fitted.failure is None:
        scores = score_fold(fitted, cohort, fold, _SCORERS)
    return _Result(fold=fold, seconds=fitted.seconds, failure=fitted.failure, scores=scores)


def _sort_results(results: Sequence[_Result], cohort: Cohort) -> _CandidateResults:
    """Separate the folds of rows from those of environments, and sort these by code."""

    def find_code(result: _Result) -> int:
        return int(cohort.environment_codes[result.fold.test_rows[0]])

    by_rows = [result for result in results if result.fold.environment is None]
    by_environment = [result for result in results if result.fold.environment is not None]
    return _CandidateResults(by_rows=by_rows, by_environment=sorted(by_environment, key=find_code))


def _fit_ours_to_all_rows(estimators: Mapping[str, Any], cohort: Cohort) -> dict[str, Fitted]:
    """Fit our learners to the whole table, whose models the comparison shows."""
    ours = {
        name: estimator
        for name, estimator in estimators.items()
        if isinstance(estimator, BaseRuleClassifier)
    }
    fits = fit_fold(ours.values(), cohort, make_fold_of_all_rows(cohort))
    return dict(zip(ours, fits, strict=True))


def _compute_gain(
    baseline: _CandidateResults, candidate: _CandidateResults, groups: IntArray | None
) -> tuple[float, float, float] | None:
    """Return the error of the baseline less that of a candidate by rows, with its 95% interval.

    The mean of the differences d of n rows:  mean(d) +- 1.96 sd(d) / sqrt(n). With groups, the
    variance is that of sums over groups (Liang and Zeger 1986). None where a fit failed.
    """
    baseline_errors = _join_errors(baseline.by_rows)
    errors = _join_errors(candidate.by_rows)
    if baseline_errors is None or errors is None:
        return None

    d = baseline_errors.astype(np.int64) - errors
    n = len(d)
    mean = float(d.mean())
    if groups is None:
        half_width = Z * float(d.std()) / np.sqrt(n)
    else:
        influence = (d - mean) / n
        half_width = compute_group_variance(influence, groups).half_width
    return mean, mean - half_width, mean + half_width


def _join_errors(results: Sequence[_Result]) -> BoolArray | None:
    """Return whether each row is predicted wrongly, fold by fold; None where a fit failed."""
    errors = [result.scores.is_wrong for result in results if result.scores is not None]
    if len(errors) < len(results):
        return None
    return np.concatenate(errors)


def _summarize(
    name: str,
    estimator: Any,
    *,
    results: _CandidateResults,
    of_all_rows: Fitted | None,
    gain: tuple[float, float, float] | None,
) -> CandidateScores:
    """Summarize the results of a candidate, with the model that it learns from all rows.

    Only our learners are fitted to all rows; of others `of_all_rows` is None. Any fit may fail.
    """
    fits: list[_Result | Fitted] = [*results.by_rows, *results.by_environment]
    if of_all_rows is not None:
        fits.append(of_all_rows)
    seconds = [fit.seconds for fit in fits if fit.failure is None]
    failures = [fit.failure for fit in fits if fit.failure is not None]

    model = None
    if of_all_rows is not None and of_all_rows.failure is None:
        model = describe_estimator(of_all_rows.estimator)
    return CandidateScores(
        name=name,
        kind=_find_kind(name, estimator),
        by_rows=tuple(result.values for result in results.by_rows),
        by_environment=tuple(result.values for result in results.by_environment),
        gain=gain,
        seconds=float(np.mean(seconds)) if seconds else np.nan,
        model=model,
        failure=_describe_failure(failures[-1]) if failures else None,
    )


def _find_kind(name: str, estimator: Any) -> str:
    """Return which kind of candidate it is, as named in `CandidateScores`."""
    if name == BASELINE:
        return "baseline"
    if isinstance(estimator, BaseTreeClassifier):
        return "trees"
    if isinstance(estimator, InvariantScoreClassifier):
        return "scores"
    if isinstance(estimator, BaseRuleClassifier):
        return "invariant" if estimator.tests_invariance else "rules"
    return "other"


def _describe_failure(failure: Exception) -> str:
    """Return our own message as it is, another's with the name of the error."""
    if isinstance(failure, IcscmError):
        return str(failure)
    return f"{type(failure).__name__}: {failure}"
