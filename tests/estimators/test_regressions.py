"""Bugs that were found, each with what went wrong."""

import json
import re

import numpy as np
import pandas as pd
import polars as pl
import pytest
from click.testing import CliRunner
from joblib import Parallel, delayed, parallel_config
from sklearn.exceptions import NotFittedError

from icscm import ICSCMClassifier, InvariantCausalPrediction, SCMClassifier, _constants
from icscm.cli import main
from icscm.datasets import make_conjunction
from icscm.engine.threads import count_threads
from icscm.exceptions import IcscmError, IcscmWarning
from icscm.model.rules import ThresholdRule
from icscm.stats.independence import ChiSquaredTest, exceeds
from icscm.tables.environments import encode_environments
from support.fitting import assert_same, fit_quietly
from support.literal.learner import learn_slowly


@pytest.mark.parametrize("constant", [0.5, 5.0, 7.0])
def test_copies_of_a_row_do_not_fill_the_sample(constant):
    """Rows entered the sample by a hash of their content alone, so all copies of a row did so
    together: where half of the rows were equal, they filled it, and few thresholds remained."""
    rng = np.random.default_rng(0)
    x = np.where(rng.random(100_000) < 0.5, constant, rng.normal(5, 1, 100_000))
    fitted = SCMClassifier(max_rules=1).fit(x[:, np.newaxis], x > 5)
    assert abs(fitted.rules_[0].threshold - 5) < 0.15
    assert fitted.trace_.steps[0].n_candidates > 24  # half of the quantiles coincide


def test_few_distinct_rows_still_give_good_quantiles():
    """1,000 equally frequent values in 200,000 rows: ranks were off by 5 %."""
    x = np.random.default_rng(1).permutation(np.repeat(np.arange(1000.0), 200))
    fitted = SCMClassifier(max_rules=1, max_thresholds=9).fit(x[:, np.newaxis], x > 499)
    assert abs(fitted.rules_[0].threshold - 499) < 25  # 5 standard errors of the rank


def test_many_thresholds_miss_no_value():
    """With max_thresholds of 256 and more, values that the sample lacked were dropped silently."""
    x = np.concatenate((np.repeat(np.arange(1000.0), 40), np.arange(1000, 1020.0)))
    for max_thresholds in (5000, None):
        fitted = SCMClassifier(max_thresholds=max_thresholds, max_rules=1)
        fitted.fit(x[:, np.newaxis], x > 1009)
        assert str(fitted.model_) == "x0 > 1009"


def test_a_failed_fit_leaves_the_estimator_as_it_was():
    """A refit that failed half-way predicted with the old model and the new classes."""
    data = make_conjunction(500, 1, random_state=1)
    fitted = SCMClassifier().fit(data.X, np.where(data.y, "b", "a"))
    before = fitted.predict(data.X)
    with pytest.raises(IcscmError):
        fitted.fit(
            data.X.rename(columns={"A1": "new"}), np.where(data.y, "d", "c"), environments=[1, 2]
        )
    np.testing.assert_array_equal(fitted.predict(data.X), before)
    for unfitted in (ICSCMClassifier(), InvariantCausalPrediction()):
        with pytest.raises(IcscmError):
            unfitted.fit(data.X, data.y, environments=np.zeros(len(data.y)))
        assert not [name for name in vars(unfitted) if name.endswith("_")]
    with pytest.raises(NotFittedError):
        ICSCMClassifier().predict(data.X)
    with pytest.raises(NotFittedError):
        _ = ICSCMClassifier().equivalent_rules_


def test_tiny_alphas_are_compared_exactly():
    """p-values were rounded to 12 decimals, so that below 1e-12 nothing exceeded alpha."""
    assert exceeds(9.5e-18, 1e-30)
    assert not exceeds(1e-31, 1e-30)
    assert not exceeds(0.05 + 1e-15, 0.05)
    data = make_conjunction(random_state=1)
    learner = ICSCMClassifier(alpha=1e-30, pruning=False)
    steps = fit_quietly(learner, data.X, data.y, data.environments).trace_.steps
    assert all(step.p_value_uncovered <= 1e-30 for step in steps[:-1])


@pytest.mark.parametrize(
    ("X", "message"),
    [
        ([[10**400, 1]] * 40, "X holds objects that float64 cannot hold"),
        (np.zeros((40, 2), dtype="m8[s]"), "X is of type timedelta64[s]; give numbers"),
        (
            pd.DataFrame({"id": 2**62 + np.arange(40), "x": np.arange(40.0)}),
            "X holds integers beyond 2**53 in column 'id'",
        ),
    ],
    ids=["huge objects", "durations", "rounded integers"],
)
def test_types_that_reached_the_compiler(X, message):
    """These passed the checks and ended in errors of the compiler, or were rounded in silence."""
    with pytest.raises(IcscmError, match=re.escape(message)):
        SCMClassifier().fit(X, np.arange(40) % 2)


def test_other_byte_orders_and_decimals_are_read():
    """Big-endian integers and decimals reached the compiler, which supports neither."""
    x = np.arange(40)
    y = x > 17
    assert str(SCMClassifier().fit(x[:, np.newaxis].astype(">i4"), y).model_) == "x0 > 17"
    decimals = pl.DataFrame({"x": pl.Series(x.tolist()).cast(pl.Decimal(10, 2))})
    assert str(SCMClassifier().fit(decimals, y).model_) == "x > 17"


@pytest.mark.parametrize("n_features", [300, 20_000])
def test_icp_refuses_many_columns_at_once_and_briefly(n_features):
    """20,000 columns took minutes to be refused, with a number of thousands of digits."""
    X = np.zeros((20, n_features), dtype=np.uint8)
    X[::2, :] = 1
    with pytest.raises(IcscmError, match=r"more than 10\*\*15 sets to test") as caught:
        InvariantCausalPrediction().fit(X, np.arange(20) % 3 > 0, environments=np.arange(20) // 10)
    assert len(str(caught.value)) < 300


def test_large_integers_do_not_make_the_order_of_rows_matter():
    """Integers beyond 2**53 were hashed as floats, so that different rows had equal hashes."""
    rng = np.random.default_rng(0)
    X = 2**62 + rng.integers(0, 1000, size=(50_000, 1))
    y = X[:, 0] > 2**62 + 500
    order = np.argsort(X[:, 0])
    first = SCMClassifier(max_rules=1).fit(X, y).model_
    assert SCMClassifier(max_rules=1).fit(X[order], y[order]).model_ == first


class BadTest:
    """A test that answers with whatever it was given."""

    def __init__(self, answer):
        self.answer = answer

    def compute_p_values(self, tables):
        return self.answer(len(tables))


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (lambda n: np.full(n, np.nan), "NaN or outside [0, 1]"),
        (lambda n: np.full(n, 1.5), "NaN or outside [0, 1]"),
        (lambda n: [0.5] * (n + 1), "must return one p-value for each of"),
    ],
)
def test_answers_of_own_tests_are_checked(answer, message):
    """NaN went into the trace, and a wrong length into an obscure error."""
    data = make_conjunction(200, 1, random_state=1)
    with pytest.raises(IcscmError, match=re.escape(message)):
        ICSCMClassifier(test=BadTest(answer)).fit(data.X, data.y, environments=data.environments)


def test_own_tests_may_answer_with_a_list_and_extend_ours():
    """A list was refused, and a subclass of a built-in test ignored in criterion (i)."""
    data = make_conjunction(2000, 1, random_state=1)

    class AlwaysOne(ChiSquaredTest):
        def compute_p_values(self, tables):
            return [1.0] * len(tables)

    learner = ICSCMClassifier(test=AlwaysOne(), stop="coverage", pruning=False)
    fit_quietly(learner, data.X, data.y, data.environments)
    assert all(step.n_rejected["dependent"] == 0 for step in learner.trace_.steps)


def test_labels_keep_their_type():
    """Nullable integers and booleans came back as floats, nanosecond dates as integers."""
    data = make_conjunction(500, 1, random_state=1)
    for dtype, kind in (("Int64", "i"), ("boolean", "b")):
        y = pd.Series(data.y).astype(dtype)
        fitted = SCMClassifier().fit(data.X, y)
        assert fitted.classes_.dtype.kind == fitted.predict(data.X).dtype.kind == kind
    categories = pd.Series(pd.Categorical.from_codes(data.y, ["no", "yes"]))
    assert SCMClassifier().fit(data.X, categories).classes_.tolist() == ["no", "yes"]
    days = pd.to_datetime(["2020-01-01", "2020-01-02"]).to_numpy().astype("datetime64[ns]")
    _, labels = encode_environments(days, 2)
    assert labels == (pd.Timestamp("2020-01-01"), pd.Timestamp("2020-01-02"))
    with pytest.raises(IcscmError, match="y mixes labels that cannot be ordered"):
        SCMClassifier().fit(data.X, pd.Series([0 if label else "ill" for label in data.y]))


def test_sets_as_environments_have_one_order():
    """Sets compare by inclusion, which is no order: labels came in the order of the rows."""
    a, b, c = frozenset([1]), frozenset([2]), frozenset([1, 3])
    assert encode_environments([a, b, c], 3)[1] == encode_environments([c, b, a], 3)[1]


def test_equivalent_rules_do_not_depend_on_blocks(monkeypatch):
    """Ties were cut to 1,000 per block before those with another leaf were left out."""
    rng = np.random.default_rng(0)
    n_rows = 400
    a, b = rng.integers(0, 2, n_rows), rng.integers(0, 2, n_rows)
    y = (a & b) ^ (rng.random(n_rows) < 0.05)
    X = np.column_stack([a if j % 6 == 5 else rng.permutation(a) for j in range(3000)])
    found = []
    for block_cells in (2**20, 2**12):
        monkeypatch.setattr(_constants, "BLOCK_CELLS", block_cells)
        monkeypatch.setattr(_constants, "PACKED_BLOCK_CELLS", block_cells)
        fitted = SCMClassifier(max_rules=1).fit(X, y)
        found.append((fitted.model_, fitted.equivalent_rules_))
    assert found[0] == found[1]
    assert len(found[0][1][0]) == 499


@pytest.mark.parametrize(
    "arguments", [["demo", "--random-state", "-3"], ["simulate", "--out", "/proc/x/y.csv"]]
)
def test_the_command_line_prints_no_traceback(arguments):
    """A negative seed and a folder that cannot be made ended in tracebacks."""
    done = CliRunner().invoke(main, arguments)
    assert done.exit_code == 2
    assert "Traceback" not in done.output
    assert "Error: " in done.stderr


@pytest.mark.parametrize(
    "seeds", [range(12), pytest.param(range(12, 30), marks=pytest.mark.thorough)]
)
def test_the_first_look_changes_nothing(monkeypatch, seeds):
    """Tables small enough for the literal learner never took the path of a first look at few rows,
    so nothing compared it with anything."""
    monkeypatch.setattr(_constants, "FIRST_LOOK_ROWS", 2)
    for seed in seeds:
        rng = np.random.default_rng(seed)
        X = np.column_stack([rng.integers(0, n, 60) ** 2 for n in (1, 2, 3, 9, 60)]).astype(float)
        X[rng.integers(60), rng.integers(5)] = 77
        y = rng.integers(0, 2, 60)
        environments = np.arange(60) % 3
        parameters = {"max_thresholds": [1, 3, 50, None][seed % 4], "stop": "coverage"}
        fitted = fit_quietly(ICSCMClassifier(**parameters), X, y, environments)
        table = X.tolist(), y.tolist(), environments.tolist()
        expected = learn_slowly(*table, test="chi2", **parameters)
        assert_same(fitted, expected, False, environments)


def test_warnings_point_at_the_caller():
    """Warnings named a line inside the package instead of the user's line."""
    data = make_conjunction(20, 1, random_state=1)
    environments = np.where(np.arange(40) < 3, "few", "many")
    with pytest.warns(IcscmWarning) as caught:  # noqa: PT031 (several fits, all their warnings)
        ICSCMClassifier().fit(data.X, data.y)
        ICSCMClassifier().fit(data.X, data.y, environments=environments)
        SCMClassifier().fit(np.ones((40, 1)), data.y)
    assert {warning.filename for warning in caught} == {__file__}
    assert len({warning.category for warning in caught}) >= 3


def test_missing_whole_numbers_are_not_huge():
    """Whole numbers with one missing, beside text, were refused as beyond 2**53."""
    table = pd.DataFrame(
        {"a": pd.array([1, None, 3] * 20, dtype="Int64"), "b": ["x", "y", "x"] * 20}
    )
    fitted = SCMClassifier().fit(table, [0, 1, 0] * 19 + [1, 1, 0])
    assert fitted.feature_types_ == ("number", "category")


def test_thresholds_are_not_rounded_to_the_type_of_the_values():
    """`0.1 > t` on float32 values compared with t rounded to float32, and was false for 0.1."""
    rule = ThresholdRule(0, None, 0.1, above=True)
    values = np.array([[0.1]], dtype=np.float32)
    assert rule.mask(values).tolist() == rule.mask(values.astype(np.float64)).tolist() == [True]


def test_nothing_of_an_earlier_fit_stays(data, tmp_path):
    """`alpha_` survived a refit without environments, and the saved model told of that level."""
    learner = ICSCMClassifier(alpha="auto").fit(data.X, data.y, environments=data.environments)
    assert hasattr(learner, "alpha_")
    fit_quietly(learner, data.X, data.y, None)
    assert not hasattr(learner, "alpha_")
    again = fit_quietly(ICSCMClassifier(alpha="auto"), data.X, data.y, None)
    assert vars(again).keys() == vars(learner).keys()
    for each, name in ((learner, "old.json"), (again, "new.json")):
        each.save(tmp_path / name)
    saved = [json.loads((tmp_path / name).read_text()) for name in ("old.json", "new.json")]
    assert saved[0] == saved[1]


@pytest.mark.parametrize("dtype", [np.int8, np.float32, bool, object, "U5"])
def test_classes_keep_the_type_of_the_labels(data, dtype):
    """Labels of int8 were predicted as int64, and text kept as objects as fixed-width text."""
    y = data.y.astype(dtype)
    fitted = SCMClassifier(max_rules=1).fit(data.X, y)
    assert fitted.classes_.dtype == np.dtype(dtype) == fitted.predict(data.X).dtype
    np.testing.assert_array_equal(fitted.classes_, np.unique(y))


def count_threads_there(_):
    return count_threads(None), count_threads(2), count_threads(-1)


@pytest.mark.parametrize("backend", ["loky", "threading"])
def test_workers_of_joblib_use_one_thread_each(backend):
    """Each fit of a parallel grid search started a thread for every core."""
    every = count_threads(-1)
    inside = Parallel(n_jobs=2, backend=backend)(delayed(count_threads_there)(i) for i in range(2))
    assert inside == [(1, 2, every)] * 2
    assert count_threads(None) == 1
    with parallel_config(n_jobs=3):
        assert count_threads(None) == 3


@pytest.mark.parametrize("n", [40, 70_000])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_a_zero_threshold_has_no_sign(n, dtype):
    """-0.0 and 0.0 are equal, and the first in the order of rows gave the threshold its sign."""
    x = np.tile(np.array([-0.0, 0.0, 1.0, 2.0], dtype=dtype), n // 4)[:, np.newaxis]
    y = x.ravel() > 0
    for rows in (slice(None), slice(None, None, -1)):
        (rule,) = SCMClassifier().fit(x[rows], y[rows]).rules_
        assert str(rule.threshold) == "0.0"


def test_thresholds_are_no_more_than_values():
    """max_thresholds=10**12 raised a MemoryError: room was made for as many thresholds."""
    x = np.arange(60.0) % 7
    every, most = (
        SCMClassifier(max_thresholds=n).fit(x[:, np.newaxis], x > 3) for n in (None, 10**12)
    )
    assert most.model_ == every.model_
