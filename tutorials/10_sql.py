"""
Deploying a rule in SQL, and monitoring it
==========================================

A rule can be run where the data are: in a database, without Python. This page exports a rule to
SQL, runs it in SQLite and in DuckDB, and compares the predictions with those of the model,
including missing values and unknown codes. Then it monitors the rule over three years, in the last
of which a laboratory changes its units. The admissions are simulated.
"""

import json
import sqlite3
import subprocess
import textwrap
from pathlib import Path
from tempfile import TemporaryDirectory

import duckdb
import matplotlib.pyplot as plt
import pandas as pd

import icscm
from icscm import ICSCMClassifier
from icscm.datasets import make_hospitals

folder = TemporaryDirectory()
here = Path(folder.name)


def run(command):
    """The output of a command, run in the temporary folder."""
    words = command.split()
    return subprocess.run(words, capture_output=True, text=True, check=True, cwd=here).stdout


# %%
# The rule
# --------
# The simulated outcome has three causes: age, lactate and emergency admission.

data = make_hospitals(40_000, n_causes=3, random_state=2)
model = ICSCMClassifier().fit(data.X, data.y, environments=data.environments)
model.save(here / "model.json")
print(model.model_)

# %%
# As SQL
# ------
# One ``SELECT``. It adds four columns: the predicted class, the probability of the positive class,
# the rule that determined the prediction, and the columns with a code that training did not have.
# The probability is the smoothed rate of the leaf in training, as two counts. Every condition has a
# branch for missing values, so that the result does not depend on how a database compares with
# NULL. If a value is missing in a column that had none missing in training, the second argument of
# COALESCE is the mean over both branches of a rule.

sql = run("icscm export model.json --to sql --table admissions")
print(sql)

# %%
# In SQLite
# ---------

new = data.X_new
lite = sqlite3.connect(":memory:")
new.to_sql("admissions", lite, index=False)
from_sqlite = pd.read_sql_query(sql, lite)
added = ["prediction", "probability", "decided_by", "unknown_levels"]
from_sqlite[["age", "lactate", "admission", *added]].head(5)

# %%
# In DuckDB
# ---------
# The same SQL, here on the frame; a Parquet file works as well.

duck = duckdb.connect()
duck.register("admissions", new)
from_duckdb = duck.execute(sql).df()

# %%
# Both give the predictions of the model, to the last digit:

for name, found in {"SQLite": from_sqlite, "DuckDB": from_duckdb}.items():
    assert (found["prediction"] == model.predict(new)).all()
    assert (found["probability"] == model.predict_proba(new)[:, 1]).all()
    print(f"{name}: {len(found):,} predictions, all equal")

# %%
# Values that were not in the training data
# -----------------------------------------
# Missing values of lactate were in the training data, and the rule states how they count:
# *(missing: false)*. No age and no admission was missing. A row without one of them gets the mean
# over the leaves that it may belong to, which ``decided_by`` states. A code that training did
# not have is missing, too, and the column ``unknown_levels`` names its column.

odd = {
    "age": [80, 80, 80, None],
    "lactate": [None, 3, 3, 3],
    "admission": ["emergency", "ambulance", None, "emergency"],
}
pd.DataFrame(odd).to_sql("admissions", lite, index=False, if_exists="replace")
pd.read_sql_query(sql, lite)

# %%
# The rows with a missing and with an unknown admission are predicted positive, the others negative.
# ``decided_by`` names the missing columns; ``predict`` in Python also warns:

model.predict(pd.DataFrame(odd))

# %%
# Count such rows in the database, too.
#
# As Python, as JSON
# ------------------
# ``--to python`` writes a module that imports nothing, for a web service or a notebook:

code = run("icscm export model.json --to python")
print(code[code.index("def predict") :])
module = {}
exec(code, module)
print(module["predict"]({"age": 80, "lactate": 3.1, "admission": "emergency"}))

# %%
# ``--to json`` writes the splits and leaves, and how to read them, for any other language.

exported = json.loads(run("icscm export model.json --to json"))
print(textwrap.fill(exported["how_to_read"], 80))
print(json.dumps(exported["splits"][1], indent=2))

# %%
# Monitoring
# ----------
# Each year, once the outcomes are known, evaluate the rule again. Here are three years of new
# admissions; from 2028 on the laboratory reports lactate in mg/dL, which multiplies the values by
# nine, and the database is not changed.

years = []
for year in (2026, 2027, 2028):
    then = make_hospitals(4_000, n_causes=3, random_state=year)
    years.append(then.X.assign(deteriorated=then.y, year=year))
years[-1]["lactate"] = (9 * years[-1]["lactate"]).round()
admissions = pd.concat(years, ignore_index=True)

X = admissions.drop(columns=["deteriorated", "year"])
watched = icscm.evaluate(model, X, admissions["deteriorated"], environments=admissions["year"])
columns = ["environment", "n_samples", "error", "error_baseline", "ppv"]
watched.to_frame()[columns].round(3)

# %%
# In 2028 the error of the rule is that of the majority-class baseline, and half of its positive
# predictions are false. The leaves show where: in the leaf that is predicted positive the rate
# fell. The other leaves are unchanged.

fig, ax = plt.subplots(figsize=(7, 2.6), layout="constrained")
for number, leaf in enumerate(watched.leaves):
    low, high = leaf.new_interval
    ax.plot([low, high], [number, number], color="lightgrey", linewidth=9, zorder=0)
    for colour, check in zip(["C0", "C2", "C1"], leaf.interval_checks, strict=True):
        label = check.environment if number == 0 else None
        ax.scatter(check.n_positive / check.n_samples, number, color=colour, label=label)
        if not check.is_inside:
            print(f"{check.environment}: outside the prediction interval where {leaf.text}")
ax.set_yticks(range(len(watched.leaves)), [leaf.text for leaf in watched.leaves])
ax.invert_yaxis()
ax.set(xlabel="rate of deteriorated; grey: 95 % prediction interval")
ax.legend(loc="upper center", ncols=3)
plt.show()

# %%
# The grey interval is the prediction interval for an environment of the same kind
# (:doc:`/new-environments`), so this check needs no threshold of its own. It does not show why a
# rate changed. The notes of the evaluation do: lactate is far outside its range in training. The
# rule was invariant across hospitals. Neither years nor units were tested.

print(*watched.notes, sep="\n")

# %%
# On the command line it is ``icscm evaluate model.json 2028.csv --target deteriorated --report
# 2028.html``.

lite.close()
duck.close()
folder.cleanup()
