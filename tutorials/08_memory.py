"""
Data that do not fit in memory
==============================

A folder of Parquet files is larger than the memory of the machine. This page learns from it in
passes, within a memory limit, measures the memory used, and shows that the model equals that of a
fit in memory. Then it does the same with Dask, for data that lie on a cluster.

The folder here is small, so that the page can be built anywhere: 300,000 simulated admissions. The
steps are the same for larger ones; :doc:`/scaling` has measurements from 8 GB on one disk to 114 GB
on a graphics card.
"""

import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory

import dask.dataframe as dd
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import psutil
from distributed import Client

from icscm import ICSCMClassifier
from icscm.datasets import make_hospitals

# %%
# The folder
# ----------
# There is one file per year. Each admission has the heart rate in every hour of the first day. No
# row is a real patient.

temporary = TemporaryDirectory()
here = Path(temporary.name)
folder = here / "admissions"
folder.mkdir()
for year in range(2022, 2025):
    data = make_hospitals(100_000, random_state=year)
    rates = np.random.default_rng(year).normal(80, 12, (100_000, 24)).round()
    hourly = pd.DataFrame(rates, columns=[f"heart_rate_{hour:02}h" for hour in range(24)])
    table = data.X.join(hourly).assign(deteriorated=data.y, hospital=data.environments)
    table.to_parquet(folder / f"{year}.parquet", index=False, row_group_size=20_000)
megabytes = 3 * table.memory_usage(deep=True).sum() / 1e6
n_rows, n_columns = table.shape
print(f"3 files of {n_rows:,} x {n_columns}, {megabytes:.0f} MB once in memory")

# %%
# Learn in passes
# ---------------
# ``fit_dataset`` reads the files twice, in pieces: first to survey the columns, then to write one
# byte per cell to a temporary file, which the search reads. ``max_memory`` bounds the memory of the
# whole process.

model = ICSCMClassifier().fit_dataset(
    folder, target="deteriorated", environments="hospital", max_memory="2GiB"
)
print(model.model_)
model.trace_

# %%
# The same table in memory gives the same model, and the same trace: every candidate, rejected or
# chosen, with the same counts. Thresholds are equal, too: they are quantiles of a sample that
# depends on the rows alone, not on their storage.

table = pd.read_parquet(folder)
X = table.drop(columns=["deteriorated", "hospital"])
y, hospital = table["deteriorated"], table["hospital"]
in_memory = ICSCMClassifier().fit(X, y, environments=hospital)
assert in_memory.model_ == model.model_
assert in_memory.trace_ == model.trace_
print("equal")

# %%
# Memory
# ------
# Both fits are repeated in separate processes, whose memory is measured: first in passes, within
# 700 MB, then with the whole table in memory. On the command line the first is ``icscm fit
# admissions --target deteriorated --environment hospital --max-memory 700MB``.

PROGRAM = """
import time, pandas
from icscm import ICSCMClassifier
learner = ICSCMClassifier()
print(time.time())
learner.fit_dataset("admissions", "deteriorated", environments="hospital", max_memory="700MB")
print(time.time())
table = pandas.read_parquet("admissions")
X = table.drop(columns=["deteriorated", "hospital"])
learner.fit(X, table["deteriorated"], environments=table["hospital"])
"""
process = subprocess.Popen(
    [sys.executable, "-c", PROGRAM], cwd=here, stdout=subprocess.PIPE, text=True
)
seen = []
while process.poll() is None:
    with suppress(psutil.Error):  # it may have ended by now
        held = psutil.Process(process.pid).memory_info().rss
        seen.append((time.time(), held / 1e6))
    time.sleep(0.02)
in_passes, as_a_whole = map(float, process.communicate()[0].split())

seconds, held = np.array(seen).T
fig, ax = plt.subplots(figsize=(7, 3), layout="constrained")
for name, start, end in [
    ("Python and libraries", 0, in_passes),
    ("in passes, within 700 MB", in_passes, as_a_whole),
    ("read, then fit", as_a_whole, np.inf),
]:
    then = (seconds >= start) & (seconds < end)
    label = f"{name}: at most {held[then].max():.0f} MB"
    ax.plot(seconds[then] - seconds[0], held[then], label=label)
ax.axhline(700, color="grey", linestyle=":")
ax.set(xlabel="seconds", ylabel="memory of the process, MB", ylim=(0, None))
ax.legend()
plt.show()

# %%
# In passes the process stays below the limit. (A large part of its memory holds libraries and
# compiled kernels.) Each further row takes some 16 bytes; in memory, a row takes more than the size
# of its values.
#
# On a cluster
# ------------
# ``fit`` also takes Dask collections. Each partition is counted on its worker, and only counts are
# sent. Here the cluster is two threads of this process; for a real one use
# ``Client("tcp://scheduler:8786")``.

small = {"processes": False, "n_workers": 1, "threads_per_worker": 2}
with Client(**small, dashboard_address=None):
    table = dd.read_parquet(folder)
    X = table.drop(columns=["deteriorated", "hospital"])
    y, hospital = table["deteriorated"], table["hospital"]
    on_dask = ICSCMClassifier().fit(X, y, environments=hospital)
assert on_dask.trace_ == model.trace_
print(on_dask.model_)
temporary.cleanup()

# %%
# Which one to use
# ----------------
# - Data that fit in memory: ``fit``, the fastest.
# - Data that fit on a disk: ``fit_dataset``, or ``icscm fit FOLDER --max-memory``.
# - Data that are already on a cluster: ``fit`` with Dask collections, or ``icscm fit FOLDER
#   --dask``.
# - Many rows and columns, and an NVIDIA card: ``ICSCMClassifier(device="cuda")`` counts there, for
#   tables in memory, in files and packed bits. The model is the same.
#
# :doc:`/scaling` has the costs of each, and their limits.
