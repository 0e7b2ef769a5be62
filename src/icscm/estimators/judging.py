"""The test of the screen: the column whose effect differs most between environments.

The learner is cross-fitted, so that no row's score comes from a model fitted on it. A common slope
and an intercept for each environment turn the scores into probabilities. Three statistics of a
column follow, each a heterogeneity (`icscm.stats.heterogeneity`), a deviance:

    residual       the effect of a cut on the residuals
    contribution   the slope of the residuals on the column's contribution to the scores, by itself
                   and given the contributions of the other columns
    total          the effect of a cut, the model's part included, beyond what interactions with
                   other columns explain inside the environments

The third is for columns that identify an environment, such as a value that one hospital never
records: a flexible learner then learns the shortcut's effect at each hospital, and leaves no
residual. The largest of the three, divided by the deviance that the model explains within
environments, is the column's share of heterogeneity.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any, Final, NamedTuple

import numpy as np

from icscm._constants import CHANCE_LEVEL
from icscm._lazy import special
from icscm._types import Array, FloatArray, IntArray
from icscm.engine.clusters import square_sums
from icscm.engine.counts import CountCube, Cut
from icscm.engine.leaf_tables import LeafTables, compute_halves
from icscm.sources.stored import StoredSource
from icscm.stats.design_effects import compute_design_effects
from icscm.stats.heterogeneity import (
    Heterogeneity,
    compare_effects,
    measure_heterogeneity,
    remove_shape,
)
from icscm.stats.logistic import fit_logistic_regression
from icscm.stats.ranking import compute_auc
from icscm.stats.replication import measure_columns
from icscm.stats.splits import find_quantile

QUESTIONS: Final = ("residual", "contribution", "total")
# Contributions that are compared jointly, and the ridge added to their information.
_MAX_JOINT: Final = 30
_NEXT_TO_NOTHING: Final = 1e-3
# A column is a copy of a rejected one if it explains this share of the variance of its cut.
_COPY: Final = 0.8


class Contributions(NamedTuple):
    """The contributions of some columns to the scores of some rows (draw, row, column, learner).

    The scores of the rows less those with the column drawn from other rows of the environment.
    """

    rows: IntArray
    columns: IntArray
    values: FloatArray


@dataclass
class ColumnEffect:
    """The result for a column: its share of heterogeneity and the cut that has it.

    `effects` and `weights` are by environment, of the cut, with the other columns held fixed;
    `least_share` is the smallest share that would have been significant. `round` is 0 for a column
    that was never tested.
    """

    share: float = 0.0
    p_value: float = 1.0
    question: str = QUESTIONS[0]
    cut: Cut | None = None
    effects: FloatArray | None = None
    weights: FloatArray | None = None
    tau: float = 0.0
    i2: float = 0.0
    least_share: float = np.inf
    round: int = 0


class Round(NamedTuple):
    """The results for all columns, and the cross-fitted probabilities of the rows."""

    columns: dict[int, ColumnEffect]
    probabilities: FloatArray
    explained: float


def combine_scores(
    scores: FloatArray, labels: Array, environments: Array, n_environments: int
) -> tuple[FloatArray, FloatArray]:
    """Slopes of the learners' scores (row, learner), and an intercept for each environment.

    A learner whose slope would be below 0 is left out.
    """
    active = list(range(scores.shape[1]))
    while True:
        fit = fit_logistic_regression(
            scores[:, active],
            labels,
            environments,
            n_environments=n_environments,
            initial_slope=1.0 / len(active),
            ridge=1e-9,
        )
        assert fit is not None  # with a ridge, slopes are always determined
        if len(active) == 1 or fit.slopes.min() >= 0:
            slopes = np.zeros(scores.shape[1])
            slopes[active] = fit.slopes
            return slopes, fit.intercepts
        active.pop(int(fit.slopes.argmin()))


class Judge:
    """Judges the columns of a table that was binned once."""

    def __init__(self, source: StoredSource) -> None:
        self._source = source
        self._n_environments = len(source.environments)
        found = source.rows.list_cells()
        cells = found.outcomes, found.environments
        # of the rows as the table has them
        self.labels, self.environments = (each[source.position] for each in cells)
        self._sorted_environments = cells[1]
        self._groups = source.groups

    def measure_replication(self) -> dict[int, tuple[float, float]]:
        """For each column its replication, and the deviance that it explains by itself."""
        sizes = np.bincount(self.environments, minlength=self._n_environments)
        rates = np.bincount(self.environments, self.labels, self._n_environments) / sizes
        found: dict[int, tuple[float, float]] = {}
        for cube in self._sum(np.column_stack(self._derive(rates[self.environments])[:2])):
            pairs = zip(*(each.tolist() for each in measure_columns(cube.counts)), strict=True)
            found |= dict(zip(cube.features.tolist(), pairs, strict=True))
        return found

    def measure_variation(self, columns: IntArray, scores: FloatArray) -> FloatArray:
        """Variance of the scores between the bins of each of some columns."""
        found = np.zeros(len(columns))
        values = np.column_stack((scores - scores.mean(), np.ones(len(scores))))
        for cube in self._sum(values, columns):
            sums = cube.counts.sum(axis=3)
            between = (sums[:, :, 0] ** 2 / np.maximum(sums[:, :, 1], 1.0)).sum(axis=1)
            found[np.searchsorted(columns, cube.features)] = between
        return found

    def _derive(self, p: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Gradient, hessian and weight of each row.

        The weight is 1 over the design effect of its environment: less than 1 where rows that
        belong together are alike.
        """
        g, h, weights = self.labels - p, p * (1.0 - p), np.ones(len(p))
        if self._groups is not None:
            codes = self._groups.codes[self._source.position]
            squares = square_sums(g, codes, self._groups.starts)
            own = [np.bincount(self.environments, v, self._n_environments) for v in (h, weights)]
            weights = 1.0 / compute_design_effects(squares, *own)[self.environments]
        return g * weights, h * weights, weights

    def judge(self, columns: IntArray, scores: FloatArray, made: Contributions) -> Round:
        """Judge some columns, given the cross-fitted scores (row, learner) of a model of them."""
        slopes, intercepts = combine_scores(
            scores, self.labels, self.environments, self._n_environments
        )
        p = special.expit(scores @ slopes + intercepts[self.environments]).clip(1e-6, 1.0 - 1e-6)
        g, h, weights = self._derive(p)
        explained = self._explain(p, weights, slice(None))
        found, n_cuts = self._judge_residuals(columns, np.column_stack((g, h)), explained)
        if explained <= 0:
            return Round(found, p, explained)
        # contribution and total, for rows and columns with known contributions
        rows, places = made.rows, [k for k, j in enumerate(made.columns.tolist()) if j in found]
        g, h, there = g[rows], h[rows], max(self._explain(p, weights, rows), 1e-9)
        draws = made.values @ slopes
        c, noise = draws.mean(axis=0), draws.var(axis=0, ddof=1) / len(draws)
        for pair in measure_slopes(c, g, h, self.environments[rows], self._n_environments):
            for k in places:
                slope = compare_effects(*(each[np.newaxis, :, k] for each in pair))
                column = found[int(made.columns[k])]
                _update(column, slope, 0, QUESTIONS[1], there, 2 * len(made.columns))
        values = np.zeros((len(p), 4))
        for k in places:
            own = g + h * c[:, k], h, h * c[:, k], h * (c[:, k] ** 2 - noise[:, k])
            values[rows] = np.column_stack(own)
            feature = int(made.columns[k])
            self._judge_total(found[feature], feature, values, there, n_cuts)
        return Round(found, p, explained)

    def _explain(self, p: FloatArray, weights: FloatArray, rows: slice | IntArray) -> float:
        """The deviance that probabilities explain within environments, over some rows."""
        labels, own = self.labels[rows], self.environments[rows]
        sizes = np.maximum(np.bincount(own, minlength=self._n_environments), 1)
        rate = (np.bincount(own, labels, self._n_environments) / sizes)[own].clip(1e-9, 1.0 - 1e-9)
        gained = np.where(labels == 1, np.log(p[rows] / rate), np.log((1 - p[rows]) / (1 - rate)))
        return float(2.0 * (weights[rows] * gained).sum())

    def _sum(self, values: FloatArray, columns: IntArray | None = None) -> list[CountCube]:
        ordered = np.empty_like(values)
        ordered[self._source.position] = values
        return [*self._source.piece.sum_values(ordered, self._sorted_environments, columns)]

    def _halve(self, cube: CountCube) -> LeafTables:
        return compute_halves(cube, self._source.columns)

    def _judge_residuals(
        self, columns: IntArray, residuals: FloatArray, explained: float
    ) -> tuple[dict[int, ColumnEffect], int]:
        """The residual statistics, and the number of cuts tested."""
        found: dict[int, ColumnEffect] = {}
        measured, n_cuts = [], 0
        hessians = np.bincount(self.environments, residuals[:, 1], self._n_environments)
        totals = np.stack((np.zeros_like(hessians), hessians))
        for cube in self._sum(residuals, columns):
            halves = self._halve(replace(cube, counts=remove_shape(cube.counts)))
            each = measure_heterogeneity(halves.tables, totals)
            n_cuts += int(np.count_nonzero(each.dof))
            measured.append((halves, each))
        for halves, each in measured:
            at = halves.find_best(np.where(each.dof > 0, each.deviance + 1e-9 * each.statistic, -1))
            for feature, place in zip(halves.features.tolist(), at.tolist(), strict=True):
                column = ColumnEffect(cut=halves.locate(place))
                _update(column, each, place, QUESTIONS[0], max(explained, 1e-9), n_cuts)
                found[feature] = column
        return found, n_cuts

    def _judge_total(
        self, column: ColumnEffect, feature: int, values: FloatArray, explained: float, n_cuts: int
    ) -> None:
        """The total statistics, and the effects of the tested cut, the model's part included.

        `values` of the rows are g + h c, h, h c and h (c^2 less its variance by chance), with what
        the model makes of the column, c.
        """
        (cube,) = self._sum(values, np.array([feature]))
        sums: Array = cube.counts[0]
        # by bin and environment: effects of interactions within environments
        interaction = sums[:, 3] - sums[:, 2] ** 2 / np.maximum(sums[:, 1], 1e-12)
        halves = self._halve(replace(cube, counts=remove_shape(cube.counts[:, :, :2])))
        hessians = sums[:, 1].sum(axis=0)
        each = measure_heterogeneity(halves.tables, np.stack((0.0 * hessians, hessians)))
        beyond = each.deviance - max(float(interaction.sum()), 0.0)
        at = int(beyond.argmax())
        if beyond[at] > 0:
            before = column.share
            _update(column, each, at, QUESTIONS[2], explained, n_cuts, float(beyond[at]))
            column.cut = halves.locate(at) if column.share > before else column.cut
        plain = self._halve(replace(cube, counts=cube.counts[:, :, :2]))
        shown = measure_heterogeneity(plain.tables, sums[:, :2].sum(axis=0).copy())
        places = [i for i in range(len(plain.tables)) if plain.locate(i) == column.cut]
        if places:
            column.effects, column.weights = -shown.effects[places[0]], shown.weights[places[0]]


def measure_slopes(
    c: FloatArray, g: FloatArray, h: FloatArray, environments: Array, n_environments: int
) -> tuple[tuple[FloatArray, FloatArray], tuple[FloatArray, FloatArray]]:
    """Effects and weights (environment, column) of contributions c: each alone, and jointly.

    One step of Newton's method from the model, whose slopes are 0 here. Jointly, each is given all
    others: of two times whose difference is a shortcut, neither has an effect alone. Within each
    environment c is centred, in place. Only the largest contributions are used jointly.
    """
    alone, jointly = np.zeros((2, 2, n_environments, c.shape[1]))
    used = np.sort(np.argsort(-(c**2).sum(axis=0), kind="stable")[:_MAX_JOINT])
    for k in range(n_environments):
        own = np.flatnonzero(environments == k)
        if not len(own):
            continue
        c[own] -= np.average(c[own], axis=0, weights=h[own])
        score = c[own].T @ g[own]
        alone[1, k] = h[own] @ c[own] ** 2
        alone[0, k] = score / np.maximum(alone[1, k], _NEXT_TO_NOTHING)
        information = (c[own][:, used] * h[own, np.newaxis]).T @ c[own][:, used]
        inverse = np.linalg.inv(information + _NEXT_TO_NOTHING * np.eye(len(used)))
        jointly[0, k, used], jointly[1, k, used] = inverse @ score[used], 1.0 / inverse.diagonal()
    return (alone[0], alone[1]), (jointly[0], jointly[1])


def _update(
    column: ColumnEffect,
    found: Heterogeneity,
    at: int,
    question: str,
    explained: float,
    n_tests: int,
    deviance: float | None = None,
) -> None:
    """Keep a larger share of heterogeneity if it is significant; the first one always."""
    total = float(found.weights[at].sum())
    dof = int(found.dof[at])
    share = (float(found.deviance[at]) if deviance is None else deviance) / explained
    n_tests = max(n_tests, 1) * len(QUESTIONS)
    p_value = min(float(found.p_values[at]) * n_tests, 1.0)
    if question == QUESTIONS[0]:
        spread = total - float((found.weights[at] ** 2).sum()) / max(total, 1e-300)
        critical = find_quantile(CHANCE_LEVEL / n_tests, dof) - dof - 3.0 * np.sqrt(2.0 * dof)
        if dof > 0:
            column.least_share = max(critical, 0.0) * total / max(spread, 1e-9) / explained
        # of the rule being true
        column.effects, column.weights = -found.effects[at], found.weights[at]
    elif p_value >= CHANCE_LEVEL or share <= column.share:
        return
    column.share, column.p_value, column.question = share, p_value, question
    column.tau, column.i2 = float(np.sqrt(found.tau_squared[at])), float(found.i2[at])


def find_copied(
    column: int, rejected: Iterable[int], effects: dict[int, ColumnEffect], source: Any
) -> int | None:
    """The rejected column that a column nearly copies: its bins determine the other's cut."""
    codes = source.piece.find_store(column).find_codes(column)
    for other in rejected:
        cut = effects[other].cut
        if cut is None:
            continue
        rule = source.columns.make_binned_rule(cut)
        truth = source.piece.find_covered(source.piece.rows, rule).astype(float)
        sums = np.bincount(codes, truth), np.bincount(codes)
        between = (sums[0] ** 2 / np.maximum(sums[1], 1)).sum() / len(truth) - truth.mean() ** 2
        if between >= _COPY * truth.var() > 0:
            return other
    return None


def describe_round(number: int, columns: IntArray, found: Round, judge: Judge) -> dict[str, Any]:
    """Cross-validated scores at the training environments."""
    from sklearn.metrics import log_loss

    aucs, sizes = [], []
    for k in np.unique(judge.environments):
        own = np.flatnonzero(judge.environments == k)
        auc = compute_auc(judge.labels[own] == 1, found.probabilities[own])
        if auc is not None:
            aucs.append(auc)
            sizes.append(len(own))
    return {
        "round": number,
        "n_columns": len(columns),
        "auc": float(np.average(aucs, weights=sizes)) if aucs else np.nan,
        "log_loss": float(log_loss(judge.labels, found.probabilities)),
        "deviance_explained": found.explained,
        "rejected": None,
    }
