"""Trees along the tolerance."""

import warnings

import pytest

from icscm import InvariantTreeClassifier
from icscm._constants import DEFAULT_TOLERANCES
from icscm.exceptions import IcscmError, IcscmWarning
from icscm.validation.path import order_tolerances, tolerance_path
from support.drawings import find_texts
from support.reports import fit, make_sites


def follow(tree, X, y, site, **options):
    return tolerance_path(tree, X, y, environments=site, **options)


@pytest.fixture(scope="module")
def sites():
    return make_sites(2_500)


@pytest.fixture(scope="module")
def tree(sites):
    return fit(InvariantTreeClassifier(max_leaves=5), *sites)


@pytest.fixture(scope="module")
def path(tree, sites):
    return follow(tree, *sites, leave_one_out=False)


@pytest.fixture(scope="module")
def scored(tree, sites):
    return follow(tree, *sites, tolerances=[None, 0.1])


def test_every_point_is_what_fit_gives_at_that_tolerance(path, tree, sites):
    assert [point.value for point in path.points] == [*DEFAULT_TOLERANCES]
    assert path.own == 0.01
    assert path.own_point.model == tree.model_
    for point in path.points:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", IcscmWarning)
            again = InvariantTreeClassifier(max_leaves=5, tolerance=point.value)
            again.fit(*sites[:2], environments=sites[2])
        assert again.model_ == point.model


def test_the_shortcut_leaves_and_less_differs(path):
    plain = path.points[0]
    assert "code" in plain.features
    assert "code" not in path.own_point.features
    gone = [left for left, _ in path.list_changes()]
    assert ["code"] in [[each for each in left if each == "code"] for left in gone]
    assert gone[0] == []
    assert plain.varies > 10 * max(path.own_point.varies, 1.0)
    assert plain.deviance_explained > path.own_point.deviance_explained


def test_it_shows_as_a_table_a_frame_and_a_figure(path, scored):
    frame = path.to_frame()
    assert frame["tolerance"].isna().tolist() == [True] + [False] * 7
    assert frame["leave"].str.contains("code").any()
    assert "0.01*" in repr(path)
    assert "AUC out" not in repr(path)
    assert "deviance explained" in find_texts(path.plot())
    assert max(map(len, repr(scored).splitlines())) <= 80
    assert "prefer the strict one" in repr(scored).replace("\n", " ")
    assert {"deviance explained", "AUC"} <= {*find_texts(scored.plot())}
    assert scored.to_frame()["auc_left_out"].between(0.5, 1).all()


def test_the_report_has_the_path_that_it_is_given(tree, path, scored):
    summary = tree.report(path=path).to_dict()["path"]
    assert [each["name"] for each in summary["points"]][:2] == ["plain", "0.3"]
    assert not summary["has_scores"]
    assert "code" in summary["text"]
    assert tree.report().to_dict()["path"] is None
    report = tree.report(path=scored)
    page = report.to_html()
    assert "AUC, mean" in page
    assert "prefer the strict one" in page
    assert "Other tolerances" in report.to_markdown()
    assert report.to_dict()["path"]["points"][0]["aucs"] == [*scored.points[0].aucs]


def test_left_out_scores_are_those_of_a_tree_grown_without_the_environment(scored, sites):
    X, y, site = sites
    from sklearn.metrics import roc_auc_score

    (point,) = (each for each in scored.points if each.value == 0.1)
    for place, auc in zip(scored.environments, point.aucs, strict=True):
        here = site == place
        learner = InvariantTreeClassifier(max_leaves=5, tolerance=0.1)
        fit(learner, X[~here], y[~here], site[~here])
        assert auc == pytest.approx(roc_auc_score(y[here], learner.predict_proba(X[here])[:, 1]))
    assert point.worst_auc == min(point.aucs)


def test_tolerances_go_from_plain_to_strict_once_each():
    assert order_tolerances([0.1, None, 0.3, 0.1], 0.03) == (None, 0.3, 0.1, 0.03)


@pytest.mark.parametrize("wrong", [0, -1.0, float("nan"), "auto"])
def test_no_number_is_refused(wrong, tree, sites):
    with pytest.raises(IcscmError, match="each of tolerances"):
        follow(tree, *sites, tolerances=[wrong])


def test_a_path_of_other_data_or_of_a_plain_tree_is_refused(tree, sites, scored):
    X, y, site = sites
    few = follow(tree, X[:900], y[:900], site[:900], leave_one_out=False)
    with pytest.raises(IcscmError, match="path is of other data or settings"):
        tree.report(path=few)
    plain = fit(InvariantTreeClassifier(tolerance=None), *sites)
    with pytest.raises(IcscmError, match="plain tree rejects nothing"):
        follow(plain, *sites)
    other = fit(InvariantTreeClassifier(max_leaves=3), *sites)
    with pytest.raises(IcscmError, match="path is of other data or settings"):
        other.report(path=scored)


def test_two_environments_are_too_few_to_leave_one_out(tree, sites):
    X, y, site = sites
    two = site.isin(["site 0", "site 1"])
    with pytest.raises(IcscmError, match="at least 3"):
        follow(tree, X[two], y[two], site[two])
    from sklearn.tree import DecisionTreeClassifier

    with pytest.raises(IcscmError, match="must be an InvariantTreeClassifier"):
        follow(DecisionTreeClassifier(), *sites)
