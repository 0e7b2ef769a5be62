"""Forests: many trees that predict by their mean."""

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Final, Self

import numpy as np

from icscm._repr import Display
from icscm.exceptions import IcscmError
from icscm.formatting import count, format_name, shorten_list
from icscm.model.calibration import CalibratedModel, Decisions
from icscm.model.routes import name_unseen, read_columns
from icscm.model.rules import Rule
from icscm.model.score import Score
from icscm.model.splits import CHAINS, sum_leaves
from icscm.model.tree import Tree
from icscm.tables.columns import count_rows


@dataclass(frozen=True, repr=False)
class Forest(CalibratedModel):
    """Trees that predict together: the probability is the mean of theirs.

    Parameters
    ----------
    trees : tuple of Tree
        At least one.
    calibration, threshold, training_values : pair of floats, float or None, tuple
        As in `CalibratedModel`; the raw probability is the mean.

    Examples
    --------
    >>> from icscm.model.forest import Forest
    >>> from icscm.model.rules import ThresholdRule
    >>> from icscm.model.tree import Split, Tree
    >>> rule = ThresholdRule(column=0, name="age", threshold=63, above=True)
    >>> tree = Tree((Split(rule, -1, -2),), (((1, 2), (3, 4)), ((5, 6), (0, 1))))
    >>> print(Forest((tree, tree)))
    forest of 2 trees with 2 leaves each
    trees that use a feature: age (2)
    """

    trees: tuple[Tree, ...]

    kind: ClassVar[str] = "forest"

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.trees:
            raise IcscmError("a forest has at least one tree")

    def decide(self, X: Any) -> Decisions:
        """Return prediction, probability and number of trees above 0.5 of each row, in one pass.

        Parameters
        ----------
        X : array, sparse matrix or frame of shape (n_samples, n_features)
            The features.

        Returns
        -------
        Decisions
            A tuple of three arrays: `prediction`, `probability`, `decided_by`.
        """
        n_rows = count_rows(X)
        n_trees = len(self.trees)
        columns, unseen = read_columns(X, self.rules, self.training_values)

        sum_of_probabilities = np.zeros(n_rows)
        n_positive_trees = np.zeros(n_rows, dtype=np.intp)
        is_blended = np.zeros(n_rows, dtype=np.bool_)
        for tree in self.trees:  # in order, as in exported code, so that sums are identical
            followed = tree.follow(columns, unseen, n_rows)
            probabilities = tree.leaf_probabilities()[followed.leaves]
            is_positive = tree.leaf_verdicts[followed.leaves]

            # Rows that lack a value of a rule fall in several leaves, and get the mean of these.
            blend = followed.blend
            if len(blend.rows):
                probabilities[blend.rows] = blend.probability
                is_positive[blend.rows] = tree.is_positive(blend.probability)
                is_blended[blend.rows] = True

            sum_of_probabilities += probabilities
            n_positive_trees += is_positive
        probability = self.calibrate(sum_of_probabilities / n_trees)

        # What decided: how many trees are above 0.5, and what is missing, if anything.
        texts = [f"{n:,} of {count(n_trees, 'tree')} above 0.5" for n in range(n_trees + 1)]
        decided_by = np.array(texts, dtype=object)[n_positive_trees]
        blended_rows = np.flatnonzero(is_blended)
        if len(blended_rows):
            missing = name_unseen(unseen, blended_rows)
            decided_by[blended_rows] = missing + decided_by[blended_rows]
        return Decisions(self.is_positive(probability), probability, decided_by)

    @property
    def rules(self) -> tuple[Rule, ...]:
        """The rules of all trees, each once."""
        return tuple(dict.fromkeys(rule for tree in self.trees for rule in tree.rules))

    def replace_rules(self, change: Callable[[Rule], Rule]) -> Self:
        """Return the same forest with each rule changed.

        Parameters
        ----------
        change : callable
            From a rule to another.

        Returns
        -------
        Forest
            With the same splits and leaves.
        """
        return replace(self, trees=tuple(tree.replace_rules(change) for tree in self.trees))

    def make_baseline(self) -> Tree:
        """Make the majority-class baseline, on the rows of all trees.

        Returns
        -------
        Tree
            One leaf, in which the more likely class is predicted.
        """
        leaves = tuple(leaf for tree in self.trees for leaf in tree.leaves)
        return replace(self.trees[0].make_baseline(), leaves=(sum_leaves(leaves),))

    def count_uses(self) -> dict[str | int, int]:
        """Count the trees that use each feature.

        Returns
        -------
        dict
            From features to numbers of trees, the most used first.
        """
        uses: Counter[str | int] = Counter()
        for tree in self.trees:
            columns_in_order = dict.fromkeys(rule.feature for rule in tree.rules)
            uses.update(list(columns_in_order))
        return dict(uses.most_common())

    def to_dict(self) -> dict[str, Any]:
        """Return the model as plain values.

        Returns
        -------
        dict
            What a model file holds.
        """
        trees = [tree.to_dict() for tree in self.trees]
        return {"kind": self.kind, "trees": trees} | self._list_fields()

    def __len__(self) -> int:
        return len(self.trees)

    def __str__(self) -> str:
        sizes = [len(tree.leaves) for tree in self.trees]
        leaves = count(max(sizes), "leaf")
        if min(sizes) < max(sizes):
            leaves = f"{min(sizes):,} to {leaves}"
        uses = [f"{format_name(name)} ({n:,})" for name, n in self.count_uses().items()]
        lines = [
            f"forest of {count(len(self.trees), 'tree')} with {leaves} each",
            f"trees that use a feature: {shorten_list(uses) or 'none, since no split was found'}",
        ]
        if self.is_calibrated:
            lines.append(f"calibrated: {self.describe_calibration()}")
        if self.threshold is not None:
            lines.append(self.describe_threshold())
        return "\n".join(lines)

    def _display(self) -> Display:
        """Show how many trees and splits use each feature, below the first line of the text."""
        n_splits = Counter(rule.feature for tree in self.trees for rule in tree.rules)
        rows = [
            (format_name(feature), f"{n_trees:,}", f"{n_splits[feature]:,}")
            for feature, n_trees in self.count_uses().items()
        ]
        line, _, _ = str(self).partition("\n")
        return Display(line[0].upper() + line[1:], ("feature", ">trees", ">splits"), rows)


Model = Tree | Forest | Score

KINDS: Final = (*CHAINS, "tree", Forest.kind, Score.kind)


def describe_size(model: Model) -> str:
    """Describe a model by kind and size, such as `tree of 15 splits`.

    >>> from icscm.model.tree import make_chain
    >>> describe_size(make_chain("conjunction", (), (((3, 1), (2, 2)),)))
    'conjunction of 0 rules'
    """
    part = {"tree": "split", "forest": "tree", "score": "column"}.get(model.kind, "rule")
    return f"{model.kind} of {count(len(model), part)}"
