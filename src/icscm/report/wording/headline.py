"""The headline of a report: a title, facts, and on each of five topics an answer and a detail.

The answers on the model, new sites and errors are written here; those on invariance and on
rejected candidates in `invariance` and `rejected`, the facts in `learner_facts`.
"""

from dataclasses import dataclass

from icscm.report.content.learner import LearnerContent
from icscm.report.content.model import ModelContent
from icscm.report.formatting import format_share
from icscm.report.wording.baseline import describe_fault, is_faulty
from icscm.report.wording.errors import (
    describe_error,
    describe_error_threshold,
    describe_metrics,
    name_measured_rows,
)
from icscm.report.wording.estimates import describe_estimate, has_interval
from icscm.report.wording.facts import Answer, Fact
from icscm.report.wording.invariance import answer_invariance
from icscm.report.wording.learner_facts import list_facts
from icscm.report.wording.model import (
    describe_model,
    describe_worst,
    explain_discarded,
    judge_discarded,
    name_model,
)
from icscm.report.wording.rejected import answer_rejected
from icscm.report.wording.requirement import describe_requirement
from icscm.report.wording.validation import (
    describe_new_auc,
    describe_place,
    judge_discrimination,
)


@dataclass(frozen=True)
class Headline:
    """The first lines of a report."""

    title: str
    facts: list[Fact]
    model: Answer
    new_sites: Answer
    error: Answer
    invariance: Answer
    rejected: Answer


def write_headline(content: LearnerContent) -> Headline:
    """Return the headline of a report on a fitted learner."""
    return Headline(
        title=write_title(content),
        facts=list_facts(content, name=name_model(content.learned, content.model.features)),
        model=answer_model(content),
        new_sites=answer_new_sites(content),
        error=answer_error(content),
        invariance=answer_invariance(content),
        rejected=answer_rejected(content),
    )


# --- the title ------------------------------------------------------------------------------------


def write_title(content: LearnerContent) -> str:
    """Return what was found, or why nothing was.

    Of several titles that are true, the first says what a reader must know before all else.
    """
    model = content.model
    nodes = content.nodes
    noun = model.noun
    every = f"every {content.names.environment}"

    # what is wrong with the model, whatever was required of it
    if is_faulty(model, content.errors):
        return f"The {noun} {describe_fault(content.errors)}"
    if model.discarded is not None:
        worth = judge_discarded(model.discarded)
        return f"Rules were found and discarded: {worth} the majority-class baseline"
    if not model.is_rule_set and not model.n_rules:
        return "No column got points" if noun == "score" else "No split was made"

    # what was required of it: nothing, or that rules, rates or effects are invariant
    if not nodes.is_tested:
        return f"A {noun} learned without a requirement on environments"
    if model.is_rule_set:
        finding = "A rule tested for invariance" if model.n_rules else "No rule is invariant"
        return f"{finding} in {every}"
    if content.trace.describe_excess():
        return f"No {noun} has the same rates in {every}: the nearest one"
    if nodes.invariance == "rate":
        return f"A {noun} whose leaves must have the same rate in {every}"
    parts = "columns" if noun == "score" else "splits"
    return f"A {noun} whose {parts} must have the same effect in {every}"


# --- model and errors -----------------------------------------------------------------------------


def answer_model(content: LearnerContent) -> Answer:
    """Return the model in a sentence, and how it was found."""
    model = content.model
    answer = describe_model(
        content.learned,
        content.names,
        model.features,
        is_discarded=model.discarded is not None,
    )
    return Answer("Model", answer, detail_model(content, model))


def detail_model(content: LearnerContent, model: ModelContent) -> str:
    """Return what a reader should know of the model besides its sentence."""
    if model.discarded is not None:
        return explain_discarded(model.discarded, content.errors.error)
    if not model.n_rules:
        missing_parts = {"rule": "rule passed", "score": "column got points"}
        missing = missing_parts.get(model.noun, "split was made")
        return f"No {missing}. The rejected candidates are listed below."
    if not model.is_rule_set:
        return describe_requirement(content.nodes, content.names, model.kind)
    if model.n_rules == 1:
        return "A single rule."
    return f"{model.n_rules} rules, applied in this order."


def answer_new_sites(content: LearnerContent) -> Answer:
    """Return the AUC in environments left out, and the other scores there."""
    topic = "Performance at new sites"
    validation = content.validation
    if validation is None:
        reason = content.unvalidated
        detail = f"Performance in environments left out is not known: {reason}."
        return Answer(topic, "Not validated", detail)
    auc = validation.pooled.get("auc")
    lines = validation.lines
    place = describe_place(len(validation.held_out))
    if auc is None:
        return Answer(topic, f"No AUC {place}", " ".join(f"{line}." for line in lines))
    sentences = [f"{line}." for line in lines[1:]]
    if has_interval(auc):
        judgement = judge_discrimination(auc).capitalize() + describe_new_auc(auc)
        sentences = [f"{judgement}.", *sentences]
    return Answer(topic, f"AUC {describe_estimate(auc)} {place}", " ".join(sentences))


def answer_error(content: LearnerContent) -> Answer:
    """Return the AUC or the error in training, with metrics, baseline and worst environment."""
    errors = content.errors
    where = "out of bag" if errors.is_out_of_bag else "in training"
    answer = f"Wrong for {describe_error(errors)} in training"
    if is_faulty(content.model, errors):
        fault = describe_fault(errors)
        answer = f"The {content.model.noun} {fault}: wrong for {describe_error(errors)}"
    elif errors.auc:
        answer = f"AUC {errors.auc:.3f} {where}"
    return Answer(where.capitalize(), answer, detail_error(content))


def detail_error(content: LearnerContent) -> str:
    """Return metrics, the error of the baseline, the worst environment, and the rows measured."""
    model = content.model
    errors = content.errors
    sentences = []
    if is_faulty(model, errors) and None not in (errors.sensitivity, errors.specificity):
        balanced = ((errors.sensitivity or 0.0) + (errors.specificity or 0.0)) / 2
        sentences.append(f"Balanced accuracy: {format_share(balanced)}.")
    if model.n_rules:
        sentences.append(
            f"For {content.names.positive}: {describe_metrics(errors)}; "
            f"wrong for {describe_error(errors)}{describe_error_threshold(model, errors)}."
        )
    sentences.append(
        f"The majority-class baseline, {errors.majority_class}, is wrong for "
        f"{format_share(errors.majority_error)}."
    )
    if worst := describe_worst(errors, content.names):
        sentences.append(f"Worst: {worst}.")
    end = "." if errors.is_out_of_bag else "; expect poorer performance on new data."
    sentences.append(f"Measured on {name_measured_rows(errors)}{end}")
    return " ".join(sentences)
