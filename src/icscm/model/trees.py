"""Trees: splits that send a sample one way where their rule is true and the other where not.

Flat, so that no depth is too deep. Splits and leaves are numbered in the order of a walk from the
root that goes where rules are true first; a number below 0 is a leaf's, `~number`:

    split 0: age > 63 --true--> split 1: smoker == yes --true--> -1, leaf 0
        |false                      |false
      -3, leaf 2                  -2, leaf 1
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, NamedTuple, Self, TypeVar

import numpy as np
from numpy.typing import NDArray

from icscm._repr import Display
from icscm._types import BoolArray, FloatArray
from icscm.exceptions import IcscmError
from icscm.formatting import clip, count
from icscm.model.leaves import (
    LeafCounts,
    LeafModel,
    add_up,
    count_labels,
    read_columns,
    tell_counts,
)
from icscm.model.rules import Rule
from icscm.model.simplifying import add_rule
from icscm.tables.columns import Column, count_rows

# Columns of a terminal, and the least of them that a rule gets.
_WIDTH: Final = 80
_MIN_RULE: Final = 24
# Steps to the right before the depth of a node is written instead.
_MAX_INDENT: Final = 16
# Of the way to a leaf, in words: rules, and characters of one. A file may hold far more.
_MAX_WORDS: Final = 32
_MAX_RULE: Final = 255

_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class Split:
    """A rule, and where samples go for which it is true, and false: a split, or below 0 a leaf."""

    rule: Rule
    if_true: int
    if_false: int


class Node(NamedTuple):
    """A node of a walk over a tree; `leaf` is None where it is split further."""

    depth: int
    text: str
    counts: tuple[int, int]
    leaf: int | None


@dataclass(frozen=True, repr=False)
class Tree(LeafModel):
    """Splits, and the training counts of the leaves that they lead to.

    Parameters
    ----------
    splits : tuple of Split
        The first is the root; the number of a split is greater than that of the one above it.
    leaves : tuple of counts by (label, environment)
        Training samples of each leaf, one more than there are splits; leaves are numbered in the
        order of a walk that goes where rules are true first.
    balanced : bool, default=False
        Whether a leaf's probability is the mean over its environments, each counting alike,
        instead of over its samples.

    Examples
    --------
    >>> from icscm.model.rules import ThresholdRule
    >>> from icscm.model.trees import Split, Tree
    >>> rule = ThresholdRule(column=0, name="age", threshold=63, above=True)
    >>> print(Tree((Split(rule, -1, -2),), (((1, 2), (3, 4)), ((5, 6), (0, 1)))))
    all: 36.4% of 22
      age > 63: 70.0% of 10 -> positive
      age <= 63: 8.3% of 12 -> negative
    """

    splits: tuple[Split, ...]
    leaves: tuple[LeafCounts, ...]
    balanced: bool = False

    kind = "tree"
    schema = 2

    def __post_init__(self) -> None:
        n = len(self.splits)
        if len(self.leaves) != n + 1:
            raise IcscmError(
                f"a tree of {count(n, 'split')} has {count(n + 1, 'leaf')}, got counts for "
                f"{len(self.leaves):,}"
            )
        children = [child for each in self.splits for child in (each.if_true, each.if_false)]
        if sorted(children) != ([*range(-n - 1, 0), *range(1, n)] if n else []):
            raise IcscmError("every split but the first, and every leaf, must be reached once")
        if any(0 <= child <= place // 2 for place, child in enumerate(children)):
            raise IcscmError("the number of a split must be greater than that of the one above it")
        if [~node for node in self._list_leaves()] != [*range(n + 1)]:
            raise IcscmError("leaves must be numbered as a walk meets them, where rules hold first")

    # --- predicting -----------------------------------------------------------------------------

    def find_leaves(self, X: Any) -> NDArray[np.intp]:
        """Number of the leaf that each row falls in.

        Parameters
        ----------
        X : array, sparse matrix or frame of shape (n_samples, n_features)
            The features.

        Returns
        -------
        array of int, of shape (n_samples,)
            From 0, as in `leaves`.
        """
        return self.follow(read_columns(X, self.rules), count_rows(X))

    def follow(self, columns: dict[str | int, Column], n_rows: int) -> NDArray[np.intp]:
        """Number of the leaf that each row falls in, of columns read before.

        Parameters
        ----------
        columns : dict
            From features to columns, as `read_columns` gives them.
        n_rows : int
            How many rows they have.

        Returns
        -------
        array of int, of shape (n_rows,)
            From 0, as in `leaves`.
        """
        leaves = np.zeros(n_rows, dtype=np.intp)
        rows_at = {0: np.arange(n_rows)}
        for number, split in enumerate(self.splits):
            rows = rows_at.pop(number)
            truth = split.rule.judge(columns[split.rule.feature].take(rows))
            for child, part in ((split.if_true, rows[truth]), (split.if_false, rows[~truth])):
                if child < 0:
                    leaves[part] = ~child
                else:
                    rows_at[child] = part
        return leaves

    @property
    def leaf_verdicts(self) -> BoolArray:
        """Of each leaf whether its samples are predicted positive: if that is the more likely."""
        verdicts: BoolArray = self.leaf_probabilities() > 0.5
        return verdicts

    def leaf_probabilities(self) -> FloatArray:
        """(positives + 1) / (samples + 2) of each leaf, or the mean of it over environments.

        Returns
        -------
        array of float
            One for each leaf; environments without a sample in a leaf do not count there.
        """
        if not self.balanced:
            return super().leaf_probabilities()
        counts = np.array(self.leaves, dtype=np.float64)
        sizes = counts.sum(axis=1)
        rates = np.where(sizes > 0, (counts[:, 1] + 1.0) / (sizes + 2.0), 0.0)
        n_seen = (sizes > 0).sum(axis=1)
        return np.where(n_seen > 0, rates.sum(axis=1) / np.maximum(n_seen, 1), 0.5)

    # --- what is in it --------------------------------------------------------------------------

    @property
    def rules(self) -> tuple[Rule, ...]:
        """The rules of the splits, in their order."""
        return tuple(split.rule for split in self.splits)

    def replace_rules(self, change: Callable[[Rule], Rule]) -> Self:
        """The same tree with each rule changed.

        Parameters
        ----------
        change : callable
            From a rule to another.

        Returns
        -------
        Tree
            With the same splits and leaves.
        """
        return replace(self, splits=tuple(replace(s, rule=change(s.rule)) for s in self.splits))

    def without_rules(self) -> Self:
        """What saying nothing comes to: a tree without a split, on the same samples.

        Returns
        -------
        Tree
            One leaf, in which the more likely class is predicted.
        """
        return replace(self, splits=(), leaves=(add_up(self.leaves),))

    def list_paths(self) -> list[tuple[Rule, ...]]:
        """The way to each leaf.

        Returns
        -------
        list of tuples of Rule
            For each leaf the rules that are true of its samples, from the root down; negated where
            the way goes on if a rule is false.
        """
        start: tuple[Rule, ...] = ()
        ways = self._walk(start, lambda way, rule: (*way, rule))
        return [way for node, way in ways if node < 0]

    @property
    def leaf_texts(self) -> tuple[str, ...]:
        """The way to each leaf in the fewest words, such as `age > 63 and smoker == yes`."""
        if not self.splits:
            return (str(self),)
        told: dict[int, tuple[Rule, str]] = {}  # each rule is put into words once
        ways = self._walk(_Words(), _Words.add)
        return tuple(words.tell(told) for node, words in ways if node < 0)

    def _list_leaves(self) -> Iterator[int]:
        return (node for node, _ in self._walk(None, lambda _, __: None) if node < 0)

    def _walk(self, start: _T, extend: Callable[[_T, Rule], _T]) -> Iterator[tuple[int, _T]]:
        """Every node with what was made of the rules on the way to it; true sides first."""
        stack = [(0 if self.splits else ~0, start)]
        while stack:
            node, told = stack.pop()
            yield node, told
            if node >= 0:
                split = self.splits[node]
                stack.append((split.if_false, extend(told, split.rule.negate())))
                stack.append((split.if_true, extend(told, split.rule)))

    def list_nodes(self) -> Iterator[Node]:
        """The nodes of a walk that goes where rules are true first.

        Yields
        ------
        Node
            Its depth, its rule as text, its negative and positive samples, and its leaf's number
            or None.
        """
        leaves = [count_labels(leaf) for leaf in self.leaves]
        counts = [(0, 0)] * len(self.splits)
        for i in reversed(range(len(self.splits))):
            children = self.splits[i].if_true, self.splits[i].if_false
            one, other = (leaves[~each] if each < 0 else counts[each] for each in children)
            counts[i] = one[0] + other[0], one[1] + other[1]
        ways = self._walk((0, "all"), lambda way, rule: (way[0] + 1, str(rule)))
        for node, (depth, text) in ways:
            is_leaf = node < 0
            own = leaves[~node] if is_leaf else counts[node]
            yield Node(depth, text, own, ~node if is_leaf else None)

    def to_dict(self) -> dict[str, Any]:
        """The model as plain values.

        Returns
        -------
        dict
            What `make_model` turns back into this model.
        """
        splits = [
            {"rule": each.rule.to_dict(), "if_true": each.if_true, "if_false": each.if_false}
            for each in self.splits
        ]
        leaves = [[list(row) for row in leaf] for leaf in self.leaves]
        return {"kind": self.kind, "splits": splits, "leaves": leaves, "balanced": self.balanced}

    # --- in words -------------------------------------------------------------------------------

    def __str__(self) -> str:
        if not self.splits:
            return self._describe_nothing()
        words = self._name_verdicts()
        lines = [_make_line(node, words) for node in self.list_nodes()]
        if self.balanced:
            lines[0] += " (predicts by the mean of the environments' rates)"
        return "\n".join(lines)

    def _name_verdicts(self) -> list[str]:
        return ["positive" if each else "negative" for each in self.leaf_verdicts.tolist()]

    def _display(self) -> Display:
        """The tree, a row for each of its nodes."""
        if not self.splits:
            return Display(f"Tree: {self}")
        words = self._name_verdicts()
        rows = [
            (
                _indent(node.depth) + clip(node.text, _WIDTH),
                "" if node.leaf is None else words[node.leaf],
                *tell_counts(*node.counts),
            )
            for node in self.list_nodes()
        ]
        line = f"Tree of {count(len(self.leaves), 'leaf')}"
        return Display(line, ("node", "predicts", ">samples", ">positive", ">rate"), rows)

    def _describe_nothing(self) -> str:
        """What a tree without a split says."""
        (verdict,) = self._name_verdicts()
        n, _, rate = tell_counts(*count_labels(self.leaves[0]))
        share = "" if n == "0" else f": {rate} of {n} samples are positive"
        return f"no split was found (always {verdict}{share})"


class _Words(NamedTuple):
    """The way to a leaf: rules joined as far as they join, and how many more there are."""

    rules: tuple[Rule, ...] = ()
    n_more: int = 0

    def add(self, rule: Rule) -> _Words:
        rules = add_rule(self.rules, rule, all_hold=True)
        if len(rules) > _MAX_WORDS:
            return _Words(self.rules, self.n_more + 1)
        return _Words(rules, self.n_more)

    def tell(self, told: dict[int, tuple[Rule, str]]) -> str:
        for rule in self.rules:
            if id(rule) not in told:
                told[id(rule)] = rule, clip(str(rule), _MAX_RULE)
        more = [count(self.n_more, "more rule")] if self.n_more else []
        return " and ".join([*(told[id(rule)][1] for rule in self.rules), *more])


def _indent(depth: int) -> str:
    """Two blanks a level; what is very deep says how deep."""
    return "  " * depth if depth <= _MAX_INDENT else f"{'  ' * _MAX_INDENT}[{depth:,}] "


def _make_line(node: Node, words: Sequence[str]) -> str:
    """A node in a line that fits a terminal, whatever the names in it."""
    samples, _, rate = tell_counts(*node.counts)
    tail = f": {rate} of {samples}" + ("" if node.leaf is None else f" -> {words[node.leaf]}")
    start = _indent(node.depth)
    return start + clip(node.text, max(_MIN_RULE, _WIDTH - len(start) - len(tail))) + tail
