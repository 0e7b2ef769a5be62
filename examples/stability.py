"""
Columns come back, thresholds move
==================================

Learn again on random halves of the rows. A column that keeps coming back is a
steadier finding than the rule that all rows happened to give.
"""

import matplotlib.pyplot as plt

from icscm import ICSCMClassifier, stability_selection
from icscm.datasets import make_hospitals

# %%
# Simulated admissions; the risk changes at ``age > 65 and lactate > 2``. Where the
# rule of all rows comes back on few of the halves a warning says so. Take it at its
# word: that rule is one of many that fit about as well.

data = make_hospitals(random_state=0)
known = data.X, data.y, data.environments
learner = ICSCMClassifier()
found = stability_selection(learner, *known, n_resamples=40, random_state=0)
print(f"{found.model}: on {found.model_frequency:.0%} of the halves")

# %%
# Both causes are in every model. Their thresholds are not told apart by half of the
# rows: of patients aged 66 to 68 there are too few to change a leaf's rate by what
# a test could see.

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
    ax.set(title=title, xlim=(0, 1), xlabel="share of the halves")
axes[0].axvline(found.threshold, color="0.3", linestyle=":", linewidth=1)
plt.show()
