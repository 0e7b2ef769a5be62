"""One scan of all candidate rules: the inner loop of Algorithms 1 and 2 of the paper.

A *candidate* is a rule that may join the model next, and its *leaf* is the set of uncovered rows
that it would cover. *Criterion (i)* rejects it if the outcome depends on the environment in its
leaf. A *block* holds all candidates on some columns, and goes the same way in every scan:

    counts of the uncovered rows, as a `CountCube`  ->  leaves and utilities, `make_block`
        ->  rejected for too few environments and so on, `reject_by_counts`
        ->  rejected by criterion (i), `find_dependent`
        ->  added to the result of the scan, `ScanSummary`
"""

from collections.abc import Iterable, Iterator

import numpy as np

from icscm._types import CountArray
from icscm.engine.counts import CountCube
from icscm.engine.reasons import Reason
from icscm.search.candidates import (
    CandidateBlock,
    find_dependent,
    make_block,
    reject_by_counts,
    reject_dependent,
)
from icscm.search.clusters import correct_for_clusters, measure_design_effects
from icscm.search.nodes import Node
from icscm.search.shortlist import list_nearest, make_shortlist
from icscm.search.summary import RejectedCandidates, ScanSummary
from icscm.search.utility import make_utility
from icscm.search.view import ConjunctionView
from icscm.stats.independence import compute_corrected


class CandidateScanner:
    """Scans all candidates for the best that is allowed.

    Parameters
    ----------
    view : ConjunctionView
        The source as the search sees it, and the settings.
    n_rows : int
        The number of all rows, uncovered or not; it bounds the utilities that can occur.
    """

    def __init__(self, view: ConjunctionView, *, n_rows: int) -> None:
        self.view = view
        self.settings = view.settings
        self.utility = make_utility(view.settings.p, n_rows=n_rows)
        self.criterion = view.settings.make_criterion()

    def scan(self, uncovered: Node) -> ScanSummary:
        """Scan all candidates once, and keep the best allowed and the first few rejected.

        A source with very many columns may examine most candidates itself, where the counts are.
        It then sends a shortlist, and only the columns on it are examined here.
        """
        shortlist = make_shortlist(self.view, utility=self.utility, uncovered=uncovered)
        summary = ScanSummary(uncovered)

        for block in self._iterate_blocks(shortlist.cubes, uncovered):
            # The summary so far shows which candidates of this block cannot matter any more.
            judged_block = self._reject(block, uncovered=uncovered, summary_so_far=summary)
            summary.add(judged_block)

        summary.add_unlisted(shortlist)
        return summary

    def find_nearest_to_level(self, uncovered: Node) -> RejectedCandidates:
        """Find the candidates whose p-values are largest of those that criterion (i) rejects.

        They show which rules a slightly lower level would have allowed. It takes another scan, so
        only a search that ends without an allowed candidate asks for them.
        """
        nearest = RejectedCandidates()
        test = self.settings.test
        if test is None:
            return nearest

        cubes = list_nearest(self.view, utility=self.utility, uncovered=uncovered)
        for block in self._iterate_blocks(cubes, uncovered):
            judged_block = self._reject(block, uncovered=uncovered)
            dependent = np.flatnonzero(judged_block.rejections == Reason.DEPENDENT)
            design_effects = measure_design_effects(
                judged_block, dependent, view=self.view, uncovered=uncovered
            )
            leaves: CountArray = judged_block.leaf_counts[dependent]
            p_values = compute_corrected(test, leaves, design_effects)
            nearest.add(judged_block, dependent, values=p_values)
        return nearest

    def _iterate_blocks(
        self, cubes: Iterable[CountCube], uncovered: Node
    ) -> Iterator[CandidateBlock]:
        """Make the blocks of candidates one by one, as their counts come from the source.

        A cube holds the counts of some columns, by (column, bin, outcome, environment).
        """
        for leaves in self.view.iterate_leaf_tables(cubes, uncovered):
            yield make_block(leaves, utility=self.utility, uncovered=uncovered)

    def _reject(
        self,
        block: CandidateBlock,
        *,
        uncovered: Node,
        summary_so_far: ScanSummary | None = None,
    ) -> CandidateBlock:
        """Reject the candidates of a block that may not join the model, each with a reason.

        With the summary of the scan so far, candidates that cannot change it any more may be tested
        less exactly, which is faster. Without it, all are tested exactly.
        """
        checked_block = reject_by_counts(
            block, utility=self.utility, uncovered=uncovered, settings=self.settings
        )
        if self.criterion is None:  # Algorithm 1, which has no tests
            return checked_block

        is_dependent = find_dependent(checked_block, self.criterion)
        if self.view.is_clustered:
            # This test takes rows for independent, and rejects too often.
            is_dependent = correct_for_clusters(
                is_dependent,
                checked_block,
                criterion=self.criterion,
                view=self.view,
                uncovered=uncovered,
                summary_so_far=summary_so_far,
            )
        return reject_dependent(checked_block, is_dependent)
