"""Errors and metrics of a model in a few words, and the rows and threshold they belong to."""

from icscm.formatting import count
from icscm.report.content.errors import ErrorRate, Errors
from icscm.report.content.model import ModelSize
from icscm.report.formatting import format_share


def describe_error(errors: ErrorRate) -> str:
    """Return the error rate and the number of rows: `12.3% of 400 samples`."""
    return f"{format_share(errors.error)} of {count(errors.n, 'sample')}"


def describe_metrics(errors: Errors) -> str:
    """Return AUC, sensitivity, specificity and PPV; out of bag the AUC alone."""
    metrics = [f"AUC {errors.auc:.3f}"] if errors.auc else []
    if not errors.is_out_of_bag:
        metrics += [
            f"sensitivity {format_share(errors.sensitivity)}",
            f"specificity {format_share(errors.specificity)}",
            f"PPV {format_share(errors.ppv)}",
        ]
    return ", ".join(metrics)


def name_measured_rows(errors: Errors) -> str:
    """Return the rows on which errors were measured."""
    if errors.is_out_of_bag:
        return "the samples that trees were not grown on"
    return "the training data"


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
