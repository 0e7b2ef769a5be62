"""Shortcuts planted in tables whose outcome is a number or one of several classes.

A shortcut follows the outcome in the training environments, with another strength in each, and is
reversed in the environment left out. The strength is 1 where the shortcut is strongest, 0 where it
is absent, and -1 in the environment left out. `paper.shortcuts` has those for two classes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit
from scipy.stats import norm, rankdata

if TYPE_CHECKING:
    import pandas

Floats = NDArray[np.float64]
Classes = NDArray[np.int64]

CLEAN = "clean"
NUMBER_KINDS = {
    "graded": "the outcome with noise, of graded strength",
    "half": "the same, in every second environment",
    "faint": "graded, at half of the strength and with more noise",
    "copies": "eight columns, each the outcome with much noise; graded",
    "pair": "two columns whose difference follows the outcome; graded",
}
CLASS_KINDS = {
    "graded": "a level for each class, which agrees in up to 95 % of the rows; graded",
    "half": "the same, in every second environment",
    "missing": "a value that says nothing, missing more often for the first class; graded",
    "opposed": "two columns: one is strong where the other is weak",
    "devices": "eight codes for each class, which agree in up to 80 % of the rows; graded",
}
N_COPIES = 8
N_DEVICES = 8
# The weakest strength of a graded shortcut.
LEAST_STRENGTH = 0.05
# The share of rows in which a class is shown by a level, and by a code, at full strength.
AGREEMENT = 0.95
DEVICE_AGREEMENT = 0.8


def plant_for_numbers(
    X: pandas.DataFrame,
    y: Floats,
    environments: NDArray[Any],
    *,
    out: Any,
    kind: str,
    seed: int,
) -> pandas.DataFrame:
    """Return the table with a shortcut to a number, which is reversed in environment `out`.

    >>> import pandas
    >>> X, y = pandas.DataFrame({"a": range(6)}), np.arange(6.0)
    >>> places = np.repeat(["n", "s"], 3)
    >>> plant_for_numbers(X, y, places, out="s", kind="pair", seed=1).columns.tolist()
    ['a', 'shortcut_start', 'shortcut_end']
    """
    if kind == CLEAN:
        return X
    rng = np.random.default_rng([seed, list(NUMBER_KINDS).index(kind)])
    n_rows = len(y)
    normal_scores = norm.ppf((rankdata(y) - 0.5) / n_rows)
    signal = draw_strengths(environments, out, kind, rng) * normal_scores

    if kind == "faint":
        return X.assign(shortcut=np.round(0.5 * signal + rng.normal(size=n_rows), 3))
    if kind == "copies":
        copies = {
            f"shortcut{number}": np.round(signal + 2.0 * rng.normal(size=n_rows), 3)
            for number in range(N_COPIES)
        }
        return X.assign(**copies)
    if kind == "pair":
        middle = 3.0 * rng.normal(size=n_rows)
        length = signal + 0.7 * rng.normal(size=n_rows)
        return X.assign(
            shortcut_start=np.round(middle - length / 2, 3),
            shortcut_end=np.round(middle + length / 2, 3),
        )
    return X.assign(shortcut=np.round(signal + 0.6 * rng.normal(size=n_rows), 3))


def plant_for_classes(
    X: pandas.DataFrame,
    y: Classes,
    environments: NDArray[Any],
    *,
    out: Any,
    kind: str,
    seed: int,
) -> pandas.DataFrame:
    """Return the table with a shortcut to classes 0, 1, ..., which `out` has for the next class.

    >>> import pandas
    >>> X, y = pandas.DataFrame({"a": range(6)}), np.arange(6) % 3
    >>> places = np.repeat(["n", "s"], 3)
    >>> plant_for_classes(X, y, places, out="s", kind="opposed", seed=1).columns.tolist()
    ['a', 'shortcut', 'shortcut2']
    """
    import pandas

    if kind == CLEAN:
        return X
    rng = np.random.default_rng([seed, len(NUMBER_KINDS) + list(CLASS_KINDS).index(kind)])
    strengths = draw_strengths(environments, out, kind, rng)
    if kind == "missing":
        sign = np.where(y == 0, 1.0, -1.0)
        is_missing = rng.random(len(y)) < expit(2.0 * strengths * sign - 0.5)
        value = np.round(rng.normal(size=len(y)), 2)
        return X.assign(shortcut=np.where(is_missing, np.nan, value))
    if kind == "devices":
        shown = draw_classes(y, strengths, agreement=DEVICE_AGREEMENT, rng=rng)
        devices = shown * N_DEVICES + rng.integers(N_DEVICES, size=len(y))
        return X.assign(shortcut=pandas.Categorical(name_levels("device", devices)))

    shown = draw_classes(y, strengths, agreement=AGREEMENT, rng=rng)
    planted = X.assign(shortcut=pandas.Categorical(name_levels("code", shown)))
    if kind == "opposed":
        is_training = environments != out
        opposite = np.where(is_training, 1.0 + LEAST_STRENGTH - strengths, strengths)
        second = draw_classes(y, opposite, agreement=AGREEMENT, rng=rng)
        planted["shortcut2"] = second + 0.3 * rng.normal(size=len(y))
    return planted


def draw_strengths(
    environments: NDArray[Any], out: Any, kind: str, rng: np.random.Generator
) -> Floats:
    """Return the strength of the shortcut at each row: that of its environment."""
    names, positions = np.unique(environments, return_inverse=True)
    is_training = names != out
    n_training = int(is_training.sum())
    if kind == "half":
        levels = 1.0 - np.arange(n_training) % 2
    else:
        levels = rng.permutation(np.linspace(1.0, LEAST_STRENGTH, n_training))

    strengths = np.full(len(names), -1.0)
    strengths[is_training] = levels
    return np.asarray(strengths[positions])


def draw_classes(
    y: Classes, strengths: Floats, *, agreement: float, rng: np.random.Generator
) -> Classes:
    """Return the class that a shortcut shows for each row.

    That is the row's own class, or with a negative strength the next one, with the probability
    agreement times strength; otherwise that of a row at random.
    """
    n_classes = int(y.max()) + 1
    meant = np.where(strengths >= 0, y, (y + 1) % n_classes)
    agrees = rng.random(len(y)) < agreement * np.abs(strengths)
    return np.where(agrees, meant, rng.choice(y, len(y)))


def name_levels(name: str, numbers: Classes) -> list[str]:
    """Return levels as text."""
    return [f"{name}{number}" for number in numbers]
