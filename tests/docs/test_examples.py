"""The gallery: every example has a figure and a description; two are run as notebooks.

Of the tutorials on real tables, facts stated in prose are checked where the files are at hand.
"""

import os
import runpy
import shutil
import sys
import warnings
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from icscm import ICSCMClassifier, InvariantScoreClassifier, evaluate
from icscm.datasets import list_datasets, load_heart_by_hospital, load_income_by_state, load_sachs
from icscm.exceptions import TooLittleDataWarning
from support.processes import PATIENCE

ROOT = Path(__file__).parents[2]
EXAMPLES = {path.stem: path for path in sorted((ROOT / "examples").glob("*/*.py"))}
# The warnings that an example shows, since its text speaks of them.
EXPLAINED = {"stability": ["UnstableModelWarning"]}


def is_kept(leaf):
    low, high = leaf.new_interval
    return low <= leaf.observed <= high


# What the text of each says of its figure, asked of the names that it leaves.
CLAIMS = {
    "alpha_path": lambda it: (
        not {*it.data.shortcuts} & {name for each in it.learners for name in each.features_used_}
        and [bool(each.rules_) for each in it.learners] == [False] + [True] * 8 + [False]
    ),
    "calibration": lambda it: (
        all(map(is_kept, it.found[0].leaves)) and not any(map(is_kept, it.found[1].leaves))
    ),
    "child_rejected": lambda it: (
        "C1" in it.plain.features_used_ and it.invariant.features_used_ == ["A1", "A2"]
    ),
    "equivalent_rules": lambda it: (
        it.there < 0.5 < it.home and "lactate_flag" in str(it.learner.equivalent_rules_)
    ),
    "icp_dof": lambda it: [it.fitted[dof].parents_ for dof in it.fitted] == [(), ("A1", "A2")],
    "leave_one_out": lambda it: (
        it.errors["SCMClassifier"]["new hospital"] > 0.5
        and max(it.errors["ICSCMClassifier"].values()) < 0.2
    ),
    "margin": lambda it: (
        min(it.errors[None][-1], it.errors[0.05][0]) > 0.25  # nothing found
        and max(it.errors[0.05][2:]) < 0.1
    ),
    "missingness": lambda it: (
        ((it.rates[True] - it.rates[False]).abs() > 0.5).tolist() == [True, False] * 2 + [True]
    ),
    "own_test": lambda it: (
        all(trend > chi2 for chi2, trend in it.leaves["billing_code == R57"])
        and max(map(max, it.leaves["age > 65"])) < 0.1
    ),
    "power": lambda it: (
        [each[0].difference for each in it.found]
        == sorted((each[0].difference for each in it.found), reverse=True)
    ),
    "rejected_split": lambda it: (
        [split.heterogeneity_share > it.tree.tolerance_ for split in it.splits]
        == [False, True, True]
    ),
    "shortcut": lambda it: (
        it.errors[0] > 0.75 > 0.1 > it.errors[1] and "billing_code" in str(it.plain.model_)
    ),
    "stability": lambda it: (
        it.found.stable_features == it.data.parents and it.found.model_frequency < 0.5
    ),
    "tolerance_path": lambda it: (
        max(it.means) - min(it.means) < 0.05 and it.aucs[0] < 0.5 and it.aucs[-1] > 0.85
    ),
    "verdicts": lambda it: (
        it.learner.verdicts_[0].conclusion == "invariant"
        and it.learner.verdicts_[1].conclusion == "too little data to tell"
        and it.rejected.verdict.conclusion == "not invariant"
    ),
}


@pytest.fixture
def run_example(monkeypatch):
    """Runs an example as the site does, and gives its names and what it warned of."""
    from matplotlib import pyplot

    monkeypatch.syspath_prepend(ROOT / "docs")
    monkeypatch.setattr(warnings, "formatwarning", warnings.formatwarning)  # put back afterwards
    monkeypatch.setattr(pyplot, "show", lambda: None)
    pyplot.close("all")

    def run(path):
        with warnings.catch_warnings(record=True) as caught, pyplot.rc_context():
            import example_style

            warnings.simplefilter("always")
            example_style.apply({}, "")
            names = runpy.run_path(str(path))
            for number in pyplot.get_fignums():  # whoever draws may warn, too
                pyplot.figure(number).canvas.draw()
        return SimpleNamespace(**names), [each.category.__name__ for each in caught]

    yield run
    pyplot.close("all")
    sys.modules.pop("example_style", None)


def test_there_are_enough_of_them():
    assert len(EXAMPLES) >= 12
    assert set(EXPLAINED) <= set(EXAMPLES)
    assert set(CLAIMS) == set(EXAMPLES)


@pytest.mark.thorough
@pytest.mark.parametrize("name", EXAMPLES)
def test_an_example_draws_what_it_says_and_nothing_unexplained(name, run_example, capsys):
    from matplotlib import pyplot

    names, warned = run_example(EXAMPLES[name])
    assert warned == EXPLAINED.get(name, [])
    assert CLAIMS[name](names)
    figures = [pyplot.figure(number) for number in pyplot.get_fignums()]
    assert figures
    for figure in figures:
        assert figure.axes
        assert all(axes.has_data() for axes in figure.axes)
    printed, complained = capsys.readouterr()
    assert complained == ""
    assert max(map(len, printed.splitlines()), default=0) <= 86  # more scrolls sideways


@pytest.mark.parametrize("name", EXAMPLES)
def test_an_example_is_short_and_says_that_data_are_simulated(name):
    text = EXAMPLES[name].read_text(encoding="utf-8")
    assert len(text.splitlines()) <= 80
    assert "imulat" in text


@pytest.fixture
def run_notebook(tmp_path, monkeypatch):
    """Makes a notebook of an example, as the site offers it, and runs it in a real kernel."""
    import nbclient
    import nbformat
    from sphinx_gallery.notebook import python_to_jupyter_cli

    def run(name):
        script = Path(shutil.copy(EXAMPLES[name], tmp_path))
        python_to_jupyter_cli([str(script)])
        book = nbformat.read(script.with_suffix(".ipynb"), as_version=4)
        nbclient.NotebookClient(book, timeout=PATIENCE, kernel_name="python3").execute(cwd=tmp_path)
        cells = [cell for cell in book.cells if cell.cell_type == "code"]
        return [[dict(each.get("data", each)) for each in cell.outputs] for cell in cells]

    return run


def count_kind(outputs, kind):
    return sum(kind in each for each in outputs)


@pytest.mark.thorough
@pytest.mark.filterwarnings("ignore")  # of the kernel's machinery
def test_the_report_is_shown_in_a_notebook(run_notebook):
    *_, drawn, (report,) = run_notebook("shortcut")
    assert count_kind(drawn, "image/png") == 1
    assert "<iframe" in report["text/html"]
    for word in ("billing_code", "deteriorated", "hospital"):
        assert word in report["text/html"]
    assert len(report["text/plain"].splitlines()) < 12


@pytest.mark.thorough
@pytest.mark.filterwarnings("ignore")  # of the kernel's machinery
def test_the_path_and_its_figures_are_shown_in_a_notebook(run_notebook):
    _, (grown,), (plotted,), drawn = run_notebook("tolerance_path")
    assert "<table" in grown["text/html"]
    assert plotted["text/html"].startswith("<img")
    assert count_kind(drawn, "image/png") == 1


DATA = Path(os.environ.get("ICSCM_DATA") or ROOT.parent / "shared" / "data")
PRESENT = {info.name for info in list_datasets(DATA) if info.present}
N_STATES = 6  # of the census, in the tutorial on incomes


def needs(name):
    return pytest.mark.skipif(name not in PRESENT, reason=f"{name} is not in {DATA}")


@pytest.mark.thorough
@needs("heart_disease")
def test_the_claims_on_heart_disease():
    X, y, hospital, _ = load_heart_by_hospital(DATA)
    assert len(y) == 920
    rates = [y[hospital == each].mean() for each in np.unique(hospital)]
    assert (round(min(rates), 2), int(100 * max(rates))) == (0.36, 93)
    is_missing = X.loc[hospital != "cleveland", "ca"].isna()
    assert is_missing.mean() > 0.95
    score = InvariantScoreClassifier(max_terms=8, random_state=0)
    score.fit(X, y, environments=hospital)
    verdicts = score.screen_.set_index("column")["verdict"]
    assert verdicts["cp"] == "cannot tell"
    assert 3 <= (verdicts == "cannot tell").sum() <= 7


@pytest.mark.thorough
@needs("heart_disease")
@pytest.mark.filterwarnings("ignore::icscm.exceptions.TooLittleDataWarning")
def test_the_claims_on_the_next_hospital():
    """It ranks as well as elsewhere, and overestimates the risk; 60 outcomes improve that."""
    X, y, hospital, _ = load_heart_by_hospital(DATA)
    is_new = hospital == "hungarian"
    score = InvariantScoreClassifier(max_terms=8, random_state=0)
    score.fit(X[~is_new], y[~is_new], environments=hospital[~is_new])
    few, others = (X[is_new][:60], y[is_new][:60]), (X[is_new][60:], y[is_new][60:])
    before = evaluate(score, *others).overall.scores
    after = evaluate(score.recalibrate(*few), *others).overall.scores
    assert before["auc"].value > 0.8
    assert before["intercept"].high < 0
    assert after["brier"].value < before["brier"].value


@pytest.mark.thorough
@needs("acs_income")
def test_the_claims_on_income():
    X, y, state, _ = load_income_by_state(DATA)
    if len(set(state)) != N_STATES:
        pytest.skip("other states than those of the tutorial")
    assert round(len(y), -3) == 41_000
    assert not X.isna().any().any()


@pytest.mark.thorough
@needs("sachs")
def test_the_claims_on_proteins():
    X, y, experiment, causal = load_sachs(DATA)
    assert causal == ["Mek", "PKA"]
    learner = ICSCMClassifier()
    with pytest.warns(TooLittleDataWarning, match="Akt"):
        learner.fit(X, y, environments=experiment)
    assert learner.features_used_ == ["Akt"]
    conclusions = [verdict.conclusion for verdict in learner.verdicts_]
    assert conclusions == ["too little data to tell"] * 2 + ["not invariant"]
    leaves = learner.describe_leaves()
    assert 0.19 < leaves["n"][:2].sum() / leaves["n"].sum() < 0.21
