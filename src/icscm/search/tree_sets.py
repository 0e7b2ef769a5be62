"""Sets of features tested by trees, leaf by leaf.

    one half of the rows of every environment   a tree over the features of a set
    the other half                              label against environment in each leaf
    and the same with the halves exchanged      the smaller p-value, twice

A test on the rows that a tree was grown on would be biased; one on the other half is not.
Halves are drawn without regard to the label. The level holds for a set given which the label is
independent of the environment, provided that the tree found all of it: that the label's rate is
the same all over a leaf. A true threshold lies between two that are tried: samples of the bins
beside a cut are not tested (`icscm.search.sets.find_beside`).
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from icscm._constants import CHANCE_LEVEL, DEVIANCE_DECIMALS
from icscm._types import BoolArray, IntArray
from icscm.engine.counts import BinnedRule, CandidateMap
from icscm.engine.leaf_tables import compute_halves
from icscm.engine.pieces import BinnedSplit
from icscm.exceptions import IcscmError
from icscm.search.grow import Found, Node, SplitScan, grow, list_binned_splits, make_root, rank
from icscm.search.sets import InvariantSets, conclude, count_sets, find_beside, list_subsets
from icscm.sources.countable import StoredSource
from icscm.stats.independence import PearsonSum, compute_bic, sum_pearson
from icscm.stats.splits import compute_rate_heterogeneity, find_quantile, measure_rates

# Sets that may be tested by trees, each by two.
MAX_TREE_SETS: Final = 5_000


@dataclass(frozen=True)
class SetSettings:
    """How sets are tested: `n_screened` features at most, in sets of up to `size`."""

    alpha: float = 0.05
    n_screened: int = 8
    size: int = 8
    max_leaves: int = 32
    least_share: float = 0.01
    seed: int = 0

    def find_least(self, root: Node) -> int:
        """Samples that a leaf must have."""
        return max(1, int(np.ceil(self.least_share * root.size)))


def find_tree_sets(source: StoredSource, n_features: int, settings: SetSettings) -> InvariantSets:
    """Test the sets of the features that explain most, and what the accepted ones share."""
    screened, copied, n_beyond = screen_features(source, settings)
    size = min(settings.size, len(screened))
    if (n_sets := count_sets(len(screened), size)) > MAX_TREE_SETS:
        raise IcscmError(
            f"{len(screened)} features make {n_sets:,} sets to test, more than "
            f"{MAX_TREE_SETS:,}; choose a smaller max_features or max_set_size"
        )
    tester = SetTester(source, screened, settings)
    sets = (tuple(screened[i] for i in each) for each in list_subsets(len(screened), size))
    p_values = {each: tester.test(each) for each in sets}
    found = conclude(p_values, n_features, settings.alpha, copied)
    bics = {each: tester.compute_bic(each) for each in found.accepted}
    return replace(found, bics=bics, n_beyond=n_beyond)


def screen_features(source: StoredSource, settings: SetSettings) -> tuple[list[int], set[int], int]:
    """The features that explain most within environments, beyond chance, in their own order.

    And those of them that stand for several identical ones, and how many more there are.
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
        ranks = (-best.round(DEVIANCE_DECIMALS)).tolist()
        found += zip(ranks, tables.features.tolist(), strict=True)
        if cube.n_alike is not None:
            copied.update(cube.features[cube.n_alike > 1].tolist())
    level = CHANCE_LEVEL / max(n_candidates, 1)
    cutoff = find_quantile(level, int(np.count_nonzero(root.totals.sum(axis=0))))
    beyond = [feature for less, feature in sorted(found) if -less > cutoff]
    screened = sorted(beyond[: settings.n_screened])
    return screened, copied.intersection(screened), len(beyond) - len(screened)


class SetTester:
    """Tests sets of some features; trees of one subsample share their nodes."""

    def __init__(
        self, source: StoredSource, features: Iterable[int], settings: SetSettings
    ) -> None:
        self._source = source
        self._settings = settings
        self._features = np.array([*features], dtype=np.int64)
        self._labels, self._environments = source.list_cells()
        first = draw_half(self._environments, source.number_units(), settings.seed)
        self._halves = first, ~first
        self._roots = [make_root(source.draw(half), is_shared=True) for half in self._halves]
        self._beside: dict[tuple[int, bytes], tuple[BinnedRule, BinnedRule] | None] = {}
        self._tested: dict[tuple[int, tuple[object, ...]], tuple[PearsonSum, float]] = {}

    def test(self, features: Iterable[int]) -> float:
        """p-value of a set: twice the smaller one of the two directions."""
        return min(1.0, 2.0 * min(each.p_value for each, _ in self.measure(features)))

    def compute_bic(self, features: Iterable[int]) -> float:
        """BIC of a set: each half given the leaves of the tree that was grown on the other."""
        return sum(bic for _, bic in self.measure(features))

    def measure(self, features: Iterable[int]) -> list[tuple[PearsonSum, float]]:
        """Label against environment in the leaves, and the leaves' BIC, in each direction."""
        source, wanted, found = self._source, {*features}, []
        for number, root in enumerate(self._roots):
            n_least = self._settings.find_least(root)
            scan = _SetScanner(source.candidates, self._features, wanted, n_least)
            splits = list_binned_splits(source, grow(root, scan, self._settings.max_leaves))
            rules = tuple((s.rule.feature, s.rule.satisfied.tobytes(), *s[1:]) for s in splits)
            if (number, rules) not in self._tested:
                self._tested[number, rules] = self._measure_leaves(splits, self._halves[1 - number])
            found.append(self._tested[number, rules])
        return found

    def _measure_leaves(
        self, splits: Sequence[BinnedSplit], rows: BoolArray
    ) -> tuple[PearsonSum, float]:
        """The test on the rows whose leaf is certain, and the BIC of all of them."""
        source, certain = self._source, np.ones(np.count_nonzero(rows), dtype=np.bool_)
        leaves = source.find_leaves(splits, rows)[rows]
        keys = [(each.rule.feature, each.rule.satisfied.tobytes()) for each in splits]
        new = {key: s.rule for key, s in zip(keys, splits, strict=True) if key not in self._beside}
        self._beside |= zip(new, find_beside(source, [*new.values()]), strict=True)
        pairs = [(each, self._beside[key]) for each, key in zip(splits, keys, strict=True)]
        if any(beside for _, beside in pairs):
            # at the first split with the row in a bin beside its cut the two paths part for good
            wide, narrow = (
                [each._replace(rule=beside[side]) if beside else each for each, beside in pairs]
                for side in (0, 1)
            )
            certain = np.equal(*(source.find_leaves(each, rows)[rows] for each in (wide, narrow)))
        shape = len(splits) + 1, 2, len(source.environments)
        cells = np.ravel_multi_index((leaves, self._labels[rows], self._environments[rows]), shape)
        tested, counted = (
            np.bincount(each, minlength=int(np.prod(shape))).reshape(shape)
            for each in (cells[certain], cells)
        )
        return sum_pearson(tested), float(compute_bic([counted])[0])


def draw_half(environments: IntArray, numbers: IntArray, seed: int) -> BoolArray:
    """One half of the rows of every environment, drawn by the rows' numbers."""
    keys = np.random.default_rng(seed).permutation(len(environments))
    order = np.lexsort((keys[numbers], environments))
    starts = np.searchsorted(environments[order], environments[order])
    sizes = np.bincount(environments)[environments[order]]
    half = np.empty(len(order), dtype=np.bool_)
    half[order] = np.arange(len(order)) - starts < sizes // 2
    return half


@dataclass(frozen=True)
class _SetScanner:
    """Scans for splits on the `wanted` ones of some features.

    First those that explain more deviance of the label than chance; where there is none and the
    label still depends on the environment, one that explains part of that dependence.
    """

    candidates: CandidateMap
    features: IntArray
    wanted: set[int]
    n_least: int

    def __call__(self, node: Node) -> SplitScan:
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
        if best.deviance_explained <= find_quantile(CHANCE_LEVEL / n_candidates, 1):
            best = min((of_environment for _, _, of_environment in own), key=rank)
            (statistic,), (dof,) = compute_rate_heterogeneity(node.totals[np.newaxis])
            is_dependent = statistic > find_quantile(CHANCE_LEVEL, int(dof))
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
                    for at in tables.find_best(values.round(DEVIANCE_DECIMALS)).tolist()
                ]
                for values in (explained, of_environment)
            )
            n_candidates = (explained >= 0).reshape(len(rows), -1).sum(axis=1).tolist()
            found |= zip(features.tolist(), zip(n_candidates, *best, strict=True), strict=True)
        return found
