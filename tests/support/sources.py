"""Random countable samples, and the literal source over them."""

from dataclasses import replace
from functools import reduce
from itertools import pairwise
from operator import and_

import numpy as np
from hypothesis import strategies as st

from icscm import testing
from icscm.engine.counts import MISSINGNESS, BinnedRule, CountCube, Cut, PatternTable, SourceInfo
from icscm.engine.pieces import make_piece, plan_blocks
from icscm.tables.coded import CodedTable, LevelBins


class LiteralSource:
    """A count source that counts row by row: the slow twin of all others."""

    def __init__(
        self, codes, labels, environments, candidates, *, classes, environment_labels, notes=()
    ):
        self.columns = candidates
        self.classes = classes
        self.environments = environment_labels
        self.notes = notes
        self.clusters = None
        self.rows = None
        self.shortlister = None
        self._codes = np.asarray(codes)  # by (row, column)
        self._cells = np.column_stack((labels, environments)).astype(np.intp)
        self._all_rows = np.ones(len(self._codes), dtype=np.bool_)

    def count_rows(self, path=()):
        return self._count(self._find_rows(path))

    def count_cubes(self, path=()):
        return self._count_features(self._find_rows(path))

    def find_same_coverage(self, path, rule, others):
        rows = self._find_rows(path)
        is_satisfied = self._find_satisfied(rule)[rows]
        same = [(self._find_satisfied(other)[rows] == is_satisfied).all() for other in others]
        return np.array(same, dtype=np.bool_)

    def count_patterns(self, rules):
        truths = np.zeros((len(self._codes), len(rules)), dtype=np.bool_)
        for position, rule in enumerate(rules):
            truths[:, position] = self._find_satisfied(rule)
        distinct = sorted(set(map(tuple, truths.tolist())))
        patterns = np.array(distinct, dtype=np.bool_).reshape(len(distinct), len(rules))
        counts = [self._count((truths == pattern).all(axis=1)) for pattern in patterns]
        return PatternTable(patterns, np.array(counts))

    def _find_rows(self, path):
        """Whether each row satisfies all rules."""
        return reduce(and_, map(self._find_satisfied, path), self._all_rows)

    def _find_satisfied(self, rule):
        """Whether each row satisfies a rule."""
        return rule.satisfied[self._codes[:, rule.column]]

    def _count_features(self, is_in):
        """A cube for each column, by (column, bin, label, environment)."""
        for column, codes in enumerate(self._codes.T):
            n_bins = max(codes.max() + 1, *self.columns.count_bins(np.array([column])))
            counts = np.zeros((1, n_bins, 2, len(self.environments)), dtype=np.int64)
            np.add.at(counts[0], (codes[is_in], *self._cells[is_in].T), 1)
            yield CountCube(np.array([column]), counts, self.columns.find_layout(column))

    def _count(self, is_in):
        """Counts by (label, environment)."""
        table = np.zeros((2, len(self.environments)), dtype=np.int64)
        np.add.at(table, tuple(self._cells[is_in].T), 1)
        return table


def make_literal(source, X, labels, environments):
    """The slow source with the same thresholds."""
    binning = getattr(source.columns, "single", source.columns)
    return LiteralSource(
        code_literally(X, binning),
        labels,
        environments,
        binning,
        classes=source.classes,
        environment_labels=source.environments,
    )


def code_literally(X, binning):
    """The bin of each value; missing values are in bin 0 of a column that has any."""
    columns = []
    for j in range(X.shape[1]):
        codes = np.searchsorted(binning.find_edges(j), X[:, j])
        if binning.has_missing[j]:
            codes = np.where(np.isnan(X[:, j]), 0, codes + 1)
        columns.append(codes)
    return np.column_stack(columns)


def make_dask_source(binning, codes, labels, environments, *, environment_labels, cuts):
    """A source over pieces that end at these rows; a row named twice makes an empty piece.

    The pieces are tasks of Dask's current scheduler.
    """
    from icscm.sources.dask.client import DaskSource, map_tasks

    n_environments = len(environment_labels)
    blocks = plan_blocks(binning, np.arange(codes.shape[1]), n_environments)
    parts = [slice(*bounds) for bounds in pairwise((0, *cuts, len(codes)))]
    pieces = map_tasks(
        "bin",
        make_piece,
        [list(codes[part].T) for part in parts],
        [labels[part] for part in parts],
        [environments[part] for part in parts],
        [n_environments] * len(parts),
        [blocks] * len(parts),
    )
    return DaskSource(pieces, blocks, SourceInfo(binning, (0, 1), environment_labels))


@st.composite
def countable(draw):
    """A table with columns of 1, 2, some and many values, and cuts that exist in it."""
    n_rows = draw(st.integers(2, 150))
    n_environments = draw(st.integers(1, 4))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    widths = draw(st.lists(st.sampled_from([1, 2, 5, 400]), min_size=1, max_size=6))
    X = np.column_stack([rng.integers(0, width, n_rows) for width in widths])
    X = X.astype(draw(st.sampled_from([np.float64, np.int64])))
    levels = {}
    if draw(st.booleans()):
        X = X.astype(np.float64)
        for j in range(len(widths)):
            if rng.random() < 0.5:  # a category: all numbers up to its greatest are levels
                _, X[:, j] = np.unique(X[:, j], return_inverse=True)
                levels[j] = LevelBins(tuple(f"v{k}" for k in range(int(X[:, j].max()) + 1)))
            X[rng.random(n_rows) < rng.choice([0, 0.3, 0.95]), j] = np.nan
    labels = rng.integers(0, 2, n_rows)
    environments = rng.integers(0, n_environments, n_rows)
    table = CodedTable(X, levels=levels)
    return table, labels, environments, tuple(range(n_environments)), rng


def check_any_nodes(source, expected, n_features, rng):
    """Compare the nodes of any rules, on constant columns, too, in any order and repeated."""
    n_bins = source.columns.count_bins(np.arange(n_features))
    rules = [
        BinnedRule(int(column), rng.random(n_bins[column]) < 0.6)
        for column in rng.integers(n_features, size=5)
    ]
    paths = [[rules[i] for i in rng.integers(5, size=rng.integers(5))] for _ in range(8)]
    for path in paths:
        answer = testing._Answer.ask(source, use_first(path, source))
        answer.check_equal(testing._Answer.ask(expected, use_first(path, expected)))


def use_first(path, source):
    """The rules as a source has them that may store the first of identical features only."""
    return tuple(
        replace(rule, column=source.columns.list_copies(rule.column, 1)[0]) for rule in path
    )


def draw_cuts(source, rng):
    """At most four random cuts that exist in a source."""
    binning = getattr(source.columns, "single", source.columns)
    cuts = []
    for column in range(binning.n_features):
        n_edges = len(binning.find_edges(column))
        if n_edges > 0:
            number = int(rng.integers(n_edges))
            cuts.append(Cut(column, number, *rng.integers(2, size=2).astype(bool)))
    columns_with_missing = np.flatnonzero(binning.has_missing)
    cuts += [Cut(column, MISSINGNESS, False, True) for column in columns_with_missing]
    return [cuts[i] for i in rng.permutation(len(cuts))[:4]]
