"""The base of all learners: a table is opened, a search learns from its counts, a model predicts.

    fit(X, y)           opens a table in memory, or a Dask collection
    fit_dataset(data)   opens files                                      then all three do the same:
    fit_counts(rows)    takes rows that are open                         search, keep, warn

A subclass gives the parameters, `_make_settings`, which translates them for the search, and
`_learn`, which searches and keeps the model. What `fit` sets ends in `_`.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted, validate_data

from icscm._changes import REMOVED_METHODS, data_by_name
from icscm.estimators.describing import DescribingMixin
from icscm.estimators.fitted import find_feature_names, is_set
from icscm.exceptions import IcscmError, LeftOutWarning, NoEnvironmentsWarning, warn
from icscm.formatting import format_name
from icscm.model.novelty import TrainingValues, Treatment, keep_levels, treat_unknown
from icscm.model.parsing import Feature
from icscm.model.rules import Rule
from icscm.model.saved import SavedModel, make_saved_model
from icscm.model.splits import LeafCounts, freeze_counts
from icscm.parameters import check_parameters, whole_or_nothing
from icscm.search.comparable import describe_determining
from icscm.sources.countable import BinningConfig, Countable
from icscm.sources.gpu.card import check_device
from icscm.sources.memory import open_memory
from icscm.stats.giveaways import DETERMINES
from icscm.tables.columns import StoredTable, is_dask
from icscm.tables.environments import warn_of_sparse
from icscm.tables.labels import code_known, find_series_names
from icscm.tables.parsing import check_rows
from icscm.tables.weights import read_weights

if TYPE_CHECKING:
    from icscm.io.formats import TextFormat
    from icscm.search.shape import ShapeChoice


def warn_of_environments(countable: Countable[Any], consequence: str) -> None:
    """Warn of environments that are sparse, or of the consequence if there are none."""
    source = countable.source
    if countable.has_environments:
        warn_of_sparse(source.count_rows(), source.environments, source.classes)
        return
    warn(
        f"No environments were given, so {consequence}. Pass fit(X, y, environments=...).",
        NoEnvironmentsWarning,
    )


def find_opener(X: Any) -> Callable[..., Countable[Any]]:
    """Return the function that opens a table.

    The rows of a Dask collection and of a packed store stay where they are.
    """
    if is_dask(X):
        from icscm.sources.dask.opening import open_dask  # dask is an extra

        return open_dask
    if isinstance(X, StoredTable):
        from icscm.sources.bits.opening import open_rows  # pyarrow is slow to import

        return open_rows
    return open_memory


def describe_training(
    learner: "BaseRuleClassifier", countable: Countable[Any]
) -> tuple[TrainingValues, ...]:
    """Describe the values in training of the columns that a model uses: levels and ranges.

    By these `predict` tells levels that are unknown and numbers of another unit.
    """
    table = countable.table
    if table is None:  # a packed store holds presences only
        return ()
    described = []
    for rule in {rule.feature: rule for rule in learner.rules_}.values():
        bins = table.levels.get(rule.column)
        levels = None if bins is None else keep_levels((*bins.levels, *bins.pool))
        number_range = countable.source.columns.find_range(rule.column)
        if levels is not None or number_range is not None:
            described.append(
                TrainingValues(
                    column=rule.column, name=rule.name, levels=levels, range=number_range
                )
            )
    return tuple(described)


class BaseRuleClassifier(DescribingMixin, ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """Learns from counts and predicts with a model; subclasses implement the search (`_learn`)."""

    #: whether the search compares environments, and so needs two of them
    tests_invariance: ClassVar[bool] = False

    #: how rules treat missing values; see `icscm.search.settings`
    missing: ClassVar[str] = "candidate"

    if not TYPE_CHECKING:  # or mypy would accept any attribute

        def __getattr__(self, name: str) -> Any:
            """Raise NotFittedError, an AttributeError, for what `fit` sets."""
            is_fitted_state = name.endswith("_") and not name.endswith("__")
            if is_fitted_state:
                check_is_fitted(self)
            if name in REMOVED_METHODS:
                raise AttributeError(
                    f"{type(self).__name__} has no method {name}: {REMOVED_METHODS[name]}"
                )
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    @data_by_name
    def fit(
        self,
        X: Any,
        y: Any,
        *,
        environments: Any = None,
        groups: Any = None,
        sample_weight: Any = None,
    ) -> Self:
        """Learn from a table, its labels and the environment of each row.

        Parameters
        ----------
        X : array, frame, sparse matrix or Dask collection of shape (n_samples, n_features)
            The features: numbers, text, categories and booleans, missing values among them. Or
            genomes of a packed store, from `icscm.sources.open_genomes`.
        y : array-like of shape (n_samples,)
            Labels of two classes; the second in order is the positive one.
        environments : array-like of shape (n_samples,), str or list of str, optional
            One hashable label per row, at least two of them distinct; or the name of the column of
            a frame that holds them, which is then no feature; several columns are joined.
        groups : array-like of shape (n_samples,), str or list of str, optional
            Rows that belong together, such as the visits of a patient or the genomes of a lineage:
            a label per row, or the name of a column. Tests are corrected for their similarity.
        sample_weight : array-like of shape (n_samples,), optional
            Design weights, such as those of a survey: any numbers from 0 on, of which only the
            ratios matter. Tests are for the effective number of samples.

        Returns
        -------
        self
            The fitted learner; if anything fails it stays as it was.

        Raises
        ------
        IcscmError
            If the data or the parameters cannot be used; the message says what to do.
        """
        config = self.prepare()
        check_device(config.device)
        open_table = find_opener(X)
        countable = open_table(
            X,
            y,
            environments=environments,
            groups=groups,
            sample_weight=sample_weight,
            preparation=config,
        )
        with countable:
            return self._fit(countable, config, outcome=y, environments=environments)

    @data_by_name
    def fit_dataset(
        self,
        data: Any,
        target: str,
        *,
        environments: str | None = None,
        groups: str | None = None,
        columns: Sequence[str] | None = None,
        positive: Any = None,
        max_memory: int | str = "2GiB",
        temp_dir: str | Path | None = None,
        text: "TextFormat | None" = None,
    ) -> Self:
        """Learn from files that need not fit in memory; the result is that of `fit`.

        Parameters
        ----------
        data : str, Path or pyarrow.dataset.Dataset
            A Parquet or CSV file, or a folder of such files.
        target : str
            The column of labels.
        environments : str, optional
            The column of environments.
        groups : str, optional
            The column of groups, as in `fit`.
        columns : sequence of str, optional
            The columns to make rules of; by default all others.
        positive : object, optional
            The label to be predicted; by default the second in order.
        max_memory : int or str
            Bound on the memory of the whole process, in bytes or as `"2GiB"`.
        temp_dir : str or Path, optional
            Folder for a temporary file of one byte per cell.
        text : TextFormat, optional
            Format of text files: `icscm.io.formats.TextFormat`.

        Returns
        -------
        self
            The fitted learner; if anything fails it stays as it was.

        Raises
        ------
        IcscmError
            If the files cannot be read, or not within `max_memory`.
        """
        from icscm.sources.files.opening import open_files  # pyarrow is slow to import

        config = self.prepare()
        check_device(config.device)
        countable = open_files(
            data,
            target,
            environments=environments,
            groups=groups,
            columns=columns,
            positive=positive,
            max_memory=max_memory,
            temp_dir=temp_dir,
            text=text,
            preparation=config,
        )
        with countable:
            return self._fit(countable, config, outcome=target, environments=environments)

    def fit_counts(self, countable: Countable[Any]) -> Self:
        """Learn from rows that were opened before, and stay open for other learners.

        Parameters
        ----------
        countable : Countable
            From a function such as `icscm.sources.open_sites`.

        Returns
        -------
        self
            The fitted learner; if anything fails it stays as it was.

        Raises
        ------
        IcscmError
            If the parameters cannot be used, or differ from those that the rows were opened with.
        """
        return self._fit(countable, self.prepare())

    @whole_or_nothing
    def _fit(
        self,
        countable: Countable[Any],
        config: BinningConfig,
        *,
        outcome: Any = None,
        environments: Any = None,
    ) -> Self:
        """Learn from open rows; a Series of outcomes or environments gives reports its name."""
        countable.check_config(type(self).__name__, config)
        self._keep_table(countable)
        self._learn(countable)
        self.model_ = replace(self.model_, training_values=describe_training(self, countable))
        self._series_names_ = find_series_names(outcome, environments)
        self._warn_of_determining()
        self._warn_of_findings()
        return self

    def prepare(self) -> BinningConfig:
        """Return how a table is read and binned for this learner.

        Returns
        -------
        BinningConfig
            For the functions that open a source.

        Raises
        ------
        IcscmError
            If a parameter has a value that is not allowed, or two contradict each other.
        """
        check_parameters(self)
        self._check_together()
        return BinningConfig(
            max_thresholds=self.max_thresholds,
            n_jobs=self.n_jobs,
            device=self.device,
        )

    def _check_together(self) -> None:
        """Raise for parameters that contradict each other."""

    def _keep_table(self, countable: Countable[Any]) -> None:
        """Keep what is known of the table in public attributes."""
        self.classes_ = countable.classes
        #: training samples by label and environment
        self.class_counts_: LeafCounts = freeze_counts(countable.source.count_rows())
        self.environments_: tuple[Any, ...] | None = None
        if countable.has_environments:
            self.environments_ = tuple(countable.source.environments)

        self.n_features_in_ = countable.n_features
        if countable.names is not None:
            self.feature_names_in_ = np.array(countable.names, dtype=object)
        self.dropped_columns_: dict[str | int, str] = {}
        table = countable.table
        if table is None:  # a packed store has too many columns to describe each
            return

        names = table.names or range(table.n_columns)
        self.feature_types_ = table.list_types()
        self.levels_ = {
            names[column]: (*bins.levels, *bins.pool) for column, bins in table.levels.items()
        }
        self.dropped_columns_ = {names[column]: why for column, why in table.dropped.items()}

    def make_settings(self, countable: Countable[Any]) -> Any:
        """Make the settings of the search.

        Parameters
        ----------
        countable : Countable
            The samples to learn from.

        Returns
        -------
        Settings or TreeSettings
            This learner's parameters, as `icscm.search.rules.find_model` or
            `icscm.search.trees.find_tree` takes them; without environments nothing is tested. With
            `model_type="auto"` they are those of a conjunction until `fit` has chosen.

        Raises
        ------
        IcscmError
            If a parameter has a value that is not allowed, or two contradict each other; if there
            is a single environment.
        """
        self.prepare()
        return self._make_settings(countable)

    def _make_settings(self, countable: Countable[Any]) -> Any:
        """Make the settings of the search, from parameters that were checked before."""
        raise NotImplementedError

    def _learn(self, countable: Countable[Any]) -> None:
        """Search the counts, and keep the model and the trace."""
        raise NotImplementedError

    @property
    def rejected_(self) -> list[str | int]:
        """The columns that the model may not use, in the order in which they were rejected.

        Names where X had names, positions otherwise; why is in `trace_.to_frame("columns")`.
        """
        return [column.rule.feature for column in self.trace_.rejected_columns]

    def _warn_of_determining(self) -> None:
        """Warn of columns that were rejected since they determine the environment."""
        names = [
            format_name(column.rule.feature)
            for column in self.trace_.rejected_columns
            if column.reason == DETERMINES
        ]
        if names:
            warn(describe_determining(names), LeftOutWarning)

    def _warn_of_findings(self) -> None:
        """Warn of a model that is empty or otherwise unexpected."""

    def predict(self, X: Any, *, unknown: Treatment = "raise") -> Any:
        """Predict the class of each row.

        Environments are not needed. Columns of a frame go by name, and unused ones may be missing.
        A level that the column did not have in training is treated as missing, with a warning.

        Parameters
        ----------
        X : array, frame, sparse matrix or Dask collection of shape (n_samples, n_features)
            The features.
        unknown : {"raise", "allow"}, default="raise"
            What to do where more than half of the rows, or of those in a partition of a
            collection, have an unknown level in a column.

        Returns
        -------
        array of shape (n_samples,)
            One of `classes_` for each row; of a Dask collection a Dask array, computed lazily.

        Raises
        ------
        IcscmError
            If X lacks a column that the model uses, or more than half of the rows have an unknown
            level in one.
        """
        if is_dask(X):
            from icscm.sources.dask.frames import predict_lazily

            return predict_lazily(partial(self.predict, unknown=unknown), X, self.classes_[:0])
        rows = self._check_rows(X)
        with treat_unknown(unknown):
            is_positive = self.model_.predict(rows)
        return self.classes_[is_positive.astype(np.intp)]

    def predict_proba(self, X: Any, *, unknown: Treatment = "raise") -> Any:
        """Predict the probability of each class, from the training samples in the row's leaf.

        (count + 1) / (samples + 2), so never 0 or 1. Trees and forests predict the likelier class;
        a conjunction or disjunction may not, in a leaf with more samples of the other class.

        Parameters
        ----------
        X : array, frame, sparse matrix or Dask collection of shape (n_samples, n_features)
            The features.
        unknown : {"raise", "allow"}, default="raise"
            As for `predict`.

        Returns
        -------
        array of shape (n_samples, 2)
            A column for each of `classes_`; of a Dask collection a Dask array.
        """
        if is_dask(X):
            from icscm.sources.dask.frames import predict_lazily

            predict_partition = partial(self.predict_proba, unknown=unknown)
            return predict_lazily(predict_partition, X, np.empty((0, len(self.classes_))))
        rows = self._check_rows(X)
        with treat_unknown(unknown):
            positive = self.model_.predict_proba(rows)
        return np.column_stack((1.0 - positive, positive))

    @data_by_name
    def score(self, X: Any, y: Any, *, sample_weight: Any = None) -> float:
        """Compute the accuracy: the share of rows that are predicted correctly.

        Parameters
        ----------
        X : array, frame, sparse matrix or Dask collection of shape (n_samples, n_features)
            The features.
        y : array-like of shape (n_samples,)
            Their labels.
        sample_weight : array-like of shape (n_samples,), optional
            Weight of each row, of which only the ratios matter.

        Returns
        -------
        float
            Between 0 and 1; labels that did not occur at fitting raise an error.
        """
        outcomes = code_known(y, self.classes_)
        predicted = code_known(self.predict(X), self.classes_)
        n_rows = len(predicted)
        if len(outcomes) != n_rows:
            raise IcscmError(
                f"y has {len(outcomes)} entries but X has {n_rows} rows; give one per row"
            )

        is_right = outcomes == predicted
        weights = None
        if sample_weight is not None:
            weights = read_weights(sample_weight, n_rows, "sample_weight")
        return float(np.average(is_right, weights=weights))

    def _check_rows(self, X: Any) -> Any:
        """Check rows to predict; columns that no rule uses may be missing from a frame."""
        # `reset` would set the number and the names of columns, as at fitting
        validate = partial(validate_data, self, reset=False)
        names = find_feature_names(self)
        return check_rows(X, self.rules_, validate, names, allow_missing=True)

    @property
    def _shape_choice(self) -> "ShapeChoice | None":
        """How the shape of rules was chosen; None where it was given, and of other models."""
        return None

    @property
    def _test_level(self) -> float | None:
        """The level of the tests; None for learners that test nothing."""
        return None

    def _list_features(self) -> tuple[Feature, ...] | None:
        """List the columns of the table, for a model file; None of a packed store."""
        if not is_set(self, "feature_types_"):
            return None
        names = find_feature_names(self)
        if names is None:
            return tuple(Feature(name=None, type=kind) for kind in self.feature_types_)
        return tuple(
            Feature(name=str(name), type=kind)
            for name, kind in zip(names, self.feature_types_, strict=True)
        )

    @property
    def rules_(self) -> tuple[Rule, ...]:
        """The model's rules, in the order in which they were chosen."""
        return tuple(self.model_.rules)

    @property
    def features_used_(self) -> list[str | int]:
        """The features in the model: names where X had names, positions otherwise."""
        return list(dict.fromkeys(rule.feature for rule in self.rules_))

    def save(self, path: str | PathLike[str], *, force: bool = False) -> None:
        """Write the model as a JSON file that `icscm.load` reads.

        Parameters
        ----------
        path : str or path
            The file to write, whole or not at all.
        force : bool
            Overwrite a file of that name.
        """
        make_saved_model(self).save(path, force=force)

    def recalibrate(
        self, X: Any = None, y: Any = None, *, prevalence: float | None = None
    ) -> SavedModel:
        """Move the fitted model to a site, by labelled rows of it or by its base rate.

        Parameters
        ----------
        X, y : optional
            Rows of the site and their classes; see `SavedModel.recalibrate`.
        prevalence : float, optional
            Share of the positive class at the site, instead of y.

        Returns
        -------
        SavedModel
            It predicts as this learner does, with another intercept; `save` writes it to a file.
        """
        return make_saved_model(self).recalibrate(X, y, prevalence=prevalence)

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        tags.input_tags.allow_nan = True
        tags.input_tags.categorical = True
        tags.input_tags.string = True
        tags.input_tags.sparse = True
        return tags
