"""Shortcuts planted in a table: columns that predict the label in the training environments only.

A shortcut agrees with the label in environment e with probability q_e, and is otherwise drawn at
random with the label's rate; in the environment left out it is reversed. Numeric ones are normal
numbers, shifted by the label. `paper.blind_shortcuts` has six more, which were devised without
knowledge of the method.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from paper.blind_shortcuts import BLIND, plant_blind

if TYPE_CHECKING:
    import pandas

# Agreement in the first and the last environment, and of a shortcut that half of them have.
MOST, LEAST, HALF = 0.98, 0.55, 0.9

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
    **{kind: f"a normal number shifted by {a:g} to {b:g}" for kind, (a, b) in SHIFTS.items()},
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
    inside = [each for each in np.unique(environments) if each != out]
    q = dict(zip(inside, np.linspace(MOST, LEAST, len(inside)), strict=True)) | {out: MOST}
    if kind == "half":
        q = {each: HALF * (i % 2) for i, each in enumerate(inside)} | {out: HALF}
    rng = np.random.default_rng(seed)
    is_out, shortcut = environments == out, _agree(y, [q[each] for each in environments], rng)
    shortcut = np.where(is_out, 1 - shortcut, shortcut)
    if kind == "category":
        others = rng.choice(["a", "b", "c"], len(y))
        return X.assign(shortcut=pandas.Categorical(np.where(shortcut == 1, "h", others)))
    if kind == "missing":
        return X.assign(shortcut=np.where(np.isin(environments, inside[1::2]), np.nan, shortcut))
    if kind == "two":
        q |= dict(zip(reversed(inside), [q[each] for each in inside], strict=True))
        second = _agree(y, [q[each] for each in environments], rng)
        return X.assign(shortcut=shortcut, shortcut2=np.where(is_out, 1 - second, second))
    return X.assign(shortcut=shortcut)


def _agree(y: NDArray[np.int64], q: Sequence[float], rng: np.random.Generator) -> NDArray[np.int64]:
    """The label with probability q, otherwise a draw with the label's rate."""
    coin = rng.random(len(y)) < y.mean()
    return np.where(rng.random(len(y)) < np.array(q), y, coin).astype(np.int64)


def _shift(
    y: NDArray[np.int64], environments: NDArray[Any], out: Any, between: tuple[float, float],
    seed: int,
) -> NDArray[np.float64]:  # fmt: skip
    """Normal numbers whose mean differs by label, less from environment to environment."""
    inside = [each for each in np.unique(environments) if each != out]
    shifts = dict(zip(inside, np.linspace(*between, len(inside)), strict=True)) | {out: -between[0]}
    shift: NDArray[np.float64] = np.array([shifts[each] for each in environments])
    noise: NDArray[np.float64] = np.random.default_rng(seed).normal(size=len(y))
    return np.asarray(noise + shift * (y - 0.5), dtype=np.float64)
