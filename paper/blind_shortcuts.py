"""Six kinds of shortcut that were devised without knowledge of the method under test.

Their author knew only that a column must predict the label at the training sites, not equally at
all of them, and reverse at the site left out; neither the code nor its measures. The strength of a
shortcut at a site is near 1 where it is strongest, near 0 where it is absent, and near -1 at the
site left out. Graded strengths spread evenly over the training sites, in random order.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

if TYPE_CHECKING:
    import pandas

BLIND = {
    "device_code": "serial number of one of up to 90 devices, each site with its own mix; graded",
    "missing_habit": "uninformative laboratory value, left blank more often for positives; graded",
    "unit_slip_tails": "value in the wrong unit, in both tails, for positives at half of the sites",
    "split_times": "two times, each weak alone, whose difference follows the label; graded",
    "leaky_copy": "noisy copy of a real column, shifted by the label at a third of the sites",
    "billing_count": "count that rises with the label above the median of a real column, and "
    "falls below it; graded",
}
# The share of training sites with the shortcut, where its strength is not graded.
_PARTS = {"unit_slip_tails": 0.5, "leaky_copy": 0.35}

Floats = NDArray[np.float64]


class Planting(NamedTuple):
    """What a kind is made from; `push` is the strength at a row's site, signed by its label."""

    X: pandas.DataFrame
    y: NDArray[np.int64]
    site: NDArray[np.int64]
    strength: Floats
    push: Floats
    rng: np.random.Generator

    def draw_by_site(self, mean: float, spread: float) -> Floats:
        """A normal number for each site, as a value of each row."""
        return self.rng.normal(mean, spread, len(self.strength))[self.site]


def plant_blind(
    X: pandas.DataFrame,
    y: NDArray[np.int64],
    environments: NDArray[Any],
    out: Any,
    kind: str,
    seed: int,
) -> pandas.DataFrame:
    """The table with one of these kinds of shortcut, which is reversed in environment `out`.

    >>> import pandas
    >>> X, y = pandas.DataFrame({"a": range(8)}), np.arange(8) % 2
    >>> plant_blind(X, y, np.repeat(["n", "s"], 4), "s", "split_times", 1).columns.tolist()
    ['a', 'shortcut_order', 'shortcut_report']
    """
    rng = np.random.default_rng([seed, list(BLIND).index(kind)])
    names, site = np.unique(environments.astype(str), return_inverse=True)
    strength = _draw_strengths(names != str(out), rng, _PARTS.get(kind))
    push = strength[site] * (2.0 * y - 1.0)
    return X.assign(**_MAKERS[kind](Planting(X, y, site, strength, push, rng)))


def _draw_strengths(
    is_training: NDArray[np.bool_], rng: np.random.Generator, part: float | None
) -> Floats:
    """By site: graded, or strong in a part of the training sites and next to nothing elsewhere."""
    n = int(is_training.sum())
    if part is None:
        wanted = np.linspace(0.05, 1.0, n) if n > 1 else np.ones(n)
    else:
        n_strong = min(max(1, round(part * n)), max(n - 1, 1))
        strong, weak = np.linspace(0.75, 1.0, n_strong), np.linspace(0.0, 0.15, n - n_strong)
        wanted = np.concatenate((strong[::-1], weak))
    wanted = np.clip(wanted + rng.uniform(-0.04, 0.04, n), 0.0, None)
    strengths = np.full(len(is_training), -rng.uniform(0.8, 1.0))
    strengths[is_training] = rng.permutation(wanted)
    return strengths


def _make_device_code(own: Planting) -> dict[str, Any]:
    import pandas

    n, rng = len(own.y), own.rng
    n_codes = int(np.clip(n // 40, 12, 90))
    lean = np.linspace(-1.0, 1.0, n_codes)
    mix = rng.gamma(1.5, size=(len(own.strength), n_codes)) + 0.1
    codes = np.empty(n, dtype=np.int64)
    for site, strength in enumerate(own.strength):
        for label in (0, 1):
            rows = np.flatnonzero((own.site == site) & (own.y == label))
            weights = mix[site] * np.exp(1.3 * strength * (2 * label - 1) * lean)
            drawn = np.searchsorted(np.cumsum(weights / weights.sum()), rng.random(len(rows)))
            codes[rows] = np.minimum(drawn, n_codes - 1)
    serials = np.array([f"SN{number}" for number in rng.permutation(9000)[:n_codes]], dtype=object)
    return {"shortcut_device": pandas.Categorical(serials[codes])}


def _make_missing_habit(own: Planting) -> dict[str, Any]:
    n = len(own.y)
    chance = expit(own.draw_by_site(-0.5, 0.4) + 1.3 * own.push)
    is_blank = own.rng.random(n) < chance
    value = np.round(40.0 + 8.0 * own.rng.normal(size=n), 1)
    return {"shortcut_lab": np.where(is_blank, np.nan, value)}


def _make_unit_slip_tails(own: Planting) -> dict[str, Any]:
    n, rng = len(own.y), own.rng
    chance = expit(own.draw_by_site(-0.6, 0.25) + 1.8 * own.push)
    is_slip = rng.random(n) < chance
    sign = np.where(rng.random(n) < 0.5, 1.0, -1.0)
    bulk = 0.28 * rng.normal(size=n)
    logarithm = bulk + np.where(is_slip, sign * (1.0 + 0.15 * rng.normal(size=n)), 0.0)
    value = np.round(90.0 * np.exp(logarithm), 1)
    return {"shortcut_glucose": np.where(rng.random(n) < 0.05, np.nan, value)}


def _make_split_times(own: Planting) -> dict[str, Any]:
    n = len(own.y)
    centre = own.draw_by_site(0.0, 0.7) + 13.0 + 3.2 * own.rng.normal(size=n)
    lag = 3.0 + 1.4 * own.push + 1.5 * own.rng.normal(size=n)
    times = np.round(centre - lag / 2, 2), np.round(centre + lag / 2, 2)
    return dict(zip(("shortcut_order", "shortcut_report"), times, strict=True))


def _make_leaky_copy(own: Planting) -> dict[str, Any]:
    real = _choose_real(own.X, own.rng)
    low, high = np.nanquantile(real, [0.1, 0.9])
    # a normal column's standard deviation; of a rare event, whose quantiles agree, its own
    scale = (high - low) / 2.56 or np.nanstd(real) or 1.0
    noise = 0.35 * own.rng.normal(size=len(real))
    return {"shortcut_transcribed": real + scale * (noise + 0.45 * own.push)}


def _make_billing_count(own: Planting) -> dict[str, Any]:
    rng = own.rng
    is_high = _rank(_choose_real(own.X, rng), rng) > 0.5
    volume = np.exp(own.draw_by_site(0.0, 0.2))
    rate = 6.0 * volume * np.exp(0.65 * own.push * np.where(is_high, 1.0, -0.75))
    return {"shortcut_bills": rng.poisson(rate * rng.gamma(5.0, 0.2, len(rate))).astype(float)}


_MAKERS: dict[str, Callable[[Planting], dict[str, Any]]] = {
    "device_code": _make_device_code,
    "missing_habit": _make_missing_habit,
    "unit_slip_tails": _make_unit_slip_tails,
    "split_times": _make_split_times,
    "leaky_copy": _make_leaky_copy,
    "billing_count": _make_billing_count,
}


def _choose_real(X: pandas.DataFrame, rng: np.random.Generator) -> Floats:
    """A random column as numbers: a many-valued one if there is any; noise if none varies."""
    suitabilities = [_rate(X.iloc[:, j]) for j in range(X.shape[1])]
    best = max(suitabilities, default=0)
    if best == 0:
        return rng.normal(size=len(X))
    suitable = [j for j, each in enumerate(suitabilities) if each == best]
    return _to_numbers(X.iloc[:, suitable[rng.integers(len(suitable))]])


def _rate(column: pandas.Series) -> int:
    """3 for numbers of more than ten values, 2 for other numbers, 1 for codes, 0 for constants."""
    from pandas.api.types import is_bool_dtype, is_numeric_dtype

    n_values = column.nunique()
    if not is_numeric_dtype(column.dtype) or is_bool_dtype(column.dtype):
        return int(n_values > 1)
    if n_values < 2 or column.notna().mean() <= 0.5:
        return 0
    return 3 if n_values > 10 else 2


def _to_numbers(column: pandas.Series) -> Floats:
    """Numbers as they are, levels as codes; missing values stay missing."""
    import pandas

    if pandas.api.types.is_numeric_dtype(column.dtype):
        numbers: Floats = column.to_numpy(dtype=float, na_value=np.nan)
        return np.where(np.isfinite(numbers), numbers, np.nan)
    codes = pandas.factorize(column)[0].astype(float)
    return np.where(codes < 0, np.nan, codes)


def _rank(values: Floats, rng: np.random.Generator) -> Floats:
    """Ranks within (0, 1), ties in random order, missing values in the middle."""
    known = np.where(np.isnan(values), np.nanmedian(values), values)
    ranks = np.empty(len(known))
    ranks[np.lexsort((rng.random(len(known)), known))] = np.arange(len(known)) + 0.5
    return ranks / len(known)
