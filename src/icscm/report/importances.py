"""Permutation importances of columns: a record and its table.

`icscm.validation.importances` computes it.
"""

from dataclasses import astuple, dataclass
from itertools import product
from math import isnan
from typing import TYPE_CHECKING, Any

from icscm._repr import Display, DisplayMixin, display_frame
from icscm._types import FloatArray
from icscm.formatting import as_text, count
from icscm.parameters import allow, check_value

if TYPE_CHECKING:
    import pandas

METRICS = "auc", "log_loss"


@dataclass(frozen=True)
class EnvironmentLoss:
    """The loss of AUC in an environment."""

    loss: float
    environment: str


@dataclass(frozen=True, kw_only=True)
class ColumnLosses:
    """How much worse predictions are if the values of a column are permuted.

    The `lowest` and the `highest` are the environments of the smallest and of the largest loss of
    AUC, None where fewer than two have one.
    """

    auc: float
    log_loss: float
    lowest: EnvironmentLoss | None
    highest: EnvironmentLoss | None

    def to_dict(self) -> dict[str, Any]:
        """Return plain values; an extreme is a pair of the loss and the environment."""
        return {
            "auc": self.auc,
            "log_loss": self.log_loss,
            "lowest": None if self.lowest is None else astuple(self.lowest),
            "highest": None if self.highest is None else astuple(self.highest),
        }


@dataclass(frozen=True, repr=False)
class PermutationImportance(DisplayMixin):
    """Losses where the values of a column are permuted; see `permutation_importance`.

    Attributes
    ----------
    features, environments : tuple
        Columns, by name or position, and labels of the environments.
    pooled : array of shape (2, n_features, n_repeats)
        Loss of AUC and of log loss over all rows.
    by_environment : array of shape (2, n_features, n_repeats, n_environments)
        The same within each environment; the AUC is NaN where a class is absent.
    n_rows : int
        Rows that were predicted.

    Examples
    --------
    >>> import numpy as np
    >>> from icscm.report.importances import PermutationImportance
    >>> pooled = np.array([[[0.1], [0.3]], [[0.2], [0.5]]])
    >>> found = PermutationImportance(("age", "lactate"), (), pooled, pooled[..., np.newaxis], 100)
    >>> found.to_frame()["feature"].tolist()
    ['lactate', 'age']
    """

    features: tuple[str | int, ...]
    environments: tuple[Any, ...]
    pooled: FloatArray
    by_environment: FloatArray
    n_rows: int

    def to_frame(self, by: str = "features") -> "pandas.DataFrame":
        """The means over the repetitions.

        Parameters
        ----------
        by : {"features", "environments"}, default="features"
            A row for each feature, the most important first, with the standard deviations over
            the repetitions; or a row for each feature and environment.

        Returns
        -------
        DataFrame
            Columns `auc` and `log_loss`: how much worse each is with the column permuted.
        """
        import pandas

        check_value("by", by, allow("features", "environments"))
        if by == "environments":
            pairs = [*product(self.features, self.environments)]
            frame = pandas.DataFrame(pairs, columns=["feature", "environment"], dtype=object)
            # losses by (feature, repetition, environment)
            for metric, losses in zip(METRICS, self.by_environment, strict=True):
                means = losses.mean(axis=1)
                frame[metric] = means.ravel()  # in the order of the pairs
            return frame

        frame = pandas.DataFrame({"feature": pandas.Series(self.features, dtype=object)})
        # losses by (feature, repetition)
        for metric, losses in zip(METRICS, self.pooled, strict=True):
            frame[metric] = losses.mean(axis=1)
            frame[f"{metric}_sd"] = losses.std(axis=1)
        return frame.sort_values("auc", ascending=False, kind="stable", ignore_index=True)

    def describe(self, feature: str | int) -> dict[str, Any]:
        """The losses of one feature as plain values, with the extreme environments of the AUC.

        Parameters
        ----------
        feature : str or int
            One of `features`.

        Returns
        -------
        dict
            `auc` and `log_loss`, and `lowest` and `highest`: the least and the largest loss of AUC
            in an environment, and its name; None without two.
        """
        return self.measure_losses(feature).to_dict()

    def measure_losses(self, feature: str | int) -> ColumnLosses:
        """Return the mean losses of one feature over the repetitions."""
        column = self.features.index(feature)
        auc, log_loss = self.pooled[:, column].mean(axis=1).tolist()
        auc_losses = self.by_environment[0, column].mean(axis=0).tolist()
        known = [
            EnvironmentLoss(loss, as_text(environment))
            for loss, environment in zip(auc_losses, self.environments, strict=True)
            if not isnan(loss)
        ]
        has_extremes = len(known) > 1
        return ColumnLosses(
            auc=auc,
            log_loss=log_loss,
            lowest=min(known, key=rank_loss) if has_extremes else None,
            highest=max(known, key=rank_loss) if has_extremes else None,
        )

    def _display(self) -> Display:
        line = f"Losses with a column permuted within environments, {count(self.n_rows, 'row')}"
        return display_frame(line, self.to_frame())


def rank_loss(place: EnvironmentLoss) -> tuple[float, str]:
    """Return what orders environments: the loss, and of equal losses the name."""
    return place.loss, place.environment
