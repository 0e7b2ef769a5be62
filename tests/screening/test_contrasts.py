"""The rule that shows the effect of a column, as it reads."""

import numpy as np
import pandas as pd
import pytest

from icscm.engine.counts import Cut
from icscm.screening.contrasts import find_contrast, list_cuts
from icscm.screening.screened_table import read_table
from icscm.sources.columns import open_columns
from support.screened import make_screened_table

RNG = np.random.default_rng(0)
AGE = RNG.integers(20, 90, 600).astype(float)
WITH_MISSING = np.where(RNG.random(600) < 0.3, np.nan, AGE)
JOB = RNG.choice(["clerk", "nurse", "smith"], 600)
GRADE = pd.Categorical(
    RNG.choice(["low", "mid", "high"], 600), ["low", "mid", "high"], ordered=True
)
IS_OLD = AGE > 60

COLUMNS = {
    "age": AGE,
    "weight": WITH_MISSING,
    "job": JOB,
    "grade": GRADE,
    "smokes": RNG.random(600) < 0.4,
    "allergy": np.where(RNG.random(600) < 0.5, None, JOB),
}
X = pd.DataFrame(COLUMNS)


@pytest.fixture(scope="module")
def opened():
    return open_columns(
        X, environments=np.arange(600) % 3, groups=None, max_thresholds=200, n_jobs=1
    )


@pytest.fixture(scope="module")
def table(opened):
    return read_table(opened.source, names=list(X), groups=None, is_weighted=False)


@pytest.mark.parametrize(
    ("column", "is_higher", "expected"),
    [
        ("age", X["age"] > 60, "age > 60"),
        ("weight", X["weight"] > 45, "weight > 45 (missing: false)"),
        ("weight", X["weight"].isna(), "weight is missing"),
        ("job", X["job"] == "nurse", "job == nurse"),
        ("grade", X["grade"] == "high", "grade == high"),
        ("grade", X["grade"] != "low", "grade in {mid, high}"),
        ("smokes", X["smokes"], "smokes == True"),
        ("allergy", X["allergy"] == "smith", "allergy == smith (missing: false)"),
        ("allergy", X["allergy"].isna(), "allergy is missing"),
    ],
)
def test_a_rule_reads_as_it_should(opened, table, column, is_higher, expected):
    """The rule is true where the contribution is higher, and the contrast is the difference."""
    position = list(X).index(column)
    contributions = 2.0 * is_higher.to_numpy(dtype=float)[:, np.newaxis]
    contrast = find_contrast(table, position, contributions)
    rule = opened.source.columns.make_rule(contrast.cut)
    assert str(rule) == expected
    assert contrast.difference == pytest.approx(2.0)
    assert contrast.output == 0


def test_a_rule_that_is_true_where_the_contribution_is_lower_has_a_negative_contrast(table):
    contrast = find_contrast(table, 0, -3.0 * (AGE > 60)[:, np.newaxis])
    assert contrast.difference == pytest.approx(-3.0)


def test_of_several_outputs_the_one_that_varies_most_is_shown(table):
    contributions = np.column_stack((0.1 * IS_OLD, 2.0 * IS_OLD, -1.0 * IS_OLD))
    contrast = find_contrast(table, 0, contributions)
    assert contrast.output == 1
    assert contrast.difference == pytest.approx(2.0)


def test_the_cut_is_the_one_that_explains_most():
    """Against all cuts, by the variance between both sides."""
    rng = np.random.default_rng(3)
    bins = rng.integers(0, 9, 500)
    contributions = (bins**1.5 + rng.normal(size=500))[:, np.newaxis]
    table = make_screened_table([bins], np.zeros(500))
    found = find_contrast(table, 0, contributions)
    explained = []
    for threshold in range(8):
        above = contributions[bins > threshold].mean() - contributions[bins <= threshold].mean()
        explained.append(above**2 * (bins > threshold).mean() * (bins <= threshold).mean())
    assert found.cut == Cut(0, int(np.argmax(explained)), negated=False)


def test_missing_values_are_on_the_false_side():
    table = make_screened_table([[0, 1, 2, 3]], [0, 0, 0, 0], has_missing=[True])
    cuts = list_cuts(table, 0)
    assert cuts[0][0].missing
    assert [is_true.tolist() for _, is_true in cuts] == [[1, 0, 0, 0], [0, 0, 1, 1], [0, 0, 0, 1]]
