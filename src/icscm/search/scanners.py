"""The scan of a node: the best split of each feature, and which of them are allowed.

A node is scanned once, whatever features a tree may not use: those that were rejected
(`icscm.search.columns`), banned (`icscm.search.trees`) or not drawn for a tree of a forest.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Final, NamedTuple

import numpy as np

from icscm._constants import CHANCE_LEVEL, DEVIANCE_DECIMALS, N_REJECTED_KEPT
from icscm._types import BoolArray, CountArray, FloatArray, IntArray
from icscm.engine.bits import list_alike
from icscm.engine.counts import CandidateMap, Cut
from icscm.engine.leaf_tables import LeafTables, compute_halves
from icscm.search.grow import Found, Node, Rejected, SplitScan, TreeSettings, rank
from icscm.stats import splits

# Why features may not be used, by what must be homogeneous.
REASONS: Final = {"effect": ("unreplicated", "heterogeneous"), "rate": ("banned", "idle")}
# Splits that a node keeps: the best of so many features.
_MAX_KEPT: Final = 2**10


class FeatureSplits(NamedTuple):
    """The best split of each feature that explains more than chance, the best first.

    `n_informative` is how many such splits the feature has, those of identical ones included. The
    splits of the first features are kept: `at` is the place of each in the tables of its block,
    `halves` are the samples for which its rule is false.
    """

    features: IntArray
    n_informative: IntArray
    deviances: FloatArray
    halves: CountArray
    blocks: tuple[LeafTables, ...]
    block: IntArray
    at: IntArray
    n_candidates: int

    def locate(self, number: int) -> Cut:
        """The cut of one of the splits that are kept."""
        tables: LeafTables = self.blocks[self.block[number]]
        return tables.locate(self.at[number])


@dataclass(frozen=True)
class Scanner:
    """Scans nodes for the split that explains most, without the banned features.

    `banned` has the reason for each of them; `columns` are the features that may be used, by
    default all. Rejected splits are described only if `record_rejections`.
    """

    candidates: CandidateMap
    settings: TreeSettings
    columns: IntArray | None = None
    record_rejections: bool = True
    banned: Mapping[int, str] = field(default_factory=dict)

    def __call__(self, node: Node) -> SplitScan:
        if node.found is None:
            node.found = self.find_splits(node)
        known: FeatureSplits = node.found
        is_banned: BoolArray = np.isin(known.features, [*self.banned])
        is_allowed = ~is_banned
        if self.columns is not None:
            is_allowed &= np.isin(known.features, self.columns)
        best = None
        if is_allowed.any():
            at = int(is_allowed.argmax())
            if at >= len(known.at):
                node.found = known = self.find_splits(node, most=None)
            best = self._make_found(node, at)
        if not self.record_rejections:
            return SplitScan(best, known.n_candidates)
        n_rejected = dict.fromkeys(REASONS["rate" if self.settings.needs_rates else "effect"], 0)
        places = np.flatnonzero(is_banned)
        for feature, n in zip(known.features[places], known.n_informative[places], strict=True):
            n_rejected[self.banned[int(feature)]] += int(n)
        kept = places[places < len(known.at)][:N_REJECTED_KEPT]
        found = [self._make_found(node, int(each)) for each in kept]
        every = [
            (each._replace(cut=cut), self.banned[each.cut.feature])
            for each in found
            for cut in list_alike(each.cut, self.candidates, N_REJECTED_KEPT)
        ]
        first: list[Rejected] = sorted(every, key=lambda pair: rank(pair[0]))[:N_REJECTED_KEPT]
        return SplitScan(best, known.n_candidates, n_rejected, first)

    def find_splits(self, node: Node, most: int | None = _MAX_KEPT) -> FeatureSplits:
        """Scan all splits of a node.

        A split must explain more than chance over all samples and, unless the tree is a plain one,
        within environments: the latter keeps out features that only distinguish environments.
        """
        settings, blocks = self.settings, []
        if node.can_split(settings.n_least):
            totals = settings.pool(node.totals)
            for cube in node.count():
                tables = compute_halves(cube, self.candidates, settings.sides)
                rates = splits.measure_rates(settings.pool(tables.tables), totals, settings.n_least)
                blocks.append((tables, rates))
        n_candidates = sum(tables.count(rates.pooled >= 0) for tables, rates in blocks)
        n_tests = max(n_candidates, 1) * (settings.max_leaves if settings.needs_rates else 1)
        enough = splits.find_quantiles(CHANCE_LEVEL / n_tests, node.totals.shape[1])
        enough = enough * settings.design
        rows, halves, light = [np.empty((5, 0))], [node.totals[np.newaxis][:0]], []
        for number, (tables, rates) in enumerate(blocks):
            is_informative = (rates.pooled > enough[1]) & (rates.within > enough[rates.n_divided])
            rounded = np.where(is_informative, rates.pooled.round(DEVIANCE_DECIMALS), -1.0)
            at = tables.find_best(rounded)
            is_found = is_informative[at]
            n_informative = is_informative.reshape(len(at), -1).sum(axis=1)
            n_informative = n_informative * (1 if tables.n_alike is None else tables.n_alike)
            columns = tables.features, n_informative, rates.pooled[at], np.full(len(at), number), at
            rows.append(np.array(columns, dtype=np.float64)[:, is_found])
            halves.append(tables.tables[at[is_found]])
            light.append(replace(tables, tables=np.empty((len(tables.tables), 0, 0), np.int64)))
        found, every = np.concatenate(rows, axis=1), np.concatenate(halves)
        order = np.lexsort((found[0], -found[2].round(DEVIANCE_DECIMALS)))
        features, n_informative, deviances, block, at = found[:, order]
        kept = order[:most]
        places = block[:most].astype(np.int64), at[:most].astype(np.int64)
        counted = features.astype(np.int64), n_informative.astype(np.int64)
        return FeatureSplits(*counted, deviances, every[kept], tuple(light), *places, n_candidates)

    def _make_found(self, node: Node, number: int) -> Found:
        """One of the splits that a node keeps."""
        known: FeatureSplits = node.found
        return Found(known.locate(number), known.halves[number], float(known.deviances[number]))
