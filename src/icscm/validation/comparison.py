"""Rule sets and other classifiers compared on the same folds: scores, sentences, a figure."""

import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from icscm._changes import data_by_name
from icscm._lazy import special
from icscm._types import BoolArray, IntArray
from icscm.drawing import Figure
from icscm.drawing.axes import make_number_axis
from icscm.drawing.columns import (
    PlotColumn,
    ScoreRow,
    draw_columns,
    draw_score_key,
    draw_score_row,
)
from icscm.drawing.intervals import Background
from icscm.drawing.shapes import place_below
from icscm.estimators.base import BaseRuleClassifier
from icscm.estimators.score import InvariantScoreClassifier
from icscm.estimators.tree import BaseTreeClassifier
from icscm.exceptions import IcscmError
from icscm.parameters import allow, check_value
from icscm.progress import track
from icscm.report.blocks import Document
from icscm.report.documents.comparison import write_document
from icscm.report.markdown import render_markdown
from icscm.report.wording.comparison import describe_comparison
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
# With more environments, they are held out in so many parts.
MAX_HELD_OUT = 10
# Scores in environments with fewer rows, or fewer positive ones, are too noisy.
MIN_ROWS, MIN_POSITIVES = 200, 20
MEASURES = "auc", "log_loss", "slope", "intercept", "error", "balanced_accuracy"
DRAWN = "auc", "log_loss", "slope", "error"
# How bad a value of a metric is; of other metrics smaller values are worse.
_LOSSES: dict[str, Callable[[float], float]] = {
    "error": float,
    "log_loss": float,
    "slope": lambda value: abs(value - 1),
    "intercept": abs,
}
# The least and the largest value of a metric; others have no bounds.
_RANGES = {
    "auc": (0.0, 1.0),
    "error": (0.0, 1.0),
    "balanced_accuracy": (0.0, 1.0),
    "log_loss": (0.0, np.inf),
}
_BEST = {"auc": "more is better", "slope": "1 is best", "error": "at 0.5, less is better"}
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
        values = self._list_values(name)
        n_values = len(values)
        if n_values < 2:
            return None
        standard_error = float(np.std(values, ddof=1)) / np.sqrt(n_values)
        half_width = float(special.stdtrit(n_values - 1, 1 - ALPHA / 2)) * standard_error
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
        return max(self._list_values(name), key=_LOSSES.get(name, lambda value: -value))

    def _list_values(self, name: str) -> list[float]:
        """List a metric's values in the environments where it is defined."""
        known = [values[name] for values in self.by_environment if values is not None]
        return [value for value in known if value is not None]

    @property
    def summaries(self) -> dict[str, Values]:
        """Each summary of the values, by name."""
        return {"rows": self.rows, "environments": self.environments, "worst": self.worst}

    def to_row(self) -> dict[str, Any]:
        """The row of `Comparison.to_frame`."""
        row: dict[str, Any] = {"candidate": self.name}
        intervals = self.intervals
        for summary, values in self.summaries.items():
            for measure in MEASURES:
                row[f"{summary}_{measure}"] = values[measure]
                if summary == "environments":
                    low, high = intervals[measure] or (None, None)
                    row[f"{summary}_{measure}_low"] = low
                    row[f"{summary}_{measure}_high"] = high
        return {**row, "fit_seconds": self.seconds, "model": self.model}

    def to_dict(self, environments: Sequence[str]) -> dict[str, Any]:
        """All of it but the folds of rows, as plain values, given the names of environments."""
        by_environment = [
            None if values is None else {"environment": environment, **values}
            for environment, values in zip(environments, self.by_environment, strict=True)
        ]
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
    >>> found = compare(data.X, data.y, environments=data.environments, candidates=["logistic"])
    >>> [each.name for each in found.candidates], found.n_rows
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
        """A row for each candidate: by rows, by environment, the worst of these, and seconds.

        Means over held-out environments have a 95% interval, `environments_auc_low` and so on.
        """
        frame = pd.DataFrame([candidate.to_row() for candidate in self.candidates])
        numbers = [name for name in frame if name not in ("candidate", "model")]
        return frame.astype(dict.fromkeys(numbers, float))

    def to_markdown(self, facts: Sequence[Sequence[str]] = ()) -> str:
        """Tables, rules and conclusions in Markdown, below facts about the data."""
        return render_markdown(self.write_document(facts))

    def write_document(self, facts: Sequence[Sequence[str]] = ()) -> Document:
        """Tables, rules and conclusions as blocks, below facts about the data."""
        return write_document(self.to_dict(), facts, format_score)

    def to_dict(self) -> dict[str, Any]:
        """All of it, as plain values; environments are listed by position."""
        names = [str(label) for label in self.environments]
        return {
            "candidates": [candidate.to_dict(names) for candidate in self.candidates],
            "environments": names,
            "kept_in": [
                {"environment": str(label), "n_rows": n_rows, "n_positive": n_positive}
                for label, (n_rows, n_positive) in self.kept_in.items()
            ],
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
        """AUC, log loss, calibration slope and error, by rows and by environment."""
        names = [candidate.name for candidate in self.candidates]
        panel = draw_columns(names, [self._make_column(name) for name in DRAWN], draw_score_row)
        key = draw_score_key(panel.width)
        return Figure(
            place_below([key, panel], gap=4.0),
            "Scores of each candidate, by rows and environments.",
        )

    def _make_column(self, measure: str) -> PlotColumn[ScoreRow]:
        """Make the plot of a measure; its dashed line is the best slope, or the baseline."""
        rows = [
            ScoreRow(
                by_rows=candidate.rows[measure],
                by_environment=candidate.environments[measure],
                worst=candidate.worst[measure],
            )
            for candidate in self.candidates
        ]
        guide = 1.0 if measure == "slope" else rows[0].by_rows
        scores = [
            score
            for row in rows
            for score in (row.by_rows, row.by_environment, row.worst, guide)
            if score is not None
        ]
        low, high = min(scores, default=0.0), max(scores, default=1.0)
        room = 0.05 * (high - low) or 0.05
        return PlotColumn(
            title=TITLES[measure],
            note=_BEST.get(measure, "less is better"),
            axis=make_number_axis(low - room, high + room),
            background=Background(guide=guide),
            rows=rows,
        )


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

    Each candidate is scored by cross-validation over rows, stratified by label and environment,
    and by leave-one-environment-out for each environment that is large enough, as is the
    majority-class baseline. More than 10 environments are held out in 10 parts, and scored one by
    one. Columns that our learners drop, such as identifiers, are dropped for all candidates.

    Parameters
    ----------
    X : array or frame of shape (n_samples, n_features)
        The features: numbers, text, categories and booleans, missing values among them.
    y, environments : as for `ICSCMClassifier.fit`
        Labels of two classes, and the environment of each sample.
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
        Random seed of the folds.

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
    >>> found = compare(data.X, data.y, environments=data.environments, candidates=names)
    >>> found.to_frame()[["candidate", "rows_error", "environments_error"]].round(2)
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

    folds_of_rows = leave_out_rows(cohort, n_folds, random_state)
    n_rows = np.bincount(cohort.environment_codes)
    n_positive = np.bincount(cohort.environment_codes, cohort.is_positive)
    is_large = (n_rows >= min_rows) & (n_positive >= min_positives)
    large_codes = cohort.environment_codes[is_large[cohort.environment_codes]]
    folds_of_parts = leave_out_parts(cohort, deal_environments(large_codes))

    with warnings.catch_warnings(action="ignore"):  # the scores of a fold describe its problems
        fold_lists = [[fold] for fold in folds_of_rows] + folds_of_parts
        results = _fit_and_score(estimators, cohort, fold_lists)
        fits_of_all_rows = _fit_ours_to_all_rows(estimators, cohort)

    # results of environments in the order of their labels
    test_codes = [cohort.environment_codes[f.test_rows[0]] for part in folds_of_parts for f in part]
    order = np.argsort(test_codes).tolist()
    groups_of_rows = None
    if cohort.group_codes is not None:
        groups_of_rows = np.concatenate([cohort.group_codes[f.test_rows] for f in folds_of_rows])
    baseline_errors = _join_errors(results[BASELINE][:n_folds])
    summaries = []
    for name, estimator in estimators.items():
        by_rows, by_parts = results[name][:n_folds], results[name][n_folds:]
        gain = None
        if all(result.scores is not None for result in by_rows):
            gain = _compute_gain(baseline_errors, _join_errors(by_rows), groups_of_rows)
        summaries.append(
            _summarize(
                name,
                estimator,
                by_rows=by_rows,
                by_environment=[by_parts[position] for position in order],
                of_all_rows=fits_of_all_rows.get(name),
                gain=gain,
            )
        )
    labels = cohort.environment_labels
    return Comparison(
        candidates=tuple(summaries),
        environments=tuple(labels[code] for code in np.flatnonzero(is_large)),
        kept_in={
            labels[code]: (int(n_rows[code]), int(n_positive[code]))
            for code in np.flatnonzero(~is_large)
        },
        dropped=dropped,
        n_rows=len(cohort),
        n_positive=int(cohort.is_positive.sum()),
        n_folds=n_folds,
    )


def deal_environments(environment_codes: IntArray) -> list[list[int]]:
    """Return the codes that are left out together: dealt out by size, then by first appearance."""
    sizes = np.bincount(environment_codes)
    codes = sorted(pd.unique(environment_codes).tolist(), key=lambda code: -sizes[code])
    n_parts = min(MAX_HELD_OUT, len(codes))
    return [sorted(codes[start::MAX_HELD_OUT]) for start in range(n_parts)]


@dataclass(frozen=True)
class _Result:
    """A candidate on a fold; without scores where its fit failed."""

    seconds: float
    failure: Exception | None
    scores: FoldScores | None

    @property
    def values(self) -> Values | None:
        """The scores without their intervals."""
        return None if self.scores is None else self.scores.values


def _fit_and_score(
    estimators: Mapping[str, Any], cohort: Cohort, fold_lists: Sequence[list[Fold]]
) -> dict[str, list[_Result]]:
    """Return the results of each candidate on all folds.

    The folds of a list have the same training rows, so each candidate is fitted once for them.
    """
    results: dict[str, list[_Result]] = {name: [] for name in estimators}
    for folds in track(fold_lists, len(fold_lists)):
        fits = fit_fold(estimators.values(), cohort, folds[0])
        for name, fitted in zip(estimators, fits, strict=True):
            for fold in folds:
                scores = None
                if fitted.failure is None:
                    scores = score_fold(fitted, cohort, fold, _SCORERS)
                results[name].append(_Result(fitted.seconds, fitted.failure, scores))
    return results


def _fit_ours_to_all_rows(estimators: Mapping[str, Any], cohort: Cohort) -> dict[str, Fitted]:
    """Fit our learners to the whole table, whose models the comparison shows."""
    ours = {
        name: estimator
        for name, estimator in estimators.items()
        if isinstance(estimator, BaseRuleClassifier)
    }
    fits = fit_fold(ours.values(), cohort, make_fold_of_all_rows(cohort))
    return dict(zip(ours, fits, strict=True))


def _join_errors(results: Sequence[_Result]) -> BoolArray:
    """Return whether each row is predicted wrongly, fold by fold."""
    return np.concatenate([result.scores.is_wrong for result in results if result.scores])


def _compute_gain(
    baseline_errors: BoolArray, errors: BoolArray, groups: IntArray | None
) -> tuple[float, float, float]:
    """Return the error of the baseline less that of a candidate, with its 95% interval."""
    differences = baseline_errors.astype(np.int64) - errors
    n_rows = len(differences)
    mean = float(differences.mean())
    half_width = Z * float(differences.std()) / np.sqrt(n_rows)
    if groups is not None:
        half_width = compute_group_variance((differences - mean) / n_rows, groups).half_width
    return mean, mean - half_width, mean + half_width


def _summarize(
    name: str,
    estimator: Any,
    *,
    by_rows: Sequence[_Result],
    by_environment: Sequence[_Result],
    of_all_rows: Fitted | None,
    gain: tuple[float, float, float] | None,
) -> CandidateScores:
    """Make the summary of one candidate."""
    results: list[_Result | Fitted] = [*by_rows, *by_environment]
    if of_all_rows is not None:
        results.append(of_all_rows)
    seconds = [result.seconds for result in results if result.failure is None]
    failures = [result.failure for result in results if result.failure is not None]
    model = None
    if of_all_rows is not None and of_all_rows.failure is None:
        model = describe_estimator(of_all_rows.estimator)
    return CandidateScores(
        name=name,
        kind=_find_kind(name, estimator),
        by_rows=tuple(result.values for result in by_rows),
        by_environment=tuple(result.values for result in by_environment),
        gain=gain,
        seconds=float(np.mean(seconds)) if seconds else np.nan,
        model=model,
        failure=_describe_failure(failures[-1]) if failures else None,
    )


def _find_kind(name: str, estimator: Any) -> str:
    """Return which kind of candidate it is, as `CandidateScores.kind` names them."""
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
