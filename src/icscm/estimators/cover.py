"""The learners of rule sets: parameters in, fitted state out."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, ClassVar

from sklearn.utils.validation import check_is_fitted

from icscm._constants import BLIND_DIFFERENCE, DEFAULT_MARGIN
from icscm.estimators.base import CoverClassifier
from icscm.exceptions import (
    IcscmError,
    NoEnvironmentsWarning,
    Parameter,
    TooLittleDataWarning,
    warn,
)
from icscm.formatting import shorten_list
from icscm.parameters import (
    LEVEL_OR_AUTO,
    NUMBER_OR_NONE,
    POSITIVE_NUMBER,
    PRUNING,
    SHARE,
    Allowed,
    one_of,
    whole_number,
)
from icscm.search.exhaustive import choose_alpha
from icscm.search.settings import Settings
from icscm.sources.countable import Countable
from icscm.stats.criteria import METHODS
from icscm.stats.independence import IndependenceTest, make_test
from icscm.stats.verdicts import TOO_LITTLE_DATA, Verdicts
from icscm.tables.labels import check_several, warn_of_sparse


class SCMClassifier(CoverClassifier):
    """Set Covering Machine: a short conjunction or disjunction of simple rules (Algorithm 1).

    Parameters
    ----------
    p : float, default=1.0
        Weight of a positive sample that a rule wrongly settles, against a negative one that it
        settles rightly: the utility of a rule is abs(A) - p abs(B).
    model_type : {"conjunction", "disjunction"}, default="conjunction"
        Whether all rules must hold for the positive class, or any one.
    max_rules : int, default=10
        Number of rules at which the search stops.
    max_thresholds : int or None, default=50
        Thresholds tried per feature; a feature with more values is cut at quantiles. None tries
        every observed value. A category with more levels keeps the most frequent; the others are
        pooled.
    feature_weights : array-like or mapping, optional
        Preference for features, one number each or a mapping by name; the utility of a rule is
        multiplied by its feature's weight (a loss divided). 0 excludes.
    n_jobs : int, optional
        Threads; None for all cores. The result does not depend on it.
    missing : {"candidate", "separate", "error"}, default="candidate"
        What rules make of missing values (NaN, None, null) in a feature that has some.
        `"candidate"`: each rule is tried with them true and with them false, and `x is missing`
        and `x is present` are rules too. `"separate"`: only these two are true for them or
        settle them; all others are false. `"error"`: refuse them.
    keep_columns : "all", str or sequence of str, optional
        Columns of a frame that are the same in every row, different in nearly every one, or
        copies of the label or the environment are left out with a warning; name those to keep
        all the same, or `"all"`.
    device : {"cpu", "cuda", "auto"}, default="cpu"
        Where samples are counted: by the processor, or on a CUDA graphics card (with
        `pip install 'icscm[cuda]'`); `"auto"` takes a card if there is one and the table is large
        enough. The result does not depend on it.

    Attributes
    ----------
    model_ : Conjunction or Disjunction
        The fitted model; `str(model_)` reads as a rule.
    trace_ : Trace
        What each step of the search tried, chose and refused.
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
    left_out_ : dict
        Why columns were left out, by name.

    Examples
    --------
    >>> from icscm import SCMClassifier
    >>> X = [[20, 0], [70, 0], [70, 1], [65, 1]]
    >>> print(SCMClassifier().fit(X, ["well", "well", "ill", "ill"]).model_)
    x1 <= 0
    """


class ICSCMClassifier(CoverClassifier):
    """Invariant Causal Set Covering Machine: rules that hold in every environment (Algorithm 2).

    A rule is refused when, among the samples it would settle, the label depends on the
    environment: the test's p-value is not above `alpha`. Acceptance means *invariant across
    these environments as far as this many samples can tell*, not proof of cause.

    Parameters
    ----------
    p : float, default=1.0
        Weight of a positive sample that a rule wrongly settles, against a negative one that it
        settles rightly: the utility of a rule is abs(A) - p abs(B).
    model_type : {"conjunction", "disjunction"}, default="conjunction"
        Whether all rules must hold for the positive class, or any one.
    max_rules : int, default=10
        Number of rules at which the search stops.
    max_thresholds : int or None, default=50
        Thresholds tried per feature; a feature with more values is cut at quantiles. None tries
        every observed value. A category with more levels keeps the most frequent; the others are
        pooled.
    feature_weights : array-like or mapping, optional
        Preference for features, one number each or a mapping by name; the utility of a rule is
        multiplied by its feature's weight (a loss divided). 0 excludes.
    n_jobs : int, optional
        Threads; None for all cores. The result does not depend on it.
    alpha : float or "auto", default=0.05
        Level of the tests. Larger refuses more rules and stops later. `"auto"` is
        min(0.05, 200 / samples).
    test : {"chi2", "g", "fisher"} or IndependenceTest, default="chi2"
        Pearson's (with Yates' correction for one degree of freedom), the likelihood ratio,
        Fisher's exact test, or an object with `compute_p_values(tables)`.
    stop : {"independence", "coverage"}, default="independence"
        `"independence"` ends the search when the samples that remain no longer depend on the
        environment (criterion (ii)); `"coverage"` goes on as the plain learner does.
    pruning : bool, "shown" or "always", default=True
        Remove features without which label and environment are still independent given the other
        rules (Proposition 3.2), where the proposition may be applied: the search ended because
        what remains is independent of the environment and every leaf passed, and the leaves that
        are left pass too. `"shown"`: only where these are shown to lie inside `margin`.
        `"always"`: whatever the search ended by, as the paper's code would.
    min_samples_leaf : int, default=1
        Least number of samples that a rule must settle, and leave.
    min_replication : float, default=0.25
        In how many environments the samples that a rule settles must lie. Of the effective number
        of environments, (sum n)^2 / (sum n^2), less 1, they must have at least this share of what
        the samples in play have: what lies in a single environment passes every test because
        there is nothing to compare. 0, the paper's, asks for nothing.
    min_utility : float or None, default=0.0
        Least utility of a rule; a rule of negative utility makes the model worse. None, the
        paper's, sets no bound.
    search : {"greedy", "exhaustive"}, default="greedy"
        The paper's search, or all subsets of a few screened rules: the model is what the accepted
        ones share. The latter needs about ten times fewer samples and reports a non-parent in
        at most alpha of the runs. `test`, `stop` and `pruning` are the greedy
        search's; sets are tested with G. It tries no subset of more than `max_rules` rules, and
        takes the candidates of largest association times feature weight.
    evidence : {"step", "cumulative"}, default="step"
        As in the paper, or `"cumulative"`: a rule once refused by the greedy search is not tried
        again.
    n_candidates : int, default=8
        Rules that the exhaustive search combines, at most 16; its work doubles with each.
    screen : {"association", "invariance"}, default="association"
        Which rule of each feature the exhaustive search considers: the one most associated with
        the label, or of those that pass criterion (i).
    criterion : {"pvalue", "equivalence"}, default="pvalue"
        What the greedy search takes for invariant. `"pvalue"`, the paper's: the test does not
        reject. `"equivalence"`: shown to be, that is, the 1 - 2 alpha intervals of the
        differences between all environments lie inside `margin`. It refuses leaves with too
        little data, and accepts differences that are real but small.
    margin : float, default=0.05
        The difference that still counts as none, for `criterion="equivalence"` and for the
        verdicts.
    margin_on : {"rate", "odds_ratio"}, default="rate"
        What the margin is measured on: a difference of the label's rates, or a factor above 1
        such as 1.5. Where the label is rare or nearly certain all rates lie close together, and
        only the odds ratio tells them apart.
    correction : {"bonferroni", "holm", "bh"}, optional
        Adjusts the p-values of criterion (i) for the number of candidates of a step of the greedy
        search. Fewer are refused.
    missing : {"candidate", "separate", "error"}, default="candidate"
        What rules make of missing values (NaN, None, null) in a feature that has some.
        `"candidate"`: each rule is tried with them true and with them false, and `x is missing`
        and `x is present` are rules too. `"separate"`: only these two are true for them or
        settle them; all others are false. `"error"`: refuse them.
    keep_columns : "all", str or sequence of str, optional
        Columns of a frame that are the same in every row, different in nearly every one, or
        copies of the label or the environment are left out with a warning; name those to keep
        all the same, or `"all"`.
    device : {"cpu", "cuda", "auto"}, default="cpu"
        Where samples are counted: by the processor, or on a CUDA graphics card (with
        `pip install 'icscm[cuda]'`); `"auto"` takes a card if there is one and the table is large
        enough. The result does not depend on it.

    Attributes
    ----------
    model_ : Conjunction or Disjunction
        The fitted model; `str(model_)` reads as a rule.
    trace_ : Trace
        What each step of the search tried, chose and refused.
    environments_ : tuple or None
        The environments' labels, in the order of all counts; None if none were given.
    alpha_ : float
        The level used; only where there were environments to test.
    classes_ : array of shape (2,)
        The two labels; the second is the positive one.
    n_features_in_ : int
        Number of columns of X.
    feature_names_in_ : array of str
        Their names, where X had names.
    feature_types_ : tuple of str
        Of each column, `"number"`, `"category"` or `"left_out"`.
    levels_ : dict of tuples
        The levels of each category, by column; not for a packed store.
    left_out_ : dict
        Why columns were left out, by name.

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

    alpha_: float

    _allowed: ClassVar[dict[str, Allowed]] = CoverClassifier._allowed | {
        "alpha": LEVEL_OR_AUTO,
        "stop": one_of("independence", "coverage"),
        "pruning": PRUNING,
        "min_samples_leaf": whole_number(1),
        "min_replication": SHARE,
        "min_utility": NUMBER_OR_NONE,
        "search": one_of("greedy", "exhaustive"),
        "evidence": one_of("step", "cumulative"),
        "n_candidates": whole_number(1, most=16),
        "screen": one_of("association", "invariance"),
        "criterion": one_of("pvalue", "equivalence"),
        "margin": POSITIVE_NUMBER,
        "margin_on": one_of("rate", "odds_ratio"),
        "correction": one_of(*METHODS),
    }

    def __init__(
        self,
        p: float | str = 1.0,
        model_type: str = "conjunction",
        max_rules: int = 10,
        max_thresholds: int | None = 50,
        feature_weights: Any = None,
        n_jobs: int | None = None,
        alpha: float | str = 0.05,
        test: str | IndependenceTest = "chi2",
        stop: str = "independence",
        pruning: bool | str = True,
        min_samples_leaf: int = 1,
        min_replication: float = 0.25,
        min_utility: float | None = 0.0,
        search: str = "greedy",
        evidence: str = "step",
        n_candidates: int = 8,
        screen: str = "association",
        criterion: str = "pvalue",
        margin: float = DEFAULT_MARGIN,
        margin_on: str = "rate",
        correction: str | None = None,
        missing: str = "candidate",
        keep_columns: Any = None,
        device: str = "cpu",
    ) -> None:
        shared = p, model_type, max_rules, max_thresholds, feature_weights, n_jobs
        super().__init__(*shared, missing, keep_columns, device)
        self.alpha = alpha
        self.test = test
        self.stop = stop
        self.pruning = pruning
        self.min_samples_leaf = min_samples_leaf
        self.min_replication = min_replication
        self.min_utility = min_utility
        self.search = search
        self.evidence = evidence
        self.n_candidates = n_candidates
        self.screen = screen
        self.criterion = criterion
        self.margin = margin
        self.margin_on = margin_on
        self.correction = correction

    def _check_together(self) -> None:
        make_test(self.test)
        if self.correction is not None and self.criterion == "equivalence":
            raise IcscmError(
                Parameter("correction"),
                " adjusts p-values, which ",
                Parameter("criterion", self.criterion),
                " does not use; leave ",
                Parameter("correction", None),
            )
        is_ratio = self.margin_on == "odds_ratio"
        if is_ratio != (self.margin > 1):
            wanted = "greater than 1, such as 1.5" if is_ratio else "below 1, such as 0.05"
            raise IcscmError(
                "with ",
                Parameter("margin_on", self.margin_on),
                " ",
                Parameter("margin"),
                f" must be {wanted}; got {self.margin!r}",
            )

    def _add_tests(self, plain: Settings, countable: Countable[Any]) -> Settings:
        plain = replace(plain, min_samples_leaf=self.min_samples_leaf)
        if not countable.has_environments:
            return plain
        check_several(countable.source.environments)
        return replace(
            plain,
            alpha=self._choose_alpha(countable),
            test=make_test(self.test),
            stop=self.stop,
            pruning=self.pruning,
            min_replication=self.min_replication,
            min_utility=self.min_utility,
            search=self.search,
            evidence=self.evidence,
            n_candidates=self.n_candidates,
            screen=self.screen,
            criterion=self.criterion,
            margin=self.margin,
            margin_on=self.margin_on,
            correction=self.correction,
        )

    def _choose_alpha(self, countable: Countable[Any]) -> float:
        if isinstance(self.alpha, str):  # "auto"
            return choose_alpha(int(countable.source.count_totals().sum()))
        return float(self.alpha)

    def _look_at_environments(self, countable: Countable[Any]) -> None:
        if not countable.has_environments:
            warn(
                "No environments were given, so nothing can be tested for invariance: "
                "this is a plain set covering machine. Pass fit(X, y, environments=...).",
                NoEnvironmentsWarning,
            )
            return
        source = countable.source
        warn_of_sparse(source.count_totals(), source.environments, source.classes)
        self.alpha_ = self._choose_alpha(countable)

    def _warn_of_findings(self) -> None:
        super()._warn_of_findings()
        self._warn_of_little_data()

    @property
    def verdicts_(self) -> Verdicts:
        """For each leaf of the model whether it is invariant, is not, or cannot be told.

        One for each rule, of the samples that it settles, and one for the samples that no rule
        settles. Empty without environments.
        """
        check_is_fitted(self, "model_")
        return Verdicts(self.trace_.verdicts)

    @property
    def accepted_sets_(self) -> dict[tuple[str | int, ...], float]:
        """The p-value of each set of features that the exhaustive search accepted."""
        check_is_fitted(self, "model_")
        return {test.features: test.p_value for test in self.trace_.sets if test.accepted}

    @property
    def p_values_(self) -> dict[str | int, float]:
        """For each screened feature the largest p-value of the sets that leave it out.

        Of the exhaustive search: a feature is reported when this is not above alpha (and some
        set was accepted).
        """
        check_is_fitted(self, "model_")
        sets = self.trace_.sets
        return {
            each.rule.feature: max(t.p_value for t in sets if each.rule.feature not in t.features)
            for each in self.trace_.screening
        }

    def _warn_of_little_data(self) -> None:
        """Name the rules of which even a large difference between environments would be missed."""
        names = [f"{str(rule)!r}" for rule in self.rules_] + ["what no rule settles"]
        blind = [
            name
            for name, verdict in zip(names, self.verdicts_, strict=bool(self.verdicts_))
            if verdict.conclusion == TOO_LITTLE_DATA
            and (verdict.detectable is None or verdict.detectable > BLIND_DIFFERENCE)
        ]
        if self.rules_ and blind:
            warn(
                "Too little data to tell whether the label is invariant in the leaf of "
                f"{shorten_list(blind)}: even rates {BLIND_DIFFERENCE:.0%} apart "
                "between environments would likely go unseen. See verdicts_; min_samples_leaf or "
                "criterion='equivalence' keep such rules out.",
                TooLittleDataWarning,
            )
