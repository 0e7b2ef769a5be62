"""A fitted learner held against the literal one."""

import math
import warnings
from dataclasses import replace

import pytest

from icscm.exceptions import IcscmWarning
from icscm.model.rules import CategoryRule, MissingRule
from icscm.sources.memory import open_memory

# What sets the paper's search apart from our defaults.
PAPER = {"pruning": "always", "min_replication": 0, "min_utility": None}


def fit_quietly(estimator, X, y, environments, sample_weight=None, **more):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", IcscmWarning)
        return estimator.fit(X, y, environments=environments, sample_weight=sample_weight, **more)


def fit_all_columns(learner, X, y, environments=None, sample_weight=None):
    """Fit quietly, also on columns that look like identifiers, constants or copies."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", IcscmWarning)
        preparation = replace(learner.prepare(), drop_suspicious=False)
        countable = open_memory(
            X,
            y,
            environments=environments,
            sample_weight=sample_weight,
            preparation=preparation,
        )
        return learner.fit_counts(countable)


def assert_same(fitted, expected, inverted, environments, positions=None):
    """Compare model and trace with what `learn_slowly` returns.

    A disjunction is learned as the conjunction of its negation: then its rules are `inverted`.
    """
    trace = fitted.trace_
    assert trace.stop_reason == expected["reason"]
    assert (trace.discarded is not None) == expected["set_aside"]
    model = fitted.model_ if trace.discarded is None else trace.discarded
    assert [as_tuple(rule, inverted) for rule in model.rules] == expected["kept"]
    assert len(trace.steps) == len(expected["steps"])
    for step, expected_step in zip(trace.steps, expected["steps"], strict=True):
        assert_same_step(step, expected_step, trace.environments, inverted)
    assert_same_pruning(trace.pruning, expected, positions)
    assert_no_nan(trace.to_dict())


def assert_same_step(step, expected, environments, inverted):
    """Compare the choice of a rule."""
    assert as_tuple(step.chosen.rule, inverted) == expected["rule"]
    assert step.chosen.utility == expected["utility"]
    assert_close(step.chosen.p_value, expected["p_value"])
    assert_close(step.p_value_uncovered, expected["p_value_uncovered"])
    assert as_pairs(step.chosen.covered, environments, inverted) == expected["leaf"]
    assert as_pairs(step.uncovered, environments, inverted) == expected["remaining"]
    assert step.n_candidates == expected["n_candidates"]
    assert step.n_rejected == expected["n_refused"]
    assert [as_tuple(rule, inverted) for rule in step.equivalent] == expected["equivalent"]
    assert step.n_tied == expected["n_tied"]


def assert_same_pruning(pruning, expected, positions):
    """Compare the columns removed; `positions` are those of columns that have names."""
    assert sum(test.undone for test in pruning) == expected["undone"]
    removals = [test for test in pruning if test.removed]
    columns = [test.feature for test in removals]
    if positions is not None:
        columns = [positions[column] for column in columns]
    assert columns == [column for column, _ in expected["removed"]]
    for test, (_, expected_p_value) in zip(removals, expected["removed"], strict=True):
        assert_close(test.p_value, expected_p_value)


def as_tuple(rule, inverted):
    """The rule as the literal learner writes it, before a disjunction negates it."""
    rule = rule.negate() if inverted else rule
    if isinstance(rule, MissingRule):
        return rule.column, "missing", None, rule.is_missing, rule.is_missing
    if isinstance(rule, CategoryRule):
        assert rule.pooled == (len(rule.levels) > 1)
        return rule.column, "level", rule.levels, rule.equal, rule.missing
    return rule.column, "above", rule.threshold, rule.above, rule.missing


def as_pairs(counts, environments, inverted):
    """Counts by (label, environment), as a sorted pair for each row."""
    pairs = []
    for label, counts_of_label in enumerate(counts):
        for environment, n in zip(environments, counts_of_label, strict=True):
            pairs += [(label ^ inverted, environment)] * n
    return sorted(pairs)


def assert_close(value, expected):
    assert (value is None) == (expected is None)
    if expected is not None:
        assert value == pytest.approx(expected, rel=1e-9, abs=1e-9)


def assert_no_nan(value):
    if isinstance(value, dict):
        for item in value.values():
            assert_no_nan(item)
    elif isinstance(value, list):
        for item in value:
            assert_no_nan(item)
    else:
        assert not (isinstance(value, float) and math.isnan(value))
