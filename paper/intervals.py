"""Prediction intervals of leaves' rates at a new site: coverage and interval score."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, NamedTuple

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

# Simulated: rates of the leaves in a typical environment, the share of the variance that leaves
# have in common, new sites of a table, and repetitions.
RATES = (0.02, 0.05, 0.1, 0.2, 0.3, 0.4, 0.55, 0.7)
SHARED = 0.8
N_NEW = 4
N_RUNS = 100
# Numbers of environments, samples in a leaf, and standard deviations of the log odds.
PLACES = (3, 5, 8, 20)
SIZES = (30, 1_000)
TAUS = (0.0, 0.3, 0.6)
METHODS = ("now", "now, rate known", "t, K - 2", "Hartung-Knapp")
MEASURES = ("inside", "score", "width")
COLUMNS_OUT = ("leaves", *(f"{name}: {measure}" for name in METHODS for measure in MEASURES))
# Samples that a leaf needs at the site left out.
LEAST_SAMPLES = 20
# The coverage that is wanted, for intervals of 95 %.
GOAL = (0.93, 0.97)
Floats = NDArray[np.float64]
# Log odds (low or high, leaf), by method.
Intervals = dict[str, Floats]


class Score(NamedTuple):
    """An interval beside the rate at a new site: 1 if the rate is inside; score and width."""

    inside: float
    score: float
    width: float


class NewSite(NamedTuple):
    """The counts (leaf, label, environment) of a table, and a site that it was not made from.

    `score(leaf, low, high)` compares an interval of log odds with the rate at the site.
    """

    tables: NDArray[np.int64]
    prevalence: float
    is_used: NDArray[np.bool_]
    score: Callable[[int, float, float], Score]


def make_plan(options: Options) -> Plan:
    """Simulated tables, then each environment of the shared tables left out."""
    places = PLACES[:2] if options.quick else PLACES
    cells = cross(table=["simulated"], places=places, size=SIZES, tau=TAUS, shared=[True, False])
    cells = [cell for cell in cells if cell["tau"] or cell["shared"]]
    tasks = options.repeat([{**cell, "out": ""} for cell in cells], N_RUNS)
    for cell in list_cells(options):
        unused = {"places": 0, "size": 0, "tau": 0.0, "shared": False}
        tasks.append(
            {
                "seed": options.seed,
                "table": cell["table"],
                **unused,
                "out": cell["out"],
                "run": 0,
            }
        )
    tasks = options.filter(tasks)
    if not tasks:
        raise IcscmError("no task has the values given with --choose")
    run = partial(run_or_record, run=partial(run_task, options=options), columns=COLUMNS_OUT)
    return Plan(tasks, run, (*COLUMNS_OUT, "error"))


def run_task(task: Task, seed: int, options: Options) -> Row:
    """Means over the leaves of a table, and over its new sites."""
    is_simulated = task["table"] == "simulated"
    sites = run_simulated(task, seed) if is_simulated else run_real(task, options)
    scores: dict[str, list[Score]] = {method: [] for method in METHODS}
    for site in sites:
        for method, ends in compute_intervals(site.tables, site.prevalence).items():
            for leaf in np.flatnonzero(site.is_used).tolist():
                low, high = ends[:, leaf]
                scores[method].append(site.score(leaf, low, high))

    row: Row = {"leaves": len(scores["now"])}
    for method, scores_of_method in scores.items():
        means = np.array(scores_of_method).mean(axis=0) if scores_of_method else [""] * 3
        for measure, mean in zip(MEASURES, means, strict=True):
            row[f"{method}: {measure}"] = mean
    return row


def run_simulated(task: Task, seed: int) -> Iterator[NewSite]:
    """Leaves of a table; the rates at new sites are known exactly."""
    rng = np.random.default_rng(make_seed(seed, "simulated"))
    simulated = simulate(
        rng,
        n_places=task["places"],
        size=task["size"],
        tau=task["tau"],
        shared=SHARED if task["shared"] else 0.0,
    )
    k = simulated.positives
    n = simulated.samples
    tables = np.stack((n - k, k)).transpose(2, 0, 1)
    is_used = (n > 0).sum(axis=0) >= 3
    for log_odds, prevalence in zip(simulated.new_log_odds, simulated.prevalences, strict=True):
        score = partial(_compare_with_rate, special.expit(log_odds))
        yield NewSite(tables, prevalence=prevalence, is_used=is_used, score=score)


class Simulated(NamedTuple):
    """Positives and samples (environment, leaf), and log odds and prevalences at new sites."""

    positives: NDArray[np.int64]
    samples: NDArray[np.int64]
    new_log_odds: Floats
    prevalences: Floats


def simulate(
    rng: np.random.Generator, *, n_places: int, size: int, tau: float, shared: float
) -> Simulated:
    """Log odds of leaf l in environment e: logit(rate_l) + b_e + c_el, both normal.

    Their variances are shared * tau^2 and (1 - shared) * tau^2.
    """
    n_all = n_places + N_NEW
    n_leaves = len(RATES)
    b = np.sqrt(shared) * tau * rng.standard_normal((n_all, 1))
    c = np.sqrt(1 - shared) * tau * rng.standard_normal((n_all, n_leaves))
    log_odds = special.logit(RATES) + b + c
    shares = rng.dirichlet(np.full(n_leaves, 4.0), n_all)  # of the leaves in each environment
    samples = rng.multinomial(size * n_leaves, shares[:n_places])
    positives = rng.binomial(samples, special.expit(log_odds[:n_places]))
    prevalences = (shares * special.expit(log_odds)).sum(axis=1)
    return Simulated(
        positives=positives,
        samples=samples,
        new_log_odds=log_odds[n_places:],
        prevalences=prevalences[n_places:],
    )


def run_real(task: Task, options: Options) -> Iterator[NewSite]:
    """Leaves of an invariant tree grown without a site, whose counts are noisy."""
    data = load(task["table"], options)
    is_out = data.environments == task["out"]
    tree = InvariantTreeClassifier()
    tree.fit(data.X[~is_out], data.y[~is_out], environments=data.environments[~is_out])
    tables = np.array(tree.model_.leaves)

    leaves = tree.model_.find_leaves(data.X[is_out])
    is_positive = data.y[is_out] == tree.classes_[1]
    n = np.bincount(leaves, minlength=len(tables))
    k = np.bincount(leaves[is_positive], minlength=len(tables))
    # a site of a single class has no log odds
    prevalence = (k.sum() + 0.5) / (n.sum() + 1)
    n_environments = (tables.sum(axis=1) > 0).sum(axis=1)
    is_used = (n_environments >= 3) & (n >= LEAST_SAMPLES) & (len(tables) > 1)
    score = partial(_compare_with_counts, k, n)
    yield NewSite(tables, prevalence=prevalence, is_used=is_used, score=score)


def compute_intervals(tables: Any, prevalence: float) -> Intervals:
    """Log odds (low or high, leaf) by every method; NaN without an interval."""
    expectations = make_expectations(tables, prevalence)
    none = np.nan, np.nan
    ends = [
        np.array([expectation.interval or none for expectation in expectations]).T,
        np.array([expectation.known_interval or none for expectation in expectations]).T,
    ]
    ours = special.logit(np.clip(ends, 1e-12, 1 - 1e-12))
    positives = tables[:, 1].T
    samples = tables.sum(axis=1).T
    return dict(zip(METHODS, [*ours, *compute_meta(positives, samples)], strict=True))


def compute_meta(k: Any, n: Any) -> list[Floats]:
    """Random-effects intervals (low or high, leaf) of log odds, each leaf on its own.

    `k` and `n` are positives and samples (environment, leaf). With log odds theta and their
    variances v, half a sample added, and weights w = 1 / (v + tau^2) of the environments:

        mean      sum(w theta) / sum(w)
        misfit    sum(w (theta - mean)^2)
        tau^2     maximises  sum(log w) - log sum(w) - misfit,  the restricted likelihood, on a grid

    In a single environment there is no interval.
    """
    theta = np.log((k + 0.5) / (n - k + 0.5))
    v = 1 / (k + 0.5) + 1 / (n - k + 0.5)

    # by (tau, environment, leaf), then by (tau, leaf)
    tau_squared = np.linspace(0, 6, 601) ** 2
    w = np.where(n > 0, 1 / (v + tau_squared[:, np.newaxis, np.newaxis]), 0.0)
    total = w.sum(axis=1)
    means = (w * theta).sum(axis=1) / total
    misfits = (w * (theta - means[:, np.newaxis]) ** 2).sum(axis=1)
    sum_log_w = np.log(w, where=w > 0, out=np.zeros_like(w)).sum(axis=1)
    best = (sum_log_w - np.log(total) - misfits).argmax(axis=0)

    # by leaf, at the best tau
    leaves = np.arange(k.shape[1])
    mean = means[best, leaves]
    variance_of_mean = 1 / total[best, leaves]
    n_others = np.maximum((n > 0).sum(axis=0) - 1, 1)  # environments but one
    adjusted_variance = variance_of_mean * misfits[best, leaves] / n_others  # Hartung and Knapp
    half_widths = (
        stats.t.ppf(0.975, np.maximum(n_others - 1, 1))
        * np.sqrt(tau_squared[best] + variance_of_mean),
        stats.t.ppf(0.975, n_others) * np.sqrt(tau_squared[best] + adjusted_variance),
    )
    return [np.array((mean - half_width, mean + half_width)) for half_width in half_widths]


def _compare_with_rate(rates: Floats, leaf: int, low: float, high: float) -> Score:
    """Compare an interval of log odds with the leaf's rate, which is known."""
    return _score(special.expit(low), special.expit(high), rates[leaf])


def _score(low: float, high: float, rate: float) -> Score:
    """The interval score in points: the width plus 40 times the distance of a rate outside."""
    distance = max(low - rate, rate - high, 0.0)
    width = high - low
    return Score(
        inside=float(distance == 0), score=100 * (width + 40 * distance), width=100 * width
    )


def _compare_with_counts(k: Any, n: Any, leaf: int, low: float, high: float) -> Score:
    """Compare an interval with an observed rate, k / n: widened by the error of the latter.

    The log odds at the new site are normal, with quantiles `low` and `high`; the positives a
    binomial draw.
    """
    n_positive = k[leaf]
    n_samples = n[leaf]
    z = stats.norm.ppf((np.arange(200) + 0.5) / 200)
    deviations = z * (high - low) / 2 / stats.norm.ppf(0.975)
    rates = special.expit((low + high) / 2 + deviations)

    counts = np.unique(np.linspace(0, n_samples, 1001).round())
    cumulative = special.bdtr(counts[:, np.newaxis], n_samples, rates).mean(axis=1)
    quantiles = np.searchsorted(cumulative, (0.025, 0.975))
    first, last = np.minimum(quantiles, len(counts) - 1)
    score = _score(counts[first] / n_samples, counts[last] / n_samples, n_positive / n_samples)

    # whether the count is between the quantiles, by its mid-p-value
    at_most = special.bdtr(n_positive, n_samples, rates).mean()
    fewer = special.bdtr(n_positive - 1, n_samples, rates).mean() if n_positive else 0.0
    mid_p = (at_most + fewer) / 2
    return score._replace(inside=float(min(mid_p, 1 - mid_p) > 0.025))


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
    """Coverage and score of each method in each cell, means over the leaves."""
    lines = []
    for key, cell in group_rows(rows, *keys).items():
        names = [key] if isinstance(key, str) else [*key]
        n_leaves = read_numbers(cell, "leaves")
        line = [TITLES.get(name, name) for name in names]
        for method in METHODS:
            inside = np.average(read_numbers(cell, f"{method}: inside"), weights=n_leaves)
            score = np.average(read_numbers(cell, f"{method}: score"), weights=n_leaves)
            line.append(f"{inside:.3f}, {score:.1f}")
        lines.append([*line, f"{n_leaves.sum():,.0f}"])
    return Table(name, caption, [*header, *METHODS, "leaves"], lines)


def _find(rows: Rows) -> Iterator[str]:
    """The coverage of each method where environments differ, over the simulated cells."""
    heterogeneous = [row for row in rows if float(row["tau"]) > 0]
    if not heterogeneous:
        return
    cells = group_rows(heterogeneous, "places", "size", "tau", "shared").values()
    for method in METHODS:
        shares = [read_numbers(cell, f"{method}: inside").mean() for cell in cells]
        scores = [read_numbers(cell, f"{method}: score").mean() for cell in cells]
        n_met = sum(GOAL[0] <= share <= GOAL[1] for share in shares)
        yield (
            f"{method}, tau above 0: coverage {min(shares):.3f} to {max(shares):.3f}, mean "
            f"{np.mean(shares):.3f}, {n_met} of {len(shares)} cells within {GOAL[0]:g} to "
            f"{GOAL[1]:g}; mean score {np.mean(scores):.1f} points."
        )
