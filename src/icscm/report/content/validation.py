"""Performance in environments left out, as `icscm.validation` measures it."""

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from icscm.report.formatting import Plain


class Score(Protocol):
    """A score with its 95% interval; an end that is not known is not finite."""

    @property
    def value(self) -> float: ...
    @property
    def low(self) -> float: ...
    @property
    def high(self) -> float: ...


class PooledScore(Score, Protocol):
    """The mean of a score over environments, and its 95% prediction interval in a new one."""

    @property
    def new_low(self) -> float: ...
    @property
    def new_high(self) -> float: ...
    @property
    def n_environments(self) -> int: ...


class CurvesRecord(Protocol):
    """Curves of predicted probabilities; empty where the model gives none.

    Calibration has pairs of a probability and the smoothed rate there. The net benefits, of the
    model and of treating every row, are those at each threshold of the record they belong to.
    """

    @property
    def calibration_curve(self) -> Sequence[tuple[float, float]]: ...
    @property
    def net_benefit(self) -> Sequence[float]: ...
    @property
    def treat_all(self) -> Sequence[float]: ...


class LeftOutEnvironment(CurvesRecord, Protocol):
    """The scores and curves of a model in the environment that it was learned without."""

    @property
    def environment(self) -> Any: ...
    @property
    def n_samples(self) -> int: ...
    @property
    def scores(self) -> Mapping[str, Score | None]: ...


class ValidationRecord(Protocol):
    """The scores in every environment left out, and pooled.

    `titles` has the title of each score, `lines` are the sentences on them, and `curves` those of
    all rows together, None where the model gives no probabilities.
    """

    @property
    def held_out(self) -> Sequence[LeftOutEnvironment]: ...
    @property
    def pooled(self) -> Mapping[str, PooledScore | None]: ...
    @property
    def titles(self) -> Mapping[str, str]: ...
    @property
    def lines(self) -> list[str]: ...
    @property
    def thresholds(self) -> Sequence[float]: ...
    @property
    def curves(self) -> CurvesRecord | None: ...
    def to_dict(self) -> Plain: ...
