"""The search step by step: what was chosen, what was refused and why, what to try."""

from __future__ import annotations

from typing import Any

from icscm.model.learner import Learner
from icscm.report.leaves import describe_verdict, find_extremes
from icscm.report.terminal import count_samples, format_p
from icscm.report.words import Names, Plain, count, format_share
from icscm.search.trace import Look, Refusal, Trace
from icscm.stats.verdicts import TOO_LITTLE_DATA
from icscm.text import format_name


def describe_search(learner: Learner, names: Names) -> Plain:
    """The steps, what each refused, why the search ended and what to try."""
    trace = learner.trace_
    kept = set(learner.model_.rules)
    last = trace.last_look
    return {
        "stop_reason": trace.stop_reason,
        "stop_text": trace.stop_text,
        "alpha": trace.alpha,
        "is_tested": trace.alpha is not None,
        "is_exhaustive": bool(trace.sets),
        "steps": [
            {
                "number": number,
                "rule": str(step.chosen.rule),
                "in_model": step.chosen.rule in kept,
                **_describe_candidate(step.chosen, names),
                "n_remaining": count_samples(step.remaining),
                "p_value_remaining": step.p_value_remaining,
                "n_tied": step.n_tied,
                "n_equivalent": len(step.equivalent),
                "look": _describe_look(step.look, names),
            }
            for number, step in enumerate(trace.steps, start=1)
        ],
        "last_look": last and _describe_look(last, names),
        "nearest": [_describe_refusal(each, names) for each in trace.nearest],
        "screening": [
            {"rule": str(each.rule), "statistic": each.statistic, "p_value": each.p_value}
            for each in trace.screening
        ],
        "sets": [
            {
                "features": [format_name(each) for each in test.features],
                "p_value": test.p_value,
                "accepted": test.accepted,
            }
            for test in trace.sets
        ],
        "suggestions": [] if kept else _suggest(learner),
    }


def _describe_look(look: Look, names: Names) -> Plain:
    return {
        "n_candidates": look.n_candidates,
        "n_refused": dict(look.n_refused),
        "n_refused_all": sum(look.n_refused.values()),
        "cutoff": look.cutoff,
        "refused": [_describe_refusal(each, names) for each in look.best_refused],
    }


def _describe_refusal(refusal: Refusal, names: Names) -> Plain:
    fields = _describe_candidate(refusal.candidate, names)
    return {
        "rule": str(refusal.candidate.rule),
        **fields,
        "reason": refusal.reason,
        "why": _explain_refusal(refusal.reason, fields, names),
    }


def _describe_candidate(candidate: Any, names: Names) -> Plain:
    """Utility, test and counts of a candidate, and between which environments it differs most."""
    return {
        "utility": float(candidate.utility),
        "n": count_samples(candidate.leaf),
        "n_right": sum(candidate.leaf[names.settled]),
        "n_wrong": sum(candidate.leaf[1 - names.settled]),
        "counts": [list(row) for row in candidate.leaf],
        **find_extremes(candidate.leaf, names),
        **describe_verdict(candidate.verdict),
        "p_value": candidate.p_value,
    }


def _explain_refusal(reason: str, fields: Plain, names: Names) -> str:
    if reason == "small":
        return "too few samples in its leaf, or left after it"
    if fields["conclusion"] == TOO_LITTLE_DATA:
        return "too little data to show that the label is the same in every environment"
    lowest, highest = fields["lowest"], fields["highest"]
    if lowest is None or fields["n_seen"] < 2:
        return "the label's rate shifts between environments"
    return (
        f"the rate of {names.positive} shifts, from {format_share(lowest['rate'])} "
        f"({names.place(lowest)}) to {format_share(highest['rate'])} ({names.place(highest)})"
    )


def _suggest(learner: Learner) -> list[str]:
    """What to try when there is no rule."""
    trace = learner.trace_
    last = trace.last_look
    found = _SUGGESTIONS.get(trace.stop_reason, ())
    if last is None or trace.alpha is None:
        return list(found)
    suggestions = []
    if trace.nearest and trace.nearest[0].candidate.p_value is not None:
        p = trace.nearest[0].candidate.p_value
        suggestions.append(
            f"The nearest miss has p = {format_p(p)}, and rules are refused up to "
            f"{last.cutoff or trace.alpha:.3g}. A smaller alpha refuses fewer rules; choose it "
            "before looking, since a level chosen to let a rule pass is no evidence for it."
        )
    if last.n_refused.get("small", 0):
        suggestions.append(
            f"{count(last.n_refused['small'], 'candidate')} had too few samples: lower "
            "min_samples_leaf, or bring more data."
        )
    if last.n_refused.get("dependent", 0):
        suggestions += _suggest_for_dependent(getattr(learner, "criterion", "pvalue"))
    return [*suggestions, *found]


def _suggest_for_dependent(criterion: str) -> list[str]:
    advice = [
        "Look at the environments: do they differ in how the label is recorded? Environments that "
        "act on the label itself leave no rule invariant. Compare others (years, regions, sites).",
        "A column that matters may be absent from the data: a hidden common cause makes every "
        "rule shift.",
    ]
    if criterion == "equivalence":
        return [
            "Equivalence must be shown, which takes many samples in every environment: widen the "
            "margin, join small environments, or use criterion='pvalue'.",
            *advice,
        ]
    return [
        "With very many samples trivial shifts are refused too: criterion='equivalence' accepts "
        "those inside a margin that you state.",
        "With few samples, search='exhaustive' tests whole sets of rules and needs less data.",
        *advice,
    ]


_SUGGESTIONS = {
    "all_rejected": (
        "Every set of the screened rules was rejected: some cause is not among the columns, or "
        "the environments act on the label itself. Try other environments, more columns, or a "
        "larger n_candidates.",
    ),
    "empty_intersection": (
        "Several sets explain the data and share no rule: the environments change too little to "
        "tell the sets apart. Add environments, or more samples.",
    ),
    "nothing_associated": (
        "No column goes with the label strongly enough to be looked at. More samples or other "
        "columns are needed.",
    ),
    "no_candidate": ("The other model_type, conjunction or disjunction, may fit better.",),
}


def describe_pruning(trace: Trace) -> Plain:
    """The tests by which rules were removed or kept."""
    return {
        "removed": [format_name(test.feature) for test in trace.pruning if test.removed],
        "tests": [
            {
                "round": test.round,
                "feature": format_name(test.feature),
                "statistic": test.statistic,
                "dof": test.dof,
                "p_value": test.p_value,
                "removed": test.removed,
            }
            for test in trace.pruning
        ],
    }
