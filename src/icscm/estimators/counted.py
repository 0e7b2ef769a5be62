"""What all learners share: samples made countable, fitted state out, predictions from a model."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted

from icscm._types import Array
from icscm.estimators.scoring import KnownLabelsMixin
from icscm.model.leaves import LeafCounts, freeze_counts
from icscm.model.rules import Rule
from icscm.model.saved import make_saved_model
from icscm.parameters import (
    N_JOBS,
    NAMES_OR_ALL,
    Allowed,
    check_parameters,
    one_of,
    whole_number,
    whole_or_nothing,
)
from icscm.sources.countable import BinningConfig, Countable
from icscm.sources.memory import open_memory
from icscm.tables.columns import Level, is_dask
from icscm.tables.parsing import read_rows, reject_missing_values

if TYPE_CHECKING:
    from icscm.io.formats import TextFormat


class CountedClassifier(KnownLabelsMixin, BaseEstimator):  # type: ignore[misc]
    """Learns from counts, predicts by a model; who inherits says how it searches."""

    tests_invariance: ClassVar[bool] = False

    _allowed: ClassVar[dict[str, Allowed]] = {
        "max_thresholds": whole_number(1, or_none=True),
        "n_jobs": N_JOBS,
        "missing": one_of("candidate", "separate", "error"),
        "keep_columns": NAMES_OR_ALL,
        "device": one_of("cpu", "cuda", "auto"),
    }

    max_thresholds: int | None
    n_jobs: int | None
    missing: str
    keep_columns: Any
    device: str

    model_: Any
    classes_: Array
    environments_: tuple[Any, ...] | None
    #: training samples by label and environment
    class_counts_: LeafCounts
    n_features_in_: int
    feature_types_: tuple[str, ...]
    levels_: dict[str | int, tuple[Level, ...]]
    left_out_: dict[str | int, str]

    def fit(self, X: Any, y: Any, environments: Any = None, sample_weight: Any = None) -> Self:
        """Learn from a table, its labels and the environment of each row.

        Parameters
        ----------
        X : array, frame, sparse matrix or Dask collection of shape (n_samples, n_features)
            The features: numbers, text, categories and booleans, missing values among them.
        y : array-like of shape (n_samples,)
            Labels of two classes; the second in order is the positive one.
        environments : array-like of shape (n_samples,), str or list of str, optional
            One hashable label per row, of at least two distinct ones; or the name of the column of
            a frame that holds them, which is then no feature; several columns are joined.
            `SCMClassifier` does not test them and only breaks down its counts by them;
            `ICSCMClassifier` warns without them, since nothing can be tested.
        sample_weight : array-like of shape (n_samples,), optional
            How many samples each row stands for: whole numbers, which act exactly as repeated
            rows (and take their memory).

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
        countable: Countable[Any]
        if is_dask(X):
            from icscm.sources.dask.opening import open_dask  # dask is an extra

            countable = open_dask(X, y, environments, sample_weight, preparation=config)
        else:
            countable = open_memory(X, y, environments, sample_weight, preparation=config)
        return self._fit(countable, config)._keep_series_names(y, environments)

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
        text: TextFormat | None = None,
    ) -> Self:
        """Learn from files that need not fit in memory; the result is that of `fit`.

        Parameters
        ----------
        data : str, Path or pyarrow.dataset.Dataset
            A Parquet or CSV file, or a folder of such files. (The scanner of a `Dataset` that you
            made yourself may hold several row groups.)
        target : str
            The column of labels.
        environments : str, optional
            The column of environments.
        columns : sequence of str, optional
            The columns to make rules of; by default all others.
        positive : object, optional
            The label to be predicted; by default the second in order.
        max_memory : int or str
            Bound on the memory of the whole process, in bytes or as `"2GiB"`.
        temp_dir : str or Path, optional
            Where a byte for each cell is written for the time of the fit.
        text : TextFormat, optional
            How text files are to be read: `icscm.io.formats.TextFormat`.

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
        countable = open_files(
            data,
            target,
            environments,
            columns=columns,
            positive=positive,
            max_memory=max_memory,
            temp_dir=temp_dir,
            text=text,
            preparation=config,
        )
        return self._fit(countable, config)._keep_series_names(target, environments)

    def fit_counts(self, countable: Countable[Any]) -> Self:
        """Learn from samples that were made countable, wherever they lie.

        Parameters
        ----------
        countable : Countable
            What a function such as `icscm.sources.open_sites` returned, for this learner alone;
            it is closed at the end.

        Returns
        -------
        self
            The fitted learner; if anything fails it stays as it was.

        Raises
        ------
        IcscmError
            If the parameters cannot be used, the samples were opened with other settings than
            these parameters, or another learner had them before.
        """
        return self._fit(countable, self.prepare())

    @whole_or_nothing
    def _fit(self, countable: Countable[Any], config: BinningConfig) -> Self:
        countable.mark_used(type(self).__name__, config)
        with countable:
            self._keep_table(countable)
            self._learn(countable)
        self._warn_of_findings()
        return self

    def prepare(self) -> BinningConfig:
        """How a table is to be read and binned for this learner.

        Returns
        -------
        BinningConfig
            For the functions that open a source.

        Raises
        ------
        IcscmError
            If a parameter has a value that is not allowed, or two do not go together.
        """
        check_parameters(self, self._allowed)
        self._check_together()
        own = self.max_thresholds, self.missing, self.keep_columns, self.n_jobs, self.device
        return BinningConfig(*own)

    def _check_together(self) -> None:
        """Raise for parameters that do not go together."""

    def _keep_table(self, countable: Countable[Any]) -> None:
        """Keep what is known of the table."""
        self.classes_ = countable.classes
        self.class_counts_ = freeze_counts(countable.source.count_totals())
        self.n_features_in_ = countable.n_features
        self.environments_ = None
        if countable.has_environments:
            self.environments_ = tuple(countable.source.environments)
        if countable.names is not None:
            self.feature_names_in_ = np.array(countable.names, dtype=object)
        self.left_out_ = {}
        table = countable.table
        if table is not None:
            names = table.names or range(table.n_columns)
            self.feature_types_ = table.list_types()
            self.levels_ = {names[j]: (*b.levels, *b.pool) for j, b in table.levels.items()}
            self.left_out_ = {names[j]: why for j, why in table.dropped.items()}

    def _learn(self, countable: Countable[Any]) -> None:
        """Search the counts, and keep the model and all else that was found."""
        raise NotImplementedError

    def _keep_series_names(self, y: Any, environments: Any) -> Self:  # noqa: ARG002
        """Keep what a report calls the label and the environments."""
        return self

    def _warn_of_findings(self) -> None:
        """Say aloud what a user should not have to look for."""

    def predict(self, X: Any) -> Any:
        """The class of each row: the model's own verdict.

        Environments are never needed to predict. Columns of a frame go by their names, in any
        order, and only those that the model uses are needed.

        Parameters
        ----------
        X : array, frame, sparse matrix or Dask collection of shape (n_samples, n_features)
            The features.

        Returns
        -------
        array of shape (n_samples,)
            One of `classes_` for each row; of a Dask collection a Dask array, computed when
            asked for.

        Raises
        ------
        IcscmError
            If X lacks a column that the model uses.
        """
        check_is_fitted(self, "model_")
        if is_dask(X):
            return self._predict_lazily(self.predict, X, self.classes_[:0])
        verdict = self.model_.predict(self._read_rows(X))
        predicted: Array = self.classes_[verdict.astype(np.intp)]
        return predicted

    def predict_proba(self, X: Any) -> Any:
        """Probability of each class, from the training samples in the row's leaf.

        (count + 1) / (samples + 2), so never 0 or 1. Trees and forests predict the likelier class;
        of a rule set it can lean the other way than `predict`, where a leaf holds more samples of
        the other class than of the one it stands for.

        Parameters
        ----------
        X : array, frame, sparse matrix or Dask collection of shape (n_samples, n_features)
            The features.

        Returns
        -------
        array of shape (n_samples, 2)
            A column for each of `classes_`; of a Dask collection a Dask array.

        Raises
        ------
        IcscmError
            If X lacks a column that the model uses.
        """
        check_is_fitted(self, "model_")
        if is_dask(X):
            return self._predict_lazily(self.predict_proba, X, np.empty((0, 2)))
        positive = self.model_.predict_proba(self._read_rows(X))
        return np.column_stack((1.0 - positive, positive))

    def _predict_lazily(self, method: Callable[[Any], Array], X: Any, like: Array) -> Any:
        """A Dask array: of Dask collections nothing is computed yet."""
        from icscm.sources.dask.frames import predict_lazily

        return predict_lazily(method, X, like)

    def _read_rows(self, X: Any) -> Any:
        rows = read_rows(self, X, self.features_used_)
        if self.missing == "error":
            reject_missing_values(rows, self.rules_)
        return rows

    @property
    def rules_(self) -> tuple[Rule, ...]:
        """The model's rules, in the order in which they were chosen."""
        check_is_fitted(self, "model_")
        rules: tuple[Rule, ...] = self.model_.rules
        return rules

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
            Whether a file of that name may be replaced.

        Raises
        ------
        IcscmError
            If the file is there already, or cannot be written.
        """
        check_is_fitted(self, "model_")
        make_saved_model(self).save(path, force=force)

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        tags.input_tags.allow_nan = self.missing != "error"
        tags.input_tags.categorical = True
        tags.input_tags.string = True
        tags.input_tags.sparse = True
        return tags
