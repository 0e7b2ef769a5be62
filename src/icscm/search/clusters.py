"""Criterion (i) for rows that come in clusters, such as the visits of a patient.

The rows of a *cluster* resemble each other, so a leaf has less information than its number of rows
suggests, and a test that takes rows for independent rejects too often. The *design effect* of a
leaf is the factor by which its clusters inflate the statistic of the test; the exact test divides
by it. To measure it, the source counts the rows of each cluster in the leaf, which takes far longer
than the test. So the exact test is made only for candidates whose verdict can matter.
"""

from collections.abc import Iterator
from typing import Final

import numpy as np

from icscm._constants import N_REJECTED_KEPT
from icscm._types import BoolArray, FloatArray, IntArray
from icscm.search.candidates import NOT_REJECTED, CandidateBlock
from icscm.search.nodes import Node
from icscm.search.summary import ScanSummary
from icscm.search.view import ConjunctionView
from icscm.stats.criteria import Criterion

# Candidates that are tested exactly at a time: at first, and at most.
FIRST_BATCH_SIZE: Final = 2**4
MAX_BATCH_SIZE: Final = 2**10


def measure_design_effects(
    block: CandidateBlock, indices: IntArray, *, view: ConjunctionView, uncovered: Node
) -> FloatArray | None:
    """Measure the design effects of the leaves of some rules; None for independent rows."""
    if not view.is_clustered:
        return None
    cuts = [block.make_cut(index) for index in indices.tolist()]
    return view.measure_design_effects(cuts, block.leaf_counts[indices], uncovered=uncovered)


def correct_for_clusters(
    is_dependent: BoolArray,
    block: CandidateBlock,
    *,
    criterion: Criterion,
    view: ConjunctionView,
    uncovered: Node,
    summary_so_far: ScanSummary | None,
) -> BoolArray:
    """Correct the verdicts of criterion (i) on the candidates of a block for clusters of rows.

    A scan keeps only the best allowed candidates and the first few rejected, both by descending
    utility. So candidates are tested exactly in this order, batch by batch, until no other can be
    one of these. The remaining ones keep their verdict in `is_dependent`, that of the test for
    independent rows, which then only enters the number of rejected candidates.

    Without a summary of the scan so far, all candidates are tested exactly.
    """
    corrected = is_dependent.copy()
    by_descending_utility = block.sort_by_merit(np.flatnonzero(block.is_candidate))
    best_utility = -np.inf if summary_so_far is None else summary_so_far.best.merit.utility
    n_rejected = 0

    for batch in split_into_batches(by_descending_utility):
        if summary_so_far is not None:
            highest_utility = block.utilities[batch[0]]
            can_be_best = highest_utility >= best_utility
            # The list has room for a few; a block cannot add more than that to it.
            has_room = n_rejected < N_REJECTED_KEPT
            can_be_listed = has_room and highest_utility >= summary_so_far.rejected.lowest_value
            if not can_be_best and not can_be_listed:
                break

        # The exact test: the test for independent rows, less what clusters add to its statistic.
        design_effects = measure_design_effects(block, batch, view=view, uncovered=uncovered)
        is_rejected = ~criterion.find_accepted(block.leaf_counts[batch], design_effects)
        corrected[batch] = is_rejected
        n_rejected += int(is_rejected.sum())

        is_allowed = ~is_rejected & (block.rejections[batch] == NOT_REJECTED)
        if is_allowed.any():
            best_of_batch = batch[is_allowed][0]
            best_utility = max(best_utility, block.utilities[best_of_batch])

    return corrected


def split_into_batches(indices: IntArray) -> Iterator[IntArray]:
    """Split indices into batches, each twice as long as the one before, up to a limit.

    The first ones are short since they often suffice, the later ones long so that a few calls of
    the source are enough where all candidates matter.
    """
    start = 0
    batch_size = FIRST_BATCH_SIZE
    while start < len(indices):
        yield indices[start : start + batch_size]
        start += batch_size
        batch_size = min(2 * batch_size, MAX_BATCH_SIZE)
