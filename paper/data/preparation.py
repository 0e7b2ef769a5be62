"""The paper's preparation of a raw table, step by step.

raw table -> one-hot or ordinal columns -> quantile codes -> Prepared

Each prepared column remembers the feature it comes from, so that the columns of the causal
features can be named.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

# The paper replaces columns with this many distinct values or more by as many quantile codes.
N_QUANTILES = 50
# What a value is called that is not there, or too rare to have a column of its own.
MISSING = "missing"
RARE = "rare"

Column = NDArray[Any]


@dataclass(frozen=True)
class Prepared:
    """Columns ready to learn from, and the feature that each of them comes from."""

    columns: dict[str, Column]
    origins: dict[str, str]

    def to_frame(self) -> pd.DataFrame:
        """The columns as a table."""
        return pd.DataFrame(self.columns)

    def find_columns_of(self, features: tuple[str, ...]) -> list[str]:
        """The names of the columns that come from any of these features."""
        wanted = set(features)
        return [name for name, origin in self.origins.items() if origin in wanted]


def prepare_one_hot(table: pd.DataFrame, rare_below: float = 0.0) -> Prepared:
    """A column `<feature>_<value>` for each value of a category, numbers as they are.

    Missing categories are a value of their own. Values that fewer than the share `rare_below` of
    the rows have become one. Numbers must all be there.

    >>> table = pd.DataFrame({"sex": pd.Categorical(["f", "m", None]), "age": [40, 70, 60]})
    >>> prepare_one_hot(table).to_frame()
       sex_f  sex_m  sex_missing  age
    0      1      0            0   40
    1      0      1            0   70
    2      0      0            1   60
    """
    return _prepare(
        table,
        from_category=lambda category: _make_indicators(category, rare_below),
        from_numbers=pd.Series.to_numpy,
    )


def prepare_ordinal(table: pd.DataFrame, n_bins: int) -> Prepared:
    """One column a feature: the rank of a category's value, the quantile bin of a number.

    Missing values are -1. This is how the paper treats a table whose categories have too many
    values, and whose numbers are too often missing, for `prepare_one_hot`.

    >>> table = pd.DataFrame({"size": pd.Categorical(["10", "9", None]), "age": [40, None, 60]})
    >>> prepare_ordinal(table, n_bins=2).to_frame()
       size  age
    0     1    0
    1     0   -1
    2    -1    1
    """
    return _prepare(
        table,
        from_category=lambda category: {category.name: _rank(category)},
        from_numbers=lambda numbers: _bin_numbers(numbers, n_bins),
    )


def fill_missing_numbers(table: pd.DataFrame) -> pd.DataFrame:
    """The table with medians for missing numbers, and columns `<feature>_missing` that say where.

    Where a value is missing often says which hospital a row is from; a column of its own lets
    this be seen, and keeps it out of the feature.

    >>> fill_missing_numbers(pd.DataFrame({"chol": [200.0, None, 240.0]}))
        chol  chol_missing
    0  200.0             0
    1  220.0             1
    2  240.0             0
    """
    columns = {}
    for name, values in table.items():
        columns[name] = values
        if values.hasnans and not _is_category(values):
            columns[name] = values.fillna(values.median())
            columns[f"{name}_{MISSING}"] = values.isna().astype(np.uint8)
    return pd.DataFrame(columns)


def code_quantiles(prepared: Prepared) -> Prepared:
    """Columns with many distinct values replaced by the number of the quantile of each row."""
    columns = {name: _code_quantiles(values) for name, values in prepared.columns.items()}
    return Prepared(columns, prepared.origins)


def relabel(
    table: pd.DataFrame, names: Iterable[str], turn: Callable[[pd.Series], pd.Series]
) -> pd.DataFrame:
    """The table with those of the named columns that it has turned into others."""
    return table.assign(**{name: turn(table[name]) for name in names if name in table})


def label_codes(
    codes: pd.Series, label: Callable[[int], str] = str, missing: str | None = None
) -> pd.Series:
    """A category from a column of whole-number codes, several of which may share a label.

    >>> label_codes(pd.Series([2.0, 1.0, None])).tolist()
    ['2', '1', nan]
    >>> label_codes(pd.Series([2.0, 1.0, None]), label="{:02d}".format, missing="00").tolist()
    ['02', '01', '00']
    """
    positions, values = pd.factorize(codes, sort=True)
    # the last is at position -1, where pandas puts missing values
    labels = [*(label(int(value)) for value in values), missing]
    categories = sorted({text for text in labels if text is not None})
    number_of = [-1 if text is None else categories.index(text) for text in labels]
    numbers = np.array(number_of)[positions]
    return pd.Series(pd.Categorical.from_codes(numbers, categories), index=codes.index)


def _prepare(
    table: pd.DataFrame,
    from_category: Callable[[pd.Series], dict[str, Column]],
    from_numbers: Callable[[pd.Series], Column],
) -> Prepared:
    """Prepare each column by its type; a category may become several columns."""
    columns: dict[str, Column] = {}
    origins: dict[str, str] = {}
    for name, values in table.items():
        is_category = _is_category(values)
        prepared = from_category(values) if is_category else {name: from_numbers(values)}
        columns |= prepared
        origins |= dict.fromkeys(prepared, name)
    return Prepared(columns, origins)


def _make_indicators(category: pd.Series, rare_below: float) -> dict[str, Column]:
    """A column of zeros and ones for each value that occurs, and one for all rare ones."""
    labels = [*(str(label) for label in category.cat.categories), MISSING]
    codes = category.cat.codes.to_numpy().astype(np.int64)
    codes[codes < 0] = len(labels) - 1
    counts = np.bincount(codes, minlength=len(labels))
    is_rare = (counts > 0) & (counts < rare_below * len(codes))
    frequent = np.flatnonzero((counts > 0) & ~is_rare)
    columns = {
        f"{category.name}_{labels[code]}": (codes == code).view(np.uint8) for code in frequent
    }
    if is_rare.any():
        columns[f"{category.name}_{RARE}"] = is_rare[codes].view(np.uint8)
    return columns


def _rank(category: pd.Series) -> Column:
    """Ranks among the values: codes in the order of their numbers, texts in that of letters."""
    values = category.cat.categories
    numbers = pd.to_numeric(values, errors="coerce")
    order = np.argsort(numbers if not numbers.isna().any() else values.astype(str), kind="stable")
    rank = np.full(len(values) + 1, -1, dtype=np.int16)  # the last is for code -1, missing
    rank[order] = np.arange(len(values))
    ranks: Column = rank[category.cat.codes.to_numpy()]
    return ranks


def _bin_numbers(numbers: pd.Series, n_bins: int) -> Column:
    values = numbers.to_numpy(dtype=np.float64)
    missing = np.isnan(values)
    bins = np.full(len(values), -1, dtype=np.int16)
    if not missing.all():
        edges = np.unique(np.quantile(values[~missing], np.linspace(0, 1, n_bins + 1)))
        bins[~missing] = np.searchsorted(edges[1:-1], values[~missing], side="right")
    return bins


def _code_quantiles(values: Column) -> Column:
    """Small whole numbers take small types: a table is as wide as its widest column."""
    if values.dtype.itemsize == 1:
        return values
    if len(pd.unique(values)) < N_QUANTILES:
        column: Column = pd.to_numeric(values, downcast="integer")
        return column
    codes: Column = pd.qcut(values, N_QUANTILES, labels=False, duplicates="drop")
    return codes.astype(np.uint8)


def _is_category(values: pd.Series) -> bool:
    return isinstance(values.dtype, pd.CategoricalDtype)
