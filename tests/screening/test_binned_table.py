"""Sums over the rows of the table that is screened."""

import numpy as np
import pandas as pd

from icscm.screening.binned_table import BinnedTable
from icscm.sources import BinningConfig, open_memory


def test_sums_by_bin_are_those_of_the_rows():
    """The sums that the tests work with, against a loop over rows."""
    rng = np.random.default_rng(0)
    age = np.where(np.arange(300) % 7, rng.normal(size=300), np.nan)
    smoker = np.where(rng.random(300) < 0.4, "yes", "no")
    X = pd.DataFrame({"age": age, "smoker": smoker, "noise": rng.normal(size=300)})
    y = rng.integers(0, 2, 300)
    site = rng.integers(0, 4, 300)
    source = open_memory(
        X, y, environments=site, preparation=BinningConfig(drop_suspicious=False)
    ).source
    table = BinnedTable(source)
    assert np.array_equal(table.outcomes, y)
    assert np.array_equal(np.array(source.environments)[table.environments], site)
    values = rng.normal(size=(300, 2))
    for cube in table.sum_by_bin(values):
        for column, sums in zip(cube.columns.tolist(), cube.sums, strict=True):
            codes = source.piece.find_store(column).find_codes(column)[source.position]
            slow = np.zeros_like(sums)
            for i in range(300):
                slow[codes[i], :, table.environments[i]] += values[i]
            assert np.allclose(sums, slow)
