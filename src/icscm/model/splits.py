"""Splits and leaves of a tree: their shape, walks over them, and their text.

A tree is flat, so that no depth is too deep. A child number below 0 is a leaf, `~number`:

    split 0: age > 63 --true--> split 1: smoker == yes --true--> -1, leaf 0
        |false                      |false
      -3, leaf 2                  -2, leaf 1

In a chain (Figure 2 of the paper) leaf i holds the samples that rule i covers, and the last leaf
the uncovered samples. A conjunction covers a sample where a rule is false, a disjunction where a
rule is true:

    rule 0 --true--> rule 1 --true--> ... --true--> leaf d   (prediction: positive)
      |false           |false
    leaf 0           leaf 1                                  (prediction: negative)
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from icscm.exceptions import IcscmError
from icscm.formatting import clip, count
from icscm.model.rules import Rule, add_rule

# Columns of a terminal, and the least of them that a rule gets.
WIDTH: Final = 80
_MIN_RULE: Final = 24
# Indentation steps before the depth of a node is written as a number instead.
_MAX_INDENT: Final = 16
# Rules on the path to a leaf that are written out, and characters of each. A file may hold more.
_MAX_RULES: Final = 32
MAX_RULE: Final = 255

_T = TypeVar("_T")

# Samples of one leaf, by label and environment.
LeafCounts = tuple[tuple[int, ...], ...]


class Chain(NamedTuple):
    """A kind of chain: the truth of a rule that covers a sample, and the text of its leaves."""

    covers_when: bool
    joiner: str
    covered: str
    uncovered: str


CHAINS: Final = {
    "conjunction": Chain(False, " and ", "not met", "all rules met"),
    "disjunction": Chain(True, " or ", "met", "no rule met"),
}


@dataclass(frozen=True, slots=True)
class Split:
    """A rule, and where its samples go if it is true or false: a split, or below 0 a leaf."""

    rule: Rule
    if_true: int
    if_false: int


class Node(NamedTuple):
    """A node of a walk over a tree; `leaf` is None where it is split further."""

    depth: int
    text: str
    counts: tuple[int, ...]
    leaf: int | None

    @property
    def indent(self) -> str:
        """Two spaces a level; a very deep node has its depth as a number."""
        if self.depth <= _MAX_INDENT:
            return "  " * self.depth
        return f"{'  ' * _MAX_INDENT}[{self.depth:,}] "

    def format(self, verdicts: Sequence[str]) -> str:
        """A line that fits a terminal, however long the names in it are."""
        samples, _, rate = format_counts(*self.counts)
        verdict = "" if self.leaf is None else f" -> {verdicts[self.leaf]}"
        tail = f": {rate} of {samples}{verdict}"
        width = max(_MIN_RULE, WIDTH - len(self.indent) - len(tail))
        return self.indent + clip(self.text, width) + tail


def encode_leaf(number: int) -> int:
    """Return what stands for a leaf among children, which are splits from 0 on: `~number`.

    >>> [encode_leaf(number) for number in (0, 1, 2)]
    [-1, -2, -3]
    """
    return ~number


def is_leaf(child: int) -> bool:
    """Whether a child is a leaf, rather than a split."""
    return child < 0


def decode_leaf(child: int) -> int:
    """Return the number of the leaf that a child stands for."""
    return ~child


def make_chain_splits(kind: str, rules: Sequence[Rule]) -> tuple[Split, ...]:
    """The splits of a conjunction or disjunction."""
    n_rules = len(rules)
    splits = []
    for number, rule in enumerate(rules):
        covered = encode_leaf(number)
        is_last = number + 1 == n_rules
        onward = encode_leaf(n_rules) if is_last else number + 1
        if CHAINS[kind].covers_when:
            splits.append(Split(rule, if_true=covered, if_false=onward))
        else:
            splits.append(Split(rule, if_true=onward, if_false=covered))
    return tuple(splits)


def check_splits(splits: Sequence[Split]) -> None:
    """Raise unless the splits form a tree, numbered as trees are."""
    n = len(splits)
    children = [child for each in splits for child in (each.if_true, each.if_false)]
    if sorted(children) != ([*range(-n - 1, 0), *range(1, n)] if n else []):
        raise IcscmError("every split but the first, and every leaf, must be reached once")
    if any(0 <= child <= place // 2 for place, child in enumerate(children)):
        raise IcscmError("the number of a split must be greater than that of its parent")
    leaves = [decode_leaf(node) for node, _ in walk(splits, 0, lambda _, __: 0) if is_leaf(node)]
    if leaves != list(range(n + 1)):
        raise IcscmError("leaves must be numbered by a walk that visits the true side first")


def walk(
    splits: Sequence[Split], start: _T, extend: Callable[[_T, Rule], _T]
) -> Iterator[tuple[int, _T]]:
    """Every node with the value of `extend` for the rules on its path; depth first, true first."""
    stack = [(0 if splits else encode_leaf(0), start)]
    while stack:
        node, path = stack.pop()
        yield node, path
        if not is_leaf(node):
            split = splits[node]
            stack.append((split.if_false, extend(path, split.rule.negate())))
            stack.append((split.if_true, extend(path, split.rule)))


class _Path(NamedTuple):
    """The path to a leaf: rules, joined where possible, and the number of further rules."""

    rules: tuple[Rule, ...] = ()
    n_more: int = 0

    def add(self, rule: Rule) -> "_Path":
        rules = add_rule(self.rules, rule, all_hold=True)
        if len(rules) > _MAX_RULES:
            return _Path(self.rules, self.n_more + 1)
        return _Path(rules, self.n_more)

    def format(self, texts: dict[int, tuple[Rule, str]]) -> str:
        for rule in self.rules:
            if id(rule) not in texts:
                texts[id(rule)] = rule, clip(str(rule), MAX_RULE)
        more = [count(self.n_more, "more rule")] if self.n_more else []
        return " and ".join([*(texts[id(rule)][1] for rule in self.rules), *more])


def format_paths(splits: Sequence[Split]) -> tuple[str, ...]:
    """The path to each leaf of a tree in the fewest words, such as `age > 63 and smoker == yes`."""
    texts: dict[int, tuple[Rule, str]] = {}  # each rule is formatted once
    return tuple(
        path.format(texts) for node, path in walk(splits, _Path(), _Path.add) if is_leaf(node)
    )


# --- leaves --------------------------------------------------------------------------------------


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
