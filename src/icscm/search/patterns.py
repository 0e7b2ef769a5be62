"""Rows by the truth of several rules, from which pruning and other searches derive all tables.

A *pattern* says of each rule whether it is true. Two kinds of tables are sums over patterns:

    leaves    of a conjunction of some of the rules: a row is in the leaf of the first of these that
              is false, or in the last leaf if all are true
    strata    of some of the rules: a row is in the stratum of their truths

    pattern of rules 0, 1, 2      leaf of 0 and 1     stratum of 0 and 1
    false  false  true            0                   0  (false false)
    true   true   false           2                   1  (true  true)
    true   true   true            2                   1  (true  true)
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from icscm._types import CountArray, FloatArray, IntArray
from icscm.engine.clusters import ClusterPatterns
from icscm.engine.counts import PatternTable
from icscm.engine.patterns import find_patterns, merge_patterns
from icscm.stats.design_effects import compute_leaf_design_effects


@dataclass(frozen=True)
class Patterns:
    """All rows by the truth of some rules.

    Attributes
    ----------
    table : PatternTable
        The patterns that occur, and their rows by (pattern, outcome, environment).
    clusters : ClusterPatterns or None
        The same by cluster, where tests must allow for clusters of rows.
    """

    table: PatternTable
    clusters: ClusterPatterns | None = None

    # --- leaves -----------------------------------------------------------------

    def number_leaves(self, rules: Sequence[int], others: Sequence[int] | None = None) -> IntArray:
        """Return the leaf of each pattern in the conjunction of some of the rules.

        With as many `others`, return -1 for patterns that are in another leaf of the conjunction
        of these: it is not certain where such rows belong.
        """
        leaves = self._find_first_false(rules)
        if others is None:
            return leaves
        return np.where(leaves == self._find_first_false(others), leaves, -1)

    def compute_leaves(
        self, rules: Sequence[int], others: Sequence[int] | None = None
    ) -> CountArray:
        """Compute the counts (leaf, outcome, environment) of the conjunction of some of the rules.

        With as many `others`, of those rows only that are in the same leaf of their conjunction.
        """
        leaves = self.number_leaves(rules, others)
        is_counted = leaves >= 0
        counts = self.table.counts
        sums = np.zeros((len(rules) + 1, *counts.shape[1:]), dtype=counts.dtype)
        np.add.at(sums, leaves[is_counted], counts[is_counted])
        return sums

    def _find_first_false(self, rules: Sequence[int]) -> IntArray:
        """Find the place of the first rule that is false in each pattern; the number if none is."""
        truths = self.table.patterns[:, list(rules)]
        always_false = np.zeros((len(truths), 1), dtype=np.bool_)
        first_false: IntArray = np.hstack((truths, always_false)).argmin(axis=1)
        return first_false

    # --- strata -----------------------------------------------------------------

    def number_strata(self, rules: Sequence[int]) -> IntArray:
        """Return the stratum of each pattern: its truths of some of the rules, by number."""
        truths = [self.table.patterns[:, rule] for rule in rules]
        return find_patterns(truths, len(self.table.patterns)).numbers

    def compute_strata(self, rules: Sequence[int]) -> CountArray:
        """Compute the counts (stratum, outcome, environment) of some of the rules."""
        return merge_patterns(self.table, rules).counts

    # --- clusters of rows -------------------------------------------------------

    def measure_design_effects(
        self, table_of_pattern: IntArray, tables: CountArray
    ) -> FloatArray | None:
        """Measure by what factor clusters inflate a test on tables, such as leaves or strata.

        `tables` are counts (table, outcome, environment), `table_of_pattern` is the number of each
        pattern's table, -1 for none. Return None if rows are independent.
        """
        if self.clusters is None:
            return None
        moments = self.clusters.count_moments(table_of_pattern, len(tables))
        return compute_leaf_design_effects(tables, moments)

    def measure_all(
        self, table_of_pattern_of_sets: Sequence[IntArray], tables_of_sets: Sequence[CountArray]
    ) -> list[FloatArray] | None:
        """Measure the design effects of several sets of tables; None if rows are independent."""
        if self.clusters is None:
            return None
        design_effects = []
        for table_of_pattern, tables in zip(table_of_pattern_of_sets, tables_of_sets, strict=True):
            moments = self.clusters.count_moments(table_of_pattern, len(tables))
            design_effects.append(compute_leaf_design_effects(tables, moments))
        return design_effects
