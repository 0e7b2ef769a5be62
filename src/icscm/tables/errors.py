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
    """Columns in error messages: by name, or by position where there are no names.

    >>> name_columns([0, 2], ["age", "sex", "dose"]), name_columns([1], None)
    ("columns 'age', 'dose'", 'column 1')
    """
    listed = [repr(j if names is None else names[j]) for j in columns]
    return f"column{'s' * (len(listed) > 1)} {shorten_list(listed)}"


def make_infinity_error(columns: str, what: str = "infinity") -> IcscmError:
    """Values that are not finite."""
    why = f" contains {what} in {columns}; fill in or drop these values"
    return IcscmError(Parameter("X"), why)


def reject_infinity(
    table: Array, names: Sequence[Any] | None, *, allow_missing: bool = True
) -> None:
    """Raise if any value of an array is infinite, or missing where that is not allowed."""
    is_bad = np.isinf if allow_missing else lambda values: ~np.isfinite(values)
    bad = np.flatnonzero([is_bad(table[:, j]).any() for j in range(table.shape[1])])
    if len(bad):
        has_nan = not allow_missing and bool(np.isnan(table[:, bad]).any())
        columns = name_columns(bad.tolist(), names)
        raise make_infinity_error(columns, "NaN" if has_nan else "infinity")


def make_rounded_error(columns: str) -> RoundedError:
    """Whole numbers that float64 would round."""
    why = f" holds integers beyond 2**53 in {columns}, which would be rounded, since other columns "
    advice = "are of other types; rescale them, drop them, or give them as text"
    return RoundedError(Parameter("X"), why, advice)


def make_missing_error(what: str, where: str, *, is_label: bool) -> IcscmError:
    """Missing labels, or environments."""
    advice = "" if is_label else " or give them their own label"
    return IcscmError(f"{what} is missing (None or NaN) in {where}; drop these rows{advice}")


def describe_many(labels: Sequence[Any], sizes: Sequence[int], most: int) -> str:
    """Advice on environments that may be a measurement, or are many with few samples each."""
    n, median = len(labels), sorted(sizes)[len(sizes) // 2]
    if n > MANY_NUMBERS and all(isinstance(each, Real) for each in labels):
        why = "if they are a measurement, such as age, use ranges"
        return f"The {n:,} environments are numbers: {why}."
    if n > most and median < FEW_ROWS:
        why = f"half of them have {median} rows or fewer, which gives the tests little power"
        return f"Group the {n:,} environments, for example by region: {why}."
    return ""
