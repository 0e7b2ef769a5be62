"""
Income in six states, from Parquet
==================================

Who earns more than 56,000 dollars a year? The American Community Survey of 2018 has 41,000 working
adults in six small US states. A model learned from some states should hold in the next.

This page goes from a Parquet file of 4,000 of them to a screen, a comparison of learners at states
left out, a points score, a tree and SQL. The data are real (US Census Bureau). The page needs the
person files of the states. ``icscm.datasets.fetch("acs_income", states=["ID", "ME", "NH", "RI",
"VT", "WV"])`` downloads them once, to the folder ``ICSCM_DATA`` if that environment variable is
set, or else to the user's cache.
"""

import subprocess
import tempfile
from pathlib import Path

import pandas as pd

from icscm.datasets import load_income_by_state

# %%
# The file
# --------
# The columns are numbers and codes; codes are categories. In practice such a file comes from a
# database or a colleague.

X, y, state, _ = load_income_by_state()
columns = [
    "AGEP",
    "WKHP",
    "SCHL",
    "COW",
    "MAR",
    "OCCP",
    "RELP",
    "SEX",
    "RAC1P",
    "WKW",
    "HINS1",
    "JWTR",
]
folder = Path(tempfile.mkdtemp())
table = X[columns].assign(state=state, high=y).sample(4_000, random_state=0)
table.to_parquet(folder / "income.parquet")
table.head(3)

# %%
# Check and screen
# ----------------
# The command line reads the file itself. Each command has ``--help``; results go to standard
# output, messages to standard error.


def icscm(command: str) -> None:
    """Run a command of icscm in the folder and print its output."""
    done = subprocess.run(
        ["icscm", *command.split()], cwd=folder, capture_output=True, text=True, check=True
    )
    print(done.stdout)


icscm("check income.parquet --target high --environment state")

# %%
# Rates differ between the states. The screen tests whether the effect of each column differs as
# well:

icscm("screen income.parquet --target high --environment state --out kept.txt")

# %%
# Which learner?
# --------------
# ``compare`` leaves out each state in turn, and also random rows, to separate the loss at a new
# state from the loss on new rows. This page uses three candidates; the default is six.

roles = "--target high --environment state"
candidates = "--candidates boosting,logistic,tree --n-folds 3"
icscm(f"compare income.parquet {roles} {candidates}")

# %%
# A points score
# --------------
# Whole points for the values of a few columns, and the risk of each total at a new state. ``fit``
# validates in states left out, except with ``--no-validation``, as here.

quick = "--no-validation --stability 0"
icscm(f"fit income.parquet {roles} --model score --max-terms 6 {quick} --out score.json")

# %%
# A tree for SQL
# --------------
# ``fit`` prints the performance at states left out first.

icscm(f"fit income.parquet {roles} --model tree --max-leaves 6 --out tree.json")
icscm("export tree.json --to sql --table people --out people.sql")
print((folder / "people.sql").read_text(encoding="utf-8")[:1500])

# %%
# In Python
# ---------
# The same learners accept a frame. ``environments`` may be the name of a column.

from icscm import InvariantTreeClassifier, load

frame = pd.read_parquet(folder / "income.parquet")
label = frame.pop("high")
tree = InvariantTreeClassifier(max_leaves=6).fit(frame, label, environments="state")
assert tree.model_ == load(folder / "tree.json").model
tree.plot()

# %%
# What to report
# --------------
# - The complete table of the comparison: here learners without environments (boosting, logistic
#   regression) have the largest AUC. Income depends on much the same columns in all six states: the
#   screen rejects no column, though of some, such as hours worked, 4,000 rows cannot tell.
# - The states, and that they are six of fifty: small, and alike.
