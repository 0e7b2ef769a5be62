"""
Why a tree rejected its best split
==================================

In an invariant tree every hospital may have its own rate of the outcome, but the
effect of a column on the odds must be the same at all of them. A shortcut fails
this requirement, however much deviance it explains.
"""

import matplotlib.pyplot as plt
import numpy as np

from icscm import InvariantTreeClassifier
from icscm.datasets import make_hospitals

# %%
# Simulated admissions. ``heterogeneity_share`` of a split is the squared
# coefficient of variation of its log odds ratio between hospitals, beyond chance.

data = make_hospitals(random_state=0)
tree = InvariantTreeClassifier(max_leaves=3)
tree.fit(data.X, data.y, environments=data.environments)
print(tree.model_)
rejected = tree.trace_.to_frame("rejected")
columns = ["rule", "deviance_explained", "heterogeneity_share", "reason"]
rejected[columns].head(2).round(2)

# %%
# The odds ratio of the outcome, at each hospital. For age no difference is found.
# For the billing code it falls from Ash to Fir, and for troponin it depends on
# whether the hospital orders the test mostly for patients who deteriorate.

root = tree.trace_.splits[0]
splits = [root.chosen, *(each.candidate for each in root.best_rejected[:2])]
fig, axes = plt.subplots(1, 3, figsize=(7, 3), sharey=True, layout="constrained")
for ax, split, colour in zip(axes, splits, ["C0", "C1", "C1"], strict=True):
    (a, b), (c, d) = np.array(split.if_false) + 0.5, np.array(split.if_true) + 0.5
    log_odds = np.log(d * a / (b * c))
    reach = 1.96 * np.sqrt(1 / a + 1 / b + 1 / c + 1 / d)
    ax.errorbar(log_odds, tree.environments_, xerr=reach, fmt="o", color=colour)
    ax.axvline(split.log_odds_ratio, color="0.5", linestyle=":")
    ax.axvline(0, color="0.85", zorder=0)
    ax.set(title=split.rule, xlabel="log odds ratio")
axes[0].invert_yaxis()
plt.show()
