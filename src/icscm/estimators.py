"""The learners as scikit-learn estimators: parameters, validation, fitted state."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Sequence
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted

from icscm._constants import BLIND_DIFFERENCE, DEFAULT_MARGIN
from icscm.columns import CodedTable
from icscm.engine.counts import CountSource
from icscm.engine.memory import MemorySource, make_memory_source
from icscm.environments import check_several, encode_environments, warn_of_sparse
from icscm.exceptions import (
    IcscmError,
    LeftOutWarning,
    NoEnvironmentsWarning,
    NothingFoundWarning,
    TooLittleDataWarning,
)
from icscm.exhaustive import choose_alpha, learn_exhaustively
from icscm.intake import (
    leave_out_suspicious,
    read_rows,
    read_table,
    refuse_missing,
    refuse_missing_values,
)
from icscm.models import RuleSet
from icscm.rules import Rule
from icscm.search import Settings, learn
from icscm.stats.corrections import METHODS
from icscm.stats.independence import IndependenceTest, make_test
from icscm.stats.verdicts import TOO_LITTLE_DATA, Verdict
from icscm.table import is_dask
from icscm.text import shorten_list
from icscm.trace import STOP_REASONS, Trace
from icscm.validation import (
    BOOLEAN,
    LEVEL_OR_AUTO,
    N_JOBS,
    NAMES_OR_ALL,
    POSITIVE_NUMBER,
    Allowed,
    check_labels,
    check_parameters,
    check_weights,
    find_counted_rows,
    one_of,
    whole_number,
    whole_or_nothing,
)

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from icscm.report.render import Report

Array = NDArray[Any]

# Stands for "everything" in counts by environment when no environments were given.
ALL_SAMPLES = "all"


class _CoverClassifier(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """What the two learners share: all but their parameters and what these mean."""

    _allowed: ClassVar[dict[str, Allowed]] = {
        "p": POSITIVE_NUMBER,
        "model_type": one_of("conjunction", "disjunction"),
        "max_rules": whole_number(1),
        "max_thresholds": whole_number(1, or_none=True),
        "n_jobs": N_JOBS,
        "missing": one_of("candidate", "separate", "error"),
        "keep_columns": NAMES_OR_ALL,
    }

    p: float
    model_type: str
    max_rules: int
    max_thresholds: int | None
    feature_weights: Any
    n_jobs: int | None
    missing: str
    keep_columns: Any

    model_: RuleSet
    trace_: Trace
    classes_: Array
    n_features_in_: int
    feature_types_: tuple[str, ...]
    left_out_: dict[str | int, str]

    def predict(self, X: Any) -> Any:
        """The class of each row of X: the rule set's own verdict.

        Only the model is used; environments are never needed to predict. Columns of a frame go by
        their names, in any order, and only those that the model uses are needed. Of a Dask
        collection it is a Dask array, computed when asked for.
        """
        if is_dask(X):
            return self._predict_lazily(self.predict, X, self.classes_[:0])
        rows = self._read_rows(X)
        verdict = self.model_.predict(rows)
        predicted: Array = self.classes_[verdict.astype(np.intp)]
        return predicted

    def predict_proba(self, X: Any) -> Any:
        """Probability of each class, from the training samples in the row's leaf.

        (count + 1) / (samples + 2), so never 0 or 1. It can lean the other way than `predict`
        where a leaf holds more samples of the other class than of the one it stands for.
        """
        if is_dask(X):
            return self._predict_lazily(self.predict_proba, X, np.empty((0, 2)))
        rows = self._read_rows(X)
        positive = self.model_.predict_proba(rows)
        return np.column_stack((1.0 - positive, positive))

    def _predict_lazily(self, method: Callable[[Any], Array], X: Any, like: Array) -> Any:
        """A Dask array: of Dask collections nothing is computed yet."""
        from icscm.cluster import predict_lazily

        return predict_lazily(method, X, like)

    def _read_rows(self, X: Any) -> Any:
        check_is_fitted(self, "model_")
        rows = read_rows(self, X, self.features_used_)
        if self.missing == "error":
            refuse_missing_values(rows, self.rules_)
        return rows

    @property
    def rules_(self) -> tuple[Rule, ...]:
        """The model's rules, in the order in which they were chosen."""
        check_is_fitted(self, "model_")
        return self.model_.rules

    @property
    def features_used_(self) -> list[str | int]:
        """The features in the model: names where X had names, positions otherwise."""
        return list(dict.fromkeys(rule.feature for rule in self.rules_))

    @property
    def rule_importances_(self) -> NDArray[np.float64]:
        """Each rule's share of the training samples that the rules settle correctly."""
        check_is_fitted(self, "model_")
        return self.model_.compute_importances()

    @property
    def equivalent_rules_(self) -> list[tuple[Rule, ...]]:
        """For each rule, others that would have settled exactly the same samples in its place."""
        check_is_fitted(self, "model_")
        equivalent = {step.chosen.rule: step.equivalent for step in self.trace_.steps}
        return [equivalent[rule] for rule in self.rules_]

    def save(self, path: str | PathLike[str], *, force: bool = False) -> None:
        """Write the model as a JSON file that `icscm.load` reads; over another with `force`."""
        from icscm.saved import make_saved_model

        make_saved_model(self).save(path, force=force)

    def report(
        self,
        X: Any = None,
        y: Any = None,
        environments: Any = None,
        *,
        data_name: str | None = None,
        alphas: Iterable[float] | None = (),
    ) -> Report:
        """A report to read, save (`.html`, `.md`, `.json`) or show in a notebook.

        With the data it was fitted on, and environments, it also shows how the model depends on
        alpha, at one more search for each level: some 20 unless `alphas` names others. None turns
        this off.
        """
        from icscm.report.render import make_report
        from icscm.sensitivity import DEFAULT_ALPHAS, compute_alpha_path

        check_is_fitted(self, "model_")
        path = None
        if X is not None and environments is not None and isinstance(self, ICSCMClassifier):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", LeftOutWarning)  # `fit` has said it
                source = clone(self)._make_source(X, y, environments)
            levels = DEFAULT_ALPHAS if alphas is not None and not tuple(alphas) else alphas
            path = compute_alpha_path(self, source, levels)
            if path is not None and path.find_own_model() != self.model_:
                raise IcscmError(
                    "report was given other data than fit: from these another model is learned; "
                    "give what the estimator was fitted on, or nothing"
                )
        return make_report(self, data_name=data_name, left_out=self.left_out_, alpha_path=path)

    def plot(self) -> Figure:
        """The tree of the rules and the label's rate in each leaf, by environment."""
        from icscm.report.figures import draw_model

        check_is_fitted(self, "model_")
        return draw_model(self)

    def _choose_maker(self, X: Any) -> Callable[..., CountSource]:
        """What makes the samples countable: in memory, or where a Dask collection lies."""
        return self._make_dask_source if is_dask(X) else self._make_source

    def _make_dask_source(
        self, X: Any, y: Any, environments: Any, sample_weight: Any = None
    ) -> CountSource:
        """Check parameters and data, and make the samples countable where they lie."""
        from icscm.cluster import make_dask_source

        check_parameters(self, self._allowed)
        return make_dask_source(self, X, y, environments, sample_weight)

    def _make_source(
        self, X: Any, y: Any, environments: Any, sample_weight: Any = None
    ) -> MemorySource:
        """Check parameters and data, and make the samples countable in memory."""
        check_parameters(self, self._allowed)
        if is_dask(X):
            raise IcscmError(
                "X is a Dask collection, which only fit and predict take; bring it into memory "
                "with X.compute() if it fits"
            )
        intake = read_table(self, X)
        rows = find_counted_rows(sample_weight, intake.n_rows)
        labels, self.classes_ = check_labels(y, intake.n_rows, rows)
        numbers, environment_labels = np.zeros(len(labels), dtype=np.int64), (ALL_SAMPLES,)
        if environments is not None:
            numbers, environment_labels = encode_environments(environments, intake.n_rows, rows)
        table = intake.code(self.max_thresholds, rows)
        if self.missing == "error":
            refuse_missing(table)
        table = leave_out_suspicious(intake, table, labels, numbers, rows, self.keep_columns)
        self._keep_table(table)
        return make_memory_source(
            table,
            labels,
            numbers,
            classes=self.classes_.tolist(),
            environment_labels=environment_labels,
            max_thresholds=self.max_thresholds,
            n_jobs=self.n_jobs,
        )

    @whole_or_nothing
    def fit_dataset(
        self,
        data: Any,
        target: str,
        environments: str | None = None,
        *,
        columns: Sequence[str] | None = None,
        positive: Any = None,
        max_memory: int | str = "2GiB",
        temp_dir: str | Path | None = None,
    ) -> Self:
        """Learn from files that need not fit in memory; the result is that of `fit`.

        `data` is the path of a Parquet or CSV file, or of a folder of such files, or a
        `pyarrow.dataset.Dataset`; `target` and `environments` name columns of it. `columns` are
        those to make rules of, by default all others, and `positive` the label to be predicted, by
        default the second in order. `max_memory` bounds the memory of the whole process; a byte
        for each cell is written to a temporary file in `temp_dir`, which is gone afterwards.
        (The scanner of a `Dataset` that you made yourself may hold several row groups.)
        """
        from icscm.dataset import make_request, open_countable  # pyarrow is slow to import

        check_parameters(self, self._allowed)
        request = make_request(
            self,
            target=target,
            environments=environments,
            columns=columns,
            positive=positive,
            max_memory=max_memory,
            temp_dir=temp_dir,
        )
        with open_countable(data, request) as files:
            self.classes_ = files.classes
            self.feature_names_in_ = np.array(files.names, dtype=object)
            self.n_features_in_ = len(files.names)
            self._keep_table(files.table)
            return self._learn_from(files.source, has_environments=environments is not None)

    def _keep_table(self, table: CodedTable) -> None:
        """Keep what became of the columns."""
        self.feature_types_ = table.list_types()
        self.left_out_ = {
            j if table.names is None else table.names[j]: why for j, why in table.left_out.items()
        }

    def _learn_from(self, source: CountSource, *, has_environments: bool) -> Self:
        """Learn from samples made countable: all of `fit` but the checks of the data."""
        raise NotImplementedError

    def _learn(
        self,
        source: CountSource,
        search: Callable[[CountSource, Settings], tuple[RuleSet, Trace]] = learn,
        **settings: Any,
    ) -> Self:
        """Search the source and keep what was found."""
        weights = check_weights(self.feature_weights, self.n_features_in_, self._get_names())
        self.model_, self.trace_ = search(
            source,
            Settings(
                p=self.p,
                model_type=self.model_type,
                max_rules=self.max_rules,
                feature_weights=weights,
                missing=self.missing,
                **settings,
            ),
        )
        if not self.model_.rules:
            warnings.warn(
                f"No rule was found because {STOP_REASONS[self.trace_.stop_reason]}: the model is "
                f"{self.model_}. See trace_ for what was tried and refused.",
                NothingFoundWarning,
                stacklevel=5,
            )
        return self

    def _get_names(self) -> tuple[str, ...] | None:
        names = getattr(self, "feature_names_in_", None)
        return None if names is None else tuple(names.tolist())

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        tags.input_tags.allow_nan = self.missing != "error"
        tags.input_tags.categorical = True
        tags.input_tags.string = True
        tags.input_tags.sparse = True  # of zeros and ones
        return tags


class SCMClassifier(_CoverClassifier):
    """Set Covering Machine: a short conjunction or disjunction of threshold rules (Algorithm 1).

    Parameters
    ----------
    p : weight of a positive sample that a rule wrongly settles, against a negative one that it
        settles rightly: the utility of a rule is |A| - p |B|.
    model_type : `"conjunction"` or `"disjunction"`.
    max_rules : number of rules at which the search stops.
    max_thresholds : thresholds tried per feature; a feature with more values is cut at
        quantiles. None tries every observed value. A category with more levels keeps the most
        frequent; the others are pooled.
    feature_weights : preference for features, one number each or a mapping by name; the
        utility of a rule is multiplied by its feature's weight (a loss divided). 0 excludes.
    n_jobs : threads; None for all cores. The result does not depend on it.
    missing : what rules make of missing values (NaN, None, null) in a feature that has some.
        `"candidate"`: each rule is tried with them true and with them false, and `x is missing`
        and `x is present` are rules too. `"separate"`: only these two are true for them or
        settle them; all others are false. `"error"`: refuse them.
    keep_columns : columns of a frame that are the same in every row, different in nearly every
        one, or copies of the label or the environment are left out with a warning; name those to
        keep all the same, or `"all"`.

    Attributes
    ----------
    model_ : the fitted `Conjunction` or `Disjunction`; `str(model_)` reads as a rule.
    trace_ : what each step of the search tried, chose and refused.
    rules_, features_used_, rule_importances_, equivalent_rules_ : see the properties.
    feature_types_ : of each column, `"number"`, `"category"` or `"left_out"`.
    left_out_ : why columns were left out, by name.
    classes_ : the two labels; the second is the positive one.

    Examples
    --------
    >>> from icscm import SCMClassifier
    >>> X = [[20, 0], [70, 0], [70, 1], [65, 1]]
    >>> print(SCMClassifier().fit(X, ["well", "well", "ill", "ill"]).model_)
    x1 <= 0
    """

    def __init__(
        self,
        p: float = 1.0,
        model_type: str = "conjunction",
        max_rules: int = 10,
        max_thresholds: int | None = 50,
        feature_weights: Any = None,
        n_jobs: int | None = None,
        missing: str = "candidate",
        keep_columns: Any = None,
    ) -> None:
        self.p = p
        self.model_type = model_type
        self.max_rules = max_rules
        self.max_thresholds = max_thresholds
        self.feature_weights = feature_weights
        self.n_jobs = n_jobs
        self.missing = missing
        self.keep_columns = keep_columns

    @whole_or_nothing
    def fit(self, X: Any, y: Any, environments: Any = None, sample_weight: Any = None) -> Self:
        """Learn from X (rows x features) and y (two classes).

        `environments`, if given, only break down the counts in the trace: this learner does not
        test them. `sample_weight` says how many samples each row stands for: whole numbers, which
        act exactly as repeated rows. (Memory is that of the repeated rows, too.)
        """
        source = self._choose_maker(X)(X, y, environments, sample_weight)
        return self._learn_from(source, has_environments=environments is not None)

    def _learn_from(
        self,
        source: CountSource,
        *,
        has_environments: bool,  # noqa: ARG002 (nothing is tested here)
    ) -> Self:
        return self._learn(source)


class ICSCMClassifier(_CoverClassifier):
    """Invariant Causal Set Covering Machine: rules that hold in every environment (Algorithm 2).

    A rule is refused when, among the samples it would settle, the label depends on the
    environment: the test's p-value is not above `alpha`. Acceptance means *invariant across
    these environments as far as this many samples can tell*, not proof of cause.

    Parameters
    ----------
    p, model_type, max_rules, max_thresholds, feature_weights, n_jobs, missing, keep_columns : as
        in `SCMClassifier`.
    alpha : level of the tests. Larger refuses more rules and stops later. `"auto"` is
        min(0.05, 200 / samples).
    test : `"chi2"` (Pearson, with Yates' correction for one degree of freedom), `"g"`,
        `"fisher"`, or an object with `compute_p_values(tables)`, see
        `icscm.stats.independence.IndependenceTest`.
    stop : `"independence"` ends the search when the samples that remain no longer depend on the
        environment (criterion (ii)); `"coverage"` goes on as the plain learner does.
    pruning : remove features without which label and environment are still independent given
        the other rules (Proposition 3.2).
    min_samples_leaf : least number of samples that a rule must settle, and leave.
    search : `"greedy"`, the paper's search, or `"exhaustive"`: all subsets of a few screened rules
        are tested, and the model is what the accepted ones share. Needs about ten times fewer
        samples and reports a non-parent in at most alpha of the runs; `docs/theory.md`. `test`,
        `stop` and `pruning` are the greedy search's; sets are tested with G.
    evidence : `"step"`, as in the paper, or `"cumulative"`: a rule once refused by the greedy
        search is not tried again.
    n_candidates : rules that the exhaustive search combines, at most 16; its work doubles with
        each.
    screen : which rule of each feature the exhaustive search considers: the one most associated
        with the label (`"association"`), or of those that pass criterion (i) (`"invariance"`).
    criterion : what the greedy search takes for invariant. `"pvalue"`, the paper's: the test does
        not reject. `"equivalence"`: shown to be, that is, the 1 - 2 alpha intervals of the
        differences between all environments lie inside +-`margin`. It refuses
        leaves with too little data, and accepts differences that are real but small.
    margin : the difference that still counts as none, for `criterion="equivalence"` and for the
        verdicts.
    margin_on : what the margin is measured on: `"rate"`, a difference of the label's rates, or
        `"odds_ratio"`, a factor above 1 such as 1.5. Where the label is rare or nearly certain all
        rates lie close together, and only the odds ratio tells them apart.
    correction : None, `"bonferroni"`, `"holm"` or `"bh"`: adjusts the p-values of criterion (i)
        for the number of candidates of a step of the greedy search. Fewer are refused.

    Attributes
    ----------
    environments_ : the environments' labels, in the order of all counts; None if not given.
    alpha_ : the level used.
    verdicts_ : what is known about the invariance of each leaf of the model.
    model_, trace_, rules_, features_used_, rule_importances_, equivalent_rules_, classes_ :
        as in `SCMClassifier`.

    Examples
    --------
    >>> from icscm import ICSCMClassifier
    >>> from icscm.datasets import make_conjunction
    >>> data = make_conjunction(random_state=1)
    >>> learner = ICSCMClassifier().fit(data.X, data.y, environments=data.environments)
    >>> print(learner.model_)
    A1 > 0 and A2 > 0
    """

    _allowed: ClassVar[dict[str, Allowed]] = _CoverClassifier._allowed | {
        "alpha": LEVEL_OR_AUTO,
        "stop": one_of("independence", "coverage"),
        "pruning": BOOLEAN,
        "min_samples_leaf": whole_number(1),
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
        p: float = 1.0,
        model_type: str = "conjunction",
        max_rules: int = 10,
        max_thresholds: int | None = 50,
        feature_weights: Any = None,
        n_jobs: int | None = None,
        alpha: float | str = 0.05,
        test: str | IndependenceTest = "chi2",
        stop: str = "independence",
        pruning: bool = True,
        min_samples_leaf: int = 1,
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
    ) -> None:
        self.p = p
        self.model_type = model_type
        self.max_rules = max_rules
        self.max_thresholds = max_thresholds
        self.feature_weights = feature_weights
        self.n_jobs = n_jobs
        self.alpha = alpha
        self.test = test
        self.stop = stop
        self.pruning = pruning
        self.min_samples_leaf = min_samples_leaf
        self.search = search
        self.evidence = evidence
        self.n_candidates = n_candidates
        self.screen = screen
        self.criterion = criterion
        self.margin = margin
        self.margin_on = margin_on
        self.correction = correction
        self.missing = missing
        self.keep_columns = keep_columns

    @whole_or_nothing
    def fit(self, X: Any, y: Any, environments: Any = None, sample_weight: Any = None) -> Self:
        """Learn from X (rows x features), y (two classes) and each row's environment.

        `environments` holds one hashable label per row, of at least two distinct ones. Without
        it nothing can be tested: `fit` warns and learns the plain set covering machine.
        `sample_weight` says how many samples each row stands for: whole numbers, which act
        exactly as repeated rows. (Memory is that of the repeated rows, too.)
        """
        source = self._choose_maker(X)(X, y, environments, sample_weight)
        return self._learn_from(source, has_environments=environments is not None)

    def _learn_from(self, source: CountSource, *, has_environments: bool) -> Self:
        test = make_test(self.test)
        self._check_criterion()
        if not has_environments:
            warnings.warn(
                "No environments were given, so nothing can be tested for invariance: "
                "this is a plain set covering machine. Pass fit(X, y, environments=...).",
                NoEnvironmentsWarning,
                stacklevel=4,
            )
            self.environments_ = None
            return self._learn(source, min_samples_leaf=self.min_samples_leaf)
        check_several(source.environments)
        warn_of_sparse(source)
        self.environments_ = tuple(source.environments)
        self.alpha_ = self._choose_alpha(source)
        self._learn(
            source,
            learn_exhaustively if self.search == "exhaustive" else learn,
            alpha=self.alpha_,
            test=test,
            stop=self.stop,
            pruning=self.pruning,
            min_samples_leaf=self.min_samples_leaf,
            evidence=self.evidence,
            n_candidates=self.n_candidates,
            screen=self.screen,
            criterion=self.criterion,
            margin=self.margin,
            margin_on=self.margin_on,
            correction=self.correction,
        )
        self._warn_of_little_data()
        return self

    @property
    def verdicts_(self) -> tuple[Verdict, ...]:
        """For each leaf of the model whether it is invariant, is not, or cannot be told.

        One for each rule, of the samples that it settles, and one for the samples that no rule
        settles. Empty without environments.
        """
        check_is_fitted(self, "model_")
        return self.trace_.verdicts

    @property
    def accepted_sets_(self) -> dict[tuple[str | int, ...], float]:
        """p-value of each set of features that the exhaustive search accepted."""
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

    def _check_criterion(self) -> None:
        """Raise for parameters that do not go together."""
        if self.correction is not None and self.criterion == "equivalence":
            raise IcscmError(
                "correction adjusts p-values, which criterion='equivalence' does not use; "
                "leave correction=None"
            )
        is_ratio = self.margin_on == "odds_ratio"
        if is_ratio != (self.margin > 1):
            wanted = "greater than 1, such as 1.5" if is_ratio else "below 1, such as 0.05"
            raise IcscmError(
                f"with margin_on={self.margin_on!r} margin must be {wanted}; got {self.margin!r}"
            )

    def _warn_of_little_data(self) -> None:
        """Name the rules of which even a large difference between environments would be missed."""
        names = [f"{str(rule)!r}" for rule in self.rules_] + ["what no rule settles"]
        blind = [
            name
            for name, verdict in zip(names, self.verdicts_, strict=True)
            if verdict.conclusion == TOO_LITTLE_DATA
            and (verdict.detectable is None or verdict.detectable > BLIND_DIFFERENCE)
        ]
        if self.rules_ and blind:
            warnings.warn(
                "Too little data to tell whether the label is invariant in the leaf of "
                f"{shorten_list(blind)}: even rates {BLIND_DIFFERENCE:.0%} apart "
                "between environments would likely go unseen. See verdicts_; min_samples_leaf or "
                "criterion='equivalence' keep such rules out.",
                TooLittleDataWarning,
                stacklevel=5,
            )

    def _choose_alpha(self, source: CountSource) -> float:
        if isinstance(self.alpha, str):  # "auto"
            return choose_alpha(int(source.count_totals().sum()))
        return float(self.alpha)


Learner = SCMClassifier | ICSCMClassifier


def check_learner(estimator: Any) -> None:
    """Raise unless it is one of ours: others cannot learn from counts, or have no rules."""
    if not isinstance(estimator, _CoverClassifier):
        raise IcscmError(
            "estimator must be an SCMClassifier or an ICSCMClassifier; got "
            f"{type(estimator).__name__}"
        )
