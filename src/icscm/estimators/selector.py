"""A screen of columns for any learner: rejects shortcuts that may fail at the next site."""

from dataclasses import dataclass, replace
from typing import Any, ClassVar, Final, Self

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.dummy import DummyClassifier
from sklearn.feature_selection import SelectorMixin
from sklearn.model_selection import StratifiedGroupKFold, StratifiedKFold, check_cv
from sklearn.utils import Tags
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted, validate_data

from icscm import exceptions
from icscm._changes import data_by_name, reject_removed_options
from icscm._constants import CHANCE_LEVEL
from icscm._types import Array, BoolArray, CountArray, IntArray
from icscm.estimators.base import warn_of_environments
from icscm.estimators.learners import TableClassifier, limit_threads
from icscm.estimators.selector_views import SelectorViews
from icscm.exceptions import IcscmError, warn
from icscm.formatting import shorten_list
from icscm.parameters import check_parameters, document_parameters, draw_seed, whole_or_nothing
from icscm.screening.binned_table import BinnedTable, ColumnStrength
from icscm.screening.column_tests import ColumnResult, measure_performance, run_column_tests
from icscm.screening.cross_fitting import MAX_COLUMNS, CrossFitting, Fold
from icscm.sources.countable import BinningConfig
from icscm.sources.memory import open_memory
from icscm.stats.replication import describe_lone, find_lone_environment
from icscm.stats.splits import find_extreme_environments, find_quantile
from icscm.tables.columns import count_rows, find_names, is_frame, open_frame, take_columns
from icscm.tables.environments import check_several, take_environments, warn_of_two

# The verdict is "cannot tell" where a share of so many times the tolerance is not significant.
_VISIBLE: Final = 5.0


def _offers(name: str) -> Any:
    def check(self: Any) -> bool:
        estimator = getattr(self, "estimator_", self.estimator)
        return hasattr(TableClassifier if estimator is None else estimator, name)

    return check


@document_parameters
@reject_removed_options
@dataclass(eq=False, repr=False)
class InvariantFeatureSelector(SelectorViews, SelectorMixin, ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """Rejects columns whose effect differs between environments, for any learner.

    Each column is tested given all others: the learner is cross-fitted on all columns, and the
    heterogeneity of a column measures by how much its effect on the residuals, or the contribution
    of the column to the model, differs between environments beyond chance (DerSimonian and Laird),
    as a share of the deviance that the whole model explains. The column with the largest share is
    rejected if that is above `tolerance` and significant; then the learner is cross-fitted again,
    and so on.

    It protects against shortcuts that differ between the environments at hand. It is not a
    forecast: a shortcut that is equally strong in all of them is not detected, and two environments
    show only one difference. Environments are never used at prediction.

    {parameters}

    Attributes
    ----------
    estimator_ : estimator
        The learner fitted on the columns kept; `predict` and `predict_proba` use it.
    screen_ : DataFrame
        A row for each column: `verdict` (kept, rejected, cannot tell), `reason`, `round`, `share`
        of heterogeneity, `p_value` (Bonferroni), the `rule` with the largest heterogeneity, the
        lowest and the highest effect (log odds ratio, other columns held fixed) and their
        environments, `tau`, `i2` and `replication`.
    effects_ : DataFrame
        The effects by environment: a row for each column and environment.
    rounds_ : DataFrame
        A row for each round: the columns left, cross-validated AUC and log loss at the training
        environments, the deviance explained, and which column was rejected.
    environments_ : tuple or None
        The environments' labels; None if none were given.
    classes_, n_features_in_, feature_names_in_
        As in scikit-learn.

    References
    ----------
    DerSimonian and Laird (1986), Meta-analysis in clinical trials. Heinze-Deml, Peters and
    Meinshausen (2018), Invariant causal prediction for nonlinear models: residuals of a pooled
    model compared between environments. Steyerberg and Harrell (2016), internal-external
    cross-validation.

    Examples
    --------
    >>> import numpy as np
    >>> from icscm import InvariantFeatureSelector
    >>> rng = np.random.default_rng(0)
    >>> site, age = rng.integers(0, 4, 4000), rng.normal(size=4000)
    >>> ill = rng.random(4000) < 1 / (1 + np.exp(-2 * age))
    >>> code = ill ^ (rng.random(4000) < np.array([0.02, 0.1, 0.25, 0.4])[site])
    >>> screen = InvariantFeatureSelector(random_state=0)
    >>> screen.fit(np.c_[age, code], ill, environments=site).get_support()
    array([ True, False])
    """

    _refits: ClassVar[bool] = True  # whether `fit` makes `estimator_`

    estimator: Any = None
    tolerance: float = 0.01
    min_replication: float = 0.15
    cv: Any = 5
    n_jobs: int | None = None
    random_state: Any = None

    @data_by_name
    @whole_or_nothing
    def fit(self, X: Any, y: Any, *, environments: Any = None, groups: Any = None) -> Self:
        """Screen the columns, and fit the learner on those kept.

        Parameters
        ----------
        X : array or frame of shape (n_samples, n_features)
            The features, as the learner takes them.
        y : array-like of shape (n_samples,)
            Labels of two classes.
        environments : array-like of shape (n_samples,), str or list of str, optional
            The environment of each row, or the column of a frame that holds it. Without any,
            nothing is rejected.
        groups : array-like of shape (n_samples,), str or list of str, optional
            Rows that belong together, such as the visits of a patient: never in two folds, and
            tests are corrected for their similarity.

        Returns
        -------
        self
            The fitted selector; if anything fails it stays as it was.

        Raises
        ------
        IcscmError
            If the data or the parameters cannot be used.
        """
        check_parameters(self)
        X, environments = take_environments(X, environments)
        X, groups = take_environments(X, groups, "groups")
        self._names = find_names(X)
        if is_frame(X):
            validate_data(self, X=X, skip_check_array=True)
        else:
            X = validate_data(self, X=X, dtype=None, ensure_all_finite="allow-nan")
        with open_memory(
            X, y, environments=environments, groups=groups, preparation=_BINNING
        ) as countable:
            source = countable.source
            self.classes_ = countable.classes
            self.environments_ = tuple(source.environments) if countable.has_environments else None
            if countable.has_environments:
                check_several(source.environments)
            warn_of_environments(countable, "no column can be rejected")
            self._screen(X, BinnedTable(source), source, groups)
        if self._refits:
            learner = self.make_learner(int(self._support.sum()))
            self.estimator_ = learner.fit(self._select(X), np.asarray(y))
        return self

    def make_learner(self, n_columns: int = 1) -> Any:
        """The learner of this many columns, unfitted: without any, one that predicts the rate.

        Parameters
        ----------
        n_columns : int, default=1
            Number of columns.

        Returns
        -------
        classifier
            A clone of `estimator`, or its default.
        """
        if n_columns == 0:
            return DummyClassifier(strategy="prior")
        return TableClassifier("hgb", 0) if self.estimator is None else clone(self.estimator)

    def _screen(self, X: Any, table: BinnedTable, source: Any, groups: Any) -> None:
        """Reject the worst column, and again; keep what was found."""
        n_columns = self.n_features_in_
        seed = draw_seed(self.random_state)
        results: dict[int, ColumnResult] = {j: ColumnResult() for j in range(n_columns)}
        rounds: list[dict[str, Any]] = []
        strengths = table.measure_strengths() if self.environments_ else {}
        reasons: dict[int, str] = {}
        level = find_quantile(CHANCE_LEVEL / max(n_columns, 1), 1)
        for j, strength in strengths.items():
            if strength.replication < self.min_replication and strength.deviance > level:
                reasons[j] = "informative in too few environments"
        columns = np.setdiff1d(np.arange(n_columns), [*reasons])

        cross_fitting = CrossFitting(
            classes=self.classes_,
            folds=self._make_folds(X, table.outcomes, groups, seed) if self.environments_ else [],
            seed=seed,
            n_jobs=self.n_jobs,
        )
        while cross_fitting.folds and len(columns):
            learners = self._make_learners(columns, strengths)
            with limit_threads(len(table.outcomes) * len(columns)):
                fitted = cross_fitting.fit(learners, X, columns=columns, table=table)
            tests = run_column_tests(table, columns, fitted.scores, fitted.contributions)
            number = len(rounds) + 1
            results |= {j: replace(each, round=number) for j, each in tests.columns.items()}
            performance = measure_performance(table, tests.probabilities)
            worst = tests.find_worst(self.tolerance)
            rounds.append(
                {
                    "round": number,
                    "n_columns": len(columns),
                    "auc": performance.auc,
                    "log_loss": performance.log_loss,
                    "deviance_explained": tests.explained,
                    "rejected": None if worst is None else self._name(worst),
                }
            )
            if worst is None:
                break
            cuts = [(j, cut) for j in reasons if (cut := results[j].cut) is not None]
            twin = table.find_copied(worst, cuts)
            reasons[worst] = "its effect differs"
            if twin is not None:
                reasons[worst] = f"carries the same as {self._name(twin)}, which was rejected"
            columns = columns[columns != worst]
        self._support: BoolArray = ~np.isin(np.arange(n_columns), [*reasons])
        self._keep(results, reasons, strengths, rounds, source)
        self._warn(source.count_rows())

    def _make_learners(self, columns: IntArray, strengths: dict[int, ColumnStrength]) -> list[Any]:
        """The learners of a round: the user's, and boosting unless that is the user's.

        Both are combined: effects that a learner of the wrong form has missed must not look like
        differences between environments. Of many columns boosting uses those that explain most by
        themselves.
        """
        learner = self.make_learner()
        if isinstance(learner, TableClassifier) and learner.kind == "hgb":
            return [learner]
        nothing = ColumnStrength(replication=np.nan, deviance=0.0)
        deviances = [strengths.get(j, nothing).deviance for j in columns.tolist()]
        strongest = np.argsort([-deviance for deviance in deviances])
        return [learner, TableClassifier("hgb", 0, np.sort(strongest[:MAX_COLUMNS]))]

    def _make_folds(self, X: Any, labels: Array, groups: Any, seed: int) -> list[Fold]:
        cv = self.cv
        if isinstance(cv, int):
            least = int(np.bincount(labels).min())
            if groups is not None:
                least = min(least, len(set(np.asarray(groups).tolist())))
            if least < 2:
                needed = "the folds of the cross-fit need two rows of each label, and two groups"
                raise IcscmError(f"{needed}; got {least}")
            kind = StratifiedKFold if groups is None else StratifiedGroupKFold
            cv = kind(min(cv, least), shuffle=True, random_state=seed)
        splits = check_cv(cv, labels, classifier=True).split(X, labels, groups)
        return [Fold(train=train, test=test) for train, test in splits]

    def _keep(
        self,
        results: dict[int, ColumnResult],
        reasons: dict[int, str],
        strengths: dict[int, ColumnStrength],
        rounds: list[dict[str, Any]],
        source: Any,
    ) -> None:
        """Keep the result of the screen in public attributes."""
        import pandas

        environments = self.environments_ or ()
        rows, by_environment = [], []
        for j in range(self.n_features_in_):
            column, name = results[j], self._name(j)
            ratio = strengths[j].replication if j in strengths else np.nan
            verdict, reason = self._decide(column, reasons.get(j), ratio)
            known = [] if column.effects is None else column.effects.tolist()
            at = find_extreme_environments([None if each != each else each for each in known])
            row = {"column": name, "verdict": verdict, "reason": reason}
            row |= {key: getattr(column, key) for key in ("round", "share", "p_value", "question")}
            row["rule"] = "" if column.cut is None else str(source.columns.make_rule(column.cut))
            for end, k in zip(("lowest", "highest"), at or (None, None), strict=True):
                row[f"{end}_effect"] = np.nan if k is None else known[k]
                row[f"{end}_environment"] = None if k is None else environments[k]
            rows.append(row | {"tau": column.tau, "i2": column.i2, "replication": ratio})
            for k, effect in enumerate(known):
                weight = column.weights[k] if column.weights is not None else 0.0
                error = weight**-0.5 if weight > 0 else np.nan
                by_environment.append((name, environments[k], effect, error))
        self.screen_ = pandas.DataFrame(rows)
        columns = ["column", "environment", "effect", "standard_error"]
        self.effects_ = pandas.DataFrame(by_environment, columns=columns)
        self.rounds_ = pandas.DataFrame(rounds)

    def _decide(self, column: ColumnResult, reason: str | None, ratio: float) -> tuple[str, str]:
        if reason is not None:
            return "rejected", reason
        if self.environments_ is None:
            return "cannot tell", "no environments"
        if column.detectable_share == np.inf:
            return "cannot tell", "informative in fewer than two environments"
        if column.detectable_share > _VISIBLE * self.tolerance:
            return "cannot tell", "too little data"
        if ratio != ratio:
            return "cannot tell", "one environment holds nearly all information"
        return "kept", ""

    def _warn(self, totals: CountArray) -> None:
        if self.environments_ is None:
            return
        warn_of_two(self.environments_)
        lone = find_lone_environment(totals) if self.min_replication else None
        if lone is not None:
            warn(describe_lone(self.environments_[lone]), exceptions.FewEnvironmentsWarning)
        unclear = self.screen_[self.screen_["verdict"] == "cannot tell"]
        n_kept = int(self._support.sum())
        if n_kept == 0:
            warn(
                "Every column was rejected: the model predicts the rate of the label. A larger "
                "tolerance keeps more columns.",
                exceptions.NotInvariantWarning,
            )
        elif len(unclear) == n_kept and lone is None:
            reason = unclear["reason"].iloc[0]
            text = f"No column has a verdict ({reason}): all {n_kept} are kept."
            warn(text, exceptions.TooLittleDataWarning)

    def _name(self, j: int) -> Any:
        return j if self._names is None else self._names[j]

    @property
    def kept_(self) -> list[Any]:
        """The columns kept: names where X had names, positions otherwise."""
        return [self._name(j) for j in np.flatnonzero(self._support).tolist()]

    @property
    def rejected_(self) -> list[Any]:
        """The columns rejected, in the order in which they were."""
        rejected = self.screen_[self.screen_["verdict"] == "rejected"]
        return list(rejected.sort_values("round", kind="stable")["column"])

    def _get_support_mask(self) -> BoolArray:
        check_is_fitted(self)
        return self._support

    def transform(self, X: Any) -> Any:
        """The columns kept; a frame stays a frame.

        Parameters
        ----------
        X : array or frame of shape (n_samples, n_features)
            The features; of a frame the rejected columns may be absent.

        Returns
        -------
        array or frame
            Of shape (n_samples, n_kept).
        """
        return self._select(X)

    def _select(self, X: Any) -> Any:
        check_is_fitted(self)
        if is_frame(X) and not self._support.any():  # a frame without columns has no rows
            return np.empty((count_rows(X), 0))
        if not is_frame(X):
            X = validate_data(self, X, dtype=None, reset=False, ensure_all_finite="allow-nan")
            return X[:, self._support]
        if self._names is None:
            return take_columns(X, np.flatnonzero(self._support))
        absent = [name for name in self.kept_ if name not in open_frame(X).columns]
        if absent:
            lacking = shorten_list([repr(name) for name in absent])
            raise IcscmError(f"X lacks columns that the selector kept: {lacking}")
        return open_frame(X).select(*self.kept_).to_native()

    def predict(self, X: Any) -> Any:
        """The class of each row, by the learner on the columns kept.

        Parameters
        ----------
        X : array or frame of shape (n_samples, n_features)
            The features; of a frame the rejected columns may be absent.

        Returns
        -------
        array of shape (n_samples,)
            The labels.
        """
        kept = self._select(X)  # raises before a fit
        return self.estimator_.predict(kept)

    @available_if(_offers("predict_proba"))  # type: ignore[untyped-decorator]
    def predict_proba(self, X: Any) -> Any:
        """Probability of each class, by the learner on the columns kept.

        Parameters
        ----------
        X : array or frame of shape (n_samples, n_features)
            The features; of a frame the rejected columns may be absent.

        Returns
        -------
        array of shape (n_samples, 2)
            In the order of `classes_`.
        """
        kept = self._select(X)  # raises before a fit
        return self.estimator_.predict_proba(kept)

    @available_if(_offers("decision_function"))  # type: ignore[untyped-decorator]
    def decision_function(self, X: Any) -> Any:
        """Scores by the learner on the columns kept.

        Parameters
        ----------
        X : array or frame of shape (n_samples, n_features)
            The features; of a frame the rejected columns may be absent.

        Returns
        -------
        array of shape (n_samples,)
            The larger, the likelier the second class.
        """
        kept = self._select(X)  # raises before a fit
        return self.estimator_.decision_function(kept)

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        tags.input_tags.allow_nan = True
        tags.target_tags.required = True
        return tags


# Columns are judged by cuts at up to 50 quantiles, and none is dropped beforehand.
_BINNING = BinningConfig(keep_columns="all")
