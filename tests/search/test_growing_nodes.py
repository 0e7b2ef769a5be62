"""Nodes of growing trees: a sibling taken off its parent has the counts of its own rows."""

import gc
import weakref

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from icscm.engine.counts import Cut
from icscm.engine.pieces import negate
from icscm.search import nodes
from icscm.search.nodes import NodeUse, make_root
from icscm.sources.memory import make_memory_source
from support.sources import countable, draw_cuts


def make_source(drawn):
    table, labels, environments, names, _ = drawn
    return make_memory_source(
        table, labels, environments, environment_labels=names, max_thresholds=9, n_jobs=1
    )


def count_half(source, path, rule):
    """Totals of the samples of a path for which a rule is false, from a cube of theirs."""
    for cube in source.count_cubes((*path, negate(rule))):
        return cube.counts[0].sum(axis=0)
    return None


@settings(max_examples=60, deadline=None)
@given(
    countable(), st.sampled_from([0, 3000, 2**28]), st.sampled_from([NodeUse.TREE, NodeUse.TREES])
)
def test_nodes_count_what_their_rows_count(drawn, n_bytes, use):
    """For any kept cubes and any order of queries."""
    source, direct = make_source(drawn), make_source(drawn)
    rng = drawn[-1]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(nodes, "MAX_KEPT_CUBE_BYTES", n_bytes)
        leaves = [make_root(source, use)]
        every = list(leaves)
        for cut in draw_cuts(source, rng):
            node = leaves.pop(rng.integers(len(leaves)))
            rule = source.columns.make_binned_rule(cut)
            half = count_half(direct, node.path, rule)
            if rng.random() < 0.7:
                list(node.count_cubes())
            children = node.split(cut, if_false=half)
            assert node.split(cut, if_false=half) is children, "a node is split once"
            made = [children.if_true, children.if_false]
            leaves += made
            every += made
        for i in rng.permutation(len(every)):
            node = every[i]
            counted = zip(node.count_cubes(), direct.count_cubes(node.path), strict=True)
            for found, wanted in counted:
                np.testing.assert_array_equal(found.counts, wanted.counts)
                np.testing.assert_array_equal(found.columns, wanted.columns)
                np.testing.assert_array_equal(found.counts[0].sum(axis=0), node.counts)
            cache = node._cache
            kept_cubes = [cube for node in every for cube in cache.get(node._rows) or ()]
            held = sum(cube.counts.nbytes for cube in kept_cubes)
            assert held == cache.n_bytes
            assert held <= n_bytes


def test_of_two_children_the_smaller_is_counted(monkeypatch):
    rng = np.random.default_rng(0)
    X, labels = rng.normal(size=(500, 3)), rng.integers(0, 2, 500)
    source = make_memory_source(X, labels, labels * 0, environment_labels=(0,), n_jobs=1)
    sizes = []
    count_cubes = source.count_cubes

    def spy(path=()):
        for number, cube in enumerate(count_cubes(path)):
            if not number:
                sizes.append(int(cube.counts[0].sum()))
            yield cube

    monkeypatch.setattr(source, "count_cubes", spy)
    root = make_root(source, NodeUse.TREE)
    cube = next(iter(root.count_cubes()))
    list(root.count_cubes())
    half = cube.counts[0, :5].sum(axis=0)
    children = root.split(Cut(0, 4, negated=False), if_false=half)
    assert children.if_false.n_rows < children.if_true.n_rows
    list(children.if_true.count_cubes())
    list(children.if_false.count_cubes())
    assert sizes[-1] == children.if_false.n_rows
    assert children.if_true.n_rows not in sizes


@settings(max_examples=30, deadline=None)
@given(countable(), st.sampled_from([0, 3000, 2**28]))
def test_nodes_of_a_path_count_what_their_rows_count(drawn, n_bytes):
    """Each child takes over the cubes of its parent, whichever sibling is smaller."""
    source, direct = make_source(drawn), make_source(drawn)
    rng = drawn[-1]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(nodes, "MAX_KEPT_CUBE_BYTES", n_bytes)
        node = make_root(source, NodeUse.PATH)
        for cut in draw_cuts(source, rng):
            for found, wanted in zip(
                node.count_cubes(), direct.count_cubes(node.path), strict=True
            ):
                np.testing.assert_array_equal(found.counts, wanted.counts)
            rule = source.columns.make_binned_rule(cut)
            children = node.split(cut, if_false=count_half(direct, node.path, rule))
            node = children.if_true if rng.random() < 0.5 else children.if_false
            assert node._cache.n_bytes <= n_bytes


@pytest.mark.parametrize("use", NodeUse)
def test_a_node_that_is_left_is_freed_with_its_source(use):
    """At once: in a loop of many fits, what waits for the garbage collector adds up."""
    rng = np.random.default_rng(0)
    X, labels = rng.normal(size=(500, 3)), rng.integers(0, 2, 500)
    source = make_memory_source(X, labels, labels * 0, environment_labels=(0,), n_jobs=1)
    node = make_root(source, use)
    root, first_source = weakref.ref(node), weakref.ref(source)
    gc.disable()
    try:
        for number in range(2):
            counted = list(node.count_cubes())
            if_false = counted[0].counts[number, :5].sum(axis=0)
            cut = Cut(number, 4, negated=False)
            node = node.split(cut, if_false=if_false).if_true
        assert root() is None
        assert [cube.counts.sum() for cube in node.count_cubes()] == [3 * node.n_rows]
        del node, source
        assert first_source() is None
    finally:
        gc.enable()
