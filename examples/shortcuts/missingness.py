"""
Whether a value is missing can be a shortcut
============================================

Whether a value is missing may predict the outcome, since somebody decided whether
to measure it. If this decision is associated with the outcome in some hospitals
only, the rule is rejected like any other shortcut.
"""

import matplotlib.pyplot as plt
import pandas as pd

from icscm import ICSCMClassifier
from icscm.datasets import make_hospitals

# %%
# Simulated admissions. Every other hospital measures troponin in those who
# deteriorate; its value does not predict the outcome. Missing lactates are
# harmless: at every hospital they are normal ones.

data = make_hospitals(random_state=0)
learner = ICSCMClassifier().fit(data.X, data.y, environments=data.environments)
rejected = learner.trace_.to_frame("rejected")
is_troponin = rejected["rule"].str.startswith("troponin")
print(learner.model_)
rejected.loc[is_troponin, ["rule", "reason", "p_value"]].head(1)

# %%
# Where the line is long, the presence of a value predicts the outcome. A rule
# learned at Ash would mislead at Birch.

groups = [data.environments, data.X["troponin"].notna()]
rates = pd.Series(data.y).groupby(groups).mean().unstack()
fig, ax = plt.subplots(figsize=(7, 3.2), layout="constrained")
ax.hlines(rates.index, rates[False], rates[True], color="0.75", linewidth=3)
ax.plot(rates[True], rates.index, "o", color="C1", markersize=10, label="measured")
ax.plot(rates[False], rates.index, "o", color="C0", markersize=10, label="missing")
ax.invert_yaxis()
ax.set(xlabel="rate of the outcome, by whether troponin was measured", xlim=(0, 1))
ax.legend(loc="lower center", bbox_to_anchor=(0.5, 1), ncols=2)
plt.show()
