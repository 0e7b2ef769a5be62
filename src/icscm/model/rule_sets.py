"""Immutable models: what the search returns and all that predicting needs.

A conjunction is a tree of a single branch (Figure 2 of the paper). A sample leaves it at
the first rule that settles it, or reaches the end:

    rule 1 --true--> rule 2 --true--> ... --true--> leaf d   (verdict: true)
      |false           |false
    leaf 0           leaf 1                                  (verdict: false)

A disjunction is the mirror image: the first rule that is true settles the sample.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from icscm._repr import Display
from icscm._types import BoolArray, FloatArray
from icscm.exceptions import IcscmError
from icscm.model.leaves import LeafCounts, LeafModel, add_up, count_labels, tell_counts
from icscm.model.rules import Rule
from icscm.model.simplifying import simplify
from icscm.tables.columns import count_rows


@dataclass(frozen=True, repr=False)
class RuleSet(LeafModel):
    """What conjunctions and disjunctions share: rules, and the training counts of their leaves."""

    rules: tuple[Rule, ...]
    leaves: tuple[LeafCounts, ...]

    kind: ClassVar[str]
    settles_when: ClassVar[bool]
    joiner: ClassVar[str]

    def __post_init__(self) -> None:
        if len(self.leaves) != len(self.rules) + 1:
            raise IcscmError(
                f"a model of {len(self.rules)} rules has {len(self.rules) + 1} leaves, "
                f"got counts for {len(self.leaves)}"
            )

    def find_leaves(self, X: Any) -> NDArray[np.intp]:
        """Number of the leaf that each row falls in.

        Parameters
        ----------
        X : array, sparse matrix or frame of shape (n_samples, n_features)
            The features.

        Returns
        -------
        array of int, of shape (n_samples,)
            From 0; the last leaf is that of the rows that no rule settles.
        """
        leaf = np.full(count_rows(X), len(self.rules), dtype=np.intp)
        for number in reversed(range(len(self.rules))):
            leaf[self.rules[number].mask(X) == self.settles_when] = number
        return leaf

    @property
    def leaf_verdicts(self) -> BoolArray:
        """Of each leaf whether its samples are predicted positive."""
        verdicts = np.full(len(self.leaves), self.settles_when)
        verdicts[-1] = not self.settles_when if self.rules else self._is_mostly_positive
        return verdicts

    def without_rules(self) -> Self:
        """What saying nothing comes to: a model without rules, on the same samples.

        Returns
        -------
        Conjunction or Disjunction
            One leaf, in which the more frequent class is predicted.
        """
        return replace(self, rules=(), leaves=(add_up(self.leaves),))

    def replace_rules(self, change: Callable[[Rule], Rule]) -> Self:
        """The same model with each rule changed.

        Parameters
        ----------
        change : callable
            From a rule to another.

        Returns
        -------
        Conjunction or Disjunction
            With the same leaves.
        """
        return replace(self, rules=tuple(map(change, self.rules)))

    @property
    def simple_rules(self) -> tuple[Rule, ...]:
        """The rules in the fewest words: `age > 19 and age > 45` is `age > 45`.

        They predict what all rules predict; leaves and probabilities are by all of them.
        """
        return simplify(self.rules, all_hold=not self.settles_when)

    @property
    def leaf_texts(self) -> tuple[str, ...]:
        """What decides the samples of each leaf; the last are those that no rule settled."""
        if not self.rules:
            return (str(self),)
        word, last = ("met", "no rule met") if self.settles_when else ("not met", "all rules met")
        return (*(f"{word}: {rule}" for rule in self.rules), last)

    def compute_importances(self) -> FloatArray:
        """Share of each rule in the samples that the rules settle correctly.

        Returns
        -------
        array of float
            One for each rule; they sum to 1.
        """
        correct = [sum(leaf[int(self.settles_when)]) for leaf in self.leaves[:-1]]
        shares: FloatArray = np.array(correct, dtype=np.float64) / max(sum(correct), 1)
        return shares

    def to_dict(self) -> dict[str, Any]:
        """The model as plain values.

        Returns
        -------
        dict
            What `make_model` turns back into this model.
        """
        return {
            "kind": self.kind,
            "rules": [rule.to_dict() for rule in self.rules],
            "leaves": [[list(row) for row in leaf] for leaf in self.leaves],
        }

    def __str__(self) -> str:
        return self.joiner.join(map(str, self.simple_rules)) or self._describe_nothing()

    def _display(self) -> Display:
        """The model and its leaves."""
        rows = []
        verdicts = self.leaf_verdicts.tolist()
        for text, leaf, is_positive in zip(self.leaf_texts, self.leaves, verdicts, strict=True):
            counts = tell_counts(*count_labels(leaf))
            rows.append((text, "positive" if is_positive else "negative", *counts))
        columns = "leaf", "predicts", ">samples", ">positive", ">rate"
        return Display(f"{type(self).__name__}: {self}", columns, rows)

    def _describe_nothing(self) -> str:
        """What a model without a rule says."""
        always = "positive" if self._is_mostly_positive else "negative"
        if len(self.leaves[0][0]) > 1:
            return f"no rule holds in every environment and does better than always {always}"
        return f"no rule was found (always {always})"


class Conjunction(RuleSet):
    """True where every rule is true; the empty conjunction is true everywhere.

    Parameters
    ----------
    rules : tuple of Rule
        In the order in which they were chosen.
    leaves : tuple of counts by (label, environment)
        Training samples of each leaf, one more than there are rules.

    Examples
    --------
    >>> from icscm import SCMClassifier
    >>> print(SCMClassifier().fit([[0], [1]], [0, 1]).model_)
    x0 > 0
    """

    kind = "conjunction"
    settles_when = False
    joiner = " and "


class Disjunction(RuleSet):
    """True where any rule is true; the empty disjunction is false everywhere.

    Parameters
    ----------
    rules : tuple of Rule
        In the order in which they were chosen.
    leaves : tuple of counts by (label, environment)
        Training samples of each leaf, one more than there are rules.

    Examples
    --------
    >>> from icscm import SCMClassifier
    >>> print(SCMClassifier(model_type="disjunction").fit([[0], [1]], [0, 1]).model_)
    x0 > 0
    """

    kind = "disjunction"
    settles_when = True
    joiner = " or "


MODEL_KINDS: dict[str, type[RuleSet]] = {"conjunction": Conjunction, "disjunction": Disjunction}
