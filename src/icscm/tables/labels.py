"""Labels and the weights of rows, checked and made uniform."""

from __future__ import annotations

from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.multiclass import check_classification_targets, type_of_target
from sklearn.utils.validation import column_or_1d

from icscm._constants import ROW_DTYPE
from icscm._types import Array, FloatArray, IntArray
from icscm.exceptions import IcscmError
from icscm.formatting import shorten_list
from icscm.tables.errors import make_missing_error, make_unhashable_error

# Rows from which on it pays to look for small whole numbers, and how many of these are few.
_MANY_ROWS = 2**16
_FEW_GROUPS = 2**7


def check_labels(
    y: Any, n_rows: int, rows: NDArray[np.intp] | None = None
) -> tuple[IntArray, Array]:
    """Labels as 0 and 1, and the two classes, of y's type; the second is the positive one.

    `rows` are those that count, as often as they are named; None means each once.
    """
    import pandas

    dtype = find_plain_dtype(y)
    if isinstance(y, pandas.Series) and isinstance(y.dtype, pandas.api.types.CategoricalDtype):
        y = np.asarray(y)
    elif isinstance(getattr(y, "dtype", None), pandas.api.extensions.ExtensionDtype):
        y = np.asarray(y, dtype=object)  # else missing values would turn integers to floats
    if not isinstance(y, np.ndarray) or y.ndim != 1 or y.dtype.kind not in "biuf":
        y = column_or_1d(y, warn=True)
    codes, found = number_groups(y, n_rows, rows, "y")
    if len(found) != 2 or (found.dtype.kind == "f" and not np.isfinite(found).all()):
        _reject_labels(y if rows is None else y[rows], found)
    try:
        classes = np.sort(np.asarray(found))
    except TypeError:
        raise IcscmError(
            f"y mixes labels that cannot be ordered, {found[0]!r} and {found[1]!r}; "
            "use labels of one kind"
        ) from None
    is_second = np.array([label == classes[1] for label in found], dtype=np.int64)
    return is_second[codes], classes if dtype is None else classes.astype(dtype)


def number_groups(
    values: Any, n_rows: int, rows: NDArray[np.intp] | None, what: str
) -> tuple[NDArray[np.intp], Any]:
    """The number of each row's label or environment, and what each number stands for.

    They count from 0 as they turn up, or by value where many rows hold few small whole numbers.
    What none of the `rows` that count has is not there.
    """
    import pandas

    if len(values) != n_rows:
        counts = f"{what} has {len(values)} entries but X has {n_rows} rows"
        raise IcscmError(f"{counts}; give one per row")
    if rows is None and n_rows >= _MANY_ROWS and is_whole(values):
        numbered = _number_by_value(values)
        if numbered is not None:
            return numbered
    try:
        codes, found = pandas.factorize(values)
    except TypeError:
        raise make_unhashable_error(what) from None
    if (codes < 0).any():
        where = f"{(codes < 0).sum()} rows, the first of them row {int(np.argmax(codes < 0))}"
        raise make_missing_error(what, where, is_label=what == "y")
    return (codes, found) if rows is None else pandas.factorize(values[rows])


def is_whole(values: Any) -> bool:
    """Whether it is an array of whole numbers or booleans, by its type."""
    return isinstance(values, np.ndarray) and values.dtype.kind in "biu"


def _number_by_value(values: Array) -> tuple[NDArray[np.intp], Array] | None:
    """As `number_groups`, in half the time; None if there may be many groups."""
    lowest, highest = int(values.min()), int(values.max())
    if highest - lowest >= _FEW_GROUPS:
        return None
    plain = values.view(np.uint8) if values.dtype.kind == "b" else values
    above = (plain - plain.dtype.type(lowest)).astype(np.uint8, copy=False)
    is_there = np.bincount(above, minlength=1) > 0
    found = np.flatnonzero(is_there)
    number = np.cumsum(is_there) - 1
    return number.take(above), (found + lowest).astype(values.dtype)


def find_plain_dtype(values: Any) -> np.dtype[Any] | None:
    """NumPy's type for labels of NumPy, pandas or Dask; None where they have another."""
    dtype = getattr(values, "dtype", None)
    return getattr(dtype, "numpy_dtype", dtype if isinstance(dtype, np.dtype) else None)


def _reject_labels(y: Array, found: Array) -> NoReturn:
    if len(found) == 1:
        raise IcscmError(f"y holds one class only, {found.tolist()[0]!r}; learning needs two")
    if found.dtype.kind == "f" and not np.isfinite(found).all():
        raise IcscmError("y contains infinity; labels must be two distinct finite values")
    check_classification_targets(y)
    listed = shorten_list([repr(label) for label in found.tolist()])
    raise IcscmError(
        "Only binary classification is supported. The type of the target is "
        f"{type_of_target(y)} with {len(found)} classes ({listed}); merge them into two, such as "
        f"y == {found.tolist()[0]!r}, or fit one model per class"
    )


def check_known(y: Any, classes: Array) -> None:
    """Raise for labels that a model has never seen: all of them would count as errors."""
    import pandas

    found = pandas.unique(np.asarray(y, dtype=object).ravel()).tolist()
    unknown = [repr(label) for label in found if label not in classes.tolist()]
    if unknown:
        known = " and ".join(map(repr, classes.tolist()))
        raise IcscmError(
            f"y holds {shorten_list(unknown)}, which the model never saw; it tells {known} apart: "
            "give labels of these classes"
        )


def find_counted_rows(sample_weight: Any, n_rows: int) -> NDArray[np.intp] | None:
    """The rows that count, each as often as its weight says; None when each counts once.

    >>> find_counted_rows([2, 0, 1], n_rows=3)
    array([0, 0, 2])
    """
    if sample_weight is None:
        return None
    weights = np.asarray(sample_weight)
    if weights.shape != (n_rows,):
        raise IcscmError(
            f"sample_weight must hold one weight for each of the {n_rows} rows of X, got "
            f"shape {weights.shape}"
        )
    numbers = _to_numbers(weights)
    wrong = ~(np.isfinite(numbers) & (numbers >= 0) & (numbers == np.floor(numbers)))
    if wrong.any():
        first = int(np.argmax(wrong))
        raise IcscmError(
            "sample_weight must hold whole numbers, 0 or more, since a weight is how often a row "
            f"counts; got {weights.tolist()[first]!r} in row {first}"
        )
    if not numbers.any():
        raise IcscmError("sample_weight is zero in every row; learning needs rows that count")
    total, most = numbers.sum(), np.iinfo(ROW_DTYPE).max
    if total > most:
        raise IcscmError(f"sample_weight adds up to {total:.3g} samples; {most:,} are the most")
    if (numbers == 1).all():
        return None
    return np.repeat(np.arange(n_rows), numbers.astype(np.int64))


def _to_numbers(values: Array) -> FloatArray:
    """As floats; NaN throughout where they are no numbers, text that looks like some included."""
    if values.dtype.kind in "biufO":
        try:
            return values.astype(np.float64)
        except (TypeError, ValueError):
            pass
    return np.full(values.shape, np.nan)
