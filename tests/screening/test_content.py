"""The order of the rows of a table does not matter to a screen, to the last bit."""

import numpy as np
import pandas as pd
import pytest

from icscm import InvariantFeatureSelector, InvariantScoreClassifier
from icscm.estimators.selector import VerdictsOnly
from icscm.screening.content import sort_by_content
from icscm.screening.screened_table import read_table
from icscm.sources.memory import open_memory

pytestmark = pytest.mark.filterwarnings("ignore::icscm.exceptions.IcscmWarning")


def make_rows(seed, *, agreement=(0.95, 0.8, 0.7, 0.6), n_rows=500):
    """A table with a shortcut, which agrees with the outcome so often by environment."""
    rng = np.random.default_rng(seed)
    places = rng.integers(0, 4, n_rows)
    X = np.column_stack((rng.normal(size=(n_rows, 2)), rng.integers(0, 3, (n_rows, 2))))
    log_odds = 1.2 * X[:, 0] + 0.5 * (X[:, 2] > 0) - 0.3 * places
    y = (rng.random(n_rows) < 1 / (1 + np.exp(-log_odds))).astype(int)
    agrees = rng.random(n_rows) < np.array(agreement)[places]
    X[:, 3] = np.where(agrees, y, 1 - y)
    return {
        "X": X.round(1),  # with copies of rows
        "y": y,
        "environments": np.array(["n", "e", "s", "w"])[places],
        "groups": rng.integers(0, n_rows // 3, n_rows),
        "sample_weight": rng.integers(1, 4, n_rows).astype(float),
    }


def shuffle(rows, seed):
    order = np.random.default_rng(seed).permutation(len(rows["y"]))
    return {name: values[order] for name, values in rows.items()}


def sort_rows(rows, *, names=("n", "e", "s", "w")):
    environments = pd.Series(rows["environments"]).map(dict(zip("nesw", names, strict=True)))
    source = open_memory(rows["X"], rows["y"], environments=environments.to_numpy()).source
    groups = pd.factorize(rows["groups"])[0]
    table = read_table(source, names=range(4), groups=groups, is_weighted=True)
    order = sort_by_content(table, rows["y"], weights=rows["sample_weight"], groups=groups)
    return np.column_stack((rows["X"], rows["y"], rows["sample_weight"]))[order]


def test_sorted_rows_are_the_same_for_any_order_and_names_of_environments():
    rows = make_rows(0)
    expected = sort_rows(rows)
    np.testing.assert_array_equal(sort_rows(shuffle(rows, 1)), expected)
    np.testing.assert_array_equal(sort_rows(rows, names=("z", "y", "x", "w")), expected)
    assert (np.diff(expected[:, 0]) < 0).mean() > 0.3  # they are mixed, not sorted by a column


@pytest.mark.parametrize(
    "dropped",
    [
        ("groups", "sample_weight"),
        pytest.param(("sample_weight",), marks=pytest.mark.thorough),
        pytest.param((), marks=pytest.mark.thorough),
    ],
)
@pytest.mark.parametrize("kind", ["classes", pytest.param("numbers", marks=pytest.mark.thorough)])
def test_the_order_of_rows_changes_no_bit_of_a_screen(dropped, kind):
    """Folds were dealt in the order of the rows: another order was another seed."""
    rows = make_rows(1)
    if kind == "numbers":
        rows["y"] = rows["X"][:, 0] + rows["y"] + np.random.default_rng(2).normal(size=500)
    for name in dropped:
        del rows[name]
    first, second = (
        VerdictsOnly(random_state=0, n_jobs=1).fit(**table) for table in (rows, shuffle(rows, 1))
    )
    pd.testing.assert_frame_equal(first.screen_, second.screen_, check_exact=True)
    pd.testing.assert_frame_equal(first.effects_, second.effects_, check_exact=True)
    pd.testing.assert_frame_equal(first.rounds_, second.rounds_, check_exact=True)


def test_the_names_of_environments_and_groups_change_no_verdict():
    """Folds were dealt environment by environment, in the order of their names."""
    rows = make_rows(1)
    renamed = rows | {
        "environments": pd.Series(rows["environments"]).map(dict(zip("nesw", "wsen", strict=True))),
        "groups": np.char.add("g", rows["groups"].astype(str)),
    }
    first, second = (
        VerdictsOnly(random_state=0, n_jobs=1).fit(**table) for table in (rows, renamed)
    )
    columns = ["verdict", "worth", "tau", "p_value"]
    pd.testing.assert_frame_equal(first.screen_[columns], second.screen_[columns], rtol=1e-9)


def test_the_order_of_rows_does_not_change_a_score():
    """A weak shortcut got points in one order of these rows, and none in the other."""
    rows = make_rows(12, agreement=(0.85, 0.78, 0.7, 0.6))
    del rows["groups"], rows["sample_weight"]
    first, second = (
        InvariantScoreClassifier(random_state=0, n_jobs=1).fit(**table)
        for table in (rows, shuffle(rows, 1))
    )
    assert str(first.model_) == str(second.model_)
    assert first.model_.log_odds == second.model_.log_odds
    pd.testing.assert_frame_equal(first.screen_, second.screen_, check_exact=True)


def test_folds_of_a_splitter_are_in_the_order_of_the_table():
    """The table is sorted for the screen, and rows that the user's splitter numbers are not."""

    class FirstHalf:
        def get_n_splits(self, X=None, y=None, groups=None):
            return 2

        def split(self, X, y=None, groups=None):
            assert (np.asarray(X) == rows["X"]).all()
            half = np.arange(len(y)) < len(y) // 2
            yield np.flatnonzero(~half), np.flatnonzero(half)
            yield np.flatnonzero(half), np.flatnonzero(~half)

    rows = make_rows(1)
    del rows["groups"], rows["sample_weight"]
    screen = InvariantFeatureSelector(cv=FirstHalf(), random_state=0, n_jobs=1).fit(**rows)
    assert list(screen.screen_["column"]) == [0, 1, 2, 3]
