"""What all models with leaves share: verdicts and chances from the training counts of a leaf."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from icscm._repr import DisplayMixin
from icscm._types import Array, BoolArray, FloatArray
from icscm.model.rules import Rule, warn_of_unseen
from icscm.tables.columns import Column, Numbers, read_column

# Samples of one leaf, by label and environment.
LeafCounts = tuple[tuple[int, ...], ...]


class Votes(NamedTuple):
    """What a model says of each row: whether it is positive, how likely, and what decided."""

    is_positive: BoolArray
    probability: FloatArray
    decided_by: Array


class LeafModel(DisplayMixin):
    """A model that sends each sample to one of its leaves; who inherits says how."""

    leaves: tuple[LeafCounts, ...]

    kind: ClassVar[str]
    # Of the file: raised where older versions of the package would misread the model.
    schema: ClassVar[int] = 1

    if TYPE_CHECKING:  # a property here would be the default of a field of that name below

        @property
        def rules(self) -> tuple[Rule, ...]: ...

        @property
        def leaf_verdicts(self) -> BoolArray: ...

        @property
        def leaf_texts(self) -> tuple[str, ...]: ...

        def find_leaves(self, X: Any) -> NDArray[np.intp]: ...

    def predict(self, X: Any) -> BoolArray:
        """The model's own verdict for each row.

        Parameters
        ----------
        X : array, sparse matrix or frame of shape (n_samples, n_features)
            The features.

        Returns
        -------
        array of bool, of shape (n_samples,)
            Whether the row is predicted positive.
        """
        return self.leaf_verdicts[self.find_leaves(X)]

    def predict_proba(self, X: Any) -> FloatArray:
        """Chance of the positive label for each row, from its leaf's training samples.

        Parameters
        ----------
        X : array, sparse matrix or frame of shape (n_samples, n_features)
            The features.

        Returns
        -------
        array of float, of shape (n_samples,)
            Between 0 and 1, both excluded.
        """
        return self.leaf_probabilities()[self.find_leaves(X)]

    def decide(self, X: Any) -> Votes:
        """Verdict, chance and what decided for each row, in one pass.

        Parameters
        ----------
        X : array, sparse matrix or frame of shape (n_samples, n_features)
            The features.

        Returns
        -------
        Votes
            A tuple of three arrays: `is_positive`, `probability`, `decided_by`.
        """
        leaves = self.find_leaves(X)
        texts = np.array(self.leaf_texts, dtype=object)
        return Votes(self.leaf_verdicts[leaves], self.leaf_probabilities()[leaves], texts[leaves])

    @property
    def _is_mostly_positive(self) -> bool:
        """Whether more training samples are positive than negative."""
        negative, positive = (sum(sum(leaf[label]) for leaf in self.leaves) for label in (0, 1))
        return positive > negative

    def count_wrong(self) -> tuple[int, int]:
        """Training samples that the model gets wrong, by label.

        Returns
        -------
        tuple of two int
            Negatives predicted positive, and positives predicted negative.
        """
        wrong = [0, 0]
        for leaf, is_positive in zip(self.leaves, self.leaf_verdicts.tolist(), strict=True):
            wrong[1 - is_positive] += sum(leaf[1 - is_positive])
        return wrong[0], wrong[1]

    def count_contrary(self) -> list[int]:
        """Training samples in leaves that hold more of the class that they do not predict.

        Returns
        -------
        list of int
            One for each leaf: all its samples where `predict_proba` leans the other way, else 0.
        """
        found = []
        for leaf, is_positive in zip(self.leaves, self.leaf_verdicts.tolist(), strict=True):
            n_wrong, n_right = sum(leaf[1 - is_positive]), sum(leaf[is_positive])
            found.append(n_wrong + n_right if n_wrong > n_right else 0)
        return found

    def leaf_probabilities(self) -> FloatArray:
        """(positives + 1) / (samples + 2) of each leaf: Laplace's rule, never 0 or 1.

        Returns
        -------
        array of float
            One for each leaf.
        """
        totals = np.array([[sum(row) for row in leaf] for leaf in self.leaves], dtype=np.float64)
        probabilities: FloatArray = (totals[:, 1] + 1.0) / (totals.sum(axis=1) + 2.0)
        return probabilities

    def __len__(self) -> int:
        return len(self.rules)


def freeze_counts(counts: Sequence[Any] | NDArray[Any]) -> Any:
    """Nested tuples of plain integers: comparable, hashable, unchangeable."""
    if isinstance(counts, np.ndarray):
        counts = counts.tolist()
    if counts and not isinstance(counts[0], list | tuple):
        return tuple(map(int, counts))
    return tuple(map(freeze_counts, counts))


def add_up(leaves: Sequence[LeafCounts]) -> LeafCounts:
    """Samples of several leaves together."""
    totals: LeafCounts = freeze_counts(np.array(leaves, dtype=object).sum(axis=0).tolist())
    return totals


def count_labels(leaf: LeafCounts) -> tuple[int, int]:
    """Negative and positive samples of a leaf."""
    negative, positive = leaf
    return sum(negative), sum(positive)


def tell_counts(n_negative: int, n_positive: int) -> tuple[str, str, str]:
    """Samples, positive ones, and their rate, in words."""
    n = n_negative + n_positive
    return f"{n:,}", f"{n_positive:,}", f"{n_positive / n:.1%}" if n else "-"


def read_columns(X: Any, rules: Sequence[Rule]) -> dict[str | int, Column]:
    """The columns that rules ask for, each read once; warns of values that never were missing."""
    asking: dict[str | int, list[Rule]] = {}
    for rule in rules:
        asking.setdefault(rule.feature, []).append(rule)
    columns: dict[str | int, Column] = {}
    for feature, those in asking.items():
        column = read_column(X, those[0].column, those[0].name)
        if isinstance(column, Numbers):  # of an array of rows each value has its own cache line
            column = replace(column, values=np.ascontiguousarray(column.values))
        warn_of_unseen(those, column)
        columns[feature] = column
    return columns
