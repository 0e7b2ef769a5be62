"""One round of the screen: tests of columns for effects that differ between environments.

The screen looks for *shortcuts*, columns whose effect on the outcome is not the same in all
environments (hospitals). In each round a model of the remaining columns is cross-fitted, every
column is tested given that model, and the caller rejects the column with the largest *share*: its
heterogeneity between environments, divided by the deviance that the model explains.

A column is tested by three questions, which `icscm.screening.questions` explains. The first, about
the model's residuals, is asked of all columns and uses all rows. The second and the third need the
*contributions* of columns to the model. These are costly to compute, so in a large table they are
known for some columns and some rows only.
"""

from dataclasses import dataclass

import numpy as np

from icscm._constants import CHANCE_LEVEL
from icscm._types import FloatArray, IntArray
from icscm.engine.counts import Cut
from icscm.screening.binned_table import BinnedTable
from icscm.screening.contributions import (
    Contributions,
    LearnerContributions,
    find_largest_contributions,
    fit_joint_slopes,
    fit_separate_slopes,
)
from icscm.screening.questions import (
    Answer,
    Question,
    Scale,
    answer_contribution_question,
    answer_residual_question,
    answer_total_question,
    compare_residual_effects,
    find_strongest_answer,
    find_total_effect,
    sum_total_effects,
)
from icscm.screening.residuals import Residuals, fit_score_model
from icscm.stats.heterogeneity import EffectHeterogeneity
from icscm.stats.ranking import compute_auc


@dataclass(frozen=True, eq=False)
class ColumnResult:
    """The result of the tests of a column. The defaults are those of a column never tested.

    Attributes
    ----------
    share : float
        The heterogeneity as a share of the deviance that the model explains.
    p_value : float
        Corrected for all tests of the round (Bonferroni).
    question : str
        The question whose answer has the largest share.
    cut : Cut or None
        The rule on the column whose effect differs most.
    effects, weights : array of shape (n_environments,) or None
        The effect of the cut in each environment, other columns held fixed, with the inverse of
        its variance.
    tau, i2 : float
        The standard deviation of the true effects between environments, and the share of the
        observed differences that is not chance.
    detectable_share : float
        The smallest share that would have been significant: a column is only cleared if this is
        small.
    round : int
        The last round in which the column was tested; 0 if never.
    """

    share: float = 0.0
    p_value: float = 1.0
    question: Question = "residual"
    cut: Cut | None = None
    effects: FloatArray | None = None
    weights: FloatArray | None = None
    tau: float = 0.0
    i2: float = 0.0
    detectable_share: float = np.inf
    round: int = 0

    @property
    def significant_share(self) -> float:
        """The share, 0 if it is not significant."""
        return self.share if self.p_value < CHANCE_LEVEL else 0.0


@dataclass(frozen=True, eq=False)
class RoundResults:
    """The result of each column, and the model that they are about.

    `probabilities` are cross-fitted, one for each row. `explained` is the deviance that they
    explain within environments.
    """

    columns: dict[int, ColumnResult]
    probabilities: FloatArray
    explained: float

    def find_worst(self, tolerance: float) -> int | None:
        """Find the column to reject: that of the largest significant share above the tolerance."""
        shares = {column: result.significant_share for column, result in self.columns.items()}
        worst = max(shares, key=shares.__getitem__, default=None)
        if worst is None or self.explained <= 0 or shares[worst] <= tolerance:
            return None
        return worst


def run_column_tests(
    table: BinnedTable,
    columns: IntArray,
    scores: FloatArray,
    learner_contributions: LearnerContributions,
) -> RoundResults:
    """Test some columns, given the cross-fitted scores (row, learner) of a model of them.

    Each column is tested beside all others: what they explain is in the model already.
    """
    score_model = fit_score_model(scores, table.outcomes, table.environments, table.n_environments)
    probabilities = score_model.predict(scores, table.environments)
    residuals = table.make_residuals(probabilities)
    explained = residuals.compute_explained_deviance()

    # The first question, of all columns.
    residual_effects = compare_residual_effects(table, residuals, columns)
    scale = Scale(explained=explained, n_compared=residual_effects.n_compared)
    residual_answers = {
        column: answer_residual_question(effect, scale=scale)
        for column, effect in residual_effects.strongest.items()
    }
    detectable_shares = {
        column: scale.find_detectable_share(effect.heterogeneity)
        for column, effect in residual_effects.strongest.items()
    }
    results = {
        column: make_result(
            answer, detectable_share=detectable_shares[column], shown_effect=answer.heterogeneity
        )
        for column, answer in residual_answers.items()
    }

    # The other two. If the model explains nothing, there are no contributions to ask about.
    if explained > 0:
        strongest = ask_about_contributions(
            table,
            residuals,
            contributions=learner_contributions.combine(score_model.slopes),
            residual_answers=residual_answers,
            n_cuts=residual_effects.n_compared,
        )
        for column, (answer, shown_effect) in strongest.items():
            results[column] = make_result(
                answer, detectable_share=detectable_shares[column], shown_effect=shown_effect
            )
    return RoundResults(columns=results, probabilities=probabilities, explained=explained)


def ask_about_contributions(
    table: BinnedTable,
    residuals: Residuals,
    *,
    contributions: Contributions,
    residual_answers: dict[int, Answer],
    n_cuts: int,
) -> dict[int, tuple[Answer, EffectHeterogeneity]]:
    """Ask the second and the third question of the columns whose contributions are known.

    Returns for each the strongest answer, that to the first question included, and the whole effect
    of its cut, to show. Each question finds shortcuts that the others miss. `n_cuts` is the number
    of cuts of all columns: the third question compares as many effects.
    """
    sampled_residuals = residuals.take(contributions.rows)
    explained = sampled_residuals.compute_explained_deviance()
    slope_scale = Scale(explained=explained, n_compared=2 * len(contributions.columns))
    total_scale = Scale(explained=explained, n_compared=n_cuts)

    # The model's intercepts have taken up the mean contribution in each environment.
    centred = contributions.centre_by_environment(sampled_residuals)
    separate = fit_separate_slopes(centred, sampled_residuals).compare_environments()
    largest = find_largest_contributions(contributions.values)
    joint = fit_joint_slopes(centred, sampled_residuals, largest).compare_environments()

    strongest: dict[int, tuple[Answer, EffectHeterogeneity]] = {}
    for index, contribution in enumerate(centred.iterate_columns()):
        column = contribution.column
        if column not in residual_answers:  # a constant column has no cut
            continue
        residual_answer = residual_answers[column]
        slope_answers = [
            answer_contribution_question(slope, cut=residual_answer.cut, scale=slope_scale)
            for slope in (separate.select(index), joint.select(index))
        ]
        total_effects = sum_total_effects(table, sampled_residuals, contribution)
        total_answer = answer_total_question(total_effects, table, scale=total_scale)

        answer = find_strongest_answer(residual_answer, [*slope_answers, total_answer])
        strongest[column] = answer, find_total_effect(total_effects, table, cut=answer.cut)
    return strongest


def make_result(
    answer: Answer, *, detectable_share: float, shown_effect: EffectHeterogeneity
) -> ColumnResult:
    """Return the result of a column: its strongest answer, and the effect of the cut to show.

    The detectable share is that of the first question. It is the only one that is asked of every
    column, so the share means the same for all.
    """
    return ColumnResult(
        share=answer.share,
        p_value=answer.p_value,
        question=answer.question,
        cut=answer.cut,
        effects=shown_effect.effects,
        weights=shown_effect.weights,
        tau=float(np.sqrt(answer.heterogeneity.tau_squared)),
        i2=answer.heterogeneity.i_squared,
        detectable_share=detectable_share,
    )


@dataclass(frozen=True)
class Performance:
    """Cross-validated performance at the training environments.

    `auc` is the mean over the environments, weighted by their rows; NaN if none has both outcomes.
    """

    auc: float
    log_loss: float


def measure_performance(table: BinnedTable, probabilities: FloatArray) -> Performance:
    """Measure the performance of cross-fitted probabilities, one for each row."""
    from sklearn.metrics import log_loss

    aucs = []
    n_rows = []
    for environment in np.unique(table.environments):
        rows = np.flatnonzero(table.environments == environment)
        auc = compute_auc(table.outcomes[rows] == 1, probabilities[rows])
        if auc is not None:
            aucs.append(auc)
            n_rows.append(len(rows))
    return Performance(
        auc=float(np.average(aucs, weights=n_rows)) if aucs else np.nan,
        log_loss=float(log_loss(table.outcomes, probabilities)),
    )
