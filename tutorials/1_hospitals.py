"""
A rule across hospitals
=======================

Five hospitals want one rule that says, at admission, which patients will deteriorate. It is to be
used at a sixth. This page goes from their table to a rule that can be handed on, and says at each
step what the result does and does not tell.

The admissions are simulated (:func:`icscm.datasets.make_hospitals`); none of them is a patient's.
That is why, at the end, we can look up who was right.
"""

import matplotlib.pyplot as plt
import pandas as pd

from icscm import ICSCMClassifier, SCMClassifier, evaluate
from icscm.datasets import make_hospitals
from icscm.studies.checkup import check_environments

# %%
# The table
# ---------
# A row is an admission. There are numbers, codes and yes-or-no columns; laboratory values are
# missing where nobody asked for them. Label and hospital are not among the columns. As named Series
# they give their names to the reports below.

data = make_hospitals(40_000, random_state=1)
deteriorated = pd.Series(data.y, name="deteriorated")
hospital = pd.Series(data.environments, name="hospital")
data.X.head(4)

# %%
# Before fitting: what can these hospitals tell?
# ----------------------------------------------
# A rule is tested by comparing hospitals, so look at these first: how many rows, how often the
# outcome, and which difference could be seen at all.

found = check_environments(data.X, deteriorated, hospital)
found

# %%
# Two numbers matter here. The outcome's rate differs between hospitals: there is something to
# explain. And in a leaf that holds a tenth of all rows, a difference smaller than the last line
# says would likely go unnoticed:

for leaf in found.power:
    points = 100 * leaf.difference
    print(f"{leaf.share:4.0%} of the rows: differences from {points:.1f} points on")

# %%
# Fit, and read how the rule was found
# ------------------------------------

model = ICSCMClassifier().fit(data.X, deteriorated, environments=hospital)
print(model.model_)
model.trace_

# %%
# A conjunction is found by exclusion. The first rule settles the rows in which it is false, as
# *will not deteriorate*; they leave, and the next rule is looked for among the rest. ``p leaf``
# asks, of the rows that leave: does the outcome depend on the hospital? Only rules with a p-value
# above ``alpha`` (0.05) are candidates; of these the most useful is taken. ``p rest`` asks the same
# of the rows that stay. Once they no longer depend on the hospital, nothing is left to explain and
# the search ends.
#
# *(missing: false)* is part of the rule: where lactate was not measured, *lactate > 2* counts as
# false. Both ways were tried.

# %%
# What was refused, and why
# -------------------------
# These would have been more useful than the rule that was chosen first:

refused = model.trace_.to_frame("rejected")
refused = refused[refused["step"] == 1].drop_duplicates("utility")
refused[["rule", "utility", "reason"]].head(4)

# %%
# ``billing_code == R57`` is the best predictor in the table, and is refused. The picture says why.
# Each line is the set of rows that a rule would settle as *will not deteriorate*: in the chosen one
# the rate is the same in all five hospitals, in the others it depends on where the patient lies.

settled = {
    "age <= 66 (chosen)": data.X["age"] <= 66,
    "billing_code is not R57 (refused)": data.X["billing_code"] != "R57",
    "troponin is missing (refused)": data.X["troponin"].isna(),
}
fig, ax = plt.subplots(figsize=(7, 3.5), layout="constrained")
for name, rows in settled.items():
    rates = deteriorated[rows].groupby(hospital[rows]).mean()
    ax.plot(rates.index, rates, marker="o", label=name)
ax.set(ylabel="rate of deteriorated", ylim=(0, None), xlabel="hospital")
ax.legend(title="rows with")
plt.show()

# %%
# The verdict on each leaf
# ------------------------
# A test that does not reject may mean *no difference* or *too little data*. A verdict tells the two
# apart: *invariant* is said only where a difference of more than 5 points is ruled out
# (:doc:`/verdicts`).

leaves = model.describe_leaves()
leaves[["rule", "n", "rate", "new_low", "new_high", "verdict"]].round(3)

# %%
# ``new_low`` and ``new_high`` bound the rate to expect at a hospital not seen, in 95 of 100 cases,
# *if it is drawn as these five were* (:doc:`/new-environments`). Five tell little of how much
# hospitals differ, so the bounds are wider than what was seen.

model.plot()

# %%
# A page to hand on
# -----------------
# ``report(...).save("report.html")`` writes all of the above, and the rules at other levels alpha,
# to one file that needs nothing beside it. In a notebook it shows itself, as here.

model.report(data.X, deteriorated, hospital, data_name="simulated admissions")

# %%
# The sixth hospital
# ------------------
# Now the rule is used where it was not learned. In the simulation, the sixth hospital codes and
# orders tests the other way round. Beside it stands the same learner without the test of
# invariance.

plain = SCMClassifier(max_rules=2).fit(data.X, deteriorated)
print("plain:    ", plain.model_)
print("invariant:", model.model_)

places = [("home", data.X, data.y), ("sixth", data.X_new, data.y_new)]
rows = []
for name, each in {"plain": plain, "invariant": model}.items():
    for place, X, y in places:
        judged = evaluate(each, X, y).overall
        error, constant = judged.scores["error"], judged.baseline["error"]
        rows.append([name, place, error.value, error.low, error.high, constant.value])
columns = ["learner", "hospital", "error", "low", "high", "always no"]
pd.DataFrame(rows, columns=columns).round(3)

# %%
# At home the plain rule is a little better, and nothing there warns of what happens at the sixth
# hospital, where it is worse than always saying no. (Home is what both were fitted to.
# Cross-validation by rows would show the same: rows held out come from the same hospitals.)
#
# The evaluation in full, with the question that matters after a move: is each leaf's rate still
# where it was expected?

there = pd.Series(["sixth"] * len(data.y_new), name="hospital")
evaluate(model, data.X_new, pd.Series(data.y_new, name="deteriorated"), there)

# %%
# Who was right?
# --------------
# Only a simulation can say:

print("causes:", data.rule)
print("habits:", ", ".join(data.shortcuts))

# %%
# Both causes were found and both habits refused. The cut on age is a year high: rows at the age of
# 66 are so few that they change a leaf's rate by less than the test can see.
#
# What to hand on, and with which words
# -------------------------------------
# - The model, ``model.save("model.json")``, and the report.
# - *At these five hospitals, the rate of deterioration under this rule did not depend on the
#   hospital, up to the differences in the verdicts.* That is all that was tested.
# - Not: *age and lactate cause it.* That follows only if hospitals do not act on the outcome except
#   through the columns, no common cause is hidden, and the outcome is a noisy conjunction
#   (:doc:`/theory`). Here the simulation makes it so; your data may not.
# - Not: *it will hold anywhere.* A hospital that treats patients otherwise is of another kind than
#   these.
#
# The same from a file, on the command line: :doc:`/start/from-a-file`. To put the rule to work:
# :doc:`6_sql`.
