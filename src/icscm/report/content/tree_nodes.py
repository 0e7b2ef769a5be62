"""The nodes of a model from the root down, as a report draws them."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from icscm._types import CountArray
from icscm.model.forest import Model
from icscm.model.rules import Rule
from icscm.model.splits import Split, decode_leaf, encode_leaf, is_leaf, walk
from icscm.model.tree import Tree
from icscm.report.content.rates import make_rates
from icscm.report.formatting import Names


@dataclass(frozen=True, kw_only=True)
class Node:
    """A node of the model, as `walk_nodes` lists them.

    Parameters
    ----------
    depth, rule : int, str
        Levels below the root, and the rule that leads to it.
    answer, question : str or None
        "yes" or "no" of the split above, and the rule of its own split.
    n, n_positive, rate, rate_interval : int, int, float or None, list of two floats or None
        As of `Rate`.
    split, leaf : int or None
        Its number among the splits or among the leaves, from 1.
    is_positive, predicts : bool or None, str or None
        Of a leaf: its prediction.
    """

    depth: int
    rule: str
    answer: str | None
    question: str | None
    n: int
    n_positive: int
    rate: float | None
    rate_interval: list[float] | None
    split: int | None
    leaf: int | None
    is_positive: bool | None
    predicts: str | None


@dataclass(frozen=True)
class NodePlace:
    """Where a node is: the levels above it, and the rule that leads to it."""

    depth: int
    rule: str

    def descend(self, rule: Rule) -> "NodePlace":
        """Return the place of a child, to which this rule leads."""
        return NodePlace(self.depth + 1, str(rule))


def walk_nodes(model: Model, names: Names) -> Iterator[Node]:
    """Return nodes from the root down, the side of the leaf with the smaller number first.

                        question     answer    split    leaf
        all samples     age > 63?              1
        |- age > 63                  yes                1
        '- age <= 63                 no                 2

    A forest and a score have no nodes. Nodes are numbered as the children of splits are: a split
    by its position, and a leaf by a number below 0 (see `icscm.model.splits`).
    """
    if not isinstance(model, Tree):
        return
    totals = sum_nodes(model)
    smallest_leaves = find_smallest_leaves(model.splits)
    answers = find_answers(model.splits)
    is_positive_leaf = model.leaf_verdicts.tolist()
    places = dict(walk(model.splits, NodePlace(0, "all samples"), NodePlace.descend))

    def get_rank(node: int) -> tuple[int, int]:
        # a split before the nodes below it, with which it may share its smallest leaf
        return smallest_leaves[node], places[node].depth

    for node in sorted(places, key=get_rank):
        place = places[node]
        n_negative, n_positive = totals[node].tolist()
        (rate,) = make_rates([n_positive], [n_negative + n_positive])

        question: str | None = None
        split_number: int | None = None
        leaf_number: int | None = None
        is_positive: bool | None = None
        predicts: str | None = None
        if is_leaf(node):
            leaf = decode_leaf(node)
            leaf_number = leaf + 1
            is_positive = is_positive_leaf[leaf]
            predicts = names.predict(is_positive_leaf[leaf])
        else:
            split_number = node + 1
            question = f"{model.splits[node].rule}?"
        yield Node(
            depth=place.depth,
            rule=place.rule,
            answer=answers.get(node),
            question=question,
            **vars(rate),
            split=split_number,
            leaf=leaf_number,
            is_positive=is_positive,
            predicts=predicts,
        )


def sum_nodes(model: Tree) -> dict[int, CountArray]:
    """Return the rows of each node by outcome: those of its two children together.

    The children of a split have larger numbers than the split, or are leaves, so that splits are
    summed from the last one up. Leaves are encoded as among children, see `encode_leaf`.
    """
    totals = {encode_leaf(number): np.sum(leaf, axis=1) for number, leaf in enumerate(model.leaves)}
    for number, split in reversed(list(enumerate(model.splits))):
        totals[number] = totals[split.if_true] + totals[split.if_false]
    return totals


def find_smallest_leaves(splits: tuple[Split, ...]) -> dict[int, int]:
    """Return the smallest number of a leaf below each node, from the last split up."""
    n_leaves = len(splits) + 1
    smallest = {encode_leaf(number): number for number in range(n_leaves)}
    for number, split in reversed(list(enumerate(splits))):
        smallest[number] = min(smallest[split.if_true], smallest[split.if_false])
    return smallest


def find_answers(splits: tuple[Split, ...]) -> dict[int, str]:
    """Return the answer to the rule above each node; the root has none."""
    answers = {}
    for split in splits:
        answers[split.if_true] = "yes"
        answers[split.if_false] = "no"
    return answers
