"""For each leaf of a model, what is known of its invariance."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from operator import itemgetter

from icscm._constants import DEFAULT_MARGIN, VERDICT_CONFIDENCE, VERDICT_POWER
from icscm.model.learner import Learner
from icscm.model.rule_sets import LeafCounts, RuleSet
from icscm.report.words import (
    Names,
    Plain,
    describe_counts,
    format_p,
    format_points,
    format_share,
    sum_labels,
)
from icscm.search.trace import Trace
from icscm.stats.independence import make_test
from icscm.stats.verdicts import INVARIANT, NOT_INVARIANT, TOO_LITTLE_DATA, Verdict, make_verdicts
from icscm.text import count

# The level at which the leaves of a learner that tests nothing are judged afterwards.
AFTERWARDS_ALPHA = 0.05


# What each conclusion means, the best first.
CONCLUSIONS = {
    INVARIANT: "The test finds no shift, and the data rule out one beyond the margin.",
    NOT_INVARIANT: "The rate shifts between environments more than chance explains.",
    TOO_LITTLE_DATA: "No shift was found, but one beyond the margin is still possible.",
}


@dataclass(frozen=True)
class Standard:
    """By what leaves are judged; `alpha` is None where there is nothing to compare."""

    alpha: float | None
    margin: float
    margin_on: str
    afterwards: bool

    @property
    def margin_text(self) -> str:
        """The difference that still counts as none, in words."""
        if self.margin_on == "odds_ratio":
            return f"an odds ratio of {self.margin:g}"
        return format_points(self.margin)


UNTESTED = Standard(None, DEFAULT_MARGIN, "rate", afterwards=False)


def find_standard(learner: Learner) -> Standard:
    """The learner's own standard, or the usual one where it tests nothing itself."""
    trace = learner.trace_
    if len(trace.environments) < 2:
        return UNTESTED
    if not learner.tests_invariance or trace.alpha is None:
        return Standard(AFTERWARDS_ALPHA, DEFAULT_MARGIN, "rate", afterwards=True)
    settings = learner.get_params(deep=False)
    return Standard(trace.alpha, settings["margin"], settings["margin_on"], afterwards=False)


def judge(model: RuleSet, trace: Trace, standard: Standard) -> Sequence[Verdict | None]:
    """The search's own verdicts, or those of Pearson's test where it made none."""
    if standard.alpha is None:
        return [None] * len(model.leaves)
    if trace.verdicts:
        return trace.verdicts
    return make_verdicts(model.leaves, make_test("chi2"), standard.alpha, standard.margin)


def describe_leaves(
    model: RuleSet,
    names: Names,
    verdicts: Sequence[Verdict | None] | None = None,
    standard: Standard = UNTESTED,
) -> list[Plain]:
    """Every leaf with its counts, rates and verdict."""
    verdicts = verdicts or [None] * len(model.leaves)
    is_positive = model.leaf_verdicts.tolist()
    leaves = []
    for number, (counts, verdict) in enumerate(zip(model.leaves, verdicts, strict=True)):
        overall, environments = describe_counts(counts, names)
        leaf = {
            "number": number + 1,
            "condition": _describe_condition(model, number),
            "is_rest": number == len(model.rules),
            "predicts": names.predict(is_positive[number]),
            "is_positive": is_positive[number],
            **overall,
            "environments": environments,
            **find_extremes(counts, names),
            **describe_verdict(verdict),
        }
        leaves.append({**leaf, "explanation": _explain_leaf(leaf, names, standard)})
    return leaves


def _describe_condition(model: RuleSet, number: int) -> str:
    """What brings a sample into this leaf, given that it came to its node."""
    if not model.rules:
        return "every sample"
    if number == len(model.rules):
        return "no rule is true" if model.settles_when else "every rule is true"
    rule = model.rules[number]
    return str(rule if model.settles_when else rule.negate())


def find_extremes(counts: LeafCounts, names: Names) -> Plain:
    """The environments of lowest and highest rate, None without samples."""
    seen = [
        {"environment": name, "n": n, "rate": positive / n}
        for name, n, positive in zip(names.environments, sum_labels(counts), counts[1], strict=True)
        if n
    ]
    return {
        "n_seen": len(seen),
        "lowest": min(seen, key=itemgetter("rate"), default=None),
        "highest": max(seen, key=itemgetter("rate"), default=None),
    }


def describe_verdict(verdict: Verdict | None) -> Plain:
    """The verdict's fields that are not rates; all None where nothing was judged."""
    keys = "conclusion", "p_value", "difference", "difference_interval", "detectable"
    fields = {} if verdict is None else verdict.to_dict()
    return {key: fields.get(key) for key in keys}


def _explain_leaf(leaf: Plain, names: Names, standard: Standard) -> str:
    """What the numbers of a leaf say, in sentences."""
    if leaf["conclusion"] is None:
        return "Nothing to compare: the data name no environments."
    if leaf["difference"] is None:
        return (
            f"Only {count(leaf['n_seen'], names.environment)} has samples here, so that there is "
            "nothing to compare."
        )
    low, high = name_ends(leaf, names)
    spread = f"The rate of {names.positive} lies between {low} and {high}."
    return f"{spread} {_explain_conclusion(leaf, standard)}"


def name_ends(fields: Plain, names: Names) -> list[str]:
    """The lowest and the highest rate, each with its environment."""
    ends = fields["lowest"], fields["highest"]
    return [f"{format_share(each['rate'])} ({names.place(each)})" for each in ends]


def _explain_conclusion(leaf: Plain, standard: Standard) -> str:
    possible = format_points(leaf["difference_interval"][1])
    margin = standard.margin_text
    if leaf["conclusion"] == INVARIANT:
        if standard.margin_on == "odds_ratio":
            return f"The data rule out a shift beyond the margin, {margin}."
        return (
            f"The data rule out a difference of more than {possible}, which is inside the "
            f"margin of {margin}."
        )
    if leaf["conclusion"] == NOT_INVARIANT:
        return (
            f"If the label did not depend on the environment here, a shift this large would "
            f"come about by chance with probability {format_p(leaf['p_value'])}."
        )
    seen = (
        "the test could not have seen any"
        if leaf["detectable"] is None
        else f"the test would likely have seen {format_points(leaf['detectable'])}"
    )
    if leaf["difference_interval"][1] >= 0.9995:  # up to 100 points is no bound
        return f"That may be chance; but any difference is still possible, and {seen}."
    return (
        f"That may be chance; but a true difference of up to {possible} is still possible, "
        f"and {seen}."
    )


def describe_standard(standard: Standard, names: Names) -> Plain:
    """By what the leaves were judged."""
    alpha = standard.alpha
    return {
        "alpha": alpha,
        "margin": standard.margin,
        "margin_on": standard.margin_on,
        "margin_text": standard.margin_text,
        "afterwards": standard.afterwards,
        "confidence": VERDICT_CONFIDENCE,
        "difference_confidence": None if alpha is None else max(1 - 2 * alpha, 0.0),
        "power": VERDICT_POWER,
        "conclusions": CONCLUSIONS,
        "null_hypothesis": (
            f"within this leaf, {names.target} does not depend on {names.environment}. A small "
            "p-value speaks against that, and so against invariance; a large one does not prove it."
        ),
    }


def count_conclusions(conclusions: Iterable[str | None]) -> dict[str, int]:
    """How many leaves came to each conclusion, those that occur, the best first."""
    found = list(conclusions)
    return {each: found.count(each) for each in CONCLUSIONS if each in found}


def say_conclusions(counts: Mapping[str, int]) -> str:
    """How many leaves came to each conclusion, as text."""
    return ", ".join(f"{n} {conclusion}" for conclusion, n in counts.items())
