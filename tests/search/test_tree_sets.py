"""Sets tested by trees: equal to a row-by-row test, and with the nominal level."""

import numpy as np
import pytest
from scipy.stats import binom, chi2, gamma

from icscm import InvariantCausalPrediction
from icscm.datasets import make_conjunction
from icscm.exceptions import IcscmError, NothingAcceptedWarning
from icscm.search.tree_sets import TreeTester, TreeTestSettings, draw_half
from icscm.sources.memory import make_memory_source
from icscm.stats.independence import sum_pearson
from support.literal.learner import find_beside
from support.literal.rate_tree import weigh


def make_source(X, y, environments):
    names, numbers = np.unique(environments, return_inverse=True)
    return make_memory_source(X, y, numbers, environment_labels=names.tolist(), n_jobs=1)


# --- one set, row by row ----------------------------------------------------------------------


def judge_slowly(X, y, environments, features, first, max_leaves=32, share=0.01):
    """Twice the smaller p-value of the two directions; `first` marks the rows of one half."""
    p_values = []
    for grown, tested in ((first, ~first), (~first, first)):
        leaves = grow_slowly(X, y, environments, features, np.flatnonzero(grown), max_leaves, share)
        tables = []
        for path in leaves:
            beside = [find_beside(X[:, feature], threshold) for feature, threshold, _ in path]
            inside = [
                i
                for i in np.flatnonzero(tested)
                if follows(X[i], path) and not any(each[i] for each in beside)
            ]
            cells = [[0] * (environments.max() + 1) for _ in range(2)]
            for i in inside:
                cells[y[i]][environments[i]] += 1
            tables.append(cells)
        found = sum_pearson(np.array(tables))
        scale = found.variance / found.mean if found.variance else 1.0
        p_values.append(
            gamma.sf(found.statistic, found.mean / scale, scale=scale) if found.variance else 1.0
        )
    return min(1.0, 2 * min(p_values))


def follows(row, path):
    return all((row[feature] > threshold) == above for feature, threshold, above in path)


def grow_slowly(X, y, environments, features, rows, max_leaves, share):
    """Paths of the leaves of the tree over some features, grown on some rows."""
    n_least = max(1, int(np.ceil(share * len(rows))))
    cuts = [(j, t) for j in features for t in sorted(set(X[:, j]))[:-1]]

    def compute_rate_heterogeneity(own):
        groups = [[y[i] for i in own if environments[i] == e] for e in set(environments[own])]
        labels = [y[i] for i in own]
        dof = len(groups) - 1 if len(set(labels)) == 2 else 0
        return 2 * (sum(map(weigh, groups)) - weigh(labels)), dof

    def look(own):
        labels = [y[i] for i in own]
        if len(own) < 2 * n_least or len(set(labels)) < 2:
            return None
        found = []
        for j, t in cuts:
            halves = [[i for i in own if (X[i, j] > t) == side] for side in (True, False)]
            if min(map(len, halves)) >= n_least:
                told = 2 * (sum(weigh([y[i] for i in half]) for half in halves) - weigh(labels))
                after = sum(compute_rate_heterogeneity(half)[0] for half in halves)
                found.append(((j, t), told, compute_rate_heterogeneity(own)[0] - after))
        if not found:
            return None
        cut, told, _ = min(found, key=lambda each: -round(each[1], 6))
        if told > chi2.isf(0.05 / len(found), 1):
            return round(told, 6), cut
        cut, _, explained = min(found, key=lambda each: -round(each[2], 6))
        dependence, dof = compute_rate_heterogeneity(own)
        is_dependent = dof and dependence > chi2.isf(0.05, dof)
        return (round(explained, 6), cut) if is_dependent and explained > 0 else None

    waiting = [((), list(rows), look(list(rows)))]
    while len(waiting) < max_leaves and any(best for _, _, best in waiting):
        at = max(range(len(waiting)), key=lambda k: waiting[k][2][0] if waiting[k][2] else -1)
        path, own, (_, (j, t)) = waiting.pop(at)
        for side in (True, False):
            half = [i for i in own if (X[i, j] > t) == side]
            waiting.append(((*path, (j, t, side)), half, look(half)))
    return [path for path, _, _ in waiting]


@pytest.mark.parametrize(
    "seed", [*range(6), *(pytest.param(seed, marks=pytest.mark.thorough) for seed in range(6, 18))]
)
def test_a_set_is_tested_as_row_by_row(seed):
    rng = np.random.default_rng(seed)
    n, n_environments = int(rng.integers(40, 400)), int(rng.integers(2, 5))
    environments = rng.integers(0, n_environments, n)
    X = rng.integers(0, [2, 3, 30 if seed % 3 == 0 else 5], size=(n, 3)) + 1.0
    X[:, 0] += rng.random(n) < 0.2 * environments
    risk = np.where(X[:, 0] > 1, 0.6, 0.2) + 0.2 * (X[:, 2] > 12) + 0.05 * environments
    y = (rng.random(n) < risk).astype(int)
    y[:2] = 0, 1
    source = make_source(X, y, environments)
    tester = TreeTester(source, range(3), TreeTestSettings(seed=seed))
    half = draw_half(source.rows.list_cells().environments, source.rows.number_units(), seed)
    first = half[source.position]
    for features in ((), (0,), (1, 2), (0, 1, 2)):
        wanted = judge_slowly(X, y, environments, features, first)
        assert tester.compute_p_value(features) == pytest.approx(wanted, rel=1e-6)


def test_halves_are_those_of_every_environment():
    environments = np.random.default_rng(0).choice(4, 1001, p=[0.7, 0.2, 0.09, 0.01])
    halves = [draw_half(environments, np.arange(1001), seed) for seed in (0, 0, 1)]
    assert (halves[0] == halves[1]).all()
    assert (halves[0] != halves[2]).any()
    for number in range(4):
        own = halves[0][environments == number]
        assert own.sum() == len(own) // 2


# --- what is promised -------------------------------------------------------------------------


@pytest.mark.thorough
def test_the_level_is_held():
    """The parents' own set is rejected in no more runs than alpha allows, chance aside."""
    n_runs, n_rejected = 120, 0
    for seed in range(n_runs):
        data = make_conjunction(300, n_distractors=1, random_state=seed)
        source = make_source(data.X.to_numpy(), data.y, data.environments)
        n_rejected += (
            TreeTester(source, (0, 1), TreeTestSettings(seed=seed)).compute_p_value((0, 1)) <= 0.05
        )
    assert binom.sf(n_rejected - 1, n_runs, 0.05) > 0.01


def fit(X, y, environments, **options):
    return InvariantCausalPrediction(model="tree", random_state=0, **options).fit(
        X, y, environments=environments
    )


def test_parents_are_found_among_many_features():
    data = make_conjunction(5000, n_distractors=60, n_parents=3, random_state=1)
    selector = fit(data.X, data.y, data.environments)
    assert selector.parents_ == ("A1", "A2", "A3")
    assert selector.get_support().sum() == 3
    assert selector.n_sets_tested_ == 2**4  # of the parents and the child
    outside = [j for j, name in enumerate(data.X) if name not in selector.parents_]
    assert set(selector.p_values_[outside].tolist()) == {max(selector.accepted_sets_.values())}
    assert (selector.p_values_[:3] <= 0.05).all()


def test_of_identical_features_none_is_selected():
    data = make_conjunction(5000, n_distractors=2, random_state=0)
    X = data.X.to_numpy()
    assert fit(X, data.y, data.environments).parents_ == (0, 1)
    twice = np.column_stack([X, X[:, 0]])
    assert fit(twice, data.y, data.environments).parents_ == (1,)
    assert fit(twice + 1.0, data.y, data.environments).parents_ == (1,)  # stored one by one


def test_too_many_sets_are_refused():
    rng = np.random.default_rng(0)
    y, environments = rng.integers(0, 2, 500), rng.integers(0, 2, 500)
    X = np.where(rng.random((500, 20)) < 0.7, y[:, None], rng.integers(0, 2, (500, 20)))
    with pytest.raises(IcscmError, match=r"20 features make 1,048,576 sets .* a smaller max_f"):
        fit(X, y, environments, max_features=20)


def test_everything_rejected_is_not_the_empty_set():
    rng = np.random.default_rng(0)
    environments = np.repeat([0, 1], 500)
    y = (rng.random(1000) < 0.3 + 0.4 * environments).astype(int)
    with pytest.warns(NothingAcceptedWarning, match="larger max_thresholds"):
        selector = fit(rng.random((1000, 2)), y, environments)
    assert selector.parents_ is None
