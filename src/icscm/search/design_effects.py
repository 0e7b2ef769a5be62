"""Design effects of a source whose rows belong together in groups; None or 1 without groups.

`icscm.stats.design_effects` has the formulas; here the sums over groups are taken from a source.
"""

from collections.abc import Sequence
from typing import Final

import numpy as np

from icscm._types import CountArray, FloatArray
from icscm.engine.counts import BinnedSplit, RowSource
from icscm.search.grow import Subtree, make_binned_splits
from icscm.stats.design_effects import compute_design_effects, compute_leaf_design_effects

# A weight above 0 for environments with one outcome, so that a mean is always defined.
_MIN_WEIGHT: Final = 1e-9


def measure_design_effects(
    source: RowSource, splits: Sequence[BinnedSplit], leaves: CountArray, p: FloatArray
) -> FloatArray | None:
    """Measure the design effect of each environment, given a tree; None without groups.

    `leaves` are its counts (leaf, outcome, environment), `p` its probabilities (leaf, environment).
    The hessian of an environment, sum n p (1 - p), is the variance if rows were independent.
    """
    if source.clusters is None:
        return None
    n = leaves.sum(axis=1)  # (leaf, environment)
    hessians = (n * p * (1.0 - p)).sum(axis=0)
    cluster_sums = source.clusters.square_residuals(splits, p)
    return compute_design_effects(cluster_sums, hessians, n.sum(axis=0))


def measure_leaf_design_effects(
    source: RowSource, tree: Subtree, leaves: CountArray
) -> FloatArray | None:
    """Measure the design effect of each leaf of a tree, given its counts; None without groups.

    `leaves` has the axes (leaf, outcome, environment).
    """
    if source.clusters is None:
        return None
    moments = source.clusters.count_leaf_moments(make_binned_splits(source.columns, tree))
    return compute_leaf_design_effects(leaves, moments)


def average_design_effect(source: RowSource) -> float:
    """Average the design effects of the environments, weighted by their hessians; 1 without groups.

    The tree is a single leaf: in each environment all rows have its rate as their probability.
    """
    counts = source.count_rows()
    n_rows = np.maximum(counts.sum(axis=0), 1)
    rates = counts[1] / n_rows
    no_splits: list[BinnedSplit] = []
    effects = measure_design_effects(source, no_splits, counts[np.newaxis], rates[np.newaxis])
    if effects is None:
        return 1.0
    hessians = n_rows * rates * (1.0 - rates)
    return float(np.average(effects, weights=np.maximum(hessians, _MIN_WEIGHT)))
