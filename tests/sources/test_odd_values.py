"""Missing and infinite values of arrays are found where rows are hashed, planned from and coded."""

import numpy as np
import pytest

from icscm import ICSCMClassifier
from icscm.exceptions import IcscmError
from icscm.sources.memory import make_memory_source

N_ROWS = {"all rows are looked at": 500, "few rows and all": 12_000, "a sample": 20_000}
KINDS = {
    "two values": lambda rng, n: rng.integers(0, 2, n) * 3.0,
    "few values": lambda rng, n: rng.integers(0, 9, n) / 4,
    "many values": lambda rng, n: rng.random(n),
    "one value": lambda rng, n: np.full(n, 7.0),
}


def make_table(n_rows, kind, dtype=np.float64):
    rng = np.random.default_rng(3)
    X = np.column_stack([KINDS[kind](rng, n_rows), rng.random((n_rows, 2))]).astype(dtype)
    return X, (X[:, 1] > 0.4).astype(np.int64), rng.integers(0, 2, n_rows)


@pytest.mark.parametrize("n_rows", N_ROWS.values(), ids=N_ROWS)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("order", "CF")
def test_a_single_missing_value_anywhere_has_a_bin_of_its_own(n_rows, kind, order):
    """No look at some of the rows meets it."""
    X, y, e = make_table(n_rows, kind)
    X[n_rows // 2 + 1, 0] = np.nan
    source = make_memory_source(np.array(X, order=order), y, e, environment_labels=(0, 1))
    assert source.columns.has_missing.tolist() == [True, False, False]
    cube = next(cube for cube in source.count_cubes() if 0 in cube.columns)
    assert cube.layout.has_missing
    assert cube.counts[cube.columns == 0][0, 0].sum() == 1


@pytest.mark.parametrize("n_rows", N_ROWS.values(), ids=N_ROWS)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("value", [np.inf, -np.inf])
def test_a_single_infinity_anywhere_is_refused(n_rows, kind, value):
    X, y, e = make_table(n_rows, kind, np.float32)
    X[n_rows // 2 + 1, 0] = value
    for own in (X, np.asfortranarray(X)):
        with pytest.raises(IcscmError, match="X contains infinity in column 0; fill in or drop"):
            ICSCMClassifier().fit(own, y, environments=e)
