"""Pruning of a conjunction by Proposition 3.2 of the paper.

The proposition says which columns X of a conjunction are no causes of its outcome Y, with E the
environment and X* all columns of the conjunction:

    Y is independent of E, given X* without X    <=>    X is no cause of Y

So the outcome is tested against the environment without each column, given the rules on the others,
and the rules on a column whose test finds no dependence are removed: one column after the other, as
the next test may need the others (`prune`).

It holds if the outcome is independent of the environment in all leaves. Those of the rules passed
this test when they were added; the uncovered rows have passed it if the search ended for that
reason. If it ended for another one, the columns that the tests would remove may be needed, and
stay.

Rules are given by number, in the order in which they joined the model. All their tests are made on
one table, the rows by the truth of each rule (`icscm.search.patterns`).
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import count

from icscm._constants import P_VALUE_DECIMALS
from icscm.model.splits import freeze_counts
from icscm.model.tree import Tree, make_chain
from icscm.search.greedy import Conjunction
from icscm.search.patterns import Patterns
from icscm.search.records import PruningOutcome, PruningTest
from icscm.search.settings import Settings
from icscm.search.view import ConjunctionView
from icscm.stats.criteria import Criterion
from icscm.stats.independence import compute_conditional, exceeds

ColumnName = str | int


@dataclass(frozen=True)
class PrunedModel:
    """A model after pruning, the rules that it kept, and what the trace has of it.

    `result` is None where pruning was not asked for.
    """

    model: Tree
    kept: list[int]
    tests: tuple[PruningTest, ...] = ()
    result: PruningOutcome | None = None


def prune_model(view: ConjunctionView, conjunction: Conjunction) -> PrunedModel:
    """Make the model of a conjunction, and remove the columns that it does not need."""
    settings = view.settings
    rules = [view.make_rule(cut) for cut in conjunction.cuts]
    model = make_chain(settings.model_type, rules, conjunction.leaves)
    unpruned = PrunedModel(model=model, kept=[*range(len(rules))])
    if not settings.pruning or settings.test is None or not rules:
        return unpruned

    columns = [rule.feature for rule in rules]
    stop_reason = conjunction.trace.stop_reason
    obstacle = find_obstacle(columns, stop_reason=stop_reason, settings=settings)
    if obstacle is not None:
        return replace(unpruned, result=make_result(obstacle, before=model, after=model))

    patterns = view.count_patterns([view.make_binned_rule(cut) for cut in conjunction.cuts])
    must_stay_invariant = settings.pruning != "always"
    pruning = prune(
        patterns,
        columns,
        alpha=settings.alpha,
        criterion=settings.make_criterion() if must_stay_invariant else None,
    )
    tests = tuple(pruning.tests)
    if len(pruning.kept) == len(rules):
        return replace(
            unpruned, tests=tests, result=make_result("needed", before=model, after=model)
        )

    rules_kept = [rules[number] for number in pruning.kept]
    leaves = freeze_counts(patterns.compute_leaves(pruning.kept))
    pruned_model = make_chain(settings.model_type, rules_kept, leaves)
    return PrunedModel(
        model=pruned_model,
        kept=pruning.kept,
        tests=tests,
        result=make_result("removed", before=model, after=pruned_model),
    )


def find_obstacle(
    columns: Sequence[ColumnName], *, stop_reason: str | None, settings: Settings
) -> str | None:
    """Find why a conjunction cannot be pruned, as a `PruningOutcome` names it; None if it can."""
    # Only then have the uncovered rows passed the test, as the proposition demands.
    has_passed = stop_reason == "independence"
    if not has_passed and settings.pruning != "always":
        return "not_ended"

    is_on_one_column = len(set(columns)) == 1
    return "single" if is_on_one_column else None


def make_result(name: str, *, before: Tree, after: Tree) -> PruningOutcome:
    """Record the result of pruning by its name, and its cost in wrong predictions."""
    return PruningOutcome(
        outcome=name,
        n_wrong_before=sum(before.count_wrong()),
        n_wrong_after=sum(after.count_wrong()),
    )


# --- rounds of tests ------------------------------------------------------------


@dataclass(frozen=True)
class Pruning:
    """The rules that are left, by number, and every test that was made."""

    kept: list[int]
    tests: list[PruningTest]


@dataclass(frozen=True)
class Removal:
    """A column whose rules may be removed, and the rules on other columns, which would be left."""

    column: ColumnName
    rules_left: list[int]


@dataclass(frozen=True)
class Round:
    """The tests of all removals that were possible, and the one that was made; None for none."""

    tests: list[PruningTest]
    removal: Removal | None


def prune(
    patterns: Patterns,
    columns: Sequence[ColumnName],
    *,
    alpha: float,
    criterion: Criterion | None = None,
) -> Pruning:
    """Remove one column after the other, as long as a test allows it.

    Each round tests the removal of every column, and makes the one of largest p-value that is above
    alpha and leaves an invariant model. One column always stays.

    Parameters
    ----------
    patterns : Patterns
        The rows by the truth of each rule.
    columns : sequence of str or int
        The column of each rule.
    alpha : float
        The level of the tests.
    criterion : Criterion, optional
        What all leaves of the rules that are left must pass; by default nothing.
    """
    kept = list(range(len(columns)))
    tests: list[PruningTest] = []
    for round_number in count(1):
        removals = list_removals(kept, columns)
        if len(removals) < 2:
            break

        tests_of_round = test_removals(removals, patterns, round_number=round_number)
        finished = choose_removal(
            removals, tests_of_round, patterns, alpha=alpha, criterion=criterion
        )
        tests.extend(finished.tests)
        if finished.removal is None:
            break
        kept = finished.removal.rules_left
    return Pruning(kept=kept, tests=tests)


def list_removals(kept: Sequence[int], columns: Sequence[ColumnName]) -> list[Removal]:
    """List the removal of each column of the rules kept, in the order in which they joined."""
    columns_kept = dict.fromkeys(columns[rule] for rule in kept)
    return [
        Removal(column=column, rules_left=[rule for rule in kept if columns[rule] != column])
        for column in columns_kept
    ]


def test_removals(
    removals: Sequence[Removal], patterns: Patterns, *, round_number: int
) -> list[PruningTest]:
    """Test outcome against environment without each column, given the rules on the others.

    It is a conditional G-test: statistics and degrees of freedom add up over the strata, which are
    the combinations of truths of the rules that are left.
    """
    strata = [patterns.compute_strata(removal.rules_left) for removal in removals]
    strata_of_patterns = [patterns.number_strata(removal.rules_left) for removal in removals]
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


def choose_removal(
    removals: Sequence[Removal],
    tests: Sequence[PruningTest],
    patterns: Patterns,
    *,
    alpha: float,
    criterion: Criterion | None,
) -> Round:
    """Choose the removal of largest p-value above alpha that leaves an invariant model.

    Removals of larger p-values, after which some leaf would not pass, are recorded as undone.
    """
    recorded_tests = list(tests)
    for number in rank_tests(tests):
        removal = removals[number]
        test = tests[number]
        if not exceeds(test.p_value, alpha):  # nor do those that come after it
            break

        if are_invariant(patterns, removal.rules_left, criterion=criterion):
            recorded_tests[number] = replace(test, removed=True)
            return Round(tests=recorded_tests, removal=removal)
        recorded_tests[number] = replace(test, undone=True)
    return Round(tests=recorded_tests, removal=None)


def rank_tests(tests: Sequence[PruningTest]) -> list[int]:
    """Sort the tests of a round by p-value, the largest first; of equal ones the last first.

    So of two columns that can replace each other the first to join the model stays. p-values are
    rounded before they are compared: rounding of sums must not decide.
    """
    rounded = [round(test.p_value, P_VALUE_DECIMALS) for test in tests]
    return sorted(range(len(tests)), key=lambda number: (rounded[number], number), reverse=True)


def are_invariant(patterns: Patterns, rules: Sequence[int], *, criterion: Criterion | None) -> bool:
    """Whether every leaf of some of the rules passes a criterion; without one they all do."""
    if criterion is None:
        return True
    leaves = patterns.compute_leaves(rules)
    design_effects = patterns.measure_design_effects(patterns.number_leaves(rules), leaves)
    return bool(criterion.find_accepted(leaves, design_effects).all())
