"""The learners of conjunctions and disjunctions."""

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from icscm import exceptions
from icscm._changes import reject_removed_options
from icscm._constants import BLIND_DIFFERENCE
from icscm._types import FloatArray
from icscm.estimators.base import BaseRuleClassifier, warn_of_environments
from icscm.exceptions import IcscmError, Parameter, warn
from icscm.formatting import count, shorten_list
from icscm.model.rules import Rule
from icscm.model.splits import CHAINS
from icscm.model.tree import Tree
from icscm.parameters import document_parameters
from icscm.search.design_effects import average_design_effect
from icscm.search.exhaustive import N_CANDIDATES, choose_alpha
from icscm.search.records import STOP_REASONS
from icscm.search.rules import find_model
from icscm.search.settings import Settings
from icscm.search.shape import ShapeChoice, choose_shape
from icscm.search.trace import Trace
from icscm.sources.countable import Countable
from icscm.stats.criteria import find_least_evidence
from icscm.stats.independence import IndependenceTest, make_test
from icscm.stats.verdicts import TOO_LITTLE_DATA, Verdicts, compute_minimum_detectable_difference
from icscm.tables.environments import check_several

if TYPE_CHECKING:
    pass


@document_parameters
@reject_removed_options
@dataclass(eq=False, repr=False, kw_only=True)
class SCMClassifier(BaseRuleClassifier):
    """Set Covering Machine: a short conjunction or disjunction of simple rules (Algorithm 1).

    {parameters}

    Attributes
    ----------
    model_ : Tree
        The fitted conjunction or disjunction; `str(model_)` reads as a rule.
    trace_ : Trace
        What each step of the search tried, chose and rejected.
    shape_ : ShapeChoice
        With `model_type="auto"`, the scores by which conjunction or disjunction was chosen.
    classes_ : array of shape (2,)
        The two labels; the second is the positive one.
    environments_ : tuple or None
        The environments' labels, in the order of all counts; None if none were given.
    n_features_in_ : int
        Number of columns of X.
    feature_names_in_ : array of str
        Their names, where X had names.
    feature_types_ : tuple of str
        Of each column, `"number"`, `"category"` or `"left_out"`.
    levels_ : dict of tuples
        The levels of each category, by column; not for a packed store.
    dropped_columns_ : dict
        Why columns were dropped, by name.

    Examples
    --------
    >>> from icscm import SCMClassifier
    >>> X = [[20, 0], [70, 0], [70, 1], [65, 1]]
    >>> print(SCMClassifier().fit(X, ["well", "well", "ill", "ill"]).model_)
    x1 <= 0
    """

    model_: Tree = field(init=False)
    trace_: Trace = field(init=False)
    shape_: ShapeChoice = field(init=False)

    p: float | str = 1.0
    model_type: str = "conjunction"
    max_rules: int = 10
    max_thresholds: int | None = 50
    n_jobs: int | None = None
    keep_columns: Any = None
    device: str = "cpu"

    def _make_settings(self, countable: Countable[Any]) -> Settings:
        if self.model_type != "auto":
            return self._make_shaped(countable, self.model_type)

        known_shape = vars(self).get("shape_")
        if known_shape is not None:
            return self._make_shaped(countable, known_shape.chosen)
        if countable.source.rows is None:
            auto = Parameter("model_type", "auto")
            raise IcscmError(auto, " holds out rows, which is not possible here; choose a shape")
        return self._make_shaped(countable, "conjunction")

    def _make_shaped(self, countable: Countable[Any], shape: str) -> Settings:
        """The settings of a conjunction or a disjunction."""
        return Settings(
            p=self._compute_cost_ratio(countable, shape),
            model_type=shape,
            max_rules=self.max_rules,
        )

    def _compute_cost_ratio(self, countable: Countable[Any], shape: str) -> float:
        """The number p; "balanced" gives both classes the same total weight.

        A disjunction is learned as a conjunction on the inverted outcome, so that its ratio is the
        inverse.
        """
        if not isinstance(self.p, str):
            return float(self.p)
        n_negative, n_positive = countable.source.count_rows().sum(axis=1).tolist()
        ratio: float = n_negative / n_positive
        return 1.0 / ratio if shape == "disjunction" else ratio

    def _learn(self, countable: Countable[Any]) -> None:
        settings = self._make_settings(countable)
        if self.model_type == "auto":
            chains = {shape: self._make_shaped(countable, shape) for shape in CHAINS}
            self.shape_ = choose_shape(countable, chains)
            settings = chains[self.shape_.chosen]
        self._prepare_learning(countable, settings)
        self.model_, self.trace_ = find_model(countable.source, settings)

    def _prepare_learning(self, countable: Countable[Any], settings: Settings) -> None:
        """A hook that is called before the search."""

    def _warn_of_findings(self) -> None:
        model, trace = self.model_, self.trace_
        if not model.rules:
            why = f"No rule was found because {STOP_REASONS[trace.stop_reason or 'no_candidate']}"
            if (rules := trace.discarded) is not None:
                why = f"The rules found ({rules}) do worse than the majority-class baseline"
            warn(
                f"{why}: the model is: {model}. trace_ lists the rejected candidates.",
                exceptions.NothingFoundWarning,
            )
        if n_contrary := sum(model.count_contrary()):
            warn(
                f"predict and predict_proba disagree for {count(n_contrary, 'training sample')}: "
                "most samples of their leaf are of the other class; see model_.leaves.",
                exceptions.ContraryLeafWarning,
            )

    @property
    def rule_importances_(self) -> FloatArray:
        """Each rule's share of the training samples that rules cover correctly."""
        return self.model_.compute_importances()

    @property
    def equivalent_rules_(self) -> list[tuple[Rule, ...]]:
        """For each rule, the others that would have covered exactly the same samples."""
        equivalent = {step.chosen.rule: step.equivalent for step in self.trace_.steps}
        return [equivalent[rule] for rule in self.rules_]


@document_parameters
@reject_removed_options
@dataclass(eq=False, repr=False, kw_only=True)
class ICSCMClassifier(SCMClassifier):
    """Invariant Causal Set Covering Machine: rules that hold in every environment (Algorithm 2).

    A rule is rejected when, among the samples it would cover, the label depends on the
    environment: the test's p-value is not above `alpha`. Acceptance means *invariant across
    these environments as far as this many samples can show*; it does not prove a cause.

    {parameters}

    Attributes
    ----------
    model_ : Tree
        The fitted conjunction or disjunction; `str(model_)` reads as a rule.
    trace_ : Trace
        What each step of the search tried, chose and rejected.
    shape_ : ShapeChoice
        With `model_type="auto"`, the scores by which conjunction or disjunction was chosen.
    alpha_ : float
        The level used; only where there were environments to test.
    classes_ : array of shape (2,)
        The two labels; the second is the positive one.
    environments_ : tuple or None
        The environments' labels, in the order of all counts; None if none were given.
    n_features_in_ : int
        Number of columns of X.
    feature_names_in_ : array of str
        Their names, where X had names.
    feature_types_ : tuple of str
        Of each column, `"number"`, `"category"` or `"left_out"`.
    levels_ : dict of tuples
        The levels of each category, by column; not for a packed store.
    dropped_columns_ : dict
        Why columns were dropped, by name.

    Examples
    --------
    >>> from icscm import ICSCMClassifier
    >>> from icscm.datasets import make_conjunction
    >>> data = make_conjunction(random_state=1)
    >>> learner = ICSCMClassifier().fit(data.X, data.y, environments=data.environments)
    >>> print(learner.model_)
    A1 > 0 and A2 > 0
    """

    tests_invariance: ClassVar[bool] = True

    alpha_: float = field(init=False)

    alpha: float | str = 0.05
    test: str | IndependenceTest = "chi2"
    stop: str = "independence"
    pruning: bool | str = True
    min_replication: float = 0.15
    min_utility: float | str | None = "auto"
    search: str = "greedy"
    margin: float | None = None

    def _check_together(self) -> None:
        make_test(self.test)

    def _make_shaped(self, countable: Countable[Any], shape: str) -> Settings:
        plain = super()._make_shaped(countable, shape)
        if not countable.has_environments:
            return plain
        check_several(countable.source.environments)

        # rows that are repeated for their weights stand for fewer rows of the table
        clusters = countable.source.clusters
        rows_of_unit = 1.0 if clusters is None else clusters.unit
        min_utility, min_evidence = self._bound_utility(countable, rows_of_unit)
        return replace(
            plain,
            alpha=self._choose_alpha(countable, rows_of_unit),
            test=make_test(self.test),
            stop=self.stop,
            pruning=self.pruning,
            min_replication=self.min_replication,
            min_utility=min_utility,
            min_evidence=min_evidence,
            search=self.search,
            margin=None if self.margin is None else float(self.margin),
        )

    def _choose_alpha(self, countable: Countable[Any], rows_of_unit: float) -> float:
        """The level; "auto" is chosen by the number of rows."""
        if not isinstance(self.alpha, str):
            return float(self.alpha)
        return choose_alpha(int(countable.source.count_rows().sum() / rows_of_unit))

    def _bound_utility(
        self, countable: Countable[Any], rows_of_unit: float
    ) -> tuple[float | None, float]:
        """The least utility of a rule, and the least evidence that it beats chance.

        With "auto" a rule must be better than the best of all candidates would be by chance: two
        rules for each threshold of each column.
        """
        if self.min_utility is None:
            return None, 0.0
        if not isinstance(self.min_utility, str):
            return rows_of_unit * self.min_utility, 0.0
        n_bins = countable.source.columns.count_bins(np.arange(countable.n_features))
        n_candidates = 2 * int((n_bins - 1).sum())
        return 0.0, average_design_effect(countable.source) * find_least_evidence(n_candidates)

    def _prepare_learning(self, countable: Countable[Any], settings: Settings) -> None:
        lost = "nothing can be tested for invariance: this is a plain set covering machine"
        warn_of_environments(countable, lost)
        if countable.has_environments:
            self.alpha_ = settings.alpha

    @property
    def verdicts_(self) -> Verdicts:
        """For each leaf of the model whether it is invariant, is not, or has too little data.

        One for each rule, of the samples that it covers, and one for the uncovered samples. Empty
        without environments.
        """
        return Verdicts(self.trace_.verdicts)

    @property
    def accepted_sets_(self) -> dict[tuple[str | int, ...], float]:
        """The p-value of each set of features that the exhaustive search accepted."""
        return {test.features: test.p_value for test in self.trace_.sets if test.accepted}

    @property
    def p_values_(self) -> dict[str | int, float]:
        """For each screened feature the largest p-value of the sets without it.

        Of the exhaustive search: a feature is in all accepted sets when this is not above alpha
        (and some set was accepted).
        """
        sets = self.trace_.sets
        return {
            each.rule.feature: max(t.p_value for t in sets if each.rule.feature not in t.features)
            for each in self.trace_.screening
        }

    def _may_be_blind(self) -> bool:
        """Whether a leaf may be too small for a verdict; much faster than the verdicts."""
        level = self.trace_.alpha
        if level is None or "verdicts" in vars(self.trace_):
            return level is not None
        found = compute_minimum_detectable_difference(np.array(self.model_.leaves), level)
        return not (found <= BLIND_DIFFERENCE).all()

    def _warn_of_findings(self) -> None:
        """Warn, too, of leaves in which even a large difference would likely be missed."""
        super()._warn_of_findings()
        if self.min_replication and (lone := self.trace_.describe_lone()) is not None:
            warn(lone, exceptions.FewEnvironmentsWarning)
        if self.trace_.untested is not None:
            limits = f"{N_CANDIDATES} candidates and ", Parameter("max_rules"), " set the limits"
            warn((self.trace_.untested, " ", *limits, "."), exceptions.UntestedSetsWarning)
        if not self.rules_ or not self._may_be_blind():
            return
        names = [f"{str(rule)!r}" for rule in self.rules_] + ["the uncovered samples"]
        blind = []
        for name, verdict in zip(names, self.verdicts_, strict=bool(self.verdicts_)):
            detectable = verdict.minimum_detectable_difference
            is_blind = detectable is None or detectable > BLIND_DIFFERENCE
            if verdict.conclusion == TOO_LITTLE_DATA and is_blind:
                blind.append(name)
        if blind:
            warn(
                "Too little data to tell whether the label is invariant in the leaf of "
                f"{shorten_list(blind)}: even a difference of {BLIND_DIFFERENCE:.0%} "
                "between rates would likely not be detected. See verdicts_; a margin rejects such "
                "rules.",
                exceptions.TooLittleDataWarning,
            )
