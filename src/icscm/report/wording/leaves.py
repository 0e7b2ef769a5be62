"""The verdict on a leaf in sentences, and the leaves of a figure."""

from collections.abc import Sequence

from icscm.formatting import count
from icscm.report.content.leaves import Leaf, Requirement
from icscm.report.formatting import (
    Names,
    format_detectable,
    format_p,
    format_points,
    format_share,
)
from icscm.report.wording.ranges import describe_outliers, describe_range
from icscm.report.wording.requirement import VACUOUS, describe_margin
from icscm.stats.verdicts import INVARIANT, NOT_INVARIANT


def explain_leaf(leaf: Leaf, names: Names, requirement: Requirement) -> str:
    """Return the range of the rates in a leaf, and what the data show about their difference."""
    if leaf.conclusion is None:
        return "Not tested: the data have no environments."
    if leaf.difference is None:
        seen = count(leaf.n_seen, "environment")
        return f"Not testable: only {seen} has samples in it."
    span = describe_range(leaf.lowest, leaf.highest, names)
    text = f"The rate of {names.positive} ranges from {span}."
    if leaf.conclusion == INVARIANT:
        return f"{text} {explain_invariance(leaf, requirement)}"
    if leaf.conclusion == NOT_INVARIANT:
        return f"{text} {explain_difference(leaf)}"
    return f"{text} {explain_doubt(leaf)}"


def explain_invariance(leaf: Leaf, requirement: Requirement) -> str:
    """Return the largest difference that is still possible, and that it is within the margin."""
    margin = describe_margin(requirement)
    largest = format_points(find_largest_possible(leaf))
    return (
        f"The data rule out a difference of more than {largest}, which is within the margin of "
        f"{margin}."
    )


def explain_difference(leaf: Leaf) -> str:
    """Return where the leaf does not hold, and how probable the difference would be by chance."""
    text = (
        "If the rate did not depend on the environment, a difference this large would occur with "
        f"probability {format_p(leaf.p_value)}."
    )
    outliers = describe_outliers(leaf.outliers, leaf.n_seen)
    return f"It {outliers}. {text}" if outliers else text


def explain_doubt(leaf: Leaf) -> str:
    """Return which difference is still possible, and which would have been detected."""
    largest = find_largest_possible(leaf)
    possible = "any difference"
    if largest < VACUOUS:
        possible = f"a difference of {format_points(largest)}"
    return (
        f"This may be chance, but {possible} is still possible; the minimum detectable difference "
        f"is {format_detectable(leaf.detectable)}."
    )


def find_largest_possible(leaf: Leaf) -> float:
    """Return the upper end of the interval of the difference; 1 where it is not known."""
    return leaf.difference_interval[1] if leaf.difference_interval else 1.0


def describe_figure(sentence: str, leaves: Sequence[Leaf]) -> str:
    """Return a model and its leaves in words, for those who cannot see its drawing."""
    texts = [describe_drawn_leaf(leaf) for leaf in leaves]
    return f"{sentence} {'; '.join(texts)}." if texts else sentence


def describe_drawn_leaf(leaf: Leaf) -> str:
    """Return number, condition, prediction, rate and verdict of a leaf."""
    text = (
        f"leaf {leaf.number}, {leaf.condition}: predicts {leaf.predicts} for "
        f"{count(leaf.n, 'sample')}, rate {format_share(leaf.rate)}"
    )
    return text if leaf.conclusion is None else f"{text}, {leaf.conclusion}"
