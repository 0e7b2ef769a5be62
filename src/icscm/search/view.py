"""A source of rows as the search for a conjunction sees it.

The search knows conjunctions only. A disjunction is learned as the conjunction of the negated rules
on *swapped outcomes*, by De Morgan's law:

    positive where  a or b    <=>    negative where  (not a) and (not b)

The view swaps negatives and positives in everything that comes from the source, and turns what the
search finds back into the rules and the outcomes of the model. Nothing else in the search knows
about disjunctions.

A rule is known by its *cut*: a column and the number of its threshold or level. A *leaf* is the
rows for which a rule is false; `uncovered` is the node of those that no rule covers yet.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from icscm._types import CountArray, FloatArray
from icscm.engine.clusters import EVERY_ROW
from icscm.engine.counts import (
    BinnedColumns,
    BinnedRule,
    CountCube,
    Cut,
    RowSource,
    RulePath,
    Shortlist,
    Shortlister,
)
from icscm.engine.leaf_tables import LeafTables, compute_leaf_tables
from icscm.model.rules import Rule
from icscm.model.splits import LeafCounts, freeze_counts
from icscm.search.comparable import make_comparable
from icscm.search.nodes import Counter, Node, NodeUse, make_root
from icscm.search.patterns import Patterns
from icscm.search.settings import Settings
from icscm.stats.design_effects import compute_leaf_design_effects


class ConjunctionView:
    """A source as the search sees it, and the settings of the search."""

    def __init__(self, source: RowSource, settings: Settings) -> None:
        self.source = source
        self.settings = settings
        # Of a disjunction outcomes are swapped, and rules negated.
        self.is_inverted = settings.model_type == "disjunction"

        # Whether tests must allow for rows that come in clusters, such as the visits of a patient.
        self.is_clustered = source.clusters is not None and settings.test is not None
        # Examines candidates where the counts are, if the source can; see `icscm.search.shortlist`.
        # It takes rows for independent, so it is of no use for clusters.
        self.shortlister: Shortlister | None = None
        if not self.is_clustered:
            self.shortlister = source.shortlister

        # The source without the columns that determine the environment; None where all count.
        self.comparable = make_comparable(source, needs_replication=settings.needs_replication)

    # --- counts -----------------------------------------------------------------

    def make_root(self) -> Node:
        """Make the node of all rows, which a search narrows rule by rule."""
        counter: Counter = self.source if self.comparable is None else self.comparable
        if self.is_inverted:
            counter = SwappedOutcomes(counter)
        return make_root(counter, NodeUse.PATH)

    def iterate_leaf_tables(
        self, cubes: Iterable[CountCube], uncovered: Node
    ) -> Iterator[LeafTables]:
        """Compute the leaves of all rules on some columns from the counts of these."""
        for cube in cubes:
            cube.check(uncovered.counts)  # a source in many places may have lost, or gained, rows
            yield compute_leaf_tables(cube, self.source.columns, inverted=self.is_inverted)

    def swap_shortlist(self, shortlist: Shortlist) -> Shortlist:
        """Return a shortlist of the source, with cubes by the outcomes that the search sees."""
        if not self.is_inverted:
            return shortlist
        return replace(shortlist, cubes=map(swap_cube, shortlist.cubes))

    def to_model_outcomes(self, counts: CountArray) -> CountArray:
        """Return counts (..., outcome, environment) with the outcomes of the model."""
        return swap_outcomes(counts) if self.is_inverted else counts

    def freeze(self, counts: CountArray) -> LeafCounts:
        """Return counts with the outcomes of the model, as immutable values to be recorded."""
        frozen: LeafCounts = freeze_counts(self.to_model_outcomes(counts))
        return frozen

    # --- rules ------------------------------------------------------------------

    def make_rule(self, cut: Cut) -> Rule:
        """Make the rule of a cut as the model prints it."""
        rule = self.source.columns.make_rule(cut)
        return rule.negate() if self.is_inverted else rule

    def make_binned_rule(self, cut: Cut) -> BinnedRule:
        """Make the rule of a cut as the source understands it: the bins that satisfy it."""
        return self.source.columns.make_binned_rule(cut)

    def list_copies(self, cuts: Iterable[Cut], limit: int) -> list[Cut]:
        """List cuts, and the same cuts on identical columns: the first of all, up to a limit."""
        columns = self.source.columns
        copies = [
            cut._replace(column=column)
            for cut in cuts
            for column in columns.list_copies(cut.column, limit)
        ]
        return sorted(copies)[:limit]

    # --- rows in the source -----------------------------------------------------

    def find_equivalent(self, chosen: Cut, *, others: Sequence[Cut], uncovered: Node) -> list[Cut]:
        """Find which other rules cover exactly the uncovered rows that the chosen one covers.

        Counts cannot tell, since different rows may have equal counts; so the source is asked.
        """
        if not others:
            return []
        is_equivalent = self.source.find_same_coverage(
            uncovered.path,
            self.make_binned_rule(chosen),
            [self.make_binned_rule(cut) for cut in others],
        )
        return [cut for cut, is_same in zip(others, is_equivalent, strict=True) if is_same]

    def count_patterns(self, rules: Sequence[BinnedRule]) -> Patterns:
        """Count all rows by the truth of some rules."""
        table = self.source.count_patterns(rules)
        if not self.is_clustered or self.source.clusters is None:
            return Patterns(table=table)
        return Patterns(table=table, clusters=self.source.clusters.count_patterns(rules))

    def measure_design_effects(
        self, cuts: Sequence[Cut], leaves: CountArray, *, uncovered: Node
    ) -> FloatArray | None:
        """Measure by what factor clusters inflate the tests on leaves; None for independent rows.

        `leaves` are the counts of the leaves, by (rule, outcome, environment).
        """
        if not self.is_clustered:
            return None
        rules = [self.make_binned_rule(cut) for cut in cuts]
        return self._measure_in_source(rules, leaves, path=uncovered.path)

    def measure_design_effect_of_all(self, uncovered: Node) -> float | None:
        """Measure the design effect of all uncovered rows together; None for independent rows."""
        if not self.is_clustered:
            return None
        one_leaf = uncovered.counts[np.newaxis]
        effects = self._measure_in_source([EVERY_ROW], one_leaf, path=uncovered.path)
        return float(effects[0])

    def _measure_in_source(
        self, rules: Sequence[BinnedRule], leaves: CountArray, *, path: RulePath
    ) -> FloatArray:
        """Measure the design effect of each leaf (rule, outcome, environment) of a path's rows."""
        assert self.source.clusters is not None
        # The source knows nothing of swapped outcomes, so neither do the leaves here.
        moments = self.source.clusters.count_moments(path, rules)
        return compute_leaf_design_effects(self.to_model_outcomes(leaves), moments)


@dataclass(frozen=True)
class SwappedOutcomes:
    """A source of rows that counts negatives as positives, and the other way round."""

    source: Counter

    @property
    def columns(self) -> BinnedColumns:
        """What bins mean, which has nothing to do with outcomes."""
        return self.source.columns

    def count_rows(self, path: RulePath = ()) -> CountArray:
        """Count the rows of a path, by (outcome, environment)."""
        return swap_outcomes(self.source.count_rows(path))

    def count_cubes(self, path: RulePath = ()) -> Iterator[CountCube]:
        """Count the rows of a path, by (column, bin, outcome, environment)."""
        return map(swap_cube, self.source.count_cubes(path))


def swap_outcomes(counts: CountArray) -> CountArray:
    """Swap negatives and positives of counts (..., outcome, environment)."""
    return counts[..., ::-1, :]


def swap_cube(cube: CountCube) -> CountCube:
    """Swap negatives and positives of a cube."""
    return replace(cube, counts=swap_outcomes(cube.counts))
