"""Immutable models: what the search returns and all that predicting needs.

A conjunction is a tree of a single branch (Figure 2 of the paper). A sample leaves it at
the first rule that settles it, or reaches the end:

    rule 1 --true--> rule 2 --true--> ... --true--> leaf d   (verdict: true)
      |false           |false
    leaf 0           leaf 1                                  (verdict: false)

A disjunction is the mirror image: the first rule that is true settles the sample.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from icscm._types import BoolArray
from icscm.exceptions import IcscmError
from icscm.model.rules import Rule, make_rule
from icscm.tables.columns import count_rows

# Samples of one leaf, by label and environment.
LeafCounts = tuple[tuple[int, ...], ...]


@dataclass(frozen=True)
class RuleSet:
    """What conjunctions and disjunctions share.

    Parameters
    ----------
    rules : in the order in which they were chosen.
    leaves : training counts (label, environment) of each leaf, one more than there are rules.
    """

    rules: tuple[Rule, ...]
    leaves: tuple[LeafCounts, ...]

    kind: ClassVar[str]
    settles_when: ClassVar[bool]
    joiner: ClassVar[str]
    empty_text: ClassVar[str]

    def __post_init__(self) -> None:
        if len(self.leaves) != len(self.rules) + 1:
            raise IcscmError(
                f"a model of {len(self.rules)} rules has {len(self.rules) + 1} leaves, "
                f"got counts for {len(self.leaves)}"
            )

    def find_leaves(self, X: Any) -> NDArray[np.intp]:
        """Number of the leaf that each row of `X` falls in."""
        leaf = np.full(count_rows(X), len(self.rules), dtype=np.intp)
        for number in reversed(range(len(self.rules))):
            leaf[self.rules[number].mask(X) == self.settles_when] = number
        return leaf

    def predict(self, X: Any) -> BoolArray:
        """The rule set's own verdict for each row of `X`."""
        settled: BoolArray = self.find_leaves(X) < len(self.rules)
        return settled if self.settles_when else ~settled

    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        """Chance of the positive label for each row of `X`, from its leaf's training samples."""
        return self.leaf_probabilities()[self.find_leaves(X)]

    def leaf_probabilities(self) -> NDArray[np.float64]:
        """(positives + 1) / (samples + 2) of each leaf: Laplace's rule, never 0 or 1."""
        totals = np.array([[sum(row) for row in leaf] for leaf in self.leaves], dtype=np.float64)
        probabilities: NDArray[np.float64] = (totals[:, 1] + 1.0) / (totals.sum(axis=1) + 2.0)
        return probabilities

    def compute_importances(self) -> NDArray[np.float64]:
        """Share of each rule in the samples that the rules settle correctly; sums to 1."""
        settled_label = int(self.settles_when)
        correct = np.array(
            [sum(leaf[settled_label]) for leaf in self.leaves[:-1]], dtype=np.float64
        )
        shares: NDArray[np.float64] = correct / max(correct.sum(), 1.0)
        return shares

    def to_dict(self) -> dict[str, Any]:
        """Plain values that `make_model` turns back into this model."""
        return {
            "kind": self.kind,
            "rules": [rule.to_dict() for rule in self.rules],
            "leaves": [[list(row) for row in leaf] for leaf in self.leaves],
        }

    def __len__(self) -> int:
        return len(self.rules)

    def __str__(self) -> str:
        return self.joiner.join(map(str, self.rules)) or self.empty_text


class Conjunction(RuleSet):
    """True where every rule is true; the empty conjunction is true everywhere."""

    kind = "conjunction"
    settles_when = False
    joiner = " and "
    empty_text = "always true (no rule)"


class Disjunction(RuleSet):
    """True where any rule is true; the empty disjunction is false everywhere."""

    kind = "disjunction"
    settles_when = True
    joiner = " or "
    empty_text = "always false (no rule)"


MODEL_KINDS: dict[str, type[RuleSet]] = {"conjunction": Conjunction, "disjunction": Disjunction}


def make_model(fields: dict[str, Any]) -> RuleSet:
    """The model that `to_dict` described.

    >>> empty = Conjunction(rules=(), leaves=(((3, 1), (2, 2)),))
    >>> make_model(empty.to_dict()) == empty
    True
    """
    kind = fields.get("kind")
    if kind not in MODEL_KINDS:
        raise IcscmError(
            f"unknown kind of model {kind!r}; this version knows {sorted(MODEL_KINDS)}"
        )
    rules = tuple(make_rule(rule) for rule in fields["rules"])
    return MODEL_KINDS[kind](rules, freeze_counts(fields["leaves"]))


def freeze_counts(counts: Sequence[Any] | NDArray[Any]) -> Any:
    """Nested tuples of plain integers: comparable, hashable, unchangeable."""
    if isinstance(counts, np.ndarray):
        counts = counts.tolist()
    return tuple(
        freeze_counts(part) if isinstance(part, Sequence) else int(part) for part in counts
    )
