"""Trees and forests: where rows go, what they predict, and how they read."""

import math
import re
import warnings
from dataclasses import replace
from itertools import product
from random import Random

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from icscm.exceptions import IcscmError, UnseenMissingWarning
from icscm.model import tree as tree_module
from icscm.model.forest import Forest, describe_size
from icscm.model.rules import CategoryRule, MissingRule, PresenceRule, ThresholdRule
from icscm.model.splits import NodeLine, Split, walk
from icscm.model.tree import Tree
from support.hostile import HOSTILE_NAMES
from support.random_models import (
    KINDS,
    calibrated,
    compute_chance,
    follow,
    forests,
    make_chain,
    make_each_kind,
    make_tree,
    name_unseen,
    trees,
)

AGE = ThresholdRule(0, "age", 63, above=True)
SEX = CategoryRule(1, "sex", ("f",), equal=True)
LEAVES = ((1, 2), (3, 4)), ((5, 6), (0, 1)), ((0, 0), (0, 2))
TREE = Tree((Split(AGE, 1, -3), Split(SEX, -1, -2)), LEAVES)

# --- a table of three columns, and rules about it -------------------------------------------------

ROWS = st.lists(
    st.tuples(
        st.none() | st.integers(0, 4).map(float),
        st.none() | st.sampled_from("abc"),
        st.integers(0, 2).map(float),
    ),
    min_size=1,
    max_size=12,
)
MISSING = st.sampled_from([None, True, False])
RULES = st.one_of(
    st.builds(ThresholdRule, st.just(0), st.just("n"), st.integers(0, 4), st.booleans(), MISSING),
    st.builds(
        CategoryRule,
        st.just(1),
        st.just("t"),
        st.sampled_from([("a",), ("b",), ("a", "c"), ("z",)]),
        st.booleans(),
        st.booleans(),
        MISSING,
    ),
    st.builds(MissingRule, st.just(0), st.just("n"), st.booleans()),
    st.builds(MissingRule, st.just(1), st.just("t"), st.booleans()),
    st.builds(PresenceRule, st.just(2), st.just("p"), st.booleans()),
)


def make_frame(rows):
    numbers, texts, others = zip(*rows, strict=True)
    return pd.DataFrame(
        {"n": pd.Series(numbers, dtype=float), "t": pd.Series(texts, dtype="str"), "p": others}
    )


# --- where rows go --------------------------------------------------------------------------------


@st.composite
def chains(draw, rules):
    """Conjunctions and disjunctions, of which a leaf may be empty."""
    asked = draw(st.lists(rules, max_size=6))
    count = st.integers(0, 9)
    leaf = st.tuples(st.tuples(count, count), st.tuples(count, count))
    leaves = draw(st.lists(leaf, min_size=len(asked) + 1, max_size=len(asked) + 1))
    kind = draw(st.sampled_from(["conjunction", "disjunction"]))
    return tree_module.make_chain(kind, asked, tuple(leaves))


def check_walk(tree, rows):
    """Rows go where a literal walk goes, and are told why."""
    X = make_frame(rows)
    found = tree.decide(X)
    assert tree.predict_proba(X).tolist() == found.probability.tolist()
    assert tree.predict(X).tolist() == found.prediction.tolist()
    leaves = tree.find_leaves(X).tolist()
    for row, leaf, *decision in zip(rows, leaves, *(part.tolist() for part in found), strict=True):
        mean, n_leaves, likeliest = follow(tree, row)
        assert leaf == likeliest
        verdict = mean > 0.5 if tree.threshold is None else mean >= tree.threshold
        text = f"{name_unseen(tree, row)}: mean of {n_leaves} leaves"
        if n_leaves == 1:
            verdict, text = tree.leaf_verdicts[leaf], tree.leaf_texts[leaf]
            chance = tree.calibrate(np.array([compute_chance(tree, leaf)]))[0]
            assert mean == pytest.approx(chance, rel=1e-12)
        assert decision == [verdict, mean, text]


@pytest.mark.filterwarnings("ignore::icscm.exceptions.UnseenMissingWarning")
@settings(max_examples=150, deadline=None)
@given(calibrated(trees(RULES) | chains(RULES)), ROWS)
def test_rows_go_where_a_literal_walk_goes(tree, rows):
    """To one leaf or, where a value is missing of which a rule says nothing, to several."""
    check_walk(tree, rows)


# Rules of each kind, and all rows that they can tell apart.
EVERY_RULE = [
    ThresholdRule(0, "n", 2, above=True),
    CategoryRule(1, "t", ("a",), equal=True),
    ThresholdRule(0, "n", 0, above=False, missing=True),
    CategoryRule(1, "t", ("a", "c"), equal=False, pooled=True, missing=False),
    PresenceRule(2, "p", present=True),
    MissingRule(1, "t", is_missing=False),
    CategoryRule(1, "t", ("b",), equal=True, missing=True),
    ThresholdRule(0, "n", 3, above=True, missing=False),
    MissingRule(0, "n", is_missing=True),
]
EVERY_ROW = [*product((None, 0.0, 1.0, 2.0, 3.0, 4.0), (None, "a", "b", "c"), (0.0, 1.0))]


@pytest.mark.filterwarnings("ignore::icscm.exceptions.UnseenMissingWarning")
@pytest.mark.parametrize("kind", [kind for kind in KINDS if not kind.endswith(("forest", "score"))])
def test_each_kind_of_tree(kind):
    check_walk(make_each_kind(EVERY_RULE)[kind], EVERY_ROW)


@settings(max_examples=100, deadline=None)
@given(trees(RULES), ROWS)
def test_paths_are_true_of_the_samples_in_their_leaves(tree, rows):
    """Where nothing is missing, for there a rule without a view on it has no opposite."""
    X = make_frame([row for row in rows if None not in row] or [(0.0, "a", 1.0)])
    leaves = tree.find_leaves(X)
    nodes = walk(tree.splits, (), lambda path, rule: (*path, rule))
    paths = {~node: path for node, path in nodes if node < 0}
    for number, path in paths.items():
        inside = np.ones(len(X), bool)
        for rule in path:
            inside &= rule.mask(X)
        assert inside.tolist() == (leaves == number).tolist()


def check_votes(forest, rows):
    """A forest is the mean of its trees, and counts their votes."""
    X = make_frame(rows)
    mean = np.mean([tree.predict_proba(X) for tree in forest.trees], axis=0)
    assert forest.predict_proba(X) == pytest.approx(mean, abs=1e-12)
    assert forest.predict(X).tolist() == (forest.predict_proba(X) > 0.5).tolist()
    votes = np.sum([tree.predict(X) for tree in forest.trees], axis=0).tolist()
    word = "tree" if len(forest) == 1 else "trees"
    for row, n, text in zip(rows, votes, forest.decide(X).decided_by.tolist(), strict=True):
        is_mean = any(follow(tree, row)[1] > 1 for tree in forest.trees)
        flag = f"{name_unseen(forest, row)}: " if is_mean else ""
        assert text == f"{flag}{n} of {len(forest)} {word} above 0.5"
    assert set(forest.rules) == {rule for tree in forest.trees for rule in tree.rules}


@pytest.mark.filterwarnings("ignore::icscm.exceptions.UnseenMissingWarning")
@settings(max_examples=60, deadline=None)
@given(forests(RULES), ROWS)
def test_a_forest_is_the_mean_of_its_trees(forest, rows):
    check_votes(forest, rows)


@pytest.mark.filterwarnings("ignore::icscm.exceptions.UnseenMissingWarning")
def test_a_forest_with_each_rule():
    forest = make_each_kind(EVERY_RULE)["forest"]
    check_votes(forest, EVERY_ROW)
    check_votes(Forest(forest.trees[:1]), EVERY_ROW)


def test_missing_values_never_seen_warn_once_for_a_column():
    """However many splits ask for it, and a tree's other side is not taken for the opposite."""
    old = ThresholdRule(0, "age", 80, above=True)
    tree = make_chain([AGE, old], side=1)
    X = pd.DataFrame({"age": [70.0, None, 20.0]})
    with pytest.warns(UnseenMissingWarning) as told:
        assert tree.find_leaves(X).tolist() == [0, 2, 2]
    assert [str(each.message) for each in told] == [
        "Column 'age' is missing in 1 row but never was at fitting: 'age > 63', 'age > 80' are "
        "neither true nor false there, and the prediction is the mean of both branches."
    ]
    with pytest.warns(UnseenMissingWarning) as told:
        Forest((tree, tree)).predict(X)
    assert len(told) == 1
    sure = make_chain([ThresholdRule(0, "age", 63, above=True, missing=False)])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert sure.find_leaves(X).tolist() == [0, 1, 1]


def test_a_column_of_another_type_is_refused():
    for column in (pd.to_datetime(["2020-01-01"]), ["x"]):
        with pytest.raises(IcscmError, match="column 'age' held numbers at fitting"):
            TREE.predict(pd.DataFrame({"age": column, "sex": ["f"]}))


def test_deep_trees():
    """Thousands of splits below each other: no recursion, no text that grows with the square."""
    rules = [ThresholdRule(i % 50, None, i, above=True) for i in range(3_000)]
    X = np.full((3, 50), [[-1.0], [1e9], [99.5]])
    for side, leaves in ((0, [3_000, 0, 2_900]), (1, [3_000, 0, 0])):
        tree = make_chain(rules, side)
        found = tree.find_leaves(X).tolist()
        assert found == leaves
        assert len(str(tree).splitlines()) == 6_001
        assert max(map(len, str(tree).splitlines())) <= 80
        assert max(map(len, tree.leaf_texts)) < 1_000
        assert repr(tree)


# --- verdicts and chances -------------------------------------------------------------------------


def test_a_tie_is_negative():
    tree = Tree((), (((2, 3), (4, 1)),))
    assert tree.leaf_probabilities().tolist() == [0.5]
    assert tree.leaf_verdicts.tolist() == [False]
    assert tree.count_wrong() == (0, 5)


def check_calibration(model, rows):
    """The arithmetic written out; (0, 1) leaves every bit as it was.

    A tree's mean over leaves is that of their calibrated probabilities.
    """
    if isinstance(model, Tree):
        rows = [row for row in rows if None not in row] or [(0.0, "a", 1.0)]
    X, (a, b), cut = make_frame(rows), model.calibration, model.threshold
    plain = replace(model, calibration=(0.0, 1.0), threshold=None)
    raw, found = plain.predict_proba(X), model.predict_proba(X)
    if (a, b) == (0.0, 1.0):
        assert found.tolist() == raw.tolist()
    else:
        assert found == pytest.approx([1 / (1 + math.exp(-a) * (1 / p - 1) ** b) for p in raw])
    is_positive = found > 0.5 if cut is None else found >= cut
    assert model.predict(X).tolist() == model.decide(X).prediction.tolist() == is_positive.tolist()
    assert (raw >= model.find_cut()).tolist() == is_positive.tolist()
    assert not model.make_baseline().is_moved


@pytest.mark.filterwarnings("ignore::icscm.exceptions.UnseenMissingWarning")
@settings(max_examples=60, deadline=None)
@given(calibrated(trees(RULES) | forests(RULES)), ROWS)
def test_calibration_and_threshold(model, rows):
    check_calibration(model, rows)


@pytest.mark.filterwarnings("ignore::icscm.exceptions.UnseenMissingWarning")
@pytest.mark.parametrize("kind", ["tree", "balanced tree", "forest", "score"])
def test_calibration_of_each_kind(kind):
    models = make_each_kind(EVERY_RULE)
    check_calibration(models[kind], EVERY_ROW)
    check_calibration(models[f"calibrated {kind}"], EVERY_ROW)


@pytest.mark.parametrize("kind", ["conjunction", "disjunction"])
def test_the_verdict_of_rules_is_theirs_unless_there_is_a_threshold(kind):
    rules = [AGE, ThresholdRule(0, "age", 80, above=True)]
    leaves = ((9,), (1,)), ((1,), (9,)), ((5,), (5,))
    chain = tree_module.make_chain(kind, rules, leaves)
    covered = kind == "disjunction"
    for moved in (chain, replace(chain, calibration=(1.0, 2.0))):
        assert moved.leaf_verdicts.tolist() == [covered, covered, not covered]
    cut = replace(chain, threshold=0.5)
    assert cut.leaf_verdicts.tolist() == [False, True, True]
    assert any(chain.count_contrary())
    assert not any(cut.count_contrary())


@pytest.mark.parametrize("threshold", [0.0, 1.0, float("nan")])
def test_thresholds_that_decide_nothing(threshold):
    with pytest.raises(IcscmError, match="threshold is a probability between 0 and 1"):
        replace(TREE, threshold=threshold)


def test_balanced_rates_count_each_environment_that_is_there_alike():
    leaf = (90, 0, 0), (10, 0, 1)
    pooled, balanced = Tree((), (leaf,)), Tree((), (leaf,), balanced=True)
    assert pooled.leaf_probabilities().tolist() == [12 / 103]
    assert balanced.leaf_probabilities() == pytest.approx([(11 / 102 + 2 / 3) / 2])
    empty = Tree((), (((0, 0), (0, 0)),), balanced=True)
    assert empty.leaf_probabilities().tolist() == [0.5]
    assert empty.leaf_verdicts.tolist() == [False]


def test_wrong_samples_are_counted():
    assert TREE.leaf_verdicts.tolist() == [True, False, True]
    assert TREE.count_wrong() == (3, 1)
    assert TREE.count_contrary() == [0, 0, 0]
    assert TREE.make_baseline() == Tree((), (((6, 8), (3, 7)),))
    assert Forest((TREE, TREE)).make_baseline() == Tree((), (((12, 16), (6, 14)),))


# --- shapes ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("pairs", "n_leaves", "message"),
    [
        ([(-1, -2)], 3, "a tree of 1 split has 2 leaves, got counts for 3"),
        ([(-1, -1)], 2, "every split but the first, and every leaf, must be reached once"),
        ([(0, -1)], 2, "every split but the first, and every leaf, must be reached once"),
        ([(1, 1), (-1, -2)], 3, "every split but the first, and every leaf, must be reached once"),
        (
            [(-1, 2), (1, -2), (-3, -4)],
            4,
            "the number of a split must be greater than that of its parent",
        ),
        (
            [(-1, 3), (-2, -3), (1, -4), (2, -5)],
            5,
            "the number of a split must be greater than that of its parent",
        ),
        ([(-2, -1)], 2, "leaves must be numbered by a walk that visits the true side first"),
    ],
)
def test_what_is_no_tree_is_refused(pairs, n_leaves, message):
    splits = tuple(Split(AGE, *pair) for pair in pairs)
    with pytest.raises(IcscmError) as caught:
        Tree(splits, (((1,), (1,)),) * n_leaves)
    assert str(caught.value) == message


def test_a_forest_has_a_tree():
    with pytest.raises(IcscmError, match="a forest has at least one tree"):
        Forest(())


@settings(max_examples=100, deadline=None)
@given(trees(RULES) | forests(RULES))
def test_rules_are_replaced(model):
    same = model.replace_rules(lambda rule: rule.negate().negate())
    assert same == model
    assert hash(same) == hash(model)


# --- in words -------------------------------------------------------------------------------------


def test_a_tree_prints():
    assert str(TREE) == (
        "all: 41.7% of 24\n"
        "  age > 63: 36.4% of 22\n"
        "    sex == f: 70.0% of 10 -> positive\n"
        "    sex != f: 8.3% of 12 -> negative\n"
        "  age <= 63: 100.0% of 2 -> positive"
    )
    assert repr(TREE) == (
        "Tree of 3 leaves\n"
        "node          predicts  samples  positive    rate\n"
        "all                          24        10   41.7%\n"
        "  age > 63                   22         8   36.4%\n"
        "    sex == f  positive       10         7   70.0%\n"
        "    sex != f  negative       12         1    8.3%\n"
        "  age <= 63   positive        2         2  100.0%"
    )
    assert TREE.leaf_texts == ("age > 63 and sex == f", "age > 63 and sex != f", "age <= 63")


def test_the_way_to_a_leaf_is_told_in_the_fewest_words():
    older = ThresholdRule(0, "age", 80, above=True)
    tree = make_chain([AGE, older])
    assert tree.leaf_texts == ("age > 80", "age > 63 and age <= 80", "age <= 63")


def test_a_balanced_tree_says_so():
    line = str(Tree(TREE.splits, LEAVES, balanced=True)).splitlines()[0]
    assert line == "all: 41.7% of 24 (predicts by the mean of the environments' rates)"


def test_a_tree_without_a_split_is_a_sentence():
    tree = Tree((), (((3, 1), (2, 2)),))
    assert str(tree) == "no split was found (always negative: 50.0% of 8 samples are positive)"
    assert repr(tree) == f"Tree: {tree}"
    assert tree.leaf_texts == (str(tree),)
    assert str(Tree((), (((0,), (0,)),))) == "no split was found (always negative)"


def test_a_forest_prints():
    forest = Forest((TREE, Tree((), (((1, 1), (2, 2)),)), make_chain([SEX])))
    assert (
        str(forest)
        == "forest of 3 trees with 1 to 3 leaves each\ntrees that use a feature: sex (2), age (1)"
    )
    assert repr(forest) == (
        "Forest of 3 trees with 1 to 3 leaves each\n"
        "feature  trees  splits\n"
        "sex          2       2\n"
        "age          1       1"
    )
    assert forest.count_uses() == {"sex": 2, "age": 1}
    nothing = Forest((Tree((), (((1, 1), (2, 2)),)),))
    assert str(nothing) == (
        "forest of 1 tree with 1 leaf each\n"
        "trees that use a feature: none, since no split was found"
    )


@settings(max_examples=100, deadline=None)
@given(trees(RULES, max_splits=12))
def test_every_node_is_a_line_and_adds_up(tree):
    lines = str(tree).splitlines()
    assert len(lines) == (2 * len(tree) + 1 if len(tree) else 1)
    ends = [line.rpartition(" -> ")[2] for line in lines if " -> " in line]
    if len(tree):
        assert ends == ["positive" if each else "negative" for each in tree.leaf_verdicts]
        n = sum(sum(map(sum, leaf)) for leaf in tree.leaves)
        assert f" of {n:,}" in lines[0]
    assert "<table" in tree._repr_html_() or not len(tree)


@pytest.mark.parametrize("name", HOSTILE_NAMES)
def test_names_do_not_break_lines(name):
    rules = [CategoryRule(0, name, (name or "x",), equal=True), MissingRule(0, name, True)]
    tree = make_tree(rules, Random(1))
    for text in (str(tree), repr(tree), *tree.leaf_texts, str(Forest((tree,)))):
        assert all(line.isprintable() for line in text.split("\n"))
    assert len(str(tree).split("\n")) == 5
    assert max(map(len, str(tree).split("\n"))) <= 80
    assert "<script>" not in tree._repr_html_()
    assert not any(math.isnan(each) for each in tree.leaf_probabilities())


def test_very_deep_nodes_have_their_depth_as_a_number():
    shallow = NodeLine(depth=2, text="age > 3", counts=(3, 1), leaf=None)
    assert shallow.indent == "    "
    deep = NodeLine(depth=1_234, text="age > 3", counts=(3, 1), leaf=0)
    assert re.fullmatch(r"(  )+\[1,234\] ", deep.indent)
    assert deep.format(["negative"]).endswith("age > 3: 25.0% of 4 -> negative")
    last = NodeLine(depth=len(deep.indent.split("[")[0]) // 2, text="", counts=(1, 1), leaf=None)
    assert last.indent == deep.indent.split("[")[0]


def test_a_tree_without_a_split_names_its_rate():
    assert str(Tree((), (((3,), (1,)),), "tree")) == (
        "no split was found (always negative: 25.0% of 4 samples are positive)"
    )
    assert repr(Tree((), (((3,), (1,)),), "tree")).startswith("Tree: no split was found")


def test_the_size_of_a_forest():
    tree = make_chain([ThresholdRule(0, "age", 3, above=True)])
    assert describe_size(Forest((tree, tree))) == "forest of 2 trees"


def test_a_tree_says_at_which_threshold_it_predicts():
    """`-> negative` beside 33.3% did not say that the threshold was not 1/2."""
    text = str(replace(TREE, threshold=0.2))
    assert "(predicts positive from a probability of 0.2 on)" in text.splitlines()[0]
