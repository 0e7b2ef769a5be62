"""
The minimum detectable difference falls with the number of rows
===============================================================

A check-up of the environments computes, before anything is fitted, the minimum
detectable difference of the outcome's rate. Smaller differences pass as invariant.
"""

import matplotlib.pyplot as plt

from icscm import check_environments
from icscm.datasets import make_conjunction

# %%
# Small and large tables of the paper's simulation.

sizes = [100, 300, 1_000, 3_000, 10_000, 30_000]
found = []
for n_samples in sizes:
    data = make_conjunction(n_samples, random_state=0)
    found.append(
        check_environments(data.X, data.y, environments=data.environments).power
    )

# %%
# A rule covers only some of the rows, its leaf. The smaller the leaf, the larger
# the minimum detectable difference.

fig, ax = plt.subplots(figsize=(7, 3.5), layout="constrained")
for i, leaf in enumerate(found[0]):
    seen = [each[i].difference for each in found]
    ax.plot(sizes, seen, marker="o", label=f"{leaf.share:.0%} of the rows")
ax.set(xscale="log", ylabel="minimum detectable difference")
ax.set_xlabel("rows in each environment")
ax.legend(title="leaf", frameon=False)
plt.show()
