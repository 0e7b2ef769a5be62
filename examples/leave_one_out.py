"""
One hospital left out, and one never seen
=========================================

Learn without each hospital in turn and see how wrong the model is there. It is
the honest error for a hospital *like these*, and no promise for one where habits
are the other way round.
"""

import warnings

import matplotlib.pyplot as plt

from icscm import ICSCMClassifier, SCMClassifier, leave_one_environment_out
from icscm.datasets import make_hospitals
from icscm.exceptions import IcscmWarning

# %%
# Simulated admissions at five hospitals. Two columns follow the outcome by habit,
# at some sites more than at others; at the new hospital they do the opposite.
# Warnings about single models are of no interest here.

warnings.simplefilter("ignore", IcscmWarning)
data = make_hospitals(random_state=0)
known = data.X, data.y, data.environments
errors = {}
for learner in (SCMClassifier(max_rules=3), ICSCMClassifier()):
    found = leave_one_environment_out(learner, *known)
    learner.fit(data.X, data.y, environments=data.environments)
    out = {str(each.environment): each.error for each in found.held_out}
    out["new hospital"] = 1 - learner.score(data.X_new, data.y_new)
    errors[type(learner).__name__] = out

# %%
# The plain learner relies on the billing code. In the hospitals left out it errs
# about as often as the other, here less and there more, since all of them share the
# habit in some degree. The new one does not.

fig, ax = plt.subplots(figsize=(7, 3.4), layout="constrained")
for (name, found), style in zip(errors.items(), ["sC1", "oC0"], strict=True):
    places = list(found)
    ax.plot(list(found.values()), places, style, label=name, markersize=8)
for place in places:
    ends = [errors[name][place] for name in errors]
    ax.plot(ends, [place] * 2, color="0.8", zorder=0)
ax.axhspan(4.5, 5.5, color="0.94", zorder=-1)
ax.invert_yaxis()
ax.set(xlabel="error where it was not learned", xlim=(0, None))
ax.legend(loc="center right")
plt.show()
