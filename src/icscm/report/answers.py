"""The short answers at the top of a report."""

from __future__ import annotations

from collections.abc import Sequence

from icscm.formatting import count
from icscm.model.learner import Learner
from icscm.model.tree import Tree
from icscm.report.errors import format_error, say_fault, say_measures
from icscm.report.leaves import CONCLUSIONS, count_conclusions, say_conclusions
from icscm.report.steps import list_looks
from icscm.report.words import Names, Plain, format_share
from icscm.stats.verdicts import INVARIANT, NOT_INVARIANT, TOO_LITTLE_DATA


def make_sentence(model: Tree, names: Names, set_aside: Tree | None = None) -> str:
    """The whole rule in words."""
    if not model.rules:
        always = names.predict(bool(model.leaf_verdicts[0]))
        if set_aside is not None:
            return f"Always predict {always}: rules were found, and set aside as no better."
        return f"Always predict {always}: no rule was found that does better."
    return f"Predict {names.positive} when {model}; otherwise {names.predict(False)}."


def make_title(learner: Learner, errors: Plain, names: Names, set_aside: Plain | None) -> str:
    """One line for the top of the page: first of all whether the rule is worth anything."""
    trace, always = learner.trace_, f"always saying {errors['majority_class']}"
    if learner.model_.rules and not errors["beats_majority"]:
        return f"A rule that is {say_fault(errors, always)}"
    if set_aside is not None:
        return f"Rules were found and set aside: {set_aside['worth']} {always}"
    if trace.alpha is None:
        return "A rule that was not asked to hold in every environment"
    start = "A rule that was tested" if learner.model_.rules else "No rule holds"
    return f"{start} in every {names.environment}"


def make_answers(
    learner: Learner,
    names: Names,
    leaves: Sequence[Plain],
    errors: Plain,
    search: Plain,
    standard: Plain,
    set_aside: Plain | None,
) -> Plain:
    """The four answers: the rule, its error, its invariance, and what was refused."""
    asked = f"Does it hold in every {names.environment}?"
    answers = {
        "rule": ("What is the rule?", *_answer_rule(learner, names, set_aside)),
        "error": ("How good is it?", *answer_error(learner.model_, errors, names)),
        "invariance": (asked, *_answer_invariance(leaves, standard)),
        "refused": ("What was refused?", *_answer_refused(learner, search)),
    }
    keys = "question", "answer", "detail", "conclusion"
    return {name: dict(zip(keys, answer, strict=False)) for name, answer in answers.items()}


def _answer_rule(learner: Learner, names: Names, set_aside: Plain | None) -> tuple[str, str]:
    model, aside = learner.model_, learner.trace_.discarded
    nothing = "No rule passed. What was tried, and what to try next, is told below."
    told = nothing if set_aside is None else set_aside["explanation"]
    many = f"{len(model)} rules, asked in this order."
    return make_sentence(model, names, aside), (told, "A single rule.", many)[min(len(model), 2)]


def answer_error(model: Tree, errors: Plain, names: Names) -> tuple[str, str]:
    """How often it is wrong, beside always saying the same."""
    wrong, always = f"rong for {format_error(errors)}", f"always saying {errors['majority_class']}"
    at_worst = f" At worst, in {errors['worst']['text']}." if errors["worst"] else ""
    told = (
        f"A{always[1:]} would be wrong for {format_share(errors['majority_error'])}.{at_worst} "
        "These are the training data; expect somewhat more errors on new ones."
    )
    if not model.rules:
        return f"W{wrong}", told
    found = f"For {names.positive}: {say_measures(errors)}. {told}"
    if errors["beats_majority"]:
        return f"W{wrong}", found
    fault = say_fault(errors, always)
    return f"{fault[0].upper()}{fault[1:]}: w{wrong}", f"{_weigh_alike(errors)}{found}"


def _weigh_alike(errors: Plain) -> str:
    """Of a rule that is wrong more often than a constant, what it may be good for all the same."""
    if errors["sensitivity"] is None or errors["specificity"] is None:
        return ""
    balanced = (errors["sensitivity"] + errors["specificity"]) / 2
    return f"Were both classes as frequent, it would be right for {format_share(balanced)}. "


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
