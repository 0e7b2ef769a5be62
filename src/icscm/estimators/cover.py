"""The learners of conjunctions and disjunctions.

A rule *covers* the rows whose prediction it decides; these are its *leaf*. `SCMClassifier` searches
for rules of large utility, `ICSCMClassifier` only among those in whose leaf the outcome does not
depend on the environment. Both translate their parameters into `icscm.search.settings.Settings`.
"""

from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import numpy as np

from icscm import exceptions
from icscm._changes import reject_removed_options
from icscm._constants import BLIND_DIFFERENCE
from icscm._types import FloatArray
from icscm.estimators.base import BaseRuleClassifier, warn_of_environments
from icscm.estimators.fitted import is_set
from icscm.exceptions import IcscmError, Parameter, warn
from icscm.formatting import count, shorten_list
from icscm.model.rules import Rule
from icscm.model.splits import CHAINS
from icscm.model.tree import Tree
from icscm.parameters import document_parameters
from icscm.search.design_effects import measure_chance_effect
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
    device: str = "cpu"

    def _make_settings(self, countable: Countable[Any]) -> Settings:
        """Make the settings of the shape that is given or, with "auto", was chosen by `fit`.

        Before that they are those of a conjunction.
        """
        if self.model_type != "auto":
            return self._make_shaped(countable, self.model_type)
        if is_set(self, "shape_"):
            return self._make_shaped(countable, self.shape_.chosen)
        if countable.source.rows is None:
            raise IcscmError(
                Parameter("model_type", "auto"),
                " holds out rows, which is not possible here; choose a shape",
            )
        return self._make_shaped(countable, "conjunction")

    def _make_shaped(self, countable: Countable[Any], shape: str) -> Settings:
        """Make the settings of the search for a conjunction or a disjunction."""
        return Settings(
            p=self._compute_cost_ratio(countable, shape),
            model_type=shape,
            max_rules=self.max_rules,
        )

    def _compute_cost_ratio(self, countable: Countable[Any], shape: str) -> float:
        """Compute the number p, the cost of a positive row that a rule covers.

        "balanced" gives both classes the same total weight. A disjunction is learned as a
        conjunction on the inverted outcome, so its ratio is the inverse.
        """
        if not isinstance(self.p, str):
            return float(self.p)
        n_negative, n_positive = countable.source.count_rows().sum(axis=1).tolist()
        ratio: float = n_negative / n_positive
        return 1.0 / ratio if shape == "disjunction" else ratio

    def _learn(self, countable: Countable[Any]) -> None:
        settings = self._make_settings(countable)
        if self.model_type == "auto":
            settings_of_shapes = {shape: self._make_shaped(countable, shape) for shape in CHAINS}
            self.shape_ = choose_shape(countable, settings_of_shapes)
            settings = settings_of_shapes[self.shape_.chosen]
        self._prepare_learning(countable, settings)
        self.model_, self.trace_ = find_model(countable.source, settings)

    @property
    def _shape_choice(self) -> ShapeChoice | None:
        return self.shape_ if is_set(self, "shape_") else None

    def _prepare_learning(self, countable: Countable[Any], settings: Settings) -> None:
        """Do what comes before the search; a hook for subclasses."""

    def _warn_of_findings(self) -> None:
        if not self.model_.rules:
            warn(
                f"{self._explain_no_rule()}: the model is: {self.model_}. trace_ lists the "
                "rejected candidates.",
                exceptions.NothingFoundWarning,
            )
        n_contrary = sum(self.model_.count_contrary())
        if n_contrary > 0:
            warn(
                f"predict and predict_proba disagree for {count(n_contrary, 'training sample')}: "
                "most samples of their leaf are of the other class; see model_.leaves.",
                exceptions.ContraryLeafWarning,
            )

    def _explain_no_rule(self) -> str:
        """Say why the model has no rule."""
        if self.trace_.discarded is not None:
            rules = self.trace_.discarded
            return f"The rules found ({rules}) do worse than the majority-class baseline"
        stop_reason = self.trace_.stop_reason or "no_candidate"
        return f"No rule was found because {STOP_REASONS[stop_reason]}"

    @property
    def rule_importances_(self) -> FloatArray:
        """Each rule's share of the training samples that rules cover correctly."""
        return self.model_.compute_importances()

    @property
    def equivalent_rules_(self) -> list[tuple[Rule, ...]]:
        """For each rule, the others that would have covered exactly the same samples."""
        equivalent_by_rule = {step.chosen.rule: step.equivalent for step in self.trace_.steps}
        return [equivalent_by_rule[rule] for rule in self.rules_]


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
        plain_settings = super()._make_shaped(countable, shape)
        if not countable.has_environments:
            return plain_settings
        check_several(countable.source.environments)

        return replace(
            plain_settings,
            alpha=self._choose_alpha(countable),
            test=make_test(self.test),
            stop=self.stop,
            pruning=self.pruning,
            min_replication=self.min_replication,
            min_utility=self._find_min_utility(countable),
            min_evidence=self._find_min_evidence(countable),
            search=self.search,
            margin=None if self.margin is None else float(self.margin),
        )

    def _choose_alpha(self, countable: Countable[Any]) -> float:
        """Return the level of the tests; "auto" is chosen by the number of rows."""
        if not isinstance(self.alpha, str):
            return float(self.alpha)
        n_rows = int(countable.source.count_rows().sum() / count_units(countable))
        return choose_alpha(n_rows)

    def _find_min_utility(self, countable: Countable[Any]) -> float | None:
        """Return the least utility of a rule, in counts; "auto" requires evidence instead."""
        if self.min_utility is None:
            return None
        if isinstance(self.min_utility, str):
            return 0.0
        return count_units(countable) * self.min_utility

    def _find_min_evidence(self, countable: Countable[Any]) -> float:
        """Return the least evidence that a rule is better than chance.

        With "auto" it must be better than the best of all candidates would be by chance: two rules
        for each threshold of each column. Rows that are alike give less evidence.
        """
        if not isinstance(self.min_utility, str):
            return 0.0
        columns = np.arange(countable.n_features)
        n_bins = countable.source.columns.count_bins(columns)
        n_candidates = 2 * int((n_bins - 1).sum())
        return measure_chance_effect(countable.source) * find_least_evidence(n_candidates)

    def _prepare_learning(self, countable: Countable[Any], settings: Settings) -> None:
        warn_of_environments(
            countable, "nothing can be tested for invariance: this is a plain set covering machine"
        )
        if countable.has_environments:
            self.alpha_ = settings.alpha

    @property
    def _test_level(self) -> float | None:
        return self.alpha_ if is_set(self, "alpha_") else None

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
        p_values: dict[str | int, float] = {}
        for screened in self.trace_.screening:
            column = screened.rule.feature
            without_column = [test for test in self.trace_.sets if column not in test.features]
            p_values[column] = max(test.p_value for test in without_column)
        return p_values

    def _warn_of_findings(self) -> None:
        """Warn, too, of leaves in which even a large difference would likely be missed."""
        super()._warn_of_findings()
        if self.min_replication:
            lone_environment = self.trace_.describe_lone()
            if lone_environment is not None:
                warn(lone_environment, exceptions.FewEnvironmentsWarning)

        if self.trace_.untested is not None:
            message = (
                self.trace_.untested,
                f" {N_CANDIDATES} candidates and ",
                Parameter("max_rules"),
                " set the limits.",
            )
            warn(message, exceptions.UntestedSetsWarning)

        undecided = self._find_undecided_leaves()
        if undecided:
            warn(
                "Too little data to tell whether the label is invariant in the leaf of "
                f"{shorten_list(undecided)}: even a difference of {BLIND_DIFFERENCE:.0%} "
                "between rates would likely not be detected. See verdicts_; a margin rejects such "
                "rules.",
                exceptions.TooLittleDataWarning,
            )

    def _find_undecided_leaves(self) -> list[str]:
        """Find the leaves without a verdict in which a large difference would likely be missed."""
        if not self.rules_ or not self._may_miss_differences():
            return []
        names = [f"{str(rule)!r}" for rule in self.rules_]
        names.append("the uncovered samples")

        undecided: list[str] = []
        # without a test there are no verdicts
        for name, verdict in zip(names, self.verdicts_, strict=bool(self.verdicts_)):
            detectable = verdict.minimum_detectable_difference
            is_missed = detectable is None or detectable > BLIND_DIFFERENCE
            if verdict.conclusion == TOO_LITTLE_DATA and is_missed:
                undecided.append(name)
        return undecided

    def _may_miss_differences(self) -> bool:
        """Tell whether a large difference in some leaf may be missed.

        This is much faster than the verdicts, which the trace computes when they are first read.
        """
        if self.trace_.alpha is None:
            return False
        if is_set(self.trace_, "verdicts"):
            return True
        leaves = np.array(self.model_.leaves)
        detectable = compute_minimum_detectable_difference(leaves, self.trace_.alpha)
        return not (detectable <= BLIND_DIFFERENCE).all()


def count_units(countable: Countable[Any]) -> float:
    """Return how many counted rows stand for one row of the table.

    More than one where rows have weights: they are counted as often as their weight says.
    """
    clusters = countable.source.clusters
    return 1.0 if clusters is None else clusters.unit
