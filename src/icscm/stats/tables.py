"""From the count cube to the leaf that each candidate rule would create."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from icscm.engine.counts import CountArray, CountCube, Cut


@dataclass(frozen=True)
class LeafTables:
    """Candidates of one block of features, in the order of their cuts within each feature.

    `tables` is (candidate, label, environment): the samples that the rule would settle.
    """

    features: NDArray[np.int64]
    n_cuts: int
    tables: CountArray

    def find_features(self) -> NDArray[np.int64]:
        """The feature of each candidate."""
        return np.repeat(self.features, 2 * self.n_cuts)

    def locate(self, candidate: int) -> Cut:
        """The cut of a candidate."""
        row, within = divmod(int(candidate), 2 * self.n_cuts)
        return Cut(int(self.features[row]), within // 2, within % 2 == 1)


def compute_leaf_tables(cube: CountCube) -> LeafTables:
    """The leaf of every rule, from the running sums over the bins.

    `x > t` settles the bins up to its cut, `x <= t` those beyond:

        bins        n0  n1  n2          rule     leaf
        cut 0         |                 x > t0   n0            x <= t0   n1 + n2
        cut 1             |             x > t1   n0 + n1       x <= t1   n2
    """
    up_to = np.cumsum(cube.counts, axis=1)
    settled_above = up_to[:, :-1]
    n_features, n_cuts, n_labels, n_environments = settled_above.shape
    tables = np.empty((n_features, n_cuts, 2, n_labels, n_environments), dtype=up_to.dtype)
    tables[:, :, 0] = settled_above
    np.subtract(up_to[:, -1:], settled_above, out=tables[:, :, 1])
    return LeafTables(cube.features, n_cuts, tables.reshape(-1, n_labels, n_environments))
