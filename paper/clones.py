"""A gene that a clone carries, with lineages as groups and without, on simulated genomes."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, ndtr

from icscm import ICSCMClassifier, InvariantTreeClassifier
from icscm.exceptions import IcscmWarning
from icscm.sources.memory import open_memory
from icscm.stats.design_effects import compute_design_effects
from icscm.stats.heterogeneity import compare_cut_effects
from paper.base import Options, Summary, Table, cross, make_long_plan
from paper.runner import Plan, Row, Rows, Task, make_seed, split_failed
from paper.shares import find_mean, format_mean, group_rows, read_numbers

TITLE = "Clones and the genes that they carry"
DESCRIPTION = (
    "Genomes of lineages in four countries; one gene causes resistance. In one or two countries a "
    "resistant lineage has expanded to 40 % of the genomes and carries a passenger gene, which "
    "causes nothing. Trees and rules with lineages as groups and without."
)

N_PLACES = 4
# In each country: lineages, genomes, and the share of the latter that the clone has.
N_LINEAGES = 60
N_GENOMES = 500
CLONE_SHARE = 0.4
# Genes, and the numbers of two of them.
N_GENES = 30
CAUSE = 0
PASSENGER = 1
# Log odds of resistance: effect of the cause, without it, and their deviation between lineages.
EFFECT = 2.5
BASELINE = -1.5
SPREAD = 1.0
N_RUNS = 100
LEARNERS: dict[str, Callable[[], Any]] = {
    "tree": lambda: InvariantTreeClassifier(n_jobs=1),
    "rules": lambda: ICSCMClassifier(n_jobs=1),
}
COLUMNS_OUT = ("cause", "cause_out", "passenger", "passenger_out", "others_out", "p_passenger")


class Genomes(NamedTuple):
    """Genes, resistance, country and lineage of each genome."""

    X: NDArray[np.float64]
    y: NDArray[np.int64]
    places: NDArray[np.int64]
    lineages: NDArray[np.int64]


def make_plan(options: Options) -> Plan:
    """A task for each simulated table, learner, and with groups or without."""
    clones = [1] if options.quick else [0, 1, 2]
    cells = cross(clones=clones, learner=[*LEARNERS], groups=["no", "lineage"])
    return make_long_plan(options, options.repeat(cells, N_RUNS), run_task, COLUMNS_OUT)


def simulate(n_clones: int, seed: int) -> Genomes:
    """Lineages of unequal sizes, each with the genes and the risk of its founder.

    The clone is the first lineage of the first `n_clones` countries: it has cause and passenger,
    and its own risk, two standard deviations above the mean.

    >>> simulate(1, 0).X.shape
    (2000, 30)
    """
    rng = np.random.default_rng(seed)
    places = np.repeat(np.arange(N_PLACES), N_GENOMES)
    shares = rng.dirichlet(np.full(N_LINEAGES, 0.5), N_PLACES)  # by (country, lineage)
    shares[:n_clones] *= 1 - CLONE_SHARE
    shares[:n_clones, 0] += CLONE_SHARE
    numbers_in_place = np.concatenate(
        [rng.choice(N_LINEAGES, N_GENOMES, p=shares_of_place) for shares_of_place in shares]
    )
    lineages = places * N_LINEAGES + numbers_in_place

    n_founders = N_PLACES * N_LINEAGES
    founders = rng.random((n_founders, N_GENES)) < rng.uniform(0.1, 0.5, N_GENES)
    founders[:, PASSENGER] = rng.random(n_founders) < 0.1
    risk = rng.normal(0, SPREAD, n_founders)
    clones = np.arange(n_clones) * N_LINEAGES
    founders[clones[:, np.newaxis], [CAUSE, PASSENGER]] = True
    risk[clones] = 2 * SPREAD

    X = founders[lineages].astype(float)
    # mutation and exchange: a gene of a genome in 50 is not its founder's
    X = np.where(rng.random(X.shape) < 0.02, 1 - X, X)
    y = rng.random(len(X)) < expit(BASELINE + EFFECT * X[:, CAUSE] + risk[lineages])
    return Genomes(X, y.astype(np.int64), places, lineages)


def run_task(task: Task, seed: int) -> Row:
    """Whether cause and passenger are used and rejected; the test of the passenger's effect."""
    seed = make_seed(task["seed"], task["clones"], task["run"])  # the same for all ways
    X, y, places, lineages = simulate(task["clones"], seed)
    groups = None if task["groups"] == "no" else lineages
    with warnings.catch_warnings(action="ignore", category=IcscmWarning):
        learner = LEARNERS[task["learner"]]().fit(X, y, environments=places, groups=groups)
    used = {*learner.features_used_}
    # only trees list rejected columns
    rejections = getattr(learner.trace_, "rejected_columns", ())
    rejected = {rejection.rule.feature for rejection in rejections}
    return {
        "cause": int(CAUSE in used),
        "cause_out": int(CAUSE in rejected),
        "passenger": int(PASSENGER in used),
        "passenger_out": int(PASSENGER in rejected),
        "others_out": len(rejected - {CAUSE, PASSENGER}) / (N_GENES - 2),
        "p_passenger": compute_p_value(X[:, PASSENGER], y, places, groups),
    }


def compute_p_value(
    x: NDArray[np.float64],
    y: NDArray[np.int64],
    places: NDArray[np.int64],
    groups: NDArray[np.int64] | None,
) -> float:
    """The p-value of a gene's mean effect over the countries.

    The effect in a country is a Newton step from 0, from sums of gradients g and hessians h of the
    log loss, which are divided by the country's design effect where rows come in groups.
    """
    n_places = int(places.max()) + 1
    sizes = np.bincount(places)
    rates = np.bincount(places, y) / sizes
    variances = rates * (1 - rates)
    design_effects = np.ones(n_places)
    if groups is not None:
        source = open_memory(x[:, np.newaxis], y, environments=places, groups=groups).source
        assert source.clusters is not None
        cluster_sums = source.clusters.square_residuals([], rates[np.newaxis])
        design_effects = compute_design_effects(cluster_sums, sizes * rates * (1 - rates), sizes)

    g = y - rates[places]
    h = variances[places]

    def sum_by_place(values: NDArray[np.float64]) -> NDArray[np.float64]:
        return np.bincount(places, values, n_places) / design_effects

    effects = compare_cut_effects(
        sum_by_place(g * x)[np.newaxis],
        sum_by_place(h * x)[np.newaxis],
        total_gradients=sum_by_place(g),
        total_hessians=sum_by_place(h),
    )
    z = float(effects.mean[0]) * np.sqrt(float(effects.weights[0].sum()))
    return float(2 * ndtr(-abs(z)))


def summarise(rows: Rows) -> Summary:
    """One table: clones, learner, with groups or without."""
    rows, failures = split_failed(rows)
    lines = []
    findings = []
    for key, cell in sorted(group_rows(rows, "clones", "learner", "groups").items()):
        shares = [format_mean(read_numbers(cell, column)) for column in COLUMNS_OUT[:-1]]
        is_significant = read_numbers(cell, "p_passenger") < 0.05
        lines.append([*key, str(len(cell)), *shares, f"{is_significant.mean():.2f}"])
        n_clones, learner, groups = key
        findings.append(
            f"{n_clones} clones, {learner}, groups: {groups}: the cause is used in "
            f"{find_mean(cell, 'cause'):.2f}, the passenger in {find_mean(cell, 'passenger'):.2f} "
            f"of {len(cell)} runs."
        )
    header = ["clones", "learner", "groups", "runs", "cause used", "cause rejected"]
    header += ["passenger used", "passenger rejected", "others rejected", "passenger p < 0.05"]
    caption = (
        f"{N_PLACES} countries of {N_GENOMES} genomes, {N_GENES} genes: share of runs in which the "
        "causal gene and the passenger of a clone are used by the model and rejected as "
        "heterogeneous or unreplicated, of other genes rejected, and of runs in which the mean "
        "effect of the passenger is significant."
    )
    return Summary([Table("clones", caption, header, lines)], (), [*findings, *failures])
