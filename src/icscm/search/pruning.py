"""Pruning (Proposition 3.2): drop the features without which the label is still invariant.

The proposition speaks of a conjunction all of whose leaves are invariant. The leaves of the rules
passed when these were added; the uncovered samples have passed if the search ended for that reason.
If it ended for another, nothing is known of the features that the tests would drop, and they stay.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from itertools import count

import numpy as np

from icscm._constants import P_VALUE_DECIMALS
from icscm.engine.counts import PatternTable
from icscm.engine.pieces import merge_patterns, select_patterns
from icscm.search.records import PruningTest
from icscm.search.settings import Settings
from icscm.search.trace import Trace
from icscm.search.view import compute_leaves
from icscm.stats.criteria import EquivalenceCriterion
from icscm.stats.independence import compute_conditional, exceeds


def prune_where_allowed(
    table: PatternTable, trace: Trace, settings: Settings
) -> tuple[list[int], list[PruningTest], str]:
    """The rules to keep, every test made, and what came of it: a key of `PRUNING_OUTCOMES`.

    `pruning=True` prunes where the proposition allows it; `"shown"` only where the leaves that are
    left are shown to lie inside the margin; `"always"` whatever the search ended by.
    """
    features = [step.chosen.rule.feature for step in trace.steps]
    everything = list(range(len(features)))
    if settings.pruning == "always":
        kept, tests = prune(table, features, settings.alpha)
    elif trace.stop_reason != "independence":
        return everything, [], "not_ended"
    else:
        is_allowed = partial(_pass_leaves, table, trace, settings)
        kept, tests = prune(table, features, settings.alpha, is_allowed)
    outcome = "single" if not tests else "removed" if len(kept) < len(everything) else "needed"
    return kept, tests, outcome


def _pass_leaves(
    table: PatternTable, trace: Trace, settings: Settings, rules: Sequence[int]
) -> bool:
    """Whether every leaf of some of the rules is accepted as invariant, as the search accepts it.

    The leaf of a rule is tested at the level at which the rule was, the uncovered samples at alpha.
    """
    leaves = compute_leaves(table, rules)
    inside = EquivalenceCriterion(settings.alpha, settings.margin, settings.margin_on)
    if settings.pruning == "shown" and not inside.find_accepted(leaves).all():
        return False
    steps = trace.steps
    levels = [*(steps[i].cutoff for i in rules), None]
    criteria = [settings.make_criterion(level) for level in levels]
    return all(
        criterion is None or criterion.find_accepted(leaf[np.newaxis])[0]
        for criterion, leaf in zip(criteria, leaves, strict=True)
    )


def prune(
    table: PatternTable,
    features: Sequence[str | int],
    alpha: float,
    is_allowed: Callable[[Sequence[int]], bool] = lambda _: True,
) -> tuple[list[int], list[PruningTest]]:
    """The rules to keep, by number, and every test made on the way.

    `features[i]` is the feature of rule i. Each round tests, for every feature, label against
    environment given the values of the rules on the other features, and removes the one of
    largest p-value if that exceeds alpha; of equal ones that which joined the model last. A removal
    after which the rules left are not `is_allowed` is undone, and the next one tried. One feature
    always stays.
    """
    kept = list(range(len(features)))
    tests: list[PruningTest] = []
    for number in count(1):
        of_kept = [features[i] for i in kept]  # the table is over those kept
        tested = list(dict.fromkeys(of_kept))
        if len(tested) < 2:
            break
        others = [[i for i, other in enumerate(of_kept) if other != each] for each in tested]
        merged = merge_patterns(table, others)
        results = compute_conditional([each.counts for each in merged])
        made = [
            PruningTest(number, feature, float(statistic), int(dof), float(p), removed=False)
            for feature, statistic, dof, p in zip(tested, *results, strict=True)
        ]
        removed = None
        ranked = [(round(each.p_value, P_VALUE_DECIMALS), i) for i, each in enumerate(made)]
        for _, one in sorted(ranked, reverse=True):
            if not exceeds(made[one].p_value, alpha):
                break
            if is_allowed([kept[i] for i in others[one]]):
                made[one], removed = replace(made[one], removed=True), one
                break
            made[one] = replace(made[one], undone=True)
        tests += made
        if removed is None:
            break
        table = select_patterns(table, others[removed], merged[removed])
        kept = [kept[i] for i in others[removed]]
    return kept, tests
