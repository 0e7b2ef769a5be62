"""Sets of features: enumerate them, test every one, and find what the accepted ones share.

Testing every set by a table is exponential by nature; the cost of one set can be saved. The tables
of all sets come from few passes over the rows:

    table of a largest set -> smaller sets' tables -> statistics -> p-values

A largest set is all features, or each set of as many as may be. Its table is counted from the
rows; every smaller set belongs to exactly one largest set (see `_list_sets`) and its table is a sum
over one feature of a table at hand.

Trees test a set leaf by leaf:

    one half of the rows of every environment   a tree over the features of a set
    the other half                              label against environment in each leaf
    and the same with the halves exchanged      the smaller p-value, twice

A test on the rows that a tree was grown on would be biased; one on the other half is not.
Halves are drawn without regard to the label. The level holds for a set given which the label is
independent of the environment, provided that the tree found all of it: that the label's rate is
the same all over a leaf. Where a true threshold lies between two that are tried, it is not.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain, combinations
from typing import Final

import numpy as np

from icscm._types import Array, BoolArray, CountArray, FloatArray, IntArray
from icscm.engine.counts import CandidateMap
from icscm.engine.pieces import LevelCounts, count_shared
from icscm.exceptions import IcscmError
from icscm.search.forest import DrawnSource
from icscm.search.grow import (
    DECIMALS,
    LEVEL,
    Found,
    Node,
    SplitScan,
    grow,
    list_binned_splits,
    make_root,
    rank,
)
from icscm.stats.independence import (
    ChiSquaredTest,
    GTest,
    PearsonSum,
    compute_conditional,
    compute_upper_tail,
    exceeds,
    sum_pearson,
)
from icscm.stats.leaf_tables import compute_halves
from icscm.stats.splits import compute_rate_heterogeneity, find_quantile, measure_rates

# Features whose sets may all be tested, and the most sets in any case: a minute or two of work.
MAX_FEATURES = 20
MAX_SETS = 2**MAX_FEATURES
# Cells of the largest table counted: 128 MiB. The walk down holds up to twice as much besides.
MAX_TABLE_CELLS = 2**24
# Numbers of sets beyond this are not counted out.
_UNCOUNTED = 10**15
# Cells whose statistics are computed together: many numbers for each call, and yet in the cache.
_BATCH_CELLS = 2**16
# From so many cells on it pays to drop strata without information.
_LARGE_CELLS = 2**12
# Sets that may be tested by trees, each by two.
MAX_TREE_SETS: Final = 5_000
# Pearson without Yates' correction: corrected strata would add up to a conservative test.
SET_TESTS: dict[str, GTest | ChiSquaredTest] = {"g": GTest(), "chi2": ChiSquaredTest(yates=False)}


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


@dataclass(frozen=True)
class InvariantSets:
    """What was found, features by position.

    `accepted` sets have their p-values, by size and then in the order of features; `shared` is
    what they have in common, see `find_shared`. `p_values` holds for each feature the largest of
    the sets that leave it out.
    """

    accepted: dict[tuple[int, ...], float]
    shared: set[int] | None
    p_values: FloatArray
    n_tested: int


# --- sets tested by their tables ----------------------------------------------


def find_invariant_sets(
    counts: LevelCounts, size: int, *, test: str, dof: str, alpha: float
) -> InvariantSets:
    """Test the label against the environment given each set of up to `size` features."""
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
    return InvariantSets(accepted, find_shared(accepted), largest, len(sets))


def check_affordable(counts: LevelCounts, size: int, max_set_size: int | None) -> None:
    """Raise before starting what would take hours or not fit the memory."""
    n_features = counts.n_features
    n_sets = _count_sets(n_features, size)
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


def _count_sets(n_features: int, size: int) -> int:
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
        n_sets = _count_sets(counts.n_features, smaller)
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
    if cells.size > _LARGE_CELLS:
        cells = _drop_uninformative(cells)
    if cells.ndim == 2:
        yield cells
    else:
        yield from _walk(cells.reshape(*cells.shape[:-2], -1))
        yield from _walk(cells.sum(axis=-2))


def _drop_uninformative(cells: CountArray) -> CountArray:
    """Drop the strata without information: no part of them has any either.

    Only if they are half of them: copies then shrink so fast that all those which a walk holds
    at a time take no more than the first.
    """
    totals = cells.reshape(2, len(cells) // 2, -1, cells.shape[-1]).sum(axis=2)
    is_kept: BoolArray = totals.any(axis=1).all(axis=0) & (totals.any(axis=0).sum(axis=0) > 1)
    is_kept[0] |= not is_kept.any()  # a set keeps a stratum, if only to add up nothing
    return cells if 2 * is_kept.sum() > len(is_kept) else cells[..., is_kept]


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


# --- sets tested by trees -----------------------------------------------------


@dataclass(frozen=True)
class SetSettings:
    """How sets are tested: `n_screened` features at most, in sets of up to `size`."""

    alpha: float = 0.05
    n_screened: int = 7
    size: int = 4
    max_leaves: int = 32
    least_share: float = 0.01
    seed: int = 0

    def find_least(self, root: Node) -> int:
        """Samples that a leaf must have."""
        return max(1, int(np.ceil(self.least_share * root.size)))


def find_tree_sets(source: DrawnSource, n_features: int, settings: SetSettings) -> InvariantSets:
    """Test the sets of the features that explain most, and what the accepted ones share."""
    screened, copied = screen_features(source, settings)
    subsets = list_subsets(len(screened), settings.size)
    if len(subsets) > MAX_TREE_SETS:
        raise IcscmError(
            f"{len(screened)} features make {len(subsets):,} sets to test, more than "
            f"{MAX_TREE_SETS:,}; choose a smaller max_features or max_set_size"
        )
    tester = SetTester(source, screened, settings)
    p_values = {}
    for subset in subsets:
        features = tuple(screened[i] for i in subset)
        p_values[features] = tester.test(features)
    largest = np.full(n_features, max(p_values.values()))
    for feature in set(screened) - copied:  # a copy can stand in for its twin
        largest[feature] = max(p for features, p in p_values.items() if feature not in features)
    accepted = {each: p for each, p in p_values.items() if exceeds(p, settings.alpha)}
    shared = find_shared(accepted)
    shared = None if shared is None else shared - copied
    return InvariantSets(accepted, shared, largest, len(subsets))


def screen_features(source: DrawnSource, settings: SetSettings) -> tuple[list[int], set[int]]:
    """The features that explain most within environments, beyond chance, in their own order.

    And those of them that stand for several identical ones.
    """
    root = make_root(source, is_shared=True)
    n_least = settings.find_least(root)
    found: list[tuple[float, int]] = []
    copied: set[int] = set()
    n_candidates = 0
    for cube in root.count():
        tables = compute_halves(cube, source.candidates)
        rates = measure_rates(tables.tables, root.totals, n_least)
        n_candidates += tables.count(rates.pooled >= 0)
        best = rates.within.reshape(len(tables.features), -1).max(axis=1, initial=-1.0)
        found += zip((-best.round(DECIMALS)).tolist(), tables.features.tolist(), strict=True)
        if cube.n_alike is not None:
            copied.update(cube.features[cube.n_alike > 1].tolist())
    level = LEVEL / max(n_candidates, 1)
    cutoff = find_quantile(level, int(np.count_nonzero(root.totals.sum(axis=0))))
    beyond = [feature for less, feature in sorted(found) if -less > cutoff]
    screened = sorted(beyond[: settings.n_screened])
    return screened, copied.intersection(screened)


class SetTester:
    """Tests sets of some features; trees of one subsample share their nodes."""

    def __init__(self, source: DrawnSource, features: Iterable[int], settings: SetSettings) -> None:
        self._source = source
        self._settings = settings
        self._features = np.array([*features], dtype=np.int64)
        self._labels, self._environments = source.list_cells()
        first = draw_half(self._environments, np.random.default_rng(settings.seed))
        self._halves = first, ~first
        self._roots = [make_root(source.draw(half), is_shared=True) for half in self._halves]
        self._tested: dict[tuple[int, tuple[object, ...]], PearsonSum] = {}

    def test(self, features: Iterable[int]) -> float:
        """p-value of a set: twice the smaller one of the two directions."""
        return min(1.0, 2.0 * min(each.p_value for each in self.measure(features)))

    def measure(self, features: Iterable[int]) -> list[PearsonSum]:
        """Label against environment in the leaves, in each direction."""
        source, wanted, found = self._source, {*features}, []
        for number, root in enumerate(self._roots):
            n_least = self._settings.find_least(root)
            scan = _SetScanner(source.candidates, self._features, wanted, n_least)
            splits = list_binned_splits(source, grow(root, scan, self._settings.max_leaves))
            rules = tuple((s.rule.feature, s.rule.satisfied.tobytes(), *s[1:]) for s in splits)
            if (number, rules) not in self._tested:
                others = self._halves[1 - number]
                leaves = source.find_leaves(splits, others)[others]
                shape = len(splits) + 1, 2, len(source.environments)
                rows = leaves, self._labels[others], self._environments[others]
                cells = np.ravel_multi_index(rows, shape)
                tables = np.bincount(cells, minlength=int(np.prod(shape))).reshape(shape)
                self._tested[number, rules] = sum_pearson(tables)
            found.append(self._tested[number, rules])
        return found


def draw_half(environments: IntArray, rng: np.random.Generator) -> BoolArray:
    """One half of the rows of every environment."""
    order = rng.permutation(len(environments))
    order = order[np.argsort(environments[order], kind="stable")]
    starts = np.searchsorted(environments[order], environments[order])
    sizes = np.bincount(environments)[environments[order]]
    half = np.empty(len(order), dtype=np.bool_)
    half[order] = np.arange(len(order)) - starts < sizes // 2
    return half


@dataclass(frozen=True)
class _SetScanner:
    """Scans for splits on the `wanted` ones of some features.

    First those that explain more deviance of the label than chance; where there is none and the
    label still depends on the environment, one that explains some of that.
    """

    candidates: CandidateMap
    features: IntArray
    wanted: set[int]
    n_least: int

    def __call__(self, node: Node, _: None = None) -> SplitScan:
        if not self.wanted or not node.can_split(self.n_least):
            return SplitScan(None)
        if node.found is None:
            node.found = self._find(node)
        found: dict[int, tuple[int, Found, Found]] = node.found
        own = [each for feature, each in found.items() if feature in self.wanted]
        n_candidates = sum(n for n, _, _ in own)
        if not n_candidates:
            return SplitScan(None)
        best = min((of_label for _, of_label, _ in own), key=rank)
        if best.deviance_explained <= find_quantile(LEVEL / n_candidates, 1):
            best = min((of_environment for _, _, of_environment in own), key=rank)
            (statistic,), (dof,) = compute_rate_heterogeneity(node.totals[np.newaxis])
            is_dependent = statistic > find_quantile(LEVEL, int(dof))
            if best.deviance_explained <= 0 or not is_dependent:
                return SplitScan(None, n_candidates=n_candidates)
        return SplitScan(best, n_candidates=n_candidates)

    def _find(self, node: Node) -> dict[int, tuple[int, Found, Found]]:
        """Of each feature how many splits it has, and the best one of two kinds.

        The one that explains most deviance of the label, and the one that explains most of its
        dependence on the environment. Features not wanted now may be by another set.
        """
        found: dict[int, tuple[int, Found, Found]] = {}
        before = compute_rate_heterogeneity(node.totals[np.newaxis])[0]
        for cube in node.count():
            rows = np.flatnonzero(np.isin(cube.features, self.features))
            counts, features = cube.counts[rows], cube.features[rows]
            own = replace(cube, features=features, counts=counts, n_alike=None)
            tables = compute_halves(own, self.candidates)
            if not len(tables.tables):
                continue
            explained = measure_rates(tables.tables, node.totals, self.n_least).pooled
            halves = tables.tables, node.totals - tables.tables
            after = sum(compute_rate_heterogeneity(each)[0] for each in halves)
            of_environment = np.where(explained >= 0, before - after, -1.0)
            best = (
                [
                    Found(tables.locate(at), tables.tables[at].copy(), float(values[at]))
                    for at in tables.find_best(values.round(DECIMALS)).tolist()
                ]
                for values in (explained, of_environment)
            )
            n_candidates = (explained >= 0).reshape(len(rows), -1).sum(axis=1).tolist()
            rows_found = zip(n_candidates, *best, strict=True)
            found.update(zip(features.tolist(), rows_found, strict=True))
        return found
