"""Learners on `make_hospitals`: causes, shortcuts, and errors at training and new hospitals.

    python benchmarks/hospitals.py [SEEDS]

Prints a table: how often a model uses exactly the causes, how often a shortcut; errors and areas
under the curve on the rows learned from and at the new hospital, means over the seeds.
"""

from __future__ import annotations

import sys
import warnings

import pandas as pd
from sklearn.metrics import roc_auc_score

from icscm import ICSCMClassifier, InvariantTreeClassifier, SCMClassifier
from icscm.datasets import make_hospitals

SIZES = (1_000, 5_000, 10_000, 20_000)
LEARNERS = {
    "SCM": SCMClassifier(n_jobs=-1),
    "plain tree": InvariantTreeClassifier(tolerance=None, n_jobs=-1),
    "ICSCM": ICSCMClassifier(n_jobs=-1),
    "ICSCM, exhaustive": ICSCMClassifier(search="exhaustive", alpha="auto", n_jobs=-1),
    "invariant tree": InvariantTreeClassifier(n_jobs=-1),
}


def measure(n_rows: int, seed: int) -> list[dict[str, object]]:
    """A row for each learner."""
    data = make_hospitals(n_rows, random_state=seed)
    tests = {"home": (data.X, data.y), "new": (data.X_new, data.y_new)}
    rows = []
    for name, learner in LEARNERS.items():
        learner.fit(data.X, data.y, environments=data.environments)
        used_columns = set(learner.features_used_)
        row = {
            "rows": n_rows,
            "learner": name,
            "exactly the causes": used_columns == set(data.parents),
            "a shortcut": bool(used_columns & set(data.shortcuts)),
        }
        for hospital, (X, y) in tests.items():
            row[f"error, {hospital}"] = 1 - learner.score(X, y)
            row[f"AUC, {hospital}"] = roc_auc_score(y, learner.predict_proba(X)[:, 1])
        rows.append(row)
    return rows


if __name__ == "__main__":
    warnings.simplefilter("ignore")  # of contrary leaves, and of what was not found
    n_seeds = int(sys.argv[1]) if len(sys.argv) > 1 else 100
    rows = [row for n_rows in SIZES for seed in range(n_seeds) for row in measure(n_rows, seed)]
    table = pd.DataFrame(rows).groupby(["rows", "learner"], sort=False).mean()
    print(table.round(3).to_string())
