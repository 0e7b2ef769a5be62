"""A points score on columns whose effects are homogeneous across environments."""

from dataclasses import dataclass, field, replace
from itertools import product
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from icscm._changes import reject_removed_options
from icscm._constants import CHANCE_LEVEL
from icscm._types import FloatArray
from icscm.engine.counts import Cut
from icscm.estimators.base import BaseRuleClassifier, warn_of_environments
from icscm.estimators.selector import InvariantFeatureSelector
from icscm.exceptions import IcscmError, NothingFoundWarning, warn
from icscm.formatting import format_name
from icscm.model.score import Score
from icscm.parameters import document_parameters, draw_seed
from icscm.search.design_effects import average_design_effect
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
    for each environment; each may then be exchanged. Their effects are scaled by the factor of
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
    missing: ClassVar[str] = "separate"  # missing values have points of their own
    device: ClassVar[str] = "cpu"  # of `BinningConfig`: residuals are not summed on a card

    model_: Score = field(init=False)
    trace_: Trace = field(init=False)
    screen_: "pandas.DataFrame | None" = field(init=False)
    tolerance_: float | None = field(init=False)

    max_terms: int = 12
    max_points: int = 5
    tolerance: float | None = 0.01
    min_replication: float = 0.15
    min_samples_leaf: float = 0.01
    max_thresholds: int | None = 30
    n_jobs: int | None = None
    keep_columns: Any = None
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
        totals = source.count_rows()
        rate = totals[1].sum() / totals.sum()
        least = self.min_samples_leaf * totals.sum() * rate * (1.0 - rate)
        features = source.rows.list_columns()
        sizes = self.max_terms, self.max_points
        return ScoreSettings(features, *sizes, least, average_design_effect(source))

    def _learn(self, countable: Countable[Any]) -> None:
        source, settings = countable.source, self._make_settings(countable)
        self.tolerance_, self.screen_ = None, None
        rejected: tuple[RejectedColumn, ...] = ()
        if not countable.has_environments:
            warn_of_environments(countable, "nothing can be compared: no column is rejected")
        elif self.tolerance is not None:
            self.tolerance_ = float(self.tolerance)
            kept, rejected = self._screen(countable)
            settings = replace(settings, features=np.intersect1d(settings.features, kept))
        self.model_ = find_score(source, settings)
        verdicts = make_verdicts(self.model_.leaves, make_test("chi2"), CHANCE_LEVEL)
        required = {"invariance": "effect", "tolerance": self.tolerance_, "verdicts": verdicts}
        self.trace_ = make_trace(source, (), rejected_columns=rejected, **required)

    def _screen(self, countable: Countable[Any]) -> tuple[list[int], tuple[RejectedColumn, ...]]:
        """The columns that the selector keeps, and the record of those that it rejects."""
        import pandas

        source, names = countable.source, countable.names
        table = read_values(source)
        cells = source.rows.list_cells()
        order = source.rows.list_in_table_order()
        selector = _Screen(
            tolerance=self.tolerance or 0.0,
            min_replication=self.min_replication,
            n_jobs=self.n_jobs,
            random_state=draw_seed(self.random_state),
        )
        shown = {format_name(j if names is None else names[j]): j for j in table}
        frame = pandas.DataFrame(dict(zip(shown, table.values(), strict=True))).iloc[order]
        places = np.array([*source.environments, None], dtype=object)[cells.environments[order]]
        groups = source.rows.list_groups()
        if groups is not None:
            groups = source.rows.number_units(groups)[order]
        outcomes = cells.outcomes[order]
        found = selector.fit(frame, outcomes, environments=places, groups=groups).screen_
        features = [shown[name] for name in found["column"]]
        self.screen_ = found.assign(column=[j if names is None else names[j] for j in features])
        rows = [*zip(features, found.to_dict("records"), strict=True)]
        rejected = [_record(source, *row) for row in rows if row[1]["verdict"] == "rejected"]
        kept = [j for j, row in rows if row["verdict"] != "rejected"]
        return kept, tuple(sorted(rejected, key=lambda each: each.round))

    def _warn_of_findings(self) -> None:
        if not self.model_.terms:
            warn(
                "No column got points: the risk is the same for every sample. See screen_ for the "
                "columns that were rejected.",
                NothingFoundWarning,
            )

    @property
    def feature_importances_(self) -> FloatArray:
        """Share of each column in the largest total of points: most less least of its points."""
        importances = np.zeros(self.n_features_in_)
        for terms in self.model_.list_columns():
            points = [each.points for each in terms]
            importances[terms[0].rule.column] = max(points) - min(points)
        return importances / (importances.sum() or 1.0)


class _Screen(InvariantFeatureSelector):
    _fits_learner = False


def read_values(source: Any) -> dict[int, Any]:
    """The columns of a binned source, as its rows are sorted: of each bin the largest value.

    So all sources give the same values, however the rows are kept; above the last threshold there
    is no such value, and any larger one stands for it.
    """
    import pandas

    columns: dict[int, Any] = {}
    for feature in source.rows.list_columns().tolist():
        layout = source.columns.find_layout(feature)
        codes = source.rows.read_bins(feature).astype(np.int64)
        codes -= layout.has_missing  # -1 where missing
        cuts = [Cut(feature, k, False) for k in range(int(codes.max(initial=0)) + 1)]
        if layout.nominal:
            rules = map(source.columns.make_rule, cuts)
            levels = ["rare levels" if r.pooled else str(r.levels[0]) for r in rules]
            columns[feature] = pandas.Categorical.from_codes(codes, levels)
            continue
        rules = map(source.columns.make_rule, cuts[:-1])
        edges = [float(getattr(r, "threshold", k)) for k, r in enumerate(rules)] or [0.0]
        values = np.array([*edges, max(2 * edges[-1], edges[-1] + 1.0), np.nan])
        columns[feature] = values[codes]
    return columns


def _record(source: Any, feature: int, row: dict[str, Any]) -> RejectedColumn:
    """What the trace has of a rejected column: the rule of the screen, share and effects."""
    make, layout = source.columns.make_rule, source.columns.find_layout(feature)
    n_bins = int(source.columns.count_bins(np.array([feature]))[0]) - layout.has_missing
    n_cuts = n_bins if layout.nominal else n_bins - 1
    places = product(range(-1, n_cuts), (False, True), (False, True))
    rules = {str(rule): rule for rule in (make(Cut(feature, *each)) for each in places)}
    rule = rules.get(row["rule"], make(Cut(feature, 0, False)))
    if row["round"] == 0:
        return RejectedColumn(rule, "unreplicated", 0, row["replication"])
    numbers = None, row["share"], row["p_value"]
    return RejectedColumn(rule, "heterogeneous", int(row["round"]), *numbers)
