"""The facts of a fitted learner: its model, its errors, and how it was chosen, a line for each."""

from icscm.formatting import count
from icscm.report.content.learner import LearnerContent
from icscm.report.content.model import Shape
from icscm.report.content.nodes import RejectedCandidate
from icscm.report.formatting import (
    format_features,
    format_score,
)
from icscm.report.wording.facts import Fact
from icscm.report.wording.model_facts import (
    describe_error_fact,
    list_leaf_facts,
    list_warnings,
    summarize_model,
)
from icscm.report.wording.rejections import explain_rejection
from icscm.report.wording.requirement import describe_requirement


def list_facts(content: LearnerContent, *, name: str) -> list[Fact]:
    """Return a warning if there is cause, the model, its errors, and how it was chosen."""
    model = content.model
    return [
        *list_warnings(model, content.errors),
        Fact(model.noun.capitalize(), summarize_model(model, name)),
        *list_validation_facts(content),
        describe_error_fact(model, content.errors),
        *list_choice_facts(content),
        *list_leaf_facts(model, content.leaves),
        *list_search_facts(content),
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


def list_validation_facts(content: LearnerContent) -> list[Fact]:
    """Return the lines on environments left out, or why there are none."""
    if content.validation is None:
        reason = content.unvalidated
        return [Fact("New sites", f"not validated by leave-one-environment-out: {reason}")]
    return [Fact(*line.split(": ", 1)) for line in content.validation.lines]


def describe_shape(shape: Shape) -> str:
    """Return the AUC of each shape where rows were left out, and why the larger one may not win."""
    scores = ", ".join(f"{name} {format_score(score)}" for name, score in shape.scores.items())
    text = f"{shape.chosen}, by AUC in held-out {shape.held_out}: {scores}"
    disjunction_auc = shape.scores.get("disjunction") or 0
    conjunction_auc = shape.scores.get("conjunction") or 0
    if shape.chosen == "conjunction" and disjunction_auc > conjunction_auc:
        text += " (the disjunction is not clearly better)"
    return text


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
