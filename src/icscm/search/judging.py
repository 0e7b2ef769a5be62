"""Verdicts on the leaves of a trace: all together, and when they are first asked for.

A search decides by statistics alone. What a reader wants besides, p-values and verdicts of what was
chosen and refused, takes longer than a small fit, and most fits are never asked.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from functools import partial
from typing import Any

from icscm.model.leaves import LeafCounts
from icscm.search.settings import Settings
from icscm.search.trace import Candidate, Look, Refusal, Step, Trace
from icscm.stats.independence import IndependenceTest
from icscm.stats.verdicts import Verdict

# A leaf, and the level at which criterion (i) tested it, None for alpha.
Tested = tuple[LeafCounts, float | None]


def judge_later(trace: Trace, settings: Settings, test: IndependenceTest) -> Trace:
    """The trace with the p-values and verdicts that it lacks, once they are asked for."""
    asked = replace(settings, feature_weights=None)  # which may be large, and are of no use here
    return trace.complete_later(partial(_judge, trace, asked, test))


def _judge(trace: Trace, settings: Settings, test: IndependenceTest) -> dict[str, Any]:
    """The parts of a trace that tell of leaves."""
    distinct = list(dict.fromkeys(_list_leaves(trace)))
    leaves, levels = [leaf for leaf, _ in distinct], [level for _, level in distinct]
    verdicts = dict(zip(distinct, settings.judge_leaves(leaves, test, levels), strict=True))
    look = trace.last_look
    return {
        "steps": tuple(_judge_step(step, verdicts) for step in trace.steps),
        "last_look": look and _judge_look(look, verdicts),
        "nearest": _judge_refused(trace.nearest, look.cutoff, verdicts) if look else (),
    }


def _list_leaves(trace: Trace) -> Iterator[Tested]:
    for step in trace.steps:
        yield step.chosen.leaf, step.look.cutoff
        yield step.remaining, None
    for look in trace.looks:
        for each in (*look.best_refused, *(trace.nearest if look is trace.last_look else ())):
            yield each.candidate.leaf, look.cutoff


def _judge_step(step: Step, verdicts: dict[Tested, Verdict]) -> Step:
    rest = verdicts[step.remaining, None]
    return replace(
        step,
        chosen=_judge_candidate(step.chosen, step.look.cutoff, verdicts),
        p_value_remaining=rest.p_value,
        look=_judge_look(step.look, verdicts),
        verdict_remaining=rest,
    )


def _judge_look(look: Look, verdicts: dict[Tested, Verdict]) -> Look:
    return replace(look, best_refused=_judge_refused(look.best_refused, look.cutoff, verdicts))


def _judge_refused(
    refused: Iterable[Refusal], level: float | None, verdicts: dict[Tested, Verdict]
) -> tuple[Refusal, ...]:
    return tuple(
        replace(each, candidate=_judge_candidate(each.candidate, level, verdicts))
        for each in refused
    )


def _judge_candidate(
    candidate: Candidate, level: float | None, verdicts: dict[Tested, Verdict]
) -> Candidate:
    verdict = verdicts[candidate.leaf, level]
    return replace(candidate, p_value=verdict.p_value, verdict=verdict)
