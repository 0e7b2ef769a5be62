"""What reports, files and studies ask of a learner; whoever fulfils it can be reported on."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

from sklearn.utils.validation import check_is_fitted

from icscm._types import Array
from icscm.exceptions import IcscmError
from icscm.model.leaves import LeafCounts
from icscm.model.rules import Rule


class Learner(Protocol):
    """A fitted learner, as far as those who read it need to know.

    `model_` is a `kinds.Model`. `trace_` is a `search.trace.Trace`, or another record of a search,
    which stands above this floor. `tests_invariance` tells a learner that refuses rules from one
    that does not test them. Only where they are known it has `feature_types_`,
    `feature_names_in_` and, where something was tested, `alpha_`; one of rule sets has
    `rule_importances_` and `equivalent_rules_`, too.
    """

    tests_invariance: bool
    model_: Any
    trace_: Any
    classes_: Array
    n_features_in_: int
    dropped_columns_: Mapping[str | int, str]
    environments_: tuple[Any, ...] | None
    class_counts_: LeafCounts

    @property
    def rules_(self) -> tuple[Rule, ...]: ...

    @property
    def features_used_(self) -> list[str | int]: ...

    def get_params(self, deep: bool = True) -> dict[str, Any]: ...


def check_learner(estimator: Any) -> None:
    """Raise unless it is one of ours: others cannot learn from counts, or have no rules."""
    if not hasattr(estimator, "fit_counts"):
        raise IcscmError(
            "estimator must be an ICSCMClassifier, SCMClassifier, InvariantTreeClassifier or "
            f"InvariantForestClassifier; got {type(estimator).__name__}"
        )


def check_fitted(learner: Any) -> None:
    """Raise unless it is one of ours, and fitted."""
    check_learner(learner)
    check_is_fitted(learner, "model_")
