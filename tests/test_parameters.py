"""The registry of parameters agrees with signatures, docstrings and messages."""

import inspect
from functools import partial

import numpy as np
import pytest

import icscm
from icscm.datasets import make_conjunction, make_hospitals
from icscm.exceptions import IcscmError
from icscm.parameters import Range, _load_registry, allow, document_parameters, get_spec
from icscm.validation.importances import permutation_importance
from icscm.validation.tuning import choose_threshold, grid_search

LEARNERS = [
    icscm.SCMClassifier,
    icscm.ICSCMClassifier,
    icscm.InvariantTreeClassifier,
    icscm.InvariantForestClassifier,
    icscm.InvariantScoreClassifier,
    icscm.InvariantCausalPrediction,
    icscm.InvariantFeatureSelector,
]


@pytest.mark.parametrize("learner", LEARNERS)
def test_every_parameter_is_registered_and_its_default_allowed(learner):
    parameters = inspect.signature(learner).parameters
    assert parameters
    for name, parameter in parameters.items():
        spec = get_spec(name, learner)
        assert spec.help.endswith(".")
        assert spec.allowed is None or spec.allowed.accepts(parameter.default), name


def test_every_entry_is_a_parameter():
    names = {name for each in LEARNERS for name in inspect.signature(each).parameters}
    classes = {base.__name__ for each in LEARNERS for base in each.__mro__}
    registry = _load_registry()
    for make in (make_conjunction, make_hospitals):
        assert {*registry[make.__name__]} <= {*inspect.signature(make).parameters}
    for name, entry in registry.items():
        own = set(entry) if name in classes else {name}
        assert name.startswith("make_") or own <= names


@pytest.mark.parametrize(
    ("text", "inside", "outside"),
    [
        ("int [1, inf)", [1, np.int64(7)], [0, 1.0, True, "1", None, float("inf")]),
        ("int [1, 16]", [1, 16], [17]),
        ("float (0, 1)", [0.5, np.float32(0.1)], [0, 1, float("nan"), "0.5"]),
        ("float [0, 1]", [0, 1, 0.5], [-0.1, 1.1]),
        ("float (0, 1]", [1, 0.1], [0]),
        ("float (-inf, inf)", [-3, 1e300], [float("inf"), float("-inf"), float("nan")]),
    ],
)
def test_ranges(text, inside, outside):
    found = Range.parse(text)
    assert all(map(found.accepts, inside))
    assert not any(map(found.accepts, outside))


def test_choices_are_compared_as_what_they_are():
    """1 is no True, and a column of arrays is no word."""
    pruning = get_spec("pruning").allowed
    assert pruning.accepts(True)
    assert pruning.accepts(np.True_)
    assert pruning.accepts("always")
    assert not pruning.accepts(1)
    assert not pruning.accepts(np.array(["always"]))
    assert not pruning.accepts(None)


def test_texts_of_the_command_line():
    assert get_spec("tolerance").allowed.parse("none") is None
    assert get_spec("tolerance").allowed.parse("auto") == "auto"
    assert get_spec("tolerance").allowed.parse("0.02") == 0.02
    assert get_spec("max_rules").allowed.parse("3") == 3
    least = get_spec("min_samples_leaf").allowed
    assert (least.parse("0"), least.parse("0.05")) == (0, 0.05)
    for text in ("1", "1.5", "x"):
        with pytest.raises(IcscmError, match=f"'{text}' is not a share from 0 to 1"):
            least.parse(text)
    with pytest.raises(IcscmError, match="'x' is not one of 'independence', 'coverage'"):
        get_spec("stop").allowed.parse("x")


def test_a_docstring_gets_its_parameters():
    @document_parameters
    class Learner:
        """One line.

        {parameters}
        """

        def __init__(self, alpha=0.05, n_jobs=None, stop="coverage"):
            pass

    lines = [line.strip() for line in inspect.getdoc(Learner).splitlines()]
    assert 'alpha : float or "auto", default=0.05' in lines
    assert "n_jobs : int or None, default=None" in lines
    assert 'stop : {"independence", "coverage"}, default="coverage"' in lines
    assert max(map(len, lines)) <= 100


def test_messages():
    assert allow("float (0, 1)", "auto").describe() == (
        "a number between 0 and 1, both excluded, or 'auto'"
    )
    assert allow("a", "b").describe() == "one of 'a', 'b'"


@pytest.mark.parametrize(
    "learner",
    [
        icscm.InvariantForestClassifier(n_estimators=2),
        icscm.InvariantScoreClassifier(max_terms=1),
        icscm.InvariantCausalPrediction(model="tree", max_features=1),
        icscm.InvariantFeatureSelector(cv=2),
    ],
    ids=lambda learner: type(learner).__name__,
)
@pytest.mark.filterwarnings("ignore::icscm.exceptions.IcscmWarning")
def test_random_states(learner):
    """Learners raised scikit-learn's error for a `Generator`, and NumPy's for -1."""
    data = make_conjunction(200, 0, n_environments=3, random_state=1)[:3]
    learner.set_params(random_state=np.random.default_rng(1)).fit(*data[:2], environments=data[2])
    with pytest.raises(IcscmError, match=r"random_state must be .* a Generator or None; got -1"):
        learner.set_params(random_state=-1).fit(*data[:2], environments=data[2])


def test_studies_take_a_random_state():
    """Three studies called it `seed`."""
    data = make_conjunction(200, 0, n_environments=3, random_state=1)
    grid = {"p": [0.1, 1]}
    search = partial(
        grid_search,
        icscm.SCMClassifier(max_rules=1),
        data.X,
        data.y,
        environments=data.environments,
        grid=grid,
        n_folds=2,
    )
    found = search(random_state=3)
    with pytest.raises(TypeError, match="grid_search has no argument seed: its name is random_st"):
        search(seed=3)
    assert search(random_state=np.random.default_rng(3)).scores == found.scores
    assert len(search(random_state=np.random.RandomState(3)).scores) == 2
    with pytest.raises(IcscmError, match="random_state must be a whole number from 0"):
        search(random_state="3")
    for study in (icscm.compare, choose_threshold, grid_search):
        assert "random_state" in inspect.signature(study).parameters


@pytest.mark.parametrize("seed", [-1, "a", 1.5])
def test_seeds_are_checked(seed):
    """Simulations, importances and the choice of a threshold raised NumPy's error."""
    with pytest.raises(IcscmError, match="random_state must be"):
        make_conjunction(200, random_state=seed)
    with pytest.raises(IcscmError, match="random_state must be"):
        make_hospitals(random_state=seed)
    data = make_conjunction(200, 0, n_environments=3, random_state=1)[:3]
    learner = icscm.SCMClassifier(max_rules=1).fit(*data[:2], environments=data[2])
    with pytest.raises(IcscmError, match="random_state must be"):
        permutation_importance(learner, *data[:2], environments=data[2], random_state=seed)
    with pytest.raises(IcscmError, match="random_state must be"):
        choose_threshold(learner, *data[:2], environments=data[2], random_state=seed)


def test_more_subsamples_than_any_study_are_rejected():
    """A list of 10**30 subsamples was an OverflowError."""
    data = make_conjunction(200, 0, n_environments=3, random_state=1)[:3]
    with pytest.raises(IcscmError, match="n_resamples must be a whole number from 1 to 100000"):
        icscm.stability_selection(
            icscm.SCMClassifier(), *data[:2], environments=data[2], n_resamples=10**30
        )


@pytest.mark.filterwarnings("ignore::icscm.exceptions.IcscmWarning")
def test_more_jobs_than_tasks():
    """The screen handed the number to joblib, which could not convert it."""
    data = make_conjunction(200, 0, n_environments=3, random_state=1)[:3]
    one = icscm.InvariantFeatureSelector(cv=2, n_jobs=1, random_state=0).fit(
        *data[:2], environments=data[2]
    )
    many = icscm.InvariantFeatureSelector(cv=2, n_jobs=10**30, random_state=0).fit(
        *data[:2], environments=data[2]
    )
    assert many.kept_ == one.kept_


def test_a_tolerance_of_zero():
    """A tree divides by its tolerance: 0 is refused, in one sentence."""
    with pytest.raises(IcscmError, match="tolerance must be 'auto', None or a finite number gr"):
        icscm.InvariantTreeClassifier(tolerance=0).prepare()
