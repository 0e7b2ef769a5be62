"""The headline of a report: a title, facts, and on each of five topics an answer and a detail."""

from collections.abc import Sequence
from dataclasses import dataclass

from icscm.formatting import as_text, count
from icscm.report.content.errors import Errors
from icscm.report.content.learner import LearnerContent
from icscm.report.content.leaves import Leaf
from icscm.report.content.model import ModelContent, ModelSize, Shape
from icscm.report.content.nodes import (
    ChosenSplit,
    CriterionName,
    RejectedCandidate,
    SplitCandidate,
)
from icscm.report.content.validation import ValidationRecord
from icscm.report.formatting import (
    count_conclusions,
    format_conclusions,
    format_features,
    format_score,
    format_share,
)
from icscm.report.wording.errors import describe_error, describe_metrics
from icscm.report.wording.estimates import describe_estimate, has_interval
from icscm.report.wording.facts import Fact
from icscm.report.wording.leaves import explain_leaf
from icscm.report.wording.model import (
    describe_model,
    describe_worst,
    explain_discarded,
    judge_discarded,
    name_model,
)
from icscm.report.wording.ranges import describe_range, describe_variation, reverses
from icscm.report.wording.rejections import explain_rejection
from icscm.report.wording.requirement import (
    SHARED_BY_SETS,
    describe_margin,
    describe_requirement,
)
from icscm.report.wording.validation import (
    describe_new_auc,
    describe_place,
    judge_discrimination,
)
from icscm.stats.verdicts import INVARIANT, NOT_INVARIANT, TOO_LITTLE_DATA

# What each conclusion on leaves means, the best first.
CONCLUSIONS = {
    INVARIANT: "No heterogeneity was found, and the data rule out a difference beyond the margin.",
    NOT_INVARIANT: "The rate differs between environments by more than chance explains.",
    TOO_LITTLE_DATA: "No heterogeneity was found, but a difference beyond the margin is possible.",
}
NO_ENVIRONMENTS = "The data have no environments to compare."


@dataclass(frozen=True)
class Answer:
    """What a report says on one topic; the conclusion, if any, is that on the leaves."""

    topic: str
    answer: str
    detail: str
    conclusion: str | None = None


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
        facts=list_facts(
            content.model,
            content.errors,
            content.leaves,
            name=name_model(content.learned, content.model.features),
            report=content,
        ),
        model=answer_model(content),
        new_sites=answer_new_sites(content),
        error=answer_error(content),
        invariance=answer_invariance(content),
        rejected=answer_rejected(content),
    )


# --- the title ------------------------------------------------------------------------------------


def write_title(content: LearnerContent) -> str:
    """Return what was found, or why nothing was."""
    model, nodes, noun = content.model, content.nodes, content.model.noun
    every = f"every {content.names.environment}"
    if is_faulty(model, content.errors):
        return f"The {noun} {describe_fault(content.errors)}"
    if model.discarded is not None:
        worth = judge_discarded(model.discarded)
        return f"Rules were found and discarded: {worth} the majority-class baseline"
    if not model.is_rule_set and not model.n_rules:
        return "No column got points" if noun == "score" else "No split was made"
    if not nodes.is_tested:
        return f"A {noun} learned without a requirement on environments"
    if model.is_rule_set:
        what = "A rule tested for invariance" if model.n_rules else "No rule is invariant"
        return f"{what} in {every}"
    if content.trace.describe_excess():
        return f"No {noun} has the same rates in {every}: the nearest one"
    if nodes.invariance == "rate":
        return f"A {noun} whose leaves must have the same rate in {every}"
    parts = "columns" if noun == "score" else "splits"
    return f"A {noun} whose {parts} must have the same effect in {every}"


def is_faulty(model: ModelSize, errors: Errors) -> bool:
    """Return whether there are rules that are no better than the majority-class baseline."""
    has_rules = model.is_rule_set and model.n_rules > 0
    return has_rules and not errors.beats_majority and not model.threshold


def describe_fault(errors: Errors) -> str:
    """Return that rules are no better than the baseline; with other costs p they need not be."""
    if errors.p == 1:
        return "is no better than the majority-class baseline"
    return (
        "is wrong at least as often as the majority-class baseline, as p = "
        f"{as_text(errors.p)} allows"
    )


def describe_threshold(model: ModelSize) -> str:
    """Return the probability at which the classes are divided, where the rules do not do it."""
    if model.threshold or (model.n_rules and not model.is_rule_set):
        return f" at threshold {model.threshold or 0.5:.3g}"
    return ""


def describe_error_threshold(model: ModelSize, errors: Errors) -> str:
    """Return the threshold of the error; out of bag it is 0.5 whatever the model's is."""
    if not errors.is_out_of_bag:
        return describe_threshold(model)
    return " at threshold 0.5" if model.n_rules else ""


# --- facts ----------------------------------------------------------------------------------------


def list_facts(
    model: ModelSize,
    errors: Errors,
    leaves: Sequence[Leaf],
    *,
    name: str,
    report: LearnerContent | None = None,
) -> list[Fact]:
    """Return a warning if there is cause, the model, its errors, and what else is known.

    Of a saved model there is no `report`.
    """
    facts = list_warnings(model, errors)
    facts.append(Fact(model.noun.capitalize(), summarize_model(model, name)))
    if report is not None:
        facts += list_validation_facts(report)
    facts.append(describe_error_fact(model, errors))
    if report is not None:
        if report.model.shape is not None:
            facts.append(Fact("Shape", describe_shape(report.model.shape)))
        if report.n_returned is not None and model.n_rules:
            n_same, n_subsamples = report.n_returned
            subsamples = count(n_subsamples, "random subsample")
            facts.append(
                Fact("Stability", f"the same columns in {n_same} of {subsamples} of half the rows")
            )
    if model.n_rules and leaves and leaves[0].conclusion is not None:
        facts.append(Fact("Leaves", count_verdicts(leaves)))
    if report is not None:
        facts += list_search_facts(report)
    return facts


def list_warnings(model: ModelSize, errors: Errors) -> list[Fact]:
    """Return that the rules, or those that were discarded, are no better than the baseline."""
    if is_faulty(model, errors):
        return [Fact("Warning", f"the {model.noun} {describe_fault(errors)}")]
    if model.discarded is None:
        return []
    error = format_share(model.discarded.errors.error)
    baseline = f"majority-class baseline ({name_majority(errors)})"
    return [
        Fact(
            "Warning",
            f"rules were found and discarded (error {error}): "
            f"{judge_discarded(model.discarded)} the {baseline}",
        )
    ]


def name_majority(errors: Errors) -> str:
    """Return the class that the baseline predicts."""
    return "positive" if errors.majority_is_positive else "negative"


def summarize_model(model: ModelSize, name: str) -> str:
    """Return the model in a few words."""
    if not model.n_rules:
        return f"none: {name if model.noun == 'forest' else model.text}"
    if not model.is_rule_set:
        return name
    return model.text if model.threshold else f"positive where {model.text}"


def list_validation_facts(content: LearnerContent) -> list[Fact]:
    """Return the lines on environments left out, or why there are none."""
    if content.validation is None:
        reason = content.unvalidated
        return [Fact("New sites", f"not validated by leave-one-environment-out: {reason}")]
    return [Fact(*line.split(": ", 1)) for line in list_validation_lines(content.validation)]


def list_validation_lines(validation: ValidationRecord) -> list[str]:
    """Return the lines on performance in environments left out."""
    lines: list[str] = validation.to_dict()["lines"]
    return lines


def describe_error_fact(model: ModelSize, errors: Errors) -> Fact:
    """Return the metrics and the error, those of the baseline, and the worst environment."""
    term = "Out of bag" if errors.is_out_of_bag else "In training"
    metrics = f"{describe_metrics(errors)}; " if model.n_rules else ""
    text = (
        f"{metrics}error {describe_error(errors)}{describe_error_threshold(model, errors)} "
        f"({format_share(errors.majority_error)} for the majority-class baseline, "
        f"{name_majority(errors)})"
    )
    if errors.worst is not None and errors.best is not None:
        text += (
            f"; worst in environment {errors.worst.environment}, {describe_error(errors.worst)}, "
            f"best in {errors.best.environment}, {describe_error(errors.best)}"
        )
    return Fact(term, text)


def describe_shape(shape: Shape) -> str:
    """Return the AUC of each shape where rows were left out, and why the larger one may not win."""
    scores = ", ".join(f"{name} {format_score(score)}" for name, score in shape.scores.items())
    text = f"{shape.chosen}, by AUC in held-out {shape.held_out}: {scores}"
    disjunction = shape.scores.get("disjunction") or 0
    conjunction = shape.scores.get("conjunction") or 0
    if shape.chosen == "conjunction" and disjunction > conjunction:
        text += " (the disjunction is not clearly better)"
    return text


def count_verdicts(leaves: Sequence[Leaf]) -> str:
    """Return the number of leaves by conclusion."""
    return format_conclusions(count_conclusions(leaf.conclusion for leaf in leaves))


def list_search_facts(content: LearnerContent) -> list[Fact]:
    """Return the requirement, and the best candidate that was rejected for it."""
    nodes = content.nodes
    kind = content.model.kind
    facts = [Fact("Requirement", describe_requirement(nodes, content.names, kind))]
    if nodes.is_tested and nodes.best_rejected is not None:
        text = describe_best_rejected(nodes.best_rejected, content)
        facts.append(Fact("Rejected", text))
    return facts


def describe_best_rejected(best: RejectedCandidate, content: LearnerContent) -> str:
    """Return the rejected candidate of largest worth, where it was, and why it was rejected."""
    where = "" if best.node == "all samples" else f" where {best.node}"
    worth = "useful" if content.model.is_rule_set else "informative"
    why = explain_rejection(best, content.names)
    return f"{best.candidate.rule}{where}, the most {worth} of all rejected: {why}"


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
        nothing = {"rule": "rule passed", "score": "column got points"}
        what = nothing.get(model.noun, "split was made")
        return f"No {what}. The rejected candidates are listed below."
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
    lines = list_validation_lines(validation)
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
    model, errors, names = content.model, content.errors, content.names
    sentences = []
    if is_faulty(model, errors) and None not in (errors.sensitivity, errors.specificity):
        balanced = ((errors.sensitivity or 0.0) + (errors.specificity or 0.0)) / 2
        sentences.append(f"Balanced accuracy: {format_share(balanced)}.")
    if model.n_rules:
        sentences.append(
            f"For {names.positive}: {describe_metrics(errors)}; wrong for {describe_error(errors)}"
            f"{describe_error_threshold(model, errors)}."
        )
    sentences.append(
        f"The majority-class baseline, {errors.majority_class}, is wrong for "
        f"{format_share(errors.majority_error)}."
    )
    if worst := describe_worst(errors, names):
        sentences.append(f"Worst: {worst}.")
    end = "." if errors.is_out_of_bag else "; expect poorer performance on new data."
    sentences.append(f"Measured on {name_measured_rows(errors)}{end}")
    return " ".join(sentences)


def name_measured_rows(errors: Errors) -> str:
    """Return the rows on which errors were measured."""
    if errors.is_out_of_bag:
        return "the samples that trees were not grown on"
    return "the training data"


# --- invariance -----------------------------------------------------------------------------------


def find_conclusion(leaves: Sequence[Leaf]) -> str | None:
    """Return the worst conclusion on a leaf; None where nothing was tested."""
    found = {leaf.conclusion for leaf in leaves}
    order = (NOT_INVARIANT, TOO_LITTLE_DATA, INVARIANT)
    return next((conclusion for conclusion in order if conclusion in found), None)


def answer_invariance(content: LearnerContent) -> Answer:
    """Return whether effects, or the rates of leaves, are the same in every environment."""
    topic = f"Invariance over every {content.names.environment}"
    if content.nodes.invariance == "effect":
        return Answer(topic, *judge_effects(content))
    return Answer(topic, *judge_rates(content), conclusion=find_conclusion(content.leaves))


def judge_rates(content: LearnerContent) -> tuple[str, str]:
    """Return answer and detail on the rates of the leaves."""
    leaves, requirement = content.leaves, content.task.requirement
    if requirement.alpha is None:
        return "Not tested", NO_ENVIRONMENTS
    if not leaves:
        return "Not tested by leaf", "A forest has no single set of leaves."
    if len(leaves) == 1:
        explanation = explain_leaf(leaves[0], content.names, requirement)
        return "No leaf to test", f"All samples together: {explanation}"

    conclusion = find_conclusion(leaves)
    assert conclusion is not None
    n_leaves = count(len(leaves), "leaf")
    n_worst = sum(leaf.conclusion == conclusion for leaf in leaves)
    answers = {
        NOT_INVARIANT: f"{n_worst} of {n_leaves} not invariant",
        INVARIANT: "All leaves invariant, as far as these data can show",
        TOO_LITTLE_DATA: f"Too little data in {n_worst} of {n_leaves}",
    }
    detail = (
        f"{n_leaves}: {count_verdicts(leaves)}. {CONCLUSIONS[conclusion]} Margin "
        f"{describe_margin(requirement)}, level {requirement.alpha:g}."
    )
    if content.model.kind == "tree":
        detail += (
            " The tolerance bounds the heterogeneity of the tree as a whole, not of each leaf."
        )
    elif requirement.afterwards:
        detail += " The search itself did not use environments."
    return answers[conclusion], detail


def judge_effects(content: LearnerContent) -> tuple[str, str]:
    """Return answer and detail on the effects of splits or columns."""
    nodes, noun = content.nodes, content.model.noun
    if not content.task.has_environments:
        return "Not tested", NO_ENVIRONMENTS
    if noun in ("forest", "score"):
        is_forest = noun == "forest"
        if not nodes.is_tested:
            verb = "grown" if is_forest else "learned"
            return "Not required", f"A plain {noun} is {verb} without regard to environments."
        before = "the trees were grown" if is_forest else "points were given"
        return "By column, on all samples", (
            "Columns with effects that, given all others, differ between environments by more than "
            f"the tolerance were rejected before {before}."
        )
    splits = [split for split in nodes.splits if isinstance(split, ChosenSplit)]
    if not splits:
        return "No split to test", "All samples are in one leaf."

    note = "" if nodes.is_tested else " Homogeneity was not required: the tree is a plain one."
    n_same = sum(split.candidate.heterogeneity_share == 0 for split in splits)
    if n_same == len(splits):
        answer = "All effects homogeneous, as far as these data can show"
        return (
            answer,
            f"No odds ratio of {count(n_same, 'split')} differs by more than chance.{note}",
        )
    answer = f"{n_same:,} of {count(len(splits), 'effect')} differ by no more than chance"
    worst = max(splits, key=lambda split: split.candidate.heterogeneity_share)
    return answer, f"{describe_varying_split(worst, content)}{note}"


def describe_varying_split(split: ChosenSplit, content: LearnerContent) -> str:
    """Return by how much the effect of a split varies, and between which environments."""
    candidate: SplitCandidate = split.candidate
    reverse = (
        "reverses, and " if reverses(candidate.lowest, candidate.highest, candidate.n_seen) else ""
    )
    variation = describe_variation(candidate.heterogeneity_share, has_environments=True)
    text = f"{candidate.rule} (split {split.number}) {reverse}differs most: {variation}"
    if candidate.n_seen > 1:
        span = describe_range(candidate.lowest, candidate.highest, content.names)
        text += f"; odds ratio from {span}"
    return f"{text}."


# --- rejected candidates --------------------------------------------------------------------------


def answer_rejected(content: LearnerContent) -> Answer:
    """Return how many candidates were rejected, and the best of them."""
    return Answer("Rejected candidates", *judge_rejected(content))


def judge_rejected(content: LearnerContent) -> tuple[str, str]:
    """Return answer and detail on the rejected candidates."""
    nodes, model = content.nodes, content.model
    if not nodes.is_tested:
        why = "the search did not use environments"
        if content.tests_invariance and not content.task.has_environments:
            why = "the data have no environments"
        return "None", f"Nothing was tested: {why}."
    if nodes.criterion == CriterionName.SETS:
        n_rejected = sum(not each.accepted for each in nodes.sets)
        return f"{n_rejected:,} of {count(len(nodes.sets), 'set')} of rules", (
            "In the leaves of a rejected set the label still depends on the environment. The model "
            f"is {SHARED_BY_SETS}."
        )
    if model.noun == "score":
        columns = [each.feature for each in nodes.rejected_columns]
        named = format_features(columns) if columns else "All columns passed the screen"
        return count(len(columns), "column"), f"{named}."
    scan = nodes.scans[0] if nodes.scans else None
    if scan is None or not scan.size.n_rejected_all:
        return "None in the first scan", "No candidate was rejected there."
    where = "in the first scan" if model.is_rule_set else "of all samples"
    candidates = count(scan.size.n_candidates, "candidate")
    answer = f"{scan.size.n_rejected_all:,} of {candidates} {where}"
    return answer, detail_rejected(content)


def detail_rejected(content: LearnerContent) -> str:
    """Return the most useful rejected rule, or the columns that are not in the tree."""
    nodes, model, names = content.nodes, content.model, content.names
    if model.is_rule_set:
        best = nodes.best_rejected
        assert best is not None
        return f"The most useful of all, {best.candidate.rule}: {explain_rejection(best, names)}."
    if not nodes.rejected_features:
        return "Every column with a rejected split is in the model."
    best = nodes.rejected_features[0]
    columns = format_features([each.candidate.feature for each in nodes.rejected_features])
    return (
        f"Associated with the label but not in the {model.noun}: {columns}. The split that "
        f"explains most, {best.candidate.rule}: {explain_rejection(best, names)}."
    )
