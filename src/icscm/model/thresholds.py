"""Thresholds: the least probability that is predicted positive, and how it is chosen."""

from typing import Any, Final, Self

import numpy as np

from icscm._types import BoolArray, FloatArray
from icscm.exceptions import IcscmError, Parameter, ThresholdWarning, warn

# A criterion that chooses a threshold on labelled rows, and the share that it requires.
Criterion = tuple[str, float]
CRITERIA: Final = "youden", "sensitivity", "specificity"
FORMS: Final = "a number between 0 and 1, costs=1:10, youden, sensitivity=0.95 or specificity=0.9"


def read_threshold(value: Any) -> float | Criterion:
    """A threshold as a user gives it: a number, or the criterion that chooses one.

    `costs=1:10` are those of a false positive and of a false negative.

    >>> read_threshold(0.2), read_threshold("costs=1:4"), read_threshold("sensitivity=0.95")
    (0.2, 0.2, ('sensitivity', 0.95))
    """
    name, _, rest = str(value).strip().partition("=")
    try:
        if name == "costs":
            false_positive, false_negative = map(float, rest.split(":"))
            found = false_positive / (false_positive + false_negative)
            found = found if min(false_positive, false_negative) > 0 else np.nan
        else:
            found = float(rest if name in ("sensitivity", "specificity") else value)
    except (TypeError, ValueError, ZeroDivisionError):
        found = 0.5 if value == "youden" else np.nan
    if isinstance(value, bool) or not 0 < found < 1:
        raise IcscmError(Parameter("threshold"), f" must be {FORMS}; got {str(value)!r}")
    return (name, found) if name in CRITERIA else found


class Threshold(float):
    """A threshold, how it was chosen, and what it reaches on the rows that it was chosen on.

    `criterion` is what the user gave, None for a number; `held_out` are "environments" or "rows".

    >>> reached = {"sensitivity": 0.91, "specificity": 0.55, "held_out": "environments"}
    >>> Threshold(0.1234, "sensitivity=0.9", **reached).describe()
    '0.123 (sensitivity=0.9): sensitivity 0.91, specificity 0.55 in held-out environments'
    """

    criterion: str | None
    sensitivity: float
    specificity: float
    held_out: str

    def __new__(cls, value: float, criterion: str | None = None, **reached: Any) -> Self:
        self = super().__new__(cls, value)
        vars(self).update({"criterion": criterion} | reached)
        return self

    def describe(self) -> str:
        """The threshold in a line."""
        text = f"{self:.3g}" + f" ({self.criterion})" * (self.criterion is not None)
        if hasattr(self, "held_out"):
            text += f": sensitivity {self.sensitivity:.2f}, specificity {self.specificity:.2f}"
            text += f" in held-out {self.held_out}"
        return text


def fix_threshold(value: Any, advice: str) -> float:
    """A threshold as a number; raises, with advice, if it needs labelled rows."""
    found = read_threshold(value)
    if isinstance(found, tuple):
        raise IcscmError(Parameter("threshold", value), f" {advice}")
    return found


def find_threshold(criterion: Criterion, is_positive: BoolArray, probability: FloatArray) -> float:
    """The threshold that a criterion chooses on labelled rows.

    `youden` has the largest sum of sensitivity and specificity, `sensitivity` is the largest
    threshold with at least that sensitivity, `specificity` the smallest with at least that one. The
    threshold lies halfway between two probabilities that occur.

    >>> y, p = np.array([False, True, False, True]), np.array([0.1, 0.3, 0.5, 0.9])
    >>> [find_threshold((name, 0.9), y, p) for name in ("youden", "sensitivity", "specificity")]
    [0.2, 0.2, 0.7]
    """
    if is_positive.all() or not is_positive.any():
        raise IcscmError("a threshold cannot be chosen on rows of a single class")
    values = np.unique(probability)
    cuts = (np.append(0.0, values) + np.append(values, 1.0)) / 2
    found, missed = (np.sort(probability[each]) for each in (is_positive, ~is_positive))
    sensitivity = (len(found) - np.searchsorted(found, cuts)) / len(found)
    specificity = np.searchsorted(missed, cuts) / len(missed)
    name, least = criterion
    if name == "youden":
        return float(cuts[np.argmax(sensitivity + specificity)])
    if name == "sensitivity":
        return float(cuts[sensitivity >= least].max())
    return float(cuts[specificity >= least].min())


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
