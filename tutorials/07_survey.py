"""
A survey with a million rows: margins instead of p-values
=========================================================

Who has a private pension? A survey asks a million people in 24 regions. The invariant learner finds
nothing: every useful rule is rejected. The rules are not wrong. With so many rows a test detects
differences of a point or two between regions, which are real and have no practical importance.

This page shows this, and the alternative: an equivalence test, which checks that the difference is
smaller than a margin. The survey is simulated.
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from scipy.stats import chi2_contingency

from icscm import ICSCMClassifier

# %%
# The simulation
# --------------
# The probability of a pension is high for people who work more than 20 hours and have more than
# primary school. Regions differ in who lives there. They also differ slightly in this probability,
# as real regions do. *pays_online* follows the pension, closely in some regions and hardly in
# others.

REGIONS = np.array([f"R{i:02}" for i in range(1, 25)])


def simulate(n, high, low, rng):
    """Simulate n people; high and low: rates of the outcome."""
    k = rng.integers(24, size=n)
    hours = np.clip(rng.normal(np.linspace(18, 34, 24)[k], 14), 0, 70).astype(int)
    level = rng.random(n) + np.roll(np.linspace(-0.15, 0.15, 24), 7)[k]
    education = np.select([level < 0.3, level < 0.7], ["primary", "secondary"], "degree")
    rate = np.where((hours > 20) & (education != "primary"), high, low)
    shift = np.random.default_rng(5).normal(0, 0.06, 24)  # what a region adds to the log odds
    odds = rate / (1 - rate) * np.exp(shift)[k]
    y = rng.random(n) < odds / (1 + odds)
    follows = rng.random(n) < np.roll(np.linspace(0.3, 0.95, 24), 12)[k]
    columns = {
        "age": rng.integers(18, 90, n),
        "sex": pd.Categorical.from_codes(rng.integers(2, size=n), ["female", "male"]),
        "education": pd.Categorical(education),
        "hours": hours,
        "household": rng.integers(1, 7, n),
        "is_urban": rng.random(n) < np.linspace(0.3, 0.9, 24)[k],
        "pays_online": np.where(follows, y, rng.random(n) < 0.4),
    }
    return pd.DataFrame(columns), y, REGIONS[k]


rng = np.random.default_rng(1)
X, has_pension, region = simulate(1_000_000, 0.85, 0.08, rng)
X.head(3)

# %%
# P-values reject everything
# --------------------------

strict = ICSCMClassifier().fit(X, has_pension, environments=region)
rejected = strict.trace_.to_frame("rejected").query("step == 1")
rejected[["rule", "utility", "p_value", "reason"]].head(5)

# %%
# *hours > 20* is a true rule, and is rejected with a p-value of 1e-15. The test on people who work
# up to 20 hours, for growing samples:

works_little = X["hours"] <= 20
everyone = pd.DataFrame({"region": region, "has_pension": has_pension})
answers = everyone[works_little]
sizes = [3_000, 10_000, 30_000, 100_000, 300_000]
p_values, spreads = [], []
for n in sizes:
    counts = pd.crosstab(answers["region"][:n], answers["has_pension"][:n])
    p_values.append(chi2_contingency(counts).pvalue)
    rates = counts[True] / counts.sum(axis=1)
    spreads.append(100 * (rates.max() - rates.min()))

fig, (left, right) = plt.subplots(1, 2, figsize=(7, 2.8), layout="constrained")
left.plot(sizes, p_values, marker="o")
left.axhline(0.05, color="grey", linestyle=":")
left.set(xscale="log", yscale="log", xlabel="respondents", ylabel="p-value")
right.plot(sizes, spreads, marker="o")
right.set(xscale="log", xlabel="respondents", ylabel="largest difference, points")
right.set_ylim(0)
plt.show()

# %%
# The differences between regions did not grow: the observed ones even shrink, towards the small
# true ones, as chance averages out. Only the certainty that they are not zero increased, and a
# small p-value means no more than that. A smaller alpha only increases the number of rows at which
# the rule is rejected.
#
# Equivalence within a margin
# ---------------------------
# First decide which difference between regions would matter; here, 5 points. This is a question of
# subject matter, not of statistics, and must be decided before results are seen. With
# ``margin=0.05`` a rule is taken only where every pair of regions is *shown* to lie
# within the margin.

model = ICSCMClassifier(margin=0.05)
model.fit(X, has_pension, environments=region)
print(model.model_)
model.verdicts_

# %%
# These are the differences to report. In no leaf do two regions differ by more than ``at most``, at
# the level alpha. They do differ, by ``at least`` that much; the p-values are small, and no longer
# determine the result. *pays_online*, the most useful of all, is still rejected: its differences
# are far beyond the margin.

rejected = model.trace_.to_frame("rejected").query("step == 1")
print(rejected[["rule", "utility", "reason"]].head(1).to_string(index=False))
offline = everyone[~X["pays_online"]]
fig, ax = plt.subplots(figsize=(7, 2.8), layout="constrained")
for name, rows in {
    "hours <= 20 (chosen)": answers,
    "pays_online is false (rejected)": offline,
}.items():
    rates = rows.groupby("region")["has_pension"].mean()
    ax.plot(rates.index, rates, marker="o", label=name)
ax.set(ylabel="rate of has_pension", ylim=(0, None), xlabel="region")
ax.tick_params(axis="x", labelsize=7)
ax.legend()
plt.show()

# %%
# A margin of 1 point is smaller than the differences between these regions; one of 10 points
# changes nothing here:

for margin in (0.01, 0.1):
    other = ICSCMClassifier(margin=margin)
    other.fit(X, has_pension, environments=region)
    print(f"{margin:4}: {other.model_}")

# %%
# In short
# --------
# - Many rows: a margin that means something to the reader of the result; the rarer the outcome, the
#   smaller.
# - Report the differences and their intervals, not p-values.
# - With little data a margin accepts nothing, since equivalence cannot be shown.
#   :doc:`/verdicts` has the methods, and what margins do on real tables.
# - The result is limited to these regions, and is no proof of causation.
