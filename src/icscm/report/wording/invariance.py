"""The answer of a report on invariance: are rates or effects the same in every environment?

Rates are those of the leaves of a model. Effects are the odds ratios of the splits of a tree, or
of the columns of a forest or a score.
"""

from collections.abc import Sequence

from icscm.formatting import count
from icscm.report.content.candidates import SplitCandidate
from icscm.report.content.learner import LearnerContent
from icscm.report.content.leaves import Leaf
from icscm.report.content.nodes import ChosenSplit
from icscm.report.formatting import Names
from icscm.report.wording.facts import Answer, Judgement
from icscm.report.wording.leaves import explain_leaf
from icscm.report.wording.model_facts import count_verdicts
from icscm.report.wording.ranges import describe_range, describe_variation, reverses
from icscm.report.wording.requirement import describe_margin
from icscm.stats.verdicts import INVARIANT, NOT_INVARIANT, TOO_LITTLE_DATA

# What each conclusion on leaves means, the best first.
CONCLUSIONS = {
    INVARIANT: "No heterogeneity was found, and the data rule out a difference beyond the margin.",
    NOT_INVARIANT: "The rate differs between environments by more than chance explains.",
    TOO_LITTLE_DATA: "No heterogeneity was found, but a difference beyond the margin is possible.",
}
NO_ENVIRONMENTS = "The data have no environments to compare."


def find_conclusion(leaves: Sequence[Leaf]) -> str | None:
    """Return the worst conclusion on a leaf; None where nothing was tested."""
    conclusions = {leaf.conclusion for leaf in leaves}
    for conclusion in (NOT_INVARIANT, TOO_LITTLE_DATA, INVARIANT):
        if conclusion in conclusions:
            return conclusion
    return None


def answer_invariance(content: LearnerContent) -> Answer:
    """Return whether effects, or the rates of leaves, are the same in every environment."""
    topic = f"Invariance over every {content.names.environment}"
    if content.nodes.invariance == "effect":
        effects = judge_effects(content)
        return Answer(topic, effects.answer, effects.detail)
    rates = judge_rates(content)
    conclusion = find_conclusion(content.leaves)
    return Answer(topic, rates.answer, rates.detail, conclusion=conclusion)


def judge_rates(content: LearnerContent) -> Judgement:
    """Return answer and detail on the rates of the leaves."""
    leaves = content.leaves
    requirement = content.task.requirement
    if requirement.alpha is None:
        return Judgement("Not tested", NO_ENVIRONMENTS)
    if not leaves:
        return Judgement("Not tested by leaf", "A forest has no single set of leaves.")
    if len(leaves) == 1:
        explanation = explain_leaf(leaves[0], content.names, requirement)
        return Judgement("No leaf to test", f"All samples together: {explanation}")

    conclusion = find_conclusion(leaves)
    assert conclusion is not None
    n_leaves = count(len(leaves), "leaf")
    n_worst = sum(leaf.conclusion == conclusion for leaf in leaves)
    answers = {
        NOT_INVARIANT: f"{n_worst} of {n_leaves} not invariant",
        INVARIANT: "All leaves invariant, as far as these data can show",
        TOO_LITTLE_DATA: f"Too little data in {n_worst} of {n_leaves}",
    }
    detail = (
        f"{n_leaves}: {count_verdicts(leaves)}. {CONCLUSIONS[conclusion]} Margin "
        f"{describe_margin(requirement)}, level {requirement.alpha:g}."
    )
    if content.model.kind == "tree":
        detail += (
            " The tolerance bounds the heterogeneity of the tree as a whole, not of each leaf."
        )
    elif requirement.afterwards:
        detail += " The search itself did not use environments."
    return Judgement(answers[conclusion], detail)


def judge_effects(content: LearnerContent) -> Judgement:
    """Return answer and detail on the effects of splits or columns."""
    if not content.task.has_environments:
        return Judgement("Not tested", NO_ENVIRONMENTS)
    if content.model.noun in ("forest", "score"):
        return judge_column_effects(content)
    return judge_split_effects(content)


def judge_column_effects(content: LearnerContent) -> Judgement:
    """Return whether columns were tested before a forest was grown or a score learned."""
    noun = content.model.noun
    is_forest = noun == "forest"
    if not content.nodes.is_tested:
        verb = "grown" if is_forest else "learned"
        detail = f"A plain {noun} is {verb} without regard to environments."
        return Judgement("Not required", detail)
    next_step = "the trees were grown" if is_forest else "points were given"
    detail = (
        "Columns with effects that, given all others, differ between environments by more than "
        f"the tolerance were rejected before {next_step}."
    )
    return Judgement("By column, on all samples", detail)


def judge_split_effects(content: LearnerContent) -> Judgement:
    """Return how many splits of a tree have the same effect in all environments."""
    nodes = content.nodes
    splits = nodes.tree_splits
    if not splits:
        return Judgement("No split to test", "All samples are in one leaf.")

    note = "" if nodes.is_tested else " Homogeneity was not required: the tree is a plain one."
    n_splits = len(splits)
    n_homogeneous = sum(split.candidate.heterogeneity_share == 0 for split in splits)
    if n_homogeneous == n_splits:
        detail = f"No odds ratio of {count(n_splits, 'split')} differs by more than chance.{note}"
        return Judgement("All effects homogeneous, as far as these data can show", detail)
    most_varying = max(splits, key=lambda split: split.candidate.heterogeneity_share)
    return Judgement(
        answer=f"{n_homogeneous:,} of {count(n_splits, 'effect')} differ by no more than chance",
        detail=f"{describe_varying_split(most_varying, content.names)}{note}",
    )


def describe_varying_split(split: ChosenSplit, names: Names) -> str:
    """Return by how much the effect of a split varies, and its lowest and highest odds ratio.

    An effect that has another direction in some environments is said to reverse.
    """
    candidate: SplitCandidate = split.candidate
    lowest, highest, n_seen = candidate.lowest, candidate.highest, candidate.n_seen
    verb = "reverses, and differs" if reverses(lowest, highest, n_seen) else "differs"
    variation = describe_variation(candidate.heterogeneity_share, has_environments=True)
    text = f"{candidate.rule} (split {split.number}) {verb} most: {variation}"

    has_range = n_seen > 1
    if not has_range:
        return f"{text}."
    return f"{text}; odds ratio from {describe_range(lowest, highest, names)}."
