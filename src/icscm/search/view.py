"""What a search sees of a source: a conjunction's candidates, whatever the model type."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

import numpy as np

from icscm._types import CountArray
from icscm.engine.bits import expand, list_alike
from icscm.engine.counts import BinnedRule, CountCube, CountSource, Cut, PatternTable
from icscm.model.rules import Rule
from icscm.model.splits import LeafCounts, freeze_counts
from icscm.search.settings import Settings
from icscm.stats.leaf_tables import EITHER_SIDE, LeafTables, compute_leaf_tables


def compute_leaves(table: PatternTable, rules: Sequence[int]) -> CountArray:
    """Counts (leaf, label, environment) of the conjunction of some of the table's rules."""
    truth = table.patterns[:, list(rules)]
    ends = np.zeros((len(truth), 1), dtype=np.bool_)
    first_false = np.hstack((truth, ends)).argmin(axis=1)
    leaves = np.zeros((len(rules) + 1, *table.counts.shape[1:]), dtype=table.counts.dtype)
    np.add.at(leaves, first_false, table.counts)
    return leaves


class ConjunctionView:
    """The source as one who learns a conjunction sees it: for a disjunction, labels inverted.

    `sides` are the truths for a missing value that rules may have, as the learner sees them.
    Identical features come as the source has them, or each by itself if `expanded`.
    """

    def __init__(
        self, source: CountSource, inverted: bool, sides: Sequence[bool], expanded: bool
    ) -> None:
        self.source = source
        self.inverted = inverted
        self._sides = sides
        self._expanded = expanded

    def count_totals(self) -> CountArray:
        return self._flip(self.source.count_totals())

    def leaf_tables(self, cubes: Iterable[CountCube] | None = None) -> Iterator[LeafTables]:
        """The leaves of all candidates, or of those in some cubes."""
        for cube in self.source.counts() if cubes is None else cubes:
            cube = expand(cube, self.source.candidates) if self._expanded else cube
            if self.inverted:
                cube = replace(cube, counts=self._flip(cube.counts))
            yield compute_leaf_tables(
                cube, self.source.candidates, self._sides, inverted=self.inverted
            )

    def as_given(self, counts: CountArray) -> LeafCounts:
        """Counts by the labels as the user knows them, in plain values."""
        frozen: LeafCounts = freeze_counts(self._flip(counts))
        return frozen

    def make_rule(self, cut: Cut) -> Rule:
        """The rule as the model prints it."""
        rule = self.source.candidates.make_rule(cut)
        return rule.negate() if self.inverted else rule

    def list_alike(self, cut: Cut, most: int) -> list[Cut]:
        """The cut and those of identical features, the first of them."""
        return [cut] if self._expanded else list_alike(cut, self.source.candidates, most)

    def find_equivalent(self, chosen: Cut, others: Sequence[Cut]) -> list[Cut]:
        """Which of the others cover exactly the uncovered samples that the chosen one covers."""
        if not others:
            return []
        same = self.source.find_same_coverage(
            self.make_binned_rule(chosen), [self.make_binned_rule(cut) for cut in others]
        )
        return [cut for cut, is_same in zip(others, same, strict=True) if is_same]

    def make_binned_rule(self, cut: Cut) -> BinnedRule:
        return self.source.candidates.make_binned_rule(cut)

    def _flip(self, counts: CountArray) -> CountArray:
        return counts[..., ::-1, :] if self.inverted else counts


def make_view(source: CountSource, settings: Settings) -> ConjunctionView:
    """The source for a search with these settings. Features that weigh differently are not alike.

    With `missing="separate"` no printed rule is true for a missing value; where the printed
    rules are the negations of those searched, these are all true for it.
    """
    inverted = settings.model_type == "disjunction"
    sides = (inverted,) if settings.missing == "separate" else EITHER_SIDE
    return ConjunctionView(source, inverted, sides, settings.feature_weights is not None)
