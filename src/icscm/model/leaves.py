"""Training counts of leaves, and the columns that rules read."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from icscm.model.rules import Rule, warn_of_unseen
from icscm.tables.columns import Column, Numbers, read_column

# Samples of one leaf, by label and environment.
LeafCounts = tuple[tuple[int, ...], ...]


def freeze_counts(counts: Sequence[Any] | NDArray[Any]) -> Any:
    """The counts of a leaf, or of several, as tuples of plain integers: hashable, immutable."""
    rows = counts.tolist() if isinstance(counts, np.ndarray) else counts
    if isinstance(rows[0][0], list | tuple):
        return tuple(tuple(tuple(map(int, row)) for row in leaf) for leaf in rows)
    return tuple(tuple(map(int, row)) for row in rows)


def sum_leaves(leaves: Sequence[LeafCounts]) -> LeafCounts:
    """Samples of several leaves together."""
    totals: LeafCounts = freeze_counts(np.array(leaves, dtype=object).sum(axis=0).tolist())
    return totals


def count_labels(leaf: LeafCounts) -> tuple[int, int]:
    """Negative and positive samples of a leaf."""
    negative, positive = leaf
    return sum(negative), sum(positive)


def format_counts(n_negative: int, n_positive: int) -> tuple[str, str, str]:
    """Number of samples, number of positive samples, and their rate, as text."""
    n = n_negative + n_positive
    return f"{n:,}", f"{n_positive:,}", f"{n_positive / n:.1%}" if n else "-"


def read_columns(X: Any, rules: Sequence[Rule]) -> dict[str | int, Column]:
    """The columns that rules are about, each read once.

    Warns of missing values in columns that had none at fitting.
    """
    rules_of: dict[str | int, list[Rule]] = {}
    for rule in rules:
        rules_of.setdefault(rule.feature, []).append(rule)
    columns: dict[str | int, Column] = {}
    for feature, those in rules_of.items():
        column = read_column(X, those[0].column, those[0].name)
        if isinstance(column, Numbers):  # a column of a C-ordered array is strided in memory
            column = replace(column, values=np.ascontiguousarray(column.values))
        warn_of_unseen(those, column)
        columns[feature] = column
    return columns
