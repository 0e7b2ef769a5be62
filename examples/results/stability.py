"""
Columns are stable, thresholds are not
======================================

Fit on random subsamples of half of the rows. A column that is chosen in most of
them is a more stable finding than the rule found on all rows.
"""

import matplotlib.pyplot as plt

from icscm import ICSCMClassifier, stability_selection
from icscm.datasets import make_hospitals

# %%
# Simulated admissions; the risk changes at ``age > 65 and lactate > 2``. If the
# rule found on all rows is found on few of the subsamples, a warning states this:
# the rule is one of many that fit about equally well.

data = make_hospitals(random_state=0)
learner = ICSCMClassifier()
found = stability_selection(
    learner,
    data.X,
    data.y,
    environments=data.environments,
    n_resamples=40,
    random_state=0,
)
print(f"{found.model}: on {found.model_frequency:.0%} of the subsamples")

# %%
# Both causes are in every model. Half of the rows cannot distinguish thresholds
# that are close: there are too few patients aged 66 to 68 to change a leaf's rate
# by the minimum detectable difference.

fig, axes = plt.subplots(1, 2, figsize=(7, 3.2), layout="constrained")
rules = dict(list(found.rule_frequencies.items())[:8])
for ax, shares, title in (
    (axes[0], found.feature_frequencies, "columns"),
    (axes[1], rules, "rules, the eight most frequent"),
):
    names = [name.partition(" (")[0] for name in shares]
    is_cause = [name.startswith(tuple(data.parents)) for name in names]
    colours = ["C0" if each else "C5" for each in is_cause]
    ax.barh(names, list(shares.values()), color=colours, height=0.65)
    ax.invert_yaxis()
    ax.set(title=title, xlim=(0, 1), xlabel="share of the subsamples")
axes[0].axvline(found.threshold, color="0.3", linestyle=":", linewidth=1)
plt.show()
