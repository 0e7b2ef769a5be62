"""Greedy set covering: learns a conjunction of rules by Algorithms 1 and 2 of the paper.

A *rule* is a condition on one column, such as ``age > 50``. A conjunction predicts a positive where
all its rules are true. So a rule *covers* the rows where it is false: their prediction is negative,
whatever rules follow. A new rule is judged by the rows that are *uncovered* so far (N and P of the
paper, negatives and positives). Those that it would cover are its *leaf* (A and B). Of all rules in
whose leaf the outcome is independent of the environment, criterion (i), the one of largest utility
|A| - p |B| is added, until the outcome of all uncovered rows is independent: criterion (ii).

The uncovered rows satisfy all rules of the conjunction, so they are the node of the path of these
(`icscm.search.nodes`). The search sees them as counts by label (0 negative, 1 positive) and
environment. A rule is known by its *cut*: a column and the number of its threshold.
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

    Each step adds the allowed rule of largest utility, U = |A| - p |B|, until there is a reason to
    stop. To try all sets of rules instead would take exponential time.
    """
    uncovered = view.make_root()
    scanner = CandidateScanner(view, n_rows=uncovered.n_rows)
    recorder = TraceRecorder(view, utility=scanner.utility)
    cuts: list[Cut] = []
    steps: list[Step] = []
    scans: list[Scan] = []

    while True:
        stop_reason = find_reason_to_stop(uncovered, steps=steps, settings=view.settings)
        if stop_reason is not None:
            break

        summary = scanner.scan(uncovered)
        chosen = summary.best.choose_group()
        if chosen is None:
            stop_reason = "no_candidate"
            nearest = scanner.find_nearest_to_level(uncovered)
            last_scan = recorder.make_last_scan(summary, nearest=nearest, stop_reason=stop_reason)
            scans.append(last_scan)
            break

        remaining = uncovered.split(chosen.first_cut, if_false=chosen.leaf).if_true
        step = recorder.make_step(summary, chosen=chosen, remaining=remaining)
        cuts.append(chosen.first_cut)
        steps.append(step)
        scans.append(step)
        uncovered = remaining

    trace = make_trace(
        view.source,
        scans,
        stop_reason=stop_reason,
        alpha=None if view.settings.test is None else view.settings.alpha,
        criterion=view.settings.make_criterion(),
    )
    leaves_of_rules = [step.chosen.covered for step in steps]
    leaf_of_uncovered = view.freeze(uncovered.counts)
    return Conjunction(cuts=cuts, leaves=(*leaves_of_rules, leaf_of_uncovered), trace=trace)


def find_reason_to_stop(uncovered: Node, *, steps: list[Step], settings: Settings) -> str | None:
    """Find out why the search must stop, as a key of `STOP_REASONS`; None if it goes on."""
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

    # n of the paper, which keeps a model short enough to be read
    if len(steps) == settings.max_rules:
        return "max_rules"
    return None


def is_independent(uncovered: Node, *, design_effect: float | None, settings: Settings) -> bool:
    """Test criterion (ii): is the outcome of the uncovered rows independent of the environment?

    By the paper's theorem it is as soon as the rules hold all causes of the outcome, so any further
    rule would add something else.
    """
    criterion = settings.make_criterion()
    if criterion is None:
        return False

    leaves = uncovered.counts[np.newaxis]  # a criterion takes several leaves; this is one
    design_effects = None if design_effect is None else np.array([design_effect])
    is_accepted = criterion.find_accepted(leaves, design_effects)
    return bool(is_accepted[0])
