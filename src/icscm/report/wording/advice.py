"""What a result shows, what it does not show, and warnings about it."""

from collections.abc import Sequence

from icscm import _constants
from icscm.formatting import count
from icscm.report.content.errors import Errors
from icscm.report.content.learner import LearnerContent
from icscm.report.content.leaves import Leaf, Requirement
from icscm.report.content.model import ModelContent, Shape
from icscm.report.content.nodes import CriterionName, Nodes
from icscm.report.content.stability import Stability
from icscm.report.formatting import format_score, format_share, join_words
from icscm.report.wording.requirement import describe_margin
from icscm.stats.verdicts import NOT_INVARIANT, TOO_LITTLE_DATA

# A label with so many times fewer rows than would be expected is as good as absent.
RARITY = 100
# Rules whose AUC where they were not learned is below rank rows hardly better than chance.
POOR_AUC = 0.55


# --- what the result shows ------------------------------------------------------------------------


def list_shown(content: LearnerContent) -> list[str]:
    """Return what the result shows about invariance."""
    nodes = content.nodes
    names = content.names
    noun = content.model.noun
    if not nodes.is_tested:
        return [
            f"The {noun} was chosen to fit these data. Environments were not used, so it may "
            "contain a shortcut that is specific to some of them, or a child of the label."
        ]
    if content.model.is_rule_set:
        return [
            describe_shown_rules(content),
            "The rate in the leaf of a rejected rule differs between environments, or may differ.",
        ]
    if nodes.invariance == "rate":
        within_tolerance = (
            f"Over all leaves, the dependence of {names.target} on the {names.environment} is "
            "within the tolerance. Columns that would exceed it were excluded."
        )
        return [
            content.trace.describe_excess() or within_tolerance,
            "This is how parents are found: if the environments do not act on the label itself, "
            "its rate given its causes is the same in all of them.",
        ]
    part = "column" if noun == "score" else "split"
    return [
        f"The effect of each {part} on the odds of {names.positive} is about the same in all of "
        "these environments. Shortcuts that work better in some of them were rejected.",
        "Rates may differ between environments, so leaves need not be invariant. The ranking of "
        "samples by risk carries over to a new environment; rates may differ there.",
    ]


def describe_shown_rules(content: LearnerContent) -> str:
    """Return what the tests of a rule set show, by what decided on rejections."""
    nodes, names = content.nodes, content.names
    if nodes.criterion == CriterionName.MARGIN:
        margin = describe_margin(content.task.requirement)
        return (
            f"It was shown, at level {nodes.alpha:g}, that the rate of {names.positive} in the "
            f"leaf of each rule differs by at most {margin} between any two of these environments."
        )
    return (
        f"The null hypothesis of every test: {names.target} does not depend on "
        f"{names.environment} in this leaf. A rule in the model was not rejected at level "
        f"{nodes.alpha:g}: it is invariant across these environments as far as this many samples "
        "can show."
    )


def list_not_shown(content: LearnerContent) -> list[str]:
    """Return what must not be concluded from the result."""
    if content.model.is_rule_set:
        limits = list_not_shown_by_rules()
    else:
        limits = list_not_shown_by_trees(content.nodes)
    if not content.errors.is_out_of_bag:
        limits.append(describe_errors_in_training(content))
    return limits


def list_not_shown_by_rules() -> list[str]:
    """Return what tests of rules do not show: causes, with few rows, and without interventions."""
    return [
        "It does not prove a cause. Invariance is evidence of a cause only if the environments "
        "act on the columns but not directly on the label, no hidden cause acts on both, and "
        "the label follows a noisy conjunction (or disjunction) of rules on its causes.",
        "With few samples, tests have little power and rules on children of the label may "
        "pass; with very many, trivial differences are rejected. The minimum detectable "
        "difference of each leaf shows which applies.",
        "A cause on which the environments do not act cannot be identified.",
    ]


def list_not_shown_by_trees(nodes: Nodes) -> list[str]:
    """Return what trees do not show, by what was required of them: effects, rates or nothing."""
    no_cause = "It does not prove a cause."
    may_fail = (
        "An association that all of these environments share may still be a shortcut, and fail "
        "in a new one."
    )
    if not nodes.is_tested:
        return [no_cause, may_fail]
    if nodes.invariance == "effect":
        limit = (
            "A child of the label whose association is the same in these environments passes: "
            "effects must be homogeneous, but need not be causes (see "
            'invariance="rate").'
        )
    else:
        limit = (
            "With few samples, columns pass that would be rejected with more. Trees are grown "
            "greedily: a cause without a marginal association may be missed."
        )
    return [no_cause, limit, may_fail]


def describe_errors_in_training(content: LearnerContent) -> str:
    """Return that errors are those in training, and why none is known in a new environment."""
    text = f"The errors were measured on the data from which the {content.model.noun} was learned."
    if content.validation is not None:
        return text
    return f"{text} Its performance in a new environment is not known: {content.unvalidated}."


# --- warnings -------------------------------------------------------------------------------------


def list_warnings(content: LearnerContent) -> list[str]:
    """Return warnings about a model."""
    if content.model.is_rule_set:
        return list_rule_warnings(content)
    return list_tree_warnings(content)


def list_rule_warnings(content: LearnerContent) -> list[str]:
    """Return warnings about a rule set."""
    model, leaves, requirement = content.model, content.leaves, content.task.requirement
    warnings = [
        content.trace.describe_lone(),
        *warn_of_deciding_leaves(content),
        warn_of_dependent_rest(leaves) if content.nodes.is_tested else None,
        warn_of_little_data(leaves),
        warn_of_later_tests(requirement),
        *warn_of_single_environments(leaves, model, requirement),
        warn_of_contradictions(content.errors),
        warn_of_poor_ranking(model.shape) if model.n_rules else None,
        warn_of_instability(content.stability),
    ]
    return [warning for warning in warnings if warning]


def warn_of_deciding_leaves(content: LearnerContent) -> list[str]:
    """Return rules that determine the label of many rows by themselves."""
    model = content.model
    if model.noun not in ("rule", "tree"):
        return []
    overall_rate = content.task.overall.rate or 0.0
    warnings = []
    for leaf in content.leaves:
        condition = find_single_condition(leaf, model)
        is_large = leaf.n >= _constants.DECIDED_SHARE * content.errors.n
        if condition is not None and is_large and decides(leaf, overall_rate):
            warnings.append(
                f"{condition}: this alone determines the label ({format_share(leaf.rate)} of "
                f"{count(leaf.n, 'sample')} are positive). Check that it is known before the "
                "label, and is not part of its definition."
            )
    return warnings


def find_single_condition(leaf: Leaf, model: ModelContent) -> str | None:
    """Return the condition of a leaf that a single rule decides, else None.

    The rows that the only rule of a conjunction does not cover are those where it is true.
    """
    if " and " in leaf.condition:
        return None
    if not leaf.is_rest:
        return leaf.condition
    is_lone_rule = model.kind == "conjunction" and model.n_rules == 1
    return model.rules[0].text if is_lone_rule else None


def decides(leaf: Leaf, overall_rate: float) -> bool:
    """Return whether a leaf has nearly none of a label of which it should have many rows.

    As many are expected as there would be at the rate of all rows.
    """
    n_negative = leaf.n - leaf.n_positive
    n_rarer = min(leaf.n_positive, n_negative)
    rate_of_rarer = overall_rate if leaf.n_positive <= n_negative else 1 - overall_rate
    expected = leaf.n * rate_of_rarer
    return expected >= _constants.DECIDED_ROWS and RARITY * n_rarer <= expected


def warn_of_dependent_rest(leaves: Sequence[Leaf]) -> str | None:
    """Return that the label of the uncovered rows still depends on the environment."""
    if len(leaves) < 2 or leaves[-1].conclusion != NOT_INVARIANT:
        return None
    return (
        "Among the uncovered samples the label still depends on the environment: by the method's "
        "criterion (ii) the rule is incomplete, and a cause may be missing from the columns."
    )


def warn_of_little_data(leaves: Sequence[Leaf]) -> str | None:
    """Return how many leaves had too little data."""
    n_unclear = sum(leaf.conclusion == TOO_LITTLE_DATA for leaf in leaves)
    if not n_unclear or len(leaves) < 2:
        return None
    return (
        f"{n_unclear} of {count(len(leaves), 'leaf')} had too little data: the rule was neither "
        "rejected there nor shown to be invariant."
    )


def warn_of_later_tests(requirement: Requirement) -> str | None:
    """Return that leaves were tested after a search that did not test them."""
    if not requirement.afterwards:
        return None
    return (
        "The leaves were tested after the search, with Pearson's test at level "
        f"{requirement.alpha:g}; the search did not use environments."
    )


def warn_of_single_environments(
    leaves: Sequence[Leaf], model: ModelContent, requirement: Requirement
) -> list[str]:
    """Return leaves whose rows are all from one environment."""
    if requirement.alpha is None:
        return []
    warnings = []
    for leaf in leaves:
        if leaf.n_seen != 1 or leaf.lowest is None:
            continue
        where = f"from one environment only, {leaf.lowest.environment}: no test was possible"
        if leaf.is_rest:
            warnings.append(f"The uncovered samples are {where}.")
        else:
            rule = model.rules[leaf.number - 1].text
            warnings.append(f"{rule} covers samples {where}; the rule may be a marker of it.")
    return warnings


def warn_of_contradictions(errors: Errors) -> str | None:
    """Return for how many rows prediction and probability disagree."""
    if not errors.n_contrary:
        return None
    leaves = ", ".join(map(str, errors.contrary_leaves))
    return (
        f"For {errors.n_contrary:,} of {count(errors.n, 'sample')} prediction and probability "
        f"disagree: the majority in leaf {leaves} is of the other class."
    )


def warn_of_poor_ranking(shape: Shape | None) -> str | None:
    """Return that the rules rank rows that they were not learned from hardly better than chance."""
    if shape is None or shape.scores[shape.chosen] >= POOR_AUC:
        return None
    return (
        f"In held-out {shape.held_out} the rules that were learned without them rank samples "
        f"hardly better than chance (AUC {format_score(shape.scores[shape.chosen])})."
    )


def warn_of_instability(stability: Stability | None) -> str | None:
    """Return that most subsamples give a different model."""
    if stability is None or stability.model_frequency >= 0.5:
        return None
    return "Most subsamples give a different model (see Stability): several models fit these data."


def list_tree_warnings(content: LearnerContent) -> list[str]:
    """Return warnings about a tree, a forest or a score."""
    warnings = [
        content.trace.describe_excess(),
        content.trace.describe_lone(),
        *warn_of_deciding_leaves(content),
        warn_of_few_environments(content),
        warn_of_varying_rates(content),
        warn_of_poor_predictions(content),
    ]
    return [warning for warning in warnings if warning]


def warn_of_few_environments(content: LearnerContent) -> str | None:
    """Return that nothing was tested, or that two environments show little."""
    noun = content.model.noun
    if not content.task.has_environments:
        return f"No environments were given, so nothing was tested: this is a plain {noun}."
    if content.nodes.tolerance is None:
        return f"No tolerance was given, so nothing was rejected: this is a plain {noun}."
    if content.task.n_environments == 2:
        return (
            "Two environments show only one difference: a shortcut that both share is not "
            "rejected. Use three or more."
        )
    return None


def warn_of_varying_rates(content: LearnerContent) -> str | None:
    """Return the leaves whose rates differ, where they must not."""
    nodes = content.nodes
    if nodes.tolerance is None or nodes.invariance != "rate" or not nodes.splits:
        return None
    varying = [str(leaf.number) for leaf in content.leaves if leaf.conclusion == NOT_INVARIANT]
    if not varying:
        return None
    if len(varying) == 1:
        return f"The rate of leaf {varying[0]} differs between environments."
    return f"The rates of leaves {join_words(varying)} differ between environments."


def warn_of_poor_predictions(content: LearnerContent) -> str | None:
    """Return that probabilities may be of use where predictions are not."""
    if not has_useless_predictions(content.model, content.errors):
        return None
    return "The probabilities may be useful even though the predictions are not: see the AUC."


def has_useless_predictions(model: ModelContent, errors: Errors) -> bool:
    """Return whether a model predicts no better than the baseline, or never the positive class."""
    if not model.n_rules:
        return False
    return errors.sensitivity == 0 if model.threshold else not errors.beats_majority
