"""Why candidates were rejected: one candidate, those of a scan, and what pruning removed."""

from collections.abc import Sequence
from typing import Final

from icscm.report.content.candidates import RuleCandidate, SplitCandidate
from icscm.report.content.nodes import Pruning, PruningTestContent, RejectedCandidate, ScanSize
from icscm.report.formatting import Names, format_p, format_share
from icscm.report.wording.ranges import describe_outliers, describe_range
from icscm.stats.verdicts import TOO_LITTLE_DATA

# Completes "rejected because ...".
REASONS: Final = {
    "dependent": (
        "the label depends on the environment in its leaf, or its independence was not shown"
    ),
    "unreplicated": ("it is informative in too few of the environments that could show its effect"),
    "unhelpful": "it would cover too many samples wrongly, or is no better than chance",
    "heterogeneous": (
        "the effect of its column differs between environments by more than the tolerance"
    ),
    "reversed": "the effect of its column may be reversed in a new environment",
    "banned": (
        "with its feature, rates in the leaves differ between environments by more than the "
        "tolerance"
    ),
    "idle": "its feature explains almost no deviance beyond the other features",
}

PRUNING_OUTCOMES: Final = {
    "removed": "Pruning removed rules that invariance does not need.",
    "needed": (
        "Pruning removed nothing: without any one of the columns a leaf would not be invariant."
    ),
    "single": "Nothing to prune: the rules use a single column.",
    "not_ended": (
        "Nothing was pruned: Proposition 3.2 requires that the search ended because the label of "
        "the uncovered samples is independent of the environment."
    ),
}


def explain_rejection(rejected: RejectedCandidate, names: Names) -> str:
    """Return why a candidate was rejected, with its numbers."""
    candidate = rejected.candidate
    reason = rejected.reason
    if isinstance(candidate, SplitCandidate):
        return explain_rejected_split(rejected, candidate, names)
    if reason == "unhelpful":
        return explain_unhelpful_rule(candidate)
    if reason == "unreplicated":
        return f"{REASONS[reason]} (replication {candidate.replication:.2f})"
    if reason == "dependent":
        return explain_dependent_rule(rejected, candidate, names)
    return REASONS[reason]


def explain_unhelpful_rule(candidate: RuleCandidate) -> str:
    """Return how many rows a rule covers wrongly and correctly."""
    text = f"it covers {candidate.n_wrong:,} samples wrongly and {candidate.n_right:,} correctly"
    if candidate.utility >= 0:
        return f"{text}, no better than chance among so many candidates"
    return text


def explain_dependent_rule(
    rejected: RejectedCandidate, candidate: RuleCandidate, names: Names
) -> str:
    """Return between which environments the rate differs, or that too little is known."""
    if candidate.conclusion == TOO_LITTLE_DATA:
        return "too little data to show that the rate is the same in every environment"
    if candidate.n_seen < 2:
        return REASONS["dependent"]
    span = describe_range(candidate.lowest, candidate.highest, names)
    text = f"the rate of {names.positive} differs, from {span}"
    outliers = describe_outliers(rejected.outliers, candidate.n_seen)
    return f"{text}; it {outliers}" if outliers else text


def explain_rejected_split(
    rejected: RejectedCandidate, candidate: SplitCandidate, names: Names
) -> str:
    """Return the heterogeneity of a column's effect, or its replication."""
    reason = REASONS[rejected.reason]
    if rejected.reason == "unreplicated":
        return f"{reason} (replication {rejected.column_replication:.2f})"
    if rejected.reason not in ("heterogeneous", "reversed"):
        return reason
    text = f"{reason} ({format_share(rejected.column_share)} of the deviance explained)"
    if candidate.n_seen < 2:
        return text
    return f"{text}: odds ratio from {describe_range(candidate.lowest, candidate.highest, names)}"


def describe_rejections(size: ScanSize) -> str:
    """Return how many candidates of a scan were rejected, by reason; empty if none was."""
    reasons = {reason: n for reason, n in size.n_rejected.items() if n}
    if not reasons:
        return ""
    parts = "; ".join(f"{n:,} because {REASONS[reason]}" for reason, n in reasons.items())
    return f"{size.n_rejected_all:,} of {size.n_candidates:,} candidates were rejected: {parts}."


def describe_pruning(pruning: Pruning) -> str:
    """Return what pruning removed and had to keep, and what that cost; empty without pruning."""
    sentences = []
    if pruning.outcome is not None:
        sentences.append(PRUNING_OUTCOMES[pruning.outcome])
    removed = [test for test in pruning.tests if test.removed]
    if removed:
        sentences.append(f"Removed: {list_tests(removed)}.")
    undone = [test for test in pruning.tests if test.undone]
    if undone:
        sentences.append(
            "Kept, because the rate of a leaf would differ between environments: "
            f"{list_tests(undone)}."
        )
    if pruning.outcome == "removed":
        sentences.append(
            f"Training errors without pruning: {pruning.n_wrong_before:,}, with pruning: "
            f"{pruning.n_wrong_after:,}."
        )
    return " ".join(sentences)


def list_tests(tests: Sequence[PruningTestContent]) -> str:
    """Return the columns that were tested, with their p-values."""
    return ", ".join(f"{test.feature} (p {format_p(test.p_value)})" for test in tests)
