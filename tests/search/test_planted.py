"""Planted conjunctions: the fast learner and the literal one agree in every branch there is."""

from collections import Counter
from dataclasses import replace
from unittest import mock

import numpy as np
import pytest

from icscm import ICSCMClassifier, SCMClassifier, _constants
from icscm.engine.patterns import count_patterns
from icscm.engine.reasons import REASONS
from icscm.model.splits import freeze_counts
from icscm.search.patterns import Patterns
from icscm.search.pruning import prune
from icscm.search.view import ConjunctionView
from icscm.stats.independence import ConditionalTests
from support.fitting import PAPER, assert_same, fit_quietly
from support.literal.learner import learn_slowly

# How often each must be reached in a quarter of the run: about half of what it is.
LEAST = {
    "two features": 8,
    "a feature with two rules": 4,
    "pruning ran": 4,
    "pruned: removed": 2,
    "pruned: needed": 2,
    "pruned: single": 15,
    "pruned: not_ended": 10,
    "set aside": 2,
    "ties over blocks": 4,
    "several blocks": 30,
    "equivalent rules": 15,
    "disjunction": 15,
    "refused: dependent": 25,
    "refused: unreplicated": 8,
    "refused: unhelpful": 15,
    "stop: covered": 3,
    "stop: independence": 15,
    "stop: max_rules": 3,
    "stop: no_candidate": 5,
    "equivalence": 4,
}


def plant(rng):
    """A conjunction, or an interval of one feature, whose parts the environment moves or not.

    With distractors, copies (inverted too) and a child of the label that depends on it.
    """
    n_rows, n_environments = int(rng.integers(50, 140)), int(rng.integers(2, 4))
    environments = rng.integers(0, n_environments, n_rows)
    moved = environments / (n_environments - 1)
    a1 = rng.random(n_rows) < 0.45 + 0.45 * moved
    a2 = rng.random(n_rows) < 0.75 - rng.choice([0.0, 0.4]) * moved
    grade = rng.integers(0, 5, n_rows) - (rng.random(n_rows) < rng.choice([0.0, 0.7]) * moved)
    middle = (grade > 0) & (grade <= 2)
    truth = (a1 & a2, a1 & middle, middle)[rng.integers(3)]
    y = truth ^ (rng.random(n_rows) < rng.choice([0.0, 0.03, 0.15]))
    child = y ^ (rng.random(n_rows) < 0.05 + 0.3 * moved)
    columns = [a1, a2, grade, child, rng.integers(0, 3, n_rows)]
    columns += [columns[j] for j in rng.integers(0, 4, rng.integers(0, 3))]
    columns += [~a1] * int(rng.integers(0, 2))
    X = np.column_stack(columns)[:, rng.permutation(len(columns))].astype(float)
    y = y.astype(int)
    y[:2] = environments[:2] = [0, 1]
    return X, y, environments


def draw_options(rng):
    return {
        "p": rng.choice([0.1, 0.5, 1.0, 1.0, 2.5]).item(),
        "model_type": str(rng.choice(["conjunction", "disjunction"])),
        "max_rules": int(rng.choice([1, 2, 10], p=[0.15, 0.15, 0.7])),
        "max_thresholds": 50,
        "alpha": float(rng.choice([0.01, 0.05, 0.3])),
        "test": str(rng.choice(["chi2", "g", "fisher"], p=[0.45, 0.45, 0.1])),
        "stop": str(rng.choice(["independence", "coverage"], p=[0.7, 0.3])),
        "pruning": [True, "always", False][rng.choice(3, p=[0.6, 0.3, 0.1])],
        "margin": [None, 0.6][rng.choice(2, p=[0.75, 0.25])],
        "min_replication": float(rng.choice([0.0, 0.25, 0.9], p=[0.4, 0.5, 0.1])),
        "min_utility": [None, 0.0, 3.5][rng.choice(3, p=[0.5, 0.4, 0.1])],
    }


def list_in_any_order(rng, blocks_seen):
    """`ConjunctionView.iterate_leaf_tables` that remembers the blocks, and may turn them round."""
    iterate = ConjunctionView.iterate_leaf_tables

    def list_blocks(view, cubes, uncovered):
        blocks = [
            replace(each, tables=each.tables.copy()) for each in iterate(view, cubes, uncovered)
        ]
        blocks_seen[:] = [set(each.columns.tolist()) for each in blocks]
        return iter(blocks if rng.random() < 0.5 else blocks[::-1])

    return mock.patch.object(ConjunctionView, "iterate_leaf_tables", list_blocks)


def note(reached, fitted, blocks):
    """Which branches this fit went through."""
    trace, columns = fitted.trace_, [rule.column for rule in fitted.rules_]
    reached["two features"] += len(set(columns)) > 1
    reached["a feature with two rules"] += len(set(columns)) < len(columns)
    reached["pruning ran"] += bool(trace.pruning)
    reached["several blocks"] += len(blocks) > 1
    reached["disjunction"] += fitted.model_type == "disjunction" and bool(columns)
    reached[f"stop: {trace.stop_reason}"] += 1
    reached["equivalence"] += fitted.margin is not None and bool(columns)
    looks = [*trace.steps, trace.last_scan]
    reached["set aside"] += trace.discarded is not None
    if trace.pruned is not None:
        reached[f"pruned: {trace.pruned.outcome}"] += 1
    for reason in REASONS:
        reached[f"refused: {reason}"] += any(look and look.n_rejected[reason] for look in looks)
    for step in trace.steps:
        homes = [
            number
            for rule in (step.chosen.rule, *step.equivalent)
            for number, block in enumerate(blocks)
            if rule.column in block
        ]
        reached["equivalent rules"] += bool(step.equivalent)
        reached["ties over blocks"] += len(set(homes)) > 1


@pytest.mark.parametrize(
    "part", [0, *(pytest.param(part, marks=pytest.mark.thorough) for part in (1, 2, 3))]
)
def test_planted_conjunctions_equal_the_literal_learner(part):
    """Few of the random tables led to models of two features, so that pruning hardly ran."""
    reached = Counter()
    for seed in range(part, 320, 4):
        rng = np.random.default_rng(seed)
        X, y, environments = plant(rng)
        options = draw_options(rng)
        y = 1 - y if options["model_type"] == "disjunction" else y
        n_cells = int(rng.choice([1, 2**7, 2**20]))
        blocks = []
        with (
            mock.patch.object(_constants, "BLOCK_CELLS", n_cells),
            mock.patch.object(_constants, "PACKED_BLOCK_CELLS", n_cells),
            list_in_any_order(rng, blocks),
        ):
            fitted = fit_quietly(ICSCMClassifier(**options), X, y, environments)
        expected = learn_slowly(X.tolist(), y.tolist(), environments.tolist(), **options)
        assert_same(fitted, expected, options["model_type"] == "disjunction", environments)
        note(reached, fitted, blocks)
    assert {name: reached[name] for name in LEAST if reached[name] < LEAST[name]} == {}


def test_of_equal_p_values_the_feature_that_joined_last_is_pruned():
    """Two rules that the counts cannot tell apart: the first, of larger utility, must stay."""
    truths = [np.array(each, dtype=bool) for each in ([0, 0, 1, 1] * 8, [0, 1, 0, 1] * 8)]
    labels = np.array([0, 0, 0, 1] * 4 + [0, 0, 0, 1] * 4)
    cells = labels * 2 + np.repeat([0, 1], 16)
    table = count_patterns(truths, cells, n_environments=2)
    pruning = prune(Patterns(table), ["first", "last"], alpha=0.05)
    tests = pruning.tests
    assert tests[0].p_value == tests[1].p_value > 0.05
    assert [test.feature for test in tests if test.removed] == ["last"]
    assert pruning.kept == [0]
    # equal but for rounding
    almost = ConditionalTests(np.ones(2), np.ones(2), np.array([0.5, 0.5 - 1e-15]))
    with mock.patch("icscm.search.pruning.compute_conditional", return_value=almost):
        assert prune(Patterns(table), ["first", "last"], alpha=0.05).kept == [0]


def test_equal_utilities_are_equal():
    """Rounding broke the tie: 1 - 0.1 * 1 and 9 - 0.1 * 81 are both 0.9, and the second won.

    The larger |A| - |B| is the first's, 0 against -72.
    """
    y = np.array([0] * 10 + [1] * 82)
    X = np.ones((92, 2))
    X[[0, 10], 0] = 0
    X[list(range(1, 10)) + list(range(11, 92)), 1] = 0
    environments = np.arange(92) % 2
    X, y = np.vstack((X, np.ones((20, 2)))), np.append(y, [1] * 20)
    environments = np.append(environments, np.arange(20) % 2)
    options = {"p": 0.1, "max_rules": 1}
    fitted = fit_quietly(SCMClassifier(**options), X, y, environments)
    step = fitted.trace_.steps[0]
    assert (step.chosen.rule.column, step.chosen.utility) == (0, 0.9)
    expected = learn_slowly(X.tolist(), y.tolist(), environments.tolist(), **options)
    assert_same(fitted, expected, False, environments)


def test_ties_of_many_candidates_are_found_quickly():
    """A tie of 2,000 leaves in 200 environments took most of 17 s: nested tuples were the keys."""
    rng = np.random.default_rng(0)
    y, environments = rng.random(4000) < 0.2, np.arange(4000) % 200
    X = np.zeros((4000, 1000), dtype=bool)
    negatives = np.flatnonzero(~y)
    for j in range(1000):
        X[rng.choice(negatives, 3, replace=False), j] = True
    learner = ICSCMClassifier(p=100, stop="coverage", max_rules=1, **PAPER)
    learner.set_params(pruning=False)
    with mock.patch("icscm.search.view.freeze_counts", wraps=freeze_counts) as frozen:
        fitted = fit_quietly(learner, X, y, environments)
    assert 0 < frozen.call_count < 20  # those that the trace shows, not all that tie
    assert fitted.trace_.steps[0].n_tied == 1000
