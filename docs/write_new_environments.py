"""Put how often intervals for a new environment hold into docs/new-environments.md.

    python docs/write_new_environments.py [FOLDER]

FOLDER holds the raw data files, by default that of ICSCM_DATA. Everything between the marks is
replaced; no number there is typed by hand. About ten minutes on two cores.
"""

from __future__ import annotations

import re
import sys
import warnings
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from scipy import special
from write_real_data import TABLES

from icscm import ICSCMClassifier, InvariantTreeClassifier, SCMClassifier, evaluate
from icscm.exceptions import IcscmWarning
from icscm.stats.new_environments import make_expectations

PAGE = Path(__file__).parent / "new-environments.md"
N_LEAVES = 400
RATES, TAUS = (0.02, 0.1, 0.5), (0.0, 0.1, 0.3, 0.6, 1.0)
SIZES = {
    "200 each": lambda n: np.full(n, 200),
    "1,000 each": lambda n: np.full(n, 1_000),
    "20 to 5,000": lambda n: np.round(np.geomspace(20, 5_000, n)).astype(int),
}
LEARNERS = {
    "ICSCM": lambda: ICSCMClassifier(p="balanced"),
    "SCM": lambda: SCMClassifier(p="balanced", max_rules=5),
    "invariant tree": InvariantTreeClassifier,
}


def simulate(n_environments: int, sizes: Any, rate: float, tau: float) -> tuple[float, float]:
    """How often the rate of a new environment is inside, and how often tau is."""
    rng = np.random.default_rng([n_environments, int(sizes[0]), int(1000 * rate), int(10 * tau)])
    mu = special.logit(rate)
    theta = mu + tau * rng.standard_normal((N_LEAVES, n_environments))
    positives = rng.binomial(sizes, special.expit(theta))
    found = make_expectations(np.stack((sizes - positives, positives), axis=1))
    ends = special.logit(np.array([each.interval for each in found])) - mu
    if tau:  # exactly, given each interval
        inside = np.diff(special.ndtr(ends / tau), axis=1).mean()
    else:
        inside = ((ends[:, 0] <= 0) & (ends[:, 1] >= 0)).mean()
    intervals = np.array([each.tau_interval for each in found])
    return float(inside), float(((intervals[:, 0] <= tau) & (tau <= intervals[:, 1])).mean())


def write_coverage() -> Iterator[str]:
    """The table of the simulation, and in short."""
    yield "| environments | samples | rate | " + " | ".join(f"tau {t:g}" for t in TAUS) + " |"
    yield "|---:|---|---:|" + "---:|" * len(TAUS)
    covered, of_tau = [], []
    for n in (5, 10, 30):
        for name, make_sizes in SIZES.items():
            for rate in RATES:
                cells = [simulate(n, make_sizes(n), rate, tau) for tau in TAUS]
                covered += [inside for (inside, _), tau in zip(cells, TAUS, strict=True) if tau]
                of_tau += [inside for _, inside in cells]
                shown = " | ".join(f"{100 * inside:.1f}" for inside, _ in cells)
                yield f"| {n} | {name} | {rate:g} | {shown} |"
    within = np.mean([0.93 <= each <= 0.97 for each in covered])
    yield ""
    yield (
        f"With tau above 0, {within:.0%} of the cells lie between 93 and 97 %, the lowest at "
        f"{min(covered):.1%}; the others are above. The interval of tau holds it in "
        f"{min(of_tau):.1%} to {max(of_tau):.1%}, {np.mean(of_tau):.1%} on average."
    )


def leave_out(learner: Any, X: Any, y: Any, environments: Any) -> Iterator[tuple[int, bool]]:
    """For each environment and leaf its samples, and whether the interval held."""
    for label in np.unique(environments):
        is_out = environments == label
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", IcscmWarning)
            learner.fit(X[~is_out], y[~is_out], environments=environments[~is_out])
            found = evaluate(learner, X[is_out], y[is_out], environments[is_out])
        for leaf in found.leaves:
            for each in leaf.interval_checks:
                yield each.n_samples, each.is_inside


def regroup(column: str, bounds: Sequence[float] | None = None) -> Callable[..., Any]:
    """ACS income with other environments: the groups of a column, which is then not a feature."""

    def load(folder: str | None) -> Any:
        X, y = TABLES["ACS income by state"](folder)[:2]
        values = X[column].astype(str) if bounds is None else np.digitize(X[column], bounds)
        values = np.asarray(values)
        labels, sizes = np.unique(values, return_counts=True)
        is_large = np.isin(values, labels[sizes >= FEWEST])
        return X[is_large].drop(columns=[column]), np.asarray(y)[is_large], values[is_large]

    return load


def write_real(folder: str | None) -> Iterator[str]:
    """How often rates in leaves of real tables lie in their prediction intervals."""
    yield "| table | environments | models | leaves | inside | leaves of 100 or more | inside |"
    yield "|---|---:|---|---:|---:|---:|---:|"
    n_leaves, n_inside = 0, 0
    for title, load in {**TABLES, **OTHERS}.items():
        X, y, environments = load(folder)[:3]
        environments = np.asarray(environments)
        X = X if hasattr(X, "columns") else np.asarray(X)
        n_environments = len(np.unique(environments))
        found = {
            name: list(leave_out(make(), X, y, environments)) for name, make in LEARNERS.items()
        }
        stumps = []
        for column in X.columns:
            stump = SCMClassifier(p="balanced", max_rules=1, keep_columns="all")
            stumps += leave_out(stump, X[[column]], y, environments)
        found["one rule on each column"] = stumps
        for name, pairs in found.items():
            large = [inside for n, inside in pairs if n >= 100]
            every = [inside for _, inside in pairs]
            cells = f"{len(every)} | {np.mean(every):.1%} | {len(large)} | {np.mean(large):.1%}"
            yield f"| {title} | {n_environments} | {name} | {cells} |"
            if n_environments >= 5:
                n_leaves, n_inside = n_leaves + len(every), n_inside + sum(every)
    yield ""
    inside = f"{n_inside:,} of {n_leaves:,} leaves, {n_inside / n_leaves:.1%}"
    yield f"In tables of five or more environments: {inside}."


# Tables that no choice was made on.
FEWEST = 200
OTHERS = {
    "ACS income by class of worker": regroup("COW"),
    "ACS income by age": regroup("AGEP", (26, 31, 36, 41, 46, 51, 56, 61, 66)),
}


def replace_part(page: str, name: str, lines: Iterator[str]) -> str:
    """The page with what stands between two marks written anew."""
    text = "\n".join(lines)
    marks = rf"(<!-- {name} -->\n).*(<!-- end {name} -->)"
    return re.sub(marks, lambda found: f"{found[1]}{text}\n{found[2]}", page, flags=re.S)


def main(folder: str | None = None) -> None:
    """Replace the tables of the page."""
    page = replace_part(PAGE.read_text(), "simulation", write_coverage())
    PAGE.write_text(replace_part(page, "real", write_real(folder)))


if __name__ == "__main__":
    main(*sys.argv[1:])
