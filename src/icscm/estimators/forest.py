"""Forests of trees whose columns have homogeneous effects across environments."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from icscm._changes import reject_removed_options
from icscm._lazy import special
from icscm.engine.threads import count_threads
from icscm.estimators.tree import BaseTreeClassifier
from icscm.exceptions import IcscmError, NothingFoundWarning, warn
from icscm.model.forest import Forest
from icscm.parameters import document_parameters, draw_seed
from icscm.search.forest import ForestSettings, OutOfBag, find_forest
from icscm.sources.countable import Countable
from icscm.stats.calibration import CalibrationLine, fit_calibration_line
from icscm.stats.ranking import compute_auc

if TYPE_CHECKING:
    import pandas


@document_parameters
@reject_removed_options
@dataclass(eq=False, repr=False, kw_only=True)
class InvariantForestClassifier(BaseTreeClassifier):
    """A forest of trees of invariant columns, which predicts by their mean, calibrated.

    The table is binned once. Features are screened once, on all rows, as by
    `InvariantTreeClassifier`; each tree is grown on some of the rows and of the remaining features.
    The mean over trees is nearer to 1/2 than the rate of the label is. Its log odds are therefore
    calibrated on the rows that trees were not grown on: with a slope common to all environments,
    and the random-effects mean of the intercepts of the environments.

    {parameters}

    Attributes
    ----------
    model_ : Forest
        The fitted trees: `model_.trees`.
    trace_ : Trace
        The screening of all features on all rows: which were rejected, and why.
    tolerance_ : float or None
        The tolerance used; None for a plain forest.
    calibration_ : CalibrationLine or None
        Slope, intercepts of the environments and their random-effects mean, out of bag;
        `model_.calibration` has the intercept and slope used. None, and no calibration, where the
        predictions do not rank the labels out of bag, or separate them.
    out_of_bag_ : DataFrame
        A row for all samples, the first, and one for each environment: samples that some tree was
        not grown on, and the accuracy, AUC and Brier score of those trees, calibrated, on them.
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

    model_: Forest = field(init=False)
    calibration_: CalibrationLine | None = field(init=False)

    n_estimators: int = 100
    invariance: str = "effect"
    tolerance: float | str | None = "auto"
    max_leaves: int = 64
    min_samples_leaf: float = 0.005
    max_features: float = 0.6
    max_thresholds: int | None = 50
    probabilities: str = "pooled"
    n_jobs: int | None = None
    keep_columns: Any = None
    random_state: Any = None
    device: str = "cpu"
    min_replication: float = 0.15

    def _learn(self, countable: Countable[Any]) -> None:
        source = countable.source
        if source.rows is None:
            raise IcscmError(
                "a forest draws rows, which is not possible with these samples; fit it on a table "
                "in memory or with fit_dataset, or use InvariantTreeClassifier"
            )
        tree = self._make_settings(countable)
        self._warn_of_environments(countable)
        self.tolerance_ = tree.tolerance
        settings = ForestSettings(
            tree,
            n_trees=self.n_estimators,
            max_features=float(self.max_features),
            seed=draw_seed(self.random_state),
            n_threads=count_threads(self.n_jobs),
        )
        forest, self.trace_, held_out = find_forest(source, settings)
        line = fit_calibration_line(
            held_out.labels,
            held_out.environments,
            log_odds=special.logit(held_out.votes),
            n_environments=len(source.environments),
        )
        self.calibration_ = line if line is not None and line.is_usable else None
        if self.calibration_ is not None:
            forest = replace(forest, calibration=self.calibration_.calibration)
        self.model_ = forest
        calibrated = replace(held_out, votes=forest.calibrate(held_out.votes))
        self.out_of_bag_ = _score(calibrated, source.environments)

    def _warn_of_findings(self) -> None:
        super()._warn_of_findings()
        if not any(tree.splits for tree in self.model_.trees):
            warn(
                "No tree has a split: the forest predicts the same for every sample. See trace_ "
                "for what was rejected.",
                NothingFoundWarning,
            )


def _score(held_out: OutOfBag, environments: Any) -> pandas.DataFrame:
    """Out-of-bag scores, of all rows and of each environment."""
    import pandas

    rows = []
    is_known = ~np.isnan(held_out.votes)
    for k in range(-1, len(environments)):  # all rows first; an environment may have the same name
        own = is_known if k < 0 else is_known & (held_out.environments == k)
        labels, votes = held_out.labels[own], held_out.votes[own]
        auc = compute_auc(labels == 1, votes)
        row = {
            "n": len(labels),
            "accuracy": float(((votes > 0.5) == labels).mean()) if len(labels) else np.nan,
            "auc": np.nan if auc is None else auc,
            "brier": float(((votes - labels) ** 2).mean()) if len(labels) else np.nan,
        }
        rows.append(row)
    index = pandas.Index(["all", *environments], dtype=object, tupleize_cols=False)
    return pandas.DataFrame(rows, index=index)
