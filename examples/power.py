"""
The more rows, the smaller a difference can be seen
===================================================

A check-up of the environments says, before anything is fitted, which difference
in the outcome's rate a test could see. What is smaller than that passes as
invariant.
"""

import matplotlib.pyplot as plt

from icscm.datasets import make_conjunction
from icscm.studies.checkup import check_environments

# %%
# Tables of the paper's simulation, small and large.

sizes = [100, 300, 1_000, 3_000, 10_000, 30_000]
found = []
for n_samples in sizes:
    data = make_conjunction(n_samples, random_state=0)
    found.append(check_environments(data.X, data.y, data.environments).power)

# %%
# A rule settles only some of the rows, its leaf. The smaller the leaf, the less can
# be told.

fig, ax = plt.subplots(figsize=(7, 3.5), layout="constrained")
for i, leaf in enumerate(found[0]):
    seen = [each[i].difference for each in found]
    ax.plot(sizes, seen, marker="o", label=f"{leaf.share:.0%} of the rows")
ax.set(xscale="log", ylabel="difference that would be seen")
ax.set_xlabel("rows in each environment")
ax.legend(title="leaf", frameon=False)
plt.show()
