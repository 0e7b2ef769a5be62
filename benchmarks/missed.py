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
from typing import NamedTuple

import numpy as np
import pandas as pd
from scipy.special import expit

sys.path.insert(0, str(Path(__file__).parent.parent))  # for paper

from icscm import InvariantFeatureSelector, InvariantTreeClassifier
from icscm.datasets import load_heart_by_hospital
from icscm.exceptions import IcscmWarning
from paper.shortcuts import plant

N_ROWS = 3_000
N_SITES = 5
# Agreement of a shortcut with the label at the first site.
STRONG = 0.97


class Kind(NamedTuple):
    """Agreement at the last site, and the error rate of copies; None: each is drawn separately."""

    last_agreement: float
    copy_error: float | None


KINDS = {
    "copies, 20 % wrong": Kind(0.55, 0.2),
    "copies, 40 % wrong": Kind(0.55, 0.4),
    "drawn separately, to 55 %": Kind(0.55, None),
    "drawn separately, to 75 %": Kind(0.75, None),
}
NUMBERS = (2, 10, 60)
PLANTED = ("one", "two", "category")


class Simulated(NamedTuple):
    X: pd.DataFrame
    y: np.ndarray
    site: np.ndarray


def simulate(kind: Kind, n_shortcuts: int) -> Simulated:
    """Two causes, two columns of noise, and shortcuts that fade from site to site."""
    rng = np.random.default_rng(0)
    site = np.arange(N_ROWS) % N_SITES
    values = rng.normal(size=(N_ROWS, 4))
    y = (rng.random(N_ROWS) < expit(1.2 * values[:, 0] + values[:, 1])).astype(int)
    agreement = np.linspace(STRONG, kind.last_agreement, N_SITES)[site]

    def draw_shortcut() -> np.ndarray:
        agrees = rng.random(N_ROWS) < agreement
        return np.where(agrees, y, 1 - y)

    X = pd.DataFrame(values, columns=list("abcd"))
    original = draw_shortcut()
    for number in range(n_shortcuts):
        is_wrong = rng.random(N_ROWS) < (kind.copy_error or 0.0)
        if kind.copy_error is None:
            X[f"s{number}"] = draw_shortcut()
        else:
            X[f"s{number}"] = np.where(is_wrong, 1 - original, original)
    return Simulated(X, y, site)


def print_simulated() -> None:
    print("| shortcuts | columns | rejected by the tree | used | rejected by the screen |")
    print("|---|---|---|---|---|")
    for name, kind in KINDS.items():
        for n_shortcuts in NUMBERS:
            X, y, site = simulate(kind, n_shortcuts)
            tree = InvariantTreeClassifier(n_jobs=-1).fit(X, y, environments=site)
            rejected = {rejection.rule.column for rejection in tree.trace_.rejected_columns}
            used = [column for column in tree.features_used_ if column.startswith("s")]
            screen = InvariantFeatureSelector(random_state=0, n_jobs=-1)
            screen.fit(X, y, environments=site)
            screened = sum(column.startswith("s") for column in screen.rejected_)
            print(
                f"| {name} | {n_shortcuts} | {len(rejected)} | {len(used)} | {screened} |",
                flush=True,
            )


def print_heart(folder: Path) -> None:
    """The accuracy at each hospital left out, and whether the planted column was used."""
    data = load_heart_by_hospital(folder)
    n_columns = 2 + len(PLANTED)
    print(f"\n| hospital left out | clean | {' | '.join(PLANTED)} |\n{'|---' * n_columns}|")
    for out in np.unique(data.environments):
        is_in = data.environments != out
        cells = []
        for kind in ("clean", *PLANTED):
            X = plant(data.X, data.y, data.environments, out, kind, 0)
            tree = InvariantTreeClassifier(n_jobs=-1)
            tree.fit(
                X[is_in].reset_index(drop=True),
                data.y[is_in],
                environments=data.environments[is_in],
            )
            accuracy = (tree.predict(X[~is_in]) == data.y[~is_in]).mean()
            uses_planted = any(column not in data.X for column in tree.features_used_)
            cells.append(f"{accuracy:.2f}{' (used)' if uses_planted else ''}")
        print(f"| {out} | {' | '.join(cells)} |", flush=True)


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
