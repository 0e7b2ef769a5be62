"""The search step by step: what was chosen, what was refused and why."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from icscm.formatting import format_name
from icscm.model.learner import Learner
from icscm.report.leaves import describe_breaking, describe_verdict, find_extremes, name_ends
from icscm.report.words import Names, Plain, count_samples, describe_counts, format_p
from icscm.search.records import PRUNING_OUTCOMES, REJECTION_REASONS, Rejection
from icscm.search.trace import Scan, Trace
from icscm.stats.verdicts import TOO_LITTLE_DATA


def describe_search(learner: Learner, names: Names) -> Plain:
    """The steps, what each refused, and why the search ended."""
    trace = learner.trace_
    kept = set(learner.model_.rules)
    last = trace.last_scan
    return {
        "stop_reason": trace.stop_reason,
        "stop_text": trace.stop_text,
        "alpha": trace.alpha,
        "is_tested": trace.alpha is not None,
        "is_exhaustive": bool(trace.sets),
        "decided_by": _find_decision(learner),
        "steps": [
            {
                "number": number,
                "rule": str(step.chosen.rule),
                "in_model": step.chosen.rule in kept,
                **_describe_candidate(step.chosen, names),
                "n_remaining": count_samples(step.uncovered),
                "p_value_remaining": step.p_value_uncovered,
                "n_tied": step.n_tied,
                "n_equivalent": len(step.equivalent),
                "look": _describe_look(step, names, trace),
            }
            for number, step in enumerate(trace.steps, start=1)
        ],
        "last_look": last and _describe_look(last, names, trace),
        "nearest": [_describe_refusal(each, names, trace) for each in trace.nearest],
        "screening": [
            {"rule": str(each.rule), "statistic": each.statistic, "p_value": each.p_value}
            for each in trace.screening
        ],
        "sets": [
            {**asdict(test), "features": [format_name(each) for each in test.features]}
            for test in sorted(trace.sets, key=lambda test: -test.p_value)
        ],
        "refused_text": last and _describe_refusals(last),
    }


def _find_decision(learner: Learner) -> str | None:
    """What refused a rule: the p-values of sets, a margin, corrected or plain p-values."""
    if learner.trace_.alpha is None:
        return None
    settings = learner.get_params(deep=False)
    if settings["search"] == "exhaustive":
        return "sets"
    if settings["criterion"] == "equivalence":
        return "margin"
    return "p-values" if settings["correction"] is None else str(settings["correction"])


def list_looks(search: Plain) -> list[Plain]:
    """Every look at the candidates, with the number of its step."""
    looks = [step["look"] for step in search["steps"]] + [search["last_look"]]
    return [{"number": number, **look} for number, look in enumerate(looks, start=1) if look]


def _describe_look(look: Scan, names: Names, trace: Trace) -> Plain:
    return {
        "n_candidates": look.n_candidates,
        "n_refused": dict(look.n_rejected),
        "n_refused_all": sum(look.n_rejected.values()),
        "cutoff": look.cutoff,
        "refused": [_describe_refusal(each, names, trace) for each in look.best_rejected],
    }


def _describe_refusal(refusal: Rejection, names: Names, trace: Trace) -> Plain:
    """A refused candidate, why, and of a dependent one which environments break it."""
    fields, reason = _describe_candidate(refusal.candidate, names), refusal.reason
    criterion = trace.criterion if reason == "dependent" else None
    fields |= describe_breaking(refusal.candidate.covered, names, criterion, fields["n_seen"])
    return {**fields, "reason": reason, "why": _explain_refusal(reason, fields, names)}


def _describe_candidate(candidate: Any, names: Names) -> Plain:
    """Utility, test and counts of a candidate, and between which environments it differs most."""
    overall, environments = describe_counts(candidate.covered, names)
    return {
        "rule": str(candidate.rule),
        "utility": float(candidate.utility),
        "n": overall["n"],
        "n_right": sum(candidate.covered[names.settled]),
        "n_wrong": sum(candidate.covered[1 - names.settled]),
        "counts": [list(row) for row in candidate.covered],
        "places": [[each["environment"], each["n"]] for each in environments if each["n"]],
        **find_extremes(environments),
        **describe_verdict(candidate.verdict),
        "p_value": candidate.p_value,
    }


def _explain_refusal(reason: str, fields: Plain, names: Names) -> str:
    if reason == "small":
        return "too few samples in its leaf, or left after it"
    if reason == "unhelpful":
        return f"it settles {fields['n_wrong']:,} samples wrongly and {fields['n_right']:,} rightly"
    if reason == "unreplicated":
        return f"its samples lie in too few environments to be compared: {_say_places(fields)}"
    if fields["conclusion"] == TOO_LITTLE_DATA:
        return "too little data to show that the label is the same in every environment"
    if fields["n_seen"] < 2:
        return "the label's rate shifts between environments"
    low, high = name_ends(fields, names)
    told = f"the rate of {names.positive} shifts, from {low} to {high}"
    return f"{told}; it {fields['breaking_text']}" if fields["breaking_text"] else told


def _say_places(fields: Plain) -> str:
    """The environments of most samples, with how many they hold."""
    largest = sorted(fields["places"], key=lambda place: -place[1])
    return ", ".join(f"{n:,} in {place}" for place, n in largest[:3])


def _describe_refusals(look: Scan) -> str | None:
    """How many candidates a look refused, and why, as a sentence; None if it refused none."""
    reasons = [
        f"{n:,} because {REJECTION_REASONS[reason]}" for reason, n in look.n_rejected.items() if n
    ]
    told = f"{sum(look.n_rejected.values()):,}: {'; '.join(reasons)}."
    return f"Of {look.n_candidates:,} candidates it refused {told}" if reasons else None


def describe_pruning(trace: Trace) -> Plain:
    """The tests by which rules were removed or kept, what came of it and what it cost."""
    tests = [{**asdict(test), "feature": format_name(test.feature)} for test in trace.pruning]
    removed = [each["feature"] for each in tests if each["removed"]]
    return {"removed": removed, "tests": tests, "text": _say_pruning(trace, tests)}


def _say_pruning(trace: Trace, tests: Sequence[Plain]) -> str | None:
    if trace.pruned is None:
        return None
    told = [PRUNING_OUTCOMES[trace.pruned.outcome]]
    for what, start in (("removed", "Removed"), ("undone", "Kept, since a leaf would break")):
        features = [
            f"{test['feature']} (p {format_p(test['p_value'])})" for test in tests if test[what]
        ]
        if features:
            told.append(f"{start}: {', '.join(features)}.")
    if trace.pruned.outcome == "removed":
        before, after = trace.pruned.n_wrong_before, trace.pruned.n_wrong_after
        told.append(f"Without pruning {before:,} training samples are wrong, with it {after:,}.")
    return " ".join(told)
