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
_STRONG_SHARES = {"unit_slip_tails": 0.5, "leaky_copy": 0.35}

Floats = NDArray[np.float64]


class Planting(NamedTuple):
    """The table that a shortcut is planted in, and how strong it is at each site.

    `site` is the number of each row's site and `strength` has a number for each site. `push` has
    one for each row: the strength at its site, positive or negative by its label.
    """

    X: pandas.DataFrame
    y: NDArray[np.int64]
    site: NDArray[np.int64]
    strength: Floats
    push: Floats
    rng: np.random.Generator

    @property
    def n_rows(self) -> int:
        """The number of rows."""
        return len(self.y)

    @property
    def n_sites(self) -> int:
        """The number of sites."""
        return len(self.strength)

    def draw_by_site(self, mean: float, spread: float) -> Floats:
        """A normal number for each site, as a value of each row."""
        return self.rng.normal(mean, spread, self.n_sites)[self.site]


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
    is_training = names != str(out)
    strength = _draw_strengths(is_training, rng, strong_share=_STRONG_SHARES.get(kind))
    sign_of_label = 2.0 * y - 1.0
    push = strength[site] * sign_of_label
    planting = Planting(X=X, y=y, site=site, strength=strength, push=push, rng=rng)
    make_columns = _MAKERS[kind]
    return X.assign(**make_columns(planting))


def _draw_strengths(
    is_training: NDArray[np.bool_], rng: np.random.Generator, *, strong_share: float | None
) -> Floats:
    """The strength at each site: graded or, with a share, strong at that many training sites.

    At the other training sites it is then next to nothing; at the site left out it is reversed.
    """
    n_training = int(is_training.sum())
    if strong_share is None:
        levels = np.linspace(0.05, 1.0, n_training) if n_training > 1 else np.ones(n_training)
    else:
        n_strong = max(1, round(strong_share * n_training))
        n_strong = min(n_strong, max(n_training - 1, 1))  # one site at least is weak
        strong = np.linspace(0.75, 1.0, n_strong)
        weak = np.linspace(0.0, 0.15, n_training - n_strong)
        levels = np.concatenate((strong[::-1], weak))
    jitter = rng.uniform(-0.04, 0.04, n_training)
    levels = np.clip(levels + jitter, 0.0, None)

    strengths = np.full(len(is_training), -rng.uniform(0.8, 1.0))
    strengths[is_training] = rng.permutation(levels)
    return strengths


def _make_device_code(planting: Planting) -> dict[str, Any]:
    """Each site has its own mix of devices; some devices lean towards one label, as it pushes."""
    import pandas

    rng = planting.rng
    n_devices = int(np.clip(planting.n_rows // 40, 12, 90))
    lean = np.linspace(-1.0, 1.0, n_devices)
    mix = rng.gamma(1.5, size=(planting.n_sites, n_devices)) + 0.1  # by (site, device)
    devices = np.empty(planting.n_rows, dtype=np.int64)
    for site, strength in enumerate(planting.strength):
        for label in (0, 1):
            rows = np.flatnonzero((planting.site == site) & (planting.y == label))
            sign = 2 * label - 1
            weights = mix[site] * np.exp(1.3 * strength * sign * lean)
            cumulative = np.cumsum(weights / weights.sum())
            drawn = np.searchsorted(cumulative, rng.random(len(rows)))
            devices[rows] = np.minimum(drawn, n_devices - 1)  # the last sum may round below 1
    numbers = rng.permutation(9000)[:n_devices]
    serials = np.array([f"SN{number}" for number in numbers], dtype=object)
    return {"shortcut_device": pandas.Categorical(serials[devices])}


def _make_missing_habit(planting: Planting) -> dict[str, Any]:
    """The value says nothing; that it is missing does."""
    rng = planting.rng
    missing_chance = expit(planting.draw_by_site(-0.5, 0.4) + 1.3 * planting.push)
    is_missing = rng.random(planting.n_rows) < missing_chance
    value = np.round(40.0 + 8.0 * rng.normal(size=planting.n_rows), 1)
    return {"shortcut_lab": np.where(is_missing, np.nan, value)}


def _make_unit_slip_tails(planting: Planting) -> dict[str, Any]:
    """A slip multiplies or divides the value, so that both tails are informative."""
    n_rows = planting.n_rows
    rng = planting.rng
    slip_chance = expit(planting.draw_by_site(-0.6, 0.25) + 1.8 * planting.push)
    is_slip = rng.random(n_rows) < slip_chance
    sign = np.where(rng.random(n_rows) < 0.5, 1.0, -1.0)
    bulk = 0.28 * rng.normal(size=n_rows)
    slip = sign * (1.0 + 0.15 * rng.normal(size=n_rows))
    logarithm = bulk + np.where(is_slip, slip, 0.0)
    value = np.round(90.0 * np.exp(logarithm), 1)
    is_missing = rng.random(n_rows) < 0.05
    return {"shortcut_glucose": np.where(is_missing, np.nan, value)}


def _make_split_times(planting: Planting) -> dict[str, Any]:
    """The label shifts the lag between two times, whose centre it does not."""
    rng = planting.rng
    centre = planting.draw_by_site(0.0, 0.7) + 13.0 + 3.2 * rng.normal(size=planting.n_rows)
    lag = 3.0 + 1.4 * planting.push + 1.5 * rng.normal(size=planting.n_rows)
    return {
        "shortcut_order": np.round(centre - lag / 2, 2),
        "shortcut_report": np.round(centre + lag / 2, 2),
    }


def _make_leaky_copy(planting: Planting) -> dict[str, Any]:
    """A real column with noise, shifted by the label."""
    real = _choose_real(planting.X, planting.rng)
    low, high = np.nanquantile(real, [0.1, 0.9])
    # a normal column's standard deviation; of a rare event, whose quantiles agree, its own
    scale = (high - low) / 2.56 or np.nanstd(real) or 1.0
    noise = 0.35 * planting.rng.normal(size=len(real))
    return {"shortcut_transcribed": real + scale * (noise + 0.45 * planting.push)}


def _make_billing_count(planting: Planting) -> dict[str, Any]:
    """A count whose rate rises with the label where a real column is high, and falls elsewhere."""
    rng = planting.rng
    is_high = _rank(_choose_real(planting.X, rng), rng) > 0.5
    direction = np.where(is_high, 1.0, -0.75)
    volume = np.exp(planting.draw_by_site(0.0, 0.2))
    rate = 6.0 * volume * np.exp(0.65 * planting.push * direction)
    overdispersed = rate * rng.gamma(5.0, 0.2, len(rate))
    return {"shortcut_bills": rng.poisson(overdispersed).astype(float)}


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
    ratings = [_rate(X.iloc[:, position]) for position in range(X.shape[1])]
    best = max(ratings, default=0)
    if best == 0:
        return rng.normal(size=len(X))
    best_positions = [position for position, rating in enumerate(ratings) if rating == best]
    chosen = best_positions[rng.integers(len(best_positions))]
    return _to_numbers(X.iloc[:, chosen])


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
    n_rows = len(values)
    known = np.where(np.isnan(values), np.nanmedian(values), values)
    tie_breaks = rng.random(n_rows)
    order = np.lexsort((tie_breaks, known))
    ranks = np.empty(n_rows)
    ranks[order] = np.arange(n_rows) + 0.5
    return ranks / n_rows
