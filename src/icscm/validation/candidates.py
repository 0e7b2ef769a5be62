"""The candidates of a comparison: our learners and scikit-learn's, on the same table."""

from collections.abc import Mapping, Sequence
from typing import Any, Self

import numpy as np
import pandas as pd
from sklearn.base import BaseEstimator, TransformerMixin

from icscm._types import IntArray
from icscm.estimators.cover import ICSCMClassifier, SCMClassifier
from icscm.estimators.forest import InvariantForestClassifier
from icscm.estimators.score import InvariantScoreClassifier
from icscm.estimators.tree import InvariantTreeClassifier
from icscm.exceptions import IcscmError
from icscm.io.naming import suggest
from icscm.tables import columns
from icscm.tables.columns import Level, Levels, Numbers
from icscm.validation.fitting import check_classifier

BASELINE = "baseline"
# Our rule learners by name, and how their parameters differ from the defaults.
_RULES: dict[str, tuple[type[SCMClassifier | ICSCMClassifier], dict[str, Any]]] = {
    "scm": (SCMClassifier, {}),
    "icscm": (ICSCMClassifier, {}),
    "icscm-balanced": (ICSCMClassifier, {"p": "balanced"}),
    "icscm-exhaustive": (ICSCMClassifier, {"search": "exhaustive"}),
    "icscm-equivalence": (ICSCMClassifier, {"margin": 0.05}),
}
# The candidates that are compared where none are named; `ALL` names every one.
DEFAULT = ("icscm", "icscm-balanced", "tree", "forest", "logistic", "boosting")
ALL = "all"
# Other names of candidates: `icscm fit --model rule` and `compare --candidates rule` are the same.
SYNONYMS = {"rule": "icscm"}
# What candidates of version 0.3 are called now; the messages that say so go with version 0.5.
_RENAMED = {"invariant-tree": "tree", "invariant-forest": "forest"}
# Levels of a smaller share of the rows are pooled.
_RARE = 0.01
_RARE_IN_BOOSTING = 0.001
# Levels of a column that are kept apart: boosting bins at most 255, with the pool and missing ones.
_MAX_LEVELS = 250
# How scores are written in a table; others have three decimals.
_NUMBER_FORMATS = {"error": ".1%", "slope": ".2f", "intercept": ".2f"}


def choose_candidates(
    chosen: Sequence[str] | Mapping[str, Any] | None,
) -> dict[str, Any]:
    """Return candidates by name, the baseline first: usual ones, those named, or a caller's own."""
    known = make_candidates()
    if isinstance(chosen, Mapping):
        if BASELINE in chosen:
            raise IcscmError(f"{BASELINE!r} is the majority-class baseline; rename the candidate")
        candidates = dict(chosen)
    else:
        names = _read_names(chosen, known=list(known))
        candidates = {name: known[name] for name in names}
    for name, estimator in candidates.items():
        check_classifier(estimator, f"candidate {name!r}")
    return {BASELINE: known[BASELINE]} | candidates


def _read_names(chosen: Sequence[str] | None, *, known: list[str]) -> list[str]:
    """Return the names of the candidates that are chosen; raise for those that do not exist."""
    if chosen is None:
        return list(DEFAULT)
    if ALL in chosen:
        return known
    names = [SYNONYMS.get(name, name) for name in chosen]
    for name in names:
        if name in _RENAMED:
            new_name = _RENAMED[name]
            raise IcscmError(
                f"the candidate {name!r} is called {new_name!r} now; scikit-learn's is "
                f"'plain-{new_name}'"
            )
        if name not in known:
            raise IcscmError(f"there is no candidate {name!r}{suggest(name, known)}")
    return names


def make_candidates() -> dict[str, Any]:
    """Make every candidate, unfitted, by name; all accept tables of any kind."""
    from sklearn.dummy import DummyClassifier

    baseline = DummyClassifier(strategy="prior")
    ours = _make_our_candidates()
    return {BASELINE: baseline} | ours | _make_plain_candidates()


def _make_our_candidates() -> dict[str, Any]:
    """Make the learners of this package, which are prepared alike so that they share bins."""
    candidates: dict[str, Any] = {}
    for name, (learner, settings) in _RULES.items():
        for model_type, suffix in (("conjunction", ""), ("disjunction", "-or")):
            candidates[name + suffix] = learner(**settings, model_type=model_type, n_jobs=-1)
    candidates["tree"] = InvariantTreeClassifier(n_jobs=-1)
    candidates["forest"] = InvariantForestClassifier(n_jobs=-1, random_state=0)
    candidates["score"] = InvariantScoreClassifier(n_jobs=-1, random_state=0)
    return candidates


def _make_plain_candidates() -> dict[str, Any]:
    """Make scikit-learn's classifiers, behind a reader of tables.

    Rare levels of categories are pooled. All but boosting, which takes categories and missing
    values as they are, use one-hot encoding, and where a number is missing the median of its
    column with an indicator.
    """
    from sklearn.compose import make_column_selector, make_column_transformer
    from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
    from sklearn.impute import SimpleImputer
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import OneHotEncoder, StandardScaler
    from sklearn.tree import DecisionTreeClassifier

    one_hot = OneHotEncoder(handle_unknown="ignore", sparse_output=False, dtype=np.float32)
    impute = SimpleImputer(strategy="median", add_indicator=True, keep_empty_features=True)
    encoder = make_column_transformer(
        (one_hot, make_column_selector(dtype_include="category")),
        (make_pipeline(impute, StandardScaler()), make_column_selector(dtype_exclude="category")),
    )

    tree = DecisionTreeClassifier(max_leaf_nodes=16, min_samples_leaf=0.01, random_state=0)
    forest = RandomForestClassifier(100, min_samples_leaf=5, random_state=0, n_jobs=-1)
    logistic = LogisticRegression(max_iter=1000)
    boosting = HistGradientBoostingClassifier(categorical_features="from_dtype", random_state=0)
    return {
        "plain-tree": make_pipeline(TableReader(), encoder, tree),
        "plain-forest": make_pipeline(TableReader(), encoder, forest),
        "logistic": make_pipeline(TableReader(), encoder, logistic),
        "boosting": make_pipeline(TableReader(_RARE_IN_BOOSTING), boosting),
    }


def format_score(name: str, value: float | None, ends: tuple[float, float] | None = None) -> str:
    """Format a cell of a table: a score and, if given, its interval.

    >>> format_score("auc", 0.8, (0.7, 0.9)), format_score("error", None)
    ('0.800 (0.700-0.900)', '-')
    """
    if value is None:
        return "-"
    number_format = _NUMBER_FORMATS.get(name, ".3f")
    text = format(value, number_format)
    if ends is None:
        return text
    low, high = ends
    return f"{text} ({low:{number_format}}-{high:{number_format}})"


class TableReader(TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Reads any table as a pandas frame of floats and categories, which scikit-learn understands.

    Levels of fewer than `rare` of the training rows, and levels not seen in training, are pooled;
    missing values are a level of their own.

    Parameters
    ----------
    rare : float
        The share of rows below which a level is pooled.
    """

    def __init__(self, rare: float = _RARE) -> None:
        self.rare = rare

    def fit(self, X: Any, y: Any = None) -> Self:  # noqa: ARG002
        """Find the columns that are categories, and the levels that are kept apart."""
        self.levels_: list[list[Level] | None] = []
        for column in _read_columns(X):
            levels = self._choose_levels(column) if isinstance(column, Levels) else None
            self.levels_.append(levels)
        return self

    def _choose_levels(self, column: Levels) -> list[Level]:
        """Return the levels that are kept apart, in the order of the column."""
        is_present = column.codes >= 0
        n_rows_of_levels = np.bincount(column.codes[is_present], minlength=len(column.levels))
        most_frequent = np.argsort(-n_rows_of_levels, kind="stable")[:_MAX_LEVELS].tolist()
        min_rows = max(self.rare * len(column.codes), 1)
        return [
            column.levels[code]
            for code in sorted(most_frequent)
            if n_rows_of_levels[code] >= min_rows
        ]

    def transform(self, X: Any) -> pd.DataFrame:
        """Return the table with these levels, without columns of dates."""
        table: dict[str, Any] = {}
        columns_with_levels = zip(_read_columns(X), self.levels_, strict=True)
        for position, (column, levels) in enumerate(columns_with_levels):
            if isinstance(column, Numbers | Levels):
                table[f"x{position}"] = _convert(column, levels)
        return pd.DataFrame(table)


def _convert(column: Numbers | Levels, levels: list[Level] | None) -> Any:
    """Return a column as pandas' categories or as floats, whichever it was in training.

    `levels` are those that the column had in training, or None if it held numbers. The other kind
    may be met now: in a part of a table, a column of text may happen to hold numbers only, which
    are then unknown levels, and one of numbers may hold texts only, which are then missing.
    """
    if levels is not None:
        n_categories = len(levels) + 2  # with all other levels, and missing values
        codes = _number_categories(column, levels)
        return pd.Categorical.from_codes(codes, categories=range(n_categories))

    if isinstance(column, Numbers):
        return columns.read_numbers(column).astype(np.float64)
    return np.full(len(column), np.nan)


def _number_categories(column: Numbers | Levels, levels: list[Level]) -> IntArray:
    """Return the position of each row's level; all others come after them, then missing values."""
    others = len(levels)
    missing = others + 1
    if isinstance(column, Numbers):
        return np.full(len(column), others)

    positions = {columns.sort_key(level): position for position, level in enumerate(levels)}
    category_of_code = [positions.get(columns.sort_key(level), others) for level in column.levels]
    category_of_code.append(missing)  # missing values have the code -1: the last entry
    return np.array(category_of_code)[column.codes]


def _read_columns(X: Any) -> list[columns.Column]:
    """Read the columns of a frame or an array."""
    if columns.is_frame(X):
        return [columns.read_series(series) for series in columns.open_frame(X).iter_columns()]
    return [columns.read_column(X, position, None) for position in range(X.shape[1])]
