"""
Prediction intervals for a new hospital
=======================================

The spread of a leaf's rate between environments gives a prediction interval for the
rate in a new environment. Data from a new environment show whether the rate lies in
it.
"""

import textwrap

import matplotlib.pyplot as plt

from icscm import ICSCMClassifier, SCMClassifier, evaluate
from icscm.datasets import make_hospitals

# %%
# Simulated admissions at eight hospitals, and at a new one where the shortcuts, a
# billing code and a test, are reversed.

data = make_hospitals(n_hospitals=8, random_state=0)
learners = ICSCMClassifier(), SCMClassifier(max_rules=2)
found = []
for learner in learners:
    learner.fit(data.X, data.y, environments=data.environments)
    found.append(evaluate(learner, data.X_new, data.y_new))
    print(textwrap.fill(found[-1].headline, 80))

# %%
# A bar is the 95 % prediction interval for a new hospital, a diamond the observed
# rate. The rates of the invariant rule lie in their intervals. The intervals of the
# other rule are wide, which is a warning in itself, and the observed rates still
# lie outside: the new hospital is not drawn from the population of the others.

fig, axes = plt.subplots(2, 1, figsize=(7, 4), sharex=True, layout="constrained")
for ax, learner, evaluation in zip(axes, learners, found, strict=True):
    leaves = evaluation.leaves
    names = [leaf.text.replace(" (missing: false)", "") for leaf in leaves]
    low, high = zip(*(leaf.new_interval for leaf in leaves), strict=True)
    ax.hlines(names, low, high, color="C0", linewidth=9, alpha=0.35)
    expected = [leaf.expected for leaf in leaves]
    ax.plot(expected, names, "|", color="C0", markersize=14)
    observed = [leaf.observed for leaf in leaves]
    ax.plot(observed, names, "D", color="C1", markersize=7)
    ax.set(title=type(learner).__name__, xlim=(-0.02, 1.02))
    ax.set_ylim(len(leaves) - 0.5, -0.5)
axes[1].set_xlabel("rate of the outcome in the leaf")
plt.show()
