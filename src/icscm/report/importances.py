"""Permutation importances of columns: a record and its table.

`icscm.validation.importances` computes it.
"""

from dataclasses import dataclass
from itertools import product
from typing import TYPE_CHECKING, Any

from icscm._repr import Display, DisplayMixin, display_frame
from icscm._types import FloatArray
from icscm.formatting import as_text, count
from icscm.parameters import allow, check_value

if TYPE_CHECKING:
    import pandas

METRICS = "auc", "log_loss"


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
            means = self.by_environment.mean(axis=2).reshape(2, -1)
            return frame.assign(**dict(zip(METRICS, means, strict=True)))
        frame = pandas.DataFrame({"feature": pandas.Series(self.features, dtype=object)})
        for name, losses in zip(METRICS, self.pooled, strict=True):
            frame[name], frame[f"{name}_sd"] = losses.mean(axis=1), losses.std(axis=1)
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
        j = self.features.index(feature)
        auc, log_loss = self.pooled[:, j].mean(axis=1).tolist()
        means = self.by_environment[0, j].mean(axis=0).tolist()
        known = [(v, as_text(e)) for v, e in zip(means, self.environments, strict=True) if v == v]
        ends = [min(known), max(known)] if len(known) > 1 else [None, None]
        return {"auc": auc, "log_loss": log_loss, "lowest": ends[0], "highest": ends[1]}

    def _display(self) -> Display:
        line = f"Losses with a column permuted within environments, {count(self.n_rows, 'row')}"
        return display_frame(line, self.to_frame())
