"""The one door to all searches."""

from __future__ import annotations

from icscm.engine.counts import CountSource
from icscm.model.rule_sets import RuleSet
from icscm.search.exhaustive import learn_exhaustively
from icscm.search.greedy import SharedLooks, learn
from icscm.search.settings import Settings
from icscm.search.trace import Trace


def find_model(
    source: CountSource, settings: Settings, shared: SharedLooks | None = None
) -> tuple[RuleSet, Trace]:
    """Learn a model from counts with the search that the settings name.

    `shared` are looks at the same counts by searches at other levels.
    """
    if settings.search == "exhaustive":
        return learn_exhaustively(source, settings)
    return learn(source, settings, shared)
