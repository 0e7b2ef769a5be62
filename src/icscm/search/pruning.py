"""Pruning of a conjunction by Proposition 3.2 of the paper.

The proposition is about a conjunction all of whose leaves are invariant: a column without which the
outcome is still independent of the environment, given the other rules, is no cause of it. The
leaves of the rules passed when these were added; the uncovered rows have passed if the search ended
for that reason. If it ended for another one, the columns that the tests would remove may be needed,
and stay.

Rules are given by number, in the order in which they joined the model. All their tests are made on
one table, the rows by the truth of each rule (`icscm.search.patterns`).
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import count

import numpy as np

from icscm._constants import P_VALUE_DECIMALS
from icscm._types import BoolArray, IntArray
from icscm.engine.counts import PatternTable
from icscm.engine.patterns import merge_patterns
from icscm.model.splits import freeze_counts
from icscm.model.tree import Tree, make_chain
from icscm.search.greedy import Conjunction
from icscm.search.patterns import Patterns
from icscm.search.records import PruningOutcome, PruningTest
from icscm.search.settings import Settings
from icscm.search.view import ConjunctionView
from icscm.stats.independence import compute_conditional, exceeds

ColumnName = str | int


@dataclass(frozen=True)
class Pruning:
    """The rules that are left, by number, and every test that was made."""

    kept: list[int]
    tests: list[PruningTest]


@dataclass(frozen=True)
class PrunedModel:
    """A model after pruning, the rules that it kept, and what the trace has of it.

    `outcome` is None where pruning was not asked for.
    """

    model: Tree
    kept: list[int]
    tests: tuple[PruningTest, ...] = ()
    outcome: PruningOutcome | None = None


def prune_model(view: ConjunctionView, conjunction: Conjunction) -> PrunedModel:
    """Make the model of a conjunction, and remove the columns that it does not need."""
    settings = view.settings
    rules = [view.make_rule(cut) for cut in conjunction.cuts]
    model = make_chain(settings.model_type, rules, conjunction.leaves)
    everything = list(range(len(rules)))
    if not settings.pruning or settings.test is None or not rules:
        return PrunedModel(model=model, kept=everything)

    is_allowed_to_prune = conjunction.trace.stop_reason == "independence"
    if not is_allowed_to_prune and settings.pruning != "always":
        return PrunedModel(model, everything, outcome=describe_outcome("not_ended", model, model))
    if len({rule.feature for rule in rules}) == 1:
        return PrunedModel(model, everything, outcome=describe_outcome("single", model, model))

    patterns = view.count_patterns([view.make_binned_rule(cut) for cut in conjunction.cuts])
    columns = [rule.feature for rule in rules]
    if settings.pruning == "always":
        pruning = prune(patterns, columns, alpha=settings.alpha)
    else:
        pruning = prune(
            patterns,
            columns,
            alpha=settings.alpha,
            is_allowed=lambda kept: are_invariant(patterns, kept, settings=settings),
        )
    pruned = model
    if len(pruning.kept) < len(rules):
        leaves = freeze_counts(patterns.compute_leaves(pruning.kept))
        pruned = make_chain(settings.model_type, [rules[i] for i in pruning.kept], leaves)

    result = "needed" if pruned is model else "removed"
    return PrunedModel(
        model=pruned,
        kept=pruning.kept,
        tests=tuple(pruning.tests),
        outcome=describe_outcome(result, model, pruned),
    )


def describe_outcome(outcome: str, before: Tree, after: Tree) -> PruningOutcome:
    """Record the result of pruning, and its cost in wrong predictions."""
    return PruningOutcome(
        outcome=outcome,
        n_wrong_before=sum(before.count_wrong()),
        n_wrong_after=sum(after.count_wrong()),
    )


def are_invariant(patterns: Patterns, rules: Sequence[int], *, settings: Settings) -> bool:
    """Whether the search accepts every leaf of some of the rules as invariant."""
    criterion = settings.make_criterion()
    if criterion is None:
        return True
    leaves = patterns.compute_leaves(rules)
    design_effects = patterns.measure_design_effects(patterns.number_leaves(rules), leaves)
    return bool(criterion.find_accepted(leaves, design_effects).all())


# --- rounds of tests ------------------------------------------------------------


def prune(
    patterns: Patterns,
    columns: Sequence[ColumnName],
    *,
    alpha: float,
    is_allowed: Callable[[Sequence[int]], bool] = lambda _: True,
) -> Pruning:
    """Remove one column after the other, as long as a test allows it.

    Each round tests, for every column, outcome against environment given the values of the rules on
    the other columns, and removes the one of largest p-value if that exceeds alpha; of equal ones
    that which joined the model last. A removal after which the rules left are not `is_allowed` is
    undone, and the next one tried. One column always stays.

    Parameters
    ----------
    patterns : Patterns
        The rows by the truth of each rule.
    columns : sequence of str or int
        The column of each rule.
    alpha : float
        The level of the tests.
    is_allowed : callable
        Whether a model may consist of these rules.
    """
    kept = list(range(len(columns)))
    table = patterns.table  # over the rules that are kept
    tests: list[PruningTest] = []
    for round_number in count(1):
        removals = list_removals(table, [columns[rule] for rule in kept])
        if len(removals) < 2:
            break

        tests_of_round = test_removals(removals, patterns, kept=kept, round_number=round_number)
        chosen = None
        for number in rank_removals(tests_of_round):
            test = tests_of_round[number]
            if not exceeds(test.p_value, alpha):
                break
            rules_left = [kept[place] for place in removals[number].places_left]
            if is_allowed(rules_left):
                tests_of_round[number] = replace(test, removed=True)
                chosen = removals[number]
                break
            tests_of_round[number] = replace(test, undone=True)

        tests.extend(tests_of_round)
        if chosen is None:
            break
        table = chosen.table
        kept = [kept[place] for place in chosen.places_left]
    return Pruning(kept=kept, tests=tests)


@dataclass(frozen=True)
class Removal:
    """A column that may be removed, and what is left without it.

    Attributes
    ----------
    column : str or int
        The column.
    places_left : list of int
        The places, among the rules that are kept, of those on other columns.
    table : PatternTable
        The rows by the truth of these.
    """

    column: ColumnName
    places_left: list[int]
    table: PatternTable


def list_removals(table: PatternTable, columns: Sequence[ColumnName]) -> list[Removal]:
    """List the removal of each column, in the order in which they joined the model."""
    distinct_columns = list(dict.fromkeys(columns))
    removals = []
    for column in distinct_columns:
        places_left = [place for place, other in enumerate(columns) if other != column]
        table_left = merge_patterns(table, places_left)
        removals.append(Removal(column=column, places_left=places_left, table=table_left))
    return removals


def test_removals(
    removals: Sequence[Removal], patterns: Patterns, *, kept: Sequence[int], round_number: int
) -> list[PruningTest]:
    """Test outcome against environment without each column, given the rules on the others.

    It is a conditional G-test: statistics and degrees of freedom add up over the patterns of the
    rules that are left.
    """
    strata = [removal.table.counts for removal in removals]
    strata_of_patterns = [
        number_strata(patterns, [kept[place] for place in removal.places_left])
        for removal in removals
    ]
    design_effects = patterns.measure_all(strata_of_patterns, strata)
    results = compute_conditional(strata, effects=design_effects)
    return [
        PruningTest(
            round=round_number,
            feature=removal.column,
            statistic=float(results.statistics[number]),
            dof=int(results.dof[number]),
            p_value=float(results.p_values[number]),
            removed=False,
        )
        for number, removal in enumerate(removals)
    ]


def number_strata(patterns: Patterns, rules: Sequence[int]) -> IntArray:
    """Number the strata that some of the rules make, and return that of each pattern."""
    truths: BoolArray = patterns.table.patterns[:, list(rules)]
    _, strata = np.unique(truths, axis=0, return_inverse=True)
    return strata.ravel()


def rank_removals(tests: Sequence[PruningTest]) -> list[int]:
    """Sort the tests of a round by p-value, the largest first; of equal ones the last first.

    p-values are rounded before they are compared: rounding of sums must not decide.
    """
    rounded = [round(test.p_value, P_VALUE_DECIMALS) for test in tests]
    return sorted(range(len(tests)), key=lambda number: (rounded[number], number), reverse=True)
