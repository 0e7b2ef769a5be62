"""What sources share that keep all rows in stores: in memory, or mapped from a file."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from icscm._constants import CODE_DTYPE
from icscm._types import Array, CountArray
from icscm.engine.counts import BinnedRule, CandidateMap, CountCube, PatternTable
from icscm.engine.patterns import count_patterns
from icscm.engine.rows import Rows
from icscm.engine.stores import Store


class StoredSource:
    """Counts over stores of codes or bits, in which each row of the table has its place."""

    def __init__(
        self,
        candidates: CandidateMap,
        stores: Sequence[Store],
        rows: Rows,
        n_table_rows: int,
        classes: Sequence[Any],
        environments: Sequence[Any],
        notes: Sequence[str] = (),
    ) -> None:
        self.candidates = candidates
        self.classes = classes
        self.environments = environments
        self.notes = notes
        self._stores = stores
        self._n_table_rows = n_table_rows
        self._all_rows = rows
        self._in_play = rows

    def count_totals(self) -> CountArray:
        totals: CountArray = np.diff(self._all_rows.bounds).reshape(2, len(self.environments))
        return totals

    def counts(self) -> Iterator[CountCube]:
        for store in self._stores:
            yield from store.counts()

    def keep(self, rule: BinnedRule) -> None:
        self._in_play, left = self._in_play.split(self._find_settled_in_play(rule))
        for store in self._stores:
            store.remove(left, self._in_play)

    def find_same_coverage(
        self, rule: BinnedRule, others: Sequence[BinnedRule]
    ) -> NDArray[np.bool_]:
        settled = self._find_settled_in_play(rule)
        same = [np.array_equal(settled, self._find_settled_in_play(other)) for other in others]
        return np.array(same, dtype=np.bool_)

    def count_patterns(self, rules: Sequence[BinnedRule]) -> PatternTable:
        codes = [self._all_rows.take(self._find_codes(rule.feature)) for rule in rules]
        truths = [~rule.find_settled(each) for rule, each in zip(rules, codes, strict=True)]
        cells = np.repeat(np.arange(2 * len(self.environments)), np.diff(self._all_rows.bounds))
        return count_patterns(truths, cells, len(self.environments))

    def _find_settled_in_play(self, rule: BinnedRule) -> NDArray[np.bool_]:
        return rule.find_settled(self._in_play.take(self._find_codes(rule.feature)))

    def _find_codes(self, feature: int) -> Array:
        """Bin numbers of one feature for all rows of the table, sorted."""
        for store in self._stores:
            at = np.searchsorted(store.features, feature)
            if at < len(store.features) and store.features[at] == feature:
                return store.find_codes(feature)
        return np.zeros(self._n_table_rows, dtype=CODE_DTYPE)  # a constant column has one bin
