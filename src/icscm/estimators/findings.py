"""What a fit says aloud, so that a user does not have to look for it."""

from __future__ import annotations

from icscm.exceptions import ContraryLeafWarning, NothingFoundWarning, warn
from icscm.formatting import count
from icscm.model.tree import Tree
from icscm.search.trace import STOP_REASONS, Trace


def warn_of_findings(model: Tree, trace: Trace) -> None:
    """Warn of a model without rules, and of one whose predictions and probabilities disagree."""
    if not model.rules:
        told = f"No rule was found because {STOP_REASONS[trace.stop_reason or 'no_candidate']}"
        if trace.discarded is not None:
            told = f"The rules found ({trace.discarded}) do worse than always saying the same"
        warn(
            f"{told}: the model is: {model}. See trace_ for what was tried and refused.",
            NothingFoundWarning,
        )
    if n_contrary := sum(model.count_contrary()):
        warn(
            f"predict and predict_proba disagree for {count(n_contrary, 'training sample')}: their "
            "leaf holds more of the class that it does not predict; see model_.leaves.",
            ContraryLeafWarning,
        )
