"""Sites that share counts only."""

import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pytest

from icscm import ICSCMClassifier, InvariantTreeClassifier, SCMClassifier
from icscm.engine.counts import Cut
from icscm.exceptions import IcscmError
from icscm.sources.sites import LocalSite, SitesSource, make_agreement, open_sites
from icscm.testing import check_row_source
from support.fitting import PAPER
from support.sources import check_any_nodes

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
        Spied(
            LocalSite(
                frame[hospital == each],
                ill[hospital == each],
                environments=each,
                agreement=agreement,
            )
        )
        for each in HOSPITALS
    ]


@pytest.mark.parametrize(
    "learner",
    [
        ICSCMClassifier(),
        ICSCMClassifier(model_type="disjunction", stop="coverage", **PAPER),
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
        LocalSite(
            frame[is_first], ill[is_first], environments=hospital[is_first], agreement=agreement
        ),
        LocalSite(
            pl.from_pandas(frame[~is_first]),
            ill[~is_first],
            environments=hospital[~is_first],
            agreement=agreement,
        ),
        LocalSite(frame[:0], ill[:0], environments="west", agreement=agreement),
    ]
    assert ICSCMClassifier().fit_counts(open_sites(sites, agreement)).trace_ == expected.trace_


def test_a_sites_source_counts_as_one_over_all_rows():
    frame, ill, hospital = make_patients(300)
    agreement = agree(frame)
    whole = SitesSource(
        [LocalSite(frame, ill, environments=hospital, agreement=agreement)], agreement
    )
    parts = [
        LocalSite(frame[part], ill[part], environments=hospital[part], agreement=agreement)
        for part in (slice(0, 1), slice(1, 250), slice(250, None))
    ]
    cuts = [Cut(0, 2, negated=False), Cut(1, 9, negated=False, missing=True), Cut(2, 0, True)]
    source = SitesSource(parts, agreement)
    check_any_nodes(source, whole, 4, np.random.default_rng(0))
    check_row_source(source, whole, cuts)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda t, y, e: (t.assign(smoker="pipe"), y, e), "'smoker' holds levels that were not"),
        (lambda t, y, e: (t.assign(dose=np.nan), y, e), "'dose' is missing in 50 rows, which was"),
        (lambda t, y, e: (t.assign(age="old"), y, e), "'age' must hold numbers, as agreed, but"),
        (lambda t, y, e: (t.assign(smoker=1), y, e), "'smoker' must hold categories, as agreed"),
        (lambda t, y, e: (t.drop(columns="age"), y, e), "no column 'age'"),
        (lambda t, y, e: (t, np.where(y, "ill", None), e), "y is missing"),
        (lambda t, y, e: (t, np.where(y, 2, 0), e), "y holds labels that were not agreed: 2"),
        (lambda t, y, e: (t, y, "east"), "environments holds labels that were not agreed: 'east'"),
        (lambda t, y, e: (t, y[:-1], e), "y has 49 entries but X has 50 rows"),
    ],
)
def test_what_was_not_agreed_is_an_error(change, message):
    frame, ill, hospital = make_patients(50)
    X, y, environments = change(frame, ill, hospital)
    with pytest.raises(IcscmError, match=message):
        LocalSite(X, y, environments=environments, agreement=agree(frame))


def test_numbers_of_numpy_are_taken():
    """An environment of `np.int64` was an error, as were levels of `np.bool_`."""
    columns = {"a": [np.int64(40)], "b": np.array([False, True])}
    agreement = make_agreement(columns, classes=(0, 1), environments=(0, 1))
    frame = pd.DataFrame({"a": [30, 50], "b": [True, False]})
    site = LocalSite(frame, np.array([0, 1]), environments=np.int64(1), agreement=agreement)
    assert site.count_totals().tolist() == [[0, 1], [0, 1]]


def test_agreements_are_checked():
    with pytest.raises(IcscmError, match="missing names columns that were not agreed: 'b'"):
        make_agreement({"a": [1]}, classes=(0, 1), environments="ab", missing=["b"])
    with pytest.raises(IcscmError, match="'a' needs thresholds, or levels of one kind"):
        make_agreement({"a": ["x", True]}, classes=(0, 1), environments="ab")
    with pytest.raises(IcscmError, match="'a' needs thresholds, or levels of one kind"):
        make_agreement({"a": [40, "yes"]}, classes=(0, 1), environments="ab")  # was NumPy's error
    for cuts in (5, "yes", None):  # a TypeError; the letters of the word were levels
        with pytest.raises(IcscmError, match="'a' needs thresholds, or levels of one kind"):
            make_agreement({"a": cuts}, classes=(0, 1), environments="ab")
    for cuts in ([40, float("nan")], [10**400]):  # thresholds were NaN, an OverflowError
        with pytest.raises(IcscmError, match="'a' needs thresholds, or levels of one kind"):
            make_agreement({"a": cuts}, classes=(0, 1), environments="ab")
    for classes, places in [((0, 0), "ab"), ((0, 1, 2), "ab"), ((0, 1), "aa")]:  # were taken
        with pytest.raises(IcscmError, match="two distinct labels, and each environment be named"):
            make_agreement({"a": [1]}, classes=classes, environments=places)
    with pytest.raises(IcscmError, match="no sites were given"):
        SitesSource([], agree(make_patients(50)[0]))


class Lying:
    """A site whose answer to one query is changed."""

    def __init__(self, site, query, change):
        self._site, self._query, self._change = site, query, change

    def __getattr__(self, name):
        answer = getattr(self._site, name)
        return (lambda *args: self._change(answer(*args))) if name == self._query else answer


def fail(_):
    raise ConnectionError("the line is down")


class WordlessError(Exception):
    def __str__(self):
        raise RuntimeError("no words")


def fail_without_words(_):
    """The message of the site's error was read unguarded: what that raised was a traceback."""
    raise WordlessError


def add(number, at=0):
    def change(counts):
        changed = counts.copy()
        changed.reshape(-1)[at] += number
        return changed

    return change


def fail_in_two_lines(_):
    """The message of a site's error kept its line breaks: ours was of several lines."""
    raise ConnectionError("the line\nis down")


LIES = {
    "down": ("count_totals", fail, r"site 2 failed to answer count_totals \(Connection"),
    "down later": ("count_cube", fail, "site 2 failed to answer count_cube"),
    "down, two lines": ("count_cube", fail_in_two_lines, "site 2 .*: the line is down"),
    "down, no words": ("count_cube", fail_without_words, "site 2 failed .*WordlessError"),
    "nothing": ("count_totals", lambda _: None, "unexpected answer to count_totals"),
    "text": ("count_cube", str, "unexpected answer to count_cube"),
    "fractions": ("count_totals", lambda n: n / 2, "site 2 .* float64"),
    "fewer environments": ("count_totals", lambda n: n[:, :2], "site 2 .* but \\(2, 3\\)"),
    "fewer columns": ("count_cube", lambda n: n[:1], "site 2 .* but"),
    "ragged": ("count_totals", lambda _: [[1], [1, 2]], "site 2 .* unexpected answer"),
    "negative totals": ("count_totals", add(-9999), "site 2 .* counts for count_totals"),
    "too many": ("count_totals", lambda n: n + 2**62, "site 2 .* counts for count_totals"),
    "other totals": ("count_totals", add(1), "site 2 .* counts for count_cube"),
    "negative cell": ("count_cube", add(-9999), "site 2 .* counts for count_cube"),
    "one more": ("count_cube", add(1), "site 2 .* counts for count_cube"),
    "twice": ("count_cube", lambda n: 2 * n, "site 2 .* counts for count_cube"),
    "one for all": ("find_same_coverage", lambda n: True, "site 2 .* but \\(1,\\)"),
    "numbers": ("find_same_coverage", lambda n: n.astype(int), "site 2 .* int64"),
    "no table": ("count_patterns", lambda table: table.counts, "site 2 .* unexpected answer"),
    "other patterns": (
        "count_patterns",
        lambda table: replace(table, counts=2 * table.counts),
        "site 2 .* counts for count_patterns",
    ),
    "patterns short": (
        "count_patterns",
        lambda table: replace(table, patterns=table.patterns[:, :0]),
        "site 2 .* but",
    ),
}


@pytest.mark.parametrize("lie", LIES)
def test_what_cannot_be_counts_is_an_error_that_names_the_site(lie):
    """Answers were added up as they came: reports had 249.2 % of 254 samples, or
    27,670,116,110,564,333,424 of them, and a site that was down ended in a traceback.
    """
    query, change, message = LIES[lie]
    frame, ill, hospital = make_patients(300)
    agreement = agree(frame)
    sites = [
        LocalSite(frame[hospital == e], ill[hospital == e], environments=e, agreement=agreement)
        for e in HOSPITALS
    ]
    sites[1] = Lying(sites[1], query, change)
    source = SitesSource(sites, agreement)
    rule = source.columns.make_binned_rule(Cut(0, 2, negated=False))

    def query_all():
        source.count_rows()
        list(source.count_cubes())
        source.find_same_coverage((), rule, [rule])
        source.count_patterns([rule])

    with pytest.raises(IcscmError, match=message) as caught:
        query_all()
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "learner", [SCMClassifier(), InvariantTreeClassifier()], ids=["scm", "tree"]
)
def test_counts_that_contradict_earlier_ones_are_an_error(learner):
    """A site that sent the bins of a column in reverse had the right samples in every cube, but not
    those that the chosen rule had left: leaves of -105 samples were accepted.
    """
    frame, ill, hospital = make_patients(300)
    agreement = agree(frame)
    sites = [
        LocalSite(frame[hospital == e], ill[hospital == e], environments=e, agreement=agreement)
        for e in HOSPITALS
    ]
    sites[1] = Lying(sites[1], "count_cube", lambda counts: counts[:, ::-1])
    with pytest.raises(IcscmError, match="one of its sites, counts other rows"):
        learner.fit_counts(open_sites(sites, agreement))


def test_sites_may_mask_their_counts():
    """Only sums need be right: masks that cancel hide the counts of each site."""
    frame, ill, hospital = make_patients(300)
    agreement = agree(frame)
    sites = [
        LocalSite(frame[hospital == e], ill[hospital == e], environments=e, agreement=agreement)
        for e in HOSPITALS
    ]
    plain = SitesSource(sites, agreement)
    masked = [Lying(Lying(sites[0], "count_cube", lambda n: n - 2**40), "count_totals", add(7))]
    masked += [Lying(Lying(sites[1], "count_cube", lambda n: n + 2**40), "count_totals", add(-7))]
    source = SitesSource([*masked, sites[2]], agreement)
    rule = source.columns.make_binned_rule(Cut(0, 2, negated=False))
    for cube, wanted in zip(source.count_cubes((rule,)), plain.count_cubes((rule,)), strict=True):
        np.testing.assert_array_equal(cube.counts, wanted.counts)


def test_the_page_runs(capsys):
    """The code of the page prints what the page shows."""
    page = PAGE.read_text()
    code = "\n".join(re.findall(r"```python\n(.*?)```", page, re.DOTALL))
    exec(compile(code, str(PAGE), "exec"), {})
    (printed,) = re.findall(r"```text\n(.*?)```", page, re.DOTALL)
    assert capsys.readouterr().out == printed
