"""Draw the figure of the front page: a model with and without its shortcuts, at two places.

python docs/write_front.py            or  make screens
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("svg")
import matplotlib.pyplot as plt
import numpy as np
from sklearn.compose import make_column_selector, make_column_transformer
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.metrics import roc_auc_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder

from icscm import InvariantFeatureSelector
from icscm.datasets import make_hospitals

PATH = Path(__file__).parent / "figures" / "front.svg"
COLORS = "#5b6770", "#2a7f62"


def measure() -> dict[str, list[float]]:
    """AUC at the training hospitals (rows not used for the fit) and at a new one."""
    known = make_hospitals(20_000, random_state=1)
    later = make_hospitals(20_000, random_state=2)  # other patients of the same hospitals
    model = make_pipeline(
        make_column_transformer(
            (OneHotEncoder(sparse_output=False), make_column_selector(dtype_exclude="number")),
            remainder="passthrough",
        ),
        HistGradientBoostingClassifier(random_state=0),
    )
    screen = InvariantFeatureSelector(model, cv=3, random_state=0)
    screen.fit(known.X, known.y, environments=known.environments)
    plain = model.fit(known.X, known.y)
    tests = (later.X, later.y), (known.X_new, known.y_new)

    def measure_aucs(fitted: Any) -> list[float]:
        return [float(roc_auc_score(y, fitted.predict_proba(X)[:, 1])) for X, y in tests]

    return {"all columns": measure_aucs(plain), "shortcuts rejected": measure_aucs(screen)}


def draw(aucs: dict[str, list[float]], path: Path) -> None:
    """Draw two pairs of bars: of each model, at both kinds of hospitals."""
    plt.rcParams.update({"svg.hashsalt": "icscm", "svg.fonttype": "none", "font.size": 12})
    fig, ax = plt.subplots(figsize=(6.4, 3.4), layout="constrained")
    shifts = (-0.2, 0.2)
    for (name, values), shift, color in zip(aucs.items(), shifts, COLORS, strict=True):
        bars = ax.bar(np.arange(2) + shift, values, width=0.36, label=name, color=color)
        ax.bar_label(bars, [f"{value:.2f}" for value in values], padding=2)
    ax.axhline(0.5, color="0.4", linewidth=1, linestyle=":")
    ax.text(1.62, 0.51, "chance", ha="right", va="bottom", color="0.4", fontsize=10)
    ax.set_xticks([0, 1], labels=["the five training hospitals", "a new hospital"])
    ax.set(ylabel="AUC", ylim=(0, 1.12), xlim=(-0.62, 1.62))
    ax.spines[["top", "right"]].set_visible(False)
    ax.set_title("The same gradient boosting, with and without its shortcuts", fontsize=12)
    fig.legend(ncols=2, loc="outside lower center", frameon=False)
    fig.savefig(path, metadata={"Date": None})
    plt.close(fig)


if __name__ == "__main__":
    draw(measure(), PATH)
