"""Shortcuts planted in a table: columns that predict the label in the training environments only.

A shortcut agrees with the label in environment e with probability q_e, and is otherwise drawn at
random with the label's rate; in the environment left out it is reversed. Numeric ones are normal
numbers, shifted by the label. `paper.blind_shortcuts` has six more, which were devised without
knowledge of the method.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from paper.blind_shortcuts import BLIND, plant_blind

if TYPE_CHECKING:
    import pandas

# Agreement in the first and the last environment, and of a shortcut that half of them have.
MOST = 0.98
LEAST = 0.55
HALF = 0.9

# The kinds of shortcut.
SHORTCUTS = {
    "clean": "nothing is planted",
    "one": f"q_e evenly from {MOST} to {LEAST} over the environments in their order",
    "two": "a second one, with q_e in the opposite order",
    "category": "a level of a category, three others at random where the shortcut is absent",
    "half": f"q_e = {HALF} in every second environment, 0 in the others",
    "missing": "as one, and missing in every second environment",
}
COLUMNS = ("shortcut", "shortcut2")
# Numeric kinds: the shift by the label in the first and the last environment.
SHIFTS = {"numeric": (2.0, 0.2), "faint": (0.8, 0.0)}
# With those: all kinds.
KINDS = {
    **SHORTCUTS,
    **{
        kind: f"a normal number shifted by {first:g} to {last:g}"
        for kind, (first, last) in SHIFTS.items()
    },
    **BLIND,
}


def plant(
    X: pandas.DataFrame, y: NDArray[np.int64], environments: NDArray[Any], out: Any, kind: str,
    seed: int,
) -> pandas.DataFrame:  # fmt: skip
    """The table with shortcuts of that kind, which are reversed in environment `out`.

    >>> import pandas
    >>> X, y = pandas.DataFrame({"a": range(8)}), np.arange(8) % 2
    >>> planted = plant(X, y, np.repeat(["n", "s"], 4), "s", "one", 1)
    >>> planted["shortcut"].tolist()
    [0, 1, 0, 1, 1, 0, 1, 0]
    """
    import pandas

    if kind == "clean":
        return X
    if kind in BLIND:
        return plant_blind(X, y, environments, out, kind, seed)
    if kind in SHIFTS:
        return X.assign(shortcut=_shift(y, environments, out, SHIFTS[kind], seed))
    rng = np.random.default_rng(seed)
    inside = [name for name in np.unique(environments) if name != out]
    agreement = _grade_agreement(inside, out, kind)
    shortcut = _draw_binary(y, environments, out, agreement, rng)
    if kind == "category":
        other_levels = rng.choice(["a", "b", "c"], len(y))
        levels = np.where(shortcut == 1, "h", other_levels)
        return X.assign(shortcut=pandas.Categorical(levels))
    if kind == "missing":
        is_missing = np.isin(environments, inside[1::2])
        return X.assign(shortcut=np.where(is_missing, np.nan, shortcut))
    if kind == "two":
        backwards = [agreement[name] for name in reversed(inside)]
        opposite = dict(zip(inside, backwards, strict=True)) | {out: agreement[out]}
        second = _draw_binary(y, environments, out, opposite, rng)
        return X.assign(shortcut=shortcut, shortcut2=second)
    return X.assign(shortcut=shortcut)


def _grade_agreement(inside: Sequence[Any], out: Any, kind: str) -> dict[Any, float]:
    """The probability q_e of each environment with which a shortcut agrees with the label."""
    if kind == "half":
        return {name: HALF * (number % 2) for number, name in enumerate(inside)} | {out: HALF}
    grades = np.linspace(MOST, LEAST, len(inside))
    return dict(zip(inside, grades, strict=True)) | {out: MOST}


def _draw_binary(
    y: NDArray[np.int64],
    environments: NDArray[Any],
    out: Any,
    agreement: Mapping[Any, float],
    rng: np.random.Generator,
) -> NDArray[np.int64]:
    """The label with its environment's probability, otherwise a draw with the label's rate.

    It is reversed in environment `out`.
    """
    q = np.array([agreement[name] for name in environments])
    coin = rng.random(len(y)) < y.mean()
    agrees = rng.random(len(y)) < q
    shortcut = np.where(agrees, y, coin).astype(np.int64)
    return np.where(environments == out, 1 - shortcut, shortcut)


def _shift(
    y: NDArray[np.int64], environments: NDArray[Any], out: Any, between: tuple[float, float],
    seed: int,
) -> NDArray[np.float64]:  # fmt: skip
    """Normal numbers whose mean differs by label, less from environment to environment."""
    inside = [name for name in np.unique(environments) if name != out]
    graded = np.linspace(*between, len(inside))
    shift_of = dict(zip(inside, graded, strict=True)) | {out: -between[0]}
    shift: NDArray[np.float64] = np.array([shift_of[name] for name in environments])
    noise: NDArray[np.float64] = np.random.default_rng(seed).normal(size=len(y))
    return np.asarray(noise + shift * (y - 0.5), dtype=np.float64)
