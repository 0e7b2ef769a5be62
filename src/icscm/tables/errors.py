"""Error messages about tables, the same for every source."""

from collections.abc import Sequence
from numbers import Real
from typing import Any

import numpy as np

from icscm._constants import FEW_ROWS, MANY_NUMBERS
from icscm._types import Array
from icscm.exceptions import IcscmError, Parameter
from icscm.formatting import shorten_list


class RoundedError(IcscmError):
    """Raised for whole numbers that conversion to float would round."""


def name_columns(columns: Sequence[int], names: Sequence[Any] | None) -> str:
    """Name columns in a message: by name, or by position where there are no names.

    >>> name_columns([0, 2], ["age", "sex", "dose"]), name_columns([1], None)
    ("columns 'age', 'dose'", 'column 1')
    """
    listed = [repr(column if names is None else names[column]) for column in columns]
    noun = "columns" if len(listed) > 1 else "column"
    return f"{noun} {shorten_list(listed)}"


def make_infinity_error(columns: str, what: str = "infinity") -> IcscmError:
    """Make the error for values that are not finite."""
    return IcscmError(
        Parameter("X"), f" contains {what} in {columns}; fill in or drop these values"
    )


def reject_infinity(
    table: Array, names: Sequence[Any] | None, *, allow_missing: bool = True
) -> None:
    """Raise if any value of an array is infinite, or missing where that is not allowed."""
    rejected = []
    has_nan = False
    for position in range(table.shape[1]):  # a column at a time takes little memory
        column = table[:, position]
        column_has_nan = not allow_missing and bool(np.isnan(column).any())
        if column_has_nan or np.isinf(column).any():
            rejected.append(position)
        has_nan |= column_has_nan
    if rejected:
        what = "NaN" if has_nan else "infinity"
        raise make_infinity_error(name_columns(rejected, names), what)


def make_rounded_error(columns: str) -> RoundedError:
    """Make the error for whole numbers that float64 would round."""
    return RoundedError(
        Parameter("X"),
        f" holds integers beyond 2**53 in {columns}, which would be rounded, since other columns "
        "are of other types; rescale them, drop them, or give them as text",
    )


def make_missing_error(what: str, where: str, *, is_label: bool) -> IcscmError:
    """Make the error for missing outcomes or environments; only the latter may be a group."""
    advice = "drop these rows" if is_label else "drop these rows or give them their own label"
    return IcscmError(f"{what} is missing (None or NaN) in {where}; {advice}")


def describe_many(labels: Sequence[Any], sizes: Sequence[int], *, max_environments: int) -> str:
    """Return advice on environments that may be a measurement, or are many with few rows each.

    More than `max_environments` are many. The text is empty where there is nothing to say.
    """
    n_environments = len(labels)
    median_size = sorted(sizes)[n_environments // 2]
    if n_environments > MANY_NUMBERS and all(isinstance(label, Real) for label in labels):
        return (
            f"The {n_environments:,} environments are numbers: if they are a measurement, such as "
            "age, use ranges."
        )
    if n_environments > max_environments and median_size < FEW_ROWS:
        return (
            f"Group the {n_environments:,} environments, for example by region: half of them have "
            f"{median_size} rows or fewer, which gives the tests little power."
        )
    return ""
