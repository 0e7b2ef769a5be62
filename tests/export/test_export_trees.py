"""Trees and forests in SQL, Python and JSON predict what they predict here, to the last bit."""

import ast
import math
from random import Random

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from icscm.exceptions import IcscmError, IcscmWarning
from icscm.export import export_model
from icscm.export.fasta import export_fasta
from icscm.model.forest import Forest
from icscm.model.parsing import Feature
from icscm.model.rules import CategoryRule, MissingRule, ThresholdRule
from icscm.model.tree import Tree
from support.exported_models import (
    CLASSES,
    COLUMN_TYPES,
    assert_exports_agree,
    fold,
    know_levels,
    rules_on,
    run_json,
    run_python,
    run_sql,
    tables,
)
from support.hostile import SQL_NAMES
from support.random_models import (
    KINDS,
    calibrated,
    forests,
    make_chain,
    make_each_kind,
    make_tree,
    number_leaves,
    scores,
    trees,
)
from support.saved_models import make_saved, make_saved_tree

pytestmark = [
    pytest.mark.filterwarnings("ignore::icscm.exceptions.UnseenMissingWarning"),
    pytest.mark.filterwarnings("ignore::icscm.exceptions.UnknownLevelWarning"),
]

LANGUAGES = ("sql", "python", "json", "text")


@st.composite
def cases(draw, models):
    """A model and a table that it can predict."""
    columns = draw(tables())
    saved = make_saved(
        features=[Feature(name, COLUMN_TYPES[kind].model) for name, (kind, _) in columns.items()],
        model=draw(models(rules_on(columns), n_environments=draw(st.sampled_from([1, 3])))),
        environments=None,
        classes=draw(st.sampled_from(CLASSES)),
    )
    return know_levels(draw, saved, columns), columns


SLOW = settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])


@SLOW
@given(cases(trees))
def test_trees_agree_on_random_tables(engines, case):
    assert_exports_agree(engines, *case)


@settings(SLOW, max_examples=40)
@given(cases(forests))
def test_forests_agree_on_random_tables(engines, case):
    """Sums are taken in one order everywhere, so that not even the last bit differs."""
    assert_exports_agree(engines, *case)


@settings(SLOW, max_examples=40)
@given(cases(lambda *a, **k: scores(*a, **k) | calibrated(scores(*a, **k))))
def test_scores_agree_on_random_tables(engines, case):
    """Risks are a table in every language: no exp is taken, and not even the last bit differs."""
    assert_exports_agree(engines, *case)
    text = export_model(case[0], "text")
    assert all(line.isprintable() for line in text.split("\n"))


@settings(SLOW, max_examples=30)
@given(cases(lambda *a, **k: calibrated(trees(*a, **k) | forests(*a, **k))))
def test_calibrated_models_agree_on_random_tables(engines, case):
    """Predictions are the same even where a threshold is a probability that occurs."""
    assert_exports_agree(engines, *case)


@SLOW
@given(cases(lambda *a, **k: calibrated(trees(*a, **k) | forests(*a, **k))))
def test_text_of_any_model_prints(case):
    text = export_model(case[0], "text")
    assert all(line.isprintable() for line in text.split("\n"))


EVERY_COLUMN = {
    'it\'s "x"\n--': ("float", [None, 1.0, 2.5, math.inf, -1.0, 63.0, 0.1, -0.0]),
    "TRUE": ("whole", [7, None, 2**60 + 1, 2**60, -1, 0, 1, 7]),
    "'; DROP TABLE data; --": ("text", ["a", "it's", None, "", "two\nlines", "😀", "NaN", "a"]),
    "select": ("boolean", [True, False, True, None, True, False, False, None]),
    "*/ {{7*7}}": ("coded", [1.0, 2.5, -3.0, 1.0, None, 2.5, 0.0, 1.0]),
}
NUMBER, WHOLE, TEXT, FLAG, CODED = EVERY_COLUMN
EVERY_RULE = [
    ThresholdRule(0, NUMBER, 0.1, above=True),
    ThresholdRule(0, NUMBER, 2.5, above=False, missing=True),
    MissingRule(0, NUMBER, is_missing=True),
    ThresholdRule(1, WHOLE, 2**60, above=True, missing=False),
    CategoryRule(2, TEXT, ("it's",), equal=True),
    CategoryRule(2, TEXT, ("a", "😀"), equal=False, pooled=True, missing=False),
    CategoryRule(2, TEXT, ("two\nlines", ""), equal=True, pooled=True, missing=True),
    MissingRule(2, TEXT, is_missing=False),
    CategoryRule(3, FLAG, (True,), equal=True),
    CategoryRule(4, CODED, (1, 2.5), equal=False, pooled=True),
    CategoryRule(4, CODED, (-3.0,), equal=True, missing=True),
    MissingRule(3, FLAG, is_missing=True),
]


@pytest.mark.parametrize("kind", KINDS)
def test_each_kind_with_each_rule(engines, kind):
    """Rules of each kind about columns of each kind, with missing values and hostile names."""
    features = [Feature(name, COLUMN_TYPES[each].model) for name, (each, _) in EVERY_COLUMN.items()]
    model = make_each_kind(EVERY_RULE)[kind]
    saved = make_saved(features=features, model=model, environments=None, classes=("'", '"'))
    results = assert_exports_agree(engines, saved, EVERY_COLUMN)
    assert len({text for _, _, text in results}) > 2, "rows are decided by different things"
    assert all(line.isprintable() for line in export_model(saved, "text").split("\n"))


@pytest.mark.parametrize("missing", [None, True, False])
@pytest.mark.parametrize("is_positive", [True, False])
def test_missing_values_take_the_side_where_the_rule_is_false(engines, missing, is_positive):
    """The other side of a rule that says nothing of missing values is not its negation."""
    columns = {
        "n": ("float", [None, 1.0, 2.0, math.inf, None]),
        "t": ("text", [None, "a", "b", None, "a"]),
    }
    rules = [
        ThresholdRule(0, "n", 1.0, is_positive, missing),
        CategoryRule(1, "t", ("a",), is_positive, missing=missing),
        CategoryRule(1, "t", ("a", "b"), is_positive, pooled=True, missing=missing),
        MissingRule(0, "n", is_positive),
    ]
    features = [Feature("n", "number"), Feature("t", "category")]
    for side in (0, 1):
        saved = make_saved(features=features, model=make_chain(rules, side))
        results = assert_exports_agree(engines, saved, columns)
        assert len(set(results)) > 1


def check_hostile_name(engines, name, make_model):
    """Each line of a tree is a comment in SQL and text in Python, whatever is in it."""
    rule = CategoryRule(0, name, (name,), equal=True)
    tree = make_chain([rule], leaves=(((1, 1), (9, 9)), ((9, 9), (1, 1))))
    features = [Feature(name, "category")]
    saved = make_saved(
        features=features, model=make_model(tree), classes=("no", name), version=name
    )
    results = assert_exports_agree(engines, saved, {name: ("text", [name, "other", None])})
    assert [label for label, _, _ in results] == [name, "no", "no"]
    for to in LANGUAGES:
        is_data = to == "sql"  # where quoted names stand as they are
        assert all(line.isprintable() or is_data for line in export_model(saved, to).split("\n"))


@pytest.mark.parametrize("name", SQL_NAMES)
def test_hostile_names(engines, name):
    check_hostile_name(engines, name, lambda tree: tree)


@pytest.mark.thorough
@pytest.mark.parametrize("name", SQL_NAMES)
def test_hostile_names_in_forests(engines, name):
    check_hostile_name(engines, name, lambda tree: Forest((tree, tree)))


def test_hostile_names_in_one_forest(engines):
    """All names that SQL can tell apart, each in one of the trees."""
    names = list({fold(name): name for name in SQL_NAMES}.values())
    assert len(names) > 60
    rules = [CategoryRule(j, name, (name,), equal=True) for j, name in enumerate(names)]
    trees = [make_chain([rule], leaves=(((1, 1), (9, 9)), ((9, 9), (1, 1)))) for rule in rules]
    features = [Feature(name, "category") for name in names]
    saved = make_saved(features=features, model=Forest(tuple(trees)))
    columns = {name: ("text", [name, "other", None]) for name in names}
    results = assert_exports_agree(engines, saved, columns)
    assert [label for label, _, _ in results] == ["yes", "no", "no"]
    for to in ("python", "json", "text"):
        assert all(line.isprintable() for line in export_model(saved, to).split("\n"))


@pytest.mark.parametrize("side", [0, 1])
@pytest.mark.parametrize("depth", [150, pytest.param(400, marks=pytest.mark.thorough)])
def test_deep_trees(engines, side, depth):
    """Python takes 100 blocks inside each other, and SQLite's parser hardly more."""
    columns = {f"c{i}": ("float", [float(i % 3), 1e9, -1.0]) for i in range(50)}
    rules = [ThresholdRule(i % 50, f"c{i % 50}", i, above=True) for i in range(depth)]
    features = [Feature(name, "number") for name in columns]
    saved = make_saved(features=features, model=make_chain(rules, side))
    assert_exports_agree(engines, saved, columns)


def test_a_forest_too_large_for_sql():
    one = Tree((), (((1, 1), (2, 2)),))
    saved = make_saved(model=Forest((one,) * 501))
    with pytest.raises(
        IcscmError, match="a sum over 501 trees is more than SQLite and DuckDB take"
    ):
        export_model(saved, "sql")
    ast.parse(export_model(saved, "python"))


def test_a_large_statement_is_told(monkeypatch):
    """The SQL of a forest took 2.6 MB, and nothing said so."""
    saved = make_saved_tree(2)
    export_model(saved, "sql")  # a small one is no news
    monkeypatch.setattr("icscm.export.sql.statement._LARGE_STATEMENT", 1_000)
    with pytest.warns(IcscmWarning, match=r"the SQL takes 0\.0 MB, .*'json' write each rule once"):
        export_model(saved, "sql")


@pytest.mark.parametrize("n_trees", [20, pytest.param(40, marks=pytest.mark.thorough)])
def test_large_forests(engines, n_trees):
    columns = {"a": ("float", [0.5, 3.5, None]), "b": ("text", ["x", "y", None])}
    features = [Feature("a", "number"), Feature("b", "category")]
    rules = [
        *(ThresholdRule(0, "a", i / 3, above=True, missing=False) for i in range(6)),
        *(CategoryRule(1, "b", (each,), equal=True) for each in "xy"),
    ]
    rng = Random(4)
    grown = [make_tree(rng.sample(rules, 4), rng, balanced=i % 2 == 1) for i in range(n_trees)]
    saved = make_saved(features=features, model=Forest(tuple(grown)))
    results = assert_exports_agree(engines, saved, columns)
    assert all(text.endswith(f" of {n_trees} trees above 0.5") for _, _, text in results)


@pytest.mark.parametrize("n_trees", [None, 2])
def test_texts_that_mean_missing(engines, n_trees):
    """What `icscm fit` took for missing in its file."""
    told = {"na": ["-9", "?"], "format": "text"}
    model = make_saved_tree(n_trees).model
    saved = make_saved(model=model, settings={"table": told})
    columns = {
        "age": ("text", ["-9", "70", "?", "20"]),
        "smoker": ("text", ["yes", "?", " no", ""]),
    }
    plain = {
        "age": ("float", [None, 70.0, None, 20.0]),
        "smoker": ("text", ["yes", None, "no", None]),
    }
    expected = run_json(export_model(saved, "json"), plain)
    assert run_python(export_model(saved, "python"), columns, missing=None) == expected
    for engine in engines.values():
        assert run_sql(engine, columns, export_model(saved, "sql")) == expected


def test_fasta_is_for_rule_sets():
    with pytest.raises(IcscmError, match="this model is a tree; see its rules with icscm show"):
        export_fasta(make_saved_tree())


def test_a_tree_in_words():
    rules = [ThresholdRule(0, "age", 63, above=True), CategoryRule(1, "smoker", ("yes",), True)]
    leaves = ((1, 2), (30, 40)), ((5, 6), (0, 1)), ((9, 9), (2, 2))
    tree = Tree(number_leaves(rules, [[1, None], [None, None]]), leaves)
    text = export_model(make_saved(model=tree), "text")
    assert text == (
        "Predicts yes in leaves marked positive and no in others (shares are of yes):\n\n"
        "    all: 70.1% of 107\n"
        "      age > 63: 83.5% of 85\n"
        "        smoker == yes: 95.9% of 73 -> positive\n"
        "        smoker != yes: 8.3% of 12 -> negative\n"
        "      age <= 63: 18.2% of 22 -> negative\n\n"
        "decided by                  predicts  probability of yes  no  yes\n"
        "age > 63 and smoker == yes  yes                   0.9467   3   70\n"
        "age > 63 and smoker != yes  no                    0.1429  11    1\n"
        "age <= 63                   no                    0.2083  18    4\n\n"
        "Each sample is in one of these leaves. The probability is\n"
        "(samples of yes + 1) / (samples + 2).\n\n"
        "Where a value is missing that never was at fitting, both branches are weighted by their "
        "samples.\n\n"
        "Samples of yes / all samples, by environment and line of the table above:\n\n"
        "environment    north    south\n"
        "line 1       30 / 31  40 / 42\n"
        "line 2         0 / 5    1 / 7\n"
        "line 3        2 / 11   2 / 11\n\n"
        "Learned by icscm 0.1.0 from 107 samples in 2 environments, at level alpha = 0.05.\n"
    )


def test_a_forest_in_words():
    text = export_model(make_saved_tree(3), "text")
    assert text.startswith(
        "Predicts yes where the mean probability of its trees exceeds 1/2,\n"
        "and no elsewhere: a forest of 3 trees with 4 leaves each\n"
        "trees that use a feature: age (3), smoker (3)\n\n"
    )
