"""
Leave-one-environment-out, and a new hospital
=============================================

Fit without each hospital in turn and measure the error there. This estimates the
error at a hospital *like these*, not at one where the shortcuts are reversed.
"""

import warnings

import matplotlib.pyplot as plt

from icscm import ICSCMClassifier, SCMClassifier, leave_one_environment_out
from icscm.datasets import make_hospitals
from icscm.exceptions import IcscmWarning

# %%
# Simulated admissions at five hospitals. Two columns are shortcuts: they follow the
# outcome, at some sites more closely than at others; at the new hospital they are
# reversed. Warnings about single models are not shown here.

warnings.simplefilter("ignore", IcscmWarning)
data = make_hospitals(random_state=0)
errors = {}
for learner in (SCMClassifier(max_rules=3), ICSCMClassifier()):
    found = leave_one_environment_out(
        learner, data.X, data.y, environments=data.environments, scorers=["error"]
    )
    learner.fit(data.X, data.y, environments=data.environments)
    out = {str(e.environment): e.scores["error"].value for e in found.held_out}
    out["new hospital"] = 1 - learner.score(data.X_new, data.y_new)
    errors[type(learner).__name__] = out

# %%
# The plain learner relies on the billing code. At the held-out hospitals its error
# is similar to that of ICSCM, since the shortcut is present at all of them to some
# degree. At the new hospital its error is larger.

fig, ax = plt.subplots(figsize=(7, 3.4), layout="constrained")
for (name, found), style in zip(errors.items(), ["sC1", "oC0"], strict=True):
    places = list(found)
    ax.plot(list(found.values()), places, style, label=name, markersize=8)
for place in places:
    ends = [errors[name][place] for name in errors]
    ax.plot(ends, [place] * 2, color="0.8", zorder=0)
ax.axhspan(4.5, 5.5, color="0.94", zorder=-1)
ax.invert_yaxis()
ax.set(xlabel="error at a hospital held out, or new", xlim=(0, None))
ax.legend(loc="center right")
plt.show()
