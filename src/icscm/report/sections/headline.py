"""Section `headline`: title, model, performance, invariance and rejections in a few sentences."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import zip_longest
from math import sqrt

from icscm.formatting import count, format_number
from icscm.model.learner import Learner
from icscm.report.formatting import Names, Plain, format_share
from icscm.report.sections.errors import describe_fault, format_error, format_metrics
from icscm.report.sections.leaves import CONCLUSIONS, count_conclusions, format_conclusions
from icscm.report.sections.model import name_features
from icscm.report.sections.nodes import format_odds_range, format_variation
from icscm.stats.verdicts import INVARIANT, NOT_INVARIANT, TOO_LITTLE_DATA

_NO_ENVIRONMENTS = "The data have no environments to compare."


def make_headline(learner: Learner, names: Names, summary: Plain) -> Plain:
    """A title, and on each of four topics an answer and a detail, from the other sections."""
    leaves, nodes = summary["leaves"], summary["nodes"]
    is_effect = nodes["invariance"] == "effect"
    invariance = (
        _describe_effects(nodes["splits"], names, is_required=nodes["is_tested"])
        if is_effect
        else _describe_rates(leaves, summary["task"]["requirement"], summary["model"]["kind"])
    )
    topics = {
        "model": ("Model", *_describe_model(summary)),
        "error": ("Performance against baseline", *_describe_performance(summary, names)),
        "invariance": (f"Invariance over every {names.environment}", *invariance),
        "rejected": ("Rejected candidates", *_describe_rejections(learner, summary)),
    }
    keys = "topic", "answer", "detail", "conclusion"
    described = {name: dict(zip_longest(keys, each)) for name, each in topics.items()}
    title, facts = _make_title(learner, summary, names), list_facts(summary)
    return {"title": title, "facts": facts, **described}


def list_facts(summary: Plain) -> list[list[str]]:
    """Terms and texts: a warning if there is cause, the model, its error and metrics."""
    errors, model = summary["errors"], summary["model"]
    text = model["text"] if model["n_rules"] else f"none: {model['text']}"
    if model["n_rules"]:
        text = f"positive where {text}" if model["noun"] == "rule" else model["name"]
    error = f"{format_error(errors)}, on {errors['on']}"
    if errors["worst"] is not None:
        best = f"{errors['best']['environment']}, {format_error(errors['best'])}"
        worst = f"{errors['worst']['environment']}, {format_error(errors['worst'])}"
        error += f"; worst in environment {worst}, best in {best}"
    facts = [[model["noun"].capitalize(), text], ["Error", error]]
    label = "positive" if errors["majority_is_positive"] else "negative"
    baseline = f"majority-class baseline ({label})"
    if model["n_rules"]:
        facts.append(["Baseline", f"{format_share(errors['majority_error'])}, {baseline}"])
        facts.append(["Metrics", format_metrics(errors)])
        if not errors["beats_majority"]:
            facts.insert(0, ["Warning", describe_fault(errors, f"the {model['noun']}")])
    elif model["discarded"]:
        wrong = format_share(model["discarded"]["errors"]["error"])
        worth = f"{model['discarded']['worth']} the {baseline}"
        facts.insert(0, ["Warning", f"rules were found and discarded (error {wrong}): {worth}"])
    counts = count_conclusions(leaf["conclusion"] for leaf in summary["leaves"])
    if counts and model["n_rules"]:
        facts.append(["Leaves", format_conclusions(counts)])
    if "task" in summary:  # not of a saved model
        facts.append(["Requirement", summary["task"]["requirement"]["text"]])
    return facts


def describe_requirement(learner: Learner, names: Names) -> str:
    """What was required to be the same in every environment, and within which bound."""
    trace, noun = learner.trace_, learner.model_.kind
    if not hasattr(trace, "tolerance"):
        if trace.alpha is None:
            return "None: environments were not used in the search."
        return (
            f"In the leaf of each rule {names.target} must not depend on the "
            f"{names.environment}, tested at level {trace.alpha:g}."
        )
    if trace.tolerance is None:
        return f"None: a plain {noun}, grown without regard to environments."
    tolerance = format_number(trace.tolerance)
    if trace.invariance == "rate":
        return (
            f"The rate of {names.positive} in each leaf must be the same in every "
            f"{names.environment}: at most {tolerance} of the deviance explained may be "
            "heterogeneity (tolerance)."
        )
    return (
        f"The effect of each split (its odds ratio) must be the same in every "
        f"{names.environment}, whatever the rate is there: it may vary by "
        f"{sqrt(trace.tolerance):.0%} (tolerance {tolerance})."
    )


def _make_title(learner: Learner, summary: Plain, names: Names) -> str:
    """One line for the top of the page; a model without merit is called that first."""
    model, errors, trace = summary["model"], summary["errors"], learner.trace_
    noun, every = model["noun"], f"every {names.environment}"
    if model["n_rules"] and not errors["beats_majority"]:
        return describe_fault(errors, f"The {noun}")
    if model["discarded"]:
        worth = model["discarded"]["worth"]
        return f"Rules were found and discarded: {worth} the majority-class baseline"
    if noun != "rule" and not model["n_rules"]:
        return "No split was made"
    if not summary["nodes"]["is_tested"]:
        return f"A {noun} learned without a requirement on environments"
    if noun == "rule":
        tested = f"A rule tested for invariance in {every}"
        return tested if model["n_rules"] else f"No rule is invariant in {every}"
    if trace.describe_excess():
        return f"No {noun} has the same rates in {every}: the nearest one"
    what = "leaves must have the same rate" if trace.invariance == "rate" else ""
    return f"A {noun} whose {what or 'splits must have the same effect'} in {every}"


def _describe_model(summary: Plain) -> tuple[str, str]:
    model, requirement = summary["model"], summary["task"]["requirement"]["text"]
    if model["discarded"]:
        return model["sentence"], model["discarded"]["explanation"]
    if not model["n_rules"]:
        what = "rule passed" if model["noun"] == "rule" else "split was made"
        return model["sentence"], f"No {what}. The rejected candidates are listed below."
    if model["noun"] != "rule":
        return model["sentence"], requirement
    n = model["n_rules"]
    order = "A single rule." if n == 1 else f"{n} rules, applied in this order."
    return model["sentence"], order


def _describe_performance(summary: Plain, names: Names) -> tuple[str, str]:
    """The error beside that of the majority-class baseline."""
    errors, noun = summary["errors"], f"the {summary['model']['noun']}"
    wrong, majority = f"rong for {format_error(errors)}", errors["majority_class"]
    worst = f" Worst: {errors['worst']['text']}." if errors["worst"] else ""
    details = (
        f"The majority-class baseline, {majority}, is wrong for "
        f"{format_share(errors['majority_error'])}.{worst} Measured on {errors['on']}"
    )
    details += "." if errors["is_out_of_bag"] else "; expect more errors on new data."
    if not summary["model"]["n_rules"]:
        return f"W{wrong}", details
    details = f"For {names.positive}: {format_metrics(errors)}. {details}"
    if errors["beats_majority"]:
        return f"W{wrong}", details
    rates = errors["sensitivity"], errors["specificity"]
    if None not in rates:
        details = f"Balanced accuracy: {format_share(sum(rates) / 2)}. {details}"
    fault = describe_fault(errors, noun)
    return f"{fault[0].upper()}{fault[1:]}: w{wrong}", details


def _describe_rates(
    leaves: Sequence[Plain], requirement: Plain, kind: str
) -> tuple[str, str, str | None]:
    """Whether the rates of the leaves are invariant, with the worst conclusion."""
    if requirement["alpha"] is None:
        return "Not tested", _NO_ENVIRONMENTS, None
    if not leaves:
        return "Not tested by leaf", "A forest has no leaves of its own.", None
    if len(leaves) == 1:
        text = f"All samples together: {leaves[0]['explanation']}"
        return "No leaf to test", text, leaves[0]["conclusion"]
    counts = count_conclusions(leaf["conclusion"] for leaf in leaves)
    worst = next(each for each in (NOT_INVARIANT, TOO_LITTLE_DATA, INVARIANT) if each in counts)
    n = f"{counts[worst]} of {count(len(leaves), 'leaf')}"
    answer = {
        NOT_INVARIANT: f"{n} not invariant",
        TOO_LITTLE_DATA: f"Too little data in {n}",
        INVARIANT: "All leaves invariant, as far as these data can show",
    }[worst]
    notes = f"{CONCLUSIONS[worst]} Margin {requirement['margin_text']}, "
    notes += f"level {requirement['alpha']:g}."
    if kind == "tree":
        notes += " The tolerance bounds the heterogeneity of the tree as a whole, not of each leaf."
    elif requirement["afterwards"]:
        notes += " The search itself did not use environments."
    text = f"{count(len(leaves), 'leaf')}: {format_conclusions(counts)}. {notes}"
    return answer, text, worst


def _describe_effects(
    splits: Sequence[Plain], names: Names, *, is_required: bool
) -> tuple[str, str, None]:
    """How many effects are homogeneous, and which varies most."""
    if len(names.environments) < 2:
        return "Not tested", _NO_ENVIRONMENTS, None
    if not splits:
        return "No split to test", "All samples are in one leaf.", None
    n_same = sum(split["heterogeneity_share"] == 0 for split in splits)
    note = "" if is_required else " It was not required to: the tree is a plain one."
    if n_same == len(splits):
        text = f"No odds ratio of {count(n_same, 'split')} varies more than by chance.{note}"
        return "All effects homogeneous, as far as these data can show", text, None
    worst = max(splits, key=lambda split: split["heterogeneity_share"])
    ends = f"; {format_odds_range(worst, names)}" if worst["n_seen"] > 1 else ""
    return (
        f"{n_same:,} of {count(len(splits), 'effect')} vary no more than by chance",
        f"{worst['rule']} (split {worst['number']}) varies most: "
        f"{format_variation(worst['heterogeneity'])}{ends}.{note}",
        None,
    )


def _describe_rejections(learner: Learner, summary: Plain) -> tuple[str, str]:
    nodes = summary["nodes"]
    if not nodes["is_tested"]:
        has_none = learner.tests_invariance and not summary["task"]["has_environments"]
        why = (
            "Without environments nothing"
            if has_none
            else "The search ignored environments: nothing"
        )
        return "None", f"{why} was tested."
    if nodes["criterion"] == "sets":
        n_rejected = sum(not each["accepted"] for each in nodes["sets"])
        return (
            f"{n_rejected:,} of {count(len(nodes['sets']), 'set')} of rules",
            "In the leaves of a rejected set the label still depends on the environment. The "
            "model is what all accepted sets share.",
        )
    if not nodes["scans"] or not nodes["scans"][0]["n_rejected_all"]:
        return "None in the first scan", "No candidate was rejected there."
    scan = nodes["scans"][0]
    answer = f"{scan['n_rejected_all']:,} of {count(scan['n_candidates'], 'candidate')}"
    if nodes["invariance"] is None:
        best = [f"The most useful of them, {e['rule']}: {e['why']}." for e in scan["rejected"][:1]]
        return f"{answer} in the first scan", "".join(best)
    rejected = nodes["rejected_features"]
    if not rejected:
        return f"{answer} of all samples", "Every column with a rejected split is in the model."
    features, best = name_features([each["feature"] for each in rejected]), rejected[0]
    noun = summary["model"]["noun"]
    return (
        f"{answer} of all samples",
        f"Associated with the label but not in the {noun}: {features}. The split that explains "
        f"most, {best['rule']}: {best['why']}.",
    )
