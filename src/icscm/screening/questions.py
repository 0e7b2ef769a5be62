"""Three questions about a column, each answered by the heterogeneity of an effect.

A *shortcut* is a column whose effect on the outcome differs between environments. A model was
fitted that has the same effects everywhere. Three questions find a shortcut in it:

    residual       Does a cut of the column still have an effect on the model's residuals, and a
                   different one in each environment?
    contribution   Would the model need more of the column's contribution in some environments, and
                   less in others?
    total          Does the whole effect of a cut, the part that the model has learned included,
                   differ more between environments than interactions with other columns explain?

The first question is the plain one. The second finds what is spread over several columns, or over
many cuts. The third is for columns that tell the environment, such as a value that one hospital
never records: a flexible learner fits the shortcut in each hospital by itself, and leaves nothing
in the residuals.

Heterogeneity is a deviance (`icscm.stats.heterogeneity`). Divided by the deviance that the model
explains within environments it is the *share*, by which columns are compared.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Final, Literal

import numpy as np

from icscm._constants import CHANCE_LEVEL
from icscm._types import IntArray
from icscm.engine.counts import Cut, MomentCube
from icscm.engine.moments import compute_cut_moments
from icscm.screening.binned_table import BinnedTable
from icscm.screening.contributions import ColumnContribution
from icscm.screening.residuals import Residuals
from icscm.stats.heterogeneity import (
    MIN_HESSIAN,
    EffectHeterogeneity,
    compare_cut_effects,
    remove_common_effects,
)
from icscm.stats.splits import find_quantile

Question = Literal["residual", "contribution", "total"]

N_QUESTIONS: Final = 3
# A model that explains nothing has no deviance to divide by.
MIN_EXPLAINED: Final = 1e-9
# So small a multiple of Cochran's Q decides only between cuts of equal heterogeneity.
TIE_BREAK: Final = 1e-9


# --- from a heterogeneity to an answer ------------------------------------------------------------


@dataclass(frozen=True)
class Scale:
    """What turns a heterogeneity into a share, and its p-value into a corrected one.

    Attributes
    ----------
    explained : float
        The deviance that the model explains within environments: a share is of this.
    n_compared : int
        How many effects, of all columns together, are compared to answer one question. The largest
        of many differs by chance, so p-values are corrected for their number (Bonferroni).
    """

    explained: float
    n_compared: int

    @property
    def n_tests(self) -> int:
        """The number of tests to correct for: three questions are asked."""
        return N_QUESTIONS * max(self.n_compared, 1)

    def compute_share(self, deviance: float) -> float:
        """Return a heterogeneity as a share of the deviance that the model explains."""
        return deviance / max(self.explained, MIN_EXPLAINED)

    def correct_p_value(self, p_value: float) -> float:
        """Return the p-value of a single test, corrected for all tests."""
        return min(p_value * self.n_tests, 1.0)

    def find_detectable_share(self, heterogeneity: EffectHeterogeneity) -> float:
        """Return the smallest share of an effect that would have been significant."""
        critical_value = find_quantile(CHANCE_LEVEL / self.n_tests, heterogeneity.dof)
        return self.compute_share(heterogeneity.compute_detectable_deviance(critical_value))


@dataclass(frozen=True, eq=False)
class Answer:
    """The answer to one question about one column: the effect that differs most.

    Attributes
    ----------
    question : str
        The question that was asked.
    cut : Cut
        The cut that has the effect. A slope has none, and is given one to show.
    heterogeneity : EffectHeterogeneity
        How much the effect differs between environments.
    share : float
        The heterogeneity as a share of the deviance that the model explains.
    p_value : float
        Corrected for all tests.
    """

    question: Question
    cut: Cut
    heterogeneity: EffectHeterogeneity
    share: float
    p_value: float

    @property
    def is_significant(self) -> bool:
        """Whether the effect differs by more than chance."""
        return self.p_value < CHANCE_LEVEL


def find_strongest_answer(residual: Answer, others: Iterable[Answer]) -> Answer:
    """Return the answer with the largest share, among `residual` and the significant others.

    The answer of the first question stands even if it is not significant, so that each column has
    one to show.
    """
    significant = [answer for answer in others if answer.is_significant]
    return max([residual, *significant], key=lambda answer: answer.share)


# --- question 1: residual -------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class ResidualEffect:
    """The cut of a column whose effect on the residuals differs most."""

    cut: Cut
    heterogeneity: EffectHeterogeneity


@dataclass(frozen=True, eq=False)
class ResidualEffects:
    """For each column the cut whose effect on the residuals differs most.

    `n_compared` is how many cuts of all columns were compared to find them.
    """

    strongest: dict[int, ResidualEffect]
    n_compared: int


def compare_residual_effects(
    table: BinnedTable, residuals: Residuals, columns: IntArray
) -> ResidualEffects:
    """Compare the effects of all cuts of some columns on the residuals, a block at a time.

    Answers are made of them later: p-values depend on the number of cuts of all columns, which is
    only known at the end.
    """
    n_environments = table.n_environments
    total_hessians = np.zeros(n_environments)
    total_hessians += np.bincount(table.environments, residuals.hessians, n_environments)
    strongest: dict[int, ResidualEffect] = {}
    n_compared = 0
    for cube in table.sum_residuals(residuals, columns):
        moments = compute_cut_moments(_remove_common(cube), table.columns)
        heterogeneity = compare_cut_effects(
            moments.gradients,
            moments.hessians,
            # of each column, after what is common to all environments was removed
            total_gradients=np.zeros(n_environments),
            total_hessians=total_hessians,
        )
        is_comparable = heterogeneity.dof > 0
        n_compared += int(np.count_nonzero(is_comparable))

        # Most columns have no heterogeneity beyond chance in any cut. They are shown to the user
        # with the cut that differs most all the same, by Cochran's Q.
        ranks = heterogeneity.deviance + TIE_BREAK * heterogeneity.statistic
        best = moments.cuts.find_best(np.where(is_comparable, ranks, -1.0))
        for column, number in zip(cube.columns.tolist(), best.tolist(), strict=True):
            strongest[column] = ResidualEffect(
                cut=moments.cuts.locate(number), heterogeneity=heterogeneity.select(number)
            )
    return ResidualEffects(strongest=strongest, n_compared=n_compared)


def answer_residual_question(effect: ResidualEffect, scale: Scale) -> Answer:
    """Answer by the cut whose effect on the residuals differs most."""
    return Answer(
        question="residual",
        cut=effect.cut,
        heterogeneity=effect.heterogeneity,
        share=scale.compute_share(effect.heterogeneity.deviance),
        p_value=scale.correct_p_value(effect.heterogeneity.p_value),
    )


# --- question 2: contribution ---------------------------------------------------------------------


def answer_contribution_question(slope: EffectHeterogeneity, *, cut: Cut, scale: Scale) -> Answer:
    """Answer by the slope of the residuals on the column's contribution.

    A slope has no cut, but users are shown one with every finding: `cut`.
    """
    return Answer(
        question="contribution",
        cut=cut,
        heterogeneity=slope,
        share=scale.compute_share(slope.deviance),
        p_value=scale.correct_p_value(slope.p_value),
    )


# --- question 3: total ----------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class TotalEffects:
    """Sums for the whole effect of one column, the part that the model has learned included.

    `interactions` is the deviance that interactions of the column with others explain.
    """

    cube: MomentCube
    interactions: float


def sum_total_effects(
    table: BinnedTable, residuals: Residuals, contribution: ColumnContribution
) -> TotalEffects:
    """Add up the whole effect of one column, by bin and environment.

    What would the residuals be if the model did not use the column? Without its contribution c, the
    log odds of a row are lower by c, its probability by about h c, and so its gradient is higher:
    the *total gradient* is g + h c.

    If the column interacts with others, c varies among the rows of a bin in an environment. The
    deviance of this variation is the sum of  h (c - mean)^2,  with the mean weighted by h. That is

        sum(h c^2) - sum(h c)^2 / sum(h)        for each bin and environment

    where each c^2 is too large by the variance of c, and is corrected. `residuals` are those of the
    rows that have a contribution, and contributions are centred by environment.
    """
    g = residuals.gradients
    h = residuals.hessians
    c = contribution.values
    c_squared = c**2 - contribution.variances

    values = np.zeros((len(table.outcomes), 4))
    values[contribution.rows] = np.column_stack((g + h * c, h, h * c, h * c_squared))
    [block] = table.sum_by_bin(values, np.array([contribution.column]))
    total_gradients, hessians, sums_hc, sums_hcc = np.moveaxis(block.sums, 2, 0)

    variation = sums_hcc - sums_hc**2 / np.maximum(hessians, MIN_HESSIAN)
    return TotalEffects(
        cube=MomentCube(
            columns=block.columns,
            gradients=total_gradients,
            hessians=hessians,
            layout=block.layout,
        ),
        interactions=max(float(variation.sum()), 0.0),
    )


def answer_total_question(total: TotalEffects, table: BinnedTable, scale: Scale) -> Answer:
    """Answer by the cut whose total effect differs most, less what interactions explain.

    An interaction makes the effect of a column differ between environments in which the other
    column is distributed differently. That is no shortcut, so its deviance does not count.
    """
    moments = compute_cut_moments(_remove_common(total.cube), table.columns)
    heterogeneity = compare_cut_effects(
        moments.gradients,
        moments.hessians,
        total_gradients=np.zeros(table.n_environments),
        total_hessians=total.cube.hessians[0].sum(axis=0),
    )
    number = int(heterogeneity.deviance.argmax())
    strongest = heterogeneity.select(number)
    return Answer(
        question="total",
        cut=moments.cuts.locate(number),
        heterogeneity=strongest,
        share=scale.compute_share(strongest.deviance - total.interactions),
        p_value=scale.correct_p_value(strongest.p_value),
    )


def find_total_effect(total: TotalEffects, table: BinnedTable, cut: Cut) -> EffectHeterogeneity:
    """Return the whole effect of one cut in each environment, to show it to the user.

    Unlike in the answer, an effect common to all environments stays in it.
    """
    moments = compute_cut_moments(total.cube, table.columns)
    heterogeneity = compare_cut_effects(
        moments.gradients,
        moments.hessians,
        total_gradients=total.cube.gradients[0].sum(axis=0),
        total_hessians=total.cube.hessians[0].sum(axis=0),
    )
    return heterogeneity.select(moments.cuts.find(cut))


def _remove_common(cube: MomentCube) -> MomentCube:
    """Return the moments less what effects common to all environments explain."""
    return replace(cube, gradients=remove_common_effects(cube.gradients, cube.hessians))
