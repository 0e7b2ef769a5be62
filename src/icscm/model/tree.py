"""The predictor: a tree of splits; a conjunction or disjunction is a tree of one branch."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from icscm._repr import Display
from icscm._types import BoolArray, CountArray, FloatArray
from icscm.exceptions import IcscmError
from icscm.formatting import clip, count
from icscm.model import routes
from icscm.model import splits as tree_splits
from icscm.model.calibration import IDENTITY, CalibratedModel, Decisions
from icscm.model.routes import Blend, Columns, Unseen
from icscm.model.rules import Rule, simplify
from icscm.model.splits import CHAINS, LeafCounts, Node, Split, count_labels, format_counts, walk
from icscm.tables.columns import count_rows


@dataclass(frozen=True, repr=False)
class Tree(CalibratedModel):
    """Splits, and the training counts of the leaves that they lead to.

    Parameters
    ----------
    splits : tuple of Split
        The first is the root; the number of a split is greater than that of its parent.
    leaves : tuple of counts by (label, environment)
        Training samples of each leaf, one more than there are splits. In a tree, leaves are
        numbered by a depth-first walk that visits the true side first; in a chain, leaf i holds
        the samples that rule i covers and the last leaf the uncovered samples.
    kind : {"tree", "conjunction", "disjunction"}, default="tree"
        A leaf of a tree predicts its more likely class. A conjunction predicts positive where all
        rules are true, a disjunction where any is; both are chains.
    balanced : bool, default=False
        Whether a leaf's probability is the mean over its environments, each with equal weight,
        instead of over its samples.
    calibration, threshold : pair of floats, float or None
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
        n = len(self.splits)
        if len(self.leaves) != n + 1:
            what = "rule" if self.is_chain else "split"
            raise IcscmError(
                f"a {self.kind} of {count(n, what)} has {count(n + 1, 'leaf')}, got counts for "
                f"{len(self.leaves):,}"
            )
        if not self.is_chain:
            tree_splits.check_splits(self.splits)
        elif self.splits != tree_splits.make_chain_splits(self.kind, self.rules):
            raise IcscmError(f"the splits of a {self.kind} must form a chain")

    # --- predicting -----------------------------------------------------------------------------

    def predict(self, X: Any) -> BoolArray:
        """Whether each row is predicted positive.

        Parameters
        ----------
        X : array, sparse matrix or frame of shape (n_samples, n_features)
            The features.

        Returns
        -------
        array of bool, of shape (n_samples,)
            The verdict of each row's leaf; by the probability where a row falls in several.
        """
        return self._decide(*self._follow_rows(X)[:2])[0]

    def predict_proba(self, X: Any) -> FloatArray:
        """Probability of the positive label for each row, from its leaf's training samples.

        Where a value is missing that never was at fitting, the mean of both branches of the rule.

        Parameters
        ----------
        X : array, sparse matrix or frame of shape (n_samples, n_features)
            The features.

        Returns
        -------
        array of float, of shape (n_samples,)
            Between 0 and 1, both excluded.
        """
        return self._decide(*self._follow_rows(X)[:2])[1]

    def decide(self, X: Any) -> Decisions:
        """Prediction, probability and what decided for each row, in one pass.

        Parameters
        ----------
        X : array, sparse matrix or frame of shape (n_samples, n_features)
            The features.

        Returns
        -------
        Decisions
            A tuple of three arrays: `prediction`, `probability`, `decided_by`.
        """
        leaves, some, unseen = self._follow_rows(X)
        decided_by = np.array(self.leaf_texts, dtype=object)[leaves]
        if len(some.rows):
            means = np.array([f"mean of {n} leaves" for n in some.n_leaves.tolist()], dtype=object)
            decided_by[some.rows] = routes.name_unseen(unseen, some.rows) + means
        return Decisions(*self._decide(leaves, some), decided_by)

    def _decide(self, leaves: NDArray[np.intp], some: Blend) -> tuple[BoolArray, FloatArray]:
        """Verdict and probability of rows; those that fall in several leaves have their mean."""
        is_positive, probability = self.leaf_verdicts[leaves], self.leaf_probabilities()[leaves]
        is_positive[some.rows] = self.is_positive(some.probability)
        probability[some.rows] = some.probability
        return is_positive, probability

    def find_leaves(self, X: Any) -> NDArray[np.intp]:
        """Number of the leaf that each row falls in.

        Parameters
        ----------
        X : array, sparse matrix or frame of shape (n_samples, n_features)
            The features.

        Returns
        -------
        array of int, of shape (n_samples,)
            From 0, as in `leaves`. For a row in several leaves, that of the larger branches.
        """
        leaves, some, _ = self._follow_rows(X)
        leaves[some.rows] = some.leaf
        return leaves

    def _follow_rows(self, X: Any) -> tuple[NDArray[np.intp], Blend, Unseen]:
        columns, unseen = routes.read_columns(X, self.rules)
        return *self.follow(columns, unseen, count_rows(X)), unseen

    def follow(
        self, columns: Columns, unseen: Unseen, n_rows: int
    ) -> tuple[NDArray[np.intp], Blend]:
        """Leaves of rows, and the rows that fall in several, for columns that were read before.

        Parameters
        ----------
        columns, unseen : dict
            As `icscm.model.routes.read_columns` returned them.
        n_rows : int
            Number of rows.

        Returns
        -------
        leaves : array of int, of shape (n_rows,)
            From 0, as in `leaves`.
        blend : Blend
            Rows that lack a value which never was missing at fitting, and their probabilities.
        """
        leaves = routes.find_leaves(self.splits, columns, n_rows)
        if not unseen or not any(r.is_unsure and r.feature in unseen for r in self.rules):
            return leaves, routes.NO_BLEND
        rates = self.leaf_probabilities()
        return leaves, routes.blend(self.splits, self.shares, rates, columns, unseen)

    @property
    def shares(self) -> list[float]:
        """Of each split, the share of its training samples for which the rule is true."""
        n, n_true = (each.sum(axis=(1, 2)).tolist() for each in self.count_splits())
        return [t / total if total else 0.5 for t, total in zip(n_true, n, strict=True)]

    @property
    def leaf_verdicts(self) -> BoolArray:
        """Whether the samples of each leaf are predicted positive."""
        if not self.is_chain or not self.splits or self.threshold is not None:
            return self.is_positive(self.leaf_probabilities())
        return np.array([self.covers_when] * len(self.splits) + [not self.covers_when])

    def leaf_probabilities(self) -> FloatArray:
        """(positives + 1) / (samples + 2) of each leaf, or its mean over environments; calibrated.

        Returns
        -------
        array of float
            One for each leaf; environments without a sample in a leaf do not count there.
        """
        pooled = [[[n] for n in count_labels(leaf)] for leaf in self.leaves]
        counts = np.array(self.leaves if self.balanced else pooled, dtype=np.float64)
        sizes = counts.sum(axis=1)
        rates = np.where(sizes > 0, (counts[:, 1] + 1.0) / (sizes + 2.0), 0.0)
        n_seen = (sizes > 0).sum(axis=1)
        return self.calibrate(np.where(n_seen > 0, rates.sum(axis=1) / np.maximum(n_seen, 1), 0.5))

    # --- content --------------------------------------------------------------------------------

    @property
    def is_chain(self) -> bool:
        """Whether it is a conjunction or a disjunction."""
        return self.kind in CHAINS

    @property
    def covers_when(self) -> bool:
        """In a chain, whether a rule covers the samples for which it is true (or false)."""
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

    def make_baseline(self) -> Self:
        """The majority-class baseline: the same samples in one leaf.

        Returns
        -------
        Tree
            Without a split; predicts the more likely class, not calibrated.
        """
        bare = replace(self, calibration=IDENTITY, threshold=None)
        return replace(bare, splits=(), leaves=(tree_splits.sum_leaves(self.leaves),))

    def count_wrong(self) -> tuple[int, int]:
        """Training samples that are predicted wrongly, by label.

        Returns
        -------
        tuple of two int
            Negatives predicted positive, and positives predicted negative.
        """
        leaves = [*zip(map(count_labels, self.leaves), self.leaf_verdicts.tolist(), strict=True)]
        n_false_positive = sum(counts[0] for counts, is_positive in leaves if is_positive)
        return n_false_positive, sum(counts[1] for counts, is_positive in leaves if not is_positive)

    def count_contrary(self) -> list[int]:
        """Training samples in leaves that predict the minority class.

        Returns
        -------
        list of int
            One for each leaf: all its samples where `predict` and `predict_proba` disagree, else 0;
            0 for all where a threshold decides.
        """
        if self.threshold is not None:
            return [0] * len(self.leaves)
        found = []
        for leaf, is_positive in zip(self.leaves, self.leaf_verdicts.tolist(), strict=True):
            n_wrong, n_right = sum(leaf[1 - is_positive]), sum(leaf[is_positive])
            found.append(n_wrong + n_right if n_wrong > n_right else 0)
        return found

    def compute_importances(self) -> FloatArray:
        """Of a chain, the share of each rule in the samples that rules cover correctly.

        Returns
        -------
        array of float
            They sum to 1.
        """
        correct = [sum(leaf[int(self.covers_when)]) for leaf in self.leaves[:-1]]
        return np.array(correct, dtype=np.float64) / max(sum(correct), 1)

    def count_splits(self) -> tuple[CountArray, CountArray]:
        """Training samples at each split.

        Returns
        -------
        tuple of two arrays of int, of shape (n_splits, 2, n_environments)
            Those that reach the split, and those of them for which its rule is true.
        """
        leaves = np.array(self.leaves, dtype=np.int64)
        nodes = np.zeros((len(self.splits), *leaves.shape[1:]), dtype=np.int64)
        true = nodes.copy()
        for i, split in reversed(list(enumerate(self.splits))):
            children = split.if_true, split.if_false
            true[i], other = (leaves[~each] if each < 0 else nodes[each] for each in children)
            nodes[i] = true[i] + other
        return nodes, true

    @property
    def leaf_texts(self) -> tuple[str, ...]:
        """The conditions of each leaf: `not met: age > 63`, or a path in the fewest words."""
        if not self.splits:
            return (str(self),)
        if self.is_chain:
            _, _, covered, uncovered = CHAINS[self.kind]
            texts = *(f"{covered}: {rule}" for rule in self.rules), uncovered
            if (t := self.threshold) is None:
                return texts
            pairs = zip(texts, self.leaf_verdicts.tolist(), strict=True)
            return tuple(f"{a}; {'reaches' if b else 'below'} threshold {t:.3g}" for a, b in pairs)
        return tree_splits.format_paths(self.splits)

    def list_nodes(self) -> Iterator[Node]:
        """The nodes of a depth-first walk that visits the true side first.

        Yields
        ------
        Node
            Depth, rule as text, negative and positive samples, and the leaf's number or None.
        """
        counts = self.count_splits()[0].sum(axis=2).tolist()
        nodes = walk(self.splits, (0, "all"), lambda path, rule: (path[0] + 1, str(rule)))
        for node, (depth, text) in nodes:
            leaf = ~node if node < 0 else None
            own = counts[node] if leaf is None else count_labels(self.leaves[leaf])
            yield Node(depth, text, tuple(own), leaf)

    def to_dict(self) -> dict[str, Any]:
        """The model as plain values.

        Returns
        -------
        dict
            What a model file holds.
        """
        splits = [
            {"rule": each.rule.to_dict(), "if_true": each.if_true, "if_false": each.if_false}
            for each in self.splits
        ]
        leaves = [[list(row) for row in leaf] for leaf in self.leaves]
        fields = {"kind": self.kind, "splits": splits, "leaves": leaves, "balanced": self.balanced}
        return fields | self._list_fields()

    def __len__(self) -> int:
        return len(self.splits)

    # --- text -----------------------------------------------------------------------------------

    def __str__(self) -> str:
        if not self.splits:
            return self._describe_baseline()
        note = "" if self.threshold is None else self.describe_threshold()
        if self.is_chain:  # the text of the rules would ignore the threshold
            rules = CHAINS[self.kind].joiner.join(map(str, self.simple_rules))
            return f"{rules}; {note}" if note else rules
        words = self._name_verdicts()
        lines = [node.format(words) for node in self.list_nodes()]
        if self.balanced:
            lines[0] += " (predicts by the mean of the environments' rates)"
        lines[0] += f" ({note})" if note else ""
        return "\n".join(lines)

    def _name_verdicts(self) -> list[str]:
        return ["positive" if each else "negative" for each in self.leaf_verdicts.tolist()]

    def _display(self) -> Display:
        """A row for each leaf of a chain, or for each node of a tree."""
        words, kind = self._name_verdicts(), self.kind.capitalize()
        columns = ("predicts", ">samples", ">positive", ">rate")
        if self.is_chain:
            leaves = zip(self.leaf_texts, words, self.leaves, strict=True)
            rows = [
                (text, word, *format_counts(*count_labels(leaf))) for text, word, leaf in leaves
            ]
            return Display(f"{kind}: {self}", ("leaf", *columns), rows)
        if not self.splits:
            return Display(f"{kind}: {self}")
        rows = []
        for node in self.list_nodes():
            text = node.indent + clip(node.text, tree_splits.WIDTH)
            word = "" if node.leaf is None else words[node.leaf]
            rows.append((text, word, *format_counts(*node.counts)))
        return Display(f"{kind} of {count(len(self.leaves), 'leaf')}", ("node", *columns), rows)

    def _describe_baseline(self) -> str:
        """A model without a split."""
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
    """A conjunction or disjunction of rules, with the counts of their leaves.

    >>> from icscm.model.rules import ThresholdRule
    >>> rule = ThresholdRule(column=0, name="age", threshold=63, above=True)
    >>> print(make_chain("conjunction", [rule, rule], (((1,), (0,)), ((0,), (0,)), ((0,), (1,)))))
    age > 63
    """
    return Tree(tree_splits.make_chain_splits(kind, rules), leaves, kind)
