"""An evaluation on new rows, as `icscm.validation.evaluation` measures it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from icscm.report.content.validation import CurvesRecord, Score

Scores = Mapping[str, Score | None]


class EvaluatedRows(CurvesRecord, Protocol):
    """Scores of a model and of its baseline on some rows, such as those of an environment."""

    @property
    def environment(self) -> Any: ...
    @property
    def n_samples(self) -> int: ...
    @property
    def n_positive(self) -> int: ...
    @property
    def is_new(self) -> bool | None: ...
    @property
    def scores(self) -> Scores: ...
    @property
    def baseline(self) -> Scores: ...


class RateCheck(Protocol):
    """The rows of a leaf in a new environment, held against the leaf's prediction interval."""

    @property
    def environment(self) -> Any: ...
    @property
    def n_samples(self) -> int: ...
    @property
    def n_positive(self) -> int: ...
    @property
    def is_inside(self) -> bool: ...


class CalibratedLeaf(Protocol):
    """The rate of a leaf in training (`expected`) and in new rows (`observed`).

    `adjusted` is the p-value that they are equal, corrected for the number of leaves.
    """

    @property
    def leaf(self) -> int: ...
    @property
    def text(self) -> str: ...
    @property
    def n_training(self) -> int: ...
    @property
    def expected(self) -> float | None: ...
    @property
    def n_samples(self) -> int: ...
    @property
    def observed(self) -> float | None: ...
    @property
    def interval(self) -> tuple[float, float] | None: ...
    @property
    def adjusted(self) -> float | None: ...
    @property
    def has_moved(self) -> bool | None: ...
    @property
    def new_interval(self) -> tuple[float, float] | None: ...
    @property
    def interval_checks(self) -> Sequence[RateCheck]: ...


@dataclass(frozen=True, kw_only=True)
class EvaluationContent:
    """What a report on an evaluation shows.

    Parameters
    ----------
    headline, model, positive : str
        The verdict in words, the model, and the positive class.
    baseline, baseline_from : str
        The class that the majority-class baseline predicts, and whether it is the majority "in
        training" or in these rows.
    at : str
        How rows were predicted, such as `at threshold 0.5`.
    measures : mapping of str to str
        The title of each measure, in the order in which they are listed.
    overall, environments : EvaluatedRows
        Of all rows, and of each environment; empty where none were given.
    leaves : sequence of CalibratedLeaf
        Of rule sets and trees; empty for other models.
    notes : sequence of str
        Remarks.
    environment, data : str or None
        Names of the environments' column and of the rows.
    thresholds : sequence of float
        Those of the decision curves; empty without probabilities.
    """

    headline: str
    model: str
    positive: str
    baseline: str
    baseline_from: str
    at: str
    measures: Mapping[str, str]
    overall: EvaluatedRows
    environments: Sequence[EvaluatedRows]
    leaves: Sequence[CalibratedLeaf]
    notes: Sequence[str]
    environment: str | None
    data: str | None
    thresholds: Sequence[float]

    @property
    def plotted(self) -> str:
        """The measure that is drawn: the AUC, or the error where that is undefined."""
        return "error" if self.overall.scores["auc"] is None else "auc"

    def rank_environments(self) -> list[EvaluatedRows]:
        """Return the environments from the worst to the best; without a score they are last."""
        measure = self.plotted
        sign = 1 if measure == "auc" else -1

        def get_rank(rows: EvaluatedRows) -> tuple[bool, float]:
            score = rows.scores[measure]
            return (True, 0.0) if score is None else (False, sign * score.value)

        return sorted(self.environments, key=get_rank)
