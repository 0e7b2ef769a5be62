"""For each leaf of a model, what is known of its invariance."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from icscm._constants import DEFAULT_MARGIN, VERDICT_CONFIDENCE, VERDICT_POWER
from icscm.formatting import count
from icscm.model.learner import Learner
from icscm.model.leaves import LeafCounts
from icscm.model.tree import Tree
from icscm.report.elsewhere import describe_expectation
from icscm.report.words import Names, Plain, describe_counts, format_p, format_points, format_share
from icscm.search.trace import Trace
from icscm.stats.criteria import Criterion, PValueCriterion, find_outlier_environments
from icscm.stats.independence import make_test
from icscm.stats.metrics import find_extreme_environments
from icscm.stats.new_environments import make_expectations
from icscm.stats.verdicts import INVARIANT, NOT_INVARIANT, TOO_LITTLE_DATA, Verdict, make_verdicts

# The level at which the leaves of a learner that tests nothing are judged afterwards.
AFTERWARDS_ALPHA = 0.05
# Environments that are named as those that break a leaf; where there are more, none is the odd one.
_MAX_BREAKING = 8

# What each conclusion means, the best first.
CONCLUSIONS = {
    INVARIANT: "The test finds no shift, and the data rule out one beyond the margin.",
    NOT_INVARIANT: "The rate shifts between environments more than chance explains.",
    TOO_LITTLE_DATA: "No shift was found, but one beyond the margin is still possible.",
}


def make_standard(
    names: Names,
    alpha: float | None = None,
    margin: float = DEFAULT_MARGIN,
    margin_on: str = "rate",
    *,
    afterwards: bool = False,
) -> Plain:
    """By what leaves are judged; `alpha` is None where there is nothing to compare."""
    is_odds = margin_on == "odds_ratio"
    return {
        "alpha": alpha,
        "margin": margin,
        "margin_on": margin_on,
        "margin_text": f"an odds ratio of {margin:g}" if is_odds else format_points(margin),
        "afterwards": afterwards,
        "confidence": VERDICT_CONFIDENCE,
        "difference_confidence": None if alpha is None else max(1 - 2 * alpha, 0.0),
        "power": VERDICT_POWER,
        "conclusions": CONCLUSIONS,
        "null_hypothesis": (
            f"within this leaf, {names.target} does not depend on the {names.environment}. A small "
            "p-value speaks against that, and so against invariance; a large one does not prove it."
        ),
    }


def find_standard(learner: Learner, names: Names) -> Plain:
    """The learner's own standard, or the usual one where it tests nothing itself."""
    alpha = learner.trace_.alpha
    if len(names.environments) < 2:
        return make_standard(names)
    if not learner.tests_invariance or alpha is None:
        return make_standard(names, AFTERWARDS_ALPHA, afterwards=True)
    settings = learner.get_params(deep=False)
    return make_standard(names, alpha, settings["margin"], settings["margin_on"])


def judge(model: Tree, trace: Trace, standard: Plain) -> Sequence[Verdict]:
    """The search's own verdicts, or those of Pearson's test where it made none; [] without any."""
    level = standard["alpha"], standard["margin"]
    if standard["alpha"] is None:
        return []
    return trace.verdicts or make_verdicts(model.leaves, make_test("chi2"), *level)


def find_criterion(trace: Trace, standard: Plain) -> Criterion | None:
    """The search's own criterion, or Pearson's test where leaves are judged afterwards."""
    if not standard["afterwards"]:
        return trace.criterion
    return PValueCriterion(make_test("chi2"), standard["alpha"])


def describe_breaking(
    counts: LeafCounts, names: Names, criterion: Criterion | None, n_seen: int
) -> Plain:
    """The few environments without which a leaf that is not invariant would pass, and in words."""
    found = criterion and find_outlier_environments(np.array(counts), criterion, _MAX_BREAKING)
    places = [names.environments[k] for k in sorted(found)] if found else None
    return {"breaking": places, "breaking_text": names.say_breaking(places, n_seen)}


def describe_leaves(
    model: Tree,
    names: Names,
    verdicts: Sequence[Verdict] = (),
    standard: Plain | None = None,
    criterion: Criterion | None = None,
) -> list[Plain]:
    """Every leaf with its counts, rates and verdict, which environments break it, and elsewhere."""
    judged: Sequence[Verdict | None] = verdicts or [None] * len(model.leaves)
    is_positive, conditions = model.leaf_verdicts.tolist(), _list_conditions(model)
    expected = make_expectations(model.leaves)
    leaves = []
    for number, (counts, verdict) in enumerate(zip(model.leaves, judged, strict=True)):
        overall, environments = describe_counts(counts, names)
        leaf = {
            "number": number + 1,
            "condition": conditions[number],
            "is_rest": number == len(model.rules) and (number == 0 or model.is_chain),
            "predicts": names.predict(is_positive[number]),
            "is_positive": is_positive[number],
            **overall,
            "environments": environments,
            **find_extremes(environments),
            **describe_verdict(verdict),
            **describe_expectation(expected[number]),
        }
        odd = criterion if leaf["conclusion"] == NOT_INVARIANT else None
        leaf |= describe_breaking(counts, names, odd, leaf["n_seen"])
        told = _explain_leaf(leaf, names, standard or make_standard(names))
        leaves.append({**leaf, "explanation": told})
    return leaves


def _list_conditions(model: Any) -> list[str]:
    """What brings a sample into each leaf: into one of rules, given that it came to its node."""
    if not model.rules:
        return ["every sample"]
    if not model.is_chain:
        return [*model.leaf_texts]
    rest = "no rule is true" if model.covers_when else "every rule is true"
    rules = (rule if model.covers_when else rule.negate() for rule in model.rules)
    return [*map(str, rules), rest]


def find_extremes(environments: Sequence[Plain]) -> Plain:
    """The environments of lowest and highest rate, None without samples."""
    kept = "environment", "n", "rate"
    seen = [{key: each[key] for key in kept} for each in environments if each["n"]]
    ends = find_extreme_environments([each["rate"] for each in seen])
    lowest, highest = (None, None) if ends is None else (seen[k] for k in ends)
    return {"n_seen": len(seen), "lowest": lowest, "highest": highest}


def describe_verdict(verdict: Verdict | None) -> Plain:
    """The verdict's fields that are not rates; all None where nothing was judged."""
    keys = "conclusion", "p_value", "difference", "difference_interval"
    fields = {key: getattr(verdict, key, None) for key in keys}
    fields["detectable"] = getattr(verdict, "minimum_detectable_difference", None)
    interval = fields["difference_interval"]
    return {**fields, "difference_interval": interval and list(interval)}


def _explain_leaf(leaf: Plain, names: Names, standard: Plain) -> str:
    """What the numbers of a leaf say, in sentences."""
    if leaf["conclusion"] is None:
        return "Nothing to compare: the data name no environments."
    if leaf["difference"] is None:
        seen = count(leaf["n_seen"], "environment")
        return f"Only {seen} has samples here, so that there is nothing to compare."
    low, high = name_ends(leaf, names)
    spread = f"The rate of {names.positive} lies between {low} and {high}."
    return f"{spread} {_explain_conclusion(leaf, standard)}"


def name_ends(fields: Plain, names: Names) -> list[str]:
    """The lowest and the highest rate, each with its environment."""
    ends = fields["lowest"], fields["highest"]
    return [f"{format_share(each['rate'])} ({names.place(each)})" for each in ends]


def _explain_conclusion(leaf: Plain, standard: Plain) -> str:
    most, margin = leaf["difference_interval"][1], standard["margin_text"]
    if leaf["conclusion"] == INVARIANT and standard["margin_on"] == "odds_ratio":
        return f"The data rule out a shift beyond the margin, {margin}."
    if leaf["conclusion"] == INVARIANT:
        bound = f"a difference of more than {format_points(most)}"
        return f"The data rule out {bound}, which is inside the margin of {margin}."
    if leaf["conclusion"] == NOT_INVARIANT:
        told = f"It {leaf['breaking_text']}. " if leaf["breaking_text"] else ""
        return (
            f"{told}If the label did not depend on the environment here, a shift this large would "
            f"come about by chance with probability {format_p(leaf['p_value'])}."
        )
    seen = "could not have seen any"
    if leaf["detectable"] is not None:
        seen = f"would likely have seen {format_points(leaf['detectable'])}"
    # up to 100 points is no bound
    what = (
        "any difference" if most >= 0.9995 else f"a true difference of up to {format_points(most)}"
    )
    return f"That may be chance; but {what} is still possible, and the test {seen}."


def count_conclusions(conclusions: Iterable[str | None]) -> dict[str, int]:
    """How many leaves came to each conclusion, those that occur, the best first."""
    found = list(conclusions)
    return {each: found.count(each) for each in CONCLUSIONS if each in found}


def say_conclusions(counts: Mapping[str, int]) -> str:
    """How many leaves came to each conclusion, as text."""
    return ", ".join(f"{n} {conclusion}" for conclusion, n in counts.items())
