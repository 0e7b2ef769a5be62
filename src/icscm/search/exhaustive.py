"""The exhaustive search: every set of a few screened rules is tested as a whole.

The greedy search treats "not rejected" as "invariant", so tests of low power may mislead it. Here
only rules that all accepted sets share are reported, as invariant causal prediction does
(`icscm.search.sets`); but a set of d rules makes d + 1 leaves, not 2^d strata, so its test has far
more power:

    leaf 1 of rules r1, .., rd   rows for which r1 is false
    leaf k                       rows for which r1 .. r(k-1) are true, and rk is false
    leaf d + 1                   rows for which all are true

    p-value of a set: chi-squared tail of G, outcome against environment, summed over its leaves

The candidates are the rules of the strongest association with the outcome, one for each column.
`docs/theory.md` has the guarantee and its assumptions.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import compress
from typing import Final

import numpy as np

from icscm._constants import CHANCE_LEVEL, MAX_EQUIVALENT_RULES
from icscm._lazy import special
from icscm._types import CountArray, FloatArray, IntArray
from icscm.engine.counts import BinnedRule, Cut, RowSource
from icscm.engine.leaf_tables import LeafTables
from icscm.formatting import count
from icscm.model.rules import Rule
from icscm.model.splits import freeze_counts
from icscm.model.tree import Tree, make_chain
from icscm.search.cut_bounds import CutBounds, find_cut_bounds
from icscm.search.design_effects import measure_chance_effect
from icscm.search.nodes import Node
from icscm.search.patterns import Patterns
from icscm.search.records import Candidate, Screened, SetTest
from icscm.search.sets import (
    CandidateSet,
    InvariantSets,
    find_invariant_sets,
    list_subsets,
)
from icscm.search.settings import Settings
from icscm.search.trace import Step, Trace, make_trace
from icscm.search.utility import make_utility
from icscm.search.view import ConjunctionView
from icscm.stats.criteria import PValueCriterion
from icscm.stats.independence import PEARSON, GTest, compute_bic, compute_conditional
from icscm.stats.replication import find_replicated
from icscm.stats.verdicts import Verdict

# Rules that are combined: 256 sets, which take milliseconds. Candidates beyond the causes and
# their children reduce the power.
N_CANDIDATES = 8
# The level for `alpha="auto"` is this share of the number of rows, and at most the usual one.
_AUTO_ALPHA: Final = 200.0
_MAX_AUTO_ALPHA: Final = 0.05


def choose_alpha(n_rows: int) -> float:
    """The level for `alpha="auto"`: 0.05 for few rows, 200 / n for more than 4,000.

    In up to alpha of the runs the true set is rejected. With many rows wrong sets have very small
    p-values, so that a smaller alpha has no disadvantage.

    >>> choose_alpha(2_000), choose_alpha(20_000)
    (0.05, 0.01)
    """
    return min(_MAX_AUTO_ALPHA, _AUTO_ALPHA / n_rows)


def learn_exhaustively(source: RowSource, settings: Settings) -> tuple[Tree, Trace]:
    """Learn from counts the rules that all accepted sets of the screened rules share.

        screen       the rules of the strongest association with the outcome, `N_CANDIDATES` at most
        test         every set of up to `max_rules` of them; a set is accepted if p-value > alpha
        intersect    what all accepted sets share
        model        the conjunction of the shared rules

    From screening on a rule is known by its number: 0 is the strongest, then 1, and so on. If the
    sets (0, 2) and (0, 1, 2) are accepted, for example, the model has the rules 0 and 2. It has no
    rule, and one leaf of all rows, if no set is accepted or these share nothing.

    The trace tells how: the screened rules, the p-value of each set, and the shared rules as steps.
    """
    view = ConjunctionView(source, settings)
    screening = _screen(view)
    screened_cuts = [screened.cut for screened in screening.rules]
    screened_rules = [view.make_rule(cut) for cut in screened_cuts]

    # All sets are tested on the same table, of rows by the truth of each screened rule ("pattern").
    tester = _RuleTester.count(view, screened_cuts)
    sets = find_invariant_sets(tester, max_size=settings.max_rules, alpha=settings.alpha)
    shared_numbers = sets.find_shared()  # None if no set is accepted

    # The model: its leaves are sums of patterns, by (leaf, outcome, environment).
    chosen_numbers = sorted(shared_numbers or ())  # the strongest first
    chosen_rules = tuple(screened_rules[number] for number in chosen_numbers)
    leaves = tester.patterns.compute_leaves(chosen_numbers)
    model = make_chain(settings.model_type, chosen_rules, freeze_counts(leaves))

    # The verdict on each leaf: by the test of the sets, and with rows of a cluster as dependent.
    leaf_of_pattern = tester.patterns.number_leaves(chosen_numbers)
    design_effects = tester.patterns.measure_design_effects(leaf_of_pattern, leaves)
    verdicts = settings.make_verdicts(model.leaves, test=GTest(), effects=design_effects)

    # The trace.
    steps = _make_steps(
        view, tester.patterns, screening, chosen_rules=chosen_numbers, verdicts=verdicts
    )
    bics = tester.compute_bics(sets.p_values)
    notes = [*source.notes]
    untested = _describe_untested(screening, settings)
    if untested is not None:
        notes.append(untested)
    trace = make_trace(
        source,
        steps,
        comparable=view.comparable,
        notes=tuple(notes),
        verdicts=verdicts,
        stop_reason=_find_stop_reason(screening, shared_numbers),
        alpha=settings.alpha,
        criterion=PValueCriterion(GTest(), settings.alpha),
        screening=screening.make_records(screened_rules),
        sets=_make_set_records(sets, bics, screened_rules),
        untested=untested,
    )
    return model, trace


# --- screening ------------------------------------------------------------------------------------
#
#   all rules --best of each column--> column rules --significant--> --one of each group--> screened
#
# A group is the rules that cover the same rows. P-values are multiplied by the number of all rules
# that were compared (Bonferroni).


@dataclass(frozen=True, eq=False)
class _ColumnRule:
    """The rule of a column that is most strongly associated with the outcome.

    `statistic` is Pearson's, over the design effect; `leaf` has the counts (outcome, environment)
    of the rows that the rule covers.
    """

    cut: Cut
    statistic: float
    leaf: CountArray

    def has_same_counts(self, other: "_ColumnRule") -> bool:
        """Check whether another rule covers as many rows; only then may it cover the same."""
        return self.leaf.tobytes() == other.leaf.tobytes()


@dataclass(frozen=True)
class _ScreenedRule:
    """A rule whose sets are tested, and the rules that cover the same rows, for which it stands."""

    column_rule: _ColumnRule
    equivalent_cuts: Sequence[Cut]

    @property
    def cut(self) -> Cut:
        """The cut of the rule."""
        return self.column_rule.cut


@dataclass(frozen=True)
class _Screening:
    """The rules whose sets are tested, strongest first.

    `n_tried` rules were compared, `n_beyond` more columns have a significant rule.
    """

    rules: Sequence[_ScreenedRule]
    n_tried: int
    n_beyond: int

    def make_records(self, rules: Sequence[Rule]) -> tuple[Screened, ...]:
        """Make what the trace has of them, given the rules as the model prints them."""
        statistics = [screened.column_rule.statistic for screened in self.rules]
        p_values = _compute_p_values(statistics, n_tried=self.n_tried).tolist()
        return tuple(
            Screened(rule=rule, statistic=statistic, p_value=p_value)
            for rule, statistic, p_value in zip(rules, statistics, p_values, strict=True)
        )


def _screen(view: ConjunctionView) -> _Screening:
    """Choose the rules whose sets are tested: the strongest that are associated with the outcome.

    Rules are chosen by strength, and of rules that cover the same rows only the first: the others
    would take candidates' places without adding a set that differs.
    """
    root = view.make_root()
    significant = _find_significant_rules(view, root)
    remaining = sorted(significant.rules, key=lambda rule: (-rule.statistic, rule.cut))

    screened: list[_ScreenedRule] = []
    while remaining and len(screened) < N_CANDIDATES:
        strongest, *weaker = remaining
        cuts_of_group = _find_equivalent_cuts(view, strongest, others=weaker, root=root)
        equivalent_cuts = _list_other_cuts(view, cuts_of_group, shown_cut=strongest.cut)
        screened.append(_ScreenedRule(strongest, equivalent_cuts))
        remaining = [rule for rule in weaker if rule.cut not in cuts_of_group]
    return _Screening(rules=screened, n_tried=significant.n_tried, n_beyond=len(remaining))


@dataclass(frozen=True)
class _SignificantRules:
    """The best rule of each column that has a significant one, of `n_tried` rules compared."""

    rules: list[_ColumnRule]
    n_tried: int


def _find_significant_rules(view: ConjunctionView, root: Node) -> _SignificantRules:
    """Find the best rule of each column, if it is significant, and the number of rules compared.

    A p-value is final only when all rules are counted. But the count only grows, and p-values with
    it: a rule that is not significant at its own block of columns never will be, and is not kept.
    """
    design_effect = measure_chance_effect(view.source)
    rules: list[_ColumnRule] = []
    n_tried = 0
    for leaves in view.iterate_leaf_tables(root.count_cubes(), root):
        statistics = _compute_association(leaves, root, settings=view.settings) / design_effect
        n_tried += leaves.count(statistics > 0)
        rules += _list_best_rules(leaves, statistics, n_tried=n_tried)

    p_values = _compute_p_values([rule.statistic for rule in rules], n_tried=n_tried)
    is_significant = p_values <= CHANCE_LEVEL
    return _SignificantRules(rules=list(compress(rules, is_significant)), n_tried=n_tried)


def _list_best_rules(
    leaves: LeafTables, statistics: FloatArray, *, n_tried: int
) -> Iterator[_ColumnRule]:
    """List the best rule of each column of a block that is significant among those tried so far.

    `statistics` are those of all rules of the block, 0 for those that may not be chosen.
    """
    best = leaves.find_best(statistics)
    p_values = _compute_p_values(statistics[best], n_tried=n_tried)
    is_significant = (statistics[best] > 0) & (p_values <= CHANCE_LEVEL)
    for candidate in best[is_significant].tolist():
        yield _ColumnRule(
            cut=leaves.locate(candidate),
            statistic=float(statistics[candidate]),
            leaf=leaves.tables[candidate].copy(),  # or the block would stay in memory
        )


def _find_equivalent_cuts(
    view: ConjunctionView, rule: _ColumnRule, *, others: Sequence[_ColumnRule], root: Node
) -> set[Cut]:
    """Find the cuts of the rules that cover the same rows, with that of the rule itself.

    The source is only asked about rules with equal counts, as it must scan rows for the answer.
    """
    possible_cuts = [other.cut for other in others if other.has_same_counts(rule)]
    equivalent_cuts = view.find_equivalent(rule.cut, others=possible_cuts, uncovered=root)
    return {rule.cut, *equivalent_cuts}


def _list_other_cuts(
    view: ConjunctionView, cuts_of_group: Iterable[Cut], *, shown_cut: Cut
) -> list[Cut]:
    """List the cuts of a group, those on identical columns included, but for the one shown."""
    cuts = view.list_copies(cuts_of_group, limit=MAX_EQUIVALENT_RULES + 1)
    return [cut for cut in cuts if cut != shown_cut]


def _compute_association(leaves: LeafTables, root: Node, *, settings: Settings) -> FloatArray:
    """Compute Pearson's statistic of each rule against the outcome, environments taken together.

                         negative      positive
        inside the leaf  inside[0]     inside[1]        rule false
        outside it       outside[0]    outside[1]       rule true

    It is 0 for rules in the wrong direction: the share of positives must be larger outside. This
    holds for a rule or its negation, so each cut counts once. It is also 0 for rules that too few
    environments replicate.
    """
    # by (rule, outcome)
    inside = leaves.tables.sum(axis=2)
    outside = root.counts.sum(axis=1) - inside
    # by (rule)
    n_inside = inside.sum(axis=1)
    n_outside = outside.sum(axis=1)

    # outside[1] / n_outside > inside[1] / n_inside, and neither is empty
    is_allowed = outside[:, 1] * n_inside > inside[:, 1] * n_outside
    if settings.min_replication:
        is_allowed &= find_replicated(leaves.tables, root.counts, settings.min_replication)

    tables = np.stack((inside, outside), axis=2)
    statistics, _ = PEARSON.compute_statistics(tables)
    return np.where(is_allowed, statistics, 0.0)


def _compute_p_values(statistics: Sequence[float] | FloatArray, *, n_tried: int) -> FloatArray:
    """Compute p-values of one degree of freedom, corrected for the number of rules tried."""
    tails: FloatArray = special.chdtrc(1, np.asarray(statistics, dtype=np.float64))
    return np.minimum(n_tried * tails, 1.0)


# --- testing sets ---------------------------------------------------------------------------------


@dataclass(frozen=True)
class _RuleTester:
    """Tests sets of rules within the leaves of their conjunction.

    A rule may have a wide and a narrow form, with both bins beside its cut and without them
    (`icscm.search.cut_bounds`): a row that only one of them is true of may be on the wrong side of
    the cut, and is not tested. Other rules are their own wide and narrow form. `patterns` are the
    rows by the truth of each rule and, behind these, of such forms; `wide` and `narrow` say where
    the forms of each rule are:

        rules            0  1  2             wide    0  3  2
        forms of rule 1           3  4       narrow  0  4  2
    """

    patterns: Patterns
    n_rules: int
    wide: list[int]
    narrow: list[int]
    design_effect: float

    @classmethod
    def count(cls, view: ConjunctionView, cuts: Sequence[Cut]) -> "_RuleTester":
        """Count the rows of all sets of the rules, in one pass."""
        binned_rules: list[BinnedRule] = [view.make_binned_rule(cut) for cut in cuts]
        wide = [*range(len(cuts))]
        narrow = [*range(len(cuts))]
        bounds: list[CutBounds | None] = find_cut_bounds(view.source, binned_rules)
        for number, rule_bounds in enumerate(bounds):
            if rule_bounds is not None:
                wide[number] = len(binned_rules)
                narrow[number] = len(binned_rules) + 1
                binned_rules += [rule_bounds.wide, rule_bounds.narrow]
        return cls(
            patterns=view.count_patterns(binned_rules),
            n_rules=len(cuts),
            wide=wide,
            narrow=narrow,
            design_effect=measure_chance_effect(view.source),
        )

    def compute_p_values(self, max_size: int) -> dict[CandidateSet, float]:
        """Compute the p-value of every set: G summed over its leaves, of rows not beside a cut."""
        sets = list_subsets(self.n_rules, max_size)
        # the counts of each set's leaves, and the leaf of each pattern among them
        leaves_of_sets: list[CountArray] = []
        leaf_of_pattern_of_sets: list[IntArray] = []
        for candidate_set in sets:
            wide = [self.wide[rule] for rule in candidate_set]
            narrow = [self.narrow[rule] for rule in candidate_set]
            leaves_of_sets.append(self.patterns.compute_leaves(wide, others=narrow))
            leaf_of_pattern_of_sets.append(self.patterns.number_leaves(wide, others=narrow))

        effects = self.patterns.measure_all(leaf_of_pattern_of_sets, leaves_of_sets)
        p_values = compute_conditional(leaves_of_sets, effects=effects).p_values
        return dict(zip(sets, p_values.tolist(), strict=True))

    def compute_bics(self, sets: Iterable[CandidateSet]) -> dict[CandidateSet, float]:
        """Compute the BIC of the outcome given the leaves of each set.

        Where rows belong together they count as fewer: as many as they would be if independent.
        """
        subsets = [*sets]
        effective_leaves = [
            self.patterns.compute_leaves(subset) / self.design_effect for subset in subsets
        ]
        bics = compute_bic(effective_leaves)
        return dict(zip(subsets, bics.tolist(), strict=True))


# --- conclusion -----------------------------------------------------------------------------------


def _find_stop_reason(screening: _Screening, chosen: set[int] | None) -> str:
    """Find the name of what ended the search, as the trace has it."""
    if not screening.rules:
        return "nothing_associated"
    if chosen is None:
        return "all_rejected"
    return "intersection" if chosen else "empty_intersection"


def _describe_untested(screening: _Screening, settings: Settings) -> str | None:
    """A sentence on sets that were not tested because of limits; None if all were."""
    untested = []
    if screening.n_beyond:
        weaker_rules = count(screening.n_beyond, "weaker rule")
        untested.append(f"with any of {weaker_rules}")

    n_rules = len(screening.rules)
    if n_rules > settings.max_rules:
        untested.append(f"of more than {settings.max_rules} of the {n_rules} screened rules")

    if not untested:
        return None
    return f"Sets {' and sets '.join(untested)} were not tested."


def _make_set_records(
    sets: InvariantSets, bics: dict[CandidateSet, float], rules: Sequence[Rule]
) -> tuple[SetTest, ...]:
    """Make what the trace has of the sets, with columns by name."""
    return tuple(
        SetTest(
            features=tuple(rules[rule].feature for rule in candidate_set),
            p_value=p_value,
            accepted=candidate_set in sets.accepted,
            bic=bics[candidate_set],
        )
        for candidate_set, p_value in sets.p_values.items()
    )


def _make_steps(
    view: ConjunctionView,
    patterns: Patterns,
    screening: _Screening,
    *,
    chosen_rules: Sequence[int],
    verdicts: Sequence[Verdict],
) -> Iterator[Step]:
    """Yield the model's rules as steps, with the leaf of each and the rows uncovered after it."""
    utility = make_utility(view.settings.p, n_rows=view.make_root().n_rows)
    leaves = patterns.compute_leaves(chosen_rules)
    leaf_of_pattern = patterns.number_leaves(chosen_rules)
    for number, rule_number in enumerate(chosen_rules):
        # Leaf `number` is that of the rule; all later ones hold the rows that it leaves uncovered.
        n_steps = number + 1
        uncovered = leaves[n_steps:].sum(axis=0)
        p_value_uncovered = _test_uncovered(
            patterns, leaves, n_steps=n_steps, leaf_of_pattern=leaf_of_pattern
        )

        screened = screening.rules[rule_number]
        yield Step(
            n_candidates=screening.n_tried,
            n_rejected={},
            chosen=Candidate(
                rule=view.make_rule(screened.cut),
                covered=freeze_counts(leaves[number]),
                utility=utility.compute(screened.column_rule.leaf),
                verdict=verdicts[number],
            ),
            uncovered=freeze_counts(uncovered),
            p_value_uncovered=p_value_uncovered,
            equivalent=tuple(map(view.make_rule, screened.equivalent_cuts)),
            n_tied=1 + len(screened.equivalent_cuts),
        )


def _test_uncovered(
    patterns: Patterns, leaves: CountArray, *, n_steps: int, leaf_of_pattern: IntArray
) -> float:
    """Test whether the outcome depends on the environment in the rows uncovered after some steps.

    After k steps these are the rows of all leaves but the first k. The test is G, as that of sets.
    """
    uncovered = leaves[n_steps:].sum(axis=0)
    covered = leaves[:n_steps].sum(axis=0)

    # Design effects are measured of tables that hold all rows: table 0 uncovered, 1 covered.
    tables = np.stack((uncovered, covered))
    table_of_pattern = (leaf_of_pattern < n_steps).astype(np.int64)
    effects = patterns.measure_design_effects(table_of_pattern, tables)
    effects_of_uncovered = None if effects is None else [effects[:1]]

    test = compute_conditional([uncovered[np.newaxis]], effects=effects_of_uncovered)
    return float(test.p_values[0])
