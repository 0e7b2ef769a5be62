"""
A test of your own
==================

Where the environments are years, the strength of a shortcut often drifts. A test
for a trend detects this with fewer rows than chi-squared, which tests for any
difference. Any object with ``compute_p_values`` can be a test.
"""

import matplotlib.pyplot as plt
import numpy as np
from scipy.stats import norm

from icscm import ICSCMClassifier
from icscm.datasets import make_hospitals
from icscm.stats.independence import ChiSquaredTest
from icscm.testing import check_independence_test


class TrendTest:
    """Cochran and Armitage: does the rate rise or fall along the environments?"""

    def compute_p_values(self, tables):
        """From counts of shape (leaf, label, environment)."""
        n, positive = tables.sum(axis=1), tables[:, 1]
        total = np.maximum(n.sum(axis=1, keepdims=True), 1)
        rate = positive.sum(axis=1, keepdims=True) / total
        years = np.arange(n.shape[1])
        centred = years - (n * years).sum(axis=1, keepdims=True) / total
        trend = (centred * positive).sum(axis=1)
        variance = (rate * (1 - rate) * n * centred**2).sum(axis=1)
        spread = np.sqrt(np.where(variance > 0, variance, np.inf))
        return 2 * norm.sf(np.abs(trend) / spread)


check_independence_test(TrendTest())

# %%
# Simulated admissions; its hospitals are called years here. The billing code
# follows the outcome less closely every year. The figure shows how often a rule is
# rejected, in 100 tables each.

sizes, n_tables = [100, 200, 400], 100
leaves = {"billing_code == R57": [], "age > 65": []}
for n_rows in sizes:
    tables = {name: np.zeros((n_tables, 2, 8), dtype=int) for name in leaves}
    for i in range(n_tables):
        data = make_hospitals(n_rows, n_hospitals=8, random_state=i)
        year = np.unique(data.environments, return_inverse=True)[1]
        is_other, is_young = data.X["billing_code"] != "R57", data.X["age"] <= 65
        for name, is_in in zip(leaves, [is_other, is_young], strict=True):
            np.add.at(tables[name][i], (data.y[is_in], year[is_in]), 1)
    for name, found in leaves.items():
        tests = ChiSquaredTest(), TrendTest()
        p_values = [test.compute_p_values(tables[name]) for test in tests]
        found.append([(each <= 0.05).mean() for each in p_values])

# %%
# With 200 rows the trend test rejects the shortcut as often as chi-squared with
# 400. Both tests reject the rule on a cause, which does not drift, in about one of
# twenty tables, as expected at a level of 0.05.

fig, ax = plt.subplots(figsize=(7, 3.4), layout="constrained")
for (rule, shares), style in zip(leaves.items(), ["o-", "o:"], strict=True):
    chi2, trend = zip(*shares, strict=True)
    ax.plot(sizes, chi2, style, color="C0", label=f"{rule}, chi2")
    ax.plot(sizes, trend, style, color="C1", label=f"{rule}, TrendTest()")
ax.set(xscale="log", xlabel="rows", ylabel="share rejected")
ax.set_xticks(sizes, labels=sizes)
ax.minorticks_off()
ax.legend()
plt.show()

# %%
# To learn with it, pass an instance.

data = make_hospitals(n_hospitals=8, random_state=0)
learner = ICSCMClassifier(test=TrendTest())
learner.fit(data.X, data.y, environments=data.environments)
print(learner.model_)
