"""The leaves of a model: rates by environment, verdicts, outliers, prediction intervals."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from icscm._constants import DEFAULT_MARGIN
from icscm.model.forest import Forest, Model
from icscm.model.saved import Learner
from icscm.model.score import Score
from icscm.model.splits import LeafCounts
from icscm.model.tree import Tree
from icscm.report.content.rates import (
    EnvironmentRate,
    RateExtreme,
    make_environment_rates,
    make_overall_rate,
    make_rate_range,
)
from icscm.report.formatting import Names
from icscm.stats.criteria import Criterion, PValueCriterion, find_outlier_environments
from icscm.stats.independence import make_test
from icscm.stats.new_environments import Expectation, make_expectations
from icscm.stats.verdicts import NOT_INVARIANT, Verdict, deflate_alike, make_verdicts

# The level at which leaves are tested where the search itself did not test them.
AFTERWARDS_ALPHA = 0.05
# With more outlying environments than this none is named: the whole leaf is heterogeneous.
MAX_OUTLIERS = 8


@dataclass(frozen=True, kw_only=True)
class Requirement:
    """What the verdicts on leaves require.

    Parameters
    ----------
    alpha : float or None
        The level; None without environments, where nothing is tested.
    margin : float
        The largest difference of rates that counts as none.
    afterwards : bool
        Whether the leaves were tested after a search that did not test them.
    """

    alpha: float | None = None
    margin: float = DEFAULT_MARGIN
    afterwards: bool = False

    @property
    def difference_confidence(self) -> float | None:
        """The level of intervals of differences, which two one-sided tests at alpha decide by."""
        return None if self.alpha is None else max(1 - 2 * self.alpha, 0.0)


@dataclass(frozen=True, kw_only=True)
class Judgement:
    """A verdict on a leaf; all None where nothing was tested.

    Parameters
    ----------
    conclusion, p_value : str or None, float or None
        Such as "invariant", and the p-value of the test of independence.
    difference, difference_interval : float or None, list of two floats or None
        The largest difference between two environments, with its interval.
    detectable : float or None
        The minimum detectable difference; None also where it is larger than 1.
    """

    conclusion: str | None = None
    p_value: float | None = None
    difference: float | None = None
    difference_interval: list[float] | None = None
    detectable: float | None = None


@dataclass(frozen=True, kw_only=True)
class NewEnvironment:
    """What is expected in a new environment, as `icscm.stats.new_environments.Expectation`."""

    tau: float | None
    tau_interval: list[float] | None
    i2: float | None
    new_interval: list[float] | None
    known_interval: list[float] | None
    new_reason: str | None


@dataclass(frozen=True, kw_only=True)
class Leaf(Judgement, NewEnvironment):
    """A leaf of a model.

    Parameters
    ----------
    number, condition : int, str
        From 1, and the condition of its rows; in a rule set, of the rows that reach its rule.
    name : str
        The condition with the words that tell leaves apart in a list.
    is_rest : bool
        Whether it has the rows that no rule covers.
    predicts, is_positive : str, bool
        The prediction in words, and whether it is the positive class.
    n, n_positive, rate, rate_interval : int, int, float or None, list of two floats or None
        As of `Rate`.
    environments : list of EnvironmentRate
        In the order of the counts.
    n_seen, lowest, highest : int, RateExtreme or None
        As of `RateRange`.
    outliers : list of str or None
        The few environments without which the leaf would be invariant.
    end : str or None
        Of a tree: why it was not split, a key of `icscm.search.records.STOP_REASONS`.
    """

    number: int
    condition: str
    name: str
    is_rest: bool
    predicts: str
    is_positive: bool
    n: int
    n_positive: int
    rate: float | None
    rate_interval: list[float] | None
    environments: list[EnvironmentRate]
    n_seen: int
    lowest: RateExtreme | None
    highest: RateExtreme | None
    outliers: list[str] | None
    end: str | None = None


def find_requirement(learner: Learner, names: Names) -> Requirement:
    """Return the requirement of the learner, or the default one where it does not test leaves."""
    alpha = learner.trace_.alpha
    if len(names.environments) < 2:
        return Requirement()
    if not learner.tests_invariance or alpha is None:
        return Requirement(alpha=AFTERWARDS_ALPHA, afterwards=True)
    margin = learner.get_params(deep=False)["margin"]
    return Requirement(alpha=alpha, margin=DEFAULT_MARGIN if margin is None else margin)


def make_model_leaves(learner: Learner, names: Names, requirement: Requirement) -> list[Leaf]:
    """Return the leaves of a learner with the verdicts of its search, or of Pearson's test."""
    model = learner.model_
    trace = learner.trace_
    if isinstance(model, Forest):
        return []
    if requirement.alpha is None:  # no environments
        return make_leaves(model, names)

    pearson = make_test("chi2")
    verdicts = trace.verdicts or make_verdicts(
        model.leaves, test=pearson, alpha=requirement.alpha, margin=requirement.margin
    )
    criterion = trace.criterion
    if requirement.afterwards:
        criterion = PValueCriterion(pearson, requirement.alpha)
    return make_leaves(model, names, verdicts, criterion)


def make_leaves(
    model: Tree | Score,
    names: Names,
    verdicts: Sequence[Verdict] = (),
    criterion: Criterion | None = None,
) -> list[Leaf]:
    """Return every leaf of a model, in its order; without verdicts nothing was tested.

    `verdicts` has one for each leaf, and `criterion` is what they were tested by, which says which
    environments are outliers.

    Leaves are numbered from 1 on. In a rule set leaf k has the rows that rule k is the first to
    cover, and the last one, after those of all rules, the rest:

        rules           age > 63    sex == f
        leaf            1           2           3: the rest

    A `Leaf` has the fields of the records `Rate`, `RateRange`, `Judgement` and `NewEnvironment`
    besides its own, so that a template finds all in one place.
    """
    n_leaves = len(model.leaves)
    verdicts_or_none: Sequence[Verdict | None] = verdicts or [None] * n_leaves
    conditions = list_conditions(model)
    predictions = model.leaf_verdicts.tolist()
    # rows that are alike count for less where heterogeneity is estimated
    expectations = make_expectations(deflate_alike(np.array(model.leaves), verdicts))

    has_rest = model.is_chain or not model.rules  # without rules, the rest is all rows
    rest_number = len(model.rules) + 1 if has_rest else None

    leaves = []
    for position, counts in enumerate(model.leaves):
        number = position + 1
        is_rest = number == rest_number
        condition = conditions[position]
        is_positive = predictions[position]
        verdict = verdicts_or_none[position]

        environments = make_environment_rates(counts, names)
        overall_rate = make_overall_rate(counts)
        rate_range = make_rate_range(environments)
        judgement = make_judgement(verdict)
        new_environment = make_new_environment(expectations[position])
        leaf = Leaf(
            number=number,
            condition=condition,
            name=name_leaf(number, condition, model, is_rest=is_rest),
            is_rest=is_rest,
            predicts=names.predict(is_positive),
            is_positive=is_positive,
            environments=environments,
            outliers=find_leaf_outliers(counts, verdict, names, criterion),
            **vars(overall_rate),
            **vars(rate_range),
            **vars(judgement),
            **vars(new_environment),
        )
        leaves.append(leaf)
    return leaves


def list_conditions(model: Model) -> list[str]:
    """Return the condition of each leaf; in a rule set, of the rows that reach its rule."""
    if not model.rules:
        return ["every sample"]
    if not isinstance(model, Tree) or not model.is_chain:
        assert not isinstance(model, Forest)
        return [*model.leaf_texts]
    if model.covers_when:
        return [*map(str, model.rules), "no rule is true"]
    negated = [rule.negate() for rule in model.rules]
    return [*map(str, negated), "every rule is true"]


def name_leaf(number: int, condition: str, model: Tree | Score, *, is_rest: bool) -> str:
    """Return a leaf of a rule set by the rule that covers it, of a tree by number and path."""
    if model.rules and not model.is_chain:
        return f"{number}: {condition}"
    is_first = number == 1
    if is_rest:
        return "all samples" if is_first else "else"
    return condition if is_first else f"else {condition}"


def find_leaf_outliers(
    counts: LeafCounts, verdict: Verdict | None, names: Names, criterion: Criterion | None
) -> list[str] | None:
    """Return the few environments without which a leaf that is not invariant would be, or None."""
    if verdict is None or verdict.conclusion != NOT_INVARIANT:
        return None
    return find_outliers(counts, names, criterion, verdict.design_effect)


def find_outliers(
    counts: LeafCounts,
    names: Names,
    criterion: Criterion | None,
    design_effect: float | None = None,
) -> list[str] | None:
    """Return the few environments without which the counts would pass the test, or None."""
    if criterion is None:
        return None
    outliers = find_outlier_environments(
        np.array(counts), criterion, max_outliers=MAX_OUTLIERS, effect=design_effect
    )
    if not outliers:
        return None
    return [names.environments[number] for number in sorted(outliers)]


def make_judgement(verdict: Verdict | None) -> Judgement:
    """Return the parts of a verdict that are not rates."""
    if verdict is None:
        return Judgement()
    interval = verdict.difference_interval
    return Judgement(
        conclusion=verdict.conclusion,
        p_value=verdict.p_value,
        difference=verdict.difference,
        difference_interval=None if interval is None else list(interval),
        detectable=verdict.minimum_detectable_difference,
    )


def make_new_environment(expectation: Expectation) -> NewEnvironment:
    """Return what is expected in a new environment, in plain values."""
    return NewEnvironment(
        tau=expectation.tau,
        tau_interval=_list_ends(expectation.tau_interval),
        i2=expectation.i2,
        new_interval=_list_ends(expectation.interval),
        known_interval=_list_ends(expectation.known_interval),
        new_reason=expectation.reason,
    )


def _list_ends(interval: tuple[float, float] | None) -> list[float] | None:
    """Return an interval as a list, as JSON holds it."""
    return None if interval is None else list(interval)
