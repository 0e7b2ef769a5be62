"""Errors of a model in training, or of a forest out of bag, beside those of the baseline."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from icscm._constants import SPARSE_ENVIRONMENT
from icscm._types import CountArray
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


def make_errors(model: Tree | Score, names: Names, p: Any = 1.0) -> Errors:
    """Return the errors on the training data, exact from the counts of the leaves."""
    counts = np.array(model.leaves, dtype=np.int64)
    is_positive = model.leaf_verdicts
    # by (label, environment): all rows, and those whose leaf predicts their label
    totals = counts.sum(axis=0)
    right = np.stack((counts[~is_positive, 0].sum(axis=0), counts[is_positive, 1].sum(axis=0)))
    majority = find_majority(totals)
    (overall,) = measure_errors(
        totals.sum(axis=1, keepdims=True), right.sum(axis=1, keepdims=True), majority
    )
    auc = compute_auc_of_counts(counts.sum(axis=2), model.leaf_probabilities())
    n_contrary = model.count_contrary()
    return compare_environments(
        replace(overall, auc=auc),
        measure_errors(totals, right, majority),
        names,
        majority,
        is_out_of_bag=False,
        p=p,
        contrary=n_contrary,
    )


def make_out_of_bag_errors(learner: Any, names: Names) -> Errors:
    """Return the errors of a forest on the rows that some of its trees were not grown on."""
    totals = np.array(learner.class_counts_, dtype=np.int64)
    majority = find_majority(totals)
    overall, *rows = learner.out_of_bag_.to_dict("records")
    majority_errors = totals[1 - majority] / np.maximum(totals.sum(axis=0), 1)
    of_all = float(totals[1 - majority].sum() / totals.sum())
    return compare_environments(
        read_out_of_bag(overall, of_all),
        [
            read_out_of_bag(row, majority_error)
            for row, majority_error in zip(rows or [overall], majority_errors.tolist(), strict=True)
        ],
        names,
        majority,
        is_out_of_bag=True,
        p=1.0,
        contrary=(),
    )


def find_majority(totals: CountArray) -> int:
    """Return the label of more rows, from counts by (label, environment)."""
    return int(2 * totals[1].sum() > totals.sum())


def measure_errors(totals: CountArray, right: CountArray, majority: int) -> list[ErrorRate]:
    """Return the errors in each environment, from counts by (label, environment).

    `totals` counts all rows, `right` those that are predicted correctly.
    """
    sizes = totals.sum(axis=0).tolist()
    wrong = (totals - right).sum(axis=0).tolist()
    intervals = compute_intervals(wrong, sizes)
    errors = []
    for k, (n, n_errors) in enumerate(zip(sizes, wrong, strict=True)):
        n_negative, n_positive = totals[:, k].tolist()
        true_negatives, true_positives = right[:, k].tolist()
        n_predicted_positive = true_positives + n_negative - true_negatives
        errors.append(
            ErrorRate(
                n=n,
                n_errors=n_errors,
                error=n_errors / n if n else None,
                error_interval=intervals[k],
                majority_error=(n_negative if majority else n_positive) / n if n else None,
                sensitivity=true_positives / n_positive if n_positive else None,
                specificity=true_negatives / n_negative if n_negative else None,
                ppv=true_positives / n_predicted_positive if n_predicted_positive else None,
            )
        )
    return errors


def read_out_of_bag(scores: Mapping[Any, Any], majority_error: float) -> ErrorRate:
    """Return the errors of a row of `out_of_bag_`."""
    n = int(scores["n"])
    n_errors = round((1 - scores["accuracy"]) * n) if n else 0
    (interval,) = compute_intervals([n_errors], [n])
    return ErrorRate(
        n=n,
        n_errors=n_errors,
        error=n_errors / n if n else None,
        error_interval=interval,
        majority_error=majority_error,
        auc=None if np.isnan(scores["auc"]) else scores["auc"],
        brier=None if np.isnan(scores["brier"]) else scores["brier"],
    )


def compare_environments(
    overall: ErrorRate,
    rows: Sequence[ErrorRate],
    names: Names,
    majority: int,
    *,
    is_out_of_bag: bool,
    p: Any,
    contrary: Sequence[int],
) -> Errors:
    """Return the errors with the worst and the best environment; `contrary` counts rows by leaf."""
    environments = [
        ErrorInEnvironment(environment=name, **vars(row))
        for name, row in zip(names.environments, rows, strict=True)
    ]
    worst = best = None
    ends = find_extreme_rows([row.error for row in rows], [row.n for row in rows])
    sizes = [row.n for row in rows if row.n]
    n_clear = sum(n >= SPARSE_ENVIRONMENT for n in sizes)
    if ends is not None and len(sizes) > 1 and n_clear != 1:
        best, worst = environments[ends[0]], environments[ends[1]]
    error, majority_error = overall.error, overall.majority_error
    return Errors(
        **vars(overall),
        is_out_of_bag=is_out_of_bag,
        p=p,
        beats_majority=error is not None and majority_error is not None and error < majority_error,
        majority_class=names.predict(bool(majority)),
        majority_is_positive=bool(majority),
        environments=environments,
        worst=worst,
        best=best,
        n_contrary=sum(contrary),
        contrary_leaves=[number for number, n in enumerate(contrary, start=1) if n],
    )
