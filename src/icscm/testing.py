"""Checks for your own count sources and tests of independence, and the sources they compare with.

Each `check_*` raises `AssertionError` with the first difference it finds.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from functools import reduce
from operator import and_
from typing import Any

import numpy as np

from icscm._types import Array, BoolArray, CountArray
from icscm.engine.bits import expand
from icscm.engine.counts import BinnedRule, CandidateMap, CountCube, CountSource, Cut, PatternTable
from icscm.stats.independence import IndependenceTest


class LiteralSource:
    """A count source that counts row by row: slow and simple.

    Parameters
    ----------
    codes : array of shape (n_rows, n_features)
        The bin of each value.
    labels, environments : array of shape (n_rows,)
        Numbers of the label and the environment of each row.
    candidates : CandidateMap
        The meaning of the bins.
    classes, environment_labels : sequence
        What the numbers stand for.
    notes : sequence of str
        For the trace.

    Examples
    --------
    >>> from icscm.datasets import make_conjunction
    >>> from icscm.sources import open_memory
    >>> from icscm.testing import LiteralSource
    >>> data = make_conjunction(50, random_state=0)
    >>> columns = open_memory(data.X, data.y, data.environments).source.candidates
    >>> names = {"classes": [0, 1], "environment_labels": [0, 1]}
    >>> source = LiteralSource(data.X, data.y, data.environments, columns, **names)
    >>> source.count_totals().tolist()
    [[46, 47], [4, 3]]
    """

    def __init__(
        self,
        codes: Array,
        labels: Array,
        environments: Array,
        candidates: CandidateMap,
        *,
        classes: Sequence[Any],
        environment_labels: Sequence[Any],
        notes: Sequence[str] = (),
    ) -> None:
        self.candidates, self.classes, self.notes = candidates, classes, notes
        self.environments = environment_labels
        self._codes = np.asarray(codes)
        self._cells = np.column_stack((labels, environments)).astype(np.intp)
        self._every = np.ones(len(self._codes), dtype=np.bool_)
        self._in_play = self._every

    def count_totals(self) -> CountArray:
        return self._count(self._every)

    def counts(self) -> Iterator[CountCube]:
        return self._count_features(self._in_play)

    def count_node(self, path: Sequence[BinnedRule]) -> Iterator[CountCube]:
        return self._count_features(reduce(and_, map(self._find_satisfied, path), self._every))

    def keep(self, rule: BinnedRule) -> None:
        self._in_play = self._in_play & self._find_satisfied(rule)

    def find_same_coverage(self, rule: BinnedRule, others: Sequence[BinnedRule]) -> BoolArray:
        satisfied = self._find_satisfied(rule)[self._in_play]
        same = [(self._find_satisfied(other)[self._in_play] == satisfied).all() for other in others]
        return np.array(same, dtype=np.bool_)

    def count_patterns(self, rules: Sequence[BinnedRule]) -> PatternTable:
        truth = np.zeros((len(self._codes), len(rules)), dtype=np.bool_)
        for i, rule in enumerate(rules):
            truth[:, i] = self._find_satisfied(rule)
        patterns = np.array(sorted(set(map(tuple, truth.tolist()))), dtype=np.bool_)
        counts = [self._count((truth == pattern).all(axis=1)) for pattern in patterns]
        return PatternTable(patterns.reshape(len(counts), len(rules)), np.array(counts))

    def _find_satisfied(self, rule: BinnedRule) -> BoolArray:
        satisfied: BoolArray = rule.satisfied[self._codes[:, rule.feature]]
        return satisfied

    def _count_features(self, wanted: BoolArray) -> Iterator[CountCube]:
        for feature, codes in enumerate(self._codes.T):
            counts = np.zeros((1, codes.max() + 1, 2, len(self.environments)), dtype=np.int64)
            np.add.at(counts[0], (codes[wanted], *self._cells[wanted].T), 1)
            yield CountCube(np.array([feature]), counts, self.candidates.find_layout(feature))

    def _count(self, wanted: BoolArray) -> CountArray:
        table = np.zeros((2, len(self.environments)), dtype=np.int64)
        np.add.at(table, tuple(self._cells[wanted].T), 1)
        return table


def check_count_source(source: CountSource, expected: CountSource, cuts: Sequence[Cut]) -> None:
    """Hold a source to another one that counts the same samples, while rules cover them.

    Parameters
    ----------
    source, expected : CountSource
        Yours, and one to compare with; both are used up.
    cuts : sequence of Cut
        Rules to keep one after the other; coverage and patterns are compared for all of them, and
        the nodes that they lead to.

    Raises
    ------
    AssertionError
        At the first difference.

    Examples
    --------
    >>> from icscm.datasets import make_conjunction
    >>> from icscm.engine.counts import Cut
    >>> from icscm.sources import open_memory
    >>> from icscm.testing import LiteralSource, check_count_source
    >>> data = make_conjunction(50, random_state=0)
    >>> mine = open_memory(data.X, data.y, data.environments).source
    >>> names = {"classes": [0, 1], "environment_labels": [0, 1]}
    >>> slow = LiteralSource(data.X, data.y, data.environments, mine.candidates, **names)
    >>> check_count_source(mine, slow, [Cut(feature=0, cut=0, negated=False)])
    """
    # each in its own terms: one of them may store the first of identical features only
    rules = [source.candidates.make_binned_rule(cut) for cut in cuts]
    same = [expected.candidates.make_binned_rule(cut) for cut in cuts]
    for cut in cuts:
        assert str(source.candidates.make_rule(cut)) == str(expected.candidates.make_rule(cut))
    assert list(source.classes) == list(expected.classes)
    assert list(source.environments) == list(expected.environments)
    np.testing.assert_array_equal(source.count_totals(), expected.count_totals())
    nodes = list(zip(_list_nodes(rules), _list_nodes(same), strict=True))
    _check_same_counts(source, expected)
    _check_same_nodes(source, expected, nodes)
    for rule, same_rule in zip(rules, same, strict=True):
        covered = source.find_same_coverage(rule, rules)
        np.testing.assert_array_equal(covered, expected.find_same_coverage(same_rule, same))
        source.keep(rule)
        expected.keep(same_rule)
        _check_same_counts(source, expected)
    _check_same_nodes(source, expected, nodes[::-1])
    # which nodes were counted makes no difference
    _check_same_counts(source, expected)
    found, wanted = source.count_patterns(rules), expected.count_patterns(same)
    np.testing.assert_array_equal(found.patterns, wanted.patterns)
    np.testing.assert_array_equal(found.counts, wanted.counts)
    np.testing.assert_array_equal(source.count_totals(), expected.count_totals())


def check_independence_test(test: IndependenceTest, n_environments: int = 3) -> None:
    """Hold a test to its contract on random and degenerate tables.

    Parameters
    ----------
    test : IndependenceTest
        Your test.
    n_environments : int, default=3
        Columns of the tables.

    Raises
    ------
    AssertionError
        If it breaks the contract; the message says how.

    Examples
    --------
    >>> import numpy as np
    >>> from icscm.testing import check_independence_test
    >>> class Independent:
    ...     def compute_p_values(self, tables):
    ...         return np.ones(len(tables))
    >>> check_independence_test(Independent())
    """
    rng = np.random.default_rng(0)
    tables = rng.integers(0, 30, size=(200, 2, n_environments))
    tables[:50] //= 15  # many empty rows and columns
    tables[0] = 0
    p_values = np.asarray(test.compute_p_values(tables))
    assert p_values.shape == (len(tables),), f"expected one p-value per table, got {p_values.shape}"
    assert not np.isnan(p_values).any(), "a p-value is NaN"
    assert ((p_values >= 0) & (p_values <= 1)).all(), "a p-value lies outside [0, 1]"
    for i in range(len(tables)):
        alone = test.compute_p_values(tables[i : i + 1])[0]
        assert alone == p_values[i], "a table's p-value depends on the tables beside it"
    flipped = np.asarray(test.compute_p_values(tables[:, ::-1]))
    np.testing.assert_allclose(flipped, p_values, rtol=1e-9, err_msg="inverting the label matters")
    none = np.asarray(test.compute_p_values(tables[:0]))
    assert none.shape == (0,), "no table should give no p-value"


def _list_nodes(rules: Sequence[BinnedRule]) -> list[list[BinnedRule]]:
    """The root, and the nodes on the way along some rules and beside it."""
    nodes: list[list[BinnedRule]] = [[]]
    for n, rule in enumerate(rules):
        opposite = replace(rule, satisfied=~rule.satisfied)
        nodes += [[*rules[:n], rule], [*rules[:n], opposite]]
    return nodes


def _check_same_nodes(
    source: CountSource,
    expected: CountSource,
    nodes: Sequence[tuple[list[BinnedRule], list[BinnedRule]]],
) -> None:
    """The same counts for every node, in blocks that one can subtract from each other."""
    kept = [list(source.count_node(path)) for path, _ in nodes]
    for cubes, (_, same_path) in zip(kept, nodes, strict=True):
        for cube, other in zip(cubes, kept[0], strict=True):
            np.testing.assert_array_equal(cube.features, other.features)
            assert cube.counts.shape == other.counts.shape, "a block's shape depends on the node"
        found = _sort_by_feature(source, cubes)
        _check_equal(found, _sort_by_feature(expected, expected.count_node(same_path)))


def _check_same_counts(source: CountSource, expected: CountSource) -> None:
    _check_equal(*(_sort_by_feature(each, each.counts()) for each in (source, expected)))


def _check_equal(found: dict[int, CountArray], wanted: dict[int, CountArray]) -> None:
    """The same counts for every feature that can be cut; constant ones need no cube."""
    assert set(found) <= set(wanted), "a cube names a feature that does not exist"
    for feature, cube in wanted.items():
        if feature not in found:
            assert (cube.sum(axis=(1, 2)) > 0).sum() <= 1, f"no counts for feature {feature}"
            continue
        n_bins = min(len(cube), len(found[feature]))
        np.testing.assert_array_equal(found[feature][:n_bins], cube[:n_bins])
        assert not found[feature][n_bins:].any(), "samples in bins that the feature does not have"
        assert not cube[n_bins:].any(), "bins are missing"


def _sort_by_feature(source: CountSource, blocks: Iterable[CountCube]) -> dict[int, CountArray]:
    cubes: dict[int, CountArray] = {}
    for block in (expand(cube, source.candidates) for cube in blocks):
        assert block.counts.dtype == np.int64, f"counts must be int64, got {block.counts.dtype}"
        for feature, counts in zip(block.features.tolist(), block.counts, strict=True):
            assert feature not in cubes, f"feature {feature} came twice"
            wanted = source.candidates.find_layout(feature)
            assert block.layout == wanted, f"feature {feature} came as {block.layout}"
            cubes[feature] = np.array(counts)
    return cubes
