"""
Whether a value is missing can be a habit of the site
=====================================================

A missing value may tell more than a present one: somebody chose not to measure.
Where that choice follows the outcome in some hospitals only, it is refused like
any other habit.
"""

import matplotlib.pyplot as plt
import pandas as pd

from icscm import ICSCMClassifier
from icscm.datasets import make_hospitals

# %%
# Simulated admissions. Every other hospital measures troponin in those who
# deteriorate; its value tells nothing. Missing lactates are harmless: they are
# normal ones, everywhere.

data = make_hospitals(random_state=0)
learner = ICSCMClassifier().fit(data.X, data.y, environments=data.environments)
refused = learner.trace_.to_frame("rejected")
is_troponin = refused["rule"].str.startswith("troponin")
print(learner.model_)
refused.loc[is_troponin, ["rule", "reason", "p_value"]].head(1)

# %%
# Where the line is long, being measured says that the patient is ill. A rule
# learned from Ash would mislead at Birch.

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
