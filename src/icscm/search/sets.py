"""Sets of features: enumerate them, test every one, and find what the accepted ones share.

The number of sets is exponential, so that each set must be cheap. The tables
of all sets come from few passes over the rows:

    table of a largest set -> smaller sets' tables -> statistics -> p-values

A largest set is all features, or each set of as many as may be. Its table is counted from the
rows; every smaller set belongs to exactly one largest set (see `_walk_all`) and its table is a sum
over one feature of a table at hand.

`icscm.search.tree_sets` tests sets by trees, `icscm.search.exhaustive` sets of rules.
"""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import reduce
from itertools import chain, combinations
from typing import Final

import numpy as np

from icscm._constants import DEVIANCE_DECIMALS
from icscm._types import CountArray, FloatArray
from icscm.engine.counts import BinnedRule, CountSource
from icscm.engine.pieces import LevelCounts, count_shared
from icscm.exceptions import IcscmError
from icscm.stats.independence import (
    PEARSON,
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
# Larger numbers of sets are not counted exactly.
_UNCOUNTED = 10**15
# Cells whose statistics are computed together: many numbers for each call, and yet in the cache.
_BATCH_CELLS = 2**16
# Pearson without Yates' correction: corrected strata would add up to a conservative test.
SET_TESTS = {"g": GTest(), "chi2": PEARSON}
# In a feature of no more bins each is taken for a single value; so is, in one of more bins, a bin
# that holds a larger share of the samples than 1 of so many.
EXACT_BINS: Final = 16

_Values = dict[tuple[int, ...], float]
_Counted = tuple[tuple[int, ...], CountArray]


def list_subsets(n: int, most: int) -> list[tuple[int, ...]]:
    """All subsets of 0 .. n - 1 with at most so many members, small ones first.

    >>> list_subsets(2, most=2)
    [(), (0,), (1,), (0, 1)]
    """
    sizes = range(min(n, most) + 1)
    return list(chain.from_iterable(combinations(range(n), size) for size in sizes))


def find_shared(accepted: Iterable[Sequence[int]]) -> set[int] | None:
    """The features that all accepted sets share; None, not the empty set, when none is accepted.

    >>> find_shared([(0, 1), (1, 2)]), find_shared([(0,), (1,)]), find_shared([])
    ({1}, set(), None)
    """
    sets = map(set, accepted)
    first = next(sets, None)
    return None if first is None else reduce(set.intersection, sets, first)


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

    accepted: _Values
    shared: set[int] | None
    p_values: FloatArray
    n_tested: int
    bics: _Values = field(default_factory=dict)
    n_beyond: int = 0


def conclude(p_values: _Values, n_features: int, alpha: float, copied: set[int]) -> InvariantSets:
    """The conclusion from the p-values of all sets; a feature with copies is never needed."""
    order = sorted(p_values, key=lambda each: (len(each), each))
    accepted = {each: p_values[each] for each in order if exceeds(p_values[each], alpha)}
    # for most features the largest p-value is that of all; others are compared for those in its set
    best = max(p_values, key=p_values.__getitem__)
    largest = np.full(n_features, p_values[best])
    for feature in {*best}.difference(copied):
        largest[feature] = max(p for each, p in p_values.items() if feature not in each)
    shared = find_shared(accepted)
    shared = None if shared is None else shared.difference(copied)
    return InvariantSets(accepted, shared, largest, len(p_values))


# --- sets tested by their tables ----------------------------------------------


def find_invariant_sets(
    counts: LevelCounts, size: int, *, test: str, dof: str, alpha: float, scored: bool = False
) -> InvariantSets:
    """Test the label against the environment given each set of up to `size` features.

    With the BIC of every accepted set, if they are to be `scored`.
    """
    p_values: _Values = {}
    for batch in _make_batches(_walk_all(counts, size)):
        sets, tables = zip(*batch, strict=True)
        tested = compute_conditional(tables, SET_TESTS[test])
        own = tested.p_values
        if dof == "nominal":
            n_strata = np.array([math.prod(counts.n_levels[list(each)]) for each in sets])
            own = compute_upper_tail(tested.statistics, n_strata * (counts.n_environments - 1))
        p_values |= zip(sets, own.tolist(), strict=True)
    found = conclude(p_values, counts.n_features, alpha, set())
    bics = {}
    # counted again: as a rule few sets are accepted, and tables of all would take much memory
    for each in found.accepted if scored else ():
        table = counts.count(each).reshape(2, counts.n_environments, -1).transpose(2, 0, 1)
        bics[each] = float(compute_bic([table])[0])
    return replace(found, bics=bics)


def check_affordable(counts: LevelCounts, size: int, max_set_size: int | None) -> None:
    """Raise if the tests would take hours or exceed the memory."""
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
    """The number of sets of up to `size` features; counting stops at `_UNCOUNTED`."""
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


def _walk_all(counts: LevelCounts, size: int) -> Iterator[_Counted]:
    """Every set of up to `size` features with its table (stratum, label, environment).

    They are visited by largest sets, those with `size` features. Each smaller set belongs to the
    largest set made from it by adding the first of the features that it lacks. So a largest set
    with the features 0 .. r - 1 and without r owns what is left of it after taking out any of
    these r, which are its *free* features: 2**r sets.
    """
    everything = range(counts.n_features)
    for features in combinations(everything, size):
        table, n_free = counts.count(features), count_shared(features, everything)
        cells = table.reshape(*table.shape[: n_free + 1], -1)
        for kept, own in _walk(features[:n_free], features[n_free:], cells):
            yield kept, own.T.reshape(-1, 2, counts.n_environments)


def _walk(free: tuple[int, ...], kept: tuple[int, ...], cells: CountArray) -> Iterator[_Counted]:
    """The cells of each set that keeps or leaves out each free feature.

    `cells` is (label and environment, level of free feature 0, of 1, ..., stratum of the
    features that are kept). The last free feature is kept, so its levels become strata,

        (2 K, L0, L1, P)  ->  (2 K, L0, L1 * P)

    or left out by summing over it, until none is free.
    """
    if not free:
        yield kept, cells
    else:
        yield from _walk(free[:-1], (free[-1], *kept), cells.reshape(*cells.shape[:-2], -1))
        yield from _walk(free[:-1], kept, cells.sum(axis=-2))


def _make_batches(counted: Iterable[_Counted]) -> Iterator[list[_Counted]]:
    """Lists of tables with at least `_BATCH_CELLS` cells together, the last list with fewer."""
    batch: list[_Counted] = []
    n_cells = 0
    for each in counted:
        batch.append(each)
        n_cells += each[1].size
        if n_cells >= _BATCH_CELLS:
            yield batch
            batch, n_cells = [], 0
    if batch:
        yield batch
