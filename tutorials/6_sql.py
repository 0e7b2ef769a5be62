"""
Deploying a rule in SQL, and watching it
========================================

A rule that was learned is to run where the data are: in a database, without Python. This page
exports it to SQL, runs it in SQLite and in DuckDB, and holds the predictions against those of the
model, missing values and unknown codes included. Then it watches the rule over the years, until a
laboratory changes its units. The admissions are simulated.
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
    """What a command prints that is run in the temporary folder."""
    words = command.split()
    return subprocess.run(words, capture_output=True, text=True, check=True, cwd=here).stdout


# %%
# The rule
# --------
# Three causes this time: age, lactate, and that the admission is an emergency.

data = make_hospitals(40_000, n_causes=3, random_state=2)
model = ICSCMClassifier().fit(data.X, data.y, environments=data.environments)
model.save(here / "model.json")
print(model.model_)

# %%
# As SQL
# ------
# One ``SELECT``. It adds three columns: the class, the probability of the positive one, and which
# rule decided. The probability is that of the leaf in training, as two counts. For what is missing
# there is a branch in every condition; nothing is left to how a database compares with NULL.

sql = run("icscm export model.json --to sql --table admissions")
print(sql)

# %%
# In SQLite
# ---------

new = data.X_new
lite = sqlite3.connect(":memory:")
new.to_sql("admissions", lite, index=False)
from_sqlite = pd.read_sql_query(sql, lite)
added = ["prediction", "probability", "decided_by"]
from_sqlite[["age", "lactate", "admission", *added]].head(5)

# %%
# In DuckDB
# ---------
# The same text, here on the frame itself; it could be a Parquet file.

duck = duckdb.connect()
duck.register("admissions", new)
from_duckdb = duck.execute(sql).df()

# %%
# Both predict what the model does, to the last digit:

for name, found in {"SQLite": from_sqlite, "DuckDB": from_duckdb}.items():
    assert (found["prediction"] == model.predict(new)).all()
    assert (found["probability"] == model.predict_proba(new)[:, 1]).all()
    print(f"{name}: {len(found):,} predictions, all equal")

# %%
# What the model never saw
# ------------------------
# A lactate that was not measured was in the training data, and the rule says what it means:
# *(missing: false)*. A missing age was not; then the rule is false. A code that was never seen
# equals none of the codes in the rules.

odd = {
    "age": [80, 80, 80, None],
    "lactate": [None, 3, 3, 3],
    "admission": ["emergency", "ambulance", None, "emergency"],
}
pd.DataFrame(odd).to_sql("admissions", lite, index=False, if_exists="replace")
pd.read_sql_query(sql, lite)

# %%
# All four are called negative, although the last three may well be at high risk: the rule does not
# know. SQL says nothing of it, where ``predict`` in Python would warn:

model.predict(pd.DataFrame(odd))

# %%
# So count such rows in the database, too, and before they are many.
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
# ``--to json`` writes the conditions in order, and how to read them, for any other language.

exported = json.loads(run("icscm export model.json --to json"))
print(textwrap.fill(exported["how_to_read"], 80))
print(json.dumps(exported["conditions"][1], indent=2))

# %%
# Watch it
# --------
# Each year, once the outcomes are known, ask whether the rule still does what it did. Three years
# of new admissions; from 2028 on the laboratory reports lactate in mg/dL, nine times the number,
# and nobody told the database.

years = []
for year in (2026, 2027, 2028):
    then = make_hospitals(4_000, n_causes=3, random_state=year)
    years.append(then.X.assign(deteriorated=then.y, year=year))
years[-1]["lactate"] = (9 * years[-1]["lactate"]).round()
admissions = pd.concat(years, ignore_index=True)

X = admissions.drop(columns=["deteriorated", "year"])
watched = icscm.evaluate(model, X, admissions["deteriorated"], admissions["year"])
columns = ["environment", "n_samples", "error", "error_baseline", "ppv"]
watched.to_frame()[columns].round(3)

# %%
# In 2028 the rule is wrong as often as always saying no, and half of its alarms are false. Leaf by
# leaf one sees where: of those whom all rules call positive, fewer are. The other leaves are as
# they were.

fig, ax = plt.subplots(figsize=(7, 2.6), layout="constrained")
for number, leaf in enumerate(watched.leaves):
    low, high = leaf.new_interval
    ax.plot([low, high], [number, number], color="lightgrey", linewidth=9, zorder=0)
    for colour, told in zip(["C0", "C2", "C1"], leaf.promises, strict=True):
        label = told.environment if number == 0 else None
        ax.scatter(told.n_positive / told.n_samples, number, color=colour, label=label)
        if not told.is_inside:
            print(f"{told.environment}: not as expected where {leaf.text}")
ax.set_yticks(range(len(watched.leaves)), [leaf.text for leaf in watched.leaves])
ax.invert_yaxis()
ax.set(xlabel="rate of deteriorated; grey: where 95 % were to be expected")
ax.legend(loc="upper center", ncols=3)
plt.show()

# %%
# The grey interval is what the model promised for an environment of the same kind
# (:doc:`/new-environments`), so this is a check that needs no threshold of your own. That a rate
# moved does not say why; that nearly every lactate of 2028 is a large one is found by looking. The
# rule was invariant across hospitals. Nothing was tested about years, or about units.
#
# On the command line it is ``icscm evaluate model.json 2028.csv --target deteriorated --report
# 2028.html``.

lite.close()
duck.close()
folder.cleanup()
