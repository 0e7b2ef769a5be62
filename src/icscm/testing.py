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
    _check_names(source, expected, cuts)

    # Each has the rules in its own numbers: it may store only the first of identical columns.
    rules = [source.columns.make_binned_rule(cut) for cut in cuts]
    expected_rules = [expected.columns.make_binned_rule(cut) for cut in cuts]
    _check_coverage(source, expected, rules, expected_rules)
    _check_counts(source, expected, rules, expected_rules)

    patterns = source.count_patterns(rules)
    expected_patterns = expected.count_patterns(expected_rules)
    np.testing.assert_array_equal(patterns.patterns, expected_patterns.patterns)
    np.testing.assert_array_equal(patterns.counts, expected_patterns.counts)


def _check_names(source: RowSource, expected: RowSource, cuts: Sequence[Cut]) -> None:
    """Raise unless both sources have the same rules, classes and environments, by their names."""
    for cut in cuts:
        assert str(source.columns.make_rule(cut)) == str(expected.columns.make_rule(cut))
    assert list(source.classes) == list(expected.classes)
    assert list(source.environments) == list(expected.environments)


def _check_coverage(
    source: RowSource,
    expected: RowSource,
    rules: Sequence[BinnedRule],
    expected_rules: Sequence[BinnedRule],
) -> None:
    """Raise unless, at each step of the path, the same rules cover the same rows."""
    for length in range(len(rules) + 1):
        path = tuple(rules[:length])
        expected_path = tuple(expected_rules[:length])
        for rule, expected_rule in zip(rules, expected_rules, strict=True):
            np.testing.assert_array_equal(
                source.find_same_coverage(path, rule, rules),
                expected.find_same_coverage(expected_path, expected_rule, expected_rules),
            )


def _check_counts(
    source: RowSource,
    expected: RowSource,
    rules: Sequence[BinnedRule],
    expected_rules: Sequence[BinnedRule],
) -> None:
    """Raise unless both sources count the same rows, in whatever order they are asked."""
    paths = _list_paths(rules)
    expected_answers = [_Answer.ask(expected, path) for path in _list_paths(expected_rules)]

    # in order
    answers = [_Answer.ask(source, path) for path in paths]
    for answer, expected_answer in zip(answers, expected_answers, strict=True):
        answer.check_shapes(answers[0])
        answer.check_equal(expected_answer)

    # backwards
    for path, expected_answer in zip(paths[::-1], expected_answers[::-1], strict=True):
        _Answer.ask(source, path).check_equal(expected_answer)

    # From several threads: the last paths are asked for while the first are still counted. Each
    # thread asks in a copy of this one's context, which may hold a client of a cluster.
    context = copy_context()

    def ask_in_thread(path: RulePath) -> _Answer:
        return context.copy().run(_Answer.ask, source, path)

    with ThreadPoolExecutor(_N_THREADS) as threads:
        answers_of_threads = threads.map(ask_in_thread, paths + paths[::-1])
        expected_of_threads = expected_answers + expected_answers[::-1]
        for answer, expected_answer in zip(answers_of_threads, expected_of_threads, strict=True):
            answer.check_equal(expected_answer)


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
    tables = _draw_tables(n_environments)
    p_values = np.asarray(test.compute_p_values(tables))
    assert p_values.shape == (len(tables),), f"expected one p-value per table, got {p_values.shape}"
    assert not np.isnan(p_values).any(), "a p-value is NaN"
    assert ((p_values >= 0) & (p_values <= 1)).all(), "a p-value lies outside [0, 1]"

    for position, p_value in enumerate(p_values):
        table_alone = tables[position : position + 1]
        p_value_alone = test.compute_p_values(table_alone)[0]
        assert p_value_alone == p_value, "the p-value of a table depends on the other tables"

    inverted_tables = tables[:, ::-1]
    p_values_of_inverted = np.asarray(test.compute_p_values(inverted_tables))
    np.testing.assert_allclose(
        p_values_of_inverted, p_values, rtol=1e-9, err_msg="inverting the label matters"
    )

    no_p_values = np.asarray(test.compute_p_values(tables[:0]))
    assert no_p_values.shape == (0,), "no table must give no p-value"


def _draw_tables(n_environments: int) -> CountArray:
    """Random counts by (table, label, environment), some of them degenerate."""
    rng = np.random.default_rng(0)
    tables = rng.integers(0, 30, size=(200, 2, n_environments))
    tables[:50] //= 15  # 0 or 1: many empty rows and columns
    tables[0] = 0
    return tables


def _list_paths(rules: Sequence[BinnedRule]) -> list[RulePath]:
    """The empty path and, along the rules, each part of their path with its sibling.

    Of the rules a and b: the paths (), (a), (not a), (a, b), (a, not b).
    """
    paths: list[RulePath] = [()]
    for length, rule in enumerate(rules):
        parent = tuple(rules[:length])
        opposite = replace(rule, satisfied=~rule.satisfied)
        paths += [(*parent, rule), (*parent, opposite)]
    return paths


@dataclass(frozen=True)
class _Answer:
    """What a source says about the rows of a path: their number, and their counts by column."""

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
        counts_by_column = _sort_by_column(self.source, self.cubes)
        expected_by_column = _sort_by_column(expected.source, expected.cubes)
        is_known = set(counts_by_column) <= set(expected_by_column)
        assert is_known, "a cube names a column that does not exist"

        # Counts by (bin, label, environment). A source may have more empty bins than another, and
        # may leave out a column whose rows are all in one bin.
        for column, expected_counts in expected_by_column.items():
            if column not in counts_by_column:
                n_filled_bins = (expected_counts.sum(axis=(1, 2)) > 0).sum()
                assert n_filled_bins <= 1, f"no counts for column {column}"
                continue
            counts = counts_by_column[column]
            n_bins = min(len(counts), len(expected_counts))
            np.testing.assert_array_equal(counts[:n_bins], expected_counts[:n_bins])
            assert not counts[n_bins:].any(), "rows in bins that the column does not have"
            assert not expected_counts[n_bins:].any(), "bins are missing"


def _sort_by_column(source: RowSource, cubes: Iterable[CountCube]) -> dict[int, CountArray]:
    """The counts of each column by its number, identical ones included."""
    counts_by_column: dict[int, CountArray] = {}
    for stored_cube in cubes:
        cube = expand(stored_cube, source.columns)
        assert cube.counts.dtype == np.int64, f"counts must be int64, got {cube.counts.dtype}"
        for column, counts in zip(cube.columns.tolist(), cube.counts, strict=True):
            assert column not in counts_by_column, f"column {column} came twice"
            layout = source.columns.find_layout(column)
            assert cube.layout == layout, f"column {column} came as {cube.layout}"
            counts_by_column[column] = counts
    return counts_by_column
