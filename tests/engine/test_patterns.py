"""Joint counts of rules, held against plain dictionaries."""

from collections import Counter

import numpy as np
import pytest

from icscm.engine.patterns import count_patterns, merge_patterns


@pytest.mark.parametrize("n_rules", [1, 5, 16, 17, 64, 65, 140])
@pytest.mark.parametrize("share", [0.0, 0.3, 1.0])
def test_merging_some_of_the_rules(n_rules, share):
    """Beyond 64 rules a pattern is more than one whole number."""
    rng = np.random.default_rng(n_rules)
    truths = [rng.random(300) < 0.1 for _ in range(n_rules)]
    truths[-1] = truths[0].copy()
    cells = rng.integers(0, 6, 300)
    kept = np.flatnonzero(rng.random(n_rules) <= share).tolist()
    table = count_patterns(truths, cells, 3)
    assert np.array_equal(merge_patterns(table, range(n_rules)).counts, table.counts)
    merged = merge_patterns(table, kept)
    wanted = Counter(zip(*(truths[i].tolist() for i in kept), cells.tolist(), strict=True))
    patterns = [tuple(pattern) for pattern in merged.patterns.tolist()]
    assert patterns == sorted({tuple(key[:-1]) for key in wanted})
    for pattern, counts in zip(patterns, merged.counts.reshape(-1, 6).tolist(), strict=True):
        assert counts == [wanted[*pattern, cell] for cell in range(6)]
