"""What is kept of one scan: how many candidates there were, the best of them, some rejected ones.

A *scan* examines all candidate rules of a step. They come in blocks of columns
(`icscm.search.candidates`), since together they may not fit into memory. So each class here is
given one block after the other, by `add`, and keeps little of it. What it has kept in the end does
not depend on the order of the blocks.

Outside of its block a rule is known by its *cut*: its column, and the number of its threshold or
level. Cuts have an order, by column and threshold, which decides where nothing else does. Of
identical columns only the first is scanned; `icscm.search.recording` names the others.
"""

from dataclasses import dataclass
from typing import Final, NamedTuple

import numpy as np

from icscm._constants import MAX_EQUIVALENT_RULES, N_REJECTED_KEPT
from icscm._types import Array, CountArray, IntArray
from icscm.engine.counts import Cut, Shortlist
from icscm.engine.reasons import REASONS
from icscm.search.candidates import NOT_REJECTED, CandidateBlock
from icscm.search.nodes import Node


class ScanSummary:
    """What is kept of one scan of all candidates, which cover some of the uncovered rows."""

    def __init__(self, uncovered: Node) -> None:
        self.uncovered = uncovered
        # numbers of rules, those on identical columns included
        self.n_candidates = 0
        self.n_rejected = dict.fromkeys(REASONS, 0)
        # the allowed candidates of largest utility, one of which joins the model
        self.best = BestCandidates()
        # the rejected candidates of largest utility: a report says why they did not join
        self.rejected = RejectedCandidates()

    def add(self, block: CandidateBlock) -> None:
        """Add the candidates of a block, of which some are rejected."""
        self.n_candidates += block.count_rules(block.is_candidate)
        for number, reason in enumerate(REASONS):
            self.n_rejected[reason] += block.count_rules(block.rejections == number)

        self.best.add(block)

        rejected = np.flatnonzero(block.rejections != NOT_REJECTED)
        self.rejected.add(block, rejected, values=block.utilities[rejected])

    def add_unlisted(self, shortlist: Shortlist) -> None:
        """Add the candidates that a source examined itself and left off its shortlist.

        The shortlist has all that can be chosen or listed. Of the others only numbers are kept.
        """
        self.n_candidates += shortlist.n_candidates
        for reason, n_rejected in shortlist.n_rejected.items():
            self.n_rejected[reason] += n_rejected

        # Some of those left off may be as good as the chosen one, which a report says.
        if shortlist.best == self.best.merit:
            self.best.n_tied += shortlist.n_ties


# --- the best -------------------------------------------------------------------


class Merit(NamedTuple):
    """What the candidates are compared by: utility first, excess negatives if it is equal."""

    utility: float
    excess_negatives: float


LOWEST_MERIT: Final = Merit(utility=-np.inf, excess_negatives=-np.inf)


@dataclass(frozen=True)
class TiedGroup:
    """Candidates of the same merit whose leaves hold the same counts.

    Rules that cover the very same rows are always in the same group.

    Attributes
    ----------
    leaf : array of int, (outcome, environment)
        The counts of each of their leaves.
    cuts : list of Cut
        The rules in ascending order; there is at least one.
    """

    leaf: CountArray
    cuts: list[Cut]

    @property
    def first_cut(self) -> Cut:
        """The rule that joins the model if this group is chosen."""
        return self.cuts[0]

    @property
    def other_cuts(self) -> list[Cut]:
        """The rules that may cover the same rows as the first; only the source can tell."""
        return self.cuts[1:]


class BestCandidates:
    """The allowed candidates of the highest merit.

    Often several are tied. One of them is chosen. Of the others, those that cover the same rows are
    reported, since the data cannot tell them from the chosen one. So the tied candidates are kept
    in groups of equal leaves.
    """

    def __init__(self) -> None:
        self.merit = LOWEST_MERIT
        # all that have the highest merit, those on identical columns included
        self.n_tied = 0

        # The key is the leaf as bytes: a tuple of many environments would take long to hash.
        self._groups: dict[bytes, TiedGroup] = {}

    def add(self, block: CandidateBlock) -> None:
        """Add the best candidates of a block, unless better ones are known."""
        best = block.find_best_allowed()
        if len(best) == 0:
            return

        # All of them have the same merit, that of the first.
        merit = Merit(
            utility=block.utilities[best[0]].item(),
            excess_negatives=block.excess_negatives[best[0]].item(),
        )
        if merit < self.merit:
            return
        if merit > self.merit:
            # What was the best so far no longer is.
            self.merit = merit
            self.n_tied = 0
            self._groups = {}

        self.n_tied += block.count_indexed(best)
        for leaf_bytes, indices in group_by_leaf(block, best).items():
            self._add_to_group(leaf_bytes, block, indices)

    def choose_group(self) -> TiedGroup | None:
        """Choose the group that has the first of all cuts; None if no candidate is allowed.

        Between equals the choice is arbitrary, but the same for any order of blocks.
        """
        return min(self._groups.values(), key=lambda group: group.first_cut, default=None)

    def _add_to_group(self, leaf_bytes: bytes, block: CandidateBlock, indices: list[int]) -> None:
        """Add candidates of the same leaf to their group, which keeps a limited number of cuts."""
        n_kept = 1 + MAX_EQUIVALENT_RULES
        cuts: list[Cut] = []
        if leaf_bytes in self._groups:
            cuts.extend(self._groups[leaf_bytes].cuts)

        # Rules are in the order of their cuts: those beyond the limit would not be kept anyway.
        cuts.extend(block.make_cut(index) for index in indices[:n_kept])

        self._groups[leaf_bytes] = TiedGroup(
            leaf=block.leaf_counts[indices[0]].copy(),  # a view would keep the block in memory
            cuts=sorted(cuts)[:n_kept],
        )


def group_by_leaf(block: CandidateBlock, indices: IntArray) -> dict[bytes, list[int]]:
    """Group rules of a block whose leaves hold the same counts, by the bytes of these."""
    groups: dict[bytes, list[int]] = {}
    for index in indices.tolist():
        leaf_bytes = block.leaf_counts[index].tobytes()
        groups.setdefault(leaf_bytes, []).append(index)
    return groups


# --- the rejected ---------------------------------------------------------------


@dataclass(frozen=True)
class RejectedCandidate:
    """A rejected candidate, and the value by which it is listed: its utility or p-value."""

    cut: Cut
    leaf: CountArray
    reason: str
    value: float
    excess_negatives: int

    @property
    def sort_key(self) -> tuple[float, int, Cut]:
        """The largest value comes first, then most excess negatives, then the first cut."""
        return -self.value, -self.excess_negatives, self.cut


class RejectedCandidates:
    """A list of a few rejected candidates: those with the largest values.

    The value of a candidate is what the list is for: its utility, to show which rules would have
    joined the model; or its p-value, to show which rules were rejected most narrowly.
    """

    def __init__(self) -> None:
        # in descending order of values, at most `N_REJECTED_KEPT`
        self.entries: list[RejectedCandidate] = []

    @property
    def lowest_value(self) -> float:
        """The value below which a candidate cannot be listed any more."""
        is_full = len(self.entries) == N_REJECTED_KEPT
        return self.entries[-1].value if is_full else -np.inf

    def add(self, block: CandidateBlock, indices: IntArray, values: Array) -> None:
        """Add rejected candidates of a block, given by index, each with its value."""
        # A block may have thousands of them. Arrays show quickly which few can be listed; only of
        # these are objects made.
        can_be_listed = values >= self.lowest_value
        listable_indices = indices[can_be_listed]
        listable_values = values[can_be_listed]
        largest = find_largest(
            listable_values,
            tie_breakers=block.excess_negatives[listable_indices],
            n_wanted=N_REJECTED_KEPT,
        )

        entries = list(self.entries)
        for position in largest.tolist():
            index = int(listable_indices[position])
            entry = RejectedCandidate(
                cut=block.make_cut(index),
                leaf=block.leaf_counts[index].copy(),  # a view would keep the block in memory
                reason=REASONS[block.rejections[index]],
                value=listable_values[position].item(),
                excess_negatives=int(block.excess_negatives[index]),
            )
            entries.append(entry)

        entries.sort(key=lambda entry: entry.sort_key)
        self.entries = entries[:N_REJECTED_KEPT]


def find_largest(values: Array, *, tie_breakers: IntArray, n_wanted: int) -> IntArray:
    """Find the indices of the largest values in descending order.

    Of equal values, those of larger tie-breakers come first, then those of smaller index.

    >>> find_largest(np.array([3, 7, 5, 7]), tie_breakers=np.array([0, 1, 0, 2]), n_wanted=3)
    array([3, 1, 2])
    """
    indices = np.arange(len(values))
    if len(values) > n_wanted:
        # Sort only what can be among the largest: to sort millions of values would take long.
        nth_largest = np.partition(values, -n_wanted)[-n_wanted]
        indices = np.flatnonzero(values >= nth_largest)

    order = np.lexsort((-tie_breakers[indices], -values[indices]))
    return indices[order[:n_wanted]]
