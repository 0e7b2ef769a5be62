"""Simulated tables, each with what one kind of model or study needs; all seeds are fixed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from icscm.datasets import make_conjunction, make_hospitals


@dataclass(frozen=True)
class Table:
    """Columns, an outcome and, if there are any, environments."""

    X: pd.DataFrame
    y: pd.Series
    environments: pd.Series | None = None

    @property
    def samples(self) -> tuple[pd.DataFrame, pd.Series, pd.Series | None]:
        """The arguments of `fit`."""
        return self.X, self.y, self.environments

    def select_rows(self, is_selected: Any) -> Table:
        """Return some of the rows, numbered from 0."""
        columns = (column[is_selected].reset_index(drop=True) for column in self.samples)
        return Table(*columns)

    def select_columns(self, columns: list[str]) -> Table:
        """Return the table with some of its columns."""
        return Table(self.X[columns], self.y, self.environments)

    def drop_environments(self) -> Table:
        """Return the table as if nobody had recorded where its rows come from."""
        return Table(self.X, self.y)

    def to_csv(self) -> str:
        """Return the text of a file with all columns, for the command line."""
        columns = [column for column in self.samples if column is not None]
        return pd.concat(columns, axis=1).to_csv(index=False, lineterminator="\n")

    def list_options(self) -> list[str]:
        """Return the options of the command line that name the outcome and the environment."""
        options = ["--target", str(self.y.name)]
        if self.environments is not None:
            options += ["--environment", str(self.environments.name)]
        return options


def make_table(
    columns: Any, outcome: Any, environments: Any, *, target: str = "ill", place: str = "site"
) -> Table:
    """Return a table whose outcome and environments have names, as those of a file have."""
    return Table(
        X=pd.DataFrame(columns).reset_index(drop=True),
        y=pd.Series(np.asarray(outcome), name=target),
        environments=pd.Series(np.asarray(environments), name=place),
    )


def make_network(
    n_rows: int = 700, n_environments: int = 4, seed: int = 1, **options: Any
) -> Table:
    """The paper's network: parents, shortcuts and children of an outcome written in words."""
    data = make_conjunction(n_rows, 2, n_environments=n_environments, random_state=seed, **options)
    names = np.array([f"p{number + 1}" for number in range(n_environments)])
    return make_table(data.X, np.array(["no", "yes"])[data.y], names[data.environments])


def make_shifted(n_rows: int = 1_200, n_environments: int = 3) -> Table:
    """Nothing is invariant: the environment acts on the outcome itself."""
    rng = np.random.default_rng(1)
    columns = {"mark": rng.integers(0, 4, n_rows), "x": rng.random(n_rows).round(1)}
    environments = rng.integers(0, n_environments, n_rows)
    is_ill = rng.random(n_rows) < 0.2 + 0.6 / n_environments * environments
    return make_table(columns, is_ill.astype(int), environments)


def make_sites(
    n_rows: int = 2_000, n_sites: int = 4, seed: int = 0, *, shift: float = 0.3
) -> Table:
    """Age and dose act alike everywhere, the code works at some sites only; rates differ."""
    rng = np.random.default_rng(seed)
    site, age = rng.integers(0, n_sites, n_rows), rng.integers(20, 90, n_rows)
    age = np.clip(age + 4 * site, 20, 95)
    dose = rng.random(n_rows).round(2)
    log_odds = -1.0 + shift * site + 1.6 * (age > 60) + 0.9 * (dose > 0.5)
    is_ill = rng.random(n_rows) < 1 / (1 + np.exp(-log_odds))
    is_coded = rng.random(n_rows) < np.linspace(0.9, 0.05, n_sites)[site]
    code = np.where(is_coded, is_ill, rng.integers(0, 2, n_rows))
    columns = {"age": age, "code": code, "dose": dose}
    return make_table(columns, is_ill, [f"site {number}" for number in site])


def make_regions(n_rows: int = 4_000, n_regions: int = 40) -> Table:
    """Forty environments of different sizes; one rule holds in all, one in all but two."""
    rng = np.random.default_rng(5)
    sizes = np.linspace(1, 5, n_regions)
    region = rng.choice(n_regions, n_rows, p=sizes / sizes.sum())
    smoker = rng.random(n_rows) < 0.2 + 0.015 * region
    rest = rng.random(n_rows) < 0.75 - 0.01 * region
    is_ill = np.where(smoker & rest, rng.random(n_rows) < 0.85, rng.random(n_rows) < 0.1)
    is_strange = np.isin(region, (7, 31))
    is_contrary = rng.random(n_rows) < np.where(is_strange, 0.5, 0.03)
    mark = np.where(is_contrary, ~is_ill, is_ill)
    columns = {"smoker": smoker.astype(int), "rest": rest.astype(int), "mark": mark.astype(int)}
    columns["noise"] = rng.random(n_rows).round(2)
    return make_table(columns, is_ill, [f"r{number + 1}" for number in region], place="region")


def make_lopsided_regions() -> Table:
    """Nearly all rows are of one region; one column tells it, one has values in it only."""
    table = make_regions()
    region = table.environments.where(table.environments == "r40", "r1")
    region[::60] = "r2"
    columns = table.X.assign(
        copy=region.eq("r1").astype(int), gap=table.X["noise"].where(region == "r1")
    )
    return Table(columns, table.y, region).select_rows(region != "r40")


def make_admissions(n_rows: int = 2_500, seed: int = 3, **options: Any) -> Table:
    """Numbers, categories and missing values, an identifier and a constant."""
    data = make_hospitals(n_rows, n_new_rows=10, random_state=seed, **options)
    numbers = [f"n{row}" for row in range(n_rows)]
    columns = data.X.assign(number=numbers, country="here")
    return make_table(columns, data.y, data.environments, target="worse", place="hospital")


def split_admissions(n_rows: int = 6_000, seed: int = 1) -> tuple[Table, Table]:
    """Rows to learn from, and new ones: every third row, and all of the hospital Elm."""
    table = make_admissions(n_rows, seed)
    row_numbers = pd.Series(range(n_rows))
    is_new = (row_numbers % 3 == 0) | (table.environments == "Elm")
    return table.select_rows(~is_new), table.select_rows(is_new)


def make_rare_outcome() -> Table:
    """An outcome so rare that rules with many false alarms are worth less than none."""
    rng = np.random.default_rng(4)
    n_rows = 2_000
    site, risk = rng.integers(0, 3, n_rows), rng.random(n_rows).round(2)
    is_ill = rng.random(n_rows) < np.where(risk > 0.7, 0.3, 0.03)
    columns = {"risk": risk, "noise": rng.random(n_rows).round(1)}
    return make_table(columns, is_ill, np.array(["a", "b", "c"])[site])


def make_noise(n_rows: int = 900) -> Table:
    """No column tells anything of the outcome."""
    rng = np.random.default_rng(8)
    columns = {"u": rng.integers(0, 2, n_rows), "v": rng.random(n_rows).round(1)}
    outcome = rng.integers(0, 2, n_rows)
    return make_table(columns, outcome, np.array(["a", "b", "c"])[rng.integers(0, 3, n_rows)])


def make_lone_device() -> Table:
    """A device that one site has, and that settles the outcome of those who use it."""
    rng = np.random.default_rng(9)
    n_rows = 1_500
    site = rng.integers(0, 3, n_rows)
    has_device = (site == 1) & (rng.random(n_rows) < 0.7)
    is_ill = np.where(has_device, rng.random(n_rows) < 0.05, rng.random(n_rows) < 0.7)
    columns = {"device": has_device.astype(int), "noise": rng.integers(0, 3, n_rows)}
    return make_table(columns, is_ill, np.array(["a", "b", "c"])[site])


def make_waves() -> Table:
    """Six columns of which a tree needs many leaves; there are no environments."""
    rng = np.random.default_rng(0)
    columns = pd.DataFrame(rng.random((4_000, 6)).round(2)).add_prefix("x")
    waves = np.sin(9 * columns).sum(axis=1)
    is_high = waves + rng.normal(size=len(columns)) > 1
    return Table(columns, pd.Series(is_high.astype(int), name="high"))
