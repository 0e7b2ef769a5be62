"""Simulated tables with fixed seeds, each with a difficulty of its own.

Nothing is imported from the package: both versions must get the same tables, also when the
simulations in `icscm.datasets` change. Words: a row belongs to an *environment* (a hospital, a
year); a *shortcut* is a column that follows the outcome in some environments only.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from typing import Any

import numpy as np
import pandas as pd

# Names of the outcome and of the environment where both are columns of one file.
OUTCOME, ENVIRONMENT, GROUP = "outcome", "place", "patient"


@dataclass(frozen=True)
class Table:
    """Columns, the outcome of each row and, where there are any, environments and the like."""

    columns: pd.DataFrame
    outcome: pd.Series
    environments: pd.Series | None = None
    groups: pd.Series | None = None
    weights: np.ndarray | None = None  # of a survey: only their ratios matter
    repeats: np.ndarray | None = None  # how many rows each row stands for

    @property
    def file(self) -> pd.DataFrame:
        """All of it side by side, as in a file."""
        parts = [self.columns, self.outcome, self.environments, self.groups]
        return pd.concat([part for part in parts if part is not None], axis=1)

    def take(self, rows: np.ndarray) -> Table:
        """Some of the rows, without weights."""
        parts = self.columns, self.outcome, self.environments, self.groups
        kept = [None if part is None else part[rows].reset_index(drop=True) for part in parts]
        return Table(*kept)


def make_table(columns: Any, outcome: Any, environments: Any = None, groups: Any = None) -> Table:
    return Table(
        columns=pd.DataFrame(columns),
        outcome=pd.Series(np.asarray(outcome), name=OUTCOME),
        environments=None if environments is None else name_series(environments, ENVIRONMENT),
        groups=None if groups is None else name_series(groups, GROUP),
    )


def name_series(values: Any, name: str) -> pd.Series:
    return pd.Series(np.asarray(values), name=name)


# --- the paper's network --------------------------------------------------------------------------


def make_network(
    n_rows: int = 600,
    *,
    n_environments: int = 2,
    n_parents: int = 2,
    n_distractors: int = 2,
    is_disjunction: bool = False,
    is_continuous: bool = False,
    seed: int = 1,
) -> Table:
    """Parents A cause the outcome, which with the environment causes C; B is noise.

    `n_rows` are those of each environment. The parents' rates differ between environments.
    """
    rng = np.random.default_rng(seed)
    environments = rng.permutation(np.repeat(np.arange(n_environments), n_rows))
    n = len(environments)

    ends = [(0.1, 0.5), (0.5, 0.3)]
    rates = np.array([np.linspace(*ends[i % 2], n_environments) for i in range(n_parents)])
    rates **= min(1.0, 2.0 / n_parents)
    parents = rng.random((n_parents, n)) < rates[:, environments]

    is_random = rng.random(n) < 0.05
    outcome = np.where(is_random, rng.random(n) < 0.5, parents.all(axis=0))
    if is_disjunction:
        parents, outcome = ~parents, ~outcome
    distractors = rng.random((n_distractors, n)) < 0.5
    mark = rng.random(n) < environments / max(1, n_environments - 1)
    child = np.where(rng.random(n) < 0.05, ~mark, outcome)

    bits = np.vstack((parents, distractors, child))
    names = [f"A{i + 1}" for i in range(n_parents)]
    names += [f"B{i + 1}" for i in range(n_distractors)]
    values = (bits + rng.random(bits.shape)) / 2 if is_continuous else bits.astype(np.uint8)
    frame = pd.DataFrame(values.T, columns=[*names, "C1"])
    return make_table(frame, outcome.astype(int), environments)


def give_words(table: Table) -> Table:
    """The same table with words as outcome and environments."""
    outcome = np.array(["no", "yes"])[table.outcome]
    environments = [f"clinic {code + 1}" for code in table.environments]
    return make_table(table.columns, outcome, environments)


# --- hospitals ------------------------------------------------------------------------------------


def make_admissions(n: int = 2_500, *, seed: int = 1, is_disjunction: bool = False) -> Table:
    """Columns of every common type; age and lactate cause the outcome, two columns are shortcuts.

    A billing code follows the outcome more closely in the first hospitals; troponin was measured in
    patients with the outcome in every other hospital. There is a constant and an identifier.
    """
    rng = np.random.default_rng(seed)
    n_hospitals = 5
    weights = np.geomspace(3, 1, n_hospitals)
    hospital = rng.choice(n_hospitals, n, p=weights / weights.sum())
    age = np.clip(rng.normal(60 + 3.5 * hospital, 15), 18, 99).astype(int)
    lactate = np.exp(rng.normal(np.log(1.8 + 0.1 * ((hospital + 1) % 5)), 0.5)).round(1)
    causes = np.array([age > 65, lactate > 2])
    is_at_risk = causes.any(axis=0) if is_disjunction else causes.all(axis=0)
    outcome = rng.random(n) < np.where(is_at_risk, 0.85, 0.05)

    coding = np.linspace(0.95, 0.45, n_hospitals)[hospital]
    codes = np.array(["A41", "I50", "J18", "N39", "S72"])
    by_outcome = np.where(outcome, "R57", rng.choice(codes, n))
    at_random = rng.choice([*codes, "R57"], n)
    is_ordered_by_outcome = rng.random(n) < 0.95 * (hospital % 2 == 0)
    is_measured = np.where(is_ordered_by_outcome, outcome, rng.random(n) < 0.3)
    missing_share = 0.1 * (1 + (hospital + 3) % 5)
    triage = rng.choice(["green", "yellow", "red"], n, p=[0.5, 0.3, 0.2])

    columns = {
        "age": age,
        "sex": rng.choice(["female", "male"], n),
        "ward": rng.choice([110, 120, 210, 220, 310], n),
        "diabetes": rng.random(n) < 0.1 + 0.05 * hospital,
        "triage": pd.Categorical(triage, ["green", "yellow", "red"], ordered=True),
        "heart_rate": rng.normal(80 + 2 * lactate, 14).astype(int),
        "sodium": np.where(rng.random(n) < missing_share, np.nan, rng.normal(138, 4, n).round()),
        "lactate": np.where((rng.random(n) < missing_share) & (lactate <= 2), np.nan, lactate),
        "troponin": np.where(is_measured, np.exp(rng.normal(3, 1, n)).round(), np.nan),
        "billing_code": np.where(rng.random(n) < coding, by_outcome, at_random),
        "number": [f"n{i}" for i in range(n)],
        "country": "here",
    }
    names = np.array(["Ash", "Birch", "Cedar", "Elm", "Fir"])
    return make_table(columns, outcome.astype(int), names[hospital])


def make_sites(n: int = 1_500, *, n_sites: int = 4, shift: float = 0.3, seed: int = 0) -> Table:
    """Age and dose have the same effect everywhere, the code at some sites only; rates differ."""
    rng = np.random.default_rng(seed)
    site = rng.integers(0, n_sites, n)
    age = np.clip(rng.integers(20, 90, n) + 4 * site, 20, 95)
    dose = rng.random(n).round(2)
    log_odds = -1.0 + shift * site + 1.6 * (age > 60) + 0.9 * (dose > 0.5)
    outcome = rng.random(n) < 1 / (1 + np.exp(-log_odds))
    is_coded = rng.random(n) < np.linspace(0.9, 0.05, n_sites)[site]
    code = np.where(is_coded, outcome, rng.integers(0, 2, n))
    return make_table(
        {"age": age, "code": code, "dose": dose}, outcome, [f"site {k}" for k in site]
    )


def make_cohort(n: int = 1_600, *, seed: int = 2) -> Table:
    """A smooth risk of numbers, booleans and categories, for scores; one column is a shortcut."""
    rng = np.random.default_rng(seed)
    site, age = rng.integers(0, 4, n), rng.integers(20, 90, n)
    smokes, stage = rng.random(n) < 0.3, rng.integers(0, 4, n)
    pressure = rng.normal(130, 18, n).round()
    pressure[rng.random(n) < 0.1] = np.nan
    log_odds = 0.05 * (age - 60) + 0.9 * smokes + 0.6 * stage - 1.5 + 0.2 * site
    outcome = rng.random(n) < 1 / (1 + np.exp(-log_odds))
    follows = rng.random(n) < np.array([0.9, 0.5, 0.1, 0.0])[site]
    mark = np.where(follows, outcome, rng.random(n) < 0.4)
    columns = {
        "age": age,
        "smokes": smokes,
        "stage": np.array(["I", "II", "III", "IV"])[stage],
        "pressure": pressure,
        "mark": mark.astype(int),
    }
    return make_table(columns, outcome.astype(int), np.array(["n", "e", "s", "w"])[site])


def make_numbers(n: int = 900, *, seed: int = 6) -> Table:
    """The same kind of risk of numbers alone, none missing, for any learner of scikit-learn."""
    rng = np.random.default_rng(seed)
    site = rng.integers(0, 4, n)
    X = rng.normal(size=(n, 4)).round(2)
    outcome = rng.random(n) < 1 / (1 + np.exp(-X[:, 0] - X[:, 1] + 0.2 * site))
    sign = np.array([2.0, 1.0, 0.0, -1.0])[site]
    columns = {f"x{j}": X[:, j] for j in range(4)}
    columns["turned"] = (sign * outcome + rng.normal(size=n)).round(2)
    return make_table(columns, outcome.astype(int), site)


def make_regions(n: int = 4_000, n_regions: int = 40) -> Table:
    """Forty environments of different sizes; one rule holds in all, one in all but two."""
    rng = np.random.default_rng(5)
    sizes = np.linspace(1, 5, n_regions)
    region = rng.choice(n_regions, n, p=sizes / sizes.sum())
    smoker = rng.random(n) < 0.2 + 0.015 * region
    rest = rng.random(n) < 0.75 - 0.01 * region
    outcome = np.where(smoker & rest, rng.random(n) < 0.85, rng.random(n) < 0.1)
    is_unlike = np.isin(region, (7, 31))
    mark = np.where(rng.random(n) < np.where(is_unlike, 0.5, 0.03), ~outcome, outcome)
    columns = {
        "smoker": smoker.astype(int),
        "rest": rest.astype(int),
        "mark": mark.astype(int),
        "noise": rng.random(n).round(2),
    }
    return make_table(columns, outcome, [f"r{k + 1}" for k in region])


# --- tables in which little or nothing holds ------------------------------------------------------


def make_shifted(n: int = 1_200) -> Table:
    """Nothing is invariant: the environment acts on the outcome itself."""
    rng = np.random.default_rng(1)
    columns = {"mark": rng.integers(0, 4, n), "x": rng.random(n).round(1)}
    environments = rng.integers(0, 3, n)
    outcome = rng.random(n) < 0.2 + 0.2 * environments
    return make_table(columns, outcome.astype(int), environments)


def make_rare(n: int = 2_000) -> Table:
    """An outcome so rare that rules with many false alarms are worth less than none."""
    rng = np.random.default_rng(4)
    site, risk = rng.integers(0, 3, n), rng.random(n).round(2)
    outcome = rng.random(n) < np.where(risk > 0.7, 0.3, 0.03)
    columns = {"risk": risk, "noise": rng.random(n).round(1)}
    return make_table(columns, outcome, np.array(["a", "b", "c"])[site])


def make_noise(n: int = 900) -> Table:
    rng = np.random.default_rng(8)
    columns = {"u": rng.integers(0, 2, n), "v": rng.random(n).round(1)}
    environments = np.array(["a", "b", "c"])[rng.integers(0, 3, n)]
    return make_table(columns, rng.integers(0, 2, n), environments)


def make_lone(n: int = 1_500) -> Table:
    """A device that one site has: its rule has nothing to be compared with."""
    rng = np.random.default_rng(9)
    site = rng.integers(0, 3, n)
    device = (site == 1) & (rng.random(n) < 0.7)
    outcome = np.where(device, rng.random(n) < 0.05, rng.random(n) < 0.7)
    columns = {"device": device.astype(int), "noise": rng.integers(0, 3, n)}
    return make_table(columns, outcome, np.array(["a", "b", "c"])[site])


def make_lopsided(n: int = 1_500) -> Table:
    """Nearly all information lies in one environment, so that replication cannot be assessed."""
    table = make_sites(n, n_sites=3, seed=7)
    is_first = np.random.default_rng(0).random(n) < 0.97
    environments = table.environments.where(~is_first, "site 0")
    return replace(table, environments=environments)


# --- rows that belong together, columns of every kind ---------------------------------------------


def make_visits(n_patients: int = 300) -> Table:
    """Several visits of each patient, weights of a survey, and how often each row was seen."""
    rng = np.random.default_rng(11)
    n_visits = rng.integers(1, 8, n_patients)
    patient = np.repeat(np.arange(n_patients), n_visits)
    n = len(patient)
    clinic = rng.integers(0, 3, n_patients)[patient]
    tendency = rng.normal(size=n_patients)[patient]
    age = np.clip(rng.normal(55 + 4 * clinic + 8 * tendency, 10), 18, 95).astype(int)
    dose = rng.integers(0, 5, n)
    log_odds = -1.2 + 2.0 * (age > 60) + 1.0 * (dose > 2) + 0.6 * tendency
    outcome = rng.random(n) < 1 / (1 + np.exp(-log_odds))
    follows = rng.random(n) < np.array([0.9, 0.5, 0.1])[clinic]
    code = np.where(follows, outcome, rng.integers(0, 2, n))
    table = make_table(
        {"age": age, "dose": dose, "code": code},
        outcome.astype(int),
        np.array(["north", "south", "west"])[clinic],
        [f"p{k}" for k in patient],
    )
    weights = rng.gamma(2.0, size=n).round(2)
    return replace(table, weights=weights, repeats=rng.integers(1, 4, n))


def make_genomes(n: int = 800, n_genes: int = 120) -> Table:
    """Genes that are present or absent, many identical; groups are lineages."""
    rng = np.random.default_rng(12)
    lineage = rng.integers(0, 25, n)
    country = np.where(rng.random(n) < 0.7, lineage % 3, rng.integers(0, 3, n))
    rates = rng.random((25, n_genes)) ** 2
    genes = rng.random((n, n_genes)) < rates[lineage]
    genes[:, 40:50] = genes[:, [0] * 10]  # ten genes in the same genomes as the first
    genes[:, 50] = ~genes[:, 1]
    genes[:, 51] = True
    genes[:, 52] = False
    outcome = (genes[:, 0] & genes[:, 1]) ^ (rng.random(n) < 0.04)
    genes[:, 60] = np.where(rng.random(n) < np.array([0.9, 0.5, 0.2])[country], outcome, False)
    frame = pd.DataFrame(genes.astype(np.uint8), columns=[f"gene{j:03d}" for j in range(n_genes)])
    countries = np.array(["DK", "FR", "PT"])[country]
    return make_table(frame, outcome.astype(int), countries, [f"st{k}" for k in lineage])


def make_twins() -> Table:
    """Columns that are identical, opposite, or copies of the outcome or the environment."""
    table = make_network(500, n_environments=3, seed=4)
    columns = table.columns
    rng = np.random.default_rng(13)
    level = rng.random(len(columns)).round(2) + columns["A1"]
    return replace(
        table,
        columns=columns.assign(
            A1_again=columns["A1"],
            A2_opposite=1 - columns["A2"],
            level=level,
            level_doubled=2 * level,
            outcome_copy=table.outcome,
            environment_copy=table.environments,
        ),
    )


def make_kinds(n: int = 900) -> Table:
    """A column of every type that a frame may have, missing values in most of them."""
    rng = np.random.default_rng(14)
    environments = rng.integers(0, 3, n)
    grade = rng.integers(0, 4, n)
    is_alert = rng.random(n) < 0.5
    outcome = rng.random(n) < np.where((grade > 1) & is_alert, 0.8, 0.1)

    def lose(values: Any, share: float = 0.15) -> pd.Series:
        return pd.Series(values).mask(rng.random(n) < share)

    columns = {
        "grade": pd.Categorical.from_codes(grade, ["I", "II", "III", "IV"], ordered=True),
        "is_alert": is_alert,
        "maybe": lose(is_alert).astype("boolean"),
        "n_whole": lose(rng.integers(-3, 4, n)).astype("Int64"),
        "narrow": lose(rng.normal(size=n)).astype("float32"),
        "text": lose(rng.choice(["left", "right", "äöü", "a, b"], n)),
        "coded": pd.Categorical(lose(rng.choice(["10", "9", "8"], n))),
        "rare": rng.choice([f"v{k}" for k in range(80)], n),
        "tiny": 1e-9 * rng.integers(0, 9, n),
        "huge": 1e12 + rng.integers(0, 9, n),
        "nothing": np.nan,
        "one_value": lose(np.ones(n)),
    }
    return make_table(columns, outcome, environments)


def make_odd_names(n: int = 800) -> Table:
    """Names and levels with blanks, quotes, markup and letters beyond ASCII."""
    table = make_sites(n, n_sites=3, seed=5)
    names = {"age": 'age "in" years', "code": "<b>code</b>", "dose": "d\u00f6se | 50%; --"}
    columns = table.columns.rename(columns=names)
    columns["level'"] = np.where(table.columns["dose"] > 0.5, "it's", 'say "so"')
    environments = table.environments.map(lambda name: f"{name} <&> \u00fc")
    return replace(table, columns=columns, environments=environments)


def make_wide(n: int = 300, n_columns: int = 250) -> Table:
    """Nearly as many columns as rows."""
    rng = np.random.default_rng(15)
    values = rng.normal(size=(n, n_columns)).round(2)
    outcome = rng.random(n) < np.where((values[:, 3] > 0) & (values[:, 7] > -0.5), 0.9, 0.1)
    frame = pd.DataFrame(values, columns=[f"x{j}" for j in range(n_columns)])
    return make_table(frame, outcome.astype(int), rng.integers(0, 3, n))


def make_tiny(seed: int) -> Table:
    """Few rows of few values, where counts are equal to limits and candidates tie."""
    rng = np.random.default_rng([99, seed])
    n, n_environments = int(rng.choice([60, 120, 240, 400])), int(rng.integers(2, 5))
    environments = np.sort(rng.integers(0, n_environments, n))
    columns: dict[str, Any] = {}
    for j in range(int(rng.integers(2, 6))):
        values = rng.integers(0, rng.integers(2, 5), n)
        columns[f"x{j}"] = np.where(rng.random(n) < 0.15 * (j % 3 == 2), np.nan, values)
    columns["level"] = np.array(["a", "b", "c"])[rng.integers(0, 3, n)]
    columns["twin"] = columns["x0"]
    is_case = (columns["x0"] > 0) & (columns["x1"] > 0)
    noise = rng.choice([0.02, 0.1]) + 0.05 * environments * (seed % 2)
    outcome = is_case ^ (rng.random(n) < noise)
    return make_table(columns, outcome.astype(int), environments, rng.integers(0, n // 4, n))


def make_exact() -> Table:
    """A balanced design, the same in both environments: every split halves the rows.

    So sizes of leaves are equal to limits such as 40, and mirrored candidates tie exactly.
    """
    n_of_cell = 20  # of each combination of four bits, in each environment
    cells = np.repeat(np.arange(32), n_of_cell)
    bits = cells[:, np.newaxis] >> np.arange(5) & 1
    rates = 0.1 + 0.3 * bits[:, 0] + 0.4 * bits[:, 0] * bits[:, 1] + 0.1 * bits[:, 2]
    place = np.tile(np.arange(n_of_cell), 32)
    outcome = place < np.rint(n_of_cell * rates)
    frame = pd.DataFrame(bits[:, :4], columns=["x0", "x1", "x2", "x3"])
    return make_table(frame, outcome.astype(int), np.array(["a", "b"])[bits[:, 4]])


# --- tables that cannot be used -------------------------------------------------------------------


def change_outcome(rows: slice, value: Any) -> Table:
    table = make_network(100)
    outcome = table.outcome.astype(object if value is None else int)
    outcome[rows] = value
    return replace(table, outcome=outcome)


def make_infinite() -> Table:
    table = make_network(100, is_continuous=True)
    columns = table.columns.copy()
    columns.loc[3, "B1"] = np.inf
    return replace(table, columns=columns)


def leave_one_environment() -> Table:
    table = make_network(100)
    return replace(table, environments=table.environments * 0)


def lose_environment() -> Table:
    table = make_network(100)
    return replace(table, environments=table.environments.where(table.environments.index > 5))


N_TINY = 40

TABLES: dict[str, Callable[[], Table]] = {
    **{f"tiny-{seed}": partial(make_tiny, seed) for seed in range(N_TINY)},
    "network": make_network,
    "network-or": lambda: make_network(is_disjunction=True, seed=3),
    "network-words": lambda: give_words(make_network(n_environments=4, seed=3)),
    "network-5-parents": lambda: make_network(2_500, n_environments=3, n_parents=5, seed=0),
    "network-continuous": lambda: make_network(800, n_environments=3, is_continuous=True),
    "network-small": lambda: make_network(30, seed=2),
    "network-noisy": lambda: make_network(400, n_distractors=25, seed=5),
    "no-environments": lambda: replace(make_network(seed=6), environments=None),
    "admissions": make_admissions,
    "admissions-or": lambda: make_admissions(is_disjunction=True, seed=6),
    "admissions-new": lambda: make_admissions(1_200, seed=8),
    "sites": make_sites,
    "sites-new": lambda: make_sites(700, n_sites=5, seed=9),
    "two-sites": lambda: make_sites(n_sites=2),
    "cohort": make_cohort,
    "cohort-small": lambda: make_cohort(700, seed=4),
    "numbers": make_numbers,
    "numbers-new": lambda: make_numbers(500, seed=16),
    "regions": make_regions,
    "shifted": make_shifted,
    "rare": make_rare,
    "noise": make_noise,
    "lone": make_lone,
    "lopsided": make_lopsided,
    "visits": make_visits,
    "genomes": make_genomes,
    "twins": make_twins,
    "kinds": make_kinds,
    "odd-names": make_odd_names,
    "exact": make_exact,
    "wide": make_wide,
    "one-class": lambda: change_outcome(slice(None), 1),
    "three-classes": lambda: change_outcome(slice(0, 9), 2),
    "missing-outcome": lambda: change_outcome(slice(0, 9), None),
    "one-environment": leave_one_environment,
    "missing-environment": lose_environment,
    "infinite": make_infinite,
    "four-rows": lambda: make_network(100).take(np.arange(200) < 4),
}


@cache
def load_table(name: str) -> Table:
    """A table by its name; nobody may change it, since it is made once."""
    return TABLES[name]()


@cache
def fingerprint_table(name: str) -> str:
    """A digest of all values of a table and their types."""
    table = load_table(name)
    digest = hashlib.sha256(table.file.to_csv().encode())
    digest.update(table.file.dtypes.to_string().encode())
    for numbers in (table.weights, table.repeats):
        if numbers is not None:
            digest.update(numbers.tobytes())
    return digest.hexdigest()[:16]


# --- the forms in which a caller may have the columns ---------------------------------------------


def convert_columns(columns: pd.DataFrame, form: str) -> Any:
    """The columns as another kind of table."""
    if form == "pandas":
        return columns
    if form == "numpy":
        return columns.to_numpy()
    if form == "float32":
        return columns.to_numpy(dtype=np.float32)
    if form == "fortran":
        return np.asfortranarray(columns.to_numpy())
    if form == "lists":
        return columns.to_numpy().tolist()
    if form == "sparse":
        from scipy.sparse import csr_matrix

        return csr_matrix(columns.to_numpy(dtype=float))
    if form == "polars":
        import polars

        return polars.from_pandas(columns)
    if form == "arrow":
        import pyarrow

        return pyarrow.Table.from_pandas(columns, preserve_index=False)
    raise ValueError(f"no form of a table is called {form!r}")


FORMS: Sequence[str] = (
    *("pandas", "numpy", "float32", "fortran", "lists", "sparse", "polars", "arrow"),
)
