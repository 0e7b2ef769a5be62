"""Checks for your own sources of rows and tests of independence.

Each `check_*` raises `AssertionError` with the first difference it finds.
"""

from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from dataclasses import dataclass, replace

import numpy as np

from icscm._types import CountArray
from icscm.engine.bits import expand
from icscm.engine.counts import BinnedRule, CountCube, Cut, RowSource, RulePath
from icscm.stats.independence import IndependenceTest

# Threads from which a source is asked at the same time.
_N_THREADS = 8


def check_row_source(source: RowSource, expected: RowSource, cuts: Sequence[Cut]) -> None:
    """Compare a source with another one that has the same rows, along a path of rules.

    Both are asked for the rows of the path, of every part of it, and of the siblings of these: in
    order, backwards, and from several threads.

    Parameters
    ----------
    source, expected : RowSource
        Your source, and one to compare with.
    cuts : sequence of Cut
        The rules of the path, one after the other.

    Raises
    ------
    AssertionError
        At the first difference.

    Examples
    --------
    >>> from icscm.datasets import make_conjunction
    >>> from icscm.engine.counts import Cut
    >>> from icscm.sources import open_memory
    >>> from icscm.testing import check_row_source
    >>> data = make_conjunction(50, random_state=0)
    >>> mine = open_memory(data.X, data.y, environments=data.environments).source
    >>> expected = open_memory(data.X.astype(float), data.y, environments=data.environments).source
    >>> check_row_source(mine, expected, [Cut(column=0, cut=0, negated=False)])
    """
    for cut in cuts:
        assert str(source.columns.make_rule(cut)) == str(expected.columns.make_rule(cut))
    assert list(source.classes) == list(expected.classes)
    assert list(source.environments) == list(expected.environments)

    # with its own numbers: a source may store only the first of identical columns
    rules = [source.columns.make_binned_rule(cut) for cut in cuts]
    expected_rules = [expected.columns.make_binned_rule(cut) for cut in cuts]
    paths = _list_paths(rules)
    expected_paths = _list_paths(expected_rules)

    for number in range(len(rules) + 1):
        path, expected_path = tuple(rules[:number]), tuple(expected_rules[:number])
        for rule, expected_rule in zip(rules, expected_rules, strict=True):
            np.testing.assert_array_equal(
                source.find_same_coverage(path, rule, rules),
                expected.find_same_coverage(expected_path, expected_rule, expected_rules),
            )

    answers = [_Answer.ask(source, path) for path in paths]
    expected_answers = [_Answer.ask(expected, path) for path in expected_paths]
    for answer, expected_answer in zip(answers, expected_answers, strict=True):
        answer.check_shapes(answers[0])
        answer.check_equal(expected_answer)
    for path, expected_answer in zip(paths[::-1], expected_answers[::-1], strict=True):
        _Answer.ask(source, path).check_equal(expected_answer)
    # Each thread asks in a copy of this one's context, which may hold a client of a cluster.
    context = copy_context()
    with ThreadPoolExecutor(_N_THREADS) as threads:

        def ask(path: RulePath) -> _Answer:
            return context.copy().run(_Answer.ask, source, path)

        # the counts of the last paths are asked for while those of the first are made
        for answer, expected_answer in zip(
            threads.map(ask, paths + paths[::-1]),
            expected_answers + expected_answers[::-1],
            strict=True,
        ):
            answer.check_equal(expected_answer)

    patterns = source.count_patterns(rules)
    expected_patterns = expected.count_patterns(expected_rules)
    np.testing.assert_array_equal(patterns.patterns, expected_patterns.patterns)
    np.testing.assert_array_equal(patterns.counts, expected_patterns.counts)


def check_independence_test(test: IndependenceTest, n_environments: int = 3) -> None:
    """Check that a test fulfils its contract on random and degenerate tables.

    Parameters
    ----------
    test : IndependenceTest
        Your test.
    n_environments : int, default=3
        Columns of the tables.

    Raises
    ------
    AssertionError
        If the test breaks the contract; the message names the violation.

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
        assert alone == p_values[i], "the p-value of a table depends on the other tables"
    flipped = np.asarray(test.compute_p_values(tables[:, ::-1]))
    np.testing.assert_allclose(flipped, p_values, rtol=1e-9, err_msg="inverting the label matters")
    none = np.asarray(test.compute_p_values(tables[:0]))
    assert none.shape == (0,), "no table must give no p-value"


def _list_paths(rules: Sequence[BinnedRule]) -> list[RulePath]:
    """The empty path, and the paths along some rules, with their siblings."""
    paths: list[RulePath] = [()]
    for number, rule in enumerate(rules):
        opposite = replace(rule, satisfied=~rule.satisfied)
        paths += [(*rules[:number], rule), (*rules[:number], opposite)]
    return paths


@dataclass(frozen=True)
class _Answer:
    """What a source says about the rows of a path."""

    source: RowSource
    rows: CountArray
    cubes: list[CountCube]

    @classmethod
    def ask(cls, source: RowSource, path: RulePath) -> "_Answer":
        """Ask a source about the rows of a path."""
        return cls(source, source.count_rows(path), list(source.count_cubes(path)))

    def check_shapes(self, other: "_Answer") -> None:
        """Raise unless blocks come as in the answer to another path."""
        for cube, other_cube in zip(self.cubes, other.cubes, strict=True):
            np.testing.assert_array_equal(cube.columns, other_cube.columns)
            assert cube.counts.shape == other_cube.counts.shape, "a shape depends on the path"

    def check_equal(self, expected: "_Answer") -> None:
        """Raise unless all columns have the same counts; constant ones need no cube."""
        np.testing.assert_array_equal(self.rows, expected.rows)
        counts = _sort_by_column(self.source, self.cubes)
        expected_counts = _sort_by_column(expected.source, expected.cubes)
        assert set(counts) <= set(expected_counts), "a cube names a column that does not exist"

        for column, expected_cube in expected_counts.items():
            if column not in counts:
                n_values = (expected_cube.sum(axis=(1, 2)) > 0).sum()
                assert n_values <= 1, f"no counts for column {column}"
                continue
            cube = counts[column]
            n_bins = min(len(cube), len(expected_cube))
            np.testing.assert_array_equal(cube[:n_bins], expected_cube[:n_bins])
            assert not cube[n_bins:].any(), "rows in bins that the column does not have"
            assert not expected_cube[n_bins:].any(), "bins are missing"


def _sort_by_column(source: RowSource, cubes: Iterable[CountCube]) -> dict[int, CountArray]:
    """The counts of each column by its number, identical ones included."""
    counts_by_column: dict[int, CountArray] = {}
    for cube in (expand(cube, source.columns) for cube in cubes):
        assert cube.counts.dtype == np.int64, f"counts must be int64, got {cube.counts.dtype}"
        for column, counts in zip(cube.columns.tolist(), cube.counts, strict=True):
            assert column not in counts_by_column, f"column {column} came twice"
            layout = source.columns.find_layout(column)
            assert cube.layout == layout, f"column {column} came as {cube.layout}"
            counts_by_column[column] = counts
    return counts_by_column
