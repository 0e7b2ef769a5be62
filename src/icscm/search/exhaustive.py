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
from typing import Final, NamedTuple

import numpy as np

from icscm._constants import CHANCE_LEVEL, MAX_EQUIVALENT_RULES
from icscm._lazy import special
from icscm._types import FloatArray
from icscm.engine.counts import BinnedRule, Cut, RowSource
from icscm.engine.leaf_tables import LeafTables
from icscm.formatting import count
from icscm.model.rules import Rule
from icscm.model.splits import freeze_counts
from icscm.model.tree import Tree, make_chain
from icscm.search.cut_bounds import CutBounds, find_cut_bounds
from icscm.search.design_effects import average_design_effect
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


def choose_alpha(n_samples: int) -> float:
    """The level for `alpha="auto"`: 0.05 for few rows, 200 / n for more than 4,000.

    In up to alpha of the runs the true set is rejected. With many rows wrong sets have very small
    p-values, so that a smaller alpha has no disadvantage.

    >>> choose_alpha(2_000), choose_alpha(20_000)
    (0.05, 0.01)
    """
    return min(_MAX_AUTO_ALPHA, _AUTO_ALPHA / n_samples)


def learn_exhaustively(source: RowSource, settings: Settings) -> tuple[Tree, Trace]:
    """Learn from counts the rules that all accepted sets of the screened rules share.

    Sets of more than `max_rules` rules are not tried.
    """
    view = ConjunctionView(source, settings)
    screening = _screen(view)
    rules = [view.make_rule(each.cut) for each in screening.rules]
    tester = _RuleTester.count(view, [each.cut for each in screening.rules])

    sets = find_invariant_sets(tester, max_size=settings.max_rules, alpha=settings.alpha)
    bics = tester.compute_bics(sets.p_values)
    chosen = sets.find_shared()

    chosen_rules = sorted(chosen or ())
    leaves = tester.patterns.compute_leaves(chosen_rules)
    leaf_of_pattern = tester.patterns.number_leaves(chosen_rules)
    model = make_chain(
        settings.model_type, tuple(rules[i] for i in chosen_rules), freeze_counts(leaves)
    )
    verdicts = settings.make_verdicts(
        model.leaves,
        test=GTest(),  # that of the sets
        effects=tester.patterns.measure_design_effects(leaf_of_pattern, leaves),
    )
    steps = _make_steps(
        view,
        tester.patterns,
        screening,
        chosen_rules=chosen_rules,
        verdicts=verdicts,
    )
    untested = _describe_untested(screening, settings)
    return model, make_trace(
        source,
        steps,
        notes=(*source.notes, untested) if untested else tuple(source.notes),
        verdicts=verdicts,
        stop_reason=_find_stop_reason(screening, chosen),
        alpha=settings.alpha,
        criterion=PValueCriterion(GTest(), settings.alpha),
        screening=screening.make_records(rules),
        sets=_make_set_records(sets, bics, rules),
        untested=untested,
    )


# --- screening ------------------------------------------------------------------------------------


class _AssociatedRule(NamedTuple):
    """The best rule of a column; sorts the strongest first, then as ties are broken.

    `rank` is the negative of its statistic; `leaf` are the bytes of
    the table that it covers, and `equivalent` the rules that cover the same rows.
    """

    rank: float
    cut: Cut
    statistic: float
    leaf: bytes
    equivalent: Sequence[Cut] = ()


@dataclass(frozen=True)
class _Screening:
    """The rules whose sets are tested, strongest first.

    `n_tried` rules were compared, `n_beyond` more columns have a significant rule.
    """

    rules: list[_AssociatedRule]
    n_tried: int
    n_beyond: int

    def make_records(self, rules: Sequence[Rule]) -> tuple[Screened, ...]:
        """What the trace has of them."""
        statistics = [each.statistic for each in self.rules]
        p_values = _compute_p_values(statistics, self.n_tried).tolist()
        return tuple(map(Screened, rules, statistics, p_values))


def _screen(view: ConjunctionView) -> _Screening:
    """Find the best rule of each column that is significantly associated with the outcome.

    P-values are multiplied by the number of rules tried (Bonferroni). Of rules that cover the same
    rows the first stands for all.
    """
    root = view.make_root()
    design_effect = average_design_effect(view.source)
    associated: list[_AssociatedRule] = []
    n_tried = 0
    for leaves in view.iterate_leaf_tables(root.count_cubes(), root):
        statistics = _associate(view, leaves, root) / design_effect
        n_tried += leaves.count(statistics > 0)
        best = leaves.find_best(statistics)
        # more rules will be tried, but what is not significant now will never be
        p_values = _compute_p_values(statistics[best], n_tried)
        is_significant = (statistics[best] > 0) & (p_values <= CHANCE_LEVEL)
        for number in best[is_significant].tolist():
            cut = leaves.locate(number)
            statistic = float(statistics[number])
            associated.append(
                _AssociatedRule(
                    rank=-statistic,
                    cut=cut,
                    statistic=statistic,
                    leaf=leaves.tables[number].tobytes(),
                )
            )
    p_values = _compute_p_values([each.statistic for each in associated], n_tried)
    remaining = sorted(
        rule for rule, p in zip(associated, p_values.tolist(), strict=True) if p <= CHANCE_LEVEL
    )

    screened: list[_AssociatedRule] = []
    while remaining and len(screened) < N_CANDIDATES:
        first = remaining[0]
        alike_leaves = [each.cut for each in remaining[1:] if each.leaf == first.leaf]
        same = {first.cut, *view.find_equivalent(first.cut, others=alike_leaves, uncovered=root)}
        screened.append(first._replace(equivalent=_list_copies(view, same, first.cut)))
        remaining = [each for each in remaining if each.cut not in same]
    return _Screening(rules=screened, n_tried=n_tried, n_beyond=len(remaining))


def _list_copies(view: ConjunctionView, same: Iterable[Cut], first: Cut) -> list[Cut]:
    """List cuts with the same coverage, those of identical columns included, without the first."""
    copies = view.list_copies(same, MAX_EQUIVALENT_RULES + 1)
    return [cut for cut in copies if cut != first]


def _associate(view: ConjunctionView, leaves: LeafTables, root: Node) -> FloatArray:
    """Compute Pearson's statistic of each rule against the outcome.

    0 for rules in the wrong direction (their leaf is more positive than the other rows): this
    holds for a rule or its negation, so each cut counts once.
    """
    settings = view.settings
    inside = leaves.tables.sum(axis=2)
    outside = root.counts.sum(axis=1) - inside
    n_inside = inside.sum(axis=1)
    n_outside = outside.sum(axis=1)

    # neither side of such a rule is empty
    is_allowed = outside[:, 1] * n_inside > inside[:, 1] * n_outside
    if settings.min_replication:
        is_allowed &= find_replicated(leaves.tables, root.counts, settings.min_replication)
    statistics, _ = PEARSON.compute_statistics(np.stack((inside, outside), axis=2))
    return np.where(is_allowed, statistics, 0.0)


def _compute_p_values(statistics: Sequence[float] | FloatArray, n_tried: int) -> FloatArray:
    """Compute p-values of one degree of freedom, corrected for the number of rules tried."""
    tails: FloatArray = special.chdtrc(1, np.asarray(statistics, dtype=np.float64))
    return np.minimum(n_tried * tails, 1.0)


# --- testing sets ---------------------------------------------------------------------------------


@dataclass(frozen=True)
class _RuleTester:
    """Tests sets of rules within the leaves of their conjunction.

    `patterns` are the rows by the truth of each rule and, behind these, of the wide and the narrow
    form of rules that have bins beside their cut (`icscm.search.cut_bounds`); `wide` and `narrow`
    say where these forms are. A rule without such bins is its own wide and narrow form.
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
            design_effect=average_design_effect(view.source),
        )

    def compute_p_values(self, max_size: int) -> dict[CandidateSet, float]:
        """Compute the p-value of every set: G summed over its leaves, of rows not beside a cut."""
        sets = list_subsets(self.n_rules, max_size)
        forms = [([self.wide[i] for i in each], [self.narrow[i] for i in each]) for each in sets]
        leaves = [self.patterns.compute_leaves(wide, narrow) for wide, narrow in forms]
        numbers = [self.patterns.number_leaves(wide, narrow) for wide, narrow in forms]
        effects = self.patterns.measure_all(numbers, leaves)
        p_values = compute_conditional(leaves, effects=effects).p_values
        return dict(zip(sets, p_values.tolist(), strict=True))

    def compute_bics(self, sets: Iterable[CandidateSet]) -> dict[CandidateSet, float]:
        """Compute the BIC of the outcome given the leaves of each set.

        Where rows belong together they count as fewer: as many as they would be if independent.
        """
        subsets = [*sets]
        leaves = [self.patterns.compute_leaves(each) / self.design_effect for each in subsets]
        return dict(zip(subsets, compute_bic(leaves).tolist(), strict=True))


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
    texts = []
    if screening.n_beyond:
        texts.append(f"with any of {count(screening.n_beyond, 'weaker rule')}")
    if len(screening.rules) > settings.max_rules:
        n_rules = len(screening.rules)
        texts.append(f"of more than {settings.max_rules} of the {n_rules} screened rules")
    return f"Sets {' and sets '.join(texts)} were not tested." if texts else None


def _make_set_records(
    sets: InvariantSets, bics: dict[CandidateSet, float], rules: Sequence[Rule]
) -> tuple[SetTest, ...]:
    """What the trace has of the sets, with columns by name."""
    return tuple(
        SetTest(
            features=tuple(rules[i].feature for i in each),
            p_value=p_value,
            accepted=each in sets.accepted,
            bic=bics[each],
        )
        for each, p_value in sets.p_values.items()
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
    settings = view.settings
    rows = view.make_root().counts
    utility = make_utility(settings.p, n_rows=int(rows.sum()))
    leaves = patterns.compute_leaves(chosen_rules)
    leaf_of_pattern = patterns.number_leaves(chosen_rules)
    for number, rule_number in enumerate(chosen_rules):
        uncovered = leaves[number + 1 :].sum(axis=0)
        covered = leaves[: number + 1].sum(axis=0)
        is_covered = (leaf_of_pattern <= number).astype(np.int64)
        effects = patterns.measure_design_effects(is_covered, np.stack((uncovered, covered)))
        test_of_uncovered = compute_conditional(
            [uncovered[np.newaxis]], effects=None if effects is None else [effects[:1]]
        )

        rule = screening.rules[rule_number]
        leaf_of_rule_alone = np.frombuffer(rule.leaf, rows.dtype).reshape(rows.shape)
        yield Step(
            n_candidates=screening.n_tried,
            n_rejected={},
            chosen=Candidate(
                rule=view.make_rule(rule.cut),
                covered=freeze_counts(leaves[number]),
                utility=utility.compute(leaf_of_rule_alone),
                verdict=verdicts[number],
            ),
            uncovered=freeze_counts(uncovered),
            p_value_uncovered=float(test_of_uncovered.p_values[0]),
            equivalent=tuple(map(view.make_rule, rule.equivalent)),
            n_tied=1 + len(rule.equivalent),
        )
