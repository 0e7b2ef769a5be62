"""
Reading a verdict
=================

A test that does not reject may mean that a rate is the same in all environments, or
that there are too few rows to detect a difference. A verdict distinguishes the two
by the largest difference that the data allow.
"""

import matplotlib.pyplot as plt

from icscm import ICSCMClassifier
from icscm.datasets import make_hospitals

# %%
# Simulated admissions at five hospitals.

data = make_hospitals(random_state=0)
learner = ICSCMClassifier().fit(data.X, data.y, environments=data.environments)
learner.verdicts_

# %%
# A bar is the 90 % interval of the largest difference between two hospitals. If it
# lies inside the margin, the leaf is *invariant*. If it begins at 0 and ends
# outside the margin, there is *too little data to tell*: the rule was not rejected,
# and invariance was not shown. The rule on the billing code was rejected.

margin = 0.05  # of verdicts, where the learner requires none

rejected = learner.trace_.steps[0].best_rejected[0].candidate
names = [*learner.model_.leaf_texts, f"not met: {rejected.rule}"]
hues = {"invariant": "C0", "too little data to tell": "C1", "not invariant": "C4"}
fig, ax = plt.subplots(figsize=(7, 3), layout="constrained")
for name, verdict in zip(
    names, [*learner.verdicts_, rejected.verdict], strict=True
):
    colour = hues[verdict.conclusion]
    low, high = verdict.difference_interval
    name = name.replace(" (missing: false)", "").replace(" and", " and\n")
    ax.hlines(name, low, high, linewidth=10, color=colour, alpha=0.4)
    ax.plot(verdict.difference, name, "o", color=colour)
    beside = max(high, margin) + 0.004
    ax.text(beside, name, verdict.conclusion, va="center", color=colour)
ax.axvline(margin, color="0.3", linestyle=":", label="margin")
ax.set(xlabel="largest difference of rates between two hospitals", xlim=(0, 0.28))
ax.invert_yaxis()
ax.legend(loc="upper right")
plt.show()
