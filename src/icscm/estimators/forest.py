"""Forests of trees whose columns have homogeneous effects across environments.

A tree's *out-of-bag* rows are those that it was not grown on. The mean vote of the trees on their
out-of-bag rows is as good as on new rows, so it serves to calibrate the forest and to score it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from icscm._changes import reject_removed_options
from icscm._lazy import special
from icscm._types import Array, FloatArray
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
    Where no split of all rows is better than chance, no tree has one.
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
    random_state: Any = None
    device: str = "cpu"
    min_replication: float = 0.15

    def _learn(self, countable: Countable[Any]) -> None:
        """Grow a forest, calibrate it, and score what it then predicts.

        1. Grow the trees. Each row gets as its vote the mean of those that were not grown on it.
        2. Fit a calibration line to these votes, and give its intercept and slope to the forest.
        3. Score the votes as the forest calibrates them, which is why this step is the last.
        """
        source = countable.source
        if source.rows is None:
            raise IcscmError(
                "a forest draws rows, which is not possible with these samples; fit it on a table "
                "in memory or with fit_dataset, or use InvariantTreeClassifier"
            )
        settings = self._make_forest_settings(countable)
        self._warn_of_environments(countable)
        self.tolerance_ = settings.tree.tolerance

        plain_forest, self.trace_, out_of_bag = find_forest(source, settings)

        line = fit_usable_calibration(out_of_bag, n_environments=len(source.environments))
        self.calibration_ = line
        self.model_ = plain_forest
        if line is not None:
            self.model_ = replace(plain_forest, calibration=line.calibration)

        calibrated_votes = self.model_.calibrate(out_of_bag.votes)
        self.out_of_bag_ = score_out_of_bag(
            replace(out_of_bag, votes=calibrated_votes), source.environments
        )

    def _make_forest_settings(self, countable: Countable[Any]) -> ForestSettings:
        """Make the settings of the search: those of each tree, and how many trees of which rows."""
        return ForestSettings(
            tree=self._make_settings(countable),
            n_trees=self.n_estimators,
            max_features=float(self.max_features),
            seed=draw_seed(self.random_state),
            n_threads=count_threads(self.n_jobs),
        )

    def _warn_of_findings(self) -> None:
        super()._warn_of_findings()
        if not any(tree.splits for tree in self.model_.trees):
            warn(
                "No tree has a split: the forest predicts the same for every sample. See trace_ "
                "for what was rejected.",
                NothingFoundWarning,
            )


def fit_usable_calibration(out_of_bag: OutOfBag, *, n_environments: int) -> CalibrationLine | None:
    """Fit the line that calibrates votes; None where they do not rank outcomes, or separate them.

    The votes of trees on the rows that they were grown on are too extreme to fit it to.
    """
    line = fit_calibration_line(
        out_of_bag.outcomes,
        out_of_bag.environments,
        log_odds=special.logit(out_of_bag.votes),
        n_environments=n_environments,
    )
    if line is None or not line.is_usable:
        return None
    return line


def score_out_of_bag(out_of_bag: OutOfBag, environments: Sequence[Any]) -> pandas.DataFrame:
    """Score the calibrated votes on all rows and, after these, on the rows of each environment.

    A row on which all trees were grown has no vote, NaN, and is not scored.
    """
    import pandas  # slow to import

    has_vote = ~np.isnan(out_of_bag.votes)
    scores = [score_votes(out_of_bag.outcomes[has_vote], out_of_bag.votes[has_vote])]
    for environment in range(len(environments)):
        is_scored = has_vote & (out_of_bag.environments == environment)
        scores.append(score_votes(out_of_bag.outcomes[is_scored], out_of_bag.votes[is_scored]))

    # an environment may also have the name "all", or a tuple as its name
    index = pandas.Index(["all", *environments], dtype=object, tupleize_cols=False)
    return pandas.DataFrame(scores, index=index)


def score_votes(outcomes: Array, votes: FloatArray) -> dict[str, float]:
    """Score votes by accuracy, AUC and Brier score; NaN where there is nothing to score."""
    if len(outcomes) == 0:
        return {"n": 0, "accuracy": np.nan, "auc": np.nan, "brier": np.nan}
    auc = compute_auc(outcomes == 1, votes)
    return {
        "n": len(outcomes),
        "accuracy": float(((votes > 0.5) == outcomes).mean()),
        "auc": np.nan if auc is None else auc,
        "brier": float(((votes - outcomes) ** 2).mean()),
    }
