"""The facts of a model that say nothing of how it was found: a saved model has these only.

They are apart from those of a learner, so that `icscm show` does without the records of a search.
"""

from collections.abc import Sequence

from icscm.report.content.errors import Errors
from icscm.report.content.leaves import Leaf
from icscm.report.content.model import ModelSize
from icscm.report.formatting import count_conclusions, format_conclusions, format_share
from icscm.report.wording.baseline import describe_fault, is_faulty, name_majority
from icscm.report.wording.errors import (
    describe_error,
    describe_error_threshold,
    describe_metrics,
)
from icscm.report.wording.facts import Fact
from icscm.report.wording.model import judge_discarded


def list_model_facts(
    model: ModelSize, errors: Errors, leaves: Sequence[Leaf], *, name: str
) -> list[Fact]:
    """Return a warning if there is cause, the model, its errors and the verdicts on its leaves."""
    return [
        *list_warnings(model, errors),
        Fact(model.noun.capitalize(), summarize_model(model, name)),
        describe_error_fact(model, errors),
        *list_leaf_facts(model, leaves),
    ]


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


def list_leaf_facts(model: ModelSize, leaves: Sequence[Leaf]) -> list[Fact]:
    """Return the number of leaves by conclusion, where they were tested."""
    is_tested = bool(leaves) and leaves[0].conclusion is not None
    if not is_tested or not model.n_rules:
        return []
    return [Fact("Leaves", count_verdicts(leaves))]


def count_verdicts(leaves: Sequence[Leaf]) -> str:
    """Return the number of leaves by conclusion."""
    return format_conclusions(count_conclusions(leaf.conclusion for leaf in leaves))
