"""A points score on columns whose effects are homogeneous across environments."""

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from icscm._changes import reject_removed_options
from icscm._constants import CHANCE_LEVEL
from icscm._types import FloatArray
from icscm.estimators.base import BaseRuleClassifier, warn_of_environments
from icscm.estimators.score_screening import screen_columns
from icscm.exceptions import IcscmError, NothingFoundWarning, warn
from icscm.model.score import Score
from icscm.parameters import document_parameters, draw_seed
from icscm.search.design_effects import measure_chance_effect
from icscm.search.points import ScoreSettings, find_score
from icscm.search.records import RejectedColumn
from icscm.search.trace import Trace, make_trace
from icscm.sources.countable import Countable
from icscm.stats.independence import make_test
from icscm.stats.verdicts import make_verdicts
from icscm.tables.environments import check_several

if TYPE_CHECKING:
    import pandas


@document_parameters
@reject_removed_options
@dataclass(eq=False, repr=False, kw_only=True)
class InvariantScoreClassifier(BaseRuleClassifier):
    """A points score: whole points for the values of a few columns, and a risk for each total.

    Columns are screened as by `InvariantFeatureSelector`: those whose effect, given all others,
    differs between environments get no points. Terms, such as values above a threshold or some
    levels of a category, are added one by one by the deviance that they explain, with an intercept
    for each environment, the first only if it beats the best that chance would give; each may then
    be exchanged. Their effects are scaled by the factor of
    least log loss and rounded to whole points, which are changed by 1 while that lowers the loss.

    The risk of a total is that in a new environment: effects are common, and its intercept is the
    random-effects mean of those in training. A missing value has its own points; where none was
    missing in training, it gets those of an average sample.

    {parameters}

    Attributes
    ----------
    model_ : Score
        The points and risks; it is printed as a table.
    screen_ : DataFrame
        The screen, a row for each column, as of `InvariantFeatureSelector`; None without
        environments or with `tolerance=None`.
    trace_ : Trace
        The rejected columns, and the verdicts on the classes of totals.
    tolerance_ : float or None
        The tolerance used; None without a screen.
    classes_, environments_, n_features_in_, feature_names_in_, feature_types_, levels_,
    dropped_columns_
        As in `InvariantTreeClassifier`.

    References
    ----------
    Liu, Zhong, Li, Seltzer and Rudin (2022), FasterRisk: fast and accurate interpretable risk
    scores. Ustun and Rudin (2019), Learning optimized risk scores.

    Examples
    --------
    >>> import numpy as np
    >>> from icscm import InvariantScoreClassifier
    >>> rng = np.random.default_rng(0)
    >>> clinic, age = rng.integers(0, 4, 3000), rng.integers(20, 90, 3000)
    >>> smokes = rng.random(3000) < 0.3
    >>> ill = rng.random(3000) < 1 / (1 + np.exp(3 - 2 * (age > 60) - smokes))
    >>> score = InvariantScoreClassifier(max_terms=2, random_state=0)
    >>> score.fit(np.c_[age, smokes], ill, environments=clinic).features_used_
    [0, 1]
    """

    tests_invariance: ClassVar[bool] = True
    device: ClassVar[str] = "cpu"  # of `BinningConfig`: residuals are not summed on a card

    model_: Score = field(init=False)
    trace_: Trace = field(init=False)
    screen_: "pandas.DataFrame | None" = field(init=False)
    tolerance_: float | None = field(init=False)

    max_terms: int = 12
    max_points: int = 5
    tolerance: float | None = 0.5
    min_samples_leaf: float = 0.01
    max_thresholds: int | None = 30
    n_jobs: int | None = None
    random_state: Any = None

    def _make_settings(self, countable: Countable[Any]) -> ScoreSettings:
        source = countable.source
        if source.rows is None:
            raise IcscmError(
                "a score sums residuals of rows, which is not possible with these samples; fit it "
                "on a table in memory or with fit_dataset, or use InvariantTreeClassifier"
            )
        if self.tolerance is not None and countable.has_environments:
            check_several(source.environments)

        counts = source.count_rows()  # (outcome, environment)
        n_rows = counts.sum()
        rate = counts[1].sum() / n_rows
        # a term that is true of n rows with the common rate p has the information  n p (1 - p)
        min_rows = self.min_samples_leaf * n_rows
        min_information = min_rows * rate * (1.0 - rate)
        return ScoreSettings(
            columns=source.rows.list_columns(),
            max_terms=self.max_terms,
            max_points=self.max_points,
            min_information=min_information,
            design=measure_chance_effect(source),
        )

    def _learn(self, countable: Countable[Any]) -> None:
        """Screen the columns, give points to those that are kept, and judge the result.

        The screen rejects columns whose effect differs between environments by more than the
        tolerance. Without environments or without a tolerance, all columns are kept.
        """
        source = countable.source
        settings = self._make_settings(countable)
        if not countable.has_environments:
            warn_of_environments(countable, "nothing can be compared: no column is rejected")

        self.tolerance_ = None
        self.screen_ = None
        rejected: tuple[RejectedColumn, ...] = ()
        if countable.has_environments and self.tolerance is not None:
            self.tolerance_ = float(self.tolerance)
            screened = screen_columns(
                countable,
                tolerance=self.tolerance_,
                seed=draw_seed(self.random_state),
                n_jobs=self.n_jobs,
            )
            self.screen_ = screened.table
            rejected = screened.rejected
            kept = np.intersect1d(settings.columns, screened.kept)
            settings = replace(settings, columns=kept)

        self.model_ = find_score(source, settings)
        # the classes of totals are tested afterwards: rates may differ although effects do not
        self.trace_ = make_trace(
            source,
            nodes=(),
            rejected_columns=rejected,
            invariance="effect",
            tolerance=self.tolerance_,
            verdicts=make_verdicts(self.model_.leaves, make_test("chi2"), CHANCE_LEVEL),
        )

    def _warn_of_findings(self) -> None:
        if not self.model_.terms:
            warn(
                "No column got points: the risk is the same for every sample. See screen_ for the "
                "columns that were rejected.",
                NothingFoundWarning,
            )

    @property
    def feature_importances_(self) -> FloatArray:
        """Share of each column in the range of totals: the most less the least of its points."""
        ranges = np.zeros(self.n_features_in_)
        for terms_of_column in self.model_.list_columns():
            column = terms_of_column[0].rule.column
            points = [term.points for term in terms_of_column]
            ranges[column] = max(points) - min(points)
        total = ranges.sum()
        return ranges / total if total > 0 else ranges
