"""Columns that determine the environment, where a device examines the candidates."""

import numpy as np
import pandas as pd
import pytest

from icscm import ICSCMClassifier
from icscm.engine.counts import Cut, Shortlist
from icscm.search.comparable import make_comparable
from icscm.search.greedy import learn_conjunction
from icscm.search.shortlist import MAX_SENT_COLUMNS
from icscm.search.view import ConjunctionView
from icscm.sources import open_memory


class ListingAll:
    """A shortlister that lists all columns, and knows at which paths it was asked."""

    def __init__(self, source, n_columns):
        self._source = source
        self.n_columns = n_columns
        self.path_lengths = []

    def shortlist(self, query):
        self.path_lengths.append(len(query.path))
        return Shortlist(cubes=self._source.count_cubes(query.path))


@pytest.fixture(scope="module")
def table():
    """Two causes, and the region of the environments."""
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.integers(0, 2, (2000, 4)), columns=list("abcd"))
    site = rng.integers(0, 3, 2000)
    X["region"] = (site > 0) * 1
    y = X["a"] & X["b"] ^ (rng.random(2000) < 0.1)
    return X, y, site


def open_table(table, columns):
    X, y, site = table
    countable = open_memory(X[columns], y, environments=site)
    settings = ICSCMClassifier(model_type="conjunction", stop="coverage").make_settings(countable)
    return countable.source, settings


def learn(source, settings, n_columns):
    view = ConjunctionView(source, settings)
    view.shortlister = ListingAll(source, n_columns)
    return learn_conjunction(view).trace, view.shortlister.path_lengths


def test_a_device_is_asked_after_the_first_scan(table):
    """The first scan sends all counts, in which columns that determine the environment show."""
    source, settings = open_table(table, list("abcd"))
    expected = learn_conjunction(ConjunctionView(source, settings)).trace
    trace, path_lengths = learn(source, settings, n_columns=4)
    assert trace == expected
    assert path_lengths[0] == 1


def test_a_device_is_not_asked_where_columns_are_rejected(table):
    """It does not know which these are, and would list their rules."""
    source, settings = open_table(table, [*"abcd", "region"])
    expected = learn_conjunction(ConjunctionView(source, settings)).trace
    trace, path_lengths = learn(source, settings, n_columns=5)
    assert trace == expected
    assert [column.rule.feature for column in trace.rejected_columns] == ["region"]
    assert path_lengths == []


def test_of_too_many_columns_no_counts_are_sent(table):
    """A rule on a column that determines the environment is rejected there as not replicated."""
    source, settings = open_table(table, [*"abcd", "region"])
    trace, path_lengths = learn(source, settings, n_columns=MAX_SENT_COLUMNS + 1)
    assert path_lengths[0] == 0
    assert trace.rejected_columns == ()
    assert trace.steps[0].n_rejected["unreplicated"] >= 2
    assert "region" not in {step.chosen.rule.feature for step in trace.steps}


def test_paths_can_be_counted_before_all_rows(table):
    """Then all rows are counted first, since these show which columns are rejected."""
    source, _ = open_table(table, [*"abcd", "region"])
    comparable = make_comparable(source, needs_replication=True)
    assert not comparable.is_examined
    with pytest.raises(RuntimeError, match="before all rows were counted"):
        comparable.list_rejected()
    (cube,) = comparable.count_cubes((source.columns.make_binned_rule(Cut(0, 0, negated=False)),))
    assert cube.columns.tolist() == [0, 1, 2, 3]
    assert comparable.list_rejected() == [4]
