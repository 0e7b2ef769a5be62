"""
With many rows, use a margin
============================

Rates never agree exactly between hospitals. A p-value tests the null hypothesis
that they do, which is always rejected with enough rows. An equivalence test checks
whether they differ by less than a margin.
"""

import warnings

import matplotlib.pyplot as plt

from icscm import ICSCMClassifier
from icscm.datasets import make_hospitals
from icscm.exceptions import IcscmWarning

# %%
# Simulated admissions, and ``label_shift``: every hospital has its own rate of the
# outcome given the causes, 1 to 4 percentage points apart. The margin is 5. The
# learner warns where no rule is found, here at one end of the sample sizes for each
# criterion.

warnings.simplefilter("ignore", IcscmWarning)
data = make_hospitals(200_000, label_shift=0.15, random_state=0)
sizes = [2_000, 6_000, 20_000, 60_000, 200_000]
errors = {None: [], 0.05: []}
for n in sizes:
    for margin, found in errors.items():
        learner = ICSCMClassifier(margin=margin)
        learner.fit(data.X[:n], data.y[:n], environments=data.environments[:n])
        found.append(1 - learner.score(data.X_new, data.y_new))
print(f"{n:,} rows, margin={margin}: {learner.model_}")

# %%
# With few rows the p-value does not detect an unimportant difference; with many
# rows it rejects because of it. Showing that a leaf lies inside the margin takes
# many rows, and still more rows do not change the result.

fig, ax = plt.subplots(figsize=(7, 3.4), layout="constrained")
for margin, marker in ((None, "s-"), (0.05, "o-")):
    ax.plot(sizes, errors[margin], marker, label=f"margin={margin}")
ax.axhline(data.y_new.mean(), color="0.3", linestyle=":", linewidth=1)
ax.text(6_000, data.y_new.mean() + 0.008, "nothing found: majority-class baseline")
ax.set(xscale="log", xlabel="rows", ylim=(0, 0.33))
ax.set_ylabel("error at a new hospital")
ax.legend(loc="lower center")
plt.show()
