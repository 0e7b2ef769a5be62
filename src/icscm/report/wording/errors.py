"""Errors and metrics of a model in a few words."""

from icscm.formatting import count
from icscm.report.content.errors import ErrorRate, Errors
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
