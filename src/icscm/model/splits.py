"""Splits and leaves of a tree: their shape, walks over them, and their text.

A tree is flat, so that no depth is too deep. A child is a split if its number is at least 0, and
leaf `~number` if it is below (`is_leaf`, `encode_leaf`, `decode_leaf`):

    split 0: age > 63 --true--> split 1: smoker == yes --true--> -1, leaf 0
        |false                      |false
      -3, leaf 2                  -2, leaf 1

In a chain (Figure 2 of the paper) leaf i holds the rows that rule i covers, and the last leaf the
uncovered rows. A conjunction covers a row where a rule is false, a disjunction where a rule is
true:

    rule 0 --true--> rule 1 --true--> ... --true--> leaf d   (prediction: positive)
      |false           |false
    leaf 0           leaf 1                                  (prediction: negative)
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from icscm._types import BoolArray
from icscm.exceptions import IcscmError
from icscm.formatting import clip, count
from icscm.model.rules import Rule, add_rule

# Columns of a terminal, and the least of them that a rule gets.
WIDTH: Final = 80
_MIN_RULE_WIDTH: Final = 24
# Indentation steps before the depth of a node is written as a number instead.
_MAX_INDENT: Final = 16
# Rules on the path to a leaf that are written out, and characters of each. A file may hold more.
_MAX_RULES: Final = 32
MAX_RULE: Final = 255

PathValue = TypeVar("PathValue")

# Rows of one leaf, by outcome and environment.
LeafCounts = tuple[tuple[int, ...], ...]


@dataclass(frozen=True)
class Chain:
    """A kind of chain.

    A rule covers the rows for which it is `covers_when`. `joiner` joins the rules in the model's
    text; `covered` and `uncovered` are the texts of the leaves.
    """

    covers_when: bool
    joiner: str
    covered: str
    uncovered: str


CHAINS: Final = {
    "conjunction": Chain(
        covers_when=False, joiner=" and ", covered="not met", uncovered="all rules met"
    ),
    "disjunction": Chain(covers_when=True, joiner=" or ", covered="met", uncovered="no rule met"),
}


@dataclass(frozen=True, slots=True)
class Split:
    """A rule, and where its rows go if it is true or false: a split, or below 0 a leaf."""

    rule: Rule
    if_true: int
    if_false: int


def is_leaf(child: int) -> bool:
    """Whether a child is a leaf, rather than a split."""
    return child < 0


def encode_leaf(number: int) -> int:
    """Return what stands for a leaf among children, which are splits from 0 on: `~number`.

    >>> [encode_leaf(number) for number in (0, 1, 2)]
    [-1, -2, -3]
    """
    return ~number


def decode_leaf(child: int) -> int:
    """Return the number of the leaf that a child stands for."""
    return ~child


class Fork(Protocol):
    """A split of any kind: where its rows go. A leaf is encoded, see `encode_leaf`."""

    @property
    def if_true(self) -> int: ...

    @property
    def if_false(self) -> int: ...


AnySplit = TypeVar("AnySplit", bound=Fork)


def find_leaves(
    splits: Sequence[AnySplit],
    n_rows: int,
    *,
    find_true: Callable[[AnySplit, NDArray[np.intp]], BoolArray],
) -> NDArray[np.intp]:
    """Find the leaf in which each row falls: all rows start at the root, and part at each split.

    A split comes before its children, so that its rows are known when it is its turn.

    Parameters
    ----------
    splits : sequence
        The splits of a tree, a parent before its children.
    n_rows : int
        The number of rows.
    find_true : callable
        Finds of which of some rows, given by number, the rule of a split is true.
    """
    leaves = np.zeros(n_rows, dtype=np.intp)
    rows_of_split = {0: np.arange(n_rows)}
    for number, split in enumerate(splits):
        rows = rows_of_split.pop(number)
        is_true = find_true(split, rows)
        parts = (split.if_true, rows[is_true]), (split.if_false, rows[~is_true])
        for child, its_rows in parts:
            if is_leaf(child):
                leaves[its_rows] = decode_leaf(child)
            else:
                rows_of_split[child] = its_rows
    return leaves


def make_chain_splits(kind: str, rules: Sequence[Rule]) -> tuple[Split, ...]:
    """Make the splits of a chain of rules: each rule has a leaf, and the last one two.

    A row goes down the chain until a rule decides it, or *covers* it; after the last rule, the rows
    that none covers are in a leaf of their own. A conjunction covers where a rule is false:

        split 0, age > 63         false: leaf 0      true: split 1
        split 1, smoker == yes    false: leaf 1      true: leaf 2
    """
    splits = []
    for number, rule in enumerate(rules):
        covered = encode_leaf(number)
        is_last = number == len(rules) - 1
        uncovered = encode_leaf(len(rules)) if is_last else number + 1
        if CHAINS[kind].covers_when:
            splits.append(Split(rule, if_true=covered, if_false=uncovered))
        else:
            splits.append(Split(rule, if_true=uncovered, if_false=covered))
    return tuple(splits)


def check_splits(splits: Sequence[Split]) -> None:
    """Raise unless the splits form a tree, numbered as trees are.

    A child is the number of a split, from 0 on, or stands for a leaf by a negative number: -1 for
    leaf 0, -2 for leaf 1. A tree of n splits has n + 1 leaves, and

        - every split but the first, and every leaf, is the child of one split
        - a split has a greater number than its parent
        - leaves are numbered from left to right, if the branch for true is drawn on the left
    """
    n_splits = len(splits)
    children = [child for split in splits for child in (split.if_true, split.if_false)]
    encoded_leaves = [*range(-n_splits - 1, 0)]
    splits_but_first = [*range(1, n_splits)]
    if n_splits and sorted(children) != encoded_leaves + splits_but_first:
        raise IcscmError("every split but the first, and every leaf, must be reached once")

    for parent, split in enumerate(splits):
        if any(not is_leaf(child) and child <= parent for child in (split.if_true, split.if_false)):
            raise IcscmError("the number of a split must be greater than that of its parent")

    nodes_in_order = [node for node, _ in walk(splits, None, lambda path, _: path)]
    leaf_numbers = [decode_leaf(node) for node in nodes_in_order if is_leaf(node)]
    if leaf_numbers != [*range(n_splits + 1)]:
        raise IcscmError("leaves must be numbered by a walk that visits the true side first")


def walk(
    splits: Sequence[Split], start: PathValue, extend: Callable[[PathValue, Rule], PathValue]
) -> Iterator[tuple[int, PathValue]]:
    """Walk a tree depth first, the true side first.

    Yields each node's number and the value of its path: `extend` applied to `start` and to the
    rules on the path, one after the other.
    """
    root = 0 if splits else encode_leaf(0)
    waiting = [(root, start)]
    while waiting:
        node, path = waiting.pop()
        yield node, path
        if is_leaf(node):
            continue

        split = splits[node]
        # The last one is visited next.
        waiting.append((split.if_false, extend(path, split.rule.negate())))
        waiting.append((split.if_true, extend(path, split.rule)))


# --- text -----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class NodeLine:
    """What a line of a printed tree says of a node; `leaf` is None where it is split further."""

    depth: int
    text: str
    counts: tuple[int, int]
    leaf: int | None

    @property
    def indent(self) -> str:
        """Two spaces for each level; a very deep node has its depth as a number."""
        if self.depth <= _MAX_INDENT:
            return "  " * self.depth
        return f"{'  ' * _MAX_INDENT}[{self.depth:,}] "

    def format(self, verdicts: Sequence[str]) -> str:
        """Return a line that fits a terminal, however long the names in it are."""
        n_rows, _, rate = format_counts(*self.counts)
        verdict = "" if self.leaf is None else f" -> {verdicts[self.leaf]}"
        end = f": {rate} of {n_rows}{verdict}"
        width = max(_MIN_RULE_WIDTH, WIDTH - len(self.indent) - len(end))
        return self.indent + clip(self.text, width) + end


@dataclass(frozen=True)
class _PathText:
    """The path to a leaf as it is written: rules, joined where possible, and how many follow."""

    rules: tuple[Rule, ...] = ()
    n_more: int = 0

    def add(self, rule: Rule) -> "_PathText":
        """Return the path with one rule more, joined with others where possible."""
        rules = add_rule(self.rules, rule, all_hold=True)
        if len(rules) > _MAX_RULES:
            return _PathText(self.rules, self.n_more + 1)
        return _PathText(rules, self.n_more)

    def format(self, texts: "_RuleTexts") -> str:
        """Return the path as text."""
        parts = [texts.format(rule) for rule in self.rules]
        if self.n_more:
            parts.append(count(self.n_more, "more rule"))
        return " and ".join(parts)


class _RuleTexts:
    """The texts of rules, each formatted once: the rules of a large tree are on many paths."""

    def __init__(self) -> None:
        # by identity, which is faster than to compare rules; it also keeps the rules alive
        self._texts: dict[int, tuple[Rule, str]] = {}

    def format(self, rule: Rule) -> str:
        """Return the text of a rule, clipped."""
        if id(rule) not in self._texts:
            self._texts[id(rule)] = rule, clip(str(rule), MAX_RULE)
        _, text = self._texts[id(rule)]
        return text


def format_paths(splits: Sequence[Split]) -> tuple[str, ...]:
    """Write the path to each leaf in the fewest words, such as `age > 63 and smoker == yes`."""
    texts = _RuleTexts()
    nodes = walk(splits, _PathText(), _PathText.add)
    return tuple(path.format(texts) for node, path in nodes if is_leaf(node))


# --- leaves --------------------------------------------------------------------------------------


def freeze_counts(counts: Sequence[Any] | NDArray[Any]) -> Any:
    """Return the counts of a leaf, or of several, as tuples of plain integers.

    Tuples are immutable and can be compared and hashed, as models can.
    """
    nested = counts.tolist() if isinstance(counts, np.ndarray) else counts
    is_one_leaf = not isinstance(nested[0][0], list | tuple)
    if is_one_leaf:
        return tuple(tuple(map(int, outcome)) for outcome in nested)
    return tuple(tuple(tuple(map(int, outcome)) for outcome in leaf) for leaf in nested)


def sum_leaves(leaves: Sequence[LeafCounts]) -> LeafCounts:
    """Sum the rows of several leaves."""
    totals: LeafCounts = freeze_counts(np.array(leaves, dtype=object).sum(axis=0).tolist())
    return totals


def count_labels(leaf: LeafCounts) -> tuple[int, int]:
    """Count the negative and the positive rows of a leaf."""
    negative, positive = leaf
    return sum(negative), sum(positive)


def format_counts(n_negative: int, n_positive: int) -> tuple[str, str, str]:
    """Write the number of rows, the number of positive rows, and their rate."""
    n_rows = n_negative + n_positive
    rate = f"{n_positive / n_rows:.1%}" if n_rows else "-"
    return f"{n_rows:,}", f"{n_positive:,}", rate
