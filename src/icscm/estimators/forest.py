"""Forests of trees whose splits are homogeneous across environments."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from icscm.engine.threads import count_threads
from icscm.estimators.tree import BaseTreeClassifier
from icscm.exceptions import IcscmError, NothingFoundWarning, warn
from icscm.model.forest import Forest
from icscm.parameters import document_parameters
from icscm.search.forest import ForestSettings, OutOfBag, find_forest
from icscm.search.trace import Trace
from icscm.sources.countable import Countable

if TYPE_CHECKING:
    import pandas

    from icscm.report.page import Report


@document_parameters
class InvariantForestClassifier(BaseTreeClassifier):
    """A forest of invariant trees, which predicts by their mean.

    Binned once, counted many times. Features are screened once, on all rows, as by
    `InvariantTreeClassifier`; each tree is grown on some of the rows and of the features left.

    {parameters}

    Attributes
    ----------
    model_ : Forest
        The fitted trees: `model_.trees`.
    trace_ : Trace
        The screening of all features on all rows: which were rejected, and why.
    tolerance_ : float or None
        The tolerance used; None for a plain forest.
    out_of_bag_ : DataFrame
        A row for each environment and one for all: samples that some tree was not grown on, and
        accuracy, AUC and Brier score of those trees on them. With `resample="environments"`
        every such tree never saw the environment.
    classes_, environments_, n_features_in_, feature_names_in_, feature_types_, levels_,
    dropped_columns_
        As in `InvariantTreeClassifier`.

    Examples
    --------
    >>> import numpy as np
    >>> from icscm import InvariantForestClassifier
    >>> rng = np.random.default_rng(0)
    >>> clinic, age = rng.integers(0, 4, 2000), rng.integers(20, 90, 2000)
    >>> ill = rng.random(2000) < np.where(age > 60, 0.8, 0.1)
    >>> forest = InvariantForestClassifier(n_estimators=10, random_state=0)
    >>> forest.fit(age.reshape(-1, 1), ill, environments=clinic).predict([[30], [80]])
    array([False,  True])
    """

    model_: Forest
    trace_: Trace

    def __init__(
        self,
        n_estimators: int = 100,
        invariance: str = "effect",
        tolerance: float | str | None = "auto",
        max_leaves: int = 64,
        min_samples_leaf: float = 0.005,
        max_features: float = 0.6,
        resample: str = "rows",
        max_thresholds: int | None = 50,
        probabilities: str = "pooled",
        n_jobs: int | None = None,
        missing: str = "candidate",
        keep_columns: Any = None,
        random_state: Any = None,
        device: str = "cpu",
    ) -> None:
        self.n_estimators = n_estimators
        self.invariance = invariance
        self.tolerance = tolerance
        self.max_leaves = max_leaves
        self.min_samples_leaf = min_samples_leaf
        self.max_features = max_features
        self.resample = resample
        self.max_thresholds = max_thresholds
        self.probabilities = probabilities
        self.n_jobs = n_jobs
        self.missing = missing
        self.keep_columns = keep_columns
        self.device = device
        self.random_state = random_state

    def _learn(self, countable: Countable[Any]) -> None:
        source = countable.source
        if not hasattr(source, "draw"):
            raise IcscmError(
                "a forest draws rows, which these samples do not allow; fit it on a table in "
                "memory or with fit_dataset, or grow one InvariantTreeClassifier"
            )
        if self.resample == "environments" and len(source.environments) < 3:
            raise IcscmError(
                "resample='environments' needs at least 3 environments, of which two are drawn; "
                f"got {len(source.environments)}: use resample='rows'"
            )
        tree = self.make_settings(countable)
        self._warn_of_environments(countable)
        self.tolerance_ = tree.tolerance
        settings = ForestSettings(
            tree,
            n_trees=self.n_estimators,
            max_features=float(self.max_features),
            resample=self.resample,
            seed=int(check_random_state(self.random_state).randint(2**31 - 1)),
            n_threads=count_threads(self.n_jobs),
        )
        self.model_, self.trace_, held_out = find_forest(source, settings)
        self.out_of_bag_ = _score(held_out, source.environments)

    def _warn_of_findings(self) -> None:
        if not any(tree.splits for tree in self.model_.trees):
            warn(
                "No tree has a split: the forest predicts the same for every sample. See trace_ "
                "for what was rejected.",
                NothingFoundWarning,
            )

    def report(self, *, data_name: str | None = None) -> Report:
        """A report to read, save (`.html`, `.md`, `.json`) or show in a notebook.

        Parameters
        ----------
        data_name : str, optional
            The name of the data.

        Returns
        -------
        Report
            Trees and the columns that they use, rejected columns, and out-of-bag errors.
        """
        check_is_fitted(self, "model_")
        return self._make_report(None, None, data_name=data_name)

    @property
    def feature_shares_(self) -> pandas.Series:
        """The share of the trees that use each feature, the most used first."""
        import pandas

        check_is_fitted(self, "model_")
        uses = self.model_.count_uses()
        shares = {feature: n / len(self.model_.trees) for feature, n in uses.items()}
        return pandas.Series(shares, dtype=float, name="share of trees").sort_values(
            ascending=False, kind="stable"
        )


def _score(held_out: OutOfBag, environments: Any) -> pandas.DataFrame:
    """Out-of-bag scores, of all rows and of each environment."""
    import pandas
    from sklearn.metrics import roc_auc_score

    rows = {}
    is_known = ~np.isnan(held_out.votes)
    named = [("all", is_known)]
    named += [
        (name, is_known & (held_out.environments == k)) for k, name in enumerate(environments)
    ]
    for name, own in named:
        labels, votes = held_out.labels[own], held_out.votes[own]
        is_mixed = len(np.unique(labels)) == 2
        rows[name] = {
            "n": len(labels),
            "accuracy": float(((votes > 0.5) == labels).mean()) if len(labels) else np.nan,
            "auc": float(roc_auc_score(labels, votes)) if is_mixed else np.nan,
            "brier": float(((votes - labels) ** 2).mean()) if len(labels) else np.nan,
        }
    return pandas.DataFrame.from_dict(rows, orient="index")
