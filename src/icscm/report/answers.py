"""The short answers at the top of a report, and what they do and do not prove."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from icscm.model.learner import Learner
from icscm.model.rule_sets import RuleSet
from icscm.report.leaves import CONCLUSIONS, Standard, format_margin
from icscm.report.terminal import describe_uncompared
from icscm.report.words import Names, Plain, count, format_share
from icscm.search.trace import Trace
from icscm.stats.verdicts import INVARIANT, NOT_INVARIANT, TOO_LITTLE_DATA


def make_sentence(model: RuleSet, names: Names) -> str:
    """The whole rule in words."""
    if not model.rules:
        always = names.predict(not model.settles_when)
        return f"Always predict {always}: no rule was found."
    verb = " or " if model.settles_when else " and "
    return (
        f"Predict {names.positive} when {verb.join(map(str, model.rules))}; "
        f"otherwise {names.negative}."
    )


def make_title(model: RuleSet, trace: Trace, names: Names) -> str:
    """One line for the top of the page."""
    if trace.alpha is None:
        return "A rule that was not asked to hold in every environment"
    if not model.rules:
        return f"No rule was found that holds in every {names.environment}"
    return f"A rule that was tested in every {names.environment}"


def answer_rule(model: RuleSet, names: Names) -> Plain:
    """What is the rule?"""
    detail = {
        0: "No rule passed. What was tried, and what to try next, is told below.",
        1: "A single rule.",
    }.get(len(model), f"{len(model)} rules, asked in this order.")
    return {
        "question": "What is the rule?",
        "answer": make_sentence(model, names),
        "detail": detail,
    }


def answer_error(errors: Plain) -> Plain:
    """How good is it?"""
    worst = errors["worst"]
    at_worst = f" At worst, in {worst['text']}." if worst else ""
    return {
        "question": "How good is it?",
        "answer": f"Wrong for {format_share(errors['error'])} of {count(errors['n'], 'sample')}",
        "detail": (
            f"Always saying {errors['majority_class']} would be wrong for "
            f"{format_share(errors['majority_error'])}.{at_worst} These are the training data; "
            "expect somewhat more errors on new ones."
        ),
    }


def answer_invariance(leaves: Sequence[Plain], names: Names, standard: Standard) -> Plain:
    """Does it hold in every environment?"""
    question = f"Does it hold in every {names.environment}?"
    if standard.alpha is None:
        return {
            "question": question,
            "conclusion": None,
            "answer": "Not tested",
            "detail": "The data name no environments, so that there is nothing to compare.",
        }
    if len(leaves) == 1:
        return {
            "question": question,
            "conclusion": leaves[0]["conclusion"],
            "answer": "There is no rule to judge",
            "detail": f"Among all samples: {leaves[0]['explanation']}",
        }
    found = [leaf["conclusion"] for leaf in leaves]
    counts = {each: found.count(each) for each in CONCLUSIONS}
    worst = next(each for each in (NOT_INVARIANT, TOO_LITTLE_DATA, INVARIANT) if counts[each])
    n = len(leaves)
    answer = {
        NOT_INVARIANT: f"Not everywhere: {_of(counts[NOT_INVARIANT], n)} not invariant",
        TOO_LITTLE_DATA: f"Cannot be told for {_of(counts[TOO_LITTLE_DATA], n)}",
        INVARIANT: "Yes, as far as these data can tell",
    }[worst]
    each = ", ".join(f"{counts[key]} {key}" for key in CONCLUSIONS if counts[key])
    note = " The search itself did not look at environments." if standard.afterwards else ""
    return {
        "question": question,
        "conclusion": worst,
        "answer": answer,
        "detail": (
            f"Of the {n} groups (leaves) that the rule sorts samples into: {each}. "
            f"{CONCLUSIONS[worst]} Margin "
            f"{format_margin(standard)}, level {standard.alpha:g}.{note}"
        ),
    }


def _of(n: int, total: int) -> str:
    return f"{n} of {count(total, 'leaf')}"


def answer_refused(learner: Learner, search: Plain) -> Plain:
    """What was refused?"""
    question = "What was refused?"
    if not search["is_tested"]:
        why = (
            "The plain set covering machine tests nothing"
            if not learner.tests_invariance
            else "Without environments nothing can be tested"
        )
        return {"question": question, "answer": "Nothing", "detail": f"{why}."}
    if search["is_exhaustive"]:
        return _answer_rejected_sets(question, search["sets"])
    looks = [step["look"] for step in search["steps"]] + [search["last_look"]]
    look = next((each for each in looks if each), None)
    if look is None or not look["n_refused_all"]:
        return {
            "question": question,
            "answer": "Nothing at the first step",
            "detail": "No candidate rule was refused there.",
        }
    best = next((each for each in look["refused"]), None)
    detail = "" if best is None else f"The most useful of them, {best['rule']}: {best['why']}."
    return {
        "question": question,
        "answer": (
            f"{look['n_refused_all']:,} of {count(look['n_candidates'], 'candidate rule')} "
            "at the first step"
        ),
        "detail": detail,
    }


def _answer_rejected_sets(question: str, sets: Sequence[Plain]) -> Plain:
    n_rejected = sum(not each["accepted"] for each in sets)
    return {
        "question": question,
        "answer": f"{n_rejected:,} of {count(len(sets), 'set')} of rules",
        "detail": (
            "In a rejected set's leaves the label still depends on the environment. The model "
            "is what all accepted sets share."
        ),
    }


def explain_meaning(
    model: RuleSet,
    trace: Trace,
    leaves: Sequence[Plain],
    standard: Standard,
    names: Names,
    translate: Callable[[str], str],
) -> Plain:
    """What the result says and what it does not, in sentences."""
    return {
        "says": _explain_says(trace, names),
        "does_not_say": [
            "It is no proof of cause. Invariance is evidence of cause only if the environments act "
            "on the columns but not directly on the label, no hidden cause acts on both, and the "
            "label follows a noisy conjunction (or disjunction) of rules on its causes.",
            "With little data weak tests let rules on effects pass; with a great deal they refuse "
            "rules for trivial differences. The detectable difference of each leaf tells which.",
            "A cause that the environments leave untouched gives no sign of itself.",
            "The errors are those on the data that the rule was learned from. How it does in an "
            f"environment not seen is another question: {translate(_TRANSFER)}",
        ],
        "here": _explain_case(trace, leaves, standard)
        + (describe_uncompared(model, names.environments) if standard.alpha is not None else []),
    }


_TRANSFER = "leave_one_environment_out asks it."


def _explain_says(trace: Trace, names: Names) -> list[str]:
    if trace.alpha is None:
        return [
            "The rule describes these data as well as the search could. Nothing was asked about "
            "environments while it was learned: a column that is an effect of the label, or a "
            "mark of one environment, may well be in it.",
        ]
    return [
        f"The null hypothesis of every test is: {names.target} does not depend on "
        f"{names.environment} in this leaf. A rule in the model was not refused at level "
        f"{trace.alpha:g}: it is invariant across these environments as far as this many samples "
        "can tell.",
        "A refused rule is one under which the label's rate was seen to shift between "
        "environments, or not shown to stay.",
    ]


def _explain_case(trace: Trace, leaves: Sequence[Plain], standard: Standard) -> list[str]:
    """Warnings that this very result calls for."""
    found = []
    is_incomplete = len(leaves) > 1 and leaves[-1]["conclusion"] == NOT_INVARIANT
    if trace.alpha is not None and is_incomplete:
        found.append(
            "The samples that no rule settles still depend on the environment: by the method's "
            "own criterion the rule is incomplete, and a cause may be absent from the columns."
        )
    n_blind = sum(leaf["conclusion"] == TOO_LITTLE_DATA for leaf in leaves)
    if n_blind:
        found.append(
            f"{_of(n_blind, len(leaves))} had too little data to tell: there the rule was not "
            "refuted, which is less than shown to hold."
        )
    if standard.afterwards:
        found.append(
            f"The leaves were judged afterwards, with Pearson's test at {standard.alpha:g}; they "
            "had no say in the search."
        )
    return found
