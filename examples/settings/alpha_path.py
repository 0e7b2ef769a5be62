"""
Models at other levels of alpha
===============================

The level alpha is chosen by the user, so compare several levels. Here the shortcuts
are rejected at all of them. Only the threshold on a cause changes, and at both ends
no good rule is found.
"""

import re
import warnings

import matplotlib.pyplot as plt

from icscm import ICSCMClassifier
from icscm.datasets import make_hospitals
from icscm.exceptions import IcscmWarning

# %%
# Simulated admissions. The risk changes at ``age > 65 and lactate > 2``. Away from
# the usual levels the learner warns of leaves with little data, or that nothing was
# found; the figure shows these cases.

data = make_hospitals(random_state=0)
alphas = [1e-12, 1e-6, 1e-4, 1e-3, 0.01, 0.05, 0.1, 0.2, 0.4, 0.7]
warnings.simplefilter("ignore", IcscmWarning)
learners = [ICSCMClassifier(alpha=alpha) for alpha in alphas]
for learner in learners:
    learner.fit(data.X, data.y, environments=data.environments)
    text = re.sub(r" \(missing: \w+\)", "", str(learner.model_))
    print(f"{learner.alpha:<6g}", text if learner.rules_ else "no rule")

# %%
# A dot is a column that the model uses. With a very small alpha hardly any
# candidate is rejected: a threshold on age that is far too high passes, the
# uncovered samples pass as independent of the hospital, and the search ends. With a
# large alpha true rules are rejected by chance, and rules that cover two rows are
# chosen instead.

columns = [*data.shortcuts, "sodium", *data.parents]
fig, axes = plt.subplots(2, figsize=(7, 4.5), sharex=True, layout="constrained")
top, low = axes
for j, name in enumerate(columns):
    used = [i for i, each in enumerate(learners) if name in each.features_used_]
    colour = "C0" if name in data.parents else "C5"
    top.plot(used, [j] * len(used), "o", color=colour, markersize=10)
errors = [1 - learner.score(data.X_new, data.y_new) for learner in learners]
colours = ["C0" if learner.rules_ else "0.85" for learner in learners]
low.bar(range(len(alphas)), errors, color=colours)
low.axhline(data.y_new.mean(), color="0.3", linestyle=":", linewidth=1)
low.text(4.5, data.y_new.mean() + 0.005, "majority-class baseline", ha="center")
top.set(title="columns used", ylim=(-0.6, len(columns) - 0.4))
top.set_yticks(range(len(columns)), labels=columns)
low.set_xticks(range(len(alphas)), labels=[f"{alpha:g}" for alpha in alphas])
low.set(xlabel="alpha", ylabel="error at a new hospital", ylim=(0, 0.3))
plt.show()
