"""The majority-class baseline, which predicts the more frequent class for every row.

A model is faulty if it has rules and predicts no better than the baseline.
"""

from icscm.formatting import as_text
from icscm.report.content.errors import Errors
from icscm.report.content.model import ModelSize


def name_majority(errors: Errors) -> str:
    """Return the class that the baseline predicts."""
    return "positive" if errors.majority_is_positive else "negative"


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
