"""Candidate rules in blocks, their utility, and the reasons for which they are rejected.

A *candidate* is a rule that may join the model next: it covers a negative and leaves some row
uncovered. Its *leaf* is the set of uncovered rows that it would cover: the negatives A, correctly,
and the positives B, wrongly. Its *utility* is U = |A| - p |B|; of equal utilities the larger number
of *excess negatives*, |A| - |B|, wins.

A column gives many rules (``age > 50``, ``age <= 50``, ``age > 51``), too many for an object each.
A *block* holds all rules on some columns in parallel arrays, and a rule is an index into them.
"""

from dataclasses import dataclass, replace
from typing import Final

import numpy as np
from numpy.typing import NDArray

from icscm._types import BoolArray, CountArray, IntArray
from icscm.engine.counts import Cut
from icscm.engine.leaf_tables import LeafTables
from icscm.engine.reasons import Reason
from icscm.search.nodes import Node
from icscm.search.settings import Settings
from icscm.search.utility import Utility
from icscm.stats.criteria import Criterion
from icscm.stats.replication import find_replicated

# What stands in the place of a reason if there is none.
NOT_REJECTED: Final = -1


@dataclass(frozen=True)
class CandidateBlock:
    """All rules on a block of columns; each array has an entry for each rule."""

    # the leaves of the rules, as counts (rule, outcome, environment), and their cuts
    leaves: LeafTables
    # |A| - p |B|, multiplied to whole numbers, so that equal utilities are exactly equal
    utilities: IntArray
    # |A| - |B|, which decides between equal utilities
    excess_negatives: IntArray
    # rules that are no candidates (they cover no negative, or every row) are ignored everywhere
    is_candidate: BoolArray
    # the `Reason` for which a candidate is rejected, or `NOT_REJECTED`
    rejections: NDArray[np.int8]

    @property
    def leaf_counts(self) -> CountArray:
        """The rows in the leaf of each rule, by (rule, outcome, environment)."""
        return self.leaves.tables

    @property
    def is_allowed(self) -> BoolArray:
        """Whether a rule may join the model."""
        is_allowed: BoolArray = self.is_candidate & (self.rejections == NOT_REJECTED)
        return is_allowed

    def count_rules(self, mask: BoolArray) -> int:
        """Count the rules that a mask selects, those on identical columns included."""
        return self.leaves.count(mask)

    def count_indexed(self, indices: IntArray) -> int:
        """Count some rules, those on identical columns included."""
        mask = np.zeros(len(self.leaf_counts), dtype=np.bool_)
        mask[indices] = True
        return self.count_rules(mask)

    def make_cut(self, index: int) -> Cut:
        """Make the cut of a rule, which says its column and threshold, from its index."""
        return self.leaves.locate(index)

    def sort_by_merit(self, indices: IntArray) -> IntArray:
        """Sort rules by utility and then by excess negatives, the largest first."""
        order = np.lexsort((-self.excess_negatives[indices], -self.utilities[indices]))
        return indices[order]

    def find_best_allowed(self) -> IntArray:
        """Find the allowed rules of largest utility and, of these, of most excess negatives.

        There may be several, since many rules can cover the same rows.
        """
        allowed = np.flatnonzero(self.is_allowed)
        if len(allowed) == 0:
            return allowed

        utilities = self.utilities[allowed]
        of_largest_utility = allowed[utilities == utilities.max()]

        excess = self.excess_negatives[of_largest_utility]
        best: IntArray = of_largest_utility[excess == excess.max()]
        return best


def make_block(leaves: LeafTables, *, utility: Utility, uncovered: Node) -> CandidateBlock:
    """Make a block from the leaves of its rules; none of them is rejected yet."""
    measured = utility.measure(leaves.tables, n_rows=uncovered.n_rows)
    return CandidateBlock(
        leaves=leaves,
        utilities=measured.utilities,
        excess_negatives=measured.excess_negatives,
        is_candidate=measured.is_candidate,
        rejections=np.full(len(leaves.tables), NOT_REJECTED, dtype=np.int8),
    )


# --- reasons to reject ----------------------------------------------------------


def reject_by_counts(
    block: CandidateBlock, *, utility: Utility, uncovered: Node, settings: Settings
) -> CandidateBlock:
    """Reject candidates for every reason but dependence on the environment.

    These reasons take little time. Dependence can take much more to test, and comes afterwards,
    when it is known which candidates could be allowed at all.
    """
    is_unreplicated = find_unreplicated(block, uncovered=uncovered, settings=settings)
    is_unhelpful = find_unhelpful(block, utility=utility, uncovered=uncovered, settings=settings)

    # `np.select` takes the first condition that holds, as `Reason` demands.
    rejections = np.select(
        [block.is_candidate & is_unreplicated, block.is_candidate & is_unhelpful],
        [np.int8(Reason.UNREPLICATED), np.int8(Reason.UNHELPFUL)],
        default=np.int8(NOT_REJECTED),
    )
    return replace(block, rejections=rejections)


def find_unreplicated(block: CandidateBlock, *, uncovered: Node, settings: Settings) -> BoolArray:
    """Find the rules that too few environments have information on.

    The outcome in a leaf that lies in one environment cannot depend on the environment, so such a
    rule passes criterion (i) whether or not it holds elsewhere.
    """
    if settings.min_replication <= 0:
        return np.zeros_like(block.is_candidate)
    return ~find_replicated(block.leaf_counts, uncovered.counts, settings.min_replication)


def find_unhelpful(
    block: CandidateBlock, *, utility: Utility, uncovered: Node, settings: Settings
) -> BoolArray:
    """Find the rules whose utility is too low, or that chance would explain.

    Of many rules that have nothing to do with the outcome, some cover more negatives than
    positives by chance. The paper has no such bound: it is applied only with `min_utility`.
    """
    if settings.min_utility is None:
        return np.zeros_like(block.is_candidate)

    is_of_low_utility: BoolArray = block.utilities < utility.find_bound(settings.min_utility)
    if settings.min_evidence <= 0:
        return is_of_low_utility

    evidence_against_chance = block.leaves.compute_evidence(uncovered.counts)
    return is_of_low_utility | (evidence_against_chance < settings.min_evidence)


def find_dependent(block: CandidateBlock, criterion: Criterion) -> BoolArray:
    """Find the candidates in whose leaf the outcome depends on the environment: criterion (i).

    By the paper's theorem, a rule of the true conjunction has a leaf in which the rate of positives
    is the same in every environment. Rows are taken for independent of each other here.
    """
    is_candidate = block.is_candidate
    if is_candidate.all():
        # This is the usual case, in which the leaves need not be copied.
        return ~criterion.find_accepted(block.leaf_counts)

    is_dependent = np.zeros_like(is_candidate)
    is_dependent[is_candidate] = ~criterion.find_accepted(block.leaf_counts[is_candidate])
    return is_dependent


def reject_dependent(block: CandidateBlock, is_dependent: BoolArray) -> CandidateBlock:
    """Reject candidates for dependence on the environment.

    It is tested last, but is the first in the order of `Reason`: so it replaces any other reason.
    """
    rejections = np.where(is_dependent, np.int8(Reason.DEPENDENT), block.rejections)
    return replace(block, rejections=rejections)
