"""
Sites that share no rows
========================

Three hospitals want a rule that holds in all of them, and none may give away its patients. All that
the learner asks of data is counts. So rules travel to the hospitals, counts travel back, and the
model is the one that pooled rows would have given.

This page plays it through with simulated admissions, keeps a record of everything that leaves a
hospital, and looks at what that gives away. :doc:`/sites` states it in full.
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from icscm import ICSCMClassifier
from icscm.datasets import make_hospitals
from icscm.sources.sites import LocalSite, Site, make_agreement, open_sites

data = make_hospitals(30_000, n_hospitals=3, random_state=3)
NAMES = np.unique(data.environments).tolist()
print(NAMES)

# %%
# First, agree
# ------------
# Thresholds are not chosen from the data, which nobody sees as a whole. The hospitals agree on cuts
# that mean something to them, on the codes that a column may hold, and on which values may be
# missing.

agreement = make_agreement(
    {
        "age": range(20, 95, 5),
        "heart_rate": range(50, 130, 10),
        "lactate": [1, 1.5, 2, 3, 4],
        "troponin": [10, 20, 50, 100],
        "admission": ["emergency", "planned", "transfer"],
        "billing_code": ["A41", "I50", "J18", "N39", "R57", "S72"],
    },
    classes=(0, 1),
    environments=NAMES,
    missing=["lactate", "troponin"],
)

# %%
# Each hospital codes its own rows
# --------------------------------
# A ``LocalSite`` stays where the rows are. Here all three are in one process; in earnest you write
# the four methods below over what connects you, a web service or a courier with files. This one
# hands on the question and writes down how many numbers the answer has.


class Recorded(Site):
    """A site, and a record of what left it."""

    def __init__(self, rows):
        self.site = LocalSite(data.X[rows], data.y[rows], data.environments[rows], agreement)
        self.sent = []

    def record(self, question, numbers):
        few = ((numbers > 0) & (numbers < 5)).sum()
        sent = {"question": question, "numbers": numbers.size, "of 1 to 4 patients": few}
        self.sent.append(sent)

    def count_totals(self):
        answer = self.site.count_totals()
        self.record("rows by label and hospital", answer)
        return answer

    def count_cube(self, rules, block):
        answer = self.site.count_cube(rules, block)
        self.record(f"columns by label, rules taken: {len(rules)}", answer)
        return answer

    def find_same_coverage(self, rules, rule, others):
        answer = self.site.find_same_coverage(rules, rule, others)
        self.record("do these rules settle the same rows?", answer)
        return answer

    def count_patterns(self, rules):
        answer = self.site.count_patterns(rules)
        self.record("rows by the rules of the model", answer.counts)
        return answer


sites = [Recorded(data.environments == name) for name in NAMES]

# %%
# One model
# ---------

together = ICSCMClassifier().fit_counts(open_sites(sites, agreement))
print(together.model_)
together.trace_

# %%
# Is it the model of the pooled rows? Only a simulation can put them in one place to see. With the
# agreed thresholds it is equal in every count; a plain ``fit`` chooses thresholds of its own, and
# comes to the same rule here.

pooled = LocalSite(data.X, data.y, data.environments, agreement)
in_one_place = ICSCMClassifier().fit_counts(open_sites([pooled], agreement))
assert in_one_place.model_ == together.model_
assert in_one_place.trace_ == together.trace_
print(ICSCMClassifier().fit(data.X, data.y, environments=data.environments).model_)

# %%
# And the habits of the site, *billing_code* and *troponin*, were refused, although nobody saw them
# side by side:

refused = together.trace_.to_frame("rejected")
refused[["step", "rule", "utility", "reason"]].head(3)

# %%
# What left a hospital
# --------------------
# The whole record of the first one:

sent = pd.DataFrame(sites[0].sent)
n_rows = (data.environments == NAMES[0]).sum()
print(f"{sent['numbers'].sum()} numbers in all, of {n_rows:,} rows")
sent

# %%
# Counts are not nothing. This is what anyone can draw who has the first answer of the first
# hospital: the ages of its patients, and what became of them. (Of each column by itself: which
# values go together in a patient does not leave, beyond the rules.)

cube = sites[0].site.count_cube([], block=0)  # (column, bin, label, hospital)
counts = cube[0, :, :, 0]  # of age, at this hospital
between = [f"{low + 1} - {low + 5}" for low in range(20, 90, 5)]
labels = ["up to 20", *between, "over 90"]
fig, ax = plt.subplots(figsize=(7, 3), layout="constrained")
ax.bar(labels, counts[:, 0], label="did not deteriorate")
ax.bar(labels, counts[:, 1], bottom=counts[:, 0], label="deteriorated")
ax.set(xlabel="age", ylabel="patients", title=NAMES[0])
ax.tick_params(axis="x", rotation=60)
ax.legend()
plt.show()

# %%
# Cells with few patients are the ones to mind: a count of 1 says of one patient the bin of a
# column, the outcome and the hospital. What helps, and leaves the model exact, is fewer and wider
# bins, agreed beforehand; :doc:`/sites` lists what else does, and why rounding or hiding small
# cells is not offered.
#
# Use it
# ------
# The model is an ordinary one. Every hospital gets the same file, and predicts at home:

at_home = data.environments == NAMES[2]
home = together.score(data.X[at_home], data.y[at_home])
new = together.score(data.X_new, data.y_new)
print(f"right for {home:.1%} at {NAMES[2]}")
print(f"right for {new:.1%} at a hospital that took no part")

# %%
# What it does and does not say is as for pooled rows: the rate of the outcome under this rule did
# not depend on the hospital, as far as these counts can tell. Agreed thresholds are also a limit: a
# cut that nobody thought of cannot be found.
