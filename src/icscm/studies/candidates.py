"""What is set side by side: our learners, and scikit-learn's on the same table, made ready once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from sklearn.base import BaseEstimator, TransformerMixin

from icscm._types import Array, IntArray
from icscm.estimators.cover import ICSCMClassifier, SCMClassifier
from icscm.estimators.forest import InvariantForestClassifier
from icscm.estimators.tree import InvariantTreeClassifier
from icscm.exceptions import IcscmError
from icscm.io.naming import suggest
from icscm.studies.classifiers import check_classifier
from icscm.tables.columns import (
    Column,
    Level,
    Levels,
    Numbers,
    is_frame,
    open_frame,
    read_column,
    read_numbers,
    read_series,
    sort_key,
)

if TYPE_CHECKING:
    import pandas

CONSTANT = "constant"
# Of ours: the names, and what sets each apart from the defaults.
_RULES: dict[str, tuple[type[SCMClassifier | ICSCMClassifier], dict[str, Any]]] = {
    "scm": (SCMClassifier, {}),
    "icscm": (ICSCMClassifier, {}),
    "icscm-exhaustive": (ICSCMClassifier, {"search": "exhaustive"}),
    "icscm-equivalence": (ICSCMClassifier, {"criterion": "equivalence"}),
}
_GROWN = "invariant-tree", "invariant-forest"
_OTHERS = "tree", "forest", "logistic", "boosting"
# With and without "-or": positive where any rule is true, or where all are.
NAMES = (CONSTANT, *(f"{name}{end}" for name in _RULES for end in ("", "-or")), *_GROWN, *_OTHERS)

# A level that fewer of the rows have is pooled with others; boosting bins at most 255.
_RARE, _RARE_IN_BOOSTING, _MOST_LEVELS = 0.01, 0.001, 250


def choose_candidates(
    chosen: Sequence[str] | Mapping[str, Any] | None, keep_columns: Any = None
) -> dict[str, Any]:
    """Candidates by their names, the constant first: all, those named, or a caller's own."""
    if not isinstance(chosen, Mapping):
        own = make_candidates(keep_columns)
        names = list(own if chosen is None else chosen)
        for name in names:
            if name not in own:
                raise IcscmError(f"there is no candidate {name!r}{suggest(name, list(own))}")
        chosen = {name: own[name] for name in names}
    for name, estimator in chosen.items():
        check_classifier(estimator, f"candidate {name!r}")
    return {CONSTANT: _make_constant()} | dict(chosen)


def make_candidates(keep_columns: Any = None) -> dict[str, Any]:
    """Every candidate, unfitted, by its name.

    All take tables of any kind, with numbers, categories and missing values. Those that are not
    ours see categories of which rare levels are pooled; all but boosting as a column for each
    level, and numbers with the median where one is missing, and a column that tells.
    """
    found = {CONSTANT: _make_constant()}
    for name, (learner, settings) in _RULES.items():
        for end, kind in (("", "conjunction"), ("-or", "disjunction")):
            own = {"model_type": kind, "keep_columns": keep_columns}
            found[name + end] = learner(**settings, **own)
    found["invariant-tree"] = InvariantTreeClassifier(keep_columns=keep_columns)
    found["invariant-forest"] = InvariantForestClassifier(keep_columns=keep_columns, random_state=0)
    return found | _make_others()


def _make_constant() -> Any:
    from sklearn.dummy import DummyClassifier

    return DummyClassifier(strategy="prior")


def _make_others() -> dict[str, Any]:
    from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.tree import DecisionTreeClassifier

    tree = DecisionTreeClassifier(max_leaf_nodes=16, min_samples_leaf=0.01, random_state=0)
    forest = RandomForestClassifier(100, min_samples_leaf=5, random_state=0, n_jobs=-1)
    boosting = HistGradientBoostingClassifier(categorical_features="from_dtype", random_state=0)
    return {
        "tree": make_pipeline(TableReader(), _make_encoder(), tree),
        "forest": make_pipeline(TableReader(), _make_encoder(), forest),
        "logistic": make_pipeline(
            TableReader(), _make_encoder(), LogisticRegression(max_iter=1000)
        ),
        "boosting": make_pipeline(TableReader(_RARE_IN_BOOSTING), boosting),
    }


def _make_encoder() -> Any:
    """Categories as a column for each level, numbers filled in and scaled."""
    from sklearn.compose import make_column_selector, make_column_transformer
    from sklearn.impute import SimpleImputer
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import OneHotEncoder, StandardScaler

    fill = SimpleImputer(strategy="median", add_indicator=True, keep_empty_features=True)
    one_hot = OneHotEncoder(handle_unknown="ignore", sparse_output=False, dtype=np.float32)
    return make_column_transformer(
        (one_hot, make_column_selector(dtype_include="category")),
        (make_pipeline(fill, StandardScaler()), make_column_selector(dtype_exclude="category")),
    )


class TableReader(TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Any table as a pandas frame of floats and categories.

    Levels that fewer than `rare` of the rows have at fitting, and those that come up later, are
    pooled; a missing level is one of its own.

    Parameters
    ----------
    rare : float
        The share of rows below which a level is pooled.
    """

    def __init__(self, rare: float = _RARE) -> None:
        self.rare = rare

    def fit(self, X: Any, y: Any = None) -> Self:  # noqa: ARG002
        """Take down which columns are categories, and their levels."""
        self.levels_ = [self._choose_levels(column) for column in _read_columns(X)]
        return self

    def transform(self, X: Any) -> pandas.DataFrame:
        """The table with these levels; columns of dates are gone."""
        import pandas

        columns = zip(_read_columns(X), self.levels_, strict=True)
        return pandas.DataFrame(
            {
                f"x{j}": _read_floats(column) if levels is None else _read_codes(column, levels)
                for j, (column, levels) in enumerate(columns)
                if isinstance(column, Numbers | Levels)
            }
        )

    def _choose_levels(self, column: Column) -> list[Level] | None:
        """The levels that are not pooled, or None for numbers."""
        if not isinstance(column, Levels):
            return None
        n_rows = np.bincount(column.codes[column.codes >= 0], minlength=len(column.levels))
        frequent = np.argsort(-n_rows, kind="stable")[:_MOST_LEVELS].tolist()
        least = self.rare * len(column.codes)
        return [column.levels[i] for i in sorted(frequent) if n_rows[i] >= max(least, 1)]


def _read_columns(X: Any) -> list[Column]:
    if is_frame(X):
        frame = open_frame(X)
        return [read_series(each) for each in frame.iter_columns()]
    return [read_column(X, j, None) for j in range(X.shape[1])]


def _read_floats(column: Column) -> Array:
    """Numbers, NaN where missing; a part of a table may hold none at all."""
    if isinstance(column, Numbers):
        return read_numbers(column).astype(np.float64)
    return np.full(len(column.codes), np.nan)  # type: ignore[union-attr]


def _read_codes(column: Column, levels: list[Level]) -> Any:
    """A category: these levels, then one for all others and one for what is missing."""
    import pandas

    codes = _match(column, levels) if isinstance(column, Levels) else None
    if codes is None:  # a part of a table that happens to hold no text
        codes = np.full(len(column.values), len(levels))  # type: ignore[union-attr]
    return pandas.Categorical.from_codes(codes, categories=range(len(levels) + 2))


def _match(column: Levels, levels: list[Level]) -> IntArray:
    """The number of each row's level; those after the last for all others and missing ones."""
    known = {sort_key(level): i for i, level in enumerate(levels)}
    own = [known.get(sort_key(level), len(levels)) for level in column.levels]
    return np.array([*own, len(levels) + 1], dtype=np.int64)[column.codes]
