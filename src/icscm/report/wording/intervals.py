"""Prediction intervals for a new environment: what they are, and why there may be none."""

from icscm.report.content.learner import NewEnvironments
from icscm.report.formatting import Names, format_share

ASSUMPTION = (
    "The intervals assume that a new environment is drawn from the same population as these; they "
    "do not hold where samples are measured or selected differently."
)


def describe_new_environments(content: NewEnvironments, names: Names) -> str:
    """Return where the intervals come from and what they assume, or why there are none."""
    if content.overall.new_interval is None:
        n_environments = len(names.environments)
        if n_environments < 2:
            return "No prediction interval: the data have no environments."
        return (
            f"No prediction interval from {n_environments} environments: an estimate of the "
            "heterogeneity needs at least three, and is imprecise with fewer than five."
        )
    if content.n_leaves and not content.leaves:
        return "No prediction interval: no leaf has samples of three environments."

    sentences = [
        f"The {100 * content.confidence:.4g}% prediction intervals of the rate of {names.positive} "
        f"follow from its heterogeneity over {content.n_environments:,} environments."
    ]
    if len(content.leaves) > 1:
        sentences.append(
            "Intervals with known rate are for a new site whose overall rate is that in training, "
            f"{format_share(content.rate)}; `describe_leaves(prevalence=...)` gives them for "
            "another rate."
        )
    return " ".join([*sentences, ASSUMPTION])


def describe_unknown_intervals(content: NewEnvironments) -> str:
    """Return how many leaves have no interval, where others have one."""
    n_unknown = content.n_leaves - len(content.leaves)
    if not content.leaves or not n_unknown:
        return ""
    subject = "leaf has" if n_unknown == 1 else "leaves have"
    return f"{n_unknown} {subject} no interval: fewer than three environments have samples there."
