"""The search for invariant sets: test every set of candidates, intersect the accepted ones.

Invariant causal prediction (Peters, Bühlmann and Meinshausen 2016) asks of each set S of candidate
causes whether the outcome is independent of the environment given S. The set is *accepted* if the
test does not reject that at level alpha. If the true causes are among the candidates, their set is
accepted with probability 1 - alpha, and then every candidate that all accepted sets share is a
cause. The steps are the same for every kind of candidate and of test:

    enumerate   all sets of up to so many candidates
    test        a p-value for each set
    intersect   what the accepted sets share; or the accepted set of lowest BIC

What differs is the test, a `SetTester`:

    `icscm.search.table_sets`   columns; within each combination of their values
    `icscm.search.tree_sets`    columns; within the leaves of a tree over them
    `icscm.search.exhaustive`   rules; within the leaves of their conjunction

Candidates are numbered, and a set is a tuple of ascending numbers.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain, combinations
from typing import Final, Protocol

import numpy as np

from icscm._constants import DEVIANCE_DECIMALS
from icscm._types import FloatArray
from icscm.stats.independence import exceeds

CandidateSet = tuple[int, ...]

# Larger numbers of sets are not counted exactly.
MAX_COUNTED: Final = 10**15


class SetTester(Protocol):
    """A test of the outcome against the environment, given a set of candidates."""

    def compute_p_values(self, max_size: int) -> dict[CandidateSet, float]:
        """Compute the p-value of every set of up to so many candidates."""

    def compute_bics(self, sets: Iterable[CandidateSet]) -> dict[CandidateSet, float]:
        """Compute the BIC of the outcome given each of some sets."""


@dataclass(frozen=True)
class InvariantSets:
    """The p-value of every set that was tested, small sets first, and the level of the tests."""

    p_values: dict[CandidateSet, float]
    alpha: float

    @cached_property
    def accepted(self) -> dict[CandidateSet, float]:
        """The sets that the test does not reject, with their p-values."""
        return {
            candidate_set: p_value
            for candidate_set, p_value in self.p_values.items()
            if exceeds(p_value, self.alpha)
        }

    def find_shared(self) -> set[int] | None:
        """Find what all accepted sets share; None if none was accepted."""
        return find_shared(self.accepted)

    def find_largest_p_values(self, n_candidates: int, never_needed: Iterable[int]) -> FloatArray:
        """Find for each candidate the largest p-value of the sets that leave it out.

        If that is not above alpha, the candidate is in all accepted sets. `never_needed` are
        candidates with identical copies: sets that have a copy instead are as good.
        """
        best_set = max(self.p_values, key=self.p_values.__getitem__)
        largest = np.full(n_candidates, self.p_values[best_set])
        # All candidates but its own are left out by the best set; for these, others are compared.
        for candidate in {*best_set}.difference(never_needed):
            largest[candidate] = max(
                p_value
                for candidate_set, p_value in self.p_values.items()
                if candidate not in candidate_set
            )
        return largest


def find_invariant_sets(tester: SetTester, *, max_size: int, alpha: float) -> InvariantSets:
    """Test every set of up to `max_size` candidates; the results are sorted, small sets first."""
    p_values = tester.compute_p_values(max_size)
    sorted_sets = sorted(p_values, key=lambda candidate_set: (len(candidate_set), candidate_set))
    return InvariantSets(
        p_values={candidate_set: p_values[candidate_set] for candidate_set in sorted_sets},
        alpha=alpha,
    )


def list_subsets(n_candidates: int, max_size: int) -> list[CandidateSet]:
    """List the sets of up to `max_size` of the candidates 0 .. n - 1, small ones first.

    >>> list_subsets(2, max_size=2)
    [(), (0,), (1,), (0, 1)]
    """
    sizes = range(min(n_candidates, max_size) + 1)
    return list(chain.from_iterable(combinations(range(n_candidates), size) for size in sizes))


def count_sets(n_candidates: int, max_size: int) -> int:
    """Count the sets of up to `max_size` candidates; counting stops at `MAX_COUNTED`."""
    total = 0
    for size in range(max_size + 1):
        total += math.comb(n_candidates, size)
        if total > MAX_COUNTED:
            break
    return total


def find_shared(accepted: Iterable[Sequence[int]]) -> set[int] | None:
    """Find the candidates that all accepted sets share.

    It is None if no set was accepted, which is something else than the empty set: that the accepted
    sets have nothing in common.

    >>> find_shared([(0, 1), (1, 2)]), find_shared([(0,), (1,)]), find_shared([])
    ({1}, set(), None)
    """
    sets = [set(candidate_set) for candidate_set in accepted]
    if not sets:
        return None
    return set.intersection(*sets)


def find_best(bics: Mapping[CandidateSet, float]) -> set[int] | None:
    """Find the accepted set of lowest BIC; of equals the smallest, then the first.

    None if no set was accepted.

    >>> find_best({(): 9.0, (0, 1): 5.0, (2,): 5.0}), find_best({})
    ({2}, None)
    """
    if not bics:
        return None

    def rank(candidate_set: CandidateSet) -> tuple[float, int, CandidateSet]:
        """Return what sets are compared by: rounded, so that the order of a sum decides nothing."""
        rounded_bic = round(bics[candidate_set], DEVIANCE_DECIMALS)
        return rounded_bic, len(candidate_set), candidate_set

    return {*min(bics, key=rank)}
