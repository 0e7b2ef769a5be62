"""Section `stability`: how often features, rules and models recur on subsamples."""

from __future__ import annotations

from typing import Any, Protocol

from icscm.exceptions import IcscmError
from icscm.formatting import count
from icscm.model.saved import Learner
from icscm.report.formatting import Plain


class Resampled(Protocol):
    """Models of random subsamples, as `icscm.stability_selection` returns them."""

    @property
    def model(self) -> Any:
        """The model of all samples."""
        ...

    def describe(self) -> Plain:
        """Frequencies of features, rules and models in plain values."""
        ...


def describe_stability(learner: Learner, stability: Resampled) -> Plain:
    """The frequencies, checked to be those of the learner's own model."""
    if stability.model != learner.model_:
        raise IcscmError(
            "stability was computed with other settings or data than fit: from these another "
            "model is learned; give stability_selection what the estimator was fitted on"
        )
    found = stability.describe()
    n, own = found["n_resamples"], round(found["model_frequency"] * found["n_resamples"])
    same = round(found["columns_frequency"] * n)
    text = (
        f"Of {count(n, 'random subsample')} with half of the samples, {own:,} gave this model and "
        f"{same:,} one with the same columns."
    )
    return {**found, "text": text}
