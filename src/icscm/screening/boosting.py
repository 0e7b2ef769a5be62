"""Gradient boosting on bins, in which environments may differ in their level.

    score of a row = level of its environment + sum over trees of the value of the row's leaf

Trees are fitted one after the other to what is left to explain (Friedman 2001, Greedy function
approximation), by gradients and hessians (Chen and Guestrin 2016, XGBoost), so that one program
serves outcomes of every kind (`icscm.screening.outcomes`). After each tree the levels are fitted
again. Otherwise trees would learn the levels through columns that go with the environment, and
these columns would look like shortcuts.

A model is fitted on bins, as bytes by (column, row). Levels of a category have no order, so each
model orders them by their mean gradient before the first tree (Fisher 1958, On grouping for maximum
homogeneity); the values up to a cut are then a set of levels.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Final, NamedTuple

import numpy as np

from icscm._types import Array, FloatArray, IntArray
from icscm.screening import _kernels
from icscm.screening.outcomes import (
    Environments,
    Outcome,
    compute_gradients,
    compute_hessians,
    step_levels,
)

N_TREES: Final = 60
MAX_LEAVES: Final = 31
LEARNING_RATE: Final = 0.1
# A leaf has so many rows, and so much information.
MIN_ROWS: Final = 20
MIN_HESSIAN: Final = 1e-3
# Shrinks values of leaves of little information.
RIDGE: Final = 1.0
# Rows that the mean gradient of a level is shrunk by, before levels are ordered.
PRIOR_ROWS: Final = 10.0
# Steps for the levels before the first tree.
N_FIRST_STEPS: Final = 4


class Tree(NamedTuple):
    """One tree, an entry for each node; see `icscm.screening._kernels`."""

    column: Array
    cut: Array
    left: Array
    right: Array
    value: FloatArray


@dataclass(frozen=True, eq=False)
class BinnedRows:
    """The bins of some columns: bytes by (column, row), with what they mean.

    `n_bins` are the bins of each column; `is_nominal` says whose bins have no order.
    """

    bins: Array
    n_bins: IntArray
    is_nominal: Array

    def take_columns(self, columns: IntArray) -> "BinnedRows":
        """Return some of the columns."""
        return BinnedRows(self.bins[columns], self.n_bins[columns], self.is_nominal[columns])


@dataclass(frozen=True, eq=False)
class BoostedTrees:
    """A fitted model without its levels: trees, and the order in which they know the bins.

    `ranks[column]` has for each bin its place in the order of the model; None where that is the
    order of the bins.
    """

    trees: list[Tree]
    ranks: list[Array | None]

    @cached_property
    def _nodes(self) -> Tree:
        """The nodes of all trees, one tree after the other."""
        shifted = [
            Tree(
                column=tree.column,
                cut=tree.cut,
                left=np.where(tree.left >= 0, tree.left + root, -1),
                right=np.where(tree.right >= 0, tree.right + root, -1),
                value=tree.value,
            )
            for tree, root in zip(self.trees, self._roots.tolist(), strict=True)
        ]
        return Tree(*(np.concatenate(parts) for parts in zip(*shifted, strict=True)))

    @cached_property
    def _roots(self) -> IntArray:
        """Where the nodes of each tree begin."""
        sizes = [len(tree.column) for tree in self.trees]
        return np.cumsum([0, *sizes[:-1]])

    @cached_property
    def _roots_by_column(self) -> dict[int, IntArray]:
        """The trees that cut each column, by where they begin."""
        roots: dict[int, list[int]] = {}
        for tree, root in zip(self.trees, self._roots.tolist(), strict=True):
            for column in np.unique(tree.column[tree.column >= 0]).tolist():
                roots.setdefault(column, []).append(root)
        return {column: np.array(starts) for column, starts in roots.items()}

    def uses(self, column: int) -> bool:
        """Return whether any tree cuts the column."""
        return column in self._roots_by_column

    def arrange(self, bins: Array) -> Array:
        """Return bins (column, row) as the trees read them: (row, column), in their order."""
        arranged = np.empty(bins.shape[::-1], dtype=np.uint8)
        for column, ranks in enumerate(self.ranks):
            arranged[:, column] = bins[column] if ranks is None else ranks[bins[column]]
        return arranged

    def score(self, arranged: Array) -> FloatArray:
        """Return the scores (row, output), without levels."""
        scores = np.zeros((len(arranged), self._nodes.value.shape[1]))
        _kernels.add_scores(arranged, self._roots, *self._nodes, scores)
        return scores

    def compute_contributions(
        self, arranged: Array, environments: IntArray, *, column: int, shares: FloatArray
    ) -> FloatArray:
        """Return what a column contributes to the scores (row, output).

        That is the score, less the mean score with the column drawn from other rows of the
        environment; `shares` (environment, bin) are the shares of its bins.
        """
        contributions = np.zeros((len(arranged), self._nodes.value.shape[1]))
        if not self.uses(column):
            return contributions
        ranks = self.ranks[column]
        in_order = shares
        if ranks is not None:
            in_order = np.empty_like(shares)
            in_order[:, ranks] = shares
        cumulative = np.zeros((len(shares), shares.shape[1] + 1))
        cumulative[:, 1:] = in_order.cumsum(axis=1)
        roots = self._roots_by_column[column]
        _kernels.add_contributions(
            arranged, environments, column, cumulative, roots, *self._nodes, contributions
        )
        return contributions


def boost(outcome: Outcome, table: BinnedRows, places: Environments) -> BoostedTrees:
    """Fit trees and levels of environments in turn."""
    levels = np.zeros((places.count, outcome.n_outputs))
    for _ in range(N_FIRST_STEPS):
        levels += step_levels(outcome, levels[places.numbers], places)
    ranks = rank_levels(outcome, table, levels[places.numbers])
    bins = arrange_bins(table.bins, ranks)

    scores = np.zeros((len(places.numbers), outcome.n_outputs))
    trees: list[Tree] = []
    for _ in range(N_TREES):
        current = scores + levels[places.numbers]
        gradients = compute_gradients(outcome, current)
        hessians = compute_hessians(outcome, current)
        *nodes, rows, start, stop = _kernels.grow_tree(
            bins,
            np.hstack((gradients, hessians)),
            table.n_bins,
            MAX_LEAVES,
            MIN_ROWS,
            RIDGE,
            MIN_HESSIAN,
            LEARNING_RATE,
        )
        tree = Tree(*nodes)
        trees.append(tree)
        if len(tree.column) == 1:  # nothing can be split, now or later
            break
        _kernels.add_leaf_values(scores, tree.column, tree.value, rows, start, stop)
        levels += step_levels(outcome, scores + levels[places.numbers], places)
    return BoostedTrees(trees=trees, ranks=ranks)


def rank_levels(outcome: Outcome, table: BinnedRows, null_scores: FloatArray) -> list[Array | None]:
    """Rank the levels of each category by their mean gradient, shrunk by `PRIOR_ROWS`.

    Of several outputs, the one whose gradients are largest decides.
    """
    gradients = compute_gradients(outcome, null_scores)
    hessians = compute_hessians(outcome, null_scores)
    output = int(np.abs(gradients).sum(axis=0).argmax())
    prior = PRIOR_ROWS * hessians[:, output].mean()

    ranks: list[Array | None] = [None] * len(table.bins)
    for column in np.flatnonzero(table.is_nominal).tolist():
        n_bins = int(table.n_bins[column])
        sums = np.bincount(table.bins[column], gradients[:, output], n_bins)
        information = np.bincount(table.bins[column], hessians[:, output], n_bins)
        order = np.argsort(sums / (information + prior), kind="stable")
        ranks_of_column = np.empty(n_bins, dtype=np.uint8)
        ranks_of_column[order] = np.arange(n_bins)
        ranks[column] = ranks_of_column
    return ranks


def arrange_bins(bins: Array, ranks: list[Array | None]) -> Array:
    """Return bins (column, row), those of categories as ranks."""
    arranged = np.ascontiguousarray(bins)
    if all(ranks_of_column is None for ranks_of_column in ranks):
        return arranged
    arranged = arranged.copy()
    for column, ranks_of_column in enumerate(ranks):
        if ranks_of_column is not None:
            arranged[column] = ranks_of_column[bins[column]]
    return arranged
