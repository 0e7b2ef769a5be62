"""Learners for the screen that take frames as they are: categories, text, missing values."""

from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, TransformerMixin
from threadpoolctl import threadpool_limits

from icscm._types import Array, FloatArray
from icscm.tables.columns import is_frame, open_frame, take_columns

# Boosting takes at most 255 levels of a category; rarer ones are pooled.
_MAX_LEVELS = 249
# Cells of a table from which on threads save time.
_MIN_THREADED = 1_000_000


def limit_threads(n_cells: int) -> Any:
    """One OpenMP thread for small tables: more are slower, in particular on busy cores."""
    return threadpool_limits(1 if n_cells < _MIN_THREADED else None, "openmp")


class TableClassifier(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """A learner behind an encoding of the columns that are no numbers.

    `kind` is `"hgb"` (histogram gradient boosting, 80 rounds), `"logistic"` (one-hot, scaled,
    medians for missing values with an indicator) or `"tree"` (one tree of 64 leaves). It uses
    all columns, or those at the positions `columns`.
    """

    def __init__(self, kind: str = "hgb", random_state: Any = None, columns: Any = None) -> None:
        self.kind = kind
        self.random_state = random_state
        self.columns = columns

    def fit(self, X: Any, y: Any) -> Self:
        """Encode and fit."""
        X = self._bring(X)
        self._is_text = _find_text(X)
        with limit_threads(X.size):
            self.pipeline_ = self._make_pipeline().fit(X, y)
        if self.kind == "hgb":  # its own codes are the same, and take as long as predicting
            self.pipeline_[-1]._preprocessor = None
        self.classes_ = self.pipeline_.classes_
        return self

    def predict_proba(self, X: Any) -> FloatArray:
        """Probability of each class."""
        X = self._bring(X)
        with limit_threads(X.size):
            chance: FloatArray = self.pipeline_.predict_proba(X)
        return chance

    def predict(self, X: Any) -> Array:
        """The likelier class."""
        return np.asarray(self.classes_[self.predict_proba(X).argmax(axis=1)])

    def _bring(self, X: Any) -> Any:
        """The columns used, a pandas frame of any frame."""
        if self.columns is not None:
            X = take_columns(X, self.columns)
        return open_frame(X).to_pandas() if is_frame(X) else X

    def _make_pipeline(self) -> Any:
        from sklearn.compose import ColumnTransformer
        from sklearn.ensemble import HistGradientBoostingClassifier
        from sklearn.impute import SimpleImputer
        from sklearn.linear_model import LogisticRegression
        from sklearn.pipeline import make_pipeline
        from sklearn.preprocessing import OneHotEncoder, StandardScaler
        from sklearn.tree import DecisionTreeClassifier

        seed, text, numbers = self.random_state, self._is_text, np.flatnonzero(~self._is_text)
        if self.kind == "logistic":
            known = SimpleImputer(strategy="median", add_indicator=True, keep_empty_features=True)
            encoders = [
                ("text", OneHotEncoder(handle_unknown="ignore", min_frequency=10), text),
                ("numbers", make_pipeline(known, StandardScaler()), numbers),
            ]
            encode = ColumnTransformer(encoders)
            return make_pipeline(encode, LogisticRegression(max_iter=300, random_state=seed))
        encode = LevelEncoder(text)
        if self.kind == "tree":
            tree = DecisionTreeClassifier(max_leaf_nodes=64, min_samples_leaf=20, random_state=seed)
            return make_pipeline(encode, tree)
        first = np.arange(int(text.sum()))
        boosting = HistGradientBoostingClassifier(
            max_iter=80, categorical_features=first, early_stopping=False, random_state=seed
        )
        return make_pipeline(encode, boosting)


class LevelEncoder(TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Numbers of the levels of text columns, which come first, and the other columns as they are.

    What scikit-learn's `OrdinalEncoder` gives, in a fraction of the time for categories of pandas.
    """

    def __init__(self, is_text: Array) -> None:
        self.is_text = is_text

    def fit(self, X: Any, _y: Any = None) -> Self:
        """Number the levels in their order; rare ones, where there are many, share the last."""
        import pandas

        self.levels_, self.numbers_ = [], []
        for j in np.flatnonzero(self.is_text):
            counts = pandas.DataFrame(X).iloc[:, j].astype(object).value_counts().sort_index()
            is_rare = np.ones(len(counts), dtype=np.bool_)
            is_rare[np.argsort(counts.to_numpy(), kind="stable")[-_MAX_LEVELS:]] = False
            numbers = np.where(is_rare, _MAX_LEVELS, np.cumsum(~is_rare) - 1)
            self.levels_.append(counts.index)
            self.numbers_.append(np.append(numbers, np.nan))  # -1: missing, or not seen in fit
        return self

    def transform(self, X: Any) -> FloatArray:
        """Numbers of shape (row, column)."""
        import pandas

        frame, text = pandas.DataFrame(X), np.flatnonzero(self.is_text)
        table: FloatArray = np.empty(frame.shape)
        for place, j in enumerate(text):
            codes = pandas.Categorical(frame.iloc[:, j], categories=self.levels_[place]).codes
            table[:, place] = self.numbers_[place][codes]
        others = frame.iloc[:, np.flatnonzero(~self.is_text)]
        table[:, len(text) :] = others.to_numpy(dtype=float, na_value=np.nan)
        return table


def _find_text(X: Any) -> Array:
    """Which columns hold no numbers."""
    if not is_frame(X):
        is_text = isinstance(X, np.ndarray) and X.dtype.kind in "OUS"
        return np.full(np.shape(X)[1], is_text)
    from pandas.api.types import is_numeric_dtype

    return np.array([not is_numeric_dtype(each) for each in X.dtypes], dtype=np.bool_)


def make_estimator(name: str, random_state: Any = None) -> Any:
    """A learner by name: hgb, logistic, tree, or the user's `module:Class`.

    A class gets numbers for categories, since most classifiers take no text; what a function
    returns gets the table as it is.
    """
    from importlib import import_module
    from inspect import isclass

    from sklearn.compose import make_column_selector, make_column_transformer
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import OrdinalEncoder

    from icscm.exceptions import IcscmError

    if name in ("hgb", "logistic", "tree"):
        return TableClassifier(name, random_state)
    module, _, attribute = name.partition(":")
    if not attribute:
        raise IcscmError(
            f"{name!r} is not an estimator: give hgb, logistic, tree, or module:Class, "
            "such as lightgbm:LGBMClassifier"
        )
    try:
        maker = getattr(import_module(module), attribute)
        learner = maker()
    except (ImportError, AttributeError, TypeError, ValueError) as error:
        raise IcscmError(f"{name!r} cannot be imported or constructed: {error}") from None
    if not hasattr(learner, "predict_proba") and not hasattr(learner, "decision_function"):
        raise IcscmError(f"{name!r} is not a classifier with predict_proba or decision_function")
    if not isclass(maker):
        return learner
    if "random_state" in learner.get_params():
        learner.set_params(random_state=random_state)
    codes = OrdinalEncoder(
        handle_unknown="use_encoded_value", unknown_value=-1, encoded_missing_value=-1
    )
    text = make_column_selector(dtype_exclude=["number", "bool"])
    return make_pipeline(make_column_transformer((codes, text), remainder="passthrough"), learner)
