"""The short answers at the top of a report."""

from __future__ import annotations

from collections.abc import Sequence

from icscm.model.learner import Learner
from icscm.model.rule_sets import RuleSet
from icscm.report.leaves import CONCLUSIONS, Standard, count_conclusions, say_conclusions
from icscm.report.steps import list_looks
from icscm.report.words import Names, Plain, format_share
from icscm.search.trace import Trace
from icscm.stats.verdicts import INVARIANT, NOT_INVARIANT, TOO_LITTLE_DATA
from icscm.text import count


def make_sentence(model: RuleSet, names: Names) -> str:
    """The whole rule in words."""
    if not model.rules:
        always = names.predict(not model.settles_when)
        return f"Always predict {always}: no rule was found."
    return f"Predict {names.positive} when {model}; otherwise {names.negative}."


def make_title(model: RuleSet, trace: Trace, names: Names) -> str:
    """One line for the top of the page."""
    if trace.alpha is None:
        return "A rule that was not asked to hold in every environment"
    if not model.rules:
        return f"No rule was found that holds in every {names.environment}"
    return f"A rule that was tested in every {names.environment}"


def make_answers(
    learner: Learner,
    names: Names,
    leaves: Sequence[Plain],
    errors: Plain,
    search: Plain,
    standard: Standard,
) -> Plain:
    """The four answers: the rule, its error, its invariance, and what was refused."""
    invariance = _answer_invariance(leaves, standard)
    questions = {
        "rule": ("What is the rule?", _answer_rule(learner.model_, names)),
        "error": ("How good is it?", _answer_error(errors)),
        "invariance": (f"Does it hold in every {names.environment}?", invariance[1:]),
        "refused": ("What was refused?", _answer_refused(learner, search)),
    }
    answers: Plain = {
        key: {"question": question, "answer": answer, "detail": detail}
        for key, (question, (answer, detail)) in questions.items()
    }
    answers["invariance"]["conclusion"] = invariance[0]
    return answers


def _answer_rule(model: RuleSet, names: Names) -> tuple[str, str]:
    detail = {
        0: "No rule passed. What was tried, and what to try next, is told below.",
        1: "A single rule.",
    }.get(len(model), f"{len(model)} rules, asked in this order.")
    return make_sentence(model, names), detail


def _answer_error(errors: Plain) -> tuple[str, str]:
    worst = errors["worst"]
    at_worst = f" At worst, in {worst['text']}." if worst else ""
    return (
        f"Wrong for {format_share(errors['error'])} of {count(errors['n'], 'sample')}",
        f"Always saying {errors['majority_class']} would be wrong for "
        f"{format_share(errors['majority_error'])}.{at_worst} These are the training data; "
        "expect somewhat more errors on new ones.",
    )


def _answer_invariance(leaves: Sequence[Plain], standard: Standard) -> tuple[str | None, str, str]:
    """The worst conclusion, the answer and its detail."""
    if standard.alpha is None:
        why = "The data name no environments, so that there is nothing to compare."
        return None, "Not tested", why
    if len(leaves) == 1:
        told = f"Among all samples: {leaves[0]['explanation']}"
        return leaves[0]["conclusion"], "There is no rule to judge", told
    counts = count_conclusions(leaf["conclusion"] for leaf in leaves)
    worst = next(each for each in (NOT_INVARIANT, TOO_LITTLE_DATA, INVARIANT) if each in counts)
    n = f"{counts[worst]} of {count(len(leaves), 'leaf')}"
    answer = {
        NOT_INVARIANT: f"Not everywhere: {n} not invariant",
        TOO_LITTLE_DATA: f"Cannot be told for {n}",
        INVARIANT: "Yes, as far as these data can tell",
    }[worst]
    note = " The search itself did not look at environments." if standard.afterwards else ""
    detail = (
        f"Of the {len(leaves)} groups (leaves) that the rule sorts samples into: "
        f"{say_conclusions(counts)}. "
        f"{CONCLUSIONS[worst]} Margin {standard.margin_text}, level {standard.alpha:g}.{note}"
    )
    return worst, answer, detail


def _answer_refused(learner: Learner, search: Plain) -> tuple[str, str]:
    if not search["is_tested"]:
        if learner.tests_invariance:
            return "Nothing", "Without environments nothing can be tested."
        return "Nothing", "The plain set covering machine tests nothing."
    sets = search["sets"]
    if search["is_exhaustive"]:
        n_rejected = sum(not each["accepted"] for each in sets)
        return (
            f"{n_rejected:,} of {count(len(sets), 'set')} of rules",
            "In a rejected set's leaves the label still depends on the environment. The model "
            "is what all accepted sets share.",
        )
    look = next(iter(list_looks(search)), None)
    if look is None or not look["n_refused_all"]:
        return "Nothing at the first step", "No candidate rule was refused there."
    n_candidates = count(look["n_candidates"], "candidate rule")
    told = [f"The most useful of them, {each['rule']}: {each['why']}." for each in look["refused"]]
    return f"{look['n_refused_all']:,} of {n_candidates} at the first step", "".join(told[:1])
