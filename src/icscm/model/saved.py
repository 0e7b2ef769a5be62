"""The model of a fitted learner, as it is saved to a file: all that predicting and explaining need.

fitted learner --make_saved_model--> SavedModel --save--> file --load--> SavedModel
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from os import PathLike
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from icscm._lazy import validation
from icscm._types import Array, FloatArray
from icscm._version import __version__
from icscm.exceptions import IcscmError, Parameter
from icscm.formatting import escape_controls, format_json, make_plain
from icscm.model import older_files, parsing, recalibration
from icscm.model.calibration import Decisions
from icscm.model.forest import Forest, Model
from icscm.model.novelty import Treatment, treat_unknown
from icscm.model.parsing import NUMBER, Feature, Label, WrongFileError, parse_document
from icscm.model.routes import name_unknown_levels
from icscm.model.thresholds import (
    Criterion,
    Threshold,
    find_threshold,
    read_threshold,
    warn_of_shift,
)
from icscm.tables.columns import count_rows, is_frame, list_names
from icscm.tables.labels import check_labels
from icscm.tables.parsing import check_rows
from icscm.writing import check_free, write_text


@dataclass(frozen=True)
class SavedModel:
    """A fitted model apart from the estimator that learned it; `icscm.load` gives one.

    Parameters
    ----------
    model : Tree or Forest
        The rules, and the training counts of their leaves.
    classes : tuple of two labels
        The second is the positive one.
    features : tuple of Feature
        Name and type of every column of the training table; of a packed store, of those in rules.
    environments : tuple of labels, or None
        In the order of the counts; None where none were given.
    settings : mapping
        The learner's parameters as plain values.
    version : str
        Of the package that learned the model.
    fingerprint : str
        Of the training columns' names and types.
    alpha : float or None
        The level of the tests; None where nothing was tested.

    Examples
    --------
    >>> from icscm import SCMClassifier
    >>> learner = SCMClassifier().fit([[20], [70], [70], [65]], ["well", "ill", "ill", "ill"])
    >>> saved = make_saved_model(learner)
    >>> print(saved, saved.predict([[10], [80]]).tolist())
    x0 <= 20 ['well', 'ill']
    """

    model: Model
    classes: tuple[Label, Label]
    features: tuple[Feature, ...]
    environments: tuple[Label, ...] | None
    settings: Mapping[str, Any] = field(hash=False)
    version: str
    fingerprint: str
    alpha: float | None = None

    @property
    def has_names(self) -> bool:
        """Whether columns are found by name, not by position."""
        return not self.features or self.features[0].name is not None

    def predict(self, X: Any, *, unknown: Treatment = "raise") -> Array:
        """Predict the class of each row.

        A level that the column did not have in training is treated as missing, with a warning.

        Parameters
        ----------
        X : array, sparse matrix or frame of shape (n_samples, n_features)
            A frame's columns are found by name: their order does not matter, and those that no
            rule uses need not be there. Others have all the training columns, in their order.
        unknown : {"raise", "allow"}, default="raise"
            What to do where more than half of the rows have an unknown level in a column.

        Returns
        -------
        array of shape (n_samples,)
            One of `classes` for each row.

        Raises
        ------
        IcscmError
            If a column that the model needs is not there, or is not of the type it had; if more
            than half of its rows have an unknown level; if values are missing and the model was
            fitted with `missing="error"`.
        """
        return self.decide(X, unknown=unknown).prediction

    def predict_proba(self, X: Any, *, unknown: Treatment = "raise") -> FloatArray:
        """Predict the probability of each class, from the training rows in the row's leaf.

        Parameters
        ----------
        X : array, sparse matrix or frame of shape (n_samples, n_features)
            As for `predict`.
        unknown : {"raise", "allow"}, default="raise"
            As for `predict`.

        Returns
        -------
        array of shape (n_samples, 2)
            A column for each of `classes`.
        """
        positive = self.decide(X, unknown=unknown).probability
        return np.column_stack((1.0 - positive, positive))

    def explain(self, X: Any) -> Array:
        """Say what decided for each row.

        Parameters
        ----------
        X : array, sparse matrix or frame of shape (n_samples, n_features)
            As for `predict`.

        Returns
        -------
        array of str, of shape (n_samples,)
            Such as `not met: age > 63`; the path of a tree; `63 of 100 trees above 0.5`.
        """
        return self.decide(X).decided_by

    def decide(self, X: Any, *, unknown: Treatment = "raise") -> Decisions:
        """Return prediction, probability of the positive class and what decided, in one pass.

        Parameters
        ----------
        X : array, sparse matrix or frame of shape (n_samples, n_features)
            As for `predict`.
        unknown : {"raise", "allow"}, default="raise"
            As for `predict`.

        Returns
        -------
        Decisions
            A tuple of three arrays: `prediction`, `probability`, `decided_by`.
        """
        with treat_unknown(unknown):
            decisions = self.model.decide(self._check_rows(X))
        classes = np.array(self.classes)
        if classes.tolist() != list(self.classes):  # NumPy's text drops trailing NULs
            classes = np.array(self.classes, dtype=object)
        is_positive = decisions.prediction
        return decisions._replace(prediction=classes[is_positive.astype(np.intp)])

    def find_unknown_levels(self, X: Any) -> Array:
        """Find the columns of each row that have a level which training did not have.

        Parameters
        ----------
        X : array, sparse matrix or frame of shape (n_samples, n_features)
            As for `predict`.

        Returns
        -------
        array of str, of shape (n_samples,)
            Such as `sex, smoker`; empty where there is none. Exports return it as
            `unknown_levels`.
        """
        model = self.model
        return name_unknown_levels(self._check_rows(X), model.rules, model.training_values)

    @property
    def knows_levels(self) -> bool:
        """Whether the levels that training had are known of any column that the rules use."""
        used_columns = {rule.column for rule in self.model.rules}
        return any(
            values.levels is not None and values.column in used_columns
            for values in self.model.training_values
        )

    def list_unknowable(self) -> list[str | int]:
        """List the columns of categories of which the levels in training are not known.

        Returns
        -------
        list
            Columns of models that were saved before version 0.4, and those of very many levels: in
            them no level is told to be unknown.
        """
        known_columns = {
            values.column for values in self.model.training_values if values.levels is not None
        }
        return list(
            dict.fromkeys(
                rule.feature
                for rule in self.model.rules
                if self.features[rule.column].type == parsing.CATEGORY
                and rule.column not in known_columns
            )
        )

    def recalibrate(
        self, X: Any = None, y: Any = None, *, prevalence: float | None = None
    ) -> "SavedModel":
        """Move the model to a site, by labelled rows of it or by its base rate.

        The intercept of the log odds is shifted, by maximum likelihood with Jeffreys' prior, shrunk
        towards 0 as if sites varied by 0.5; from 100 rows of each class on, the slope, too. With
        `prevalence`, the mean for X becomes that; without X, the base rate shifts the log odds.

        Parameters
        ----------
        X : array, sparse matrix or frame of shape (n_samples, n_features), optional
            Rows of the site, as for `predict`.
        y : array-like of shape (n_samples,), optional
            Their classes.
        prevalence : float, optional
            Share of the positive class at the site.

        Returns
        -------
        SavedModel
            With another `calibration`; `settings["recalibration"]` has the shift and its interval.

        Raises
        ------
        IcscmError
            Unless either X and y or the prevalence are given; if y holds other classes.
        """
        model, shift = recalibration.move(self, X, y, prevalence)
        settings = dict(self.settings) | {"recalibration": shift._asdict()}
        warn_of_shift(model.threshold, settings.get("threshold"))
        return replace(self, model=model, settings=settings)

    def find_leaves(self, X: Any) -> NDArray[np.intp]:
        """Find the number of the leaf that each row falls in.

        Parameters
        ----------
        X : array, sparse matrix or frame of shape (n_samples, n_features)
            As for `predict`.

        Returns
        -------
        array of int, of shape (n_samples,)
            From 0, as in `model.leaves`.

        Raises
        ------
        IcscmError
            As `predict` does, and for a forest, which has no single set of leaves.
        """
        if isinstance(self.model, Forest):
            raise IcscmError(
                "a forest has no single set of leaves; use one of its trees: "
                "model.trees[0].find_leaves(X)"
            )
        return self.model.find_leaves(self._check_rows(X))

    def set_threshold(self, threshold: float | str, X: Any = None, y: Any = None) -> "SavedModel":
        """Return the same model, predicting positive from a probability on.

        Parameters
        ----------
        threshold : float or str
            A number; `"costs=1:10"`, the costs of a false positive and of a false negative; or
            `"youden"`, `"sensitivity=0.95"` or `"specificity=0.9"`, chosen on X and y.
        X, y : as for `predict`, and array of shape (n_samples,), optional
            Labelled rows that the model was not learned from, or the choice is optimistic.
            `icscm.validation.tuning.choose_threshold` chooses on training rows by cross-fitting.

        Returns
        -------
        SavedModel
            With `model.threshold`; probabilities stay as they are.

        Raises
        ------
        IcscmError
            If the threshold is not one of these, or is to be chosen without rows of both classes.
        """
        wanted = read_threshold(threshold)
        if isinstance(wanted, Criterion):
            chosen_by = {"threshold": {"criterion": str(threshold)}}
            smallest_positive = self._choose_threshold(wanted, threshold, X, y)
        else:
            chosen_by = _describe_threshold(threshold)
            smallest_positive = wanted

        other_settings = {
            name: value for name, value in self.settings.items() if name != "threshold"
        }
        return replace(
            self,
            model=replace(self.model, threshold=smallest_positive),
            settings=other_settings | chosen_by,
        )

    def _choose_threshold(
        self, criterion: Criterion, threshold: float | str, X: Any, y: Any
    ) -> float:
        """Choose a threshold by a criterion, on labelled rows."""
        if X is None or y is None:
            raise IcscmError(
                Parameter("threshold", threshold),
                " needs labelled rows: pass X and y that the model was not learned from",
            )
        codes, labels = check_labels(y, count_rows(X))
        is_positive = (labels == self.classes[1])[codes]
        return find_threshold(criterion, is_positive, self.decide(X).probability)

    def _check_rows(self, X: Any) -> Any:
        """Return X as rules can read it, checked as estimators check theirs."""
        names = [feature.name for feature in self.features if feature.name is not None]
        rejects_missing = self.settings.get("missing") == "error"  # an option until 0.3
        return check_rows(
            X,
            self.model.rules,
            self._validate,
            names or None,
            allow_missing=not rejects_missing,
        )

    def _validate(self, X: Any, *, skip_check_array: bool = False, **options: Any) -> Any:
        """Check columns that go by position, as scikit-learn's `validate_data` would."""
        try:
            table = X if skip_check_array else validation.check_array(X, input_name="X", **options)
        except ValueError as error:
            raise IcscmError(str(error)) from None
        n_columns = len(list_names(X)) if is_frame(X) else table.shape[1]
        if self.features and n_columns != len(self.features):
            raise IcscmError(
                f"X has {n_columns:,} columns but the model was fitted on {len(self.features):,}; "
                "columns without names are found by position, so give all, in the same order"
            )
        return table

    def to_dict(self) -> dict[str, Any]:
        """Return the content of the file.

        Returns
        -------
        dict
            Plain values, as JSON knows them.
        """
        return {
            "format": parsing.FORMAT,
            "schema": older_files.PRESENT_SCHEMA,
            "version": self.version,
            "model": self.model.to_dict(),
            "classes": list(self.classes),
            "features": [{"name": name, "type": kind} for name, kind in self.features],
            "environments": None if self.environments is None else list(self.environments),
            "settings": dict(self.settings),
            "alpha": self.alpha,
            "fingerprint": self.fingerprint,
        }

    def save(self, path: str | PathLike[str], *, force: bool = False) -> None:
        """Write the model to a file, whole or not at all.

        Parameters
        ----------
        path : str or path
            The file to write.
        force : bool, default=False
            Whether a file of that name may be replaced.

        Raises
        ------
        IcscmError
            If the file is there already or cannot be written, or would not read back the same.
        """
        path = Path(path)
        check_free(path, force=force)
        write_text(path, self.to_json())

    def to_json(self) -> str:
        """Return the text of the file.

        Returns
        -------
        str
            What `save` writes.

        Raises
        ------
        IcscmError
            If it would not read back the same.
        """
        text = format_json(self.to_dict())
        try:
            parsing.check_size(len(text.encode()))
            read_back = SavedModel(**parse_document(text))
        except WrongFileError as wrong:
            raise IcscmError(f"this model cannot be saved: {wrong}") from None
        # levels and ranges of training do not count for equality
        is_same_training = read_back.model.training_values == self.model.training_values
        if read_back != self or not is_same_training:
            raise IcscmError(
                "this model cannot be saved: a name, level or label with surrogates in pairs would "
                "not read back the same; rename it"
            )
        return text

    def __str__(self) -> str:
        return str(self.model)


def load(path: str | PathLike[str]) -> "SavedModel":
    """Read the model that `save` wrote to a file.

    Parameters
    ----------
    path : str or path
        The file. It may come from an untrusted source: nothing in it is executed.

    Returns
    -------
    SavedModel
        It predicts and explains as the estimator did.

    Raises
    ------
    IcscmError
        If the file is not an icscm model; no other error is raised.

    Examples
    --------
    >>> import tempfile
    >>> from icscm import SCMClassifier, load
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     SCMClassifier().fit([[0], [1]], ["no", "yes"]).save(f"{folder}/model.json")
    ...     print(load(f"{folder}/model.json").predict([[1], [0]]))
    ['yes' 'no']
    """
    shown = escape_controls(str(path))
    try:
        return SavedModel(**parse_document(parsing.read_file(Path(path))))
    except WrongFileError as wrong:
        raise IcscmError(f"{shown} is not an icscm model: {wrong}") from None
    except MemoryError:
        raise IcscmError(
            f"{shown} needs more memory than is available; load it on a larger machine"
        ) from None


def get_table_settings(saved: "SavedModel") -> dict[str, Any]:
    """Return the settings of the file that `icscm fit` read; models from Python have none."""
    settings = saved.settings.get("table")
    return settings if isinstance(settings, dict) else {}


def list_missing_texts(settings: Mapping[str, Any]) -> list[str]:
    """The texts that a user declared as missing for `icscm fit`."""
    known = settings.get("na")
    return [text for text in known if isinstance(text, str)] if isinstance(known, list) else []


def list_used(saved: "SavedModel") -> list[str]:
    """The columns that the rules use."""
    return list(dict.fromkeys(str(rule.feature) for rule in saved.model.rules))


# A fitted learner of `icscm.estimators`, which this layer does not import.
Learner = Any


@runtime_checkable
class LearnsFromCounts(Protocol):
    """What tells a learner of this package from others, fitted or not."""

    def fit_counts(self, countable: Any) -> Any:
        """Learn from rows that were opened before."""


class SavableLearner(Protocol):
    """What a model file is made from: a fitted learner of this package."""

    @property
    def model_(self) -> Model:
        """The model that was learned."""

    @property
    def classes_(self) -> Array:
        """The two classes; the second is the positive one."""

    @property
    def environments_(self) -> Sequence[Any] | None:
        """The environments in the order of the counts; None where none were given."""

    @property
    def _test_level(self) -> float | None:
        """The level of the tests; None where nothing was tested."""

    def _list_features(self) -> tuple[Feature, ...] | None:
        """List the columns of the table; None of a packed store, which has too many."""

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the parameters by name."""


def check_learner(estimator: Any) -> None:
    """Raise unless it is a learner of this package: others do not learn from counts."""
    if not isinstance(estimator, LearnsFromCounts):
        raise IcscmError(
            "estimator must be an ICSCMClassifier, SCMClassifier, InvariantTreeClassifier, "
            f"InvariantForestClassifier or InvariantScoreClassifier; got {type(estimator).__name__}"
        )


def check_fitted(learner: Any) -> None:
    """Raise unless it is a fitted learner of this package."""
    check_learner(learner)
    validation.check_is_fitted(learner, "model_")


def make_saved_model(learner: SavableLearner) -> "SavedModel":
    """Return the model of a fitted learner, with all that predicting and explaining need."""
    check_fitted(learner)
    described = _describe_columns(learner)
    environments = learner.environments_
    try:
        # What could not be read back is not saved.
        reader = parsing.ModelReader(described.features, environments)
        model = reader.read_model(make_plain(described.model.to_dict()), "model")
    except WrongFileError as wrong:
        raise IcscmError(f"this model cannot be saved: {wrong}") from None

    alpha = learner._test_level
    return SavedModel(
        model=model,
        classes=_check_classes(learner.classes_),
        features=described.features,
        environments=None if environments is None else tuple(map(make_label, environments)),
        settings=_list_settings(learner),
        version=__version__,
        fingerprint=parsing.compute_fingerprint(described.features),
        alpha=None if alpha is None else float(alpha),
    )


@dataclass(frozen=True)
class _DescribedModel:
    """A model, and the columns that its rules refer to by their positions."""

    model: Model
    features: tuple[Feature, ...]


def _describe_columns(learner: SavableLearner) -> _DescribedModel:
    """Return a learner's model with the columns of its table.

    A packed store has millions of columns, so its models are saved with those that rules use. These
    get the numbers 0, 1, 2 ..., also in the rules.
    """
    model = learner.model_
    features = learner._list_features()
    if features is not None:
        return _DescribedModel(model=model, features=features)

    name_of_column = {rule.column: rule.name for rule in model.rules}
    used_columns = sorted(name_of_column)
    new_number = {column: number for number, column in enumerate(used_columns)}
    return _DescribedModel(
        model=model.replace_rules(lambda rule: replace(rule, column=new_number[rule.column])),
        features=tuple(Feature(name_of_column[column], NUMBER) for column in used_columns),
    )


def _check_classes(classes: Array) -> tuple[Label, Label]:
    """Return the two classes of a learner; raise for labels that a model file cannot hold."""
    negative, positive = classes.tolist()
    for label in (negative, positive):
        if not isinstance(label, Label):
            raise IcscmError(
                "a model file holds classes that are text, numbers or booleans, not "
                f"{label!r}; fit with such labels"
            )
    return negative, positive


def _list_settings(learner: SavableLearner) -> dict[str, Any]:
    """Return the parameters of a learner as plain values, and how its threshold was chosen."""
    settings = dict(learner.get_params(deep=False))
    settings.pop("device", None)  # the result does not depend on where rows were counted
    plain: dict[str, Any] = make_plain(settings | _describe_threshold(learner.model_.threshold))
    return plain


def _describe_threshold(threshold: Any) -> dict[str, Any]:
    """Return the setting that says how a threshold was chosen; none if it was a plain number."""
    if not isinstance(threshold, Threshold) or threshold.criterion is None:
        return {}
    return {"threshold": vars(threshold)}


def make_label(label: Any) -> Label:
    """Return a label as the model file holds it: text, a number or a boolean."""
    plain = make_plain(label, str)
    return plain if isinstance(plain, Label) else str(label)
