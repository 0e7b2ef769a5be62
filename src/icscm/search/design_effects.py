"""Design effects of a source whose rows belong together in groups; None or 1 without groups.

`icscm.stats.design_effects` has the formulas; here the sums over groups are taken from a source.
"""

from collections.abc import Sequence

import numpy as np

from icscm._types import CountArray, FloatArray
from icscm.engine.counts import BinnedSplit, RowSource
from icscm.search.grow import Subtree, make_binned_splits
from icscm.stats.design_effects import compute_design_effects, compute_leaf_design_effects

# A weight above 0 for environments with one outcome.
_MIN_WEIGHT = 1e-9


def measure_design_effects(
    source: RowSource, splits: Sequence[BinnedSplit], leaves: CountArray, p: FloatArray
) -> FloatArray | None:
    """Measure the design effect of each environment, given a tree.

    `leaves` are its counts (leaf, outcome, environment), `p` its probabilities (leaf, environment).
    """
    if source.clusters is None:
        return None
    sizes = leaves.sum(axis=1)
    hessians = (sizes * p * (1.0 - p)).sum(axis=0)
    cluster_sums = source.clusters.square_residuals(splits, p)
    return compute_design_effects(cluster_sums, hessians, sizes.sum(axis=0))


def measure_leaf_design_effects(
    source: RowSource, tree: Subtree, leaves: CountArray
) -> FloatArray | None:
    """Measure the design effect of each leaf of a tree, given its counts."""
    if source.clusters is None:
        return None
    moments = source.clusters.count_leaf_moments(make_binned_splits(source.columns, tree))
    return compute_leaf_design_effects(leaves, moments)


def average_design_effect(source: RowSource) -> float:
    """Average the design effects of the environments, weighted by their hessians."""
    counts = source.count_rows()
    sizes = np.maximum(counts.sum(axis=0), 1)
    rates = counts[1] / sizes
    effects = measure_design_effects(source, [], counts[np.newaxis], rates[np.newaxis])
    if effects is None:
        return 1.0
    hessians = sizes * rates * (1.0 - rates)
    return float(np.average(effects, weights=np.maximum(hessians, _MIN_WEIGHT)))
