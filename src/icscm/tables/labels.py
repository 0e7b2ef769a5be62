"""Labels of rows: from any two classes to 0 and 1."""

from __future__ import annotations

from typing import Any, Final, NoReturn

import numpy as np

from icscm._lazy import multiclass, validation
from icscm._types import Array, IntArray
from icscm.exceptions import IcscmError, Parameter, reject_unknown
from icscm.formatting import shorten_list
from icscm.tables.errors import make_missing_error

# What an error adds where an outcome may be several classes, or a number.
ADVICE_ON_OTHER_OUTCOMES: Final = (
    "; models predict two classes, and only ",
    Parameter("InvariantFeatureSelector"),
    " takes several classes and numbers",
)


def check_labels(y: Any, n_rows: int, rows: Array | None = None) -> tuple[IntArray, Array]:
    """Return labels as 0 and 1, and the two classes, of y's type; the second is the positive one.

    Classes are in the order of the labels, whichever comes first in y. `rows` are those that count,
    as often as they are named; None means each once.
    """
    values = as_one_dimensional(y)
    codes, distinct = number_groups(values, n_rows, rows, "y")
    if len(distinct) != 2 or _has_infinity(distinct):
        _reject_labels(values if rows is None else values[rows], distinct)
    try:
        classes = np.sort(np.asarray(distinct))
    except TypeError:
        raise IcscmError(
            f"y mixes labels that cannot be ordered, {distinct[0]!r} and {distinct[1]!r}; use "
            "labels of one kind"
        ) from None

    # values were numbered as they occurred, and get the numbers of their classes
    is_second = np.array([label == classes[1] for label in distinct], dtype=np.int64)
    dtype = find_plain_dtype(y)
    return is_second[codes], classes if dtype is None else classes.astype(dtype)


def as_one_dimensional(y: Any) -> Array:
    """Return labels as an array that `pandas.factorize` takes."""
    import pandas

    values = y
    dtype = getattr(y, "dtype", None)
    if isinstance(y, pandas.Series) and isinstance(dtype, pandas.api.types.CategoricalDtype):
        values = np.asarray(y)
    elif isinstance(dtype, pandas.api.extensions.ExtensionDtype):
        values = np.asarray(y, dtype=object)  # else missing values would turn integers to floats
    is_plain = isinstance(values, np.ndarray) and values.ndim == 1 and values.dtype.kind in "biuf"
    array: Array = values if is_plain else validation.column_or_1d(values, warn=True)
    return array


def _reject_labels(y: Array, distinct: Array) -> NoReturn:
    """Raise an error that says what is wrong with labels that are not two classes."""
    labels = distinct.tolist()
    if len(labels) < 2:
        what = f"one class only, {labels[0]!r}" if labels else "no class"
        raise IcscmError(f"y holds {what}; learning needs two")
    if _has_infinity(distinct):
        raise IcscmError("y contains infinity; labels must be two distinct finite values")
    if multiclass.type_of_target(y).startswith("continuous"):
        raise IcscmError(
            "Unknown label type: continuous, since y holds numbers with decimals; two classes are "
            "needed: make them of it, such as y > 10, or screen its columns with ",
            Parameter("InvariantFeatureSelector"),
            ", which takes numbers",
        )
    multiclass.check_classification_targets(y)
    listed = shorten_list([repr(label) for label in labels])
    raise IcscmError(
        "Only binary classification is supported. The type of the target is "
        f"{multiclass.type_of_target(y)} with {len(labels)} classes ({listed}); merge them into "
        f"two, such as y == {labels[0]!r}, or fit one model per class; for a screen of columns, "
        "which takes several classes and numbers, use ",
        Parameter("InvariantFeatureSelector"),
    )


def _has_infinity(labels: Array) -> bool:
    return labels.dtype.kind == "f" and not np.isfinite(labels).all()


def code_known(y: Any, classes: Array) -> IntArray:
    """Return labels as 0 and 1; raises for labels that are not classes of the model.

    Each distinct label is looked up once: `codes` has the number of each row's among them.
    """
    import pandas

    codes, distinct = pandas.factorize(np.asarray(y).ravel(), use_na_sentinel=False)

    # As lists of objects: in an array, NumPy's dates would become whole numbers.
    labels = pandas.Series(distinct, dtype=object).tolist()
    known = pandas.Series(classes, dtype=object).tolist()
    listed = " and ".join(map(repr, known))
    advice = f", not among the classes of the model, {listed}; give labels of these classes"
    after = (advice, *ADVICE_ON_OTHER_OUTCOMES) if len(labels) > 2 else (advice,)
    reject_unknown(labels, known, "y holds ", after=after)

    class_of_code = np.array([known.index(label) for label in labels], dtype=np.int64)
    return np.asarray(class_of_code[codes])


def find_series_names(target: Any = None, environments: Any = None) -> dict[str, str | None]:
    """Return the names of the columns of outcomes and environments; a text is itself a name."""
    names: dict[str, str | None] = {}
    for role, column in (("target", target), ("environment", environments)):
        name = column if isinstance(column, str) else getattr(column, "name", None)
        names[role] = name if isinstance(name, str) and name else None
    return names


# --- labels of any kind, also of environments ----------------------------------------------------


def number_groups(values: Any, n_rows: int, rows: Array | None, what: str) -> tuple[Array, Any]:
    """Return the number of each row's label or environment, and what each number stands for.

    Numbers are in any order. Values that occur only outside the `rows` that count are omitted.
    """
    if len(values) != n_rows:
        raise IcscmError(
            f"{what} has {len(values)} entries but X has {n_rows} rows; give one per row"
        )
    codes, distinct = factorize(values, what)
    is_missing = codes < 0
    if is_missing.any():
        where = f"{is_missing.sum()} rows, the first of them row {int(np.argmax(is_missing))}"
        raise make_missing_error(what, where, is_label=what == "y")
    return (codes, distinct) if rows is None else factorize(values[rows], what)


def factorize(values: Any, what: str) -> tuple[Array, Any]:
    """Return the number of each value and what each number stands for; -1 is a missing value."""
    import pandas

    try:
        return pandas.factorize(values)  # type: ignore[no-any-return]
    except TypeError:
        raise IcscmError(
            f"{what} holds labels that are not hashable, such as lists; use text instead"
        ) from None


def find_plain_dtype(values: Any) -> np.dtype[Any] | None:
    """Return NumPy's type for labels of NumPy, pandas or Dask; None where they have another."""
    dtype = getattr(values, "dtype", None)
    if isinstance(dtype, np.dtype):
        return dtype
    return getattr(dtype, "numpy_dtype", None)
