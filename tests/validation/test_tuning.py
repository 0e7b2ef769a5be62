"""Parameters are chosen by cross-validation."""

import numpy as np
import pyarrow as pa
import pytest
from sklearn.metrics import balanced_accuracy_score, log_loss, make_scorer, roc_auc_score

from icscm import ICSCMClassifier, InvariantForestClassifier, InvariantTreeClassifier, SCMClassifier
from icscm.datasets import make_conjunction
from icscm.exceptions import IcscmError
from icscm.validation.cohort import make_cohort
from icscm.validation.folds import leave_out_rows
from icscm.validation.tuning import SCORERS, grid_search


def number_folds(folds):
    """The number of the fold that each row is left out in."""
    numbers = np.full(sum(len(fold.test_rows) for fold in folds), -1)
    for number, fold in enumerate(folds):
        numbers[fold.test_rows] = number
    assert (numbers >= 0).all()
    return numbers


@pytest.mark.parametrize("seed", range(5))
def test_folds_share_out_every_cell(seed):
    rng = np.random.default_rng(seed)
    y, environments = rng.integers(0, 2, 203), rng.integers(0, 4, 203)
    cohort = make_cohort(np.zeros((203, 1)), y, environments=environments)
    folds = number_folds(leave_out_rows(cohort, 5, seed))
    for label in (0, 1):
        for environment in range(4):
            sizes = np.bincount(folds[(y == label) & (environments == environment)], minlength=5)
            assert sizes.max() - sizes.min() <= 1
    assert np.ptp(np.bincount(folds)) <= 1


@pytest.fixture(scope="module")
def traps():
    """A small p takes the rule that finds all negatives, at the price of most positives."""
    rng = np.random.default_rng(0)
    y = np.arange(400) % 2
    greedy = (y == 1) & (rng.random(400) < 0.2)
    wary = (y == 1) | (rng.random(400) < 0.3)
    X = pa.table({"greedy": greedy.astype(int), "wary": wary.astype(int)})
    return X, y, greedy, wary


def test_p_is_chosen_by_the_score(traps):
    X, y, greedy, wary = traps
    learner = SCMClassifier(max_rules=1)
    p_values = [0.01, 1.0, 5.0]
    choice = grid_search(learner, X, y, environments=y * 0, grid={"p": p_values}, scorer="accuracy")
    assert [each["p"] for each in choice.tried] == p_values
    right = [(y == each).mean() for each in (greedy, wary, wary)]
    assert choice.scores == pytest.approx(right)
    assert (choice.best, choice.baseline) == ({"p": 1.0}, 0.5)
    assert choice.beats_baseline
    assert not hasattr(learner, "model_")
    assert choice == grid_search(
        learner, X, y, environments=y * 0, grid={"p": p_values}, scorer="accuracy"
    )


def test_of_equally_good_p_the_nearest_to_1_is_chosen():
    y = np.arange(100) % 2
    p_values = ["balanced", 0.1, 3.0, 2.0, 9.0]
    choice = grid_search(
        SCMClassifier(), np.column_stack((y, y)), y, environments=None, grid={"p": p_values}
    )
    assert choice.scores == (1.0,) * 5
    assert choice.best == {"p": 2.0}


@pytest.mark.parametrize("scorer", SCORERS)
def test_each_scorer_is_what_scikit_learn_computes(traps, scorer):
    X, y, *_ = traps
    learner, environments = SCMClassifier(max_rules=1), np.arange(400) // 2 % 3
    found = grid_search(
        learner,
        X,
        y,
        environments=environments,
        grid={"p": [0.01]},
        scorer=scorer,
        folds="environments",
    )
    expected, constant = [], []
    for k in range(3):
        inside, outside = np.flatnonzero(environments != k), np.flatnonzero(environments == k)
        fitted = SCMClassifier(p=0.01, max_rules=1).fit(X.take(inside), y[inside])
        chance, predicted = (
            fitted.predict_proba(X.take(outside))[:, 1],
            fitted.predict(X.take(outside)),
        )
        rate = y[inside].mean()
        by_name = {
            "balanced_accuracy": lambda p, c, t: balanced_accuracy_score(t, p),
            "auc": lambda p, c, t: roc_auc_score(t, c),
            "log_loss": lambda p, c, t: log_loss(t, c),
            "accuracy": lambda p, c, t: (p == t).mean(),
        }
        measure, n = by_name[scorer], len(outside)
        expected.append(measure(predicted, chance, y[outside]))
        constant.append(measure(np.full(n, rate > 0.5), np.full(n, rate), y[outside]))
    assert found.scores == pytest.approx([np.mean(expected)])
    assert found.baseline == pytest.approx(np.mean(constant))
    assert (found.scorer, found.folds, found.n_folds) == (scorer, "environments", 3)


def test_smaller_log_loss_is_better(traps):
    X, y, *_ = traps
    found = grid_search(
        SCMClassifier(max_rules=1),
        X,
        y,
        environments=None,
        grid={"p": [0.01, 1.0]},
        scorer="log_loss",
    )
    assert found.best == found.tried[int(np.argmin(found.scores))]
    assert found.beats_baseline
    assert min(found.scores) < found.baseline


def test_every_combination_is_tried_and_callables_score():
    X, y, environments, *_ = make_conjunction(500, 2, random_state=3)
    grid = {"model_type": ["conjunction", "disjunction"], "alpha": [0.01, 0.05]}
    options = {"scorer": make_scorer(balanced_accuracy_score), "n_folds": 2}
    learner = ICSCMClassifier()
    found = grid_search(learner, X, y, environments=environments, grid=grid, **options)
    assert len(found.tried) == 4
    frame = found.to_frame()
    assert frame["score"].tolist() == pytest.approx([*found.scores, found.baseline])
    assert frame["chosen"].sum() == 1
    own = grid_search(learner, X, y, environments=environments, grid=grid, n_folds=2)
    assert own.scores == pytest.approx(found.scores)


def test_tables_are_binned_as_each_combination_asks():
    rng = np.random.default_rng(0)
    x = rng.random(300)
    y = (x > 0.9).astype(int)
    found = grid_search(
        SCMClassifier(), x[:, np.newaxis], y, environments=None, grid={"max_thresholds": [1, 50]}
    )
    assert found.scores[1] > found.scores[0]


def test_a_class_absent_from_an_environment_does_not_count():
    """Balanced accuracy has no value there; the other environments have one."""
    y = np.array([0, 1] * 60 + [0] * 20)
    environments = np.repeat([0, 1, 2, 3], [40, 40, 40, 20])
    found = grid_search(
        SCMClassifier(),
        y[:, np.newaxis],
        y,
        environments=environments,
        grid={"p": [1]},
        folds="environments",
    )
    assert (found.scores, found.n_folds) == ((1.0,), 4)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"grid": {"q": [1]}}, "grid names 'q', which ICSCMClassifier does not have"),
        ({"grid": {"model_type": "disjunction"}}, "must give a list of values for 'model_type'"),
        ({"grid": {}}, "grid is empty"),
        ({"grid": {"p": [-1]}}, "p must be a number above 0 and at most 1e"),
        ({"scorer": "f1"}, "scorer must be one of 'balanced_accuracy'"),
        ({"folds": "columns"}, "folds must be one of 'rows', 'environments'"),
        ({"n_folds": 1}, "n_folds must be a whole number of at least 2"),
        ({"folds": "environments"}, "folds='environments' needs at least 3 environments"),
        ({"folds": "environments", "environments": None}, "so that 2 remain to learn from; got 0"),
    ],
)
def test_errors_say_what_to_do(arguments, message):
    y = np.arange(40) % 2
    usual = {"environments": np.arange(40) // 20, "grid": {"p": [1.0]}}
    with pytest.raises(IcscmError, match=message):
        grid_search(ICSCMClassifier(), y[:, np.newaxis], y, **(usual | arguments))


def test_too_few_rows_for_folds():
    with pytest.raises(IcscmError, match="needs 5 rows of each class; one has 2"):
        grid_search(
            SCMClassifier(),
            np.zeros((9, 1)),
            np.array([1, 1] + [0] * 7),
            environments=None,
            grid={"p": [1.0]},
        )


@pytest.mark.parametrize("kind", ["pandas", "polars"])
def test_any_kind_of_frame(kind):
    """Rows of a pandas frame were taken as columns: The search failed with a KeyError."""
    frames = pytest.importorskip(kind)
    y = np.arange(100) % 2
    columns = {"good": y, "bad": np.arange(100) % 3}
    choice = grid_search(
        SCMClassifier(), frames.DataFrame(columns), y, environments=None, grid={"p": [0.5, 1.0]}
    )
    assert choice == grid_search(
        SCMClassifier(), pa.table(columns), y, environments=None, grid={"p": [0.5, 1.0]}
    )


@pytest.mark.parametrize("folds", ["rows", "environments"])
def test_trees_and_forests_are_chosen_too(folds):
    """Ties are broken by p, which trees do not have: the search failed with an AttributeError."""
    data = make_conjunction(500, n_environments=4, random_state=1)
    for learner in (
        InvariantTreeClassifier(),
        InvariantForestClassifier(n_estimators=3, random_state=0),
    ):
        found = grid_search(
            learner, *data[:2], environments=data[2], grid={"max_leaves": [1, 4]}, folds=folds
        )
        assert found.best == {"max_leaves": 4}
        assert found.scores[1] > found.scores[0] == found.baseline


def test_a_function_called_log_loss_is_a_score():
    """The worst was chosen: by its name the function was taken for the loss."""

    def log_loss(fitted, X, y):
        return fitted.score(X, y)

    X = np.column_stack((np.arange(100) % 2, np.arange(100) < 50))
    y = X.all(axis=1)
    grid = {"model_type": ["disjunction", "conjunction"]}
    found = grid_search(SCMClassifier(), X, y, environments=None, grid=grid, scorer=log_loss)
    assert found.best["model_type"] == "conjunction"
    assert found.beats_baseline
    assert max(found.scores) == 1


@pytest.mark.parametrize("seed", range(5))
def test_folds_never_split_a_group(seed):
    """And each has its share of both classes and of the environments."""
    rng = np.random.default_rng(seed)
    groups = rng.integers(0, 90, 600)
    risk, places = rng.random(90), rng.integers(0, 3, 90)
    y, environments = (rng.random(600) < risk[groups]).astype(int), places[groups]
    cohort = make_cohort(
        np.zeros((600, 1)), y, environments=environments, groups=[f"patient {g}" for g in groups]
    )
    cut = leave_out_rows(cohort, 5, seed)
    folds = number_folds(cut)
    assert all(len(set(folds[groups == g])) == 1 for g in set(groups))
    for cell in range(6):
        sizes = np.bincount(folds[2 * environments + y == cell], minlength=5)
        assert sizes.min() > 0
    assert np.ptp(np.bincount(folds)) <= 60
    for fold in cut:
        assert not set(groups[fold.train_rows]) & set(groups[fold.test_rows])
        assert len(fold.train_rows) + len(fold.test_rows) == 600


def test_a_class_in_few_groups_is_not_shared_out():
    y, groups = np.arange(40) < 20, np.arange(40) // 10
    with pytest.raises(IcscmError, match="5 groups with rows of each class; one has 2"):
        grid_search(
            SCMClassifier(),
            np.zeros((40, 2)),
            y,
            environments=None,
            grid={"p": [1.0]},
            groups=groups,
        )


def test_copies_of_a_patient_do_not_choose_the_parameter():
    """Rows that identify a patient predict his other rows: without groups, most rules are best."""
    rng = np.random.default_rng(0)
    patients = np.repeat(np.arange(60), 8)
    y = rng.integers(0, 2, 60)[patients]
    X = rng.integers(0, 8, (60, 12))[patients]
    grid, learner = {"max_rules": [1, 10]}, SCMClassifier(max_thresholds=None)
    plain = grid_search(learner, X, y, environments=None, grid=grid)
    grouped = grid_search(learner, X, y, environments=None, grid=grid, groups=patients)
    assert plain.best == {"max_rules": 10}
    assert max(plain.scores) > 0.7
    assert max(grouped.scores) < 0.6
