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


class LeftOutEnvironment(Protocol):
    """The scores of a model in the environment that it was learned without."""

    @property
    def environment(self) -> Any: ...
    @property
    def n_samples(self) -> int: ...
    @property
    def scores(self) -> Mapping[str, Score | None]: ...


class ValidationRecord(Protocol):
    """The scores in every environment left out, and pooled."""

    @property
    def held_out(self) -> Sequence[LeftOutEnvironment]: ...
    @property
    def pooled(self) -> Mapping[str, PooledScore | None]: ...
    def to_dict(self) -> Plain: ...
