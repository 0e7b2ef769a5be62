"""Exhaustive search over a screened set of rules, leaf by leaf.

    counts -> one rule per associated feature -> their joint table -> every subset's leaves
           -> accepted subsets -> what they all share

The greedy search takes "not refused" for "invariant" and may so be led astray by weak tests.
Here every subset of a few candidate rules is tested as a whole, and only rules that all accepted
subsets share are reported, as invariant causal prediction does; but a subset of d rules makes
d + 1 leaves, not 2^d strata, so its test has far more power. `docs/theory.md` has the guarantee
and its assumptions.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from icscm._types import CountArray, FloatArray
from icscm.engine.counts import CountSource, Cut, PatternTable
from icscm.model.rule_sets import MODEL_KINDS, RuleSet, freeze_counts
from icscm.search.settings import Settings
from icscm.search.trace import Candidate, Look, Screened, SetTest, Step, Trace
from icscm.search.view import ConjunctionView, compute_leaves, make_view
from icscm.stats.independence import (
    ChiSquaredTest,
    GTest,
    compute_conditional_g,
    compute_upper_tail,
    exceeds,
    find_independent,
)
from icscm.stats.leaf_tables import LeafTables
from icscm.stats.verdicts import Verdict

# Chance that any unrelated feature passes the screen, over all rules tried.
SCREEN_LEVEL = 0.05


def choose_alpha(n_samples: int) -> float:
    """The level for `alpha="auto"`: 0.05 for few samples, 200 / m for more than 4,000.

    The guarantee costs up to alpha of the runs, in which the true set itself is rejected. With
    many samples wrong sets are rejected by far, and a smaller alpha costs nothing else.

    >>> choose_alpha(2_000), choose_alpha(20_000)
    (0.05, 0.01)
    """
    return min(0.05, 200.0 / n_samples)


def learn_exhaustively(source: CountSource, settings: Settings) -> tuple[RuleSet, Trace]:
    """Learn from counts the rules that all accepted subsets of the screened rules share."""
    view = make_view(source, settings, expanded=True)
    screened, n_tried = _screen(view, settings)
    cuts = [each.cut for each in screened]
    rules = [view.make_rule(cut) for cut in cuts]
    table = source.count_patterns([view.make_binned_rule(cut) for cut in cuts])
    subsets = list_subsets(len(rules))
    p_values = _test_subsets(table, subsets)
    accepted = [
        subset for subset, p in zip(subsets, p_values, strict=True) if exceeds(p, settings.alpha)
    ]
    shared = find_shared(accepted)
    kept = sorted(shared or ())
    leaves = compute_leaves(table, kept)
    model = MODEL_KINDS[settings.model_type](tuple(rules[i] for i in kept), freeze_counts(leaves))
    # the test that the sets were judged by
    verdicts = settings.judge_leaves(model.leaves, GTest())
    look = Look(n_tried, {}, ())
    trace = Trace(
        steps=tuple(_make_steps(view, screened, kept, leaves, verdicts, look)),
        stop_reason=_find_reason(screened, accepted, kept),
        last_look=None,
        nearest=(),
        pruning=(),
        classes=tuple(source.classes),
        environments=tuple(source.environments),
        alpha=settings.alpha,
        notes=tuple(source.notes),
        screening=tuple(
            Screened(rule, each.statistic, each.p_value)
            for rule, each in zip(rules, screened, strict=True)
        ),
        sets=tuple(
            SetTest(
                tuple(rules[i].feature for i in subset), float(p), bool(exceeds(p, settings.alpha))
            )
            for subset, p in zip(subsets, p_values, strict=True)
        ),
        verdicts=verdicts,
    )
    return model, trace


@dataclass(frozen=True)
class _Association:
    """A rule and how strongly it goes with the label."""

    cut: Cut
    statistic: float
    p_value: float
    utility: float


def _screen(view: ConjunctionView, settings: Settings) -> tuple[list[_Association], int]:
    """The best rule of each feature that is significantly associated with the label.

    At most `n_candidates`, strongest first; and the number of rules tried, by which
    Bonferroni's correction multiplies the p-values.
    """
    totals = view.count_totals().sum(axis=1)
    best: list[tuple[Cut, float, float]] = []
    n_tried = 0
    for leaves in view.leaf_tables():
        statistic, utility = _associate(leaves, totals, settings)
        n_tried += int((statistic > 0).sum())
        by_feature = statistic.reshape(len(leaves.features), -1)
        for row, column in enumerate(by_feature.argmax(axis=1)):
            candidate = row * by_feature.shape[1] + int(column)
            if statistic[candidate] > 0:
                best.append(
                    (
                        leaves.locate(candidate),
                        float(statistic[candidate]),
                        float(utility[candidate]),
                    )
                )
    found = [
        _Association(cut, statistic, min(1.0, n_tried * _compute_tail(statistic)), utility)
        for cut, statistic, utility in best
    ]
    significant = [each for each in found if each.p_value <= SCREEN_LEVEL]
    significant.sort(key=lambda each: (-each.statistic, each.cut))
    return significant[: settings.n_candidates], n_tried


def _associate(
    leaves: LeafTables, totals: CountArray, settings: Settings
) -> tuple[FloatArray, FloatArray]:
    """Pearson's statistic of each rule against the label, and its utility.

    0 for rules that point the wrong way (their leaf is more positive than the rest): of a rule
    and its negation one does, so each cut counts once.
    """
    leaf = leaves.tables.sum(axis=2)
    rest = totals - leaf
    points_right = rest[:, 1] * leaf.sum(axis=1) > leaf[:, 1] * rest.sum(axis=1)
    n_least = np.minimum(leaf.sum(axis=1), rest.sum(axis=1))
    allowed = points_right & (n_least >= settings.min_samples_leaf)
    if settings.feature_weights is not None:
        allowed &= settings.feature_weights[leaves.find_features()] > 0
    if settings.screen == "invariance" and settings.test is not None:
        allowed &= find_independent(settings.test, leaves.tables, settings.alpha)
    statistic = ChiSquaredTest(yates=False).compute_statistics(np.stack((leaf, rest), axis=2))
    utility = leaf[:, 0] - settings.p * leaf[:, 1]
    return np.where(allowed, statistic, 0.0), utility


def _compute_tail(statistic: float) -> float:
    return float(compute_upper_tail(np.array([statistic]), np.array([1]))[0])


def list_subsets(n: int) -> list[tuple[int, ...]]:
    """All subsets of 0 .. n - 1, small ones first.

    >>> list_subsets(2)
    [(), (0,), (1,), (0, 1)]
    """
    return [subset for size in range(n + 1) for subset in combinations(range(n), size)]


def _test_subsets(table: PatternTable, subsets: Sequence[tuple[int, ...]]) -> FloatArray:
    """p-value of each subset: G summed over the leaves of its conjunction."""
    return compute_conditional_g([compute_leaves(table, subset) for subset in subsets]).p_values


def find_shared(accepted: Sequence[tuple[int, ...]]) -> set[int] | None:
    """What all accepted sets share; None when there is none, which is not the empty set.

    >>> find_shared([(0, 1), (1, 2)]), find_shared([(0,), (1,)]), find_shared([])
    ({1}, set(), None)
    """
    return set.intersection(*map(set, accepted)) if accepted else None


def _make_steps(
    view: ConjunctionView,
    screened: Sequence[_Association],
    kept: Sequence[int],
    leaves: CountArray,
    verdicts: Sequence[Verdict],
    look: Look,
) -> list[Step]:
    """The model's rules as steps, with the leaf that each makes and what remains after it."""
    steps = []
    for number, i in enumerate(kept):
        remaining = leaves[number + 1 :].sum(axis=0)
        p_remaining = compute_conditional_g([remaining[np.newaxis]]).p_values[0]
        rule = view.make_rule(screened[i].cut)
        chosen = Candidate(
            rule,
            screened[i].utility,
            verdicts[number].p_value,
            freeze_counts(leaves[number]),
            verdicts[number],
        )
        steps.append(Step(chosen, freeze_counts(remaining), float(p_remaining), look, (), 1))
    return steps


def _find_reason(
    screened: Sequence[_Association], accepted: Sequence[tuple[int, ...]], kept: Sequence[int]
) -> str:
    if not screened:
        return "nothing_associated"
    if not accepted:
        return "all_rejected"
    return "intersection" if kept else "empty_intersection"
