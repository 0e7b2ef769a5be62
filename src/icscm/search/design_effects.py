"""Design effects of a source whose rows belong together in groups; None or 1 without groups.

`icscm.stats.design_effects` has the formulas; here the sums over groups are taken from a source.
"""

from collections.abc import Sequence

import numpy as np

from icscm._types import CountArray, FloatArray
from icscm.engine.counts import BinnedSplit, RowSource
from icscm.search.grow import Subtree, make_binned_splits
from icscm.stats.design_effects import (
    compute_design_effects,
    compute_leaf_design_effects,
    compute_overall_design_effect,
)


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


def measure_chance_effect(source: RowSource) -> float:
    """Measure by what factor groups inflate what chance explains of all rows; 1 without groups.

    The model is a single leaf: in each environment all rows have its rate as their probability.
    """
    if source.clusters is None:
        return 1.0
    counts = source.count_rows()
    n_rows = counts.sum(axis=0)
    rates = counts[1] / np.maximum(n_rows, 1)
    hessians = n_rows * rates * (1.0 - rates)
    no_splits: list[BinnedSplit] = []
    cluster_sums = source.clusters.square_residuals(no_splits, rates[np.newaxis])
    return compute_overall_design_effect(cluster_sums, hessians, n_rows)
