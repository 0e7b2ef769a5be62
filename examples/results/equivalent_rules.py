"""
Rules that these data cannot distinguish
========================================

Two rules may cover exactly the same rows. The learner keeps the first and lists the
others in ``equivalent_rules_``. Only subject knowledge can decide between them, and
the choice matters at a new hospital.
"""

import matplotlib.pyplot as plt
import numpy as np

from icscm import ICSCMClassifier
from icscm.datasets import make_hospitals

# %%
# Simulated admissions with an additional column: a laboratory flag, which all five
# hospitals set when lactate is above 2.

data = make_hospitals(random_state=0)
X = data.X.assign(lactate_flag=np.where(data.X["lactate"] > 2, "high", "none"))
learner = ICSCMClassifier().fit(X, data.y, environments=data.environments)
print(learner.model_)
for rule, others in zip(learner.rules_, learner.equivalent_rules_, strict=True):
    print(f"  {rule}: the same rows as", *others or ["no other rule"])

# %%
# At a new hospital the laboratory flags values above 3. The rule on the value still
# holds; the rule on the flag misses most of the patients. No test on the training
# rows can show this.

is_old = data.X_new["age"] > 65
choices = {"lactate > 2": 2, "lactate_flag == high": 3}
fig, ax = plt.subplots(figsize=(7, 3), layout="constrained")
for i, threshold in enumerate(choices.values()):
    home = (learner.predict(X) == 1)[data.y == 1].mean()  # the same for both
    there = (is_old & (data.X_new["lactate"] > threshold))[data.y_new == 1].mean()
    places, colours = [i - 0.18, i + 0.18], ["C5", f"C{i}"]
    bars = ax.barh(places, [home, there], height=0.32, color=colours)
    ax.bar_label(bars, ["five hospitals", "new hospital"], padding=5)
ax.set(xlim=(0, 1.1), xlabel="share of deteriorating patients found")
ax.set_yticks(range(2), labels=[f"age > 65 and\n{name}" for name in choices])
ax.invert_yaxis()
plt.show()
