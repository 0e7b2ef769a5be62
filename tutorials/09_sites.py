"""
Federated learning
==================

Three hospitals want a rule that holds in all of them, but may not share patients' data. The learner
needs only counts: rules are sent to the hospitals, counts are sent back, and the model is equal to
that of the pooled rows.

This page simulates this, records everything that leaves a hospital, and shows what that discloses.
:doc:`/sites` has the details.
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
# The agreement
# -------------
# Thresholds are not chosen from the data, since no site has all of them. The hospitals agree on
# thresholds that are meaningful to them, on the codes that a column may hold, and on which values
# may be missing.

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
# A ``LocalSite`` stays where the rows are. Here all three are in one process; in production the
# four methods below use a connection, such as a web service or an exchange of files. This class
# forwards each call and records how many numbers the answer has.


class Recorded(Site):
    """A site, and a record of what left it."""

    def __init__(self, rows):
        self.site = LocalSite(
            data.X[rows], data.y[rows], environments=data.environments[rows], agreement=agreement
        )
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
        self.record("whether rules cover the same rows", answer)
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
# It is the model of the pooled rows, which are available in a simulation. With the agreed
# thresholds all counts are equal; a plain ``fit`` chooses its own thresholds, and finds the same
# rule here.

pooled = LocalSite(data.X, data.y, environments=data.environments, agreement=agreement)
in_one_place = ICSCMClassifier().fit_counts(open_sites([pooled], agreement))
assert in_one_place.model_ == together.model_
assert in_one_place.trace_ == together.trace_
print(ICSCMClassifier().fit(data.X, data.y, environments=data.environments).model_)

# %%
# The shortcuts, *billing_code* and *troponin*, were rejected, although no process had the rows of
# all hospitals:

rejected = together.trace_.to_frame("rejected")
rejected[["step", "rule", "utility", "reason"]].head(3)

# %%
# What left a hospital
# --------------------
# The complete record of the first hospital:

sent = pd.DataFrame(sites[0].sent)
n_rows = (data.environments == NAMES[0]).sum()
print(f"{sent['numbers'].sum()} numbers in all, of {n_rows:,} rows")
sent

# %%
# Counts disclose information. The first answer of the first hospital is sufficient to draw this
# figure: the ages of its patients by outcome. (Each column is counted separately: the joint values
# of a patient are not disclosed, except for the rules.)

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
# Cells with few patients are sensitive: a count of 1 discloses the bin of a column, the outcome and
# the hospital of one patient. Fewer and wider bins, agreed beforehand, reduce this and leave the
# model exact; :doc:`/sites` lists other measures, and why rounding or hiding small cells is not
# offered.
#
# Use the model
# -------------
# The model is an ordinary one. Every hospital gets the same file, and predicts for its own
# patients:

is_third = data.environments == NAMES[2]
third = together.score(data.X[is_third], data.y[is_third])
new = together.score(data.X_new, data.y_new)
print(f"accuracy {third:.1%} at {NAMES[2]}")
print(f"accuracy {new:.1%} at a hospital that took no part")

# %%
# The result means the same as for pooled rows: no dependence of the outcome's rate on the hospital
# was found under this rule, with the power that the verdicts state. Agreed thresholds are also a
# limit: a threshold that was not agreed on cannot be found.
