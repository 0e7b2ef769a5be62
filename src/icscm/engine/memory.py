"""The count source over an array in memory."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from icscm._constants import CODE_DTYPE, QUANTILE_SAMPLE
from icscm.columns import CodedTable, code_array
from icscm.engine.binary import pack_binary
from icscm.engine.counts import BinnedRule, CandidateMap, CountArray, CountCube, PatternTable
from icscm.engine.encoding import encode
from icscm.engine.patterns import count_patterns
from icscm.engine.rows import Rows, sort_rows
from icscm.engine.stores import Store
from icscm.engine.threads import count_threads

Array = NDArray[Any]

SAMPLED = (
    f"Thresholds of features with many values are quantiles of a sample of {QUANTILE_SAMPLE:,} "
    "rows, picked by a hash of their content."
)


class MemorySource:
    """Counts over binned columns held in memory; see `make_memory_source`."""

    def __init__(
        self,
        candidates: CandidateMap,
        stores: Sequence[Store],
        rows: Rows,
        position: NDArray[np.uint32],
        classes: Sequence[Any],
        environments: Sequence[Any],
        notes: Sequence[str] = (),
    ) -> None:
        self.candidates = candidates
        self.classes = classes
        self.environments = environments
        self.notes = notes
        self._stores = stores
        self._position = position
        self._all_rows = rows
        self._in_play = rows

    def take(self, rows: NDArray[np.intp]) -> MemorySource:
        """A source over some rows, given by their distinct numbers in the table.

        Thresholds and codes are this source's own, so nothing is binned again: what a
        resample costs is counting it. Neither source sees what the other one keeps.
        """
        wanted = np.zeros(len(self._position), dtype=np.bool_)
        wanted[self._position[rows]] = True
        taken, _ = self._all_rows.split(~self._all_rows.take(wanted))
        stores = [store.restrict(taken) for store in self._stores]
        return MemorySource(
            self.candidates,
            stores,
            taken,
            self._position,
            self.classes,
            self.environments,
            self.notes,
        )

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
        return np.zeros(len(self._position), dtype=CODE_DTYPE)  # a constant column has one bin


def make_memory_source(
    X: Array | CodedTable,
    labels: Array,
    environments: Array,
    *,
    classes: Sequence[Any] = (0, 1),
    environment_labels: Sequence[Any],
    max_thresholds: int | None = 50,
    n_jobs: int | None = None,
) -> MemorySource:
    """Bin a table and make it countable.

    An array holds finite numbers, and NaN where one is missing; zeros and ones only go straight
    to bits, and so do sparse matrices, which hold nothing else. For each row of X, `labels` holds
    0 or 1 and `environments` a position in `environment_labels`.
    """
    table = X if isinstance(X, CodedTable) else code_array(X)
    position, rows = sort_rows(labels, environments, len(environment_labels))
    n_threads = count_threads(n_jobs)
    packed = pack_binary(table, position, rows, n_threads)
    if packed is not None:
        candidates, store = packed
        return MemorySource(candidates, [store], rows, position, classes, environment_labels)
    binning, stores = encode(
        table, position, rows, max_thresholds=max_thresholds, n_threads=n_threads
    )
    notes = [SAMPLED] if binning.sampled else []
    return MemorySource(binning, stores, rows, position, classes, environment_labels, notes)
