"""Sets of features: enumerate them, test every one, and find what the accepted ones share.

Testing every set by a table is exponential by nature; the cost of one set can be saved. The tables
of all sets come from few passes over the rows:

    table of a largest set -> smaller sets' tables -> statistics -> p-values

A largest set is all features, or each set of as many as may be. Its table is counted from the
rows; every smaller set belongs to exactly one largest set (see `_list_sets`) and its table is a sum
over one feature of a table at hand.

`icscm.search.tree_sets` tests sets by trees, `icscm.search.exhaustive` sets of rules.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain, combinations
from typing import Final

import numpy as np

from icscm._constants import DEVIANCE_DECIMALS
from icscm._types import Array, CountArray, FloatArray
from icscm.engine.counts import BinnedRule, CountSource
from icscm.engine.pieces import LevelCounts, count_shared
from icscm.exceptions import IcscmError
from icscm.stats.independence import (
    ChiSquaredTest,
    GTest,
    compute_bic,
    compute_conditional,
    compute_upper_tail,
    exceeds,
)

# Features whose sets may all be tested, and the most sets in any case: a minute or two of work.
MAX_FEATURES = 20
MAX_SETS = 2**MAX_FEATURES
# Cells of the largest table counted: 128 MiB. The walk down holds up to twice as much besides.
MAX_TABLE_CELLS = 2**24
# Numbers of sets beyond this are not counted out.
_UNCOUNTED = 10**15
# Cells whose statistics are computed together: many numbers for each call, and yet in the cache.
_BATCH_CELLS = 2**16
# Pearson without Yates' correction: corrected strata would add up to a conservative test.
SET_TESTS: dict[str, GTest | ChiSquaredTest] = {"g": GTest(), "chi2": ChiSquaredTest(yates=False)}
# In a feature of no more bins each is taken for a single value; so is, in one of more bins, a bin
# that holds a larger share of the samples than 1 of so many.
EXACT_BINS: Final = 16


def list_subsets(n: int, most: int) -> list[tuple[int, ...]]:
    """All subsets of 0 .. n - 1 with at most so many members, small ones first.

    >>> list_subsets(2, most=2)
    [(), (0,), (1,), (0, 1)]
    """
    sizes = range(min(n, most) + 1)
    return list(chain.from_iterable(combinations(range(n), size) for size in sizes))


def find_shared(accepted: Iterable[Sequence[int]]) -> set[int] | None:
    """What all accepted sets share; None when there is none, which is not the empty set.

    >>> find_shared([(0, 1), (1, 2)]), find_shared([(0,), (1,)]), find_shared([])
    ({1}, set(), None)
    """
    shared: set[int] | None = None
    for each in accepted:
        shared = set(each) if shared is None else shared.intersection(each)
        if not shared:
            break
    return shared


def find_best(bics: Mapping[tuple[int, ...], float]) -> set[int] | None:
    """The accepted set of lowest BIC, of equals the smallest, then the first; None without any.

    >>> find_best({(): 9.0, (0, 1): 5.0, (2,): 5.0}), find_best({})
    ({2}, None)
    """
    if not bics:
        return None
    return {*min(bics, key=lambda each: (round(bics[each], DEVIANCE_DECIMALS), len(each), each))}


def find_beside(
    source: CountSource, rules: Sequence[BinnedRule]
) -> list[tuple[BinnedRule, BinnedRule] | None]:
    """Each rule with the two bins beside its cut added, and with both taken off.

    A true threshold lies inside one of these bins where they hold several values. On which side
    their samples are is not known, so no test should use them: a few, which with many samples
    would be enough to reject a true set. None where the bins hold a value each.
    """
    numbers, forms = [], []
    for number, rule in enumerate(rules):
        layout = source.candidates.find_layout(rule.feature)
        own = rule.satisfied[int(layout.has_missing) :]
        at = np.flatnonzero(own[1:] != own[:-1]) + int(layout.has_missing)
        if len(own) > EXACT_BINS and not layout.nominal and len(at):
            numbers.append(number)
            for truth in (True, False):
                satisfied = rule.satisfied.copy()
                satisfied[at] = satisfied[at + 1] = truth
                forms.append(BinnedRule(rule.feature, satisfied))
    found: list[tuple[BinnedRule, BinnedRule] | None] = [None] * len(rules)
    if numbers:
        changed = [rules[number] for number in numbers]
        table = source.count_patterns([*changed, *forms])
        n, n_changed = table.counts.sum(axis=(1, 2)), len(changed)
        is_beside = table.patterns[:, n_changed:] != table.patterns[:, :n_changed].repeat(2, axis=1)
        is_single = (n @ is_beside * EXACT_BINS > n.sum()).tolist()
        for k, (number, rule) in enumerate(zip(numbers, changed, strict=True)):
            wide, narrow = (rule if is_single[i] else forms[i] for i in (2 * k, 2 * k + 1))
            found[number] = wide, narrow
    return found


@dataclass(frozen=True)
class InvariantSets:
    """What was found, features by position.

    `accepted` sets have their p-values, by size and then in the order of features; `shared` is
    what they have in common, see `find_shared`. `p_values` holds for each feature the largest of
    the sets that leave it out. `bics` are those of the accepted sets, where they were wanted.
    `n_beyond` features passed a screen and were in no set, since it has a limit.
    """

    accepted: dict[tuple[int, ...], float]
    shared: set[int] | None
    p_values: FloatArray
    n_tested: int
    bics: dict[tuple[int, ...], float] = field(default_factory=dict)
    n_beyond: int = 0


# --- sets tested by their tables ----------------------------------------------


def find_invariant_sets(
    counts: LevelCounts, size: int, *, test: str, dof: str, alpha: float, scored: bool = False
) -> InvariantSets:
    """Test the label against the environment given each set of up to `size` features.

    With the BIC of every accepted set, if they are to be `scored`.
    """
    n_features = counts.n_features
    sets = _list_sets(n_features, size)
    batches = _make_batches(_walk_all(counts, size))
    results = [compute_conditional(batch, SET_TESTS[test]) for batch in batches]
    p_values = np.concatenate([result.p_values for result in results])
    if dof == "nominal":
        # the last entry stands for "no feature"
        n_levels = np.append(counts.n_levels, 1)
        n_free = n_levels[sets].prod(axis=1) * (counts.n_environments - 1)
        p_values = compute_upper_tail(np.concatenate([each.statistics for each in results]), n_free)
    # by size and then feature order
    which = np.flatnonzero(exceeds(p_values, alpha))
    sizes = (sets[which] < n_features).sum(axis=1)
    order = np.lexsort((*sets[which].T[::-1], sizes))
    columns = sets[which][order].tolist(), sizes[order].tolist(), p_values[which][order].tolist()
    accepted = {tuple(members[:size]): p for members, size, p in zip(*columns, strict=True)}
    # for most features the largest p-value is that of all; others are compared for those in its set
    best = int(p_values.argmax())
    largest = np.full(n_features, p_values[best])
    for feature in sets[best][sets[best] < n_features].tolist():
        largest[feature] = p_values[(sets != feature).all(axis=1)].max()
    bics: list[float] = []
    # counted again: as a rule few sets are accepted, and tables of all would take much memory
    tables, shape = map(counts.count, accepted if scored else ()), (2, counts.n_environments, -1)
    for batch in _make_batches(each.reshape(shape).transpose(2, 0, 1) for each in tables):
        bics += compute_bic(batch).tolist()
    found = accepted, find_shared(accepted), largest, len(sets)
    return InvariantSets(*found, dict(zip(accepted, bics, strict=scored)))


def check_affordable(counts: LevelCounts, size: int, max_set_size: int | None) -> None:
    """Raise before starting what would take hours or not fit the memory."""
    n_features = counts.n_features
    n_sets = count_sets(n_features, size)
    if n_sets > MAX_SETS:
        raise IcscmError(
            f"{n_features:,} features make "
            f"{f'{n_sets:,}' if n_sets < _UNCOUNTED else 'more than 10**15'} sets "
            f"{'' if max_set_size is None else f'of up to {size} '}to test, more than "
            f"{MAX_SETS:,} (all sets of {MAX_FEATURES} features); screen the features first"
            f"{_suggest_size(counts, size)}"
        )
    n_cells = _count_cells(counts, size)
    if n_cells > MAX_TABLE_CELLS:
        raise IcscmError(
            f"the joint table of {size} features would have {n_cells:,} cells, more than "
            f"{MAX_TABLE_CELLS:,}; screen the features first, choose a smaller max_levels"
            f"{_suggest_size(counts, size)}"
        )


def count_sets(n_features: int, size: int) -> int:
    """Sets of up to `size` features; counting ends where nobody would read the number."""
    total = 0
    for k in range(size + 1):
        total += math.comb(n_features, k)
        if total > _UNCOUNTED:
            break
    return total


def _count_cells(counts: LevelCounts, size: int) -> int:
    """Cells of the largest table that a set of this size can have."""
    most: list[int] = sorted(counts.n_levels.tolist(), reverse=True)[:size]
    return 2 * counts.n_environments * math.prod(most)


def _suggest_size(counts: LevelCounts, size: int) -> str:
    """The largest `max_set_size` below this size that can be afforded, in words."""
    for smaller in range(min(size - 1, MAX_FEATURES), 0, -1):
        n_sets = count_sets(counts.n_features, smaller)
        if n_sets <= MAX_SETS and _count_cells(counts, smaller) <= MAX_TABLE_CELLS:
            return f", or set max_set_size={smaller} or less"
    return ""


def _list_sets(n: int, size: int) -> Array:
    """Every set of up to `size` of n features in the order of the walk, one in each row.

    They are visited by largest sets, those with `size` features. Each smaller set belongs to the
    largest set made from it by adding the first of the features that it lacks. So a largest set
    with the features 0 .. r - 1 and without r owns what is left of it after taking out any of
    these r, which are its *free* features: 2**r sets, of which number i lacks free feature j
    where bit j of i is 1. Rows are ascending, filled up with n.

    >>> _list_sets(3, size=2)
    array([[0, 1],
           [1, 3],
           [0, 3],
           [3, 3],
           [0, 2],
           [2, 3],
           [1, 2]], dtype=uint8)
    """
    n_largest = math.comb(n, size)
    members = chain.from_iterable(combinations(range(n), size))
    # bytes, as long as features are few: a million sets of 20 fit 20 MB
    largest = np.fromiter(members, np.min_scalar_type(n), n_largest * size)
    largest = largest.reshape(n_largest, size)
    n_owned = 2 ** (largest == np.arange(size)).cumprod(axis=1).sum(axis=1)
    sets = np.repeat(largest, n_owned, axis=0)
    i = np.arange(len(sets)) - np.repeat(np.cumsum(n_owned) - n_owned, n_owned)
    for j in range(size):
        sets[(i >> j) & 1 == 1, j] = n
    sets.sort(axis=1)
    return sets


def _walk_all(counts: LevelCounts, size: int) -> Iterator[CountArray]:
    """The table (stratum, label, environment) of every set, in the order of `_list_sets`."""
    everything = range(counts.n_features)
    for features in combinations(everything, size):
        table = counts.count(features)
        n_free = count_shared(features, everything)
        for cells in _walk(table.reshape(*table.shape[: n_free + 1], -1)):
            yield cells.T.reshape(-1, 2, counts.n_environments)


def _walk(cells: CountArray) -> Iterator[CountArray]:
    """The cells of each set that keeps or leaves out each free feature.

    `cells` is (label and environment, level of free feature 0, of 1, ..., stratum of the
    features that are kept). The last free feature is kept, so its levels become strata,

        (2 K, L0, L1, P)  ->  (2 K, L0, L1 * P)

    or left out by summing over it, until none is free.
    """
    if cells.ndim == 2:
        yield cells
    else:
        yield from _walk(cells.reshape(*cells.shape[:-2], -1))
        yield from _walk(cells.sum(axis=-2))


def _make_batches(tables: Iterable[CountArray]) -> Iterator[list[CountArray]]:
    """Lists of tables with at least `_BATCH_CELLS` cells together, the last list with fewer."""
    batch: list[CountArray] = []
    n_cells = 0
    for table in tables:
        batch.append(table)
        n_cells += table.size
        if n_cells >= _BATCH_CELLS:
            yield batch
            batch, n_cells = [], 0
    if batch:
        yield batch
