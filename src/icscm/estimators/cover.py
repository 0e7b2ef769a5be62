"""The learners of conjunctions and disjunctions."""

from dataclasses import KW_ONLY, dataclass, field, fields, replace
from math import ceil
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from icscm import exceptions
from icscm._constants import BLIND_DIFFERENCE, DEFAULT_MARGIN
from icscm._types import FloatArray
from icscm.estimators.base import BaseRuleClassifier, warn_of_environments
from icscm.exceptions import IcscmError, Parameter, warn
from icscm.formatting import count, shorten_list
from icscm.model.rules import Rule
from icscm.model.splits import CHAINS
from icscm.model.tree import Tree
from icscm.parameters import check_weights, document_parameters
from icscm.search.columns import average_design
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
from icscm.tables.labels import check_several

if TYPE_CHECKING:
    pass


@document_parameters
@dataclass(eq=False, repr=False)
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
    feature_weights: Any = None
    n_jobs: int | None = None
    _: KW_ONLY
    missing: str = "candidate"
    keep_columns: Any = None
    device: str = "cpu"

    def _make_settings(self, countable: Countable[Any]) -> Settings:
        if self.model_type != "auto":
            return self._make_shaped(countable, self.model_type)
        if (known := vars(self).get("shape_")) is None and countable.source.rows is None:
            auto = Parameter("model_type", "auto")
            raise IcscmError(auto, " holds out rows, which is not possible here; choose a shape")
        return self._make_shaped(countable, "conjunction" if known is None else known.chosen)

    def _make_shaped(self, countable: Countable[Any], shape: str) -> Settings:
        """The settings of a conjunction or a disjunction."""
        p = self.p
        if isinstance(p, str):  # "balanced"
            negative, positive = countable.source.count_rows().sum(axis=1).tolist()
            p = negative / positive
            p = 1.0 / p if shape == "disjunction" else p
        weights = check_weights(self.feature_weights, countable.n_features, countable.names)
        return Settings(
            p=float(p),
            model_type=shape,
            max_rules=self.max_rules,
            feature_weights=weights,
            missing=self.missing,
        )

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
@dataclass(eq=False, repr=False)
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
    min_samples_leaf: int = 1
    min_replication: float = 0.25
    min_utility: float | str | None = "auto"
    search: str = "greedy"
    evidence: str = "step"
    criterion: str = "pvalue"
    margin: float = DEFAULT_MARGIN
    margin_on: str = "rate"
    correction: str | None = None
    conclusion: str = "intersection"

    def _check_together(self) -> None:
        make_test(self.test)
        criterion, correction = self.criterion, Parameter("correction")
        if self.correction is not None and criterion == "equivalence":
            reason = " adjusts p-values, which ", Parameter("criterion", criterion), " does not use"
            raise IcscmError(correction, *reason, "; leave ", Parameter("correction", None))
        is_ratio = self.margin_on == "odds_ratio"
        if is_ratio != (self.margin > 1):
            wanted = "greater than 1, such as 1.5" if is_ratio else "below 1, such as 0.05"
            names = Parameter("margin_on", self.margin_on), " ", Parameter("margin")
            raise IcscmError("with ", *names, f" must be {wanted}; got {self.margin!r}")

    def _make_shaped(self, countable: Countable[Any], shape: str) -> Settings:
        clusters = countable.source.clusters
        unit = 1.0 if clusters is None else clusters.unit
        n_least = self.min_samples_leaf
        n_least = n_least if n_least == 1 else ceil(unit * n_least)
        plain = super()._make_shaped(countable, shape)
        if not countable.has_environments:
            return replace(plain, min_samples_leaf=n_least)
        check_several(countable.source.environments)
        alpha = self.alpha
        if isinstance(alpha, str):  # "auto"
            alpha = choose_alpha(int(countable.source.count_rows().sum() / unit))
        own: dict[str, Any] = {e.name: getattr(self, e.name, None) for e in fields(plain)}
        own |= {"p": plain.p, "feature_weights": plain.feature_weights, "model_type": shape}
        own |= {"alpha": float(alpha), "test": make_test(self.test), "min_evidence": 0.0}
        own |= {"min_samples_leaf": n_least}
        if isinstance(self.min_utility, str):  # "auto"
            n_bins = countable.source.columns.count_bins(np.arange(countable.n_features))
            evidence = find_least_evidence(2 * int((n_bins - 1).sum()))
            own |= {"min_utility": 0.0}
            own["min_evidence"] = average_design(countable.source) * evidence
        elif self.min_utility is not None:
            own["min_utility"] = unit * self.min_utility
        return Settings(**own)

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
        if level is None or self.correction is not None or "verdicts" in vars(self.trace_):
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
                "between rates would likely not be detected. See verdicts_; min_samples_leaf or "
                "criterion='equivalence' reject such rules.",
                exceptions.TooLittleDataWarning,
            )
