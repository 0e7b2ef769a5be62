"""
A drill: the model at another hospital
======================================

A points score for heart disease is learned at three hospitals and used at a fourth one. There a
column is absent, levels are written otherwise, and a laboratory value has another unit. Nobody
there knows the training data. What do they see, and would they notice in time?

The patients are real, and so are the differences between the hospitals; the three changes are made
here. The page needs the files of ``icscm.datasets.fetch("heart_disease")``, as
:doc:`01_heart_disease` does.
"""

import subprocess
import tempfile
import warnings
from pathlib import Path
from textwrap import fill

import numpy as np
import pandas as pd

from icscm import InvariantScoreClassifier, evaluate
from icscm.datasets import load_heart_by_hospital
from icscm.exceptions import IcscmError

X, y, hospital, _ = load_heart_by_hospital()
is_new = np.asarray(hospital) == "va"
score = InvariantScoreClassifier(random_state=0)
with warnings.catch_warnings(action="ignore"):  # three hospitals are few, as it says
    score.fit(X[~is_new], y[~is_new], environments=hospital[~is_new])
print("columns of the score:", ", ".join(score.features_used_))

# %%
# The table of the fourth hospital as it should be
# ------------------------------------------------
# Its patients get a risk, and nothing is said.

site = X[is_new].reset_index(drop=True)
disease = y[is_new]
risk = score.predict_proba(site)[:, 1]
print(f"mean risk {risk.mean():.2f}, {disease.mean():.2f} have the disease")

# %%
# A column is absent
# ------------------
# The scan ``thal`` is not done there. Where the model needs a column, its absence is an error;
# columns that the model does not use may be absent.

try:
    score.predict(site.drop(columns="thal"))
except IcscmError as error:
    print(fill(str(error), 88))

# %%
# A column that is there but empty is missing in each row, for which a score has points of its own.
# What is lost then is seen in an evaluation.

# %%
# Levels are written otherwise
# ----------------------------
# Chest pain is ``1`` to ``4`` in training. An export from a spreadsheet has ``1.0`` to ``4.0``. No
# rule on a level is true of these rows, so that patients with the pain of highest risk would look
# like the others.

recoded = site.assign(cp=site["cp"].astype(str) + ".0")
try:
    score.predict(recoded)
except IcscmError as error:
    print(fill(str(error), 88))

# %%
# One of five clerks writes words. Where only some rows are affected, a level that training did not
# have is treated as missing, and a warning names it.

words = {"1": "typical", "2": "atypical", "3": "no angina", "4": "asymptomatic"}
codes = site["cp"].astype(str)
is_in_words = np.arange(len(site)) % 5 == 0
some_recoded = site.assign(cp=codes.where(~is_in_words, codes.map(words)))
with warnings.catch_warnings(record=True, action="always") as caught:
    risk_of_some = score.predict_proba(some_recoded)[:, 1]
for warning in caught:
    print(fill(str(warning.message), 88))
print(f"largest change of a risk: {np.abs(risk_of_some - risk).max():.2f}")

# %%
# Another unit
# ------------
# Cholesterol in mmol/l is a 39th of what it is in mg/dl. It is predicted, since no number is
# impossible, and told.

in_mmol = site.assign(chol=site["chol"] / 38.67)
with warnings.catch_warnings(record=True, action="always") as caught:
    score.predict(in_mmol)
for warning in caught:
    print(fill(str(warning.message), 88))

# %%
# An evaluation says the same in its notes, beside what it costs here.

for name, table in {"as it should be": site, "in mmol/l": in_mmol}.items():
    evaluation = evaluate(score, table, disease)
    print(f"{name}: AUC {evaluation.overall.scores['auc'].value:.3f}")
    for note in evaluation.notes:
        print(fill(note, 88, initial_indent="  - ", subsequent_indent="    "))

# %%
# On the command line, and where exports run
# ------------------------------------------
# ``icscm predict`` prints the warnings, and its output has a column with what is unknown in each
# row. So have the exports to SQL, Python and R.

with tempfile.TemporaryDirectory() as folder:
    model = Path(folder, "score.json")
    score.save(model)
    some_recoded.to_csv(Path(folder, "site.csv"), index=False)
    command = [
        "icscm",
        "predict",
        model,
        Path(folder, "site.csv"),
        "--out",
        Path(folder, "out.csv"),
    ]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    print(done.stderr or done.stdout)
    predictions = pd.read_csv(Path(folder, "out.csv"))

predictions.head()

# %%
# Would a person notice in time?
# ------------------------------
# - *Absent column*: yes, nothing is predicted.
# - *All levels written otherwise*: yes, nothing is predicted unless one allows it.
# - *Some levels written otherwise*: whoever reads warnings, or the column of unknown levels.
# - *Another unit*: whoever reads warnings. A unit that leaves most values within the range of
#   training cannot be seen.
