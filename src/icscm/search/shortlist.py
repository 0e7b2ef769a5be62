"""The criteria of a greedy step in plain numbers, for a source that examines candidates itself."""

from __future__ import annotations

import numpy as np
from scipy import special

from icscm._constants import MAX_EQUIVALENT_RULES, N_REJECTED_KEPT
from icscm._types import CountArray
from icscm.engine.counts import ScreenQuery
from icscm.search.settings import Settings
from icscm.stats.criteria import Criterion, PValueCriterion, find_least_spread
from icscm.stats.independence import ChiSquaredTest, GTest, IndependenceTest
from icscm.stats.utility import Utility

# Statistics that lie nearer to the critical value are for the search itself to decide: relative,
# and for each sample, of whose rounding a sum may hold a little.
_SLACK = 1e-9
_SLACK_OF_SAMPLE = 1e-13
# No leaf has less.
_ANY_SPREAD = -1.0


def make_screen_query(
    settings: Settings,
    criterion: Criterion | None,
    utility: Utility,
    in_play: CountArray,
    *,
    inverted: bool,
) -> ScreenQuery | None:
    """What every candidate must satisfy; None where plain numbers cannot express it."""
    test = _find_test(criterion)
    if test is None or settings.feature_weights is not None or settings.evidence == "cumulative":
        return None
    dof = np.arange(1, in_play.shape[1])
    critical = np.full(in_play.shape[1], np.inf)
    if isinstance(criterion, PValueCriterion):
        critical[1:] = special.chdtri(dof, criterion.alpha)
    slack = _SLACK * critical + _SLACK_OF_SAMPLE * int(in_play.sum())
    slack[~np.isfinite(critical)] = 0.0
    spread = find_least_spread(in_play, settings.min_replication)
    return ScreenQuery(
        inverted,
        *utility.ratio.as_integer_ratio(),
        settings.min_samples_leaf,
        test,
        critical - slack,
        critical + slack,
        spread if settings.min_replication else _ANY_SPREAD,
        utility.find_bound(settings.min_utility),
        MAX_EQUIVALENT_RULES + 1,
        N_REJECTED_KEPT,
    )


def _find_test(criterion: Criterion | None) -> str | None:
    """What the statistic is called; None for what goes by more than a statistic."""
    if criterion is None:
        return "none"
    test: IndependenceTest | None = getattr(criterion, "test", None)
    if not isinstance(criterion, PValueCriterion) or type(test) not in (ChiSquaredTest, GTest):
        return None
    return "g" if isinstance(test, GTest) else "yates" if test.yates else "pearson"  # type: ignore[union-attr]
