"""Small fitted models and studies of every kind, all from simulated tables and fixed seeds.

Each `Case` has a table, the estimator and the options of `icscm fit` that ask for the same.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd

from icscm import (
    ICSCMClassifier,
    InvariantForestClassifier,
    InvariantScoreClassifier,
    InvariantTreeClassifier,
    SCMClassifier,
    stability_selection,
)
from icscm.datasets import make_conjunction, make_hospitals

ALPHAS = (0.001, 0.05, 0.3)
TOLERANCES = (None, 0.03, 0.3)


@dataclass(frozen=True)
class Table:
    """Features, label and, if there are any, environments."""

    X: pd.DataFrame
    y: pd.Series
    environments: pd.Series | None = None

    @cached_property
    def frame(self) -> pd.DataFrame:
        """All of it side by side, as in a file."""
        columns = [self.X.reset_index(drop=True), self.y]
        return pd.concat(
            [*columns, *([] if self.environments is None else [self.environments])], axis=1
        )

    @property
    def samples(self) -> tuple[Any, ...]:
        return self.X, self.y, self.environments


def make_table(
    X: Any, y: Any, environments: Any = None, target: str = "ill", place: str = "site"
) -> Table:
    frame = pd.DataFrame(X).reset_index(drop=True)
    places = None if environments is None else pd.Series(np.asarray(environments), name=place)
    return Table(frame, pd.Series(np.asarray(y), name=target), places)


def simulate(n: int = 700, n_environments: int = 4, seed: int = 1, **options: Any) -> Table:
    """The paper's network, with places that have names and a label that has words."""
    data = make_conjunction(n, 2, n_environments=n_environments, random_state=seed, **options)
    places = np.array([f"p{k + 1}" for k in range(n_environments)])[data.environments]
    return make_table(data.X, np.array(["no", "yes"])[data.y], places)


def make_shifted(n: int = 1_200, n_environments: int = 3) -> Table:
    """Nothing is invariant: the environment acts on the label itself."""
    rng = np.random.default_rng(1)
    X = {"mark": rng.integers(0, 4, n), "x": rng.random(n).round(1)}
    environments = rng.integers(0, n_environments, n)
    y = rng.random(n) < 0.2 + 0.6 / n_environments * environments
    return make_table(X, y.astype(int), environments)


def make_sites(n: int = 2_000, n_sites: int = 4, seed: int = 0, *, shift: float = 0.3) -> Table:
    """Age and dose act alike everywhere, the code works at some sites only; rates differ."""
    rng = np.random.default_rng(seed)
    site, age = rng.integers(0, n_sites, n), rng.integers(20, 90, n)
    age = np.clip(age + 4 * site, 20, 95)
    dose = rng.random(n).round(2)
    odds = -1.0 + shift * site + 1.6 * (age > 60) + 0.9 * (dose > 0.5)
    ill = rng.random(n) < 1 / (1 + np.exp(-odds))
    follows = rng.random(n) < np.linspace(0.9, 0.05, n_sites)[site]
    code = np.where(follows, ill, rng.integers(0, 2, n))
    X = {"age": age, "code": code, "dose": dose}
    return make_table(X, ill, [f"site {k}" for k in site])


def make_many(n: int = 4_000, n_regions: int = 40) -> Table:
    """Forty environments of different sizes; one rule holds in all, one in all but two."""
    rng = np.random.default_rng(5)
    sizes = np.linspace(1, 5, n_regions)
    region = rng.choice(n_regions, n, p=sizes / sizes.sum())
    smoker = rng.random(n) < 0.2 + 0.015 * region
    rest = rng.random(n) < 0.75 - 0.01 * region
    y = np.where(smoker & rest, rng.random(n) < 0.85, rng.random(n) < 0.1)
    strange = np.isin(region, (7, 31))
    mark = np.where(rng.random(n) < np.where(strange, 0.5, 0.03), ~y, y)
    X = {"smoker": smoker.astype(int), "rest": rest.astype(int), "mark": mark.astype(int)}
    X["noise"] = rng.random(n).round(2)
    return make_table(X, y, [f"r{k + 1}" for k in region], place="region")


def make_admissions(n: int = 2_500, seed: int = 3, **options: Any) -> Table:
    """Numbers, categories and missing values, an identifier and a constant."""
    data = make_hospitals(n, n_new_rows=10, random_state=seed, **options)
    X = data.X.assign(number=[f"n{i}" for i in range(n)], country="here")
    return make_table(X, data.y, data.environments, "worse", "hospital")


def make_rare() -> Table:
    """A label so rare that rules with many false alarms are worth less than none."""
    rng = np.random.default_rng(4)
    n = 2_000
    site, risk = rng.integers(0, 3, n), rng.random(n).round(2)
    y = rng.random(n) < np.where(risk > 0.7, 0.3, 0.03)
    X = {"risk": risk, "noise": rng.random(n).round(1)}
    return make_table(X, y, np.array(["a", "b", "c"])[site])


def make_noise(n: int = 900) -> Table:
    """Nothing tells anything of the label."""
    rng = np.random.default_rng(8)
    X = {"u": rng.integers(0, 2, n), "v": rng.random(n).round(1)}
    return make_table(X, rng.integers(0, 2, n), np.array(["a", "b", "c"])[rng.integers(0, 3, n)])


def make_lone() -> Table:
    """A device that one site has, and a test that few have taken."""
    rng = np.random.default_rng(9)
    n = 1_500
    site = rng.integers(0, 3, n)
    device = (site == 1) & (rng.random(n) < 0.7)
    y = np.where(device, rng.random(n) < 0.05, rng.random(n) < 0.7)
    X = {"device": device.astype(int), "noise": rng.integers(0, 3, n)}
    return make_table(X, y, np.array(["a", "b", "c"])[site])


@dataclass(frozen=True)
class Case:
    """A model to be fitted; `asks` are the options of `icscm fit` for the same."""

    estimator: Any
    make: Callable[[], Table]
    asks: str = ""
    follows_path: bool = True
    n_halves: int | None = None

    @property
    def is_forest(self) -> bool:
        return isinstance(self.estimator, InvariantForestClassifier)

    @property
    def is_tree(self) -> bool:
        return isinstance(self.estimator, InvariantTreeClassifier)


PAPER = {"pruning": "always", "min_replication": 0, "min_utility": None}
PAPER_ASKS = "--pruning always --min-replication 0 --min-utility none"

CASES = {
    "conjunction": Case(ICSCMClassifier(), lambda: simulate(1_500, seed=3), n_halves=6),
    "disjunction": Case(
        ICSCMClassifier(model_type="disjunction", stop="coverage"),
        lambda: simulate(1_500, model_type="disjunction", seed=3),
        "--model-type disjunction --stop coverage",
    ),
    "nothing": Case(ICSCMClassifier(), make_shifted),
    "weak": Case(ICSCMClassifier(min_utility=0.0), make_noise, "--min-utility 0", n_halves=4),
    "exhaustive": Case(
        ICSCMClassifier(search="exhaustive", alpha="auto"),
        simulate,
        "--search exhaustive --alpha auto",
    ),
    "exhaustive_best": Case(
        ICSCMClassifier(search="exhaustive", conclusion="best"),
        lambda: simulate(500, 2, seed=2, n_parents=4),
        "--search exhaustive --conclusion best",
    ),
    "exhaustive_rejected": Case(
        ICSCMClassifier(search="exhaustive"), make_sites, "--search exhaustive"
    ),
    "exhaustive_shared": Case(
        ICSCMClassifier(search="exhaustive", alpha=0.01),
        lambda: simulate(60, 2, seed=2),
        "--search exhaustive --alpha 0.01",
    ),
    "pruned": Case(
        ICSCMClassifier(stop="coverage", **PAPER),
        lambda: simulate(900, 3, seed=1, n_parents=3),
        f"--stop coverage {PAPER_ASKS}",
    ),
    "equivalence": Case(
        ICSCMClassifier(criterion="equivalence", margin=0.1),
        lambda: simulate(1_500, 3),
        "--criterion equivalence --margin 0.1",
    ),
    "equivalence_nothing": Case(
        ICSCMClassifier(criterion="equivalence", margin=2.0, margin_on="odds_ratio"),
        lambda: simulate(150, 3),
        "--criterion equivalence --margin 2 --margin-on odds_ratio",
    ),
    "corrected": Case(
        ICSCMClassifier(correction="holm", evidence="cumulative", test="g"),
        lambda: simulate(600, 2, seed=5),
        "--correction holm --evidence cumulative --test g",
    ),
    "missing": Case(ICSCMClassifier(), lambda: make_admissions(3_000, 0)),
    "missing_disjunction": Case(
        ICSCMClassifier(model_type="disjunction", missing="separate", p=0.7, min_utility=0.0),
        lambda: make_admissions(model_type="disjunction", n_causes=3, seed=6),
        "--model-type disjunction --missing separate --p 0.7 --min-utility 0",
    ),
    "many_environments": Case(ICSCMClassifier(), make_many),
    "set_aside": Case(ICSCMClassifier(p=0.3), make_rare, "--p 0.3"),
    "worse": Case(ICSCMClassifier(p="balanced", **PAPER), make_rare, f"--p balanced {PAPER_ASKS}"),
    "one_site": Case(
        ICSCMClassifier(stop="coverage", **PAPER), make_lone, f"--stop coverage {PAPER_ASKS}"
    ),
    "small_or_shifted": Case(
        ICSCMClassifier(min_samples_leaf=400), make_lone, "--min-samples-leaf 400"
    ),
    "lone": Case(ICSCMClassifier(), make_lone),
    "too_small": Case(ICSCMClassifier(min_samples_leaf=700), make_lone, "--min-samples-leaf 700"),
    "not_associated": Case(
        ICSCMClassifier(search="exhaustive", min_samples_leaf=20),
        make_shifted,
        "--search exhaustive --min-samples-leaf 20",
    ),
    "plain": Case(
        SCMClassifier(max_rules=3),
        lambda: drop_environments(simulate()),
        "--model scm --max-rules 3",
    ),
    "plain_judged": Case(
        SCMClassifier(model_type="disjunction", p=2.0),
        make_admissions,
        "--model scm --model-type disjunction --p 2",
    ),
    "effect_tree": Case(InvariantTreeClassifier(), make_sites, "--model tree"),
    "effect_tree_missing": Case(
        InvariantTreeClassifier(max_leaves=6, probabilities="balanced"),
        make_admissions,
        "--model tree --max-leaves 6 --probabilities balanced",
    ),
    "effect_tree_many": Case(
        InvariantTreeClassifier(max_leaves=4, tolerance=0.1),
        make_many,
        "--model tree --max-leaves 4 --tolerance 0.1",
    ),
    "rate_tree": Case(
        InvariantTreeClassifier(invariance="rate"), simulate, "--model tree --invariance rate"
    ),
    "rate_tree_beyond": Case(
        InvariantTreeClassifier(invariance="rate", max_leaves=5),
        make_sites,
        "--model tree --invariance rate --max-leaves 5",
    ),
    "tree_two_environments": Case(
        InvariantTreeClassifier(max_leaves=4),
        lambda: make_sites(n_sites=2),
        "--model tree --max-leaves 4",
    ),
    "tree_plain": Case(
        InvariantTreeClassifier(tolerance=None, max_leaves=5),
        make_sites,
        "--model tree --tolerance none --max-leaves 5",
        follows_path=False,
    ),
    "tree_alone": Case(
        InvariantTreeClassifier(tolerance=None, max_leaves=3),
        lambda: drop_environments(make_sites()),
        "--model tree --tolerance none --max-leaves 3",
        follows_path=False,
    ),
    "tree_nothing": Case(InvariantTreeClassifier(), make_noise, "--model tree"),
    "tree_refused": Case(
        InvariantTreeClassifier(tolerance=0.001),
        lambda: choose_columns(make_sites(), ["code"]),
        "--model tree --tolerance 0.001",
    ),
    "tree_worse": Case(
        InvariantTreeClassifier(max_leaves=3), make_rare, "--model tree --max-leaves 3"
    ),
    "forest": Case(
        InvariantForestClassifier(n_estimators=5, max_leaves=6, max_features=1.0, random_state=0),
        make_sites,
        "--model forest --n-estimators 5 --max-leaves 6 --max-features 1",
        follows_path=False,
    ),
    "score": Case(
        InvariantScoreClassifier(random_state=0, n_jobs=1),
        lambda: make_sites(1_500),
        "--model score --n-jobs 1 --no-validation",
        follows_path=False,
    ),
    "forest_environments": Case(
        InvariantForestClassifier(
            n_estimators=4, max_leaves=4, resample="environments", invariance="rate", random_state=0
        ),
        make_admissions,
        "--model forest --n-estimators 4 --max-leaves 4 --resample environments --invariance rate",
        follows_path=False,
    ),
}


def drop_environments(table: Table) -> Table:
    return Table(table.X, table.y)


def choose_columns(table: Table, columns: list[str]) -> Table:
    return Table(table.X[columns], table.y, table.environments)


def resample(case: Case, table: Table) -> Any:
    """What learning from random halves gives, where the case asks for it."""
    if case.n_halves is None:
        return None
    return stability_selection(
        case.estimator, *table.samples, n_resamples=case.n_halves, random_state=0
    )
