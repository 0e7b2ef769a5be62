"""Learners for the screen that take frames as they are: categories, text, missing values.

The screen cross-fits a learner many times, on any table that a user may have. `TableClassifier`
encodes what is no number and is fast on small tables; `make_estimator` makes it, or a learner of
the user, from a name on the command line.
"""

from importlib import import_module
from inspect import isclass
from typing import Any, Final, Self

import numpy as np
from sklearn.base import (
    BaseEstimator,
    ClassifierMixin,
    RegressorMixin,
    TransformerMixin,
    is_regressor,
)
from sklearn.utils import Tags
from threadpoolctl import threadpool_limits

from icscm._types import Array, BoolArray, FloatArray
from icscm.exceptions import IcscmError
from icscm.tables.columns import is_frame, open_frame

# Boosting takes at most 255 levels of a category; rarer ones are pooled.
MAX_LEVELS: Final = 249
# Cells of a table from which on threads save time.
MIN_THREADED_CELLS: Final = 1_000_000
# The kinds of `TableLearner` in words; a linear one of numbers is `RIDGE`.
LEARNER_NAMES: Final = {
    "hgb": "histogram gradient boosting",
    "linear": "logistic regression",
    "logistic": "logistic regression",
    "tree": "a tree of 64 leaves",
}
RIDGE: Final = "ridge regression"


def limit_threads(n_cells: int) -> Any:
    """Use one OpenMP thread for a small table: more are slower, in particular on busy cores."""
    n_threads = 1 if n_cells < MIN_THREADED_CELLS else None
    return threadpool_limits(n_threads, "openmp")


class TableLearner(BaseEstimator):  # type: ignore[misc]
    """A learner behind an encoding of the columns that are no numbers.

    Parameters
    ----------
    kind : {"hgb", "linear", "tree"}
        Histogram gradient boosting of 80 rounds; a linear model of one-hot levels and scaled
        numbers, with medians for missing values and an indicator; one tree of 64 leaves.
    random_state : int, RandomState or None
        Random seed of the learner.
    """

    def __init__(self, kind: str = "hgb", random_state: Any = None) -> None:
        self.kind = kind
        self.random_state = random_state

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Encode the columns and fit the learner."""
        table = as_table(X)
        self._is_text = find_text(table)
        pipeline = self._make_pipeline()
        name = pipeline.steps[-1][0]
        options = {} if sample_weight is None else {f"{name}__sample_weight": sample_weight}
        with limit_threads(table.size):
            self.pipeline_ = pipeline.fit(table, y, **options)
        if self.kind == "hgb":
            # It would encode the categories again: to the same numbers, and for as long as it takes
            # to predict.
            self.pipeline_[-1]._preprocessor = None
        return self

    def _make_pipeline(self) -> Any:
        """Make the learner of this kind, behind the encoding that it needs."""
        is_number = is_regressor(self)
        if self.kind in ("linear", "logistic"):
            return make_linear(self._is_text, self.random_state, is_number=is_number)
        if self.kind == "tree":
            return make_tree(self._is_text, self.random_state, is_number=is_number)
        return make_boosting(self._is_text, self.random_state, is_number=is_number)

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        return tags


class TableClassifier(ClassifierMixin, TableLearner):  # type: ignore[misc]
    """A `TableLearner` of classes; its linear kind, a logistic regression, is also `"logistic"`."""

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Encode the columns and fit the learner."""
        super().fit(X, y, sample_weight)
        self.classes_ = self.pipeline_.classes_
        return self

    def predict_proba(self, X: Any) -> FloatArray:
        """Predict the probability of each class."""
        table = as_table(X)
        with limit_threads(table.size):
            probabilities: FloatArray = self.pipeline_.predict_proba(table)
        return probabilities

    def predict(self, X: Any) -> Array:
        """Predict the likelier class."""
        likelier = self.predict_proba(X).argmax(axis=1)
        return np.asarray(self.classes_[likelier])


class TableRegressor(RegressorMixin, TableLearner):  # type: ignore[misc]
    """A `TableLearner` of numbers; its linear kind is a ridge regression."""

    def predict(self, X: Any) -> FloatArray:
        """Predict the number of each row."""
        table = as_table(X)
        with limit_threads(table.size):
            numbers: FloatArray = self.pipeline_.predict(table)
        return numbers


def make_linear(is_text: BoolArray, random_state: Any, *, is_number: bool) -> Any:
    """Make a linear model: levels of 10 rows or more one-hot, numbers scaled."""
    from sklearn.compose import ColumnTransformer
    from sklearn.impute import SimpleImputer
    from sklearn.linear_model import LogisticRegression, Ridge
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import OneHotEncoder, StandardScaler

    impute = SimpleImputer(strategy="median", add_indicator=True, keep_empty_features=True)
    scale_numbers = make_pipeline(impute, StandardScaler())
    encode_text = OneHotEncoder(handle_unknown="ignore", min_frequency=10)
    encode = ColumnTransformer(
        [
            ("text", encode_text, is_text),
            ("numbers", scale_numbers, np.flatnonzero(~is_text)),
        ]
    )
    if is_number:
        return make_pipeline(encode, Ridge())
    return make_pipeline(encode, LogisticRegression(max_iter=300, random_state=random_state))


def make_tree(is_text: BoolArray, random_state: Any, *, is_number: bool) -> Any:
    """Make a tree of 64 leaves, in which a level counts as its number."""
    from sklearn.pipeline import make_pipeline
    from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

    make = DecisionTreeRegressor if is_number else DecisionTreeClassifier
    tree = make(max_leaf_nodes=64, min_samples_leaf=20, random_state=random_state)
    return make_pipeline(LevelEncoder(is_text), tree)


def make_boosting(is_text: BoolArray, random_state: Any, *, is_number: bool) -> Any:
    """Make histogram gradient boosting, in which levels are categories."""
    from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor
    from sklearn.pipeline import make_pipeline

    n_text = int(is_text.sum())
    make = HistGradientBoostingRegressor if is_number else HistGradientBoostingClassifier
    boosting = make(
        max_iter=80,
        categorical_features=np.arange(n_text),  # the encoder puts them first
        early_stopping=False,
        random_state=random_state,
    )
    return make_pipeline(LevelEncoder(is_text), boosting)


class LevelEncoder(TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Replaces levels of text columns by numbers; these columns come first, then all others.

    scikit-learn's `OrdinalEncoder` gives the same numbers, in many times the time for categories of
    pandas.
    """

    def __init__(self, is_text: Array) -> None:
        self.is_text = is_text

    def fit(self, X: Any, _y: Any = None) -> Self:
        """Number the levels in their order; where they are many, the rare ones share the last."""
        import pandas

        frame = pandas.DataFrame(X)
        self.levels_ = []
        self.numbers_ = []
        for column in np.flatnonzero(self.is_text):
            counts = frame.iloc[:, column].astype(object).value_counts().sort_index()
            rarest_first = np.argsort(counts.to_numpy(), kind="stable")
            is_rare = np.ones(len(counts), dtype=np.bool_)
            is_rare[rarest_first[-MAX_LEVELS:]] = False

            numbers = np.where(is_rare, MAX_LEVELS, np.cumsum(~is_rare) - 1)
            self.levels_.append(counts.index)
            # missing values, and levels that were not there at fitting, have the code -1: the last
            self.numbers_.append(np.append(numbers, np.nan))
        # boosting cannot bin a column without any value
        self.is_empty_ = frame.iloc[:, np.flatnonzero(~self.is_text)].isna().all().to_numpy()
        return self

    def transform(self, X: Any) -> FloatArray:
        """Return the table as numbers (row, column)."""
        import pandas

        frame = pandas.DataFrame(X)
        text_columns = np.flatnonzero(self.is_text)
        number_columns = np.flatnonzero(~self.is_text)

        table: FloatArray = np.empty(frame.shape)
        for position, column in enumerate(text_columns):
            categories = self.levels_[position]
            codes = code_levels(frame.iloc[:, column], categories)
            table[:, position] = self.numbers_[position][codes]
        numbers = frame.iloc[:, number_columns].to_numpy(dtype=float, na_value=np.nan)
        table[:, len(text_columns) :] = np.where(self.is_empty_, 0.0, numbers)
        return table


def code_levels(column: Any, levels: Any) -> Array:
    """Return the position of each row's level among the levels; -1 if it is not there, or missing.

    A category of pandas has codes already, so that only its levels need to be looked up.
    """
    import pandas

    if isinstance(column.dtype, pandas.CategoricalDtype):
        return np.asarray(column.cat.set_categories(levels).cat.codes)
    return np.asarray(levels.get_indexer(column.astype(object)))


def as_table(X: Any) -> Any:
    """Return an array as it is, and any kind of frame as a pandas frame."""
    return open_frame(X).to_pandas() if is_frame(X) else X


def find_text(X: Any) -> BoolArray:
    """Return which columns hold something else than numbers."""
    if is_frame(X):
        from pandas.api.types import is_numeric_dtype

        return np.array([not is_numeric_dtype(dtype) for dtype in X.dtypes], dtype=np.bool_)
    is_text = isinstance(X, np.ndarray) and X.dtype.kind in "OUS"
    return np.full(np.shape(X)[1], is_text)


# --- learners by name -----------------------------------------------------------------------------


def make_estimator(name: str, random_state: Any = None, *, is_number: bool = False) -> Any:
    """Make a learner by name: hgb, linear (or logistic), tree, or the user's `module:Class`.

    A class gets numbers for categories, since most learners take no text; what a function
    returns gets the table as it is.
    """
    if is_number and name in ("hgb", "linear", "tree"):
        return TableRegressor(name, random_state)
    if is_number and name == "logistic":
        raise IcscmError("logistic regression predicts classes, not a number; use linear")
    if name in ("hgb", "linear", "logistic", "tree"):
        return TableClassifier(name, random_state)

    maker = import_maker(name)
    try:
        learner = maker()
    except (ImportError, AttributeError, TypeError, ValueError) as error:
        raise IcscmError(f"{name!r} cannot be imported or constructed: {error}") from None
    check_learner(name, learner, is_number=is_number)
    if not isclass(maker):
        return learner

    if "random_state" in learner.get_params():
        learner.set_params(random_state=random_state)
    return encode_categories(learner)


def check_learner(name: str, learner: Any, *, is_number: bool) -> None:
    """Raise unless a learner of the user predicts what the outcome is: numbers, or classes."""
    if is_number and not is_regressor(learner):
        raise IcscmError(f"{name!r} is no regressor, and the outcome is a number")
    if is_number:
        return
    if not hasattr(learner, "predict_proba") and not hasattr(learner, "decision_function"):
        raise IcscmError(f"{name!r} is not a classifier with predict_proba or decision_function")


def import_maker(name: str) -> Any:
    """Import the class or function that `module:Class` names."""
    module, _, attribute = name.partition(":")
    if not attribute:
        raise IcscmError(
            f"{name!r} is not an estimator: give hgb, linear, logistic, tree, or module:Class, "
            "such as lightgbm:LGBMClassifier"
        )
    try:
        return getattr(import_module(module), attribute)
    except (ImportError, AttributeError, TypeError, ValueError) as error:
        raise IcscmError(f"{name!r} cannot be imported or constructed: {error}") from None


def encode_categories(learner: Any) -> Any:
    """Put a learner behind an encoding of categories as numbers; -1 is unknown or missing."""
    from sklearn.compose import make_column_selector, make_column_transformer
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import OrdinalEncoder

    encode_text = OrdinalEncoder(
        handle_unknown="use_encoded_value", unknown_value=-1, encoded_missing_value=-1
    )
    text_columns = make_column_selector(dtype_exclude=["number", "bool"])
    encode = make_column_transformer((encode_text, text_columns), remainder="passthrough")
    return make_pipeline(encode, learner)


def name_learner(estimator: Any) -> str:
    """Return the learner of a screen in words, of a pipeline its last step.

    None stands for the default, histogram gradient boosting.
    """
    is_pipeline = hasattr(estimator, "steps")  # its class is slow to import
    learner = estimator[-1] if is_pipeline else estimator
    if learner is None:
        return LEARNER_NAMES["hgb"]
    if isinstance(learner, TableRegressor) and learner.kind == "linear":
        return RIDGE
    if isinstance(learner, TableLearner):
        return LEARNER_NAMES[learner.kind]
    return type(learner).__name__
