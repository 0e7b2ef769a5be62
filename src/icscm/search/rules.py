"""Rule sets from counts: a model and its trace, by the search that the settings name."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import numpy as np

from icscm.engine.counts import CountSource
from icscm.model.tree import Tree
from icscm.search.exhaustive import learn_exhaustively
from icscm.search.greedy import SharedScans, learn
from icscm.search.lazy_verdicts import defer_verdicts
from icscm.search.settings import Settings
from icscm.search.trace import Trace


def find_model(
    source: CountSource, settings: Settings, shared: SharedScans | None = None
) -> tuple[Tree, Trace]:
    """Learn a model from counts with the search that the settings name.

    `shared` are scans of the same counts by searches at other levels. With a least utility, rules
    that together do no better than the majority-class baseline are discarded.
    """
    if settings.search == "exhaustive":
        model, trace = learn_exhaustively(source, settings)
    else:
        model, trace = learn(source, settings, shared)
    if settings.min_utility is not None and model.rules and settings.test is not None:
        # by the costs that p sets, or by plain errors: a p far from 1 makes one constant cheap
        gain = max(_measure_gain(model, settings.p), _measure_gain(model, 1.0))
        if gain < Fraction(str(settings.min_utility)):
            found, model = model, model.make_baseline()
            trace = replace(trace, verdicts=settings.make_verdicts(model.leaves), discarded=found)
    return model, trace if settings.search == "exhaustive" else defer_verdicts(trace, settings)


def _measure_gain(model: Tree, p: float) -> Fraction:
    """What the rules save, compared with the better of the two constant predictions.

    As in a rule's utility, a sample that a rule covers wrongly costs p, one that no rule covers and
    that should be covered costs 1.
    """
    costs = [Fraction(str(p)), Fraction(str(p))]
    costs[int(model.covers_when)] = Fraction(1)
    labels: list[int] = np.array(model.leaves).sum(axis=(0, 2)).tolist()
    wrong = model.count_wrong()
    constant = min(costs[0] * labels[0], costs[1] * labels[1])
    return constant - costs[0] * wrong[0] - costs[1] * wrong[1]
