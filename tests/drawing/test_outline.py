"""A tree as rows behind twigs, and the effects of its splits."""

from icscm.drawing.axes import make_ratio_axis
from icscm.drawing.effects import EffectDot, draw_effects
from icscm.drawing.outline import OutlineNode, draw_rate_bar, draw_twigs, lay_out_outline


def make_chain(n_splits):
    """A tree whose second children are split further."""
    nodes = []
    for number in range(n_splits):
        nodes.append(OutlineNode(number, number, 10 * (n_splits - number)))
        nodes.append(OutlineNode(number + 1, None, 10))
    return [*nodes, OutlineNode(n_splits, None, 10)]


def test_twigs_lead_to_the_rows_of_a_tree():
    rows = lay_out_outline(make_chain(2), max_leaves=60)
    assert [row.depth for row in rows] == [0, 1, 1, 2, 2]
    assert [row.is_last for row in rows] == [False, False, True, False, True]
    assert not any(row.passing_levels or row.is_cut for row in rows)
    root, first, second, *_ = map(draw_twigs, rows)
    assert root == ""
    assert '<line x1="7" y1="0%" x2="7" y2="100%" class="twig"/>' in first
    assert '<line x1="7" y1="0%" x2="7" y2="50%" class="twig"/>' in second
    assert '<line x1="7" y1="50%" x2="14" y2="50%" class="twig"/>' in second


def test_a_twig_passes_rows_below_its_first_child():
    walk = [(0, 0), (1, 1), (2, None), (2, None), (1, None)]
    nodes = [OutlineNode(depth, split, 9 - depth) for depth, split in walk]
    rows = lay_out_outline(nodes, max_leaves=60)
    assert [row.passing_levels for row in rows] == [[], [], [1], [1], []]
    assert '<line x1="7" y1="0%" x2="7" y2="100%" class="twig"/>' in draw_twigs(rows[2])


def test_the_largest_splits_of_a_large_tree_are_shown():
    nodes = make_chain(8)
    rows = lay_out_outline(nodes, max_leaves=4)
    assert [nodes[row.number].split for row in rows if row.is_cut] == [3]
    deep = draw_twigs(lay_out_outline(make_chain(20), max_leaves=60)[-1])
    assert f'width="{14 * 14}"' in deep


def test_a_bar_is_as_long_as_the_rate():
    bar = draw_rate_bar(0.4, mean_rate=0.25, is_positive=True)
    assert '<line x1="0%" y1="50%" x2="40%" y2="50%" class="bar positive"/>' in bar
    assert '<line x1="25%" y1="0%" x2="25%" y2="100%" class="mean"/>' in bar


def test_effects_are_dots_by_precision_on_one_axis():
    dots = [EffectDot(0.5, 0.5, "b: 0.5"), EffectDot(1.0, 3.0, "d: 1")]
    cell = draw_effects(dots, 1.0, make_ratio_axis([0.5, 2.0]))
    assert '<circle cx="0%" cy="50%" r="3.5" class="dot faint"><title>b: 0.5</title>' in cell
    assert '<circle cx="50%" cy="50%" r="2" class="dot faint"><title>d: 1</title>' in cell
    assert '<line x1="50%" y1="15%" x2="50%" y2="85%" class="common"/>' in cell
