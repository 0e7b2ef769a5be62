"""A screen of columns for any learner: rejects shortcuts that may fail at the next site.

    selector_rounds   tests the columns and rejects the worst, round by round
    selector_tables   makes the verdicts, and the tables of the result
    selector_views    makes the report and the figure

This module has the estimator: it opens a table for the screen, and fits a learner on the columns
that are kept, which predicts.
"""

from collections.abc import Callable
from dataclasses import dataclass
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
from icscm._types import Array, BoolArray, CountArray
from icscm.estimators.base import warn_of_environments
from icscm.estimators.fitted import is_set
from icscm.estimators.learners import TableClassifier
from icscm.estimators.selector_rounds import FinishedScreen, run_screen
from icscm.estimators.selector_tables import make_tables
from icscm.estimators.selector_views import SelectorViews
from icscm.exceptions import IcscmError, warn
from icscm.formatting import shorten_list
from icscm.parameters import check_parameters, document_parameters, draw_seed, whole_or_nothing
from icscm.screening.binned_table import BinnedTable
from icscm.screening.cross_fitting import CrossFitting, Fold
from icscm.sources.countable import BinningConfig
from icscm.sources.memory import open_memory
from icscm.stats.replication import describe_lone, find_lone_environment
from icscm.tables.columns import count_rows, find_names, is_frame, open_frame, take_columns
from icscm.tables.environments import check_several, take_environments, warn_of_two

# Columns are judged by cuts at up to 50 quantiles, and none is dropped beforehand.
BINNING: Final = BinningConfig(drop_suspicious=False)


def offers(method: str) -> Callable[["InvariantFeatureSelector"], bool]:
    """Make the check whether the learner of a selector has a method, for `available_if`."""

    def check(selector: "InvariantFeatureSelector") -> bool:
        if is_set(selector, "estimator_"):
            return hasattr(selector.estimator_, method)
        if selector.estimator is None:
            return hasattr(TableClassifier, method)
        return hasattr(selector.estimator, method)

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

    # whether `fit` also fits the learner on the columns kept
    _fits_learner: ClassVar[bool] = True

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
        # columns of X that hold environments or groups are not screened
        X, environments = take_environments(X, environments)
        X, groups = take_environments(X, groups, "groups")
        names = find_names(X)
        if is_frame(X):
            validate_data(self, X=X, skip_check_array=True)
        else:
            X = validate_data(self, X=X, dtype=None, ensure_all_finite="allow-nan")
        self._names = list(range(self.n_features_in_)) if names is None else list(names)
        self._is_named = names is not None

        countable = open_memory(X, y, environments=environments, groups=groups, preparation=BINNING)
        with countable:
            source = countable.source
            self.classes_ = countable.classes
            self.environments_ = tuple(source.environments) if countable.has_environments else None
            if countable.has_environments:
                check_several(source.environments)
            warn_of_environments(countable, "no column can be rejected")

            table = BinnedTable(source)
            screen = self._screen(X, table, groups)
            self._keep(screen, table)
            self._warn(source.count_rows())

        if self._fits_learner:
            n_kept = int(self._is_kept.sum())
            self.estimator_ = self.make_learner(n_kept).fit(self._select(X), np.asarray(y))
        return self

    def make_learner(self, n_columns: int = 1) -> Any:
        """Make the learner of this many columns, unfitted: of none, one that predicts the rate.

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
        if self.estimator is None:
            return TableClassifier("hgb", random_state=0)
        return clone(self.estimator)

    # --- the screen -------------------------------------------------------------------------------

    def _screen(self, X: Any, table: BinnedTable, groups: Any) -> FinishedScreen:
        """Screen the columns of X; without environments there is nothing to compare."""
        seed = draw_seed(self.random_state)
        if self.environments_ is None:
            return FinishedScreen(n_columns=self.n_features_in_)

        cross_fitting = CrossFitting(
            classes=self.classes_,
            folds=self._make_folds(X, table.outcomes, groups=groups, seed=seed),
            seed=seed,
            n_jobs=self.n_jobs,
        )
        return run_screen(
            X,
            table,
            names=self._names,
            learner=self.make_learner(),
            cross_fitting=cross_fitting,
            tolerance=self.tolerance,
            min_replication=self.min_replication,
        )

    def _make_folds(self, X: Any, outcomes: Array, *, groups: Any, seed: int) -> list[Fold]:
        """Make the folds of the cross-fit; fewer than `cv` where an outcome or groups are rare."""
        if not isinstance(self.cv, int):
            return split_into_folds(self.cv, X, outcomes, groups)

        max_folds = int(np.bincount(outcomes).min())
        if groups is not None:
            n_groups = len(set(np.asarray(groups).tolist()))
            max_folds = min(max_folds, n_groups)
        if max_folds < 2:
            raise IcscmError(
                "the folds of the cross-fit need two rows of each label, and two groups; "
                f"got {max_folds}"
            )
        make_splitter = StratifiedKFold if groups is None else StratifiedGroupKFold
        splitter = make_splitter(min(self.cv, max_folds), shuffle=True, random_state=seed)
        return split_into_folds(splitter, X, outcomes, groups)

    # --- the result of the screen -----------------------------------------------------------------

    def _keep(self, screen: FinishedScreen, table: BinnedTable) -> None:
        """Keep the result of the screen in public attributes."""
        tables = make_tables(
            screen,
            table,
            names=self._names,
            environments=self.environments_,
            tolerance=self.tolerance,
        )
        self._is_kept: BoolArray = screen.find_kept()
        self.screen_ = tables.screen
        self.effects_ = tables.effects
        self.rounds_ = tables.rounds

    def _warn(self, n_rows: CountArray) -> None:
        """Warn of what limits the screen, given the rows by outcome and environment."""
        if self.environments_ is None:
            return
        warn_of_two(self.environments_)
        lone = find_lone_environment(n_rows) if self.min_replication else None
        if lone is not None:
            warn(describe_lone(self.environments_[lone]), exceptions.FewEnvironmentsWarning)

        n_kept = int(self._is_kept.sum())
        if n_kept == 0:
            warn(
                "Every column was rejected: the model predicts the rate of the label. A larger "
                "tolerance keeps more columns.",
                exceptions.NotInvariantWarning,
            )
            return

        undecided = self.screen_[self.screen_["verdict"] == "cannot tell"]
        if len(undecided) == n_kept and lone is None:
            reason = undecided["reason"].iloc[0]
            warn(
                f"No column has a verdict ({reason}): all {n_kept} are kept.",
                exceptions.TooLittleDataWarning,
            )

    @property
    def kept_(self) -> list[Any]:
        """The columns kept: names where X had names, positions otherwise."""
        return [self._names[column] for column in np.flatnonzero(self._is_kept).tolist()]

    @property
    def rejected_(self) -> list[Any]:
        """The columns rejected, in the order in which they were."""
        rejected = self.screen_[self.screen_["verdict"] == "rejected"]
        return list(rejected.sort_values("round", kind="stable")["column"])

    def _get_support_mask(self) -> BoolArray:
        check_is_fitted(self)
        return self._is_kept

    # --- predicting -------------------------------------------------------------------------------

    def transform(self, X: Any) -> Any:
        """Select the columns kept; a frame stays a frame.

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
        """Select the columns kept, by name where the columns had names."""
        check_is_fitted(self)
        if not is_frame(X):
            X = validate_data(self, X, dtype=None, reset=False, ensure_all_finite="allow-nan")
            return X[:, self._is_kept]
        if not self._is_kept.any():
            return np.empty((count_rows(X), 0))  # a frame without columns has no rows
        if not self._is_named:
            return take_columns(X, np.flatnonzero(self._is_kept))

        frame = open_frame(X)
        absent = [name for name in self.kept_ if name not in frame.columns]
        if absent:
            absent_names = shorten_list([repr(name) for name in absent])
            raise IcscmError(f"X lacks columns that the selector kept: {absent_names}")
        return frame.select(*self.kept_).to_native()

    def predict(self, X: Any) -> Any:
        """Predict the class of each row, by the learner on the columns kept.

        Parameters
        ----------
        X : array or frame of shape (n_samples, n_features)
            The features; of a frame the rejected columns may be absent.

        Returns
        -------
        array of shape (n_samples,)
            The labels.
        """
        kept_columns = self._select(X)  # raises before a fit
        return self.estimator_.predict(kept_columns)

    @available_if(offers("predict_proba"))  # type: ignore[untyped-decorator]
    def predict_proba(self, X: Any) -> Any:
        """Predict the probability of each class, by the learner on the columns kept.

        Parameters
        ----------
        X : array or frame of shape (n_samples, n_features)
            The features; of a frame the rejected columns may be absent.

        Returns
        -------
        array of shape (n_samples, 2)
            In the order of `classes_`.
        """
        kept_columns = self._select(X)  # raises before a fit
        return self.estimator_.predict_proba(kept_columns)

    @available_if(offers("decision_function"))  # type: ignore[untyped-decorator]
    def decision_function(self, X: Any) -> Any:
        """Score the rows by the learner on the columns kept.

        Parameters
        ----------
        X : array or frame of shape (n_samples, n_features)
            The features; of a frame the rejected columns may be absent.

        Returns
        -------
        array of shape (n_samples,)
            The larger, the likelier the second class.
        """
        kept_columns = self._select(X)  # raises before a fit
        return self.estimator_.decision_function(kept_columns)

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        tags.input_tags.allow_nan = True
        tags.target_tags.required = True
        return tags


def split_into_folds(cv: Any, X: Any, outcomes: Array, groups: Any) -> list[Fold]:
    """Split the rows into folds, by whatever scikit-learn takes as `cv`."""
    splitter = check_cv(cv, outcomes, classifier=True)
    return [Fold(train=train, test=test) for train, test in splitter.split(X, outcomes, groups)]
