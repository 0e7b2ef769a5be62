"""How often a model is wrong on its training data, and where most: for terminal and report."""

from __future__ import annotations

from collections.abc import Sequence

from icscm._constants import SPARSE_ENVIRONMENT
from icscm.model.rule_sets import RuleSet


def is_positive(model: RuleSet, leaf: int) -> bool:
    """Whether the model predicts the positive class in a leaf."""
    return model.settles_when == (leaf < len(model.rules))


def count_errors(model: RuleSet) -> tuple[list[int], list[int]]:
    """Training samples predicted wrongly, and all, in each environment."""
    n_environments = len(model.leaves[0][0])
    wrong, total = [0] * n_environments, [0] * n_environments
    for number, (negatives, positives) in enumerate(model.leaves):
        mistaken = negatives if is_positive(model, number) else positives
        for k in range(n_environments):
            wrong[k] += mistaken[k]
            total[k] += negatives[k] + positives[k]
    return wrong, total


def find_worst_and_best(wrong: Sequence[int], total: Sequence[int]) -> tuple[int, int] | None:
    """Where the largest and the smallest share is wrong; None unless two can be compared.

    Few samples are all wrong, or all right, by chance: an environment with fewer than 5 is named
    only where all are so small.

    >>> find_worst_and_best([1, 30, 20], [1, 100, 100])
    (1, 2)
    """
    seen = [k for k, n in enumerate(total) if n]
    named = [k for k in seen if total[k] >= SPARSE_ENVIRONMENT] or seen
    if len(named) < 2:
        return None

    def get_share(k: int) -> float:
        return wrong[k] / total[k]

    return max(named, key=get_share), min(named, key=get_share)
