"""Bad input gets one clear sentence, and leaves nothing half done."""

import re

import numpy as np
import pandas as pd
import polars as pl
import pytest

from icscm import ICSCMClassifier, InvariantForestClassifier, SCMClassifier
from icscm.datasets import make_conjunction
from icscm.exceptions import IcscmError, LeftOutWarning, SparseEnvironmentWarning

N = 40


def make_table():
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(N, 3)), columns=["age", "dose", "sodium"])
    return X, rng.integers(0, 2, N), np.arange(N) % 2


def with_value(value, column="dose"):
    X, _, _ = make_table()
    X.loc[3, column] = value
    return X


BAD_X = {
    "infinity": (with_value(np.inf), "X contains infinity in column 'dose'"),
    "nothing_there": (
        pd.DataFrame(np.full((N, 2), np.nan), columns=list("ab")),
        "X has no column that rules can use: columns 'a', 'b' (all values are missing)",
    ),
    "mixed_objects": (
        make_table()[0].assign(sex=pd.Series(["f", 1] * (N // 2), dtype=object)),
        "column 'sex' mixes types, such as text and numbers, or holds objects",
    ),
    "dates": (
        pl.DataFrame({"seen": pl.date_range(pl.date(2020, 1, 1), pl.date(2020, 2, 9), eager=True)}),
        "X has no column that rules can use: column 'seen' (a date, a time or a duration",
    ),
    "lists": (
        pl.DataFrame({"seen": [[1, 2]] * N}),
        "column 'seen' is of type large_list<item: int64>; rules use",
    ),
    "infinity_beside_text": (
        with_value(np.inf).assign(sex="f"),
        "X contains infinity in column 'dose'; fill in or drop these values",
    ),
    "twice": (
        pd.concat([make_table()[0], make_table()[0]], axis=1),
        "more than one column of the same name ('age' 2 times",
    ),
    "text_array": (np.full((N, 2), "f"), "X holds text, but an array or list has a single type"),
    "one_dimension": (np.zeros(N), "Expected 2D array, got 1D array instead"),
    "no_column": (np.empty((N, 0)), "0 feature(s)"),
    "no_row": (np.empty((0, 3)), "0 sample(s)"),
    "complex": (np.zeros((N, 2), dtype=complex), "Complex data not supported"),
}


@pytest.mark.parametrize("estimator", [SCMClassifier(), ICSCMClassifier()], ids=repr)
@pytest.mark.parametrize("case", BAD_X)
def test_bad_features(case, estimator):
    X, message = BAD_X[case]
    _, y, environments = make_table()
    with pytest.raises(ValueError, match=re.escape(message)) as caught:
        estimator.fit(X, y[: len(X)], environments=environments[: len(X)])
    assert not hasattr(estimator, "model_")
    scikit_learns_own_words = case in ("one_dimension", "complex")
    assert "\n" not in str(caught.value) or scikit_learns_own_words


BAD_Y = {
    "short": (np.zeros(N - 1), f"y has {N - 1} entries but X has {N} rows"),
    "one_class": (np.ones(N), "y holds one class only, 1.0; learning needs two"),
    "three_classes": (np.arange(N) % 3, "Only binary classification is supported"),
    "nan": ([np.nan, 1.0] * (N // 2), f"y is missing (None or NaN) in {N // 2} rows"),
    "none": ([None, "a"] * (N // 2), "the first of them row 0; drop these rows"),
    "infinity": ([np.inf, 1.0] * (N // 2), "y contains infinity"),
    "continuous": (np.linspace(0, 1, N), "Unknown label type: continuous"),
    "two_columns": (np.zeros((N, 2)), "y should be a 1d array"),
}


@pytest.mark.parametrize("case", BAD_Y)
def test_bad_labels(case):
    y, message = BAD_Y[case]
    X, _, environments = make_table()
    with pytest.raises(ValueError, match=re.escape(message)):
        ICSCMClassifier().fit(X, y, environments=environments)


BAD_ENVIRONMENTS = {
    "short": (np.zeros(N - 1), f"environments has {N - 1} entries but X has {N} rows"),
    "single": (["north"] * N, "environments holds a single environment, 'north'; invariance"),
    "nan": ([np.nan, 1.0] * (N // 2), f"environments is missing (None or NaN) in {N // 2} rows"),
    "none": ([None, "a"] * (N // 2), "the first of them row 0; drop these rows or give them"),
    "two_dimensions": (np.zeros((N, 2)), "environments must be one-dimensional"),
    "number": (3, "environments must hold one label per row, got int"),
    "lists": ([[1], [2]] * (N // 2), "not hashable"),
}


@pytest.mark.parametrize("case", BAD_ENVIRONMENTS)
def test_bad_environments(case):
    environments, message = BAD_ENVIRONMENTS[case]
    X, y, _ = make_table()
    with pytest.raises(IcscmError, match=re.escape(message)):
        ICSCMClassifier().fit(X, y, environments=environments)


BAD_PARAMETERS = [
    ({"p": 0}, "p must be a number above 0 and at most 1e+100, or 'balanced'; got 0"),
    ({"p": "1"}, "p must be a number above 0 and at most 1e+100, or 'balanced'; got '1'"),
    ({"p": np.inf}, "p must be a number above 0"),
    ({"p": np.nan}, "p must be a number above 0"),
    ({"model_type": "tree"}, "model_type must be one of 'conjunction', 'disjunction', 'auto'; got"),
    ({"max_rules": 0}, "max_rules must be a whole number of at least 1; got 0"),
    ({"max_rules": 2.0}, "max_rules must be a whole number of at least 1; got 2.0"),
    ({"max_thresholds": -1}, "max_thresholds must be a whole number of at least 1, or None; got"),
    ({"max_thresholds": True}, "max_thresholds must be a whole number"),
    ({"n_jobs": 0}, "n_jobs must be None, or a whole number other than 0; got 0"),
    ({"alpha": 1}, "alpha must be a number between 0 and 1, both excluded, or 'auto'; got 1"),
    ({"alpha": 0.0}, "alpha must be a number between 0 and 1"),
    ({"stop": "never"}, "stop must be one of 'independence', 'coverage'; got 'never'"),
    ({"pruning": "yes"}, "pruning must be one of True, False, 'always'; got 'yes'"),
    ({"min_replication": 2}, "min_replication must be a number from 0 to 1; got 2"),
    ({"min_utility": "0"}, "min_utility must be a finite number, or 'auto', or None; got '0'"),
    ({"search": "random"}, "search must be one of 'greedy', 'exhaustive'; got 'random'"),
    (
        {"margin": 0},
        "margin must be a number between 0 and 1, both excluded, or None; got 0",
    ),
    ({"margin": 1}, "margin must be a number between 0 and 1, both excluded"),
    ({"test": "t"}, "test must be one of 'chi2', 'g', 'fisher', or an object with"),
]


@pytest.mark.parametrize(("parameters", "message"), BAD_PARAMETERS, ids=lambda each: str(each)[:40])
def test_bad_parameters(parameters, message):
    X, y, environments = make_table()
    with pytest.raises(IcscmError, match=re.escape(message)):
        ICSCMClassifier(**parameters).fit(X, y, environments=environments)


def test_numbers_near_the_largest_float_are_rejected():
    """Utilities of p near 1e308 overflowed: OverflowError instead of a message."""
    X, y, environments = make_table()
    with pytest.raises(IcscmError, match=r"1e\+100"):
        ICSCMClassifier(p=1e308).fit(X, y, environments=environments)


@pytest.mark.parametrize(
    ("name", "value"), [("max_rules", -(10**400)), ("min_utility", 10**400), ("p", -(10**400))]
)
def test_whole_numbers_beyond_any_float_are_rejected(name, value):
    """They passed the check of their range, and the fit ended with an OverflowError."""
    X, y, environments = make_table()
    with pytest.raises(IcscmError, match=f"{name} must be"):
        ICSCMClassifier(**{name: value}).fit(X, y, environments=environments)


def test_more_trees_than_any_forest_are_rejected():
    """A generator for each tree was made at once: 10**9 trees took all memory."""
    X, y, environments = make_table()
    with pytest.raises(IcscmError, match="n_estimators must be a whole number from 1 to 100000"):
        InvariantForestClassifier(n_estimators=10**9).fit(X, y, environments=environments)


def test_predict_with_other_columns():
    X, y, environments = make_table()
    fitted = SCMClassifier().fit(X, y, environments=environments)
    first = fitted.features_used_[0]
    for other in (X.rename(columns={first: "weight"}), X.drop(columns=first)):
        with pytest.raises(IcscmError, match=f"X lacks column '{first}', which the model uses"):
            fitted.predict(other)
    nameless = SCMClassifier().fit(X.to_numpy(), y)
    with pytest.raises(ValueError, match="X has 2 features, but SCMClassifier is expecting 3"):
        nameless.predict(X.to_numpy()[:, :2])


def test_constant_columns_are_fine_and_never_chosen():
    X, y, environments = make_table()
    with pytest.warns(LeftOutWarning, match=r"Dropped: column 'site' \(the same in every row\)"):
        fitted = SCMClassifier().fit(X.assign(site=3.0), y, environments=environments)
    assert "site" not in fitted.features_used_
    with pytest.warns(UserWarning, match="No rule was found because no acceptable candidate"):
        SCMClassifier().fit(np.ones((N, 2)), y)


@pytest.mark.parametrize("n", range(2, 10))
@pytest.mark.filterwarnings("ignore::icscm.exceptions.FewEnvironmentsWarning")
@pytest.mark.filterwarnings("ignore::icscm.exceptions.TooLittleDataWarning")
@pytest.mark.filterwarnings("ignore::icscm.exceptions.NothingFoundWarning")
def test_a_handful_of_samples(n):
    """Few samples learn or warn; they never fail."""
    X, _, _ = make_table()
    y = np.arange(n) % 2
    environments = np.arange(n) // 2 % 2 if n > 2 else np.array([0, 1])
    with pytest.warns(SparseEnvironmentWarning):
        fitted = ICSCMClassifier().fit(X[:n], y, environments=environments)
    assert fitted.predict(X[:n]).shape == (n,)


@pytest.mark.filterwarnings("ignore::icscm.exceptions.TooLittleDataWarning")
@pytest.mark.filterwarnings("ignore::icscm.exceptions.NothingFoundWarning")
@pytest.mark.filterwarnings("ignore::icscm.exceptions.FewEnvironmentsWarning")
def test_sparse_environments_are_named():
    X, y, _ = make_table()
    y[0] = 1
    environments = np.array(["big"] * (N - 3) + ["tiny"] * 3)
    with pytest.warns(SparseEnvironmentWarning, match="'tiny' holds only 3 samples"):
        ICSCMClassifier().fit(X, y, environments=environments)
    environments = np.where((y == 0) & (np.arange(N) < 20), "healthy", "rest")
    with pytest.warns(SparseEnvironmentWarning, match="'healthy' holds no sample of class 1"):
        ICSCMClassifier().fit(X, y, environments=environments)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"n_samples": 0}, "n_samples must be a whole number from 1 to 2147483648; got 0"),
        ({"n_distractors": -1}, "n_distractors must be a whole number from 0 to 2147483648"),
        ({"noise": "white"}, "noise must be one of 'coin', 'flip'; got 'white'"),
        ({"child": 3}, "child must be one of 'code', 'text'; got 3"),
        ({"label_noise": 2}, "label_noise must be a number from 0 to 1; got 2"),
        ({"model_type": "forest"}, "model_type must be one of"),
    ],
)
def test_bad_simulations(options, message):
    with pytest.raises(IcscmError, match=re.escape(message)):
        make_conjunction(**options)
