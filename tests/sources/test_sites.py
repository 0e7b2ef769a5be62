"""Sites that share counts and nothing else."""

import re
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pytest

from countables import check_any_nodes
from icscm import ICSCMClassifier, SCMClassifier
from icscm.engine.counts import Cut
from icscm.exceptions import IcscmError
from icscm.sources.sites import LocalSite, SitesSource, make_agreement, open_sites
from icscm.testing import check_count_source
from literal import PAPER

HOSPITALS = ("north", "south", "west")
QUESTIONS = {"count_totals", "count_cube", "find_same_coverage", "count_patterns"}
PAGE = Path(__file__).parents[2] / "docs" / "sites.md"
pytestmark = pytest.mark.filterwarnings("ignore::icscm.exceptions.TooLittleDataWarning")


def make_patients(n=3000, seed=0):
    """Ill when a smoker and not known to be young; a column twice, so that there are ties."""
    rng = np.random.default_rng(seed)
    place = rng.integers(0, 3, n)
    smoker = np.where(rng.random(n) < 0.3 + 0.2 * place, "yes", rng.choice(["no", "ex"], n))
    age = np.where(rng.random(n) < 0.2, np.nan, rng.integers(20, 50, n) + 8 * place)
    ill = ((smoker == "yes") & ~(age <= 40)) ^ (rng.random(n) < 0.02)
    frame = pd.DataFrame({"smoker": smoker, "age": age, "dose": rng.integers(0, 2, n)})
    return frame.assign(smokes=frame["smoker"]), ill, np.array(HOSPITALS)[place]


def agree(frame, environments=HOSPITALS):
    """Every value a threshold, as a table with few values in memory has it."""
    ages = sorted(set(frame["age"].dropna()))
    levels = ["ex", "no", "yes"]
    columns = {"smoker": levels, "age": ages[:-1], "dose": [0], "smokes": levels}
    return make_agreement(
        columns, classes=(False, True), environments=environments, missing=["age"]
    )


class Spied:
    """Lets the four questions through and writes them down; anything else is an error."""

    def __init__(self, site):
        self._site = site
        self.asked = []

    def __getattr__(self, name):
        assert name in QUESTIONS, f"a site was asked for {name}"

        def ask(*args):
            answer = getattr(self._site, name)(*args)
            self.asked.append((name, answer))
            return answer

        return ask


def make_sites(frame, ill, hospital, agreement):
    return [
        Spied(LocalSite(frame[hospital == each], ill[hospital == each], each, agreement))
        for each in HOSPITALS
    ]


@pytest.mark.parametrize(
    "learner",
    [
        ICSCMClassifier(),
        ICSCMClassifier(model_type="disjunction", stop="coverage", missing="separate", **PAPER),
        ICSCMClassifier(search="exhaustive"),
        SCMClassifier(),
    ],
    ids=["greedy", "disjunction", "exhaustive", "plain"],
)
def test_sites_give_the_model_and_trace_of_pooled_rows(learner):
    frame, ill, hospital = make_patients()
    pooled = learner.fit(frame, ill, environments=hospital)
    model, trace = pooled.model_, pooled.trace_
    agreement = agree(frame)
    sites = make_sites(frame, ill, hospital, agreement)
    fitted = learner.fit_counts(open_sites(sites, agreement))
    assert fitted.model_ == model
    assert fitted.trace_ == trace
    assert model.rules
    np.testing.assert_array_equal(fitted.predict(frame), pooled.predict(frame))
    asked = {name for site in sites for name, _ in site.asked}
    assert asked <= QUESTIONS
    for site in sites:
        for _, answer in site.asked:
            counts = getattr(answer, "counts", answer)
            assert counts.size < len(frame), "an answer as long as the rows"


def test_each_step_asks_for_one_cube():
    frame, ill, hospital = make_patients()
    agreement = agree(frame)
    sites = make_sites(frame, ill, hospital, agreement)
    fitted = ICSCMClassifier().fit_counts(open_sites(sites, agreement))
    n_looks = len(fitted.trace_.steps) + (fitted.trace_.last_scan is not None)
    for site in sites:
        cubes = [answer for name, answer in site.asked if name == "count_cube"]
        assert [name for name, _ in site.asked].count("count_totals") == 1
        assert len(cubes) == n_looks * len(agreement.blocks)


def test_a_site_may_hold_several_environments_or_no_row():
    """And tables of other kinds: sites agree on columns, not on software."""
    frame, ill, hospital = make_patients()
    expected = ICSCMClassifier().fit(frame, ill, environments=hospital)
    agreement = agree(frame)
    is_first = np.arange(len(frame)) < 1000
    sites = [
        LocalSite(frame[is_first], ill[is_first], hospital[is_first], agreement),
        LocalSite(pl.from_pandas(frame[~is_first]), ill[~is_first], hospital[~is_first], agreement),
        LocalSite(frame[:0], ill[:0], "west", agreement),
    ]
    assert ICSCMClassifier().fit_counts(open_sites(sites, agreement)).trace_ == expected.trace_


def test_a_sites_source_counts_as_one_over_all_rows():
    frame, ill, hospital = make_patients(300)
    agreement = agree(frame)
    whole = SitesSource([LocalSite(frame, ill, hospital, agreement)], agreement)
    parts = [
        LocalSite(frame[part], ill[part], hospital[part], agreement)
        for part in (slice(0, 1), slice(1, 250), slice(250, None))
    ]
    cuts = [Cut(0, 2, negated=False), Cut(1, 9, negated=False, missing=True), Cut(2, 0, True)]
    source = SitesSource(parts, agreement)
    check_any_nodes(source, whole, 4, np.random.default_rng(0))
    check_count_source(source, whole, cuts)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda t, y, e: (t.assign(smoker="pipe"), y, e), "'smoker' holds levels that were not"),
        (lambda t, y, e: (t.assign(dose=np.nan), y, e), "'dose' is missing in 50 rows, which was"),
        (lambda t, y, e: (t.assign(age="old"), y, e), "'age' was agreed to hold numbers and does"),
        (lambda t, y, e: (t.assign(smoker=1), y, e), "'smoker' was agreed to hold categories"),
        (lambda t, y, e: (t.drop(columns="age"), y, e), "no column 'age'"),
        (lambda t, y, e: (t, np.where(y, "ill", None), e), "y is missing"),
        (lambda t, y, e: (t, np.where(y, 2, 0), e), "y holds labels that were not agreed: 2"),
        (lambda t, y, e: (t, y, "east"), "environments holds labels that were not agreed: 'east'"),
        (lambda t, y, e: (t, y[:-1], e), "y has 49 entries but X has 50 rows"),
    ],
)
def test_what_was_not_agreed_is_an_error(change, message):
    frame, ill, hospital = make_patients(50)
    with pytest.raises(IcscmError, match=message):
        LocalSite(*change(frame, ill, hospital), agree(frame))


def test_agreements_are_checked():
    with pytest.raises(IcscmError, match="missing names columns that were not agreed: 'b'"):
        make_agreement({"a": [1]}, classes=(0, 1), environments="ab", missing=["b"])
    with pytest.raises(IcscmError, match="'a' needs thresholds, or levels of one kind"):
        make_agreement({"a": ["x", True]}, classes=(0, 1), environments="ab")
    with pytest.raises(IcscmError, match="no site to ask"):
        SitesSource([], agree(make_patients(50)[0]))


def test_the_page_runs(capsys):
    """The page's code prints what the page says."""
    page = PAGE.read_text()
    code = "\n".join(re.findall(r"```python\n(.*?)```", page, re.DOTALL))
    exec(compile(code, str(PAGE), "exec"), {})
    (printed,) = re.findall(r"```text\n(.*?)```", page, re.DOTALL)
    assert capsys.readouterr().out == printed
