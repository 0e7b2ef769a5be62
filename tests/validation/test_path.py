"""Models along alpha are those of fitting afresh at each."""

import warnings
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from sklearn.base import clone

from icscm import ICSCMClassifier, SCMClassifier
from icscm.datasets import make_hospitals
from icscm.exceptions import IcscmError, IcscmWarning
from icscm.report.content.paths import make_path
from icscm.report.formatting import make_names
from icscm.sources import open_memory
from icscm.validation.path import DEFAULT_ALPHAS, alpha_path, compute_alpha_path
from support.reports import find_path, fit, fit_reported, make_shifted, make_simulation


@pytest.fixture(scope="module")
def simulation():
    return make_simulation()


LEARNERS = {
    "greedy": ICSCMClassifier(),
    "exhaustive": ICSCMClassifier(search="exhaustive"),
    "disjunction": ICSCMClassifier(model_type="disjunction", stop="coverage", test="g"),
    "equivalence": ICSCMClassifier(margin=0.1),
}


@pytest.mark.parametrize("name", LEARNERS)
def test_the_path_is_that_of_fitting_afresh(name, simulation):
    samples = simulation.X, simulation.y, simulation.environments
    learner = fit(clone(LEARNERS[name]), *samples)
    path = find_path(learner, *samples, alphas=[0.5, 1e-6, 0.001])
    assert path.values == (1e-6, 0.001, learner.alpha_, 0.5)
    for point in path.points:
        afresh = fit(clone(learner).set_params(alpha=point.value), *samples)
        assert afresh.model_ == point.model
        assert afresh.trace_ == point.trace


def test_neighbours_differ_and_levels_ascend(simulation):
    samples = simulation.X, simulation.y, simulation.environments
    path = find_path(fit_reported("greedy"), *samples)
    assert {*path.values} == {*DEFAULT_ALPHAS, 0.05}
    assert len(path.groups) > 1
    assert all(a[0].model != b[0].model for a, b in pairwise(path.groups))
    assert list(path.values) == sorted(set(path.values))
    assert [point for group in path.groups for point in group] == [*path.points]


def test_a_model_that_returns_is_counted_once(simulation):
    """The page counted runs of levels (6 different models), the headline models with a rule (3)."""
    samples = simulation.X, simulation.y, simulation.environments
    learner = fit_reported("greedy")
    path = find_path(learner, *samples, alphas=[1e-6, 0.001, 0.5])
    path = replace(path, points=(*path.points, replace(path.points[0], value=0.9)))
    names = make_names(learner.trace_.environments, (0, 1))
    content = make_path(path, names)
    n_models = len({str(each.model) for each in path.points})
    assert len(path.groups) == n_models + 1
    assert content.n_models == n_models


@pytest.mark.parametrize("alpha", [0.03, "auto"])
def test_the_learners_own_level_is_among_them(alpha, simulation):
    samples = simulation.X, simulation.y, simulation.environments
    learner = fit(ICSCMClassifier(alpha=alpha), *samples)
    path = find_path(learner, *samples, alphas=[0.5])
    assert path.own == learner.alpha_
    assert set(path.values) == {0.5, learner.alpha_}
    assert path.own_point.model == learner.model_


def test_neither_the_learner_nor_its_source_is_changed():
    X, y, environments = make_shifted()
    learner = ICSCMClassifier()
    samples = open_memory(X, y, environments=environments, preparation=learner.prepare())
    source, settings = samples.source, learner.make_settings(samples)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", IcscmWarning)
        learner.fit_counts(samples)
    before = learner.model_, learner.trace_, learner.alpha, source.count_rows().tolist()
    first = compute_alpha_path(source, settings, [0.01, 0.2])
    second = compute_alpha_path(source, settings, [0.01, 0.2])
    assert (learner.model_, learner.trace_, learner.alpha) == before[:3]
    assert source.count_rows().tolist() == before[3]
    assert first.points == second.points


def test_a_report_has_only_the_path_that_it_is_given():
    assert fit_reported("greedy").report().to_dict()["path"] is None


def test_levels_may_come_from_a_generator(simulation):
    """A generator of levels was looked into first, and then found empty: no path."""
    samples = simulation.X, simulation.y, simulation.environments
    learner = fit_reported("greedy")
    path = find_path(learner, *samples, alphas=(a for a in (0.01, 0.2)))
    path = learner.report(path=path).to_dict()["path"]
    assert (path["models"][0]["alpha_from"], path["models"][-1]["alpha_to"]) == (0.01, 0.2)


def test_a_weighted_fit_can_be_reported(simulation):
    """`report` had no weights: what it learned again was another model, an error."""
    X, y, environments = simulation.X, simulation.y, simulation.environments
    weight = np.where(np.arange(len(y)) % 3 == 0, 0.0, 2.0)
    rows = {"X": X, "y": y, "environments": environments, "sample_weight": weight}
    with warnings.catch_warnings(action="ignore", category=IcscmWarning):
        learner = ICSCMClassifier().fit(**rows)
    report = learner.report(path=alpha_path(learner, **rows, alphas=[0.05]))
    assert report.to_dict()["path"]["own"] == 0.05


def test_errors_say_what_is_wrong(simulation):
    samples = simulation.X, simulation.y, simulation.environments
    learner = fit_reported("greedy")
    with pytest.raises(IcscmError, match="each of alphas must be a number between 0 and 1"):
        find_path(learner, *samples, alphas=[0.1, 1.0])
    with pytest.raises(IcscmError, match="fitted with environments"):
        find_path(ICSCMClassifier(), simulation.X, simulation.y, None)
    with pytest.raises(IcscmError, match="must be an ICSCMClassifier; got SCMClassifier"):
        find_path(SCMClassifier(), *samples)
    path = find_path(learner, *samples, alphas=[0.1])
    with pytest.raises(IcscmError, match="path is of other data or settings"):
        fit(ICSCMClassifier(max_rules=1), *samples).report(path=path)


def test_the_default_levels_are_round_and_even():
    assert DEFAULT_ALPHAS[0] == 1e-6
    assert DEFAULT_ALPHAS[-1] == 0.5
    assert len(DEFAULT_ALPHAS) == 18
    assert np.all(np.diff(np.log10(DEFAULT_ALPHAS)) < 0.4)


def test_a_level_without_a_rule_hides_no_columns():
    """Five of six models used the same two columns, and the report said that none was in all.

    The sixth, at the strictest level, had no rule; models that read alike counted apart.
    """
    data = make_hospitals(3_000, random_state=0)
    samples = data.X, data.y, data.environments
    learner = fit(ICSCMClassifier(), *samples)
    path = find_path(learner, *samples, alphas=[1e-6, 1e-5, 0.001, 0.2])
    path = learner.report(path=path).to_dict()["path"]
    assert [model["n_rules"] for model in path["models"]] == [0, 2, 2, 2]
    assert path["text"] == (
        "5 levels of alpha from 1e-06 to 0.2 give 3 different models, this one only at 0.05; "
        "errors 9.0% to 12.6%; columns in all models: age, lactate; no rule is found from 1e-06 "
        "to 1e-05."
    )


@pytest.mark.parametrize("name", ["validate", "tolerance_path", "permute_columns"])
def test_methods_that_moved_are_named_with_their_place(name):
    with pytest.raises(AttributeError, match=f"has no method {name}: use icscm"):
        getattr(ICSCMClassifier(), name)


def test_a_report_of_version_0_3_is_told_what_to_pass(simulation):
    learner = fit_reported("greedy")
    with pytest.raises(TypeError, match=r"pass results of icscm\.validation"):
        learner.report(simulation.X, simulation.y)
    with pytest.raises(TypeError, match="has no argument alphas: pass path="):
        learner.report(alphas=[0.1])
