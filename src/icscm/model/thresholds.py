"""Thresholds: the smallest probability that is predicted positive, and how it is chosen.

A user gives a number, costs that amount to one, or a criterion by which a number is chosen on rows
with known outcomes:

    costs=f:m           f for a false positive, m for a missed positive:  threshold = f / (f + m)
    youden              the largest sensitivity + specificity                    (Youden 1950)
    sensitivity=0.95    the largest threshold of at least this sensitivity
    specificity=0.9     the smallest threshold of at least this specificity
"""

from typing import Any, Final, NamedTuple, Self

import numpy as np

from icscm._types import BoolArray, FloatArray
from icscm.exceptions import IcscmError, Parameter, ThresholdWarning, warn

# The criteria that choose a threshold on rows with known outcomes.
CRITERIA: Final = ("youden", "sensitivity", "specificity")
# What stands in the place of a share in a criterion that requires none.
_NO_SHARE: Final = 0.5
FORMS: Final = "a number between 0 and 1, costs=1:10, youden, sensitivity=0.95 or specificity=0.9"


class Criterion(NamedTuple):
    """A criterion that chooses a threshold, and the sensitivity or specificity that it requires."""

    name: str
    min_share: float


def read_threshold(value: Any) -> float | Criterion:
    """Read a threshold as a user gives it: a number, or the criterion that chooses one.

    >>> read_threshold(0.2), read_threshold("costs=1:4")
    (0.2, 0.2)
    >>> read_threshold("sensitivity=0.95")
    Criterion(name='sensitivity', min_share=0.95)
    """
    name, _, text = str(value).strip().partition("=")
    try:
        number = _read_number(value, name=name, text=text)
    except (TypeError, ValueError, ZeroDivisionError):
        number = np.nan
    if isinstance(value, bool) or not 0 < number < 1:
        raise IcscmError(Parameter("threshold"), f" must be {FORMS}; got {str(value)!r}")
    return Criterion(name=name, min_share=number) if name in CRITERIA else number


def _read_number(value: Any, *, name: str, text: str) -> float:
    """Read the number in a threshold, which may be `name=text`; NaN, or raise, if there is none."""
    if value == "youden":
        return _NO_SHARE
    if name in ("sensitivity", "specificity"):
        return float(text)
    if name != "costs":
        return float(value)
    false_positive, missed_positive = map(float, text.split(":"))
    if min(false_positive, missed_positive) <= 0:
        return np.nan
    return false_positive / (false_positive + missed_positive)


class Threshold(float):
    """A threshold, how it was chosen, and what it reaches on the rows that it was chosen on.

    `criterion` is what the user gave, None for a number; `held_out` are "environments" or "rows".
    A threshold that was not chosen on rows reaches nothing: it has only a criterion. Settings of a
    model keep `vars` of it.

    >>> reached = {"sensitivity": 0.91, "specificity": 0.55, "held_out": "environments"}
    >>> Threshold(0.1234, "sensitivity=0.9", **reached).describe()
    '0.123 (sensitivity=0.9): sensitivity 0.91, specificity 0.55 in held-out environments'
    """

    criterion: str | None
    sensitivity: float = np.nan
    specificity: float = np.nan
    held_out: str | None = None

    def __new__(cls, value: float, criterion: str | None = None, **reached: Any) -> Self:
        self = super().__new__(cls, value)
        # Only what was reached becomes an attribute of its own, and so part of `vars`.
        vars(self).update({"criterion": criterion} | reached)
        return self

    def describe(self) -> str:
        """Return the threshold as a line of text."""
        text = f"{self:.3g}"
        if self.criterion is not None:
            text += f" ({self.criterion})"
        if self.held_out is not None:
            text += (
                f": sensitivity {self.sensitivity:.2f}, specificity {self.specificity:.2f} in "
                f"held-out {self.held_out}"
            )
        return text


def fix_threshold(value: Any, advice: str) -> float:
    """Return a threshold as a number; raise, with advice, if it must be chosen on rows."""
    threshold = read_threshold(value)
    if isinstance(threshold, Criterion):
        raise IcscmError(Parameter("threshold", value), f" {advice}")
    return threshold


def find_threshold(criterion: Criterion, is_positive: BoolArray, probability: FloatArray) -> float:
    """Find the threshold that a criterion chooses on rows with known outcomes.

    Thresholds halfway between two probabilities that occur are compared. At a threshold t

        sensitivity = share of the positives with a probability above t
        specificity = share of the negatives with a probability below t

    >>> y, p = np.array([False, True, False, True]), np.array([0.1, 0.3, 0.5, 0.9])
    >>> [find_threshold(Criterion(name, 0.9), y, p) for name in CRITERIA]
    [0.2, 0.2, 0.7]
    """
    if is_positive.all() or not is_positive.any():
        raise IcscmError("a threshold cannot be chosen on rows of a single class")

    values = np.unique(probability)
    lower_neighbours = np.append(0.0, values)
    upper_neighbours = np.append(values, 1.0)
    thresholds = (lower_neighbours + upper_neighbours) / 2

    # of sorted probabilities, the place of a threshold is the number of those below it
    positives = np.sort(probability[is_positive])
    n_missed = np.searchsorted(positives, thresholds)
    sensitivity = (len(positives) - n_missed) / len(positives)

    negatives = np.sort(probability[~is_positive])
    n_rejected = np.searchsorted(negatives, thresholds)
    specificity = n_rejected / len(negatives)

    if criterion.name == "youden":
        return float(thresholds[np.argmax(sensitivity + specificity)])
    if criterion.name == "sensitivity":
        is_sensitive = sensitivity >= criterion.min_share
        return float(thresholds[is_sensitive].max())
    is_specific = specificity >= criterion.min_share
    return float(thresholds[is_specific].min())


def warn_of_shift(threshold: float | None, chosen: Any) -> None:
    """Warn where probabilities shift below a threshold that a criterion chose.

    `chosen` is the threshold in the settings of a model.
    """
    name = str(chosen.get("criterion")) if isinstance(chosen, dict) else ""
    if threshold is not None and name.startswith(CRITERIA):
        warn(
            f"The threshold {threshold:.3g} was chosen by {name} before the shift: for shifted "
            "probabilities its sensitivity and specificity differ; choose it again with "
            "set_threshold on rows of the site, or give a number or costs=1:10.",
            ThresholdWarning,
        )
