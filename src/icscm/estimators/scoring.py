"""Scores of a classifier, of labels that it knows."""

from __future__ import annotations

from typing import Any

from sklearn.base import ClassifierMixin
from sklearn.utils.validation import check_is_fitted

from icscm.tables.columns import is_dask
from icscm.tables.labels import check_known


class KnownLabelsMixin(ClassifierMixin):  # type: ignore[misc]
    """A classifier whose score refuses labels that it never saw."""

    classes_: Any

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Share of the rows that are predicted rightly.

        Parameters
        ----------
        X : array, frame or sparse matrix of shape (n_samples, n_features)
            The features.
        y : array-like of shape (n_samples,)
            Their labels.
        sample_weight : array-like of shape (n_samples,), optional
            How much each row counts.

        Returns
        -------
        float
            The accuracy.

        Raises
        ------
        IcscmError
            If y holds labels that were not there at fitting.
        """
        check_is_fitted(self)
        if not is_dask(y):
            check_known(y, self.classes_)
        return float(super().score(X, y, sample_weight=sample_weight))
