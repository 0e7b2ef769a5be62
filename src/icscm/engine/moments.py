"""Sums of gradients and hessians by bin, from which the effect of every cut follows.

A model leaves in each row a gradient g (outcome less probability) and a hessian h (probability
times its complement). Their sums by bin of a column and environment are its *moments*, as counts
are for rules; the sums on the two sides of a cut are sums over bins.
"""

from dataclasses import dataclass

import numpy as np

from icscm._types import Array, FloatArray
from icscm.engine.counts import BinnedColumns, CountCube, MomentCube, ValueCube
from icscm.engine.leaf_tables import LeafTables, compute_halves


@dataclass(frozen=True, eq=False)
class CutMoments:
    """Moments on one side of every cut of a block of columns.

    `gradients` and `hessians` (cut, environment) are sums over the rows for which the cut's rule is
    false; `cuts` knows which cuts these are.
    """

    cuts: LeafTables
    gradients: FloatArray
    hessians: FloatArray


def make_moments(cube: ValueCube) -> MomentCube:
    """Make moments of sums of two values: the gradient of each row, and its hessian."""
    return MomentCube(
        columns=cube.columns,
        gradients=cube.sums[:, :, 0],
        hessians=cube.sums[:, :, 1],
        layout=cube.layout,
    )


def compute_cut_moments(cube: MomentCube, columns: BinnedColumns) -> CutMoments:
    """Compute the moments where each cut is false."""
    # Moments are added up over bins as counts are, so they take the places of the two outcomes.
    sums: Array = np.stack((cube.gradients, cube.hessians), axis=2)
    as_counts = CountCube(columns=cube.columns, counts=sums, layout=cube.layout)
    halves = compute_halves(as_counts, columns)
    tables: Array = halves.tables
    return CutMoments(cuts=halves, gradients=tables[:, 0], hessians=tables[:, 1])
