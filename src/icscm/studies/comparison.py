"""Candidates side by side: what a short rule costs, and what it gains where it was not learned."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field, replace
from time import perf_counter
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.model_selection import StratifiedKFold

from icscm._types import BoolArray
from icscm.estimators.tree import GrownClassifier
from icscm.exceptions import IcscmError, LeftOutWarning
from icscm.formatting import count
from icscm.parameters import check_value, whole_number
from icscm.sources.countable import BinningConfig, Countable
from icscm.sources.memory import MemorySource, open_memory
from icscm.studies.candidates import choose_candidates
from icscm.studies.classifiers import (
    Cohort,
    Scores,
    compute_scores_of,
    find_rules,
    fit_classifier,
    make_cohort,
    predict_positive,
)
from icscm.studies.scores import TITLES, Z
from icscm.studies.transfer import DEFAULT_SCORERS, average
from icscm.tables.columns import is_frame, open_frame
from icscm.tables.environments import check_several

if TYPE_CHECKING:
    import pandas
    from matplotlib.figure import Figure

N_FOLDS = 5
# Environments with fewer rows, or fewer positive ones, say too little when left out.
MIN_ROWS, MIN_POSITIVES = 200, 20
_WAYS = "rows", "environments", "worst"
MEASURES = {name: name for name in DEFAULT_SCORERS}

# Shows progress: told what is done, in how many parts, and called after each.
Stage = Callable[[str, int], AbstractContextManager[Callable[[], None]]]


@dataclass(frozen=True)
class CandidateScores:
    """How one candidate did; see `compare`.

    Attributes
    ----------
    name, kind : str
        Its name; "constant", "rules" (plain), "invariant" (rules that were tested), "grown" (our
        trees and forests) or "other".
    by_rows, by_environment : tuple of dict
        Error, balanced accuracy and AUC in each fold, and in each environment left out; None
        where it could not be fitted, or a measure has no value.
    gain : tuple of float
        By rows: the constant's error less this one's, with its 95 % interval.
    seconds : float
        To fit it once, on average.
    model : str or None
        The rules that it learns from all rows, of trees in short; None of other classifiers.
    failure : str or None
        Why it could not be fitted somewhere.
    """

    name: str
    kind: str
    by_rows: tuple[Scores | None, ...]
    by_environment: tuple[Scores | None, ...]
    gain: tuple[float, float, float] | None
    seconds: float
    model: str | None
    failure: str | None

    @property
    def rows(self) -> Scores:
        """Averages over folds; None throughout where it failed."""
        return _average(self.by_rows)

    @property
    def environments(self) -> Scores:
        """Averages over the environments left out, whatever their sizes."""
        return _average(self.by_environment)

    @property
    def worst(self) -> Scores:
        """Of each measure its value in the environment that came off worst."""
        found: Scores = dict.fromkeys(MEASURES)
        for name in MEASURES:
            values = [each[name] for each in self.by_environment if each is not None]
            known = [value for value in values if value is not None]
            if known and self.environments[name] is not None:
                found[name] = max(known) if name == "error" else min(known)
        return found


def _format(value: float | None) -> str:
    return "-" if value is None else f"{value:.3f}"


def _average(scores: Sequence[Scores | None]) -> Scores:
    known = [each for each in scores if each is not None]
    # an average over some of the folds would be of other rows than everybody's
    return average(known) if known and len(known) == len(scores) else dict.fromkeys(MEASURES)


@dataclass(frozen=True)
class Comparison:
    """Candidates side by side; see `compare`.

    Attributes
    ----------
    candidates : tuple of CandidateScores
        The constant first.
    environments : tuple
        Those that were left out, one at a time.
    kept_in : dict
        Rows and positive ones of the environments too small to be left out.
    left_out : dict
        Why columns were left out for all candidates, by name.
    n_rows, n_positive, n_folds : int
        Of the table, and folds of rows.
    """

    candidates: tuple[CandidateScores, ...]
    environments: tuple[Any, ...]
    kept_in: dict[Any, tuple[int, int]]
    left_out: dict[str, str]
    n_rows: int
    n_positive: int
    n_folds: int

    def to_frame(self) -> pandas.DataFrame:
        """A row for each candidate: by rows, by environment, the worst of these, and seconds."""
        import pandas

        return pandas.DataFrame(
            {"candidate": each.name}
            | {f"rows_{name}": value for name, value in each.rows.items()}
            | {f"environments_{name}": value for name, value in each.environments.items()}
            | {f"worst_{name}": value for name, value in each.worst.items()}
            | {"fit_seconds": each.seconds, "model": each.model}
            for each in self.candidates
        )

    def to_markdown(self) -> str:
        """The table of `to_frame` without the models, in Markdown."""
        head = ["candidate", *(f"{w} {TITLES[n].lower()}" for w in _WAYS for n in MEASURES)]
        rows = [
            [each.name, *(_format(getattr(each, way)[name]) for way in _WAYS for name in MEASURES)]
            for each in self.candidates
        ]
        lines = [head, ["---", *["---:"] * (len(head) - 1)], *rows]
        return "\n".join(f"| {' | '.join(line)} |" for line in lines) + "\n"

    def to_dict(self) -> dict[str, Any]:
        """All of it, of plain values."""
        names = [str(each) for each in self.environments]
        return {
            "n_rows": self.n_rows,
            "n_positive": self.n_positive,
            "n_folds": self.n_folds,
            "environments": names,
            "kept_in": {str(name): list(sizes) for name, sizes in self.kept_in.items()},
            "left_out": self.left_out,
            "candidates": [
                {
                    "name": each.name,
                    "kind": each.kind,
                    "rows": each.rows,
                    "environments": each.environments,
                    "worst": each.worst,
                    "by_environment": dict(zip(names, each.by_environment, strict=True)),
                    "gain": each.gain,
                    "fit_seconds": each.seconds,
                    "model": each.model,
                    "failure": each.failure,
                }
                for each in self.candidates
            ],
            "conclusions": list(self.conclusions),
        }

    @property
    def conclusions(self) -> tuple[str, ...]:
        """What the numbers say, in sentences."""
        from icscm.studies.conclusions import list_conclusions

        return tuple(list_conclusions(self))

    def plot(self) -> Figure:
        """Error, balanced accuracy and AUC of each candidate, by rows and by environment."""
        from icscm.studies.conclusions import draw_comparison

        return draw_comparison(self)


def compare(
    X: Any,
    y: Any,
    environments: Any,
    candidates: Sequence[str] | Mapping[str, Any] | None = None,
    *,
    n_folds: int = N_FOLDS,
    min_rows: int = MIN_ROWS,
    min_positives: int = MIN_POSITIVES,
    keep_columns: Any = None,
    seed: int = 0,
    stage: Stage | None = None,
) -> Comparison:
    """Set rules and other classifiers side by side: what a short rule costs, and gains.

    Each candidate is fitted without each fold of the rows, and without each environment that is
    large enough, and judged on what was left out, as is the constant: always the more frequent
    class. Folds hold equal shares of each label in each environment. Columns that our learners
    would leave out, such as identifiers, are left out for all.

    Parameters
    ----------
    X : array or frame of shape (n_samples, n_features)
        The features: numbers, text, categories and booleans, missing values among them.
    y, environments : as for `ICSCMClassifier.fit`
        Labels of two classes, and where each sample comes from.
    candidates : sequence of str or dict, optional
        Names: "scm", "icscm", "icscm-exhaustive", "icscm-equivalence", each also with "-or" for
        disjunctions, "invariant-tree", "invariant-forest", and scikit-learn's "tree" (of at most
        16 leaves), "forest", "logistic", "boosting"; by default all. Or a dict of classifiers by
        name, which get X as it is.
    n_folds : int, default=5
        Folds of rows.
    min_rows, min_positives : int, default=200 and 20
        Environments with fewer rows, or fewer positive ones, are not left out.
    keep_columns : "all", str or sequence of str, optional
        As in `ICSCMClassifier`.
    seed : int, default=0
        Of the folds.
    stage : callable, optional
        Shows progress: given words and a number of parts it returns a context manager, that gives
        what is called after each part.

    Returns
    -------
    Comparison
        The scores; `to_frame()` and `plot()` show them, `conclusions` says them in words.

    Raises
    ------
    IcscmError
        If the table, a name or a number cannot be used. A candidate that cannot be fitted
        somewhere has no scores there, and says why in `failure`.

    Examples
    --------
    >>> from icscm import compare
    >>> from icscm.datasets import make_conjunction
    >>> data = make_conjunction(n_environments=3, random_state=1)
    >>> found = compare(data.X, data.y, data.environments, ["icscm", "logistic"])
    >>> found.to_frame()[["candidate", "rows_error", "environments_error"]].round(2)
      candidate  rows_error  environments_error
    0  constant        0.13                0.13
    1     icscm        0.03                0.03
    2  logistic        0.03                0.03
    """
    for name, value in (("n_folds", n_folds), ("min_rows", min_rows)):
        check_value(name, value, whole_number(2))
    check_value("min_positives", min_positives, whole_number(0))
    chosen = choose_candidates(candidates, keep_columns)
    cohort = make_cohort(X, y, environments)
    check_several(cohort.labels)
    cohort, left_out = _leave_out_columns(cohort, keep_columns)
    sizes = _count_sizes(cohort)
    places = [
        k for k, (n, positive) in sizes.items() if n >= min_rows and positive >= min_positives
    ]
    _check_enough(cohort, n_folds)
    trials = [_Trial(name, estimator) for name, estimator in chosen.items()]
    show = stage or (lambda *_: nullcontext(lambda: None))
    with warnings.catch_warnings(action="ignore"):  # what a fold lacks its scores tell
        with show("Comparing by rows", n_folds * len(trials)) as advance:
            for rows in _draw_folds(cohort, n_folds, seed):
                _try_all(trials, cohort, rows, "by_rows", advance)
        if places:
            with show("Leaving environments out", len(places) * len(trials)) as advance:
                for k in places:
                    rows = np.flatnonzero(cohort.numbers == k)
                    _try_all(trials, cohort, rows, "by_environment", advance)
        ours = [each for each in trials if each.is_ours]
        models = {trial.name: find_rules(fitted) for trial, fitted in _fit_all(ours, cohort)}
    return Comparison(
        candidates=tuple(each.finish(trials[0], models.get(each.name)) for each in trials),
        environments=tuple(cohort.labels[k] for k in places),
        kept_in={cohort.labels[k]: size for k, size in sizes.items() if k not in places},
        left_out=left_out,
        n_rows=len(cohort.y),
        n_positive=int(cohort.is_positive.sum()),
        n_folds=n_folds,
    )


@dataclass
class _Trial:
    """A candidate while it is being tried."""

    name: str
    estimator: Any
    by_rows: list[Scores | None] = field(default_factory=list)
    by_environment: list[Scores | None] = field(default_factory=list)
    wrong: list[BoolArray] = field(default_factory=list)
    seconds: list[float] = field(default_factory=list)
    failure: str | None = None

    @property
    def is_ours(self) -> bool:
        return hasattr(self.estimator, "fit_counts")

    def finish(self, constant: _Trial, model: str | None) -> CandidateScores:
        kind = "constant" if self is constant else "other"
        if self.is_ours:
            kind = "invariant" if self.estimator.tests_invariance else "rules"
            kind = "grown" if isinstance(self.estimator, GrownClassifier) else kind
        return CandidateScores(
            name=self.name,
            kind=kind,
            by_rows=tuple(self.by_rows),
            by_environment=tuple(self.by_environment),
            gain=None if None in self.by_rows else _compute_gain(self.wrong, constant.wrong),
            seconds=float(np.mean(self.seconds)) if self.seconds else np.nan,
            model=model,
            failure=self.failure,
        )


def _compute_gain(own: list[BoolArray], constant: list[BoolArray]) -> tuple[float, float, float]:
    """By how much fewer rows are wrong, pair by pair, with its 95 % interval."""
    fewer = np.concatenate(constant).astype(np.int64) - np.concatenate(own)
    mean, reach = float(fewer.mean()), Z * float(fewer.std()) / np.sqrt(len(fewer))
    return mean, mean - reach, mean + reach


def _check_enough(cohort: Cohort, n_folds: int) -> None:
    smallest = min(int(cohort.is_positive.sum()), int((~cohort.is_positive).sum()))
    if smallest < n_folds:
        raise IcscmError(
            f"a class has {count(smallest, 'row')} and there are {n_folds} folds, each of which "
            "needs one; use fewer folds"
        )


def _draw_folds(cohort: Cohort, n_folds: int, seed: int) -> Iterator[NDArray[np.intp]]:
    """The rows of each fold, of which each has equal shares of each label in each environment."""
    cell = 2 * cohort.numbers + cohort.is_positive
    folds = StratifiedKFold(n_folds, shuffle=True, random_state=seed)
    for _, rows in folds.split(cell, cell):
        yield rows


def _try_all(
    trials: list[_Trial],
    cohort: Cohort,
    out: NDArray[np.intp],
    way: str,
    advance: Callable[[], None],
) -> None:
    """Fit all without some rows, and score them there."""
    others = np.delete(np.arange(len(cohort.y)), out)
    inside, outside = cohort.take(others), cohort.take(out)
    for trial, fitted in _fit_all(trials, inside):
        scores = None if fitted is None else compute_scores_of(fitted, outside, MEASURES)
        getattr(trial, way).append(scores)
        if fitted is not None and way == "by_rows":
            trial.wrong.append(predict_positive(fitted, outside) != outside.is_positive)
        advance()


def _fit_all(trials: list[_Trial], inside: Cohort) -> Iterator[tuple[_Trial, Any]]:
    """Each candidate fitted, or None where it cannot be; ours are binned once for all alike."""
    opened: dict[str, _Opened] = {}
    for trial in trials:
        learner: Any = clone(trial.estimator)
        try:
            trial.seconds.append(_fit(learner, inside, opened))
        except MemoryError:
            raise
        except Exception as error:  # a caller's own candidates may raise anything
            kind = "" if isinstance(error, IcscmError) else f"{type(error).__name__}: "
            trial.failure, learner = f"{kind}{error}", None
        yield trial, learner


def _fit(learner: Any, inside: Cohort, opened: dict[str, _Opened]) -> float:
    """Fit; how many seconds that took, or would have without the others."""
    start = perf_counter()
    if not hasattr(learner, "fit_counts"):
        fit_classifier(learner, inside)
        return perf_counter() - start
    preparation = learner.prepare()
    known = opened.get(repr(preparation))
    if known is None:
        samples = open_memory(inside.X, inside.y, inside.environments, preparation=preparation)
        known = opened[repr(preparation)] = _Opened(samples, perf_counter() - start)
        start = perf_counter()
    samples = known.samples
    learner.fit_counts(replace(samples, source=samples.source.start_again()))
    return known.seconds + perf_counter() - start


class _Opened(NamedTuple):
    samples: Countable[MemorySource]
    seconds: float


def _count_sizes(cohort: Cohort) -> dict[int, tuple[int, int]]:
    """Rows and positive ones of each environment."""
    n = np.bincount(cohort.numbers, minlength=len(cohort.labels)).tolist()
    positive = np.bincount(cohort.numbers[cohort.is_positive], minlength=len(n)).tolist()
    return dict(enumerate(zip(n, positive, strict=True)))


def _leave_out_columns(cohort: Cohort, keep: Any) -> tuple[Cohort, dict[str, str]]:
    """Without columns that our learners leave out: nobody is to learn from a copy of the label."""
    if not is_frame(cohort.X):
        return cohort, {}
    with warnings.catch_warnings(action="ignore", category=LeftOutWarning):
        samples = open_memory(
            cohort.X, cohort.y, cohort.environments, preparation=BinningConfig(keep_columns=keep)
        )
    frame = open_frame(cohort.X)
    found = {} if samples.table is None else samples.table.dropped
    left_out = {frame.columns[j]: why for j, why in found.items()}
    return cohort._replace(X=frame.drop(list(left_out)).to_native()), left_out
