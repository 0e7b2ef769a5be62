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
    trace = fitted.trace_
    assert trace.stop_reason == expected["reason"]
    assert (trace.discarded is not None) == expected["set_aside"]
    found = fitted.model_ if trace.discarded is None else trace.discarded
    assert [as_tuple(rule, inverted) for rule in found.rules] == expected["kept"]
    assert sum(test.undone for test in trace.pruning) == expected["undone"]
    assert len(trace.steps) == len(expected["steps"])
    for step, wanted in zip(trace.steps, expected["steps"], strict=True):
        assert as_tuple(step.chosen.rule, inverted) == wanted["rule"]
        assert step.chosen.utility == wanted["utility"]
        assert_close(step.chosen.p_value, wanted["p_value"])
        assert_close(step.p_value_uncovered, wanted["p_value_uncovered"])
        assert as_pairs(step.chosen.covered, trace.environments, inverted) == wanted["leaf"]
        assert as_pairs(step.uncovered, trace.environments, inverted) == wanted["remaining"]
        assert step.n_candidates == wanted["n_candidates"]
        assert step.n_rejected == wanted["n_refused"]
        assert [as_tuple(rule, inverted) for rule in step.equivalent] == wanted["equivalent"]
        assert step.n_tied == wanted["n_tied"]
    removed = [(test.feature, test.p_value) for test in trace.pruning if test.removed]
    if positions is not None:
        removed = [(positions[feature], p_value) for feature, p_value in removed]
    assert [feature for feature, _ in removed] == [feature for feature, _ in expected["removed"]]
    for (_, found), (_, wanted) in zip(removed, expected["removed"], strict=True):
        assert_close(found, wanted)
    assert_no_nan(trace.to_dict())


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
    return sorted(
        (label ^ inverted, environment)
        for label, row in enumerate(counts)
        for environment, n in zip(environments, row, strict=True)
        for _ in range(n)
    )


def assert_close(found, wanted):
    assert (found is None) == (wanted is None)
    if wanted is not None:
        assert found == pytest.approx(wanted, rel=1e-9, abs=1e-9)


def assert_no_nan(value):
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, list):
        for each in value:
            assert_no_nan(each)
    else:
        assert not (isinstance(value, float) and math.isnan(value))
