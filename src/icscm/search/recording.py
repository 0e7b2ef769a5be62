"""Records of the steps of a search, as its trace keeps them for reports.

A search works with *cuts* (a column and the number of a threshold) and, for a disjunction, with
swapped outcomes. A record has what a reader needs: the printed rule, counts with the outcomes of
the model, the utility as a number, and the design effect of the leaf, by which clusters of rows
inflate its test.

Of identical columns the search examines only the first. Here all of them get their names.
"""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from icscm._constants import MAX_EQUIVALENT_RULES, N_REJECTED_KEPT
from icscm._types import CountArray
from icscm.engine.counts import Cut
from icscm.model.rules import Rule
from icscm.search.nodes import Node
from icscm.search.records import Candidate, Rejection
from icscm.search.summary import RejectedCandidates, ScanSummary, TiedGroup
from icscm.search.trace import Scan, Step
from icscm.search.utility import Utility
from icscm.search.view import ConjunctionView


class TraceRecorder:
    """Makes the records of a trace from the summaries of scans."""

    def __init__(self, view: ConjunctionView, *, utility: Utility) -> None:
        self._view = view
        self._utility = utility

    def make_step(self, summary: ScanSummary, *, chosen: TiedGroup, remaining: Node) -> Step:
        """Record a scan that adds the first rule of the chosen group to the model.

        `remaining` are the rows that the rule leaves uncovered.
        """
        uncovered = summary.uncovered
        tied_cuts = self._view.list_copies(chosen.cuts, limit=1 + MAX_EQUIVALENT_RULES)
        equivalent_cuts = self._view.find_equivalent(
            chosen.first_cut, others=tied_cuts[1:], uncovered=uncovered
        )
        return Step(
            n_candidates=summary.n_candidates,
            n_rejected=summary.n_rejected,
            best_rejected=self._make_rejections(summary.rejected, uncovered=uncovered),
            chosen=self._make_candidate(chosen.first_cut, chosen.leaf, uncovered=uncovered),
            uncovered=self._view.freeze(remaining.counts),
            effect_uncovered=self._view.measure_design_effect_of_all(remaining),
            equivalent=self._make_rules(equivalent_cuts),
            n_tied=summary.best.n_tied,
        )

    def make_last_scan(
        self, summary: ScanSummary, *, nearest: RejectedCandidates, stop_reason: str
    ) -> Scan:
        """Record a scan that ended the search because no candidate was allowed.

        `nearest` are the candidates that failed the test most narrowly. They tell a user what a
        slightly lower level would have allowed.
        """
        uncovered = summary.uncovered
        return Scan(
            n_candidates=summary.n_candidates,
            n_rejected=summary.n_rejected,
            best_rejected=self._make_rejections(summary.rejected, uncovered=uncovered),
            nearest=self._make_rejections(nearest, uncovered=uncovered),
            end=stop_reason,
        )

    def _make_rejections(
        self, rejected: RejectedCandidates, *, uncovered: Node
    ) -> tuple[Rejection, ...]:
        """Record the first of the rejected candidates, those on identical columns included."""
        entries = [
            replace(entry, cut=copy)
            for entry in rejected.entries
            for copy in self._view.list_copies([entry.cut], limit=N_REJECTED_KEPT)
        ]
        entries.sort(key=lambda entry: entry.sort_key)
        return tuple(
            Rejection(
                candidate=self._make_candidate(entry.cut, entry.leaf, uncovered=uncovered),
                reason=entry.reason,
            )
            for entry in entries[:N_REJECTED_KEPT]
        )

    def _make_candidate(self, cut: Cut, leaf: CountArray, *, uncovered: Node) -> Candidate:
        """Record one candidate."""
        design_effects = self._view.measure_design_effects(
            [cut], leaf[np.newaxis], uncovered=uncovered
        )
        return Candidate(
            rule=self._view.make_rule(cut),
            covered=self._view.freeze(leaf),
            utility=self._utility.compute(leaf),
            design_effect=None if design_effects is None else float(design_effects[0]),
        )

    def _make_rules(self, cuts: Sequence[Cut]) -> tuple[Rule, ...]:
        """Make the rules of cuts, as the model prints them."""
        return tuple(self._view.make_rule(cut) for cut in cuts)
