"""
Degrees of freedom decide what ICP accepts
==========================================

Invariant causal prediction tests every set of columns and reports the intersection
of the accepted sets. A large set divides the rows into many small strata; a stratum
that cannot show dependence must not count as a degree of freedom.
"""

import matplotlib.pyplot as plt
import numpy as np

from icscm import InvariantCausalPrediction
from icscm.datasets import make_conjunction

# %%
# The paper's simulation: A1 and A2 cause y, C1 is its child, and eight columns are
# noise. ``dof="nominal"`` counts a degree of freedom for every possible stratum,
# including empty ones.

data = make_conjunction(n_distractors=8, random_state=1)
fitted = {}
for dof in ("nominal", "adjusted"):
    icp = InvariantCausalPrediction(dof=dof)
    fitted[dof] = icp.fit(data.X, data.y, environments=data.environments)
    n, parents = len(icp.accepted_sets_), icp.parents_ or ["nothing"]
    print(f"{dof}: {n} of {icp.n_sets_tested_} sets accepted; shared:", *parents)

# %%
# A set without one of the causes should be rejected. Counting strata without
# information lets large sets pass, and then no column is in all of them.

fig, axes = plt.subplots(1, 2, figsize=(7, 3.2), sharey=True, layout="constrained")
for ax, (dof, icp) in zip(axes, fitted.items(), strict=True):
    sizes = np.zeros((2, data.X.shape[1] + 1), dtype=int)
    for features in icp.accepted_sets_:
        sizes[int({"A1", "A2"} <= set(features)), len(features)] += 1
    places = np.arange(sizes.shape[1])
    ax.bar(places, sizes[1], color="C0", label="with both causes")
    ax.bar(places, sizes[0], bottom=sizes[1], color="C1", label="without one")
    ax.set(title=f'dof="{dof}"', xlabel="columns in the set")
axes[0].set_ylabel("sets accepted")
axes[0].legend(loc="upper left")
plt.show()
