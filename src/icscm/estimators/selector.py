"""A screen of columns for any learner: rejects shortcuts that may fail at the next site.

    icscm.screening      finds the columns that are shortcuts, round by round
    selector_tables      makes the verdicts, and the tables of the result
    selector_views       makes the report and the figure

This module has the estimator: it opens a table for the screen, and fits a learner on the columns
that are kept, which predicts.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, Final, Self

import numpy as np
from sklearn.base import BaseEstimator, clone, is_classifier, is_regressor
from sklearn.feature_selection import SelectorMixin
from sklearn.model_selection import check_cv
from sklearn.pipeline import Pipeline
from sklearn.utils import Tags, assert_all_finite, get_tags
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted, has_fit_parameter, validate_data

from icscm import exceptions, progress
from icscm._changes import data_by_name, reject_removed_options
from icscm._lazy import dummy
from icscm._types import Array, BoolArray, FloatArray, IntArray
from icscm.estimators.fitted import is_set
from icscm.estimators.learners import TableClassifier, TableRegressor
from icscm.estimators.selector_tables import make_tables
from icscm.estimators.selector_views import SelectorViews
from icscm.exceptions import IcscmError, warn
from icscm.formatting import format_name, shorten_list
from icscm.parameters import check_parameters, document_parameters, draw_seed, whole_or_nothing
from icscm.report.wording.screening import describe_round
from icscm.screening.content import number_by_appearance, sort_by_content
from icscm.screening.measuring import MeasuredRounds
from icscm.screening.outcomes import Outcome, make_outcome
from icscm.screening.rounds import MAX_ROWS, ScreenState, deal_rows, run_screen
from icscm.screening.screened_table import ScreenedTable, read_table
from icscm.sources.columns import OpenColumns, open_columns
from icscm.stats.replication import describe_lone
from icscm.tables.columns import count_rows, find_names, is_frame, open_frame, take_columns
from icscm.tables.environments import check_several, take_environments
from icscm.tables.outcomes import (
    OutcomeKind,
    OutcomeValues,
    check_weighted,
    is_numeric_outcome,
    read_outcome,
)
from icscm.tables.weights import read_weights

# Columns are cut at up to so many quantiles.
MAX_THRESHOLDS: Final = 50


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
class InvariantFeatureSelector(SelectorViews, SelectorMixin, BaseEstimator):  # type: ignore[misc]
    """Rejects columns whose effect differs between environments, for any learner.

    A boosted model of all columns is cross-fitted, and for each column the screen estimates what
    the column is *worth* in each environment: 1 if it says there what the model has learned, 0 if
    it says nothing, less than 0 if it is reversed. From how much that differs (random effects of
    DerSimonian and Laird) follows what the column is worth in a new environment. Columns whose
    worth differs, and may fall there below 1 - `tolerance`, are rejected, the worst first; then
    the model is cross-fitted again, and so on. The learner is fitted on the columns that are kept.

    The outcome may be two classes, several classes, or a number.

    It protects against shortcuts that differ between the environments at hand. It is not a
    forecast: a shortcut that is equally strong in all of them is not detected, and two environments
    show only one difference. Environments are never used at prediction.

    {parameters}

    Attributes
    ----------
    estimator_ : estimator
        The learner fitted on the columns kept; `predict` and `predict_proba` use it.
    screen_ : DataFrame
        A row for each column: `verdict` (kept, rejected, cannot tell), `reason`, `round`, the
        `worth` on average and `worth_low`, which 19 of 20 new environments exceed, `tau`, its
        standard deviation between environments, `p_value`, `share` of heterogeneity in what the
        model explains, `stake`, how much of that depends on the column, `detectable`, the smallest
        `tau` that would have been significant, and the `rule` with its lowest and highest effect
        (log odds ratio or, of a number, standardised difference; other columns held fixed). Of
        several classes, `output` is the class that the effect is about.
    effects_ : DataFrame
        The worth and the effect by environment, with standard errors: a row for each column and
        environment.
    rounds_ : DataFrame
        A row for each round: the columns in the model, its cross-validated score (AUC or R2) and
        loss at the training environments, the deviance explained, and what was rejected. After
        the last rejection, `allowed` are columns that were rejected early and do not fail any more.
    pooled_levels_ : dict
        Levels of categories, by column, that give one environment away: the screen pooled them.
    environments_ : tuple or None
        The environments' labels; None if none were given.
    outcome_kind_ : str
        What the outcome is: two classes, several classes, or number.
    is_complete_ : bool
        False if the screen was interrupted (Ctrl-C): more columns may be shortcuts.
    classes_ : array
        The classes; absent if the outcome is a number.
    n_features_in_, feature_names_in_
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
    tolerance: float = 0.5
    on_undecided: str = "keep"
    cv: Any = 5
    n_jobs: int | None = None
    random_state: Any = None

    @data_by_name
    @whole_or_nothing
    def fit(
        self,
        X: Any,
        y: Any,
        *,
        environments: Any = None,
        groups: Any = None,
        sample_weight: Any = None,
    ) -> Self:
        """Screen the columns, and fit the learner on those kept.

        Parameters
        ----------
        X : array or frame of shape (n_samples, n_features)
            The columns, as the learner takes them.
        y : array-like of shape (n_samples,)
            The outcome: classes, or numbers for a regressor. Without an estimator, numbers of more
            than ten distinct values are taken for numbers, all else for classes.
        environments : array-like of shape (n_samples,), str or list of str, optional
            The environment of each row, or the column of a frame that holds it. Without any,
            nothing is rejected.
        groups : array-like of shape (n_samples,), str or list of str, optional
            Rows that belong together, such as the visits of a patient: never in two folds, and
            errors allow for their similarity.
        sample_weight : array-like of shape (n_samples,), optional
            Survey weights, any numbers from 0 on; only their ratios matter. The learner gets them,
            too, divided by their mean.

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

        values = read_outcome(y, count_rows(X), is_number=self.takes_numbers(y))
        self._is_number = values.is_number
        self.outcome_kind_ = values.kind
        if values.classes is not None:
            self.classes_ = values.classes
        weights = None
        if sample_weight is not None:
            weights = read_weights(sample_weight, count_rows(X), "sample_weight")
            check_weighted(values, weights)
        opened = open_columns(
            X,
            environments=environments,
            groups=groups,
            max_thresholds=MAX_THRESHOLDS,
            n_jobs=self.n_jobs,
        )
        self._screen(X, opened, values, weights)

        if self._fits_learner:
            learner = self.make_learner(int(self._is_kept.sum()))
            options = choose_fit_options(learner, weights)
            self.estimator_ = learner.fit(self._select(X), np.asarray(y).ravel(), **options)
        return self

    def make_learner(self, n_columns: int = 1) -> Any:
        """Make the learner of this many columns, unfitted: of none, one that predicts the mean.

        Parameters
        ----------
        n_columns : int, default=1
            Number of columns.

        Returns
        -------
        estimator
            A clone of `estimator`, or its default: boosting for the kind of the outcome.
        """
        is_number = self._is_number if is_set(self, "_is_number") else False
        if n_columns == 0:
            return dummy.DummyRegressor() if is_number else dummy.DummyClassifier(strategy="prior")
        if self.estimator is None:
            make = TableRegressor if is_number else TableClassifier
            return make("hgb", random_state=0)
        return clone(self.estimator)

    def takes_numbers(self, y: Any) -> bool:
        """Whether an outcome is a number: as the estimator has it, or by its values.

        Parameters
        ----------
        y : array-like of shape (n_samples,)
            The outcome.

        Returns
        -------
        bool
            Without an estimator, numbers of more than ten distinct values are taken for numbers.
        """
        if self.estimator is None or not (
            is_regressor(self.estimator) or is_classifier(self.estimator)
        ):
            return is_numeric_outcome(y)
        return bool(is_regressor(self.estimator))

    # --- the screen -------------------------------------------------------------------------------

    def _screen(
        self, X: Any, opened: OpenColumns, values: OutcomeValues, weights: FloatArray | None
    ) -> None:
        """Screen the columns, and keep the result in public attributes."""
        source = opened.source
        self.environments_ = tuple(source.environments) if opened.has_environments else None
        if self.environments_ is not None:
            check_several(self.environments_)
        table = read_table(
            source, names=self._names, groups=opened.groups, is_weighted=weights is not None
        )
        # The order of the rows in the table must not decide anything.
        order = sort_by_content(table, values.values, weights=weights, groups=opened.groups)
        table = table.take(order)
        outcome = make_outcome(
            values.values[order],
            None if weights is None else weights[order],
            is_number=values.is_number,
        )
        seed = draw_seed(self.random_state)
        screen = ScreenState(n_columns=self.n_features_in_)
        if self.environments_ is not None:
            fold_numbers = self._deal_rows(X, table, values, opened.groups, order, seed)
            rows = choose_rows(table.n_rows, seed)
            outcome = outcome.take(rows)
            table = table.take(rows)
            screen = run_screen(
                outcome,
                table,
                fold_numbers=fold_numbers[rows],
                tolerance=self.tolerance,
                seed=seed,
                n_jobs=self.n_jobs,
                announce=self._announce,
                memory=self._get_memory(),
            )
        self._keep(screen, outcome, opened)
        self._warn(screen)

    def _get_memory(self) -> MeasuredRounds | None:
        """The memory of rounds that screens of the same rows share; None if there is none."""
        return None

    def _announce(self, screen: ScreenState) -> None:
        """Tell who watches the progress what the last round has rejected."""
        last_round = screen.rounds[-1]
        names = [format_name(self._names[column]) for column in last_round.rejected]
        text = describe_round(names, n_rejected=len(screen.rejected), number=last_round.number)
        progress.announce(text)

    def _deal_rows(
        self,
        X: Any,
        table: ScreenedTable,
        values: OutcomeValues,
        groups: IntArray | None,
        order: IntArray,
        seed: int,
    ) -> IntArray:
        """Deal the rows to the folds of the cross-fit; fewer where classes or groups are rare.

        The table is in `order`, the rows by their content, and so are the folds. All else is in the
        order of X, in which a splitter that the user has given gets the rows.
        """
        classes = None if values.is_number else values.values
        if not isinstance(self.cv, int):
            return split_into_folds(self.cv, X, values, groups)[order]

        max_folds = table.n_rows if classes is None else int(np.bincount(classes).min())
        if groups is not None:
            max_folds = min(max_folds, int(groups.max()) + 1)
        if max_folds < 2:
            raise IcscmError(
                "the folds of the cross-fit need two rows of each class, and two groups; "
                f"got {max_folds}"
            )
        return deal_rows(
            table,
            classes=None if classes is None else classes[order],
            groups=None if groups is None else number_by_appearance(groups[order]),
            n_folds=min(self.cv, max_folds),
            seed=seed,
        )

    # --- the result of the screen -----------------------------------------------------------------

    def _keep(
        self,
        screen: ScreenState,
        outcome: Outcome,
        opened: OpenColumns,
    ) -> None:
        """Keep the result of the screen in public attributes."""
        columns = opened.source.columns
        tables = make_tables(
            screen,
            outcome,
            columns,
            names=self._names,
            environments=self.environments_,
            rejects_undecided=self.on_undecided == "reject",
            empty_columns=opened.empty_columns,
            date_columns=opened.date_columns,
            classes=self._name_outputs(),
        )
        self.screen_ = tables.screen
        self.effects_ = tables.effects
        self.rounds_ = tables.rounds
        self.is_complete_ = screen.is_complete
        self._is_kept: BoolArray = (self.screen_["verdict"] != "rejected").to_numpy()
        self._nearly_determining = [self._names[column] for column in screen.giveaways.nearly]
        self.pooled_levels_ = {
            self._names[column]: name_levels(opened, column, bins)
            for column, bins in screen.giveaways.pooled_levels.items()
        }

    def _name_outputs(self) -> list[Any] | None:
        """The classes, of which each effect is about one; None unless there are several."""
        if self.outcome_kind_ is not OutcomeKind.SEVERAL_CLASSES:
            return None
        classes: list[Any] = self.classes_.tolist()
        return classes

    def _warn(self, screen: ScreenState) -> None:
        """Warn of what limits the screen."""
        if self.environments_ is None:
            warn(
                "No environments were given, so no column can be rejected. "
                "Pass fit(X, y, environments=...).",
                exceptions.NoEnvironmentsWarning,
            )
            return
        if len(self.environments_) == 2:
            warn(
                "Two environments show one difference, which any cause may have: no column is "
                "rejected for it. Use three or more.",
                exceptions.FewEnvironmentsWarning,
            )
        if screen.lone_environment is not None:
            text = describe_lone(self.environments_[screen.lone_environment])
            warn(text, exceptions.FewEnvironmentsWarning)
        if self._nearly_determining:
            named = shorten_list([format_name(name) for name in self._nearly_determining])
            warn(
                f"The environment can nearly be told from {named} (Cramer's V above 0.9): there is "
                "little to compare their effects with.",
                exceptions.FewEnvironmentsWarning,
            )
        if not screen.is_complete:
            warn(
                f"The screen was interrupted after round {len(screen.rounds)}: more columns may be "
                "shortcuts.",
                exceptions.TooLittleDataWarning,
            )
        n_kept = int(self._is_kept.sum())
        if n_kept == 0:
            warn(
                "Every column was rejected: the model predicts the mean of the outcome. A larger "
                "tolerance keeps more columns.",
                exceptions.NotInvariantWarning,
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
            The columns; of a frame the rejected ones may be absent.

        Returns
        -------
        array or frame
            Of shape (n_samples, n_kept).
        """
        selected = self._select(X)
        if not is_frame(selected) and not get_tags(self).input_tags.allow_nan:
            assert_all_finite(selected)
        return selected

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
        """Predict the outcome of each row, by the learner on the columns kept.

        Parameters
        ----------
        X : array or frame of shape (n_samples, n_features)
            The columns; of a frame the rejected ones may be absent.

        Returns
        -------
        array of shape (n_samples,)
            Classes or numbers.
        """
        kept_columns = self._select(X)  # raises before a fit
        return self.estimator_.predict(kept_columns)

    @available_if(offers("predict_proba"))  # type: ignore[untyped-decorator]
    def predict_proba(self, X: Any) -> Any:
        """Predict the probability of each class, by the learner on the columns kept.

        Parameters
        ----------
        X : array or frame of shape (n_samples, n_features)
            The columns; of a frame the rejected ones may be absent.

        Returns
        -------
        array of shape (n_samples, n_classes)
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
            The columns; of a frame the rejected ones may be absent.

        Returns
        -------
        array of shape (n_samples,) or (n_samples, n_classes)
            The larger, the likelier the class.
        """
        kept_columns = self._select(X)  # raises before a fit
        return self.estimator_.decision_function(kept_columns)

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Return the learner's own score: accuracy of classes, R2 of numbers.

        Parameters
        ----------
        X : array or frame of shape (n_samples, n_features)
            The columns; of a frame the rejected ones may be absent.
        y : array-like of shape (n_samples,)
            The outcome.
        sample_weight : array-like of shape (n_samples,), optional
            Weights of the rows, of which only the ratios matter.

        Returns
        -------
        float
            1 is best.
        """
        from sklearn.metrics import accuracy_score, r2_score

        predicted = self.predict(X)
        weights = None
        if sample_weight is not None:
            weights = read_weights(sample_weight, len(predicted), "sample_weight")
        measure = r2_score if self._is_number else accuracy_score
        return float(measure(y, predicted, sample_weight=weights))

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        own = get_tags(TableClassifier() if self.estimator is None else self.estimator)
        tags.estimator_type = own.estimator_type
        tags.classifier_tags = own.classifier_tags
        tags.regressor_tags = own.regressor_tags
        # the screen takes missing values, and hands them on to the learner
        tags.input_tags.allow_nan = own.input_tags.allow_nan
        tags.target_tags.required = True
        return tags


class VerdictsOnly(InvariantFeatureSelector):
    """A screen that does not fit its learner on the columns kept: it has verdicts, and no model.

    Screens of the same rows at several tolerances share the `memory` of their rounds.
    """

    _fits_learner = False

    memory: MeasuredRounds | None = None

    def _get_memory(self) -> MeasuredRounds | None:
        return self.memory


def make_verdicts(
    selector: InvariantFeatureSelector, memory: MeasuredRounds | None
) -> VerdictsOnly:
    """Make a screen like the selector, unfitted and without its learner."""
    verdicts = VerdictsOnly(**clone(selector).get_params(deep=False))
    verdicts.memory = memory
    return verdicts


def choose_rows(n_rows: int, seed: int) -> Array:
    """Choose the rows that are screened: all, or `MAX_ROWS` of them at random."""
    if n_rows <= MAX_ROWS:
        return np.arange(n_rows)
    chosen = np.random.default_rng(seed).choice(n_rows, MAX_ROWS, replace=False)
    return np.sort(chosen)


def name_levels(opened: OpenColumns, column: int, bins: list[int]) -> list[str]:
    """Name the levels of a category, given their bins."""
    from icscm.engine.counts import Cut

    columns = opened.source.columns
    first = int(columns.find_layout(column).has_missing)
    levels = []
    for number in bins:
        if number < first:
            levels.append("missing")
            continue
        rule = columns.make_rule(Cut(column, number - first, negated=False))
        levels.append(str(rule))
    return levels


def choose_fit_options(learner: Any, weights: FloatArray | None) -> dict[str, Any]:
    """Return the arguments of a learner's `fit` that carry the weights of the rows."""
    if weights is None:
        return {}
    if isinstance(learner, Pipeline):
        name, last = learner.steps[-1]
        if has_fit_parameter(last, "sample_weight"):
            return {f"{name}__sample_weight": weights}
    elif has_fit_parameter(learner, "sample_weight"):
        return {"sample_weight": weights}
    raise IcscmError(
        f"{type(learner).__name__} takes no sample_weight; screen without weights, or use a "
        "learner that takes them"
    )


def split_into_folds(cv: Any, X: Any, values: OutcomeValues, groups: Any) -> IntArray:
    """Return the fold of each row, by whatever scikit-learn takes as `cv`."""
    splitter = check_cv(cv, values.values, classifier=not values.is_number)
    fold_numbers = np.full(len(values.values), -1, dtype=np.int64)
    for number, (_, test_rows) in enumerate(splitter.split(X, values.values, groups)):
        fold_numbers[test_rows] = number
    if (fold_numbers < 0).any():
        raise IcscmError(f"cv must put each row into one fold; {splitter} leaves some out")
    return fold_numbers
