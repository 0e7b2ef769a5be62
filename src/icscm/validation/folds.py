"""Folds: which rows of a cohort are learned from, and which are scored.

Rows are left out at random, or whole environments. Rows of a group are never on both sides of a
fold. `fitting` fits and scores.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from icscm._types import BoolArray, IntArray
from icscm.exceptions import IcscmError, Parameter
from icscm.parameters import make_generator
from icscm.validation.cohort import Cohort


@dataclass(frozen=True, eq=False)
class Fold:
    """Positions of the rows to learn from and of those to score.

    `environment` is the label of the environment that is left out; None where rows are.
    """

    train_rows: IntArray
    test_rows: IntArray
    environment: Any = None


def make_fold(
    cohort: Cohort,
    is_test: BoolArray,
    *,
    environment: Any = None,
    is_left_out: BoolArray | None = None,
) -> Fold:
    """Make the fold with these test rows, which learns from all others.

    With `is_left_out`, a larger set that holds the test rows, it learns from the rows outside of
    that. Rows that share a group with one that is left out are not learned from either.
    """
    if is_left_out is None:
        is_left_out = is_test
    if cohort.group_codes is not None:
        is_left_out = np.isin(cohort.group_codes, cohort.group_codes[is_left_out])
        if is_left_out.all():
            what = "these rows" if environment is None else f"environment {environment!r}"
            raise IcscmError(
                f"cannot learn without {what}: every group has rows there, and rows of such groups "
                "are not learned from; leave out the groups, or give smaller ones"
            )
    return Fold(
        train_rows=np.flatnonzero(~is_left_out),
        test_rows=np.flatnonzero(is_test),
        environment=environment,
    )


def make_fold_of_all_rows(cohort: Cohort) -> Fold:
    """Make the fold that learns from every row and scores none."""
    return Fold(train_rows=np.arange(len(cohort)), test_rows=np.arange(0))


def leave_out_rows(cohort: Cohort, n_folds: int, random_state: Any) -> list[Fold]:
    """Leave out each row once, in folds stratified by outcome and environment."""
    _check_class_sizes(cohort, n_folds)
    fold_of_rows = deal_rows(cohort, n_folds, random_state)
    return [make_fold(cohort, fold_of_rows == fold) for fold in range(fold_of_rows.max() + 1)]


def deal_rows(cohort: Cohort, n_folds: int, random_state: Any) -> IntArray:
    """Return the number of each row's fold; all rows of a group have the same.

    Rows, or groups, are brought in an order in which alike ones follow each other, and dealt out
    like cards: so each fold has its share of each kind.
    """
    rng = make_generator(random_state)
    if cohort.group_codes is None:
        order = _sort_rows(cohort, rng)
        return np.asarray(_deal_out(order, n_folds))

    group_of_row = pd.factorize(cohort.group_codes)[0]
    order = _sort_groups(group_of_row, cohort, rng)
    fold_of_group = _deal_out(order, n_folds)
    return np.asarray(fold_of_group[group_of_row])


def _deal_out(order: IntArray, n_folds: int) -> IntArray:
    """Return the fold of each of the numbers in `order`, of which the first gets 0, the next 1."""
    position = np.argsort(order)
    return position % n_folds


def _sort_rows(cohort: Cohort, rng: np.random.Generator) -> IntArray:
    """Sort the rows by outcome, then by environment, and at random within these."""
    is_positive = cohort.is_positive
    cells = [is_positive, cohort.environment_ranks]
    rows_of_cells = pd.Series(is_positive).groupby(cells).indices
    shuffled_cells = [rng.permutation(rows_of_cells[cell]) for cell in sorted(rows_of_cells)]
    return np.concatenate(shuffled_cells)


def _sort_groups(group_of_row: IntArray, cohort: Cohort, rng: np.random.Generator) -> IntArray:
    """Sort the groups by outcome, environment of the first row and size, and then at random.

    By outcome: those without a positive row come first, then mixed ones, then those of positive
    rows only.
    """
    _, first_rows, sizes = np.unique(group_of_row, return_index=True, return_counts=True)
    n_positive = np.bincount(group_of_row, cohort.is_positive)
    outcome_ranks = np.select([n_positive == 0, n_positive < sizes], [0, 1], default=2)
    environment_ranks = cohort.environment_ranks[first_rows]
    random_ranks = rng.random(len(sizes))
    # the last key counts first
    return np.lexsort((random_ranks, sizes, environment_ranks, outcome_ranks))


def leave_out_environments(cohort: Cohort) -> list[Fold]:
    """Leave out each environment once."""
    return [
        make_fold(cohort, cohort.environment_codes == code, environment=label)
        for code, label in enumerate(cohort.environment_labels)
    ]


def leave_out_parts(cohort: Cohort, parts: list[list[int]]) -> list[list[Fold]]:
    """Leave out environments in parts, given by their codes; there is a list for each part.

    The folds of a part have the same training rows, and each scores one of its environments.
    """
    folds_of_parts = []
    for codes in parts:
        is_left_out = np.isin(cohort.environment_codes, codes)
        folds_of_part = [
            make_fold(
                cohort,
                cohort.environment_codes == code,
                environment=cohort.environment_labels[code],
                is_left_out=is_left_out,
            )
            for code in codes
        ]
        folds_of_parts.append(folds_of_part)
    return folds_of_parts


def leave_out_many_environments(cohort: Cohort, n_folds: int) -> list[Fold]:
    """Leave out each environment once, in at most so many folds, dealt out from the largest."""
    environment_of_row = cohort.environment_ranks
    sizes = np.bincount(environment_of_row)
    largest_first = np.argsort(-sizes, kind="stable")
    fold_of_environment = _deal_out(largest_first, n_folds)
    fold_of_rows = fold_of_environment[environment_of_row]
    return [make_fold(cohort, fold_of_rows == fold) for fold in range(fold_of_rows.max() + 1)]


def check_environments(cohort: Cohort, estimator: Any, what: str | Parameter) -> None:
    """Raise if too few environments would remain to learn from when one is left out."""
    n_needed = count_needed_environments(estimator)
    n_environments = len(cohort.environment_labels)
    if n_environments < n_needed:
        raise IcscmError(
            what,
            f" needs at least {n_needed} environments for {type(estimator).__name__}, so that "
            f"{n_needed - 1} remain to learn from; got {n_environments}",
        )


def count_needed_environments(estimator: Any) -> int:
    """Return how many environments it takes to leave one out: testing invariance needs two more.

    Estimators of ours say whether they test it; those of others do not.
    """
    return 3 if getattr(estimator, "tests_invariance", False) else 2


def _check_class_sizes(cohort: Cohort, n_folds: int) -> None:
    """Raise unless each fold of rows can have both classes."""
    units = np.arange(len(cohort)) if cohort.group_codes is None else cohort.group_codes
    n_positive = len(np.unique(units[cohort.is_positive]))
    n_negative = len(np.unique(units[~cohort.is_positive]))
    smallest = min(n_positive, n_negative)
    if smallest < n_folds:
        what = "rows" if cohort.group_codes is None else "groups with rows"
        raise IcscmError(
            f"cross-validation with {n_folds} folds needs {n_folds} {what} of each class; one "
            f"has {smallest}; use fewer folds"
        )
