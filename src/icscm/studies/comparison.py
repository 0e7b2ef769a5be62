"""Rule sets and other classifiers compared on the same folds."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.model_selection import StratifiedKFold

from icscm._types import BoolArray
from icscm.estimators.tree import BaseTreeClassifier
from icscm.exceptions import IcscmError, LeftOutWarning
from icscm.parameters import allow, check_value
from icscm.sources.countable import BinningConfig
from icscm.sources.memory import open_memory
from icscm.studies.candidates import choose_candidates
from icscm.studies.conclusions import MEASURES, CandidateScores, draw_comparison, list_conclusions
from icscm.studies.folds import (
    Cohort,
    FoldResult,
    check_folds,
    describe_model,
    fit_and_score,
    make_cohort,
)
from icscm.studies.scores import TITLES, Z
from icscm.tables.columns import is_frame, open_frame
from icscm.tables.labels import check_several

if TYPE_CHECKING:
    import pandas
    from matplotlib.figure import Figure

N_FOLDS = 5
# Scores in environments with fewer rows, or fewer positive ones, are too noisy.
MIN_ROWS, MIN_POSITIVES = 200, 20
_WAYS = "rows", "environments", "worst"
_SCORERS = {name: name for name in MEASURES}

# Shows progress: called with a text and a number of parts; its value is called after each part.
Stage = Callable[[str, int], AbstractContextManager[Callable[[], None]]]


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
        Rows and positive ones of the environments too small to be held out.
    dropped : dict
        Why columns were dropped for all candidates, by name.
    n_rows, n_positive, n_folds : int
        Of the table, and folds of rows.
    """

    candidates: tuple[CandidateScores, ...]
    environments: tuple[Any, ...]
    kept_in: dict[Any, tuple[int, int]]
    dropped: dict[str, str]
    n_rows: int
    n_positive: int
    n_folds: int

    def to_frame(self) -> pandas.DataFrame:
        """A row for each candidate: by rows, by environment, the worst of these, and seconds."""
        import pandas

        return pandas.DataFrame(
            {"candidate": each.name}
            | {f"{w}_{name}": getattr(each, w)[name] for w in _WAYS for name in MEASURES}
            | {"fit_seconds": each.seconds, "model": each.model}
            for each in self.candidates
        )

    def to_markdown(self) -> str:
        """The table of `to_frame` without the models, in Markdown."""
        titles = [f"{way} {TITLES[name].lower()}" for way in _WAYS for name in MEASURES]
        lines = [["candidate", *titles], ["---", *["---:"] * len(titles)]]
        for each in self.candidates:
            values = [getattr(each, way)[name] for way in _WAYS for name in MEASURES]
            lines.append([each.name, *("-" if v is None else f"{v:.3f}" for v in values)])
        return "\n".join(f"| {' | '.join(line)} |" for line in lines) + "\n"

    def to_dict(self) -> dict[str, Any]:
        """All of it, as plain values."""
        names = [str(each) for each in self.environments]
        candidates = []
        for each in self.candidates:
            plain = asdict(each)
            del plain["by_rows"]
            plain["fit_seconds"] = plain.pop("seconds")
            plain |= {"rows": each.rows, "environments": each.environments, "worst": each.worst}
            plain["by_environment"] = dict(zip(names, each.by_environment, strict=True))
            candidates.append(plain)
        kept_in = {str(name): list(sizes) for name, sizes in self.kept_in.items()}
        own = {"environments": names, "kept_in": kept_in, "candidates": candidates}
        return vars(self) | own | {"conclusions": list(self.conclusions)}

    @property
    def conclusions(self) -> tuple[str, ...]:
        """The results in sentences."""
        return tuple(list_conclusions(self.candidates))

    def plot(self) -> Figure:
        """Error, balanced accuracy and AUC of each candidate, by rows and by environment."""
        return draw_comparison(self.candidates)


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
    """Compare rule sets and other classifiers by cross-validation.

    Each candidate is scored by cross-validation over rows, stratified by label and environment,
    and by leave-one-environment-out for each environment that is large enough, as is the
    majority-class baseline. Columns that our learners drop, such as identifiers, are dropped for
    all candidates.

    Parameters
    ----------
    X : array or frame of shape (n_samples, n_features)
        The features: numbers, text, categories and booleans, missing values among them.
    y, environments : as for `ICSCMClassifier.fit`
        Labels of two classes, and the environment of each sample.
    candidates : sequence of str or dict, optional
        Names: "scm", "icscm", "icscm-exhaustive", "icscm-equivalence", each also with "-or" for
        disjunctions, "invariant-tree", "invariant-forest", and scikit-learn's "tree" (of at most
        16 leaves), "forest", "logistic", "boosting"; all by default. Or a dict of classifiers by
        name, which are passed X unchanged.
    n_folds : int, default=5
        Folds of rows.
    min_rows, min_positives : int, default=200 and 20
        Environments with fewer rows, or fewer positive ones, are not held out.
    keep_columns : "all", str or sequence of str, optional
        As in `ICSCMClassifier`.
    seed : int, default=0
        Random seed of the folds.
    stage : callable, optional
        Shows progress: called with a text and a number of parts, it returns a context manager
        whose value is called after each part.

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
    >>> found = compare(data.X, data.y, data.environments, ["icscm", "logistic"])
    >>> found.to_frame()[["candidate", "rows_error", "environments_error"]].round(2)
      candidate  rows_error  environments_error
    0  baseline        0.13                0.13
    1     icscm        0.03                0.03
    2  logistic        0.03                0.03
    """
    for name, value in (("n_folds", n_folds), ("min_rows", min_rows)):
        check_value(name, value, allow("int [2, inf)"))
    check_value("min_positives", min_positives, allow("int [0, inf)"))
    chosen = choose_candidates(candidates, keep_columns)
    cohort = make_cohort(X, y, environments)
    check_several(cohort.labels)
    cohort, dropped = _drop_columns(cohort, keep_columns)
    check_folds(cohort, n_folds)
    sizes = np.bincount(cohort.numbers), np.bincount(cohort.numbers, cohort.is_positive)
    is_large = (sizes[0] >= min_rows) & (sizes[1] >= min_positives)
    show = stage or (lambda *_: nullcontext(lambda: None))

    def run(words: str, folds: Sequence[BoolArray]) -> list[list[FoldResult]]:
        """The results of each candidate, fold by fold, without the fitted estimators."""
        results: list[list[FoldResult]] = [[] for _ in chosen]
        if not folds:
            return results
        with show(words, len(folds) * len(chosen)) as advance:
            for is_test in folds:
                found = fit_and_score(chosen.values(), *cohort.split(is_test), _SCORERS)
                for own, each in zip(results, found, strict=True):
                    own.append(each._replace(fitted=None))
                    advance()
        return results

    cell = 2 * cohort.numbers + cohort.is_positive
    splits = StratifiedKFold(n_folds, shuffle=True, random_state=seed)
    with warnings.catch_warnings(action="ignore"):  # the scores of a fold describe its problems
        rows = [np.isin(np.arange(len(cell)), test) for _, test in splits.split(cell, cell)]
        by_rows = run("Comparing by rows", rows)
        places = [cohort.numbers == k for k in np.flatnonzero(is_large)]
        by_environment = run("Holding out environments", places)
        ours = {name: each for name, each in chosen.items() if hasattr(each, "fit_counts")}
        whole = dict(zip(ours, fit_and_score(ours.values(), cohort, None, {}), strict=True))
    parts = zip(chosen, chosen.values(), by_rows, by_environment, strict=True)
    labels = list(enumerate(cohort.labels))
    return Comparison(
        candidates=tuple(_summarize(*part, whole.get(part[0]), by_rows[0]) for part in parts),
        environments=tuple(label for k, label in labels if is_large[k]),
        kept_in={e: (int(sizes[0][k]), int(sizes[1][k])) for k, e in labels if not is_large[k]},
        dropped=dropped,
        n_rows=len(cohort.y),
        n_positive=int(cohort.is_positive.sum()),
        n_folds=n_folds,
    )


def _summarize(
    name: str,
    estimator: Any,
    by_rows: list[FoldResult],
    by_environment: list[FoldResult],
    whole: FoldResult | None,
    baseline: list[FoldResult],
) -> CandidateScores:
    """The scores of one candidate; `whole` is its fit to all rows."""
    kind, gain, failure = "baseline" if by_rows is baseline else "other", None, None
    if hasattr(estimator, "fit_counts"):
        kind = "invariant" if estimator.tests_invariance else "rules"
        kind = "trees" if isinstance(estimator, BaseTreeClassifier) else kind
    if all(each.failure is None for each in by_rows):
        wrong = [np.concatenate([each.is_wrong for each in own]) for own in (baseline, by_rows)]
        fewer = wrong[0].astype(np.int64) - wrong[1]
        mean, reach = float(fewer.mean()), Z * float(fewer.std()) / np.sqrt(len(fewer))
        gain = mean, mean - reach, mean + reach
    results = [*by_rows, *by_environment, *([] if whole is None else [whole])]
    seconds = [each.seconds for each in results if each.failure is None]
    for error in (each.failure for each in results if each.failure is not None):
        what = "" if isinstance(error, IcscmError) else f"{type(error).__name__}: "
        failure = f"{what}{error}"
    return CandidateScores(
        name=name,
        kind=kind,
        by_rows=tuple(each.scores for each in by_rows),
        by_environment=tuple(each.scores for each in by_environment),
        gain=gain,
        seconds=float(np.mean(seconds)) if seconds else np.nan,
        model=None if whole is None or whole.fitted is None else describe_model(whole.fitted),
        failure=failure,
    )


def _drop_columns(cohort: Cohort, keep: Any) -> tuple[Cohort, dict[str, str]]:
    """Without the columns that our learners drop, such as a copy of the label."""
    if not is_frame(cohort.X):
        return cohort, {}
    with warnings.catch_warnings(action="ignore", category=LeftOutWarning):
        samples = open_memory(
            cohort.X, cohort.y, cohort.environments, preparation=BinningConfig(keep_columns=keep)
        )
    frame = open_frame(cohort.X)
    found = {} if samples.table is None else samples.table.dropped
    dropped = {frame.columns[j]: why for j, why in found.items()}
    return cohort._replace(X=frame.drop(list(dropped)).to_native()), dropped
