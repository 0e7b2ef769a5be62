"""How well the cross-fitted model of a round predicts, in the measures that people know.

    two classes        AUC                                          log loss
    several classes    mean AUC of each class against the others    log loss
    numbers            R^2                                          root mean squared error

Losses of numbers are in standard deviations of the outcome.
"""

from dataclasses import dataclass

import numpy as np

from icscm._types import FloatArray
from icscm.screening.outcomes import Numbers, Outcome
from icscm.stats.ranking import compute_auc


@dataclass(frozen=True)
class Performance:
    """A score, of which more is better, and a loss."""

    score: float
    loss: float


def measure_performance(outcome: Outcome, scores: FloatArray) -> Performance:
    """Measure how well scores (row, output) predict the outcome."""
    mean_loss = float(np.average(outcome.compute_losses(scores), weights=outcome.weights))
    if isinstance(outcome, Numbers):
        squares = (outcome.targets - outcome.targets.mean()) ** 2
        variance = float(np.average(squares[:, 0], weights=outcome.weights))
        return Performance(score=1.0 - 2.0 * mean_loss / variance, loss=(2.0 * mean_loss) ** 0.5)

    aucs = [
        compute_auc(outcome.targets[:, output] > 0, scores[:, output])
        for output in range(outcome.n_outputs)
    ]
    known_aucs = [auc for auc in aucs if auc is not None]
    score = float(np.mean(known_aucs)) if known_aucs else np.nan
    return Performance(score=score, loss=mean_loss)
