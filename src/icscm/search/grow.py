"""Trees grown on counts: best first, each split the one that explains most of those allowed.

The search never sees a row. A scanner finds the best allowed split of a node. `invariance` names
what must be homogeneous over environments:

    "effect"   of each split: its odds ratio, whatever an environment's own rate; splits whose
               effect differs too much are rejected (`icscm.search.effect_tree`)
    "rate"     of each leaf: the label's rate; the tree is grown without the features that make
               its leaves differ (`icscm.search.rate_tree`)
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from heapq import heappop, heappush
from itertools import count
from typing import Any, Final, NamedTuple

from icscm._constants import N_REJECTED_KEPT
from icscm._types import CountArray
from icscm.engine.bits import list_alike
from icscm.engine.counts import CandidateMap, Cut
from icscm.search.nodes import Node
from icscm.stats.leaf_tables import EITHER_SIDE, LeafTables
from icscm.stats.splits import Effects

# Deviance explained must be beyond this level of chance, Bonferroni over the candidates of a node.
LEVEL: Final = 0.05
# Deviances that differ by less are equal: the order of a sum must not decide anything.
DECIMALS: Final = 6
# The tolerance of `tolerance="auto"`, the same for all data.
TOLERANCES: Final = {"effect": 0.03, "rate": 0.005}


@dataclass(frozen=True)
class TreeSettings:
    """What the growth of a tree needs besides the counts.

    Without a `tolerance` nothing is rejected, and environments play no part: a plain tree.
    """

    invariance: str = "effect"
    tolerance: float | None = TOLERANCES["effect"]
    max_leaves: int = 16
    n_least: int = 1
    missing: str = "candidate"
    balanced: bool = False

    @property
    def needs_rates(self) -> bool:
        """Whether rates must be homogeneous, rather than effects or nothing."""
        return self.invariance == "rate" and self.tolerance is not None

    @property
    def sides(self) -> Sequence[bool]:
        """The truths for a missing value that rules may have."""
        return (False,) if self.missing == "separate" else EITHER_SIDE


class Found(NamedTuple):
    """A split of a node; `half` counts the samples for which its rule is false."""

    cut: Cut
    half: CountArray
    deviance_explained: float
    heterogeneity: float = 0.0
    heterogeneity_share: float = 0.0
    log_odds_ratio: float = 0.0


def make_found(tables: LeafTables, at: int, deviance: float, effects: Effects, row: int) -> Found:
    """The split at a place of the tables, whose effect is in a row of `effects`."""
    measured = effects.heterogeneity, effects.heterogeneity_share, effects.log_odds_ratio
    numbers = (float(each[row]) for each in measured)
    return Found(tables.locate(at), tables.tables[at].copy(), float(deviance), *numbers)


def rank(found: Found) -> tuple[float, Cut]:
    """The most deviance explained first; of equals the first in the order of cuts."""
    return -round(found.deviance_explained, DECIMALS), found.cut


# A split that is not allowed, and why: a key of `REJECTION_REASONS`.
Rejected = tuple[Found, str]


def list_first(rejected: Iterable[Rejected], candidates: CandidateMap) -> list[Rejected]:
    """The first few of some rejected splits, those of identical features included."""
    every = [
        (found._replace(cut=cut), reason)
        for found, reason in rejected
        for cut in list_alike(found.cut, candidates, N_REJECTED_KEPT)
    ]
    return sorted(every, key=lambda each: rank(each[0]))[:N_REJECTED_KEPT]


@dataclass(frozen=True)
class SplitScan:
    """The result of a scan of all splits of a node; whether one was made at all.

    `memory` is for the scans of the nodes below.
    """

    best: Found | None
    memory: Any = None
    n_candidates: int = 0
    n_rejected: dict[str, int] = field(default_factory=dict)
    rejected: Sequence[Rejected] = ()
    was_made: bool = True


# Scans a node, given the memory of the scan above it.
Scanner = Callable[[Node, Any], SplitScan]


def can_split(node: Node, n_least: int) -> bool:
    """Whether a node is large enough, and has both labels."""
    return node.size >= 2 * n_least and bool(node.totals.any(axis=1).all())


@dataclass
class Growing:
    """A node of a tree that grows; its children are where the rule is true, and false."""

    node: Node
    scan: SplitScan
    children: tuple[Growing, ...] = ()


def grow(root: Node, scan: Scanner, max_leaves: int, memory: Any = None) -> Growing:
    """Split the leaf whose best split explains most, again and again."""
    top = Growing(root, scan(root, memory))
    waiting: list[tuple[float, int, Growing, Found]] = []
    numbers = count()

    def wait(leaf: Growing) -> None:
        if (best := leaf.scan.best) is not None:
            heappush(waiting, (rank(best)[0], next(numbers), leaf, best))

    wait(top)
    for n_leaves in range(2, max_leaves + 1):
        if not waiting:
            break
        *_, leaf, best = heappop(waiting)
        below = leaf.scan.memory
        # of the last two leaves nobody needs to know how they could be split
        unscanned = SplitScan(None, below, was_made=False) if n_leaves == max_leaves else None
        halves = leaf.node.split(best.cut, best.half)
        leaf.children = tuple(Growing(half, unscanned or scan(half, below)) for half in halves)
        for child in leaf.children:
            wait(child)
    return top


def walk(top: Growing) -> Iterator[tuple[Growing, tuple[tuple[Cut, bool], ...]]]:
    """All nodes of a tree and the way to each, where rules are true first."""
    waiting: list[tuple[Growing, tuple[tuple[Cut, bool], ...]]] = [(top, ())]
    while waiting:
        each, path = waiting.pop()
        yield each, path
        if each.children and each.scan.best is not None:
            true, false = each.children
            cut = each.scan.best.cut
            waiting += [(false, (*path, (cut, False))), (true, (*path, (cut, True)))]
