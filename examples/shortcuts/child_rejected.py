"""
A child of the outcome is rejected
==================================

A column that the outcome causes often predicts best. The plain Set Covering Machine
uses it; ICSCM rejects it, since the rate of the outcome in its leaf differs between
environments.
"""

import matplotlib.pyplot as plt
import numpy as np

from icscm import ICSCMClassifier, SCMClassifier
from icscm.datasets import make_conjunction

# %%
# The simulation of the paper: A1 and A2 cause y, C1 is its child, the others are
# noise.

data = make_conjunction(random_state=1)
plain = SCMClassifier(max_rules=2).fit(data.X, data.y)
invariant = ICSCMClassifier().fit(data.X, data.y, environments=data.environments)
print("SCM:  ", plain.model_)
print("ICSCM:", invariant.model_)

# %%
# The leaf of a rule holds the rows that it covers. In the leaf of an invariant rule
# y is 1 equally often in every environment.

fig, axes = plt.subplots(1, 2, figsize=(7, 3), sharey=True, layout="constrained")
for ax, name in zip(axes, ["A1", "C1"], strict=True):
    is_covered = data.X[name] == 0
    leaves = [data.y[is_covered & (data.environments == e)] for e in (0, 1)]
    rates = np.array([leaf.mean() for leaf in leaves])
    errors = 1.96 * np.sqrt(rates * (1 - rates) / [len(leaf) for leaf in leaves])
    ax.bar(["0", "1"], rates, yerr=errors, capsize=4)
    ax.set(title=f"rows with {name} = 0", xlabel="environment")
axes[0].set_ylabel("rate of y = 1")
plt.show()
