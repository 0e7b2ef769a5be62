"""What invariance requires here: of the model, of a test, and of the verdict on a leaf."""

from collections.abc import Sequence

from icscm.report.content.leaves import Leaf, Requirement
from icscm.report.content.nodes import CriterionName, Nodes
from icscm.report.formatting import Names, format_detectable, format_points, format_value

# The model that the exhaustive search makes of the accepted sets.
SHARED_BY_SETS = "what all accepted sets share"
# A largest possible difference of this much or more says nothing.
VACUOUS = 0.9995


def describe_requirement(nodes: Nodes, names: Names, kind: str) -> str:
    """Return what the search required of the model."""
    if nodes.is_chain:
        if nodes.alpha is None:
            return "None: environments were not used in the search."
        return (
            f"In the leaf of each rule {names.target} must not depend on the {names.environment}, "
            f"tested at level {nodes.alpha:g}."
        )
    if nodes.tolerance is None:
        return f"None: a plain {kind}, grown without regard to environments."
    tolerance = format_value(nodes.tolerance)
    if nodes.invariance == "rate":
        return (
            f"The rate of {names.positive} in each leaf must be the same in every "
            f"{names.environment}: at most {tolerance} of the deviance explained may be "
            "heterogeneity (tolerance)."
        )
    return (
        "The effect of each column, given all others, must be the same in every "
        f"{names.environment}, although rates may differ: its heterogeneity may be at most "
        f"{tolerance} of the deviance explained (tolerance)."
    )


def describe_margin(requirement: Requirement) -> str:
    """Return the largest difference that counts as none."""
    return format_points(requirement.margin)


def describe_null_hypothesis(names: Names) -> str:
    """Return what the p-value of a leaf is evidence against."""
    return (
        f"within the leaf, {names.target} does not depend on the {names.environment}. A small "
        "p-value is evidence against invariance; a large one does not prove it."
    )


def describe_tests(nodes: Nodes, margin: str) -> str:
    """Return what the p-values of a rule set's search test, and when a rule is rejected."""
    alpha = f"{nodes.alpha:g}"
    text = (
        "p covered: test that the label is independent of the environment among the samples that "
        "the rule covers; p uncovered: the same among the uncovered samples."
    )
    if nodes.criterion == CriterionName.SETS:
        return (
            f"{text} p of a set: in all leaves of its rules together; accepted if above {alpha}. "
            f"The model is {SHARED_BY_SETS}."
        )
    if nodes.criterion == CriterionName.MARGIN:
        return (
            f"{text} A rule is rejected unless shown, at level {alpha}, to differ by at most "
            f"{margin} between environments; p-values do not decide."
        )
    return f"{text} Rejected unless p covered is above {alpha}."


def describe_bounds(leaves: Sequence[Leaf], margin: str) -> str:
    """Return how large a difference within leaves is still possible, and which is detectable.

    Both are those of the worst leaf. Empty where leaves were not tested.
    """
    if not leaves or leaves[0].conclusion is None:
        return ""
    sentences = [f"Invariant: shown to differ by at most {margin} between environments."]

    upper_ends = [leaf.difference_interval[1] for leaf in leaves if leaf.difference_interval]
    largest_possible = max(upper_ends, default=VACUOUS)
    if largest_possible < VACUOUS:
        where = "In the least certain leaf" if len(leaves) > 1 else "Here"
        sentences.append(
            f"{where} a difference of {format_points(largest_possible)} is still possible."
        )

    # None where no difference at all is detectable in some leaf
    detectable = [leaf.detectable for leaf in leaves if leaf.detectable is not None]
    largest_detectable = max(detectable) if len(detectable) == len(leaves) else None
    sentences.append(
        f"Largest minimum detectable difference: {format_detectable(largest_detectable)}."
    )
    return " ".join(sentences)
