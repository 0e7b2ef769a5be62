"""The model that predicts: a tree of splits; a conjunction or disjunction is a tree of one branch.

    X --routes--> the leaf of each row --rate of the leaf, calibrated--> probability --> prediction

How splits and leaves are numbered is said in `icscm.model.splits`.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np

from icscm._repr import Display
from icscm._types import Array, BoolArray, CountArray, FloatArray
from icscm.exceptions import IcscmError
from icscm.formatting import clip, count
from icscm.model import routes
from icscm.model import splits as tree_splits
from icscm.model.calibration import IDENTITY, CalibratedModel, Decisions
from icscm.model.routes import Columns, FollowedRows, RowNumbers, Unseen
from icscm.model.rules import Rule, simplify
from icscm.model.splits import (
    CHAINS,
    LeafCounts,
    NodeLine,
    Split,
    count_labels,
    decode_leaf,
    format_counts,
    is_leaf,
    walk,
)
from icscm.tables.columns import count_rows


@dataclass(frozen=True, repr=False)
class Tree(CalibratedModel):
    """Splits, and the training counts of the leaves that they lead to.

    Parameters
    ----------
    splits : tuple of Split
        The first is the root; the number of a split is greater than that of its parent.
    leaves : tuple of counts by (outcome, environment)
        Training rows of each leaf, one more than there are splits. In a tree, leaves are numbered
        by a depth-first walk that visits the true side first; in a chain, leaf i holds the rows
        that rule i covers and the last leaf the uncovered rows.
    kind : {"tree", "conjunction", "disjunction"}, default="tree"
        A leaf of a tree predicts its more likely class. A conjunction predicts positive where all
        rules are true, a disjunction where any is; both are chains.
    balanced : bool, default=False
        Whether a leaf's probability is the mean over its environments, each with equal weight,
        instead of over its rows.
    calibration, threshold, training_values : pair of floats, float or None, tuple
        As in `CalibratedModel`. Probabilities and verdicts of leaves follow them.

    Examples
    --------
    >>> from icscm.model.rules import ThresholdRule
    >>> from icscm.model.tree import Split, Tree
    >>> rule = ThresholdRule(column=0, name="age", threshold=63, above=True)
    >>> print(Tree((Split(rule, -1, -2),), (((1, 2), (3, 4)), ((5, 6), (0, 1)))))
    all: 36.4% of 22
      age > 63: 70.0% of 10 -> positive
      age <= 63: 8.3% of 12 -> negative
    """

    splits: tuple[Split, ...]
    leaves: tuple[LeafCounts, ...]
    kind: str = "tree"
    balanced: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        n_splits = len(self.splits)
        if len(self.leaves) != n_splits + 1:
            unit = "rule" if self.is_chain else "split"
            n_leaves = count(n_splits + 1, "leaf")
            raise IcscmError(
                f"a {self.kind} of {count(n_splits, unit)} has {n_leaves}, got counts for "
                f"{len(self.leaves):,}"
            )
        if not self.is_chain:
            tree_splits.check_splits(self.splits)
        elif self.splits != tree_splits.make_chain_splits(self.kind, self.rules):
            raise IcscmError(f"the splits of a {self.kind} must form a chain")

    # --- predicting -----------------------------------------------------------------------------

    def predict(self, X: Any) -> BoolArray:
        """Predict whether each row is positive.

        Parameters
        ----------
        X : array, sparse matrix or frame of shape (n_samples, n_features)
            The features.

        Returns
        -------
        array of bool, of shape (n_samples,)
            The verdict of each row's leaf; by the probability where a row falls in several.
        """
        return self._predict_rows(self._follow_rows(X))

    def predict_proba(self, X: Any) -> FloatArray:
        """Predict the probability that each row is positive, from its leaf's training rows.

        Where a value is missing that never was at fitting, it is the mean of both branches of the
        rule.

        Parameters
        ----------
        X : array, sparse matrix or frame of shape (n_samples, n_features)
            The features.

        Returns
        -------
        array of float, of shape (n_samples,)
            Between 0 and 1, both excluded.
        """
        return self._compute_probabilities(self._follow_rows(X))

    def decide(self, X: Any) -> Decisions:
        """Return prediction, probability and what decided for each row, in one pass.

        Parameters
        ----------
        X : array, sparse matrix or frame of shape (n_samples, n_features)
            The features.

        Returns
        -------
        Decisions
            A tuple of three arrays: `prediction`, `probability`, `decided_by`.
        """
        followed = self._follow_rows(X)
        return Decisions(
            prediction=self._predict_rows(followed),
            probability=self._compute_probabilities(followed),
            decided_by=self._name_deciding_leaves(followed),
        )

    def _predict_rows(self, followed: FollowedRows) -> BoolArray:
        """Return the verdict of each row's leaf; that of the mean where it falls in several."""
        is_positive = self.leaf_verdicts[followed.leaves]
        is_positive[followed.blend.rows] = self.is_positive(followed.blend.probability)
        return is_positive

    def _compute_probabilities(self, followed: FollowedRows) -> FloatArray:
        """Return the probability of each row's leaf; the mean where it falls in several."""
        probability = self.leaf_probabilities()[followed.leaves]
        probability[followed.blend.rows] = followed.blend.probability
        return probability

    def _name_deciding_leaves(self, followed: FollowedRows) -> Array:
        """Return the text of each row's leaf; what is missing where it falls in several."""
        texts = np.array(self.leaf_texts, dtype=object)[followed.leaves]
        blend = followed.blend
        if len(blend.rows):
            means = [f"mean of {n} leaves" for n in blend.n_leaves.tolist()]
            missing = routes.name_unseen(followed.unseen, blend.rows)
            texts[blend.rows] = missing + np.array(means, dtype=object)
        return texts

    def find_leaves(self, X: Any) -> RowNumbers:
        """Find the number of the leaf that each row falls in.

        Parameters
        ----------
        X : array, sparse matrix or frame of shape (n_samples, n_features)
            The features.

        Returns
        -------
        array of int, of shape (n_samples,)
            From 0, as in `leaves`. For a row in several leaves, that of the larger branches.
        """
        followed = self._follow_rows(X)
        leaves = followed.leaves
        leaves[followed.blend.rows] = followed.blend.leaf
        return leaves

    def _follow_rows(self, X: Any) -> FollowedRows:
        columns, unseen = routes.read_columns(X, self.rules, self.training_values)
        return self.follow(columns, unseen, count_rows(X))

    def follow(self, columns: Columns, unseen: Unseen, n_rows: int) -> FollowedRows:
        """Follow rows to their leaves, for columns that were read before.

        Parameters
        ----------
        columns, unseen : dict
            As `icscm.model.routes.read_columns` returned them.
        n_rows : int
            Number of rows.

        Returns
        -------
        FollowedRows
            The leaf of each row; rows that lack a value which never was missing at fitting, and
            their probabilities.
        """
        leaves = routes.follow_splits(self.splits, columns, n_rows)
        can_be_unsure = any(rule.is_unsure and rule.feature in unseen for rule in self.rules)
        if not can_be_unsure:
            return FollowedRows(leaves=leaves, blend=routes.NO_BLEND, unseen=unseen)

        blend = routes.blend(
            self.splits,
            shares=self.shares,
            probabilities=self.leaf_probabilities(),
            columns=columns,
            unseen=unseen,
        )
        return FollowedRows(leaves=leaves, blend=blend, unseen=unseen)

    @property
    def shares(self) -> list[float]:
        """For each split, the share of its training rows for which the rule is true.

        It is 1/2 where there are no rows.
        """
        counts, counts_if_true = self.count_splits()
        n_rows = counts.sum(axis=(1, 2)).tolist()
        n_true = counts_if_true.sum(axis=(1, 2)).tolist()
        return [true / rows if rows else 0.5 for true, rows in zip(n_true, n_rows, strict=True)]

    @property
    def leaf_verdicts(self) -> BoolArray:
        """Whether the rows of each leaf are predicted positive."""
        rules_decide = self.is_chain and self.threshold is None
        if not rules_decide or not self.splits:
            return self.is_positive(self.leaf_probabilities())
        # A row that a disjunction covers is positive, one that a conjunction covers negative.
        covered = [self.covers_when] * len(self.splits)
        uncovered = not self.covers_when
        return np.array([*covered, uncovered])

    def leaf_probabilities(self) -> FloatArray:
        """Compute the calibrated rate of each leaf, by Laplace's rule of succession.

            rate = (positives + 1) / (rows + 2)

        If `balanced`, it is the mean of the rates of the environments that have rows in the leaf,
        in which a large environment counts no more than a small one.

        Returns
        -------
        array of float
            One for each leaf; 0.5 before calibration where there are no rows.
        """
        # Counts by (leaf, outcome, environment); unless balanced, all rows are one environment.
        if self.balanced:
            counts = np.array(self.leaves, dtype=np.float64)
        else:
            pooled = [count_labels(leaf) for leaf in self.leaves]
            counts = np.array(pooled, dtype=np.float64)[:, :, np.newaxis]

        # By (leaf, environment).
        n_rows = counts.sum(axis=1)
        n_positive = counts[:, 1]
        has_rows = n_rows > 0
        rates = np.where(has_rows, (n_positive + 1.0) / (n_rows + 2.0), 0.0)

        # The mean over the environments of each leaf.
        n_environments = has_rows.sum(axis=1)
        means = rates.sum(axis=1) / np.maximum(n_environments, 1)
        return self.calibrate(np.where(n_environments > 0, means, 0.5))

    # --- content --------------------------------------------------------------------------------

    @property
    def is_chain(self) -> bool:
        """Whether it is a conjunction or a disjunction."""
        return self.kind in CHAINS

    @property
    def covers_when(self) -> bool:
        """In a chain, whether a rule covers the rows for which it is true (or false)."""
        return CHAINS[self.kind].covers_when

    @property
    def rules(self) -> tuple[Rule, ...]:
        """The rules of the splits, in their order."""
        return tuple(split.rule for split in self.splits)

    @property
    def simple_rules(self) -> tuple[Rule, ...]:
        """The rules of a chain in the fewest words: `age > 19 and age > 45` is `age > 45`.

        Their predictions equal those of all rules; leaves and probabilities use all rules.
        """
        return simplify(self.rules, all_hold=not self.covers_when)

    def replace_rules(self, change: Callable[[Rule], Rule]) -> Self:
        """Return the same tree with each rule changed.

        Parameters
        ----------
        change : callable
            From a rule to another.

        Returns
        -------
        Tree
            With the same splits and leaves.
        """
        splits = tuple(replace(split, rule=change(split.rule)) for split in self.splits)
        return replace(self, splits=splits)

    def make_baseline(self) -> Self:
        """Make the majority-class baseline: the same rows in one leaf.

        Returns
        -------
        Tree
            Without a split; predicts the more likely class, not calibrated.
        """
        bare = replace(self, calibration=IDENTITY, threshold=None)
        return replace(bare, splits=(), leaves=(tree_splits.sum_leaves(self.leaves),))

    def count_wrong(self) -> tuple[int, int]:
        """Count the training rows that are predicted wrongly, by outcome.

        Returns
        -------
        tuple of two int
            Negatives predicted positive, and positives predicted negative.
        """
        n_false_positive = 0
        n_false_negative = 0
        for leaf, is_positive in zip(self.leaves, self.leaf_verdicts.tolist(), strict=True):
            n_negative, n_positive = count_labels(leaf)
            if is_positive:
                n_false_positive += n_negative
            else:
                n_false_negative += n_positive
        return n_false_positive, n_false_negative

    def count_contrary(self) -> list[int]:
        """Count the training rows in leaves that predict the minority class.

        Returns
        -------
        list of int
            One for each leaf: all its rows where `predict` and `predict_proba` disagree, else 0; 0
            for all where a threshold decides.
        """
        if self.threshold is not None:
            return [0] * len(self.leaves)
        n_contrary = []
        for leaf, is_positive in zip(self.leaves, self.leaf_verdicts.tolist(), strict=True):
            n_negative, n_positive = count_labels(leaf)
            is_contrary = n_negative > n_positive if is_positive else n_positive > n_negative
            n_contrary.append(n_negative + n_positive if is_contrary else 0)
        return n_contrary

    def compute_importances(self) -> FloatArray:
        """Compute the share of each rule of a chain in the rows that rules cover correctly.

        Returns
        -------
        array of float
            They sum to 1.
        """
        correct = [sum(leaf[int(self.covers_when)]) for leaf in self.leaves[:-1]]
        return np.array(correct, dtype=np.float64) / max(sum(correct), 1)

    def count_splits(self) -> tuple[CountArray, CountArray]:
        """Count the training rows at each split, from the leaves up.

        The rows at a split are those of its two children, each of which is a leaf or a later split.

        Returns
        -------
        tuple of two arrays of int, of shape (n_splits, 2, n_environments)
            Those that reach the split, and those of them for which its rule is true.
        """
        leaves: CountArray = np.array(self.leaves, dtype=np.int64)
        reached: CountArray = np.zeros((len(self.splits), *leaves.shape[1:]), dtype=np.int64)
        is_true = np.zeros_like(reached)

        def get_counts(child: int) -> CountArray:
            counts: CountArray = leaves[decode_leaf(child)] if is_leaf(child) else reached[child]
            return counts

        for number in reversed(range(len(self.splits))):  # a child comes after its parent
            split = self.splits[number]
            is_true[number] = get_counts(split.if_true)
            reached[number] = is_true[number] + get_counts(split.if_false)
        return reached, is_true

    @property
    def leaf_texts(self) -> tuple[str, ...]:
        """The conditions of each leaf: `not met: age > 63`, or a path in the fewest words."""
        if not self.splits:
            return (str(self),)
        if not self.is_chain:
            return tree_splits.format_paths(self.splits)

        chain = CHAINS[self.kind]
        texts = [f"{chain.covered}: {rule}" for rule in self.rules]
        texts.append(chain.uncovered)
        if self.threshold is None:
            return tuple(texts)

        # With a threshold, what the rules say need not be what is predicted.
        texts_with_threshold = []
        for text, is_positive in zip(texts, self.leaf_verdicts.tolist(), strict=True):
            verb = "reaches" if is_positive else "below"
            texts_with_threshold.append(f"{text}; {verb} threshold {self.threshold:.3g}")
        return tuple(texts_with_threshold)

    def list_nodes(self) -> Iterator[NodeLine]:
        """List the nodes in the order of a depth-first walk that visits the true side first.

        Yields
        ------
        NodeLine
            Depth, rule as text, negative and positive rows, and the leaf's number or None.
        """
        reached, _ = self.count_splits()
        counts_of_splits = reached.sum(axis=2).tolist()
        nodes = walk(self.splits, (0, "all"), lambda path, rule: (path[0] + 1, str(rule)))
        for node, (depth, text) in nodes:
            if is_leaf(node):
                leaf = decode_leaf(node)
                yield NodeLine(depth, text, counts=count_labels(self.leaves[leaf]), leaf=leaf)
            else:
                n_negative, n_positive = counts_of_splits[node]
                yield NodeLine(depth, text, counts=(n_negative, n_positive), leaf=None)

    def to_dict(self) -> dict[str, Any]:
        """Return the model as plain values.

        Returns
        -------
        dict
            What a model file holds.
        """
        splits = [
            {"rule": split.rule.to_dict(), "if_true": split.if_true, "if_false": split.if_false}
            for split in self.splits
        ]
        return {
            "kind": self.kind,
            "splits": splits,
            "leaves": [[list(row) for row in leaf] for leaf in self.leaves],
            "balanced": self.balanced,
            **self._list_fields(),
        }

    def __len__(self) -> int:
        return len(self.splits)

    # --- text -----------------------------------------------------------------------------------

    def __str__(self) -> str:
        if not self.splits:
            return self._describe_baseline()
        threshold = "" if self.threshold is None else self.describe_threshold()
        if self.is_chain:
            rules = CHAINS[self.kind].joiner.join(map(str, self.simple_rules))
            # The text of the rules alone would ignore the threshold.
            return f"{rules}; {threshold}" if threshold else rules

        verdicts = self._name_verdicts()
        lines = [line.format(verdicts) for line in self.list_nodes()]
        if self.balanced:
            lines[0] += " (predicts by the mean of the environments' rates)"
        if threshold:
            lines[0] += f" ({threshold})"
        return "\n".join(lines)

    def _name_verdicts(self) -> list[str]:
        """Name what each leaf predicts."""
        return [
            "positive" if is_positive else "negative" for is_positive in self.leaf_verdicts.tolist()
        ]

    def _display(self) -> Display:
        """Show a row for each leaf of a chain, or for each node of a tree."""
        kind = self.kind.capitalize()
        columns = ("predicts", ">samples", ">positive", ">rate")
        if self.is_chain:
            return Display(f"{kind}: {self}", ("leaf", *columns), self._list_leaf_rows())
        if not self.splits:
            return Display(f"{kind}: {self}")
        title = f"{kind} of {count(len(self.leaves), 'leaf')}"
        return Display(title, ("node", *columns), self._list_node_rows())

    def _list_leaf_rows(self) -> list[tuple[str, ...]]:
        rows: list[tuple[str, ...]] = []
        leaves = zip(self.leaf_texts, self._name_verdicts(), self.leaves, strict=True)
        for text, verdict, leaf in leaves:
            rows.append((text, verdict, *format_counts(*count_labels(leaf))))
        return rows

    def _list_node_rows(self) -> list[tuple[str, ...]]:
        verdicts = self._name_verdicts()
        rows: list[tuple[str, ...]] = []
        for line in self.list_nodes():
            text = line.indent + clip(line.text, tree_splits.WIDTH)
            verdict = "" if line.leaf is None else verdicts[line.leaf]
            rows.append((text, verdict, *format_counts(*line.counts)))
        return rows

    def _describe_baseline(self) -> str:
        """Describe a model without a split, and why it has none."""
        always = f"always {self._name_verdicts()[0]}"
        if self.threshold is not None:
            always += self.at_threshold
        if not self.is_chain:
            n, _, rate = format_counts(*count_labels(self.leaves[0]))
            share = "" if n == "0" else f": {rate} of {n} samples are positive"
            return f"no split was found ({always}{share})"
        if len(self.leaves[0][0]) > 1 and self.threshold is None:
            return f"no rule holds in every environment and does better than {always}"
        return f"no rule was found ({always})"


def make_chain(kind: str, rules: Sequence[Rule], leaves: tuple[LeafCounts, ...]) -> Tree:
    """Make a conjunction or disjunction of rules, with the counts of their leaves.

    >>> from icscm.model.rules import ThresholdRule
    >>> rule = ThresholdRule(column=0, name="age", threshold=63, above=True)
    >>> print(make_chain("conjunction", [rule, rule], (((1,), (0,)), ((0,), (0,)), ((0,), (1,)))))
    age > 63
    """
    return Tree(tree_splits.make_chain_splits(kind, rules), leaves, kind)
