"""A tree of boxes beside the rates of its leaves."""

from dataclasses import replace

import pytest

from icscm.drawing import Figure
from icscm.drawing.shapes import Role
from icscm.drawing.tree import (
    EnvironmentRate,
    LeafRates,
    TreeDrawing,
    TreeNode,
    choose_layout,
    draw_tree,
    make_rate_axis,
    place_nodes,
)
from support.drawings import find_boxes, find_dots, find_texts

# split --yes-- split --yes-- leaf 1
#   |             |___no_____ leaf 2
#   |___no___________________ leaf 3
NODES = [
    TreeNode(0, "", "60% of 40", question="age > 60?"),
    TreeNode(1, "yes", "80% of 20", question="dose > 0.5?"),
    TreeNode(2, "yes", "90% of 10", leaf=1, prediction="+ ill", is_positive=True),
    TreeNode(2, "no", "70% of 10", leaf=2, prediction="+ ill", is_positive=True),
    TreeNode(1, "no", "40% of 20", leaf=3, prediction="- well"),
]


def make_leaf(number, n_environments=2):
    rates = [EnvironmentRate(f"e{k}", 50, 0.2 + k / 100, (0.1, 0.5)) for k in range(n_environments)]
    title = f"leaf {number}: invariant"
    return LeafRates(title, f"{number}: + ill, n = 9", "age > 60 and dose > 0.5", 0.3, rates)


def make_tree(n_environments=2):
    leaves = [make_leaf(number, n_environments) for number in (1, 2, 3)]
    return TreeDrawing(NODES, leaves, "rate of ill")


def test_children_are_right_of_a_split_or_below_it():
    root, split, first, second, third = place_nodes(NODES, leaf_height=100.0)
    assert [node.y for node in (first, second, third)] == [50.0, 150.0, 250.0]
    assert root.y == split.y == first.y
    assert split.x > root.x
    assert third.parent is root
    assert not third.is_first_child


def test_splits_leaves_and_rates_are_drawn():
    figure = Figure(draw_tree(make_tree()), "")
    texts = find_texts(figure)
    assert {"age > 60?", "dose > 0.5?", "1: + ill", "3: - well", "leaf 2: invariant"} <= {*texts}
    assert texts.count("yes") == texts.count("no") == 2
    assert texts.count("e0") == texts.count("e1") == 3
    assert len(find_dots(figure)) == 6


def test_boxes_do_not_overlap():
    boxes = find_boxes(Figure(draw_tree(make_tree()), ""))
    assert len(boxes) == len(NODES)
    for number, box in enumerate(boxes):
        for other in boxes[:number]:
            is_beside = abs(box.corner.x - other.corner.x) >= min(box.width, other.width)
            is_below = abs(box.corner.y - other.corner.y) >= box.height
            assert is_beside or is_below


def test_positive_leaves_are_filled():
    boxes = find_boxes(Figure(draw_tree(make_tree()), ""))
    roles = [box.role for box in boxes]
    assert roles.count(Role.POSITIVE_LEAF) == 2
    assert roles.count(Role.NEGATIVE_LEAF) == 1


def test_many_environments_make_narrow_rows_and_very_many_share_one():
    """Sixteen leaves of fifteen environments were 28 inches tall, most of it empty."""
    few = choose_layout(n_leaves=3, n_environments=4)
    many = choose_layout(n_leaves=3, n_environments=40)
    packed = choose_layout(n_leaves=16, n_environments=15)
    assert few.has_names
    assert many.has_names
    assert (many.height / 40) < (few.height / 4)
    assert (packed.has_names, packed.has_intervals) == (False, False)
    assert packed.height < 80.0

    texts = find_texts(Figure(draw_tree(make_tree(n_environments=60)), ""))
    assert texts.count("lowest: e0") == texts.count("highest: e59") == 3


def test_small_environments_do_not_widen_the_axis_by_their_intervals():
    wide = EnvironmentRate("small", 5, 0.3, (0.0, 1.0))
    leaf = replace(make_leaf(1), environments=[wide])
    axis = make_rate_axis([leaf])
    assert axis.high - axis.low < 0.2
    axis = make_rate_axis([replace(leaf, environments=[replace(wide, n_rows=30)])])
    assert (axis.low, axis.high) == (0.0, 1.0)


def test_a_large_tree_is_written_leaf_by_leaf():
    leaves = [make_leaf(number) for number in range(1, 43)]
    figure = Figure(draw_tree(TreeDrawing(NODES, leaves, "rate")), "")
    texts = find_texts(figure)
    assert find_boxes(figure) == []
    assert "yes" not in texts
    assert sum(", n = " in text for text in texts) == 42


@pytest.mark.parametrize("question", ["x" * 99, "a long question of many words " * 3, "率" * 40])
def test_long_questions_are_broken_and_cut(question):
    nodes = [replace(NODES[0], question=question), *NODES[1:]]
    figure = Figure(draw_tree(replace(make_tree(), nodes=nodes)), "")
    other_texts = ("40%", "leaf", "dose")
    lines = [text for text in find_texts(figure, Role.NAME) if not text.startswith(other_texts)]
    assert max(map(len, lines)) <= 25
    assert len(lines) <= 2
