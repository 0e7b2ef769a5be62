"""Calibration and threshold: from raw probabilities to predictions, for all kinds of models.

    p = expit(a + b logit(raw))        calibration: a line through the log odds (Platt 1999)
    positive  where  p >= threshold

`raw` is the rate of a leaf, or the mean of such rates over the trees of a forest; a is the
intercept and b the slope, 0 and 1 where nothing is calibrated.
"""

from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

import numpy as np

from icscm._lazy import special
from icscm._repr import DisplayMixin
from icscm._types import Array, BoolArray, FloatArray
from icscm.exceptions import IcscmError
from icscm.model.novelty import TrainingValues

# The log odds of float64 lie within 37 of 0, so with these limits exp() never overflows.
from icscm.stats.calibration import MAX_INTERCEPT, MAX_SLOPE

# Intercept and slope that change nothing.
IDENTITY: Final = (0.0, 1.0)
# Above this, a probability is predicted positive if no threshold is set.
HALF: Final = 0.5


class Decisions(NamedTuple):
    """Prediction, probability and what decided for each row; exports return the same columns.

    The prediction is whether the row is positive.
    """

    prediction: Array
    probability: FloatArray
    decided_by: Array


@dataclass(frozen=True, repr=False)
class CalibratedModel(DisplayMixin):
    """Base of all models: calibrates raw probabilities and applies the threshold.

    Parameters
    ----------
    calibration : tuple of two float, default=(0.0, 1.0)
        Intercept and slope on the log odds: p = expit(intercept + slope * logit(raw)).
    threshold : float, optional
        The smallest calibrated probability that is predicted positive. None: above 1/2 is
        positive; in a conjunction or disjunction the rules decide.
    training_values : tuple of TrainingValues
        Of the columns that the model uses: levels and ranges in training, by which levels that are
        unknown and numbers of another unit are told. Models that differ in nothing else are equal.
    """

    calibration: tuple[float, float] = field(default=IDENTITY, kw_only=True)
    threshold: float | None = field(default=None, kw_only=True)
    training_values: tuple[TrainingValues, ...] = field(default=(), kw_only=True, compare=False)

    def __post_init__(self) -> None:
        intercept, slope = self.calibration
        if not (abs(intercept) <= MAX_INTERCEPT and 0 < slope <= MAX_SLOPE):
            raise IcscmError(
                f"calibration is an intercept within {MAX_INTERCEPT:g} of 0 and a slope above 0, "
                f"at most {MAX_SLOPE:g}; got {self.calibration}"
            )
        if self.threshold is not None and not 0 < self.threshold < 1:
            raise IcscmError(
                f"threshold is a probability between 0 and 1, both excluded; got {self.threshold}"
            )

    def decide(self, X: Any) -> Decisions:
        """Decide on each row: each kind of model does it in its own way."""
        raise NotImplementedError

    def predict(self, X: Any) -> BoolArray:
        """Predict whether each row is positive.

        Parameters
        ----------
        X : array, sparse matrix or frame of shape (n_samples, n_features)
            The features.

        Returns
        -------
        array of bool, of shape (n_samples,)
            Whether the probability exceeds 1/2, or reaches the threshold.
        """
        return self.decide(X).prediction

    def predict_proba(self, X: Any) -> FloatArray:
        """Predict the probability that each row is positive.

        Parameters
        ----------
        X : array, sparse matrix or frame of shape (n_samples, n_features)
            The features.

        Returns
        -------
        array of float, of shape (n_samples,)
            Between 0 and 1, both excluded.
        """
        return self.decide(X).probability

    @property
    def is_chain(self) -> bool:
        """Whether it is a conjunction or a disjunction."""
        return False

    @property
    def is_calibrated(self) -> bool:
        """Whether probabilities are other than the raw ones."""
        return self.calibration != IDENTITY

    @property
    def is_moved(self) -> bool:
        """Whether the cut between the classes differs from a raw probability of 1/2."""
        return self.is_calibrated or self.threshold is not None

    @property
    def decision_threshold(self) -> float | None:
        """The threshold between the classes; None where rules decide."""
        if self.threshold is not None:
            return self.threshold
        return None if self.is_chain else HALF

    @property
    def at_threshold(self) -> str:
        """The threshold as words after a prediction; empty where rules decide."""
        threshold = self.decision_threshold
        return "" if threshold is None else f" at threshold {threshold:.3g}"

    def calibrate(self, raw: FloatArray) -> FloatArray:
        """Calibrate probabilities: expit(a + b logit(raw)).

        Parameters
        ----------
        raw : array of float
            Rates of leaves, or their means.

        Returns
        -------
        array of float
            The same numbers, bit for bit, where the calibration is (0, 1).
        """
        if not self.is_calibrated:
            return raw
        intercept, slope = self.calibration
        probability: FloatArray = special.expit(intercept + slope * special.logit(raw))
        return probability

    def is_positive(self, probability: FloatArray) -> BoolArray:
        """Return whether rows of calibrated probabilities are predicted positive.

        Parameters
        ----------
        probability : array of float
            As `calibrate` returned them.

        Returns
        -------
        array of bool
            More than 1/2, or at least the threshold.
        """
        if self.threshold is None:
            return probability > HALF
        return probability >= self.threshold

    def find_cut(self) -> float:
        """Find the smallest raw probability that is predicted positive.

        Exports use it, since exp and log of other languages may differ in the last bit.

        Returns
        -------
        float
            Found by bisection, to the last bit.
        """
        # At `high` rows are predicted positive, at `low` they are not.
        low = 0.0
        high = 1.0
        while True:
            middle = (low + high) / 2
            if not low < middle < high:  # no float64 lies between the two
                return high
            if self.is_positive(self.calibrate(np.array(middle))):
                high = middle
            else:
                low = middle

    def describe_calibration(self) -> str:
        """Return the calibration as a formula.

        Returns
        -------
        str
            Such as `log odds = 0.27 + 1.49 * uncalibrated log odds`.
        """
        intercept, slope = self.calibration
        return f"log odds = {intercept:.2f} + {slope:.2f} * uncalibrated log odds"

    def describe_threshold(self) -> str:
        """Return the threshold as words.

        Returns
        -------
        str
            Such as `predicts positive from a probability of 0.12 on`.
        """
        return f"predicts positive from a probability of {self.decision_threshold:.3g} on"

    def _list_fields(self) -> dict[str, Any]:
        """Return what all models have for `to_dict`, where it is not the default."""
        fields: dict[str, Any] = {}
        if self.is_calibrated:
            fields["calibration"] = list(self.calibration)
        if self.threshold is not None:
            fields["threshold"] = self.threshold
        if self.training_values:
            fields["training_values"] = [values.to_dict() for values in self.training_values]
        return fields


def take_fields(fields: dict[str, Any]) -> dict[str, Any]:
    """Take what all models have from the fields of one in a file."""
    intercept, slope = map(float, fields.get("calibration", IDENTITY))
    return {
        "calibration": (intercept, slope),
        "threshold": fields.get("threshold"),
        "training_values": fields.get("training_values", ()),
    }
