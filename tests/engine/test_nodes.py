"""The rows of a tree's nodes: found in any order, remembered as a partition."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from icscm.engine.counts import ORDERED, BinnedRule
from icscm.engine.pieces import Block, Piece, RowsOfPaths, make_piece

N_BINS = [5, 2, 1]


def make_table(rng, n_rows):
    """Codes by sorted row, and a piece over them; the last feature cannot be cut."""
    labels, environments = rng.integers(0, 2, (2, n_rows))
    order = np.lexsort((environments, labels))
    codes = np.array([rng.integers(0, n, n_rows) for n in N_BINS])[:, order]
    blocks = [Block(np.array([j]), N_BINS[j], ORDERED) for j in (0, 1)]
    return codes, make_piece(codes, labels[order], environments[order], 2, blocks)


def draw_rule(rng):
    feature = int(rng.integers(len(N_BINS)))
    return BinnedRule(feature, rng.random(N_BINS[feature]) < 0.5)


def list_rows(rows):
    return rows.take(np.arange(len(rows))) if rows.index is None else rows.index


def assert_partition(nodes, n_rows):
    parts = [part.index for part in nodes._parts.values()]
    if parts:
        np.testing.assert_array_equal(np.sort(np.concatenate(parts)), np.arange(n_rows))
        # nor does a part hold on to the memory of a larger one
        owned = [part if part.base is None else part.base for part in parts]
        assert sum(map(len, owned)) <= n_rows + len(parts)


@settings(max_examples=200, deadline=None)
@given(st.integers(0, 2**32), st.integers(0, 60))
def test_any_path_in_any_order(seed, n_rows):
    rng = np.random.default_rng(seed)
    codes, piece = make_table(rng, n_rows)
    rules, nodes = [draw_rule(rng) for _ in range(4)], RowsOfPaths(piece.rows, piece.split)
    for _ in range(12):
        path = [rules[i] for i in rng.integers(4, size=rng.integers(5))]
        found = nodes.find(tuple(path))
        wanted = np.ones(n_rows, bool)
        for rule in path:
            wanted &= rule.satisfied[codes[rule.column]]
        np.testing.assert_array_equal(list_rows(found), np.flatnonzero(wanted))
        wanted_bounds = [np.count_nonzero(wanted[:bound]) for bound in piece.rows.bounds]
        np.testing.assert_array_equal(found.bounds, wanted_bounds)
        assert_partition(nodes, n_rows)


def test_a_growing_tree_splits_each_node_once(monkeypatch):
    """Whichever child of a node is asked for, its rows are found among its parent's."""
    rng = np.random.default_rng(0)
    _, piece = make_table(rng, 500)
    split, looked_at = Piece.split, []
    monkeypatch.setattr(
        Piece,
        "split",
        lambda self, rows, rule: looked_at.append(len(rows)) or split(self, rows, rule),
    )
    nodes, leaves, expected = RowsOfPaths(piece.rows, piece.split), [[]], []
    for _ in range(20):
        path, rule = leaves.pop(rng.integers(len(leaves))), draw_rule(rng)
        expected.append(len(nodes.find(tuple(path))))
        halves = [[*path, rule], [*path, BinnedRule(rule.column, ~rule.satisfied)]]
        nodes.find(tuple(halves[rng.integers(2)]))
        leaves += halves
        assert_partition(nodes, 500)
    assert looked_at == expected
