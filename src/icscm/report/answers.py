"""The short answers at the top of a report."""

from __future__ import annotations

from collections.abc import Sequence

from icscm.model.learner import Learner
from icscm.model.rule_sets import RuleSet
from icscm.report.errors import format_error
from icscm.report.leaves import CONCLUSIONS, count_conclusions, say_conclusions
from icscm.report.steps import list_looks
from icscm.report.words import Names, Plain, format_share
from icscm.search.trace import Trace
from icscm.stats.verdicts import INVARIANT, NOT_INVARIANT, TOO_LITTLE_DATA
from icscm.text import count


def make_sentence(model: RuleSet, names: Names) -> str:
    """The whole rule in words."""
    if not model.rules:
        always = names.predict(bool(model.leaf_verdicts[0]))
        return f"Always predict {always}: no rule was found that does better."
    return f"Predict {names.positive} when {model}; otherwise {names.predict(False)}."


def make_title(model: RuleSet, trace: Trace, names: Names) -> str:
    """One line for the top of the page."""
    if trace.alpha is None:
        return "A rule that was not asked to hold in every environment"
    if trace.set_aside is not None:
        return "The rules found do worse than always saying the same"
    start = "A rule that was tested" if model.rules else "No rule holds"
    return f"{start} in every {names.environment}"


def make_answers(
    learner: Learner,
    names: Names,
    leaves: Sequence[Plain],
    errors: Plain,
    search: Plain,
    standard: Plain,
) -> Plain:
    """The four answers: the rule, its error, its invariance, and what was refused."""
    asked = f"Does it hold in every {names.environment}?"
    answers = {
        "rule": ("What is the rule?", *_answer_rule(learner.model_, names)),
        "error": ("How good is it?", *_answer_error(errors)),
        "invariance": (asked, *_answer_invariance(leaves, standard)),
        "refused": ("What was refused?", *_answer_refused(learner, search)),
    }
    keys = "question", "answer", "detail", "conclusion"
    return {name: dict(zip(keys, answer, strict=False)) for name, answer in answers.items()}


def _answer_rule(model: RuleSet, names: Names) -> tuple[str, str]:
    few = "No rule passed. What was tried, and what to try next, is told below.", "A single rule."
    many = f"{len(model)} rules, asked in this order."
    return make_sentence(model, names), (*few, many)[min(len(model), 2)]


def _answer_error(errors: Plain) -> tuple[str, str]:
    worst = errors["worst"]
    at_worst = f" At worst, in {worst['text']}." if worst else ""
    return (
        f"Wrong for {format_error(errors)}",
        f"Always saying {errors['majority_class']} would be wrong for "
        f"{format_share(errors['majority_error'])}.{at_worst} These are the training data; "
        "expect somewhat more errors on new ones.",
    )


def _answer_invariance(leaves: Sequence[Plain], standard: Plain) -> tuple[str, str, str | None]:
    """The answer, its detail and the worst conclusion."""
    if standard["alpha"] is None:
        why = "The data name no environments, so that there is nothing to compare."
        return "Not tested", why, None
    if len(leaves) == 1:
        told = f"Among all samples: {leaves[0]['explanation']}"
        return "There is no rule to judge", told, leaves[0]["conclusion"]
    counts = count_conclusions(leaf["conclusion"] for leaf in leaves)
    worst = next(each for each in (NOT_INVARIANT, TOO_LITTLE_DATA, INVARIANT) if each in counts)
    n = f"{counts[worst]} of {count(len(leaves), 'leaf')}"
    answer = {
        NOT_INVARIANT: f"Not everywhere: {n} not invariant",
        TOO_LITTLE_DATA: f"Cannot be told for {n}",
        INVARIANT: "Yes, as far as these data can tell",
    }[worst]
    note = " The search itself did not look at environments." if standard["afterwards"] else ""
    detail = (
        f"Of the {len(leaves)} groups (leaves) that the rule sorts samples into: "
        f"{say_conclusions(counts)}. {CONCLUSIONS[worst]} "
        f"Margin {standard['margin_text']}, level {standard['alpha']:g}.{note}"
    )
    return answer, detail, worst


def _answer_refused(learner: Learner, search: Plain) -> tuple[str, str]:
    if not search["is_tested"]:
        if learner.tests_invariance:
            return "Nothing", "Without environments nothing can be tested."
        return "Nothing", "The plain set covering machine tests nothing."
    if search["is_exhaustive"]:
        n_rejected = sum(not each["accepted"] for each in search["sets"])
        return (
            f"{n_rejected:,} of {count(len(search['sets']), 'set')} of rules",
            "In a rejected set's leaves the label still depends on the environment. The model "
            "is what all accepted sets share.",
        )
    look = next(iter(list_looks(search)), None)
    if look is None or not look["n_refused_all"]:
        return "Nothing at the first step", "No candidate rule was refused there."
    n_candidates = count(look["n_candidates"], "candidate rule")
    told = [f"The most useful of them, {each['rule']}: {each['why']}." for each in look["refused"]]
    return f"{look['n_refused_all']:,} of {n_candidates} at the first step", "".join(told[:1])
