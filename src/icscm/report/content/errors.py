"""Errors of a model in training, or of a forest out of bag, beside those of the baseline."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from icscm._constants import SPARSE_ENVIRONMENT
from icscm._types import BoolArray, CountArray
from icscm.model.score import Score
from icscm.model.tree import Tree
from icscm.report.content.rates import compute_intervals, find_extreme_rows
from icscm.report.formatting import Names
from icscm.stats.ranking import compute_auc_of_counts


@dataclass(frozen=True, kw_only=True)
class ErrorRate:
    """How many rows are predicted wrongly; shares are None without rows of the class."""

    n: int
    n_errors: int
    error: float | None
    error_interval: list[float] | None
    majority_error: float | None
    sensitivity: float | None = None
    specificity: float | None = None
    ppv: float | None = None
    auc: float | None = None
    brier: float | None = None


@dataclass(frozen=True, kw_only=True)
class ErrorInEnvironment(ErrorRate):
    """The errors in one environment."""

    environment: str


@dataclass(frozen=True, kw_only=True)
class Errors(ErrorRate):
    """Errors overall and by environment.

    Parameters
    ----------
    is_out_of_bag : bool
        Whether rows were predicted by the trees that were not grown on them.
    p : float or str
        The misclassification cost ratio that the model was learned with.
    beats_majority, majority_class, majority_is_positive : bool, str, bool
        Whether the error is below that of the majority-class baseline, and what it predicts.
    environments : list of ErrorInEnvironment
        In the order of the counts.
    worst, best : ErrorInEnvironment or None
        None where there are not two environments to compare.
    n_contrary, contrary_leaves : int, list of int
        Rows whose prediction contradicts their probability, and the leaves that they are in.
    """

    is_out_of_bag: bool
    p: Any
    beats_majority: bool
    majority_class: str
    majority_is_positive: bool
    environments: list[ErrorInEnvironment]
    worst: ErrorInEnvironment | None
    best: ErrorInEnvironment | None
    n_contrary: int = 0
    contrary_leaves: list[int]


@dataclass(frozen=True, kw_only=True)
class Confusion:
    """Numbers of rows by true class, and of those that are predicted correctly."""

    n_negative: int
    n_positive: int
    n_true_negatives: int
    n_true_positives: int

    @property
    def n(self) -> int:
        """How many rows there are."""
        return self.n_negative + self.n_positive

    @property
    def n_errors(self) -> int:
        """How many rows are predicted wrongly."""
        return self.n - self.n_true_negatives - self.n_true_positives

    @property
    def n_predicted_positive(self) -> int:
        """How many rows are predicted to be positive, rightly or not."""
        n_false_positives = self.n_negative - self.n_true_negatives
        return self.n_true_positives + n_false_positives


def make_errors(model: Tree | Score, names: Names, p: Any = 1.0) -> Errors:
    """Return the errors on the training data, exact from the counts of the leaves.

    They are measured in each environment, and in all rows as if these were one environment.
    """
    counts = np.array(model.leaves, dtype=np.int64)  # (leaf, label, environment)
    majority = find_majority(counts.sum(axis=0))
    is_positive_leaf = model.leaf_verdicts
    confusions = count_confusions(counts, is_positive_leaf=is_positive_leaf)
    errors_of_environments = measure_errors(confusions, majority)

    counts_by_label = counts.sum(axis=2)
    counts_of_all = counts_by_label[:, :, np.newaxis]
    confusions_of_all = count_confusions(counts_of_all, is_positive_leaf=is_positive_leaf)
    (overall,) = measure_errors(confusions_of_all, majority)
    auc = compute_auc_of_counts(counts_by_label, model.leaf_probabilities())
    return compare_environments(
        replace(overall, auc=auc),
        errors_of_environments,
        names=names,
        majority=majority,
        is_out_of_bag=False,
        p=p,
        n_contrary_of_leaves=model.count_contrary(),
    )


def make_out_of_bag_errors(learner: Any, names: Names) -> Errors:
    """Return the errors of a forest on the rows that some of its trees were not grown on.

    The baseline, which always predicts the majority, errs on the rows of the other label. Its
    errors are those on all rows, since it has no trees to leave out.
    """
    totals = np.array(learner.class_counts_, dtype=np.int64)  # (label, environment)
    majority = find_majority(totals)
    n_minority = totals[1 - majority]
    sizes = totals.sum(axis=0)
    baseline_error = float(n_minority.sum() / totals.sum())
    baseline_errors = (n_minority / np.maximum(sizes, 1)).tolist()

    # the first row of the table is of all rows, and then there is one for each environment
    overall_scores, *scores_of_environments = learner.out_of_bag_.to_dict("records")
    errors_of_environments = [
        read_out_of_bag(scores, error_of_baseline)
        for scores, error_of_baseline in zip(scores_of_environments, baseline_errors, strict=True)
    ]
    return compare_environments(
        read_out_of_bag(overall_scores, baseline_error),
        errors_of_environments,
        names=names,
        majority=majority,
        is_out_of_bag=True,
        p=1.0,
        n_contrary_of_leaves=(),
    )


def find_majority(totals: CountArray) -> int:
    """Return the label of more rows, from counts by (label, environment)."""
    return int(2 * totals[1].sum() > totals.sum())


def count_confusions(counts: CountArray, *, is_positive_leaf: BoolArray) -> list[Confusion]:
    """Count right predictions in each environment, from counts by (leaf, label, environment).

    All rows of a leaf have the same prediction.
    """
    n_negative, n_positive = counts.sum(axis=0)
    n_true_negatives = counts[~is_positive_leaf, 0].sum(axis=0)
    n_true_positives = counts[is_positive_leaf, 1].sum(axis=0)
    return [
        Confusion(
            n_negative=int(n_negative[environment]),
            n_positive=int(n_positive[environment]),
            n_true_negatives=int(n_true_negatives[environment]),
            n_true_positives=int(n_true_positives[environment]),
        )
        for environment in range(counts.shape[2])
    ]


def measure_errors(confusions: Sequence[Confusion], majority: int) -> list[ErrorRate]:
    """Return the errors of some environments, and those of always predicting the majority."""
    intervals = compute_intervals(
        positives=[confusion.n_errors for confusion in confusions],
        sizes=[confusion.n for confusion in confusions],
    )
    errors = []
    for confusion, interval in zip(confusions, intervals, strict=True):
        n_majority_errors = confusion.n_negative if majority else confusion.n_positive
        errors.append(
            ErrorRate(
                n=confusion.n,
                n_errors=confusion.n_errors,
                error=_compute_share(confusion.n_errors, confusion.n),
                error_interval=interval,
                majority_error=_compute_share(n_majority_errors, confusion.n),
                sensitivity=_compute_share(confusion.n_true_positives, confusion.n_positive),
                specificity=_compute_share(confusion.n_true_negatives, confusion.n_negative),
                ppv=_compute_share(confusion.n_true_positives, confusion.n_predicted_positive),
            )
        )
    return errors


def _compute_share(n_hits: int, n_rows: int) -> float | None:
    """Return the share of some rows; None if there are no rows."""
    return n_hits / n_rows if n_rows else None


def read_out_of_bag(scores: Mapping[Any, Any], majority_error: float) -> ErrorRate:
    """Return the errors of a row of `out_of_bag_`, which holds the accuracy of n rows."""
    n = int(scores["n"])
    n_errors = round((1 - scores["accuracy"]) * n) if n else 0
    (interval,) = compute_intervals([n_errors], [n])
    return ErrorRate(
        n=n,
        n_errors=n_errors,
        error=_compute_share(n_errors, n),
        error_interval=interval,
        majority_error=majority_error,
        auc=None if np.isnan(scores["auc"]) else scores["auc"],
        brier=None if np.isnan(scores["brier"]) else scores["brier"],
    )


def compare_environments(
    overall: ErrorRate,
    errors_of_environments: Sequence[ErrorRate],
    *,
    names: Names,
    majority: int,
    is_out_of_bag: bool,
    p: Any,
    n_contrary_of_leaves: Sequence[int],
) -> Errors:
    """Return the errors with the worst and the best environment.

    `n_contrary_of_leaves` counts, by leaf, the rows whose prediction contradicts their probability.
    """
    environments = [
        ErrorInEnvironment(environment=name, **vars(errors))
        for name, errors in zip(names.environments, errors_of_environments, strict=True)
    ]
    extremes = find_best_and_worst(environments)
    beats_majority = (
        overall.error is not None
        and overall.majority_error is not None
        and overall.error < overall.majority_error
    )
    return Errors(
        **vars(overall),
        is_out_of_bag=is_out_of_bag,
        p=p,
        beats_majority=beats_majority,
        majority_class=names.predict(bool(majority)),
        majority_is_positive=bool(majority),
        environments=environments,
        worst=None if extremes is None else extremes.worst,
        best=None if extremes is None else extremes.best,
        n_contrary=sum(n_contrary_of_leaves),
        contrary_leaves=[number for number, n in enumerate(n_contrary_of_leaves, start=1) if n],
    )


@dataclass(frozen=True)
class Extremes:
    """The environments of the lowest and of the highest error."""

    best: ErrorInEnvironment
    worst: ErrorInEnvironment


def find_best_and_worst(environments: Sequence[ErrorInEnvironment]) -> Extremes | None:
    """Find the environments of the lowest and the highest error; None if no two can be compared.

    Environments of few rows are passed over where two or more have enough. If only one has enough,
    its error would be compared with that of a few rows, which is chance: no environment is named.
    If none has enough, they are equally uncertain, and the page shows how few rows they have.
    """
    sizes = [errors.n for errors in environments]
    n_with_rows = sum(n > 0 for n in sizes)
    n_with_enough_rows = sum(n >= SPARSE_ENVIRONMENT for n in sizes)
    if n_with_rows < 2 or n_with_enough_rows == 1:
        return None

    ends = find_extreme_rows([errors.error for errors in environments], sizes)
    if ends is None:
        return None
    lowest, highest = ends
    return Extremes(best=environments[lowest], worst=environments[highest])
