"""Shortcuts that are not rejected: redundant simulated ones, and planted ones in heart disease.

    python benchmarks/missed.py               simulated, for a tree and for the screen
    python benchmarks/missed.py --data DIR    and heart disease by hospital, for a tree

Tables are printed as they stand in docs/screen.md and docs/theory.md.
"""

from __future__ import annotations

import argparse
import sys
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
from scipy.special import expit

sys.path.insert(0, str(Path(__file__).parent.parent))  # for paper

from icscm import InvariantFeatureSelector, InvariantTreeClassifier
from icscm.datasets import load_heart_by_hospital
from icscm.exceptions import IcscmWarning
from paper.shortcuts import plant

N_ROWS, N_SITES = 3_000, 5
# Agreement of a shortcut with the label at the first site.
STRONG = 0.97
# Agreement at the last site, and the error rate of copies; None: each is drawn separately.
KINDS = {
    "copies, 20 % wrong": (0.55, 0.2),
    "copies, 40 % wrong": (0.55, 0.4),
    "drawn separately, to 55 %": (0.55, None),
    "drawn separately, to 75 %": (0.75, None),
}
NUMBERS = (2, 10, 60)
MOST_SCREENED = 10  # columns; a round of the screen takes ten fits
PLANTED = ("one", "two", "category")


def simulate(kind: str, n_columns: int) -> tuple[pd.DataFrame, np.ndarray, np.ndarray]:
    """Two causes, two columns of noise, and shortcuts that fade from site to site."""
    rng = np.random.default_rng(0)
    site, X = np.arange(N_ROWS) % N_SITES, rng.normal(size=(N_ROWS, 4))
    y = (rng.random(N_ROWS) < expit(1.2 * X[:, 0] + X[:, 1])).astype(int)
    frame, (last, wrong) = pd.DataFrame(X, columns=list("abcd")), KINDS[kind]
    fading = np.linspace(STRONG, last, N_SITES)[site]

    def draw() -> np.ndarray:
        return np.where(rng.random(N_ROWS) < fading, y, 1 - y)

    one = draw()
    for k in range(n_columns):
        is_wrong = rng.random(N_ROWS) < (wrong or 0.0)
        frame[f"s{k}"] = draw() if wrong is None else np.where(is_wrong, 1 - one, one)
    return frame, y, site


def print_simulated() -> None:
    print("| shortcuts | columns | rejected by the tree | used | rejected by the screen |")
    print("|---|---|---|---|---|")
    for kind in KINDS:
        for n in NUMBERS:
            X, y, site = simulate(kind, n)
            tree = InvariantTreeClassifier(n_jobs=-1).fit(X, y, environments=site)
            rejected = {each.rule.column for each in tree.trace_.rejected_columns}
            used = [name for name in tree.features_used_ if name.startswith("s")]
            shown = "-"
            if n <= MOST_SCREENED:
                screen = InvariantFeatureSelector(cv=3, random_state=0, n_jobs=-1).fit(
                    X, y, environments=site
                )
                shown = sum(name.startswith("s") for name in screen.rejected_)
            print(f"| {kind} | {n} | {len(rejected)} | {len(used)} | {shown} |", flush=True)


def print_heart(folder: Path) -> None:
    data = load_heart_by_hospital(folder)
    print(
        f"\n| hospital left out | clean | {' | '.join(PLANTED)} |\n{'|---' * (2 + len(PLANTED))}|"
    )
    for out in np.unique(data.environments):
        shown = []
        for kind in ("clean", *PLANTED):
            X, is_in = plant(*data[:3], out, kind, 0), data.environments != out
            own = X[is_in].reset_index(drop=True), data.y[is_in], data.environments[is_in]
            tree = InvariantTreeClassifier(n_jobs=-1).fit(*own[:2], environments=own[2])
            right = (tree.predict(X[~is_in]) == data.y[~is_in]).mean()
            used = [name for name in tree.features_used_ if name not in data.X]
            shown.append(f"{right:.2f}{' (used)' if used else ''}")
        print(f"| {out} | {' | '.join(shown)} |", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, help="folder of the raw files of heart disease")
    folder = parser.parse_args().data
    warnings.simplefilter("ignore", IcscmWarning)
    print_simulated()
    if folder is not None:
        print_heart(folder)


if __name__ == "__main__":
    main()
