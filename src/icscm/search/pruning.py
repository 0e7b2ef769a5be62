"""Pruning (Proposition 3.2): drop the features without which the label is still invariant."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from icscm._constants import P_VALUE_DECIMALS
from icscm.engine.counts import PatternTable
from icscm.engine.patterns import merge_patterns
from icscm.search.trace import PruningTest
from icscm.stats.independence import compute_conditional, exceeds


def prune(
    table: PatternTable, features: Sequence[str | int], alpha: float
) -> tuple[list[int], list[PruningTest]]:
    """The rules to keep, by number, and every test made on the way.

    `features[i]` is the feature of rule i. Each round tests, for every feature, label against
    environment given the values of the rules on the other features, and removes the one of
    largest p-value if that exceeds alpha; of equal ones that which joined the model last.
    One feature always stays.
    """
    kept = list(range(len(features)))
    tests: list[PruningTest] = []
    while len({features[i] for i in kept}) > 1:
        round_tests = _test_each_feature(table, features, kept, number=_next_round(tests))
        last = max(range(len(round_tests)), key=lambda i: (_rounded(round_tests[i]), i))
        is_removed = bool(exceeds(round_tests[last].p_value, alpha))
        round_tests[last] = replace(round_tests[last], removed=is_removed)
        tests += round_tests
        if not is_removed:
            break
        kept = [i for i in kept if features[i] != round_tests[last].feature]
    return kept, tests


def _test_each_feature(
    table: PatternTable, features: Sequence[str | int], kept: Sequence[int], number: int
) -> list[PruningTest]:
    tested = list(dict.fromkeys(features[i] for i in kept))
    others = [[i for i in kept if features[i] != feature] for feature in tested]
    results = compute_conditional([merge_patterns(table, rules).counts for rules in others])
    return [
        PruningTest(number, feature, float(statistic), int(dof), float(p_value), removed=False)
        for feature, statistic, dof, p_value in zip(tested, *results, strict=True)
    ]


def _next_round(tests: Sequence[PruningTest]) -> int:
    return tests[-1].round + 1 if tests else 1


def _rounded(test: PruningTest) -> float:
    return round(test.p_value, P_VALUE_DECIMALS)
