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
DEFAULT = "icscm", "icscm-balanced", "tree", "forest", "logistic", "boosting"
ALL = "all"
# Other names of candidates: `icscm fit --model rule` and `compare --candidates rule` are the same.
SYNONYMS = {"rule": "icscm"}
# What candidates of version 0.3 are called now; the messages that say so go with version 0.5.
_RENAMED = {"invariant-tree": "tree", "invariant-forest": "forest"}
# Levels of a smaller share of the rows are pooled; boosting bins at most 255.
_RARE, _RARE_IN_BOOSTING, _MOST_LEVELS = 0.01, 0.001, 250


def choose_candidates(
    chosen: Sequence[str] | Mapping[str, Any] | None,
) -> dict[str, Any]:
    """Candidates by name, the baseline first: usual ones, those named, or a caller's own."""
    own = make_candidates()
    if isinstance(chosen, Mapping):
        if BASELINE in chosen:
            raise IcscmError(f"{BASELINE!r} is the majority-class baseline; rename the candidate")
    else:
        names = list(DEFAULT if chosen is None else own if ALL in chosen else chosen)
        names = [SYNONYMS.get(name, name) for name in names]
        for name in names:
            if name in _RENAMED:
                why = f"the candidate {name!r} is called {_RENAMED[name]!r} now"
                raise IcscmError(f"{why}; scikit-learn's is 'plain-{_RENAMED[name]}'")
            if name not in own:
                raise IcscmError(f"there is no candidate {name!r}{suggest(name, list(own))}")
        chosen = {name: own[name] for name in names}
    for name, estimator in chosen.items():
        check_classifier(estimator, f"candidate {name!r}")
    return {BASELINE: own[BASELINE]} | dict(chosen)


def make_candidates() -> dict[str, Any]:
    """Every candidate, unfitted, by name.

    All accept tables of any kind, with numbers, categories and missing values. For scikit-learn's,
    rare levels of categories are pooled; all but boosting use one-hot encoding, and the median of
    a column with an indicator where a number is missing.
    """
    from sklearn.compose import make_column_selector, make_column_transformer
    from sklearn.dummy import DummyClassifier
    from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
    from sklearn.impute import SimpleImputer
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import OneHotEncoder, StandardScaler
    from sklearn.tree import DecisionTreeClassifier

    found: dict[str, Any] = {BASELINE: DummyClassifier(strategy="prior")}
    own: dict[str, Any] = {"n_jobs": -1}  # alike, so that they share bins
    for name, (learner, settings) in _RULES.items():
        for end, kind in (("", "conjunction"), ("-or", "disjunction")):
            found[name + end] = learner(**settings, **own, model_type=kind)
    found["tree"] = InvariantTreeClassifier(**own)
    found["forest"] = InvariantForestClassifier(**own, random_state=0)
    found["score"] = InvariantScoreClassifier(**own, random_state=0)

    fill = SimpleImputer(strategy="median", add_indicator=True, keep_empty_features=True)
    one_hot = OneHotEncoder(handle_unknown="ignore", sparse_output=False, dtype=np.float32)
    encoder = make_column_transformer(
        (one_hot, make_column_selector(dtype_include="category")),
        (make_pipeline(fill, StandardScaler()), make_column_selector(dtype_exclude="category")),
    )
    tree = DecisionTreeClassifier(max_leaf_nodes=16, min_samples_leaf=0.01, random_state=0)
    forest = RandomForestClassifier(100, min_samples_leaf=5, random_state=0, n_jobs=-1)
    logistic = LogisticRegression(max_iter=1000)
    others = {"plain-tree": tree, "plain-forest": forest, "logistic": logistic}
    for name, classifier in others.items():
        found[name] = make_pipeline(TableReader(), encoder, classifier)
    boosting = HistGradientBoostingClassifier(categorical_features="from_dtype", random_state=0)
    found["boosting"] = make_pipeline(TableReader(_RARE_IN_BOOSTING), boosting)
    return found


def format_score(name: str, value: float | None, ends: tuple[float, float] | None = None) -> str:
    """A cell of a table: a score and, if given, its interval.

    >>> format_score("auc", 0.8, (0.7, 0.9)), format_score("error", None)
    ('0.800 (0.700-0.900)', '-')
    """
    form = ".1%" if name == "error" else ".2f" if name in ("slope", "intercept") else ".3f"
    if value is None:
        return "-"
    return f"{value:{form}}" + (f" ({ends[0]:{form}}-{ends[1]:{form}})" if ends else "")


class TableReader(TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Any table as a pandas frame of floats and categories.

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
        """Find the columns that are categories, and their levels."""
        self.levels_ = [
            self._choose_levels(column) if isinstance(column, Levels) else None
            for column in _read_columns(X)
        ]
        return self

    def _choose_levels(self, column: Levels) -> list[Level]:
        """Return the levels that are kept apart, in the order of the column."""
        present = column.codes[column.codes >= 0]
        n_rows = np.bincount(present, minlength=len(column.levels))
        frequent = np.argsort(-n_rows, kind="stable")[:_MOST_LEVELS].tolist()
        n_needed = max(self.rare * len(column.codes), 1)
        return [column.levels[code] for code in sorted(frequent) if n_rows[code] >= n_needed]

    def transform(self, X: Any) -> pd.DataFrame:
        """The table with these levels, without columns of dates.

        A part of a table may hold no numbers in a column of numbers, or no text in one of levels.
        """
        table: dict[str, Any] = {}
        for position, (column, levels) in enumerate(
            zip(_read_columns(X), self.levels_, strict=True)
        ):
            if not isinstance(column, Numbers | Levels):
                continue
            name = f"x{position}"
            if levels is not None:
                categories = range(len(levels) + 2)  # with all others, and missing values
                codes = _find_categories(column, levels)
                table[name] = pd.Categorical.from_codes(codes, categories=categories)
            elif isinstance(column, Numbers):
                table[name] = columns.read_numbers(column).astype(np.float64)
            else:
                table[name] = np.full(len(column.codes), np.nan)
        return pd.DataFrame(table)


def _find_categories(column: Numbers | Levels, levels: list[Level]) -> IntArray:
    """Return the position of each row's level; all others come after them, then missing values."""
    others, missing = len(levels), len(levels) + 1
    if isinstance(column, Numbers):
        return np.full(len(columns.read_numbers(column)), others)
    positions = {columns.sort_key(level): position for position, level in enumerate(levels)}
    categories = [positions.get(columns.sort_key(level), others) for level in column.levels]
    # missing values have the code -1: the last entry
    return np.array([*categories, missing])[column.codes]


def _read_columns(X: Any) -> list[columns.Column]:
    if columns.is_frame(X):
        return [columns.read_series(series) for series in columns.open_frame(X).iter_columns()]
    return [columns.read_column(X, position, None) for position in range(X.shape[1])]
