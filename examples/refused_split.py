"""
Why a tree refused its best split
=================================

An invariant tree lets every hospital have its own rate of the outcome. What must
be the same everywhere is what a split does to the odds. A shortcut fails that,
however much it tells.
"""

import matplotlib.pyplot as plt
import numpy as np

from icscm import InvariantTreeClassifier
from icscm.datasets import make_hospitals

# %%
# Simulated admissions. ``information`` is what a split tells of the outcome,
# ``share`` how much its effect differs between hospitals; the tolerance is 0.03.

data = make_hospitals(random_state=0)
tree = InvariantTreeClassifier(max_leaves=3)
tree.fit(data.X, data.y, environments=data.environments)
print(tree.model_)
refused = tree.trace_.to_frame("rejected")
refused[["node", "rule", "deviance_explained", "heterogeneity_share", "reason"]].head(2).round(2)

# %%
# The odds ratio of the outcome, at each hospital. It is the same for age, as far as
# can be told. For the billing code it falls from Ash to Fir, and for troponin it
# depends on whether the test is ordered by habit.

root = tree.trace_.splits[0]
splits = [root.chosen, *(refusal.candidate for refusal in root.best_rejected[:2])]
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
