"""Prediction intervals of leaves' rates at a new site: coverage and interval score."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import special, stats

from icscm import InvariantTreeClassifier
from icscm.exceptions import IcscmError
from icscm.stats.new_environments import make_expectations
from paper.base import Options, Summary, Table, cross
from paper.runner import Plan, Row, Rows, Task, make_seed, run_or_record, split_failed
from paper.screen_tables import TITLES, list_cells, load
from paper.shares import group_rows, read_numbers

TITLE = "Prediction intervals at a new site"
DESCRIPTION = (
    "95 % intervals of the rate of each leaf at a site that was not used, beside those of a "
    "random-effects meta-analysis of each leaf on its own (restricted maximum likelihood, log odds "
    "with half a sample added): with t quantiles of K - 2 degrees of freedom (Higgins, Thompson "
    "and Spiegelhalter), and with Hartung and Knapp's correction. The interval score (Gneiting and "
    "Raftery), in points, is the width plus 40 times the distance of a rate outside."
)

# Rates of the leaves in a typical environment; the variance that leaves share; new sites a table.
RATES = (0.02, 0.05, 0.1, 0.2, 0.3, 0.4, 0.55, 0.7)
SHARED, N_NEW, N_RUNS = 0.8, 4, 100
PLACES, SIZES, TAUS = (3, 5, 8, 20), (30, 1_000), (0.0, 0.3, 0.6)
METHODS = ("now", "now, rate known", "t, K - 2", "Hartung-Knapp")
MEASURES = ("inside", "score", "width")
COLUMNS_OUT = ("leaves", *(f"{name}: {each}" for name in METHODS for each in MEASURES))
# Of leaves at the site left out; goals.
LEAST_SAMPLES, GOAL = 20, (0.93, 0.97)
Floats = NDArray[np.float64]
Intervals = dict[str, Floats]


def make_plan(options: Options) -> Plan:
    """Simulated tables, then each environment of the shared tables left out."""
    places = PLACES[:2] if options.quick else PLACES
    cells = cross(table=["simulated"], places=places, size=SIZES, tau=TAUS, shared=[True, False])
    cells = [cell for cell in cells if cell["tau"] or cell["shared"]]
    tasks = options.repeat([{**cell, "out": ""} for cell in cells], N_RUNS)
    for cell in list_cells(options):
        own = {"table": cell["table"], "places": 0, "size": 0, "tau": 0.0, "shared": False}
        tasks.append({"seed": options.seed, **own, "out": cell["out"], "run": 0})
    tasks = options.filter(tasks)
    if not tasks:
        raise IcscmError("no task has the values given with --choose")
    run = partial(run_or_record, run=partial(run_task, options=options), columns=COLUMNS_OUT)
    return Plan(tasks, run, (*COLUMNS_OUT, "error"))


def run_task(task: Task, seed: int, options: Options) -> Row:
    """Means over the leaves of a table, and over its new sites."""
    is_simulated = task["table"] == "simulated"
    found = run_simulated(task, seed) if is_simulated else run_real(task, options)
    measured: dict[str, list[Floats]] = {name: [] for name in METHODS}
    for tables, prevalence, is_used, new in found:
        for name, ends in compute_intervals(tables, prevalence).items():
            measured[name].append(np.array([new(i, *ends[:, i]) for i in np.flatnonzero(is_used)]))
    row: Row = {"leaves": sum(map(len, measured["now"]))}
    for name, parts in measured.items():
        means = np.concatenate(parts).mean(axis=0) if row["leaves"] else [""] * 3
        row |= {f"{name}: {each}": x for each, x in zip(MEASURES, means, strict=True)}
    return row


def run_simulated(task: Task, seed: int) -> Iterator[Any]:
    """Leaves of a table; the rates at new sites are known exactly."""
    rng = np.random.default_rng(make_seed(seed, "simulated"))
    k, n, theta, prevalences = simulate(
        rng, task["places"], task["size"], task["tau"], SHARED if task["shared"] else 0.0
    )
    tables = np.stack((n - k, k)).transpose(2, 0, 1)
    is_used = (n > 0).sum(axis=0) >= 3
    for own, prevalence in zip(theta, prevalences, strict=True):
        yield tables, prevalence, is_used, partial(_hold_rate, special.expit(own))


def simulate(
    rng: np.random.Generator, n_places: int, size: int, tau: float, shared: float
) -> tuple[Any, ...]:
    """Positives and samples (environment, leaf), and log odds and prevalences of new ones."""
    n_all, n_leaves = n_places + N_NEW, len(RATES)
    b = np.sqrt(shared) * tau * rng.standard_normal((n_all, 1))
    c = np.sqrt(1 - shared) * tau * rng.standard_normal((n_all, n_leaves))
    theta = special.logit(RATES) + b + c
    shares = rng.dirichlet(np.full(n_leaves, 4.0), n_all)
    n = rng.multinomial(size * n_leaves, shares[:n_places])
    k = rng.binomial(n, special.expit(theta[:n_places]))
    prevalences = (shares * special.expit(theta)).sum(axis=1)
    return k, n, theta[n_places:], prevalences[n_places:]


def run_real(task: Task, options: Options) -> Iterator[Any]:
    """Leaves of an invariant tree grown without a site, whose counts are noisy."""
    data = load(task["table"], options)
    is_out = data.environments == task["out"]
    tree = InvariantTreeClassifier()
    tree.fit(data.X[~is_out], data.y[~is_out], environments=data.environments[~is_out])
    tables = np.array(tree.model_.leaves)
    leaves, y = tree.model_.find_leaves(data.X[is_out]), data.y[is_out] == tree.classes_[1]
    n = np.bincount(leaves, minlength=len(tables))
    k = np.bincount(leaves[y], minlength=len(tables))
    is_seen = (tables.sum(axis=1) > 0).sum(axis=1) >= 3
    # a site of a single class has no log odds
    prevalence = (k.sum() + 0.5) / (n.sum() + 1)
    is_used = is_seen & (n >= LEAST_SAMPLES) & (len(tables) > 1)
    yield tables, prevalence, is_used, partial(_hold_counts, k, n)


def compute_intervals(tables: Any, prevalence: float) -> Intervals:
    """Log odds (low or high, leaf) by every method; NaN without an interval."""
    found = make_expectations(tables, prevalence)
    none = np.nan, np.nan
    ends = [
        np.array([getattr(each, name) or none for each in found]).T
        for name in ("interval", "known_interval")
    ]
    ours = special.logit(np.clip(ends, 1e-12, 1 - 1e-12))
    return dict(
        zip(METHODS, [*ours, *compute_meta(tables[:, 1].T, tables.sum(axis=1).T)], strict=True)
    )


def compute_meta(k: Any, n: Any) -> list[Floats]:
    """Random-effects intervals (low or high, leaf) of log odds, each leaf on its own.

    tau^2 maximises the restricted likelihood on a grid. In a single environment there is none.
    """
    theta, variances = np.log((k + 0.5) / (n - k + 0.5)), 1 / (k + 0.5) + 1 / (n - k + 0.5)
    squares = np.linspace(0, 6, 601) ** 2
    weights = np.where(n > 0, 1 / (variances + squares[:, np.newaxis, np.newaxis]), 0.0)
    total = weights.sum(axis=1)
    means = (weights * theta).sum(axis=1) / total
    misfits = (weights * (theta - means[:, np.newaxis]) ** 2).sum(axis=1)
    logs = np.log(weights, where=weights > 0, out=np.zeros_like(weights)).sum(axis=1)
    best = (logs - np.log(total) - misfits).argmax(axis=0)
    leaves, n_others = np.arange(k.shape[1]), np.maximum((n > 0).sum(axis=0) - 1, 1)
    mean, error, square = means[best, leaves], 1 / total[best, leaves], squares[best]
    adjusted = error * misfits[best, leaves] / n_others
    halves = (
        stats.t.ppf(0.975, np.maximum(n_others - 1, 1)) * np.sqrt(square + error),
        stats.t.ppf(0.975, n_others) * np.sqrt(square + adjusted),
    )
    return [np.array((mean - half, mean + half)) for half in halves]


def _hold_rate(rates: Floats, leaf: int, low: float, high: float) -> tuple[float, ...]:
    return _score(special.expit(low), special.expit(high), rates[leaf])


def _score(low: float, high: float, rate: float) -> tuple[float, ...]:
    beyond = max(low - rate, rate - high, 0.0)
    return float(beyond == 0), 100 * (high - low + 40 * beyond), 100 * (high - low)


def _hold_counts(k: Any, n: Any, leaf: int, low: float, high: float) -> tuple[float, ...]:
    """Against the interval of the observed rate: normal log odds, then a binomial draw."""
    z = stats.norm.ppf((np.arange(200) + 0.5) / 200)
    rates = special.expit((low + high) / 2 + z * (high - low) / 2 / stats.norm.ppf(0.975))
    counts = np.unique(np.linspace(0, n[leaf], 1001).round())
    below = special.bdtr(counts[:, np.newaxis], n[leaf], rates).mean(axis=1)
    first, last = np.minimum(np.searchsorted(below, (0.025, 0.975)), len(counts) - 1)
    _, score, width = _score(counts[first] / n[leaf], counts[last] / n[leaf], k[leaf] / n[leaf])
    at_most = special.bdtr(k[leaf], n[leaf], rates).mean()
    fewer = special.bdtr(k[leaf] - 1, n[leaf], rates).mean() if k[leaf] else 0.0
    middle = (at_most + fewer) / 2
    return float(min(middle, 1 - middle) > 0.025), score, width


def summarise(rows: Rows) -> Summary:
    """Coverage and score by cell, of simulated tables and of shared ones."""
    rows, failures = split_failed(rows)
    rows = [row for row in rows if int(row["leaves"])]
    simulated = [row for row in rows if row["table"] == "simulated"]
    shared = [row for row in rows if row["table"] != "simulated"]
    tables = []
    if simulated:
        caption = "Simulated: share of new rates inside, and mean interval score (points)."
        names = "places", "size", "tau", "shared"
        header = ["environments", "samples in a leaf", "tau", "shared baseline"]
        tables.append(_make_table("intervals-simulated", caption, simulated, names, header))
    if shared:
        caption = (
            "Each environment left out in turn, leaves of an invariant tree with at least "
            f"{LEAST_SAMPLES} samples there: share of observed rates inside the interval widened "
            "by their own sampling error, and its mean score (points)."
        )
        tables.append(_make_table("intervals-shared", caption, shared, ["table"], ["table"]))
    return Summary(tables, (), [*_find(simulated), *failures])


def _make_table(name: str, caption: str, rows: Rows, keys: Any, header: list[str]) -> Table:
    lines = []
    for key, own in group_rows(rows, *keys).items():
        cells = [key] if isinstance(key, str) else [*key]
        cells = [TITLES.get(cell, cell) for cell in cells]
        weights = read_numbers(own, "leaves")
        for method in METHODS:
            inside, score, _ = (
                np.average(read_numbers(own, f"{method}: {each}"), weights=weights)
                for each in MEASURES
            )
            cells.append(f"{inside:.3f}, {score:.1f}")
        lines.append([*cells, f"{weights.sum():,.0f}"])
    return Table(name, caption, [*header, *METHODS, "leaves"], lines)


def _find(rows: Rows) -> Iterator[str]:
    spread = [row for row in rows if float(row["tau"]) > 0]
    cells = group_rows(spread, "places", "size", "tau", "shared").values()
    for method in METHODS if spread else ():
        shares = [read_numbers(own, f"{method}: inside").mean() for own in cells]
        scores = [read_numbers(own, f"{method}: score").mean() for own in cells]
        n_met = sum(GOAL[0] <= each <= GOAL[1] for each in shares)
        yield (
            f"{method}, tau above 0: coverage {min(shares):.3f} to {max(shares):.3f}, mean "
            f"{np.mean(shares):.3f}, {n_met} of {len(shares)} cells within {GOAL[0]:g} to "
            f"{GOAL[1]:g}; mean score {np.mean(scores):.1f} points."
        )
