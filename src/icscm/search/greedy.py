"""Greedy set covering: learns a conjunction of rules by Algorithms 1 and 2 of the paper.

A *rule* is a condition on one column, such as ``age > 50``. A conjunction predicts a positive where
all its rules are true. So a rule *covers* the rows where it is false: their prediction is negative,
whatever rules follow. What the paper calls P, N, A, B, H and U is here

    P, N     the positives and the negatives that no rule covers yet: `uncovered`
    A, B     the negatives and the positives of these that a rule would cover: its *leaf*
    H        the rules of the conjunction: `cuts`, each a column and the number of a threshold
    U        the utility of a rule: |A| - p |B|

Two criteria make the difference between Algorithm 1, the set covering machine, and Algorithm 2:

    (i)      a rule may join only if the outcome does not depend on the environment in its leaf
    (ii)     the search ends when the outcome of the uncovered rows does not, either

The search never sees rows. The uncovered rows satisfy all rules of the conjunction, and are the
node of this path of rules (`icscm.search.nodes`): counts by outcome (0 negative, 1 positive) and
environment.
"""

from dataclasses import dataclass

import numpy as np

from icscm.engine.counts import Cut
from icscm.model.splits import LeafCounts
from icscm.search.candidate_scanner import CandidateScanner
from icscm.search.nodes import Node
from icscm.search.recording import TraceRecorder
from icscm.search.settings import Settings
from icscm.search.trace import Scan, Step, Trace, make_trace
from icscm.search.view import ConjunctionView


@dataclass(frozen=True)
class Conjunction:
    """A learned conjunction, and how it was found.

    Attributes
    ----------
    cuts : list of Cut
        The rules, in the order in which they were added.
    leaves : tuple of LeafCounts
        The rows that each rule covers and, last, the rows that none covers.
    trace : Trace
        A record of every step, from which reports explain the model.
    """

    cuts: list[Cut]
    leaves: tuple[LeafCounts, ...]
    trace: Trace


def learn_conjunction(view: ConjunctionView) -> Conjunction:
    """Learn a conjunction by Algorithm 2 of the paper; without a test, by Algorithm 1.

    Each step scans all rules, and adds the one of largest utility that criterion (i) allows, until
    there is a reason to stop. To try all sets of rules instead would take exponential time.
    """
    uncovered = view.make_root()  # P and N: at first these are all rows
    scanner = CandidateScanner(view, n_rows=uncovered.n_rows)
    recorder = TraceRecorder(view, utility=scanner.utility)
    cuts: list[Cut] = []
    steps: list[Step] = []
    last_scan: Scan | None = None

    while True:
        stop_reason = find_reason_to_stop(uncovered, steps=steps, settings=view.settings)
        if stop_reason is not None:
            break

        # For each rule: its leaf, A and B, the test of criterion (i), and its utility. If several
        # are equally good, the first one of the group that is chosen joins.
        summary = scanner.scan(uncovered)
        chosen = summary.best.choose_group()
        if chosen is None:
            stop_reason = "no_candidate"
            nearest = scanner.find_nearest_to_level(uncovered)
            last_scan = recorder.make_last_scan(summary, nearest=nearest, stop_reason=stop_reason)
            break

        # The rows that it covers leave P and N.
        cuts.append(chosen.first_cut)
        remaining = uncovered.split(chosen.first_cut, if_false=chosen.leaf).if_true
        steps.append(recorder.make_step(summary, chosen=chosen, remaining=remaining))
        uncovered = remaining

    leaves_of_rules = [step.chosen.covered for step in steps]
    leaf_of_uncovered = view.freeze(uncovered.counts)
    return Conjunction(
        cuts=cuts,
        leaves=(*leaves_of_rules, leaf_of_uncovered),
        trace=make_search_trace(view, steps, last_scan=last_scan, stop_reason=stop_reason),
    )


def make_search_trace(
    view: ConjunctionView, steps: list[Step], *, last_scan: Scan | None, stop_reason: str
) -> Trace:
    """Make the trace of a search: its steps, and the scan that found no rule to add, if any."""
    settings = view.settings
    scans: list[Scan] = [*steps]
    if last_scan is not None:
        scans.append(last_scan)
    return make_trace(
        view.source,
        scans,
        comparable=view.comparable,
        stop_reason=stop_reason,
        alpha=None if settings.test is None else settings.alpha,
        criterion=settings.make_criterion(),
    )


def find_reason_to_stop(uncovered: Node, *, steps: list[Step], settings: Settings) -> str | None:
    """Find out why the search must stop, as a key of `STOP_REASONS`; None if it goes on.

    This is the condition of the paper's while loop, with a name for each way in which it fails.
    """
    n_uncovered_negatives = int(uncovered.counts[0].sum())
    if n_uncovered_negatives == 0:
        # Another rule could only cover positives, and every one of them wrongly.
        return "covered"

    # As in the paper, criterion (ii) is tested on what a new rule has left, not before the first:
    # all rows together may pass although the outcome has causes, and the model would have no rule.
    if steps and settings.stop == "independence":
        design_effect = steps[-1].effect_uncovered
        if is_independent(uncovered, design_effect=design_effect, settings=settings):
            return "independence"

    # the paper's n, which keeps a model short enough to be read
    if len(steps) == settings.max_rules:
        return "max_rules"
    return None


def is_independent(uncovered: Node, *, design_effect: float | None, settings: Settings) -> bool:
    """Test criterion (ii): is the outcome of the uncovered rows independent of the environment?

    By the paper's theorem it is as soon as the rules hold all causes of the outcome, so any further
    rule would add something else. The design effect is that of clusters of rows, if there are any.
    """
    criterion = settings.make_criterion()
    if criterion is None:  # Algorithm 1 tests nothing
        return False

    # A criterion takes several leaves, and their design effects; this is one.
    leaves = uncovered.counts[np.newaxis]
    design_effects = None if design_effect is None else np.array([design_effect])
    is_accepted = criterion.find_accepted(leaves, design_effects)
    return bool(is_accepted[0])
