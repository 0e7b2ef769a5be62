"""Checks for your own count sources and tests of independence.

Each `check_*` raises `AssertionError` with the first difference it finds.
"""

from collections.abc import Iterable, Sequence
from dataclasses import replace

import numpy as np

from icscm._types import CountArray
from icscm.engine.bits import expand
from icscm.engine.counts import BinnedRule, CountCube, CountSource, Cut
from icscm.stats.independence import IndependenceTest


def check_count_source(source: CountSource, expected: CountSource, cuts: Sequence[Cut]) -> None:
    """Compare a source with another one that counts the same samples, while rules cover them.

    Parameters
    ----------
    source, expected : CountSource
        Your source, and one to compare with; neither can be used afterwards.
    cuts : sequence of Cut
        Rules to keep one after the other; coverage, patterns and tree nodes are compared for all
        of them.

    Raises
    ------
    AssertionError
        At the first difference.

    Examples
    --------
    >>> from icscm.datasets import make_conjunction
    >>> from icscm.engine.counts import Cut
    >>> from icscm.sources import open_memory
    >>> from icscm.testing import check_count_source
    >>> data = make_conjunction(50, random_state=0)
    >>> mine = open_memory(data.X, data.y, data.environments).source
    >>> expected = open_memory(data.X.astype(float), data.y, data.environments).source
    >>> check_count_source(mine, expected, [Cut(feature=0, cut=0, negated=False)])
    """
    # each with its own numbers: a source may store only the first of identical features
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


def _list_nodes(rules: Sequence[BinnedRule]) -> list[list[BinnedRule]]:
    """The root, and the nodes along some rules, with their siblings."""
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
    """Check that all nodes have the same counts, in blocks of the same shapes."""
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
    """Check that all features that can be cut have the same counts; constant ones need no cube."""
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
