"""The interface of a fitted learner that reports, files and studies rely on."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

from sklearn.utils.validation import check_is_fitted

from icscm._types import Array
from icscm.exceptions import IcscmError
from icscm.model.leaves import LeafCounts
from icscm.model.rules import Rule


class Learner(Protocol):
    """A fitted learner.

    `model_` is a `Tree` or `Forest`, `trace_` a `search.trace.Trace`. `tests_invariance` is False
    for a learner that does not test its rules. `feature_types_`, `feature_names_in_` and, where
    something was tested, `alpha_` are there where they are known; a learner of conjunctions and
    disjunctions has `rule_importances_` and `equivalent_rules_`, too.
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
    """Raise unless it is a learner of this package: others do not learn from counts."""
    if not hasattr(estimator, "fit_counts"):
        raise IcscmError(
            "estimator must be an ICSCMClassifier, SCMClassifier, InvariantTreeClassifier or "
            f"InvariantForestClassifier; got {type(estimator).__name__}"
        )


def check_fitted(learner: Any) -> None:
    """Raise unless it is a fitted learner of this package."""
    check_learner(learner)
    check_is_fitted(learner, "model_")
