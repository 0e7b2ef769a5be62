"""Known mechanisms beside artefacts of one site, on simulated genomes, and rules of pure noise."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from itertools import product
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from icscm import ICSCMClassifier, InvariantTreeClassifier
from icscm.exceptions import IcscmWarning
from paper.base import Options, Summary, Table, cross, make_long_plan
from paper.runner import Plan, Row, Rows, Task, make_seed, split_failed
from paper.shares import format_mean, group_rows, read_numbers

TITLE = "Mechanisms, artefacts and noise"
DESCRIPTION = (
    "Simulated genomes in which resistance has known mechanisms, and artefacts of sequencing or "
    "markers of another drug are the most informative columns; and tables of pure noise. Is the "
    "first rule or split the mechanism, and which other columns are used?"
)

# Features, label, environment, and the group of each row or None.
Sample = tuple[pd.DataFrame, NDArray[np.int64], NDArray[Any], NDArray[np.int64] | None]
N_RUNS = 20
COLUMNS_OUT = ("first", "false", "rules")


def make_gonorrhoea(seed: int = 0) -> Sample:
    """Five continents; the mutation, and so resistance, is frequent in one and rarer in another."""
    rng = np.random.default_rng(seed)
    sizes = {"Europe": 1500, "America": 900, "Asia": 700, "Africa": 300, "Oceania": 300}
    place = np.repeat([*sizes], [*sizes.values()])
    share = pd.Series(place).map({"Europe": 0.12, "America": 0.06}).fillna(0.0).to_numpy()
    mutation = rng.random(len(place)) < share
    y = rng.random(len(place)) < np.where(mutation, 0.95, 0.003)
    return add_noise(rng, {"mechanism": mutation}), y.astype(np.int64), place, None


def make_coli(seed: int = 1) -> Sample:
    """Six years; the gene informs in all, an artefact of sequencing in one that has most rows."""
    rng = np.random.default_rng(seed)
    year = np.repeat(np.arange(2014, 2020), [300, 300, 300, 300, 300, 2500])
    gene = rng.random(len(year)) < np.linspace(0.2, 0.4, 6)[year - 2014]
    y = rng.random(len(year)) < np.where(gene, 0.8, 0.1)
    artefact = y & (year == 2019) & (rng.random(len(year)) < 0.97)
    columns = {"mechanism": gene, "artefact": artefact}
    return add_noise(rng, columns), y.astype(np.int64), year, None


def make_tuberculosis(seed: int = 0) -> Sample:
    """Eight countries; two mutations cause resistance, nine artefacts follow it in one country."""
    rng = np.random.default_rng(seed)
    country = np.repeat(np.arange(8), [3000, *[500] * 7])
    mutations = rng.random((2, len(country))) < np.array([[0.3], [0.1]])
    y = rng.random(len(country)) < np.where(mutations.any(axis=0), 0.7, 0.1)
    columns = {f"mechanism_{k}": mutation for k, mutation in enumerate(mutations)}
    for k in range(9):
        follows = rng.random(len(y)) < 0.97
        columns[f"artefact_{k}"] = (country == 0) & np.where(follows, y, ~y)
    return add_noise(rng, columns), y.astype(np.int64), country, None


def make_rifampicin(seed: int = 0, n_rows: int = 3_000) -> Sample:
    """Genomes of five countries: resistance is one of six mutations of rpoB.

    Nearly all resistant genomes are resistant to isoniazid, too, by katG S315T, which alone covers
    more than any single mutation does; how many others are differs between countries.
    """
    rng = np.random.default_rng(seed)
    country = rng.integers(0, 5, n_rows)
    resistant = rng.random(n_rows) < np.array([0.1, 0.2, 0.3, 0.4, 0.5])[country]
    mutation = np.where(resistant, rng.integers(0, 6, n_rows), -1)
    X = {f"mechanism_rpoB_{k}": (mutation == k).astype(int) for k in range(6)}
    alone = np.array([0.3, 0.2, 0.1, 0.05, 0.02])[country]
    X["katG_S315T"] = (rng.random(n_rows) < np.where(resistant, 0.98, alone)).astype(int)
    X |= {f"gene_{k}": rng.integers(0, 2, n_rows) for k in range(40)}
    y = (resistant ^ (rng.random(n_rows) < 0.01)).astype(np.int64)
    return pd.DataFrame(X), y, country, None


def make_noise(seed: int = 0) -> Sample:
    """500 rare genes that cause nothing."""
    rng = np.random.default_rng(seed)
    X = rng.random((2_000, 500)) < rng.uniform(0.003, 0.02, 500)
    y = (rng.random(2_000) < 0.1).astype(np.int64)
    return pd.DataFrame(X.astype(int)).add_prefix("gene_"), y, rng.integers(0, 5, 2_000), None


def make_patients(seed: int = 0) -> Sample:
    """Ten visits of 300 patients, and ten columns of noise that are constant within patients."""
    rng = np.random.default_rng(seed)
    patient = np.repeat(np.arange(300), 10)
    risk = rng.normal(-1, 1.5, 300)[patient]
    y = (rng.random(3_000) < 1 / (1 + np.exp(-risk))).astype(np.int64)
    X = rng.integers(0, 10, (300, 10))[patient]
    return pd.DataFrame(X).add_prefix("x_"), y, patient % 4, patient


def add_noise(rng: np.random.Generator, columns: dict[str, NDArray[np.bool_]]) -> pd.DataFrame:
    """A table of genes, with two columns that cause nothing."""
    table = pd.DataFrame(columns).astype(int)
    n_rows = len(table)
    return table.assign(noise=rng.integers(0, 2, n_rows), age=rng.integers(0, 4, n_rows))


MAKERS: dict[str, Callable[[int], Sample]] = {
    "gonorrhoea": make_gonorrhoea,
    "E. coli": make_coli,
    "tuberculosis": make_tuberculosis,
    "rifampicin": make_rifampicin,
    "noise, rare genes": make_noise,
    "noise, ten visits": make_patients,
}
# With their defaults, and without replication and the bound of chance, in the one shape of 0.2.
_PLAIN: dict[str, Any] = {"min_replication": 0.0, "min_utility": 0.0}
LEARNERS: dict[str, Callable[[], Any]] = {
    "rules": lambda: ICSCMClassifier(model_type="auto", n_jobs=1),
    "rules, neither": lambda: ICSCMClassifier(**_PLAIN, n_jobs=1),
    "rules, or, neither": lambda: ICSCMClassifier(
        p="balanced", model_type="disjunction", **_PLAIN, n_jobs=1
    ),
    "tree": lambda: InvariantTreeClassifier(n_jobs=1),
    "tree, no replication": lambda: InvariantTreeClassifier(min_replication=0.0, n_jobs=1),
    "plain tree": lambda: InvariantTreeClassifier(tolerance=None, n_jobs=1),
}


def make_plan(options: Options) -> Plan:
    """A task for each table, learner and run."""
    cells = cross(table=[*MAKERS], learner=[*LEARNERS])
    return make_long_plan(options, options.repeat(cells, N_RUNS), run_task, COLUMNS_OUT)


def run_task(task: Task, _: int) -> Row:
    """Whether the first rule or split is a mechanism, and whether other columns are used."""
    seed = make_seed(task["seed"], task["table"], task["run"])  # the same for all learners
    X, y, places, groups = MAKERS[task["table"]](seed)
    with warnings.catch_warnings(action="ignore", category=IcscmWarning):
        learner = LEARNERS[task["learner"]]().fit(X, y, environments=places, groups=groups)
    splits = learner.model_.splits
    first_column = splits[0].rule.feature if splits else ""
    false_columns = [name for name in learner.features_used_ if not name.startswith("mechanism")]
    return {
        "first": int(first_column.startswith("mechanism")),
        "false": int(bool(false_columns)),
        "rules": len(splits),
    }


def summarise(rows: Rows) -> Summary:
    """A line for each table and learner."""
    rows, failures = split_failed(rows)
    lines = []
    cells = group_rows(rows, "table", "learner")
    for table, learner in product(MAKERS, LEARNERS):
        if (table, learner) not in cells:
            continue
        cell = cells[table, learner]
        first, false, n_rules = (format_mean(read_numbers(cell, name)) for name in COLUMNS_OUT)
        has_mechanism = not table.startswith("noise")
        lines.append(
            [table, learner, str(len(cell)), first if has_mechanism else "-", false, n_rules]
        )
    caption = (
        "Share of runs in which the first rule or split is the mechanism, and in which any other "
        "column is used; mean number of rules or splits."
    )
    header = ["table", "learner", "runs", "mechanism first", "other columns", "rules or splits"]
    return Summary([Table("mechanisms", caption, header, lines)], (), failures)
