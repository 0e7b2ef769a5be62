"""The facts of a fitted learner: its model, its errors, and how it was chosen, a line for each."""

from collections.abc import Sequence

from icscm.formatting import count
from icscm.report.content.errors import Errors
from icscm.report.content.learner import LearnerContent
from icscm.report.content.leaves import Leaf
from icscm.report.content.model import ModelSize, Shape
from icscm.report.content.nodes import RejectedCandidate
from icscm.report.formatting import (
    count_conclusions,
    format_conclusions,
    format_features,
    format_score,
    format_share,
)
from icscm.report.wording.baseline import describe_fault, is_faulty, name_majority
from icscm.report.wording.errors import (
    describe_error,
    describe_error_threshold,
    describe_metrics,
)
from icscm.report.wording.facts import Fact
from icscm.report.wording.model import judge_discarded
from icscm.report.wording.rejections import explain_rejection
from icscm.report.wording.requirement import describe_requirement


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
    warnings = list_warnings(model, errors)
    model_fact = Fact(model.noun.capitalize(), summarize_model(model, name))
    error_fact = describe_error_fact(model, errors)
    leaf_facts = list_leaf_facts(model, leaves)
    if report is None:
        return [*warnings, model_fact, error_fact, *leaf_facts]
    return [
        *warnings,
        model_fact,
        *list_validation_facts(report),
        error_fact,
        *list_choice_facts(report),
        *leaf_facts,
        *list_search_facts(report),
    ]


def list_choice_facts(content: LearnerContent) -> list[Fact]:
    """Return how the shape of a model was chosen, and how often its columns were chosen again."""
    model = content.model
    facts = []
    if model.shape is not None:
        facts.append(Fact("Shape", describe_shape(model.shape)))
    if content.n_returned is not None and model.n_rules:
        n_same, n_subsamples = content.n_returned
        subsamples = count(n_subsamples, "random subsample")
        text = f"the same columns in {n_same} of {subsamples} of half the rows"
        facts.append(Fact("Stability", text))
    return facts


def list_leaf_facts(model: ModelSize, leaves: Sequence[Leaf]) -> list[Fact]:
    """Return the number of leaves by conclusion, where they were tested."""
    is_tested = bool(leaves) and leaves[0].conclusion is not None
    if not is_tested or not model.n_rules:
        return []
    return [Fact("Leaves", count_verdicts(leaves))]


def list_warnings(model: ModelSize, errors: Errors) -> list[Fact]:
    """Return that the rules, or those that were discarded, are no better than the baseline."""
    if is_faulty(model, errors):
        return [Fact("Warning", f"the {model.noun} {describe_fault(errors)}")]
    if model.discarded is None:
        return []
    error = format_share(model.discarded.errors.error)
    worth = judge_discarded(model.discarded)
    text = (
        f"rules were found and discarded (error {error}): {worth} the majority-class baseline "
        f"({name_majority(errors)})"
    )
    return [Fact("Warning", text)]


def summarize_model(model: ModelSize, name: str) -> str:
    """Return the model in a few words."""
    if not model.n_rules:
        reason = name if model.noun == "forest" else model.text
        return f"none: {reason}"
    if not model.is_rule_set:
        return name
    return model.text if model.threshold else f"positive where {model.text}"


def list_validation_facts(content: LearnerContent) -> list[Fact]:
    """Return the lines on environments left out, or why there are none."""
    if content.validation is None:
        reason = content.unvalidated
        return [Fact("New sites", f"not validated by leave-one-environment-out: {reason}")]
    return [Fact(*line.split(": ", 1)) for line in content.validation.lines]


def describe_error_fact(model: ModelSize, errors: Errors) -> Fact:
    """Return the metrics and the error, those of the baseline, and the worst environment."""
    term = "Out of bag" if errors.is_out_of_bag else "In training"
    metrics = f"{describe_metrics(errors)}; " if model.n_rules else ""
    error = f"{describe_error(errors)}{describe_error_threshold(model, errors)}"
    baseline_error = format_share(errors.majority_error)
    text = (
        f"{metrics}error {error} "
        f"({baseline_error} for the majority-class baseline, {name_majority(errors)})"
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
    disjunction_auc = shape.scores.get("disjunction") or 0
    conjunction_auc = shape.scores.get("conjunction") or 0
    if shape.chosen == "conjunction" and disjunction_auc > conjunction_auc:
        text += " (the disjunction is not clearly better)"
    return text


def count_verdicts(leaves: Sequence[Leaf]) -> str:
    """Return the number of leaves by conclusion."""
    return format_conclusions(count_conclusions(leaf.conclusion for leaf in leaves))


def list_search_facts(content: LearnerContent) -> list[Fact]:
    """Return the requirement, and what was rejected for it: the best candidate, and columns."""
    nodes = content.nodes
    kind = content.model.kind
    facts = [Fact("Requirement", describe_requirement(nodes, content.names, kind))]
    rejected = []
    if nodes.is_tested and nodes.best_rejected is not None:
        rejected.append(describe_best_rejected(nodes.best_rejected, content))
    determining = nodes.determining_columns
    if determining:
        subject = "it determines" if len(determining) == 1 else "each determines"
        rejected.append(f"{format_features(determining)}, since {subject} the environment")
    if rejected:
        facts.append(Fact("Rejected", "; ".join(rejected)))
    return facts


def describe_best_rejected(best: RejectedCandidate, content: LearnerContent) -> str:
    """Return the most useful or informative candidate of those rejected, its rows, and why."""
    rows = "" if best.node == "all samples" else f" where {best.node}"
    quality = "useful" if content.model.is_rule_set else "informative"
    reason = explain_rejection(best, content.names)
    return f"{best.candidate.rule}{rows}, the most {quality} of all rejected: {reason}"
