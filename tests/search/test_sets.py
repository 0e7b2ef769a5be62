"""Sets of features: what can be afforded, in whole sentences, and the work in parts."""

from unittest import mock

import numpy as np
import pytest

from icscm.engine.levels import LevelCounts
from icscm.exceptions import IcscmError
from icscm.search import sets, table_sets
from icscm.search.sets import find_shared, list_subsets
from icscm.search.table_sets import SetTable, check_affordable


def make_counts(*n_levels, n_environments=2):
    codes = [np.zeros(1, dtype=np.int32) for _ in n_levels]
    return LevelCounts(codes, np.array(n_levels), np.zeros(1, dtype=np.int32), n_environments)


def explain(counts, size, max_set_size=None):
    with pytest.raises(IcscmError) as caught:
        check_affordable(counts, size, max_set_size)
    return str(caught.value)


def test_too_many_sets():
    assert check_affordable(make_counts(*[2] * 20), 20, None) is None
    assert explain(make_counts(*[2] * 21), 21) == (
        "21 features make 2,097,152 sets to test, more than 1,048,576 (all sets of 20 features); "
        "screen the features first, or set max_set_size=10 or less"
    )
    assert check_affordable(make_counts(*[2] * 21), 10, 10) is None
    assert explain(make_counts(*[2] * 200), 3, 3) == (
        "200 features make 1,333,501 sets of up to 3 to test, more than 1,048,576 (all sets of 20 "
        "features); screen the features first, or set max_set_size=2 or less"
    )
    assert explain(make_counts(*[2] * 60), 60).startswith(
        "60 features make more than 10**15 sets to test, more than 1,048,576"
    )
    assert explain(make_counts(*[2] * 1_100_000), 1, 1) == (
        "1,100,000 features make 1,100,001 sets of up to 1 to test, more than 1,048,576 (all sets "
        "of 20 features); screen the features first"
    )


def test_too_many_cells():
    """2 labels, 2 environments, levels: 4 * 4**11 cells are just allowed."""
    counts = make_counts(*[4] * 15)
    assert check_affordable(counts, 11, 11) is None
    assert explain(counts, 12, 12) == (
        "the joint table of 12 features would have 67,108,864 cells, more than 16,777,216; screen "
        "the features first, choose a smaller max_levels, or set max_set_size=11 or less"
    )
    # the largest levels decide, wherever they stand
    assert check_affordable(make_counts(2, 2048, 2, 2048), 2, 2) is None
    assert "would have 33,554,432 cells" in explain(make_counts(2, 2048, 2, 4096), 2, 2)
    assert "would have 25,165,824 cells" in explain(
        make_counts(2, 2048, 2, 2048, n_environments=3), 2, 2
    )
    assert explain(make_counts(2**23, 2), 1, 1) == (
        "the joint table of 1 features would have 33,554,432 cells, more than 16,777,216; screen "
        "the features first, choose a smaller max_levels"
    )


def test_numbers_of_sets():
    assert [sets.count_sets(5, size) for size in range(6)] == [1, 6, 16, 26, 31, 32]
    with mock.patch.object(sets, "MAX_COUNTED", 16):
        assert sets.count_sets(5, 2) == 16
        assert sets.count_sets(5, 5) == 26, "counting ends with the first number beyond"


def test_subsets():
    assert list_subsets(3, 2) == [(), (0,), (1,), (2,), (0, 1), (0, 2), (1, 2)]
    assert list_subsets(2, 9) == [(), (0,), (1,), (0, 1)]
    assert list_subsets(0, 3) == [()]


def test_shared():
    assert find_shared([]) is None
    assert find_shared([(0, 1), (1, 2)]) == {1}
    assert find_shared(iter([(0,), (), (0,)])) == set()
    assert find_shared([(), (0,)]) == set()


@pytest.mark.parametrize(
    ("most", "wanted"),
    [(1, [[3], [3], [3], [4]]), (6, [[3, 3], [3, 4]]), (7, [[3, 3, 3], [4]]), (99, [[3, 3, 3, 4]])],
)
def test_batches(most, wanted):
    tables = [SetTable((), np.zeros(n)) for n in (3, 3, 3, 4)]
    with mock.patch.object(table_sets, "_BATCH_CELLS", most):
        batches = [*table_sets._make_batches(tables)]
    assert [[len(table.strata) for table in batch] for batch in batches] == wanted
    assert list(table_sets._make_batches([])) == []
