"""How often columns, rules and models are found again in random halves of the rows."""

from dataclasses import dataclass
from typing import Protocol

from icscm.model.forest import Model


@dataclass(frozen=True, kw_only=True)
class Frequency:
    """The share of subsamples in which a column, a rule or a model was found.

    `is_own` is whether the model of all rows has it, or is it.
    """

    text: str
    frequency: float
    is_own: bool


@dataclass(frozen=True, kw_only=True)
class Stability:
    """Frequencies on subsamples, the highest first.

    Parameters
    ----------
    n_resamples : int
        Number of subsamples.
    model_frequency, columns_frequency : float
        Share of subsamples with the model of all rows, and with a model of the same columns.
    models, rules, features : list of Frequency
        What was found at least once. Forests of the same columns are one model.
    """

    n_resamples: int
    model_frequency: float
    columns_frequency: float
    models: list[Frequency]
    rules: list[Frequency]
    features: list[Frequency]


class StabilityRecord(Protocol):
    """What `icscm.stability_selection` returns, as far as a report needs it."""

    @property
    def model(self) -> Model: ...
    def make_content(self) -> Stability: ...
