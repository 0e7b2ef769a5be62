"""What the learners of rule sets share: all but their parameters and what these mean."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from sklearn.utils.validation import check_is_fitted

from icscm._types import FloatArray
from icscm.estimators.counted import CountedClassifier
from icscm.estimators.findings import warn_of_findings
from icscm.estimators.reporting import ReportedRulesMixin
from icscm.model.rules import Rule
from icscm.model.tree import Tree
from icscm.parameters import POSITIVE_OR_BALANCED, Allowed, check_weights, one_of, whole_number
from icscm.search.rules import find_model
from icscm.search.settings import Settings
from icscm.search.trace import Trace
from icscm.sources.countable import Countable

if TYPE_CHECKING:
    pass


class CoverClassifier(ReportedRulesMixin, CountedClassifier):
    """Learns from counts, predicts by rules; see `SCMClassifier` and `ICSCMClassifier`."""

    _allowed: ClassVar[dict[str, Allowed]] = {
        **CountedClassifier._allowed,
        "p": POSITIVE_OR_BALANCED,
        "model_type": one_of("conjunction", "disjunction"),
        "max_rules": whole_number(1),
    }

    model_: Tree
    trace_: Trace

    def __init__(
        self,
        p: float | str = 1.0,
        model_type: str = "conjunction",
        max_rules: int = 10,
        max_thresholds: int | None = 50,
        feature_weights: Any = None,
        n_jobs: int | None = None,
        missing: str = "candidate",
        keep_columns: Any = None,
        device: str = "cpu",
    ) -> None:
        self.p = p
        self.model_type = model_type
        self.max_rules = max_rules
        self.max_thresholds = max_thresholds
        self.feature_weights = feature_weights
        self.n_jobs = n_jobs
        self.missing = missing
        self.keep_columns = keep_columns
        self.device = device

    def make_settings(self, countable: Countable[Any]) -> Settings:
        """What the search is told besides the counts.

        Parameters
        ----------
        countable : Countable
            The samples to be learned from.

        Returns
        -------
        Settings
            This learner's parameters, made ready for `icscm.search.rules.find_model`.

        Raises
        ------
        IcscmError
            If a parameter has a value that is not allowed, or two do not go together.
        """
        self.prepare()
        plain = Settings(
            p=self._choose_p(countable),
            model_type=self.model_type,
            max_rules=self.max_rules,
            feature_weights=check_weights(
                self.feature_weights, countable.n_features, countable.names
            ),
            missing=self.missing,
        )
        return self._add_tests(plain, countable)

    def _choose_p(self, countable: Countable[Any]) -> float:
        """p as given, or what makes both classes weigh the same."""
        if not isinstance(self.p, str):  # "balanced"
            return float(self.p)
        negative, positive = countable.source.count_totals().sum(axis=1).tolist()
        ratio: float = negative / positive
        return 1.0 / ratio if self.model_type == "disjunction" else ratio

    def _learn(self, countable: Countable[Any]) -> None:
        settings = self.make_settings(countable)
        self._look_at_environments(countable)
        self.model_, self.trace_ = find_model(countable.source, settings)

    def _add_tests(self, plain: Settings, countable: Countable[Any]) -> Settings:  # noqa: ARG002
        """The settings of a search that tests what it chooses."""
        return plain

    def _look_at_environments(self, countable: Countable[Any]) -> None:
        """Raise for, or warn of, environments that a test can make nothing of."""

    def _warn_of_findings(self) -> None:
        """Say aloud what a user should not have to look for."""
        warn_of_findings(self.model_, self.trace_)

    @property
    def rule_importances_(self) -> FloatArray:
        """Each rule's share of the training samples that the rules settle correctly."""
        check_is_fitted(self, "model_")
        return self.model_.compute_importances()

    @property
    def equivalent_rules_(self) -> list[tuple[Rule, ...]]:
        """For each rule, others that would have settled exactly the same samples in its place."""
        check_is_fitted(self, "model_")
        equivalent = {step.chosen.rule: step.equivalent for step in self.trace_.steps}
        return [equivalent[rule] for rule in self.rules_]
