"""Habits planted in a table: columns that tell the label where one learns, and mislead elsewhere.

A habit agrees with the label in environment e with probability q_e, and is a coin of the label's
rate otherwise; in the environment left out it is reversed.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    import pandas

# Agreement in the first and the last of the environments, and of a habit that only half of them
# have.
MOST, LEAST, HALF = 0.98, 0.55, 0.9

# What each kind plants.
HABITS = {
    "clean": "nothing is planted",
    "one": f"q_e evenly from {MOST} to {LEAST} over the environments in their order",
    "two": "a second one, with q_e in the opposite order",
    "category": "a level of a category, three others at random where the habit is absent",
    "half": f"q_e = {HALF} in every second environment, 0 in the others",
    "missing": "as one, and missing in every second environment",
}
COLUMNS = ("habit", "habit2")


def plant(
    X: pandas.DataFrame, y: NDArray[np.int64], environments: NDArray[Any], out: Any, kind: str,
    seed: int,
) -> pandas.DataFrame:  # fmt: skip
    """The table with the habits of that kind, which turn against their user in environment `out`.

    >>> import pandas
    >>> X, y = pandas.DataFrame({"a": range(8)}), np.arange(8) % 2
    >>> planted = plant(X, y, np.repeat(["n", "s"], 4), "s", "one", 1)
    >>> planted["habit"].tolist()
    [0, 1, 0, 1, 1, 0, 1, 0]
    """
    import pandas

    if kind == "clean":
        return X
    inside = [each for each in np.unique(environments) if each != out]
    q = dict(zip(inside, np.linspace(MOST, LEAST, len(inside)), strict=True)) | {out: MOST}
    if kind == "half":
        q = {each: HALF * (i % 2) for i, each in enumerate(inside)} | {out: HALF}
    rng = np.random.default_rng(seed)
    is_out, habit = environments == out, _agree(y, [q[each] for each in environments], rng)
    habit = np.where(is_out, 1 - habit, habit)
    if kind == "category":
        others = rng.choice(["a", "b", "c"], len(y))
        return X.assign(habit=pandas.Categorical(np.where(habit == 1, "h", others)))
    if kind == "missing":
        return X.assign(habit=np.where(np.isin(environments, inside[1::2]), np.nan, habit))
    if kind == "two":
        q |= dict(zip(reversed(inside), [q[each] for each in inside], strict=True))
        second = _agree(y, [q[each] for each in environments], rng)
        return X.assign(habit=habit, habit2=np.where(is_out, 1 - second, second))
    return X.assign(habit=habit)


def _agree(y: NDArray[np.int64], q: Sequence[float], rng: np.random.Generator) -> NDArray[np.int64]:
    """The label with probability q, else a coin of its rate."""
    coin = rng.random(len(y)) < y.mean()
    return np.where(rng.random(len(y)) < np.array(q), y, coin).astype(np.int64)
