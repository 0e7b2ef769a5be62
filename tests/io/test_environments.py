"""Environments made of columns: joined, left out, merged."""

import pyarrow as pa
import pytest

from icscm.exceptions import IcscmError
from icscm.io.roles import read_samples


def make_table(**columns):
    sites = ["north", "south", "north", "east+w", "south", "a=b"]
    table = {"x": range(6), "ill": [0, 1] * 3, "site": sites, "year": [2019, 2020] * 3}
    return pa.table({name: list(each) for name, each in (table | columns).items()})


def read(*, environment="site", table=None, **asked):
    return read_samples(make_table() if table is None else table, "ill", environment, **asked)


def test_columns_are_joined():
    samples = read(environment="site,year")
    assert samples.environments.tolist()[:2] == ["north / 2019", "south / 2020"]
    assert samples.environment == "site / year"
    assert samples.X.column_names == ["x"]


def test_a_joined_value_is_missing_where_one_of_its_parts_is():
    table = make_table(year=[2019.0, None, float("nan"), 2020.5, 2019.0, 2020.0])
    with pytest.raises(IcscmError, match=r"'site / year' is missing in 2 of 6 rows"):
        read(environment="site,year", table=table)
    samples = read(environment="site,year", table=table, drop_missing=True)
    assert samples.environments.tolist() == [
        "north / 2019", "east+w / 2020.5", "south / 2019", "a=b / 2020",
    ]  # fmt: skip
    assert samples.n_dropped == 2


def test_a_name_that_holds_a_comma_is_a_column():
    table = make_table(**{"a,b": list("ppqqpp")})
    assert read(environment="a,b", table=table).environments.tolist() == list("ppqqpp")
    joined = read(environment="year,a,b", table=table)
    assert joined.environments.tolist()[:2] == ["2019 / p", "2020 / p"]


def test_environments_are_left_out():
    samples = read(exclude_environment=["a=b", "south"])
    assert samples.environments.tolist() == ["north", "north", "east+w"]
    assert samples.X.column("x").to_pylist() == [0, 2, 3]
    assert (samples.n_excluded, samples.n_dropped) == (3, 0)


def test_those_left_out_need_no_label_and_stay_what_they_are():
    """A missing label among rows that go anyway stopped nothing but them."""
    table = make_table(ill=[0, None, 1, 0, None, 1])
    samples = read(table=table, exclude_environment=["south"])
    assert samples.y.tolist() == [0, 1, 0, 1]
    years = read(environment="year", table=make_table(year=[1, 2, 3] * 2), exclude_environment="2")
    assert years.environments.tolist() == [1, 3, 1, 3]


def test_environments_are_merged():
    samples = read(merge_environments=["north+south=both", "east+w+a=b=rest"])
    assert samples.environments.tolist() == ["both"] * 3 + ["rest", "both", "rest"]
    years = read(
        environment="year",
        table=make_table(year=[2018, 2019, 2020] * 2),
        merge_environments=["2018+2019=old"],
    )
    assert years.environments.tolist() == ["old", "old", "2020"] * 2


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        ({"exclude_environment": ["nort"]}, "'site' has no value 'nort'; did you mean 'north'"),
        ({"merge_environments": ["north+sout=a"]}, "'site' has no value 'sout'; did you mean "),
        ({"merge_environments": ["north+south"]}, "must be of the form A"),
        ({"merge_environments": ["=c"]}, "must be of the form A"),
        (
            {"merge_environments": ["north=a", "north+south=b"]},
            "'north' is already to be merged into 'a'",
        ),
        (
            {"exclude_environment": ["north"], "merge_environments": ["north+south=b"]},
            "'north' is already to be excluded",
        ),
        (
            {"exclude_environment": ["north", "south", "east+w", "a=b"]},
            "--exclude-environment leaves no row",
        ),
        ({"environment": None, "exclude_environment": ["a"]}, "need a column of environments"),
        ({"environment": "site,yeer"}, "no column 'yeer'; did you mean 'year'"),
        ({"environment": "site,ill"}, "target and environment are both 'ill'"),
        ({"environment": "site,year", "only": ["year"]}, "'year' is the environment"),
        ({"environment": ","}, "--environment ',' names no column"),
    ],
)
def test_errors_say_what_to_do(asked, message):
    with pytest.raises(IcscmError, match=message):
        read(**asked)


def test_a_column_of_the_joined_name_is_in_the_way():
    table = make_table(**{"site / year": list("ababab")})
    with pytest.raises(IcscmError, match="already has a column 'site / year'"):
        read(environment="site,year", table=table)
    assert read(environment="site / year", table=table).environments.tolist() == list("ababab")
