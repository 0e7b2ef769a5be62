"""Bad input gets one clear sentence: what was wrong, where, what to do."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from copy import copy
from functools import wraps
from numbers import Integral, Real
from typing import Any, NoReturn, TypeVar, cast

import narwhals as nw
import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.utils.multiclass import check_classification_targets, type_of_target
from sklearn.utils.validation import column_or_1d, validate_data

from icscm._constants import LARGEST_EXACT, ROW_DTYPE
from icscm.exceptions import IcscmError
from icscm.text import shorten_list

Array = NDArray[Any]


Fit = TypeVar("Fit", bound=Callable[..., Any])


def whole_or_nothing(fit: Fit) -> Fit:
    """Let a `fit` that fails leave its estimator as it was, fitted or not.

    The work is done on a copy whose state replaces the estimator's at the end.
    """

    @wraps(fit)
    def fit_whole(self: Any, *args: Any, **kwargs: Any) -> Any:
        attempt = copy(self)
        fit(attempt, *args, **kwargs)
        vars(self).clear()
        vars(self).update(vars(attempt))
        return self

    return cast(Fit, fit_whole)


class HoldsTextError(IcscmError):
    """Text where numbers were expected."""


class RoundedError(IcscmError):
    """Whole numbers that would not survive beside floats."""


def check_table(
    estimator: BaseEstimator, X: Any, *, reset: bool, allow_missing: bool = False
) -> Array:
    """X as a finite numeric array; sets or checks the number and names of its columns.

    With `allow_missing` values may be missing, and are NaN.
    """
    _check_column_types(X)
    try:
        table: Array = validate_data(
            estimator, X, reset=reset, dtype="numeric", ensure_all_finite=False
        )
    except ValueError as error:
        if "string" not in str(error):
            raise
        columns = _find_text_columns(np.asarray(X, dtype=object))
        raise HoldsTextError(
            f"X holds text in {columns}; encode it as numbers or leave it out"
        ) from None
    table = _to_supported_dtype(table, X)
    names = getattr(estimator, "feature_names_in_", None)
    _check_finite(table, names, allow_missing=allow_missing)
    return table


def check_labels(
    y: Any, n_rows: int, rows: NDArray[np.intp] | None = None
) -> tuple[NDArray[np.int64], Array]:
    """Labels as 0 and 1, and the two classes; the second is the positive one.

    `rows` are those that count, as often as they are named; None means each once.
    """
    import pandas

    if isinstance(y, pandas.Series) and isinstance(y.dtype, pandas.api.types.CategoricalDtype):
        y = np.asarray(y)
    elif isinstance(getattr(y, "dtype", None), pandas.api.extensions.ExtensionDtype):
        y = np.asarray(y, dtype=object)  # else missing values would turn integers to floats
    y = column_or_1d(y, warn=True)
    if len(y) != n_rows:
        raise IcscmError(f"y has {len(y)} entries but X has {n_rows} rows; give one per row")
    codes, found = pandas.factorize(y)
    if (codes < 0).any():
        raise IcscmError(
            f"y is missing (None or NaN) in {(codes < 0).sum()} rows, the first of them row "
            f"{int(np.argmax(codes < 0))}; drop these rows"
        )
    if rows is not None:  # a class none of whose rows counts is not there
        y = y[rows]
        codes, found = pandas.factorize(y)
    if len(found) != 2 or (found.dtype.kind == "f" and not np.isfinite(found).all()):
        _refuse_labels(y, found)
    try:
        classes = np.array(sorted(np.asarray(found).tolist()))
    except TypeError:
        raise IcscmError(
            f"y mixes labels that cannot be ordered, {found[0]!r} and {found[1]!r}; "
            "use labels of one kind"
        ) from None
    is_second = np.array([label == classes[1] for label in found], dtype=np.int64)
    return is_second[codes], classes


def _refuse_labels(y: Array, found: Array) -> NoReturn:
    if len(found) == 1:
        raise IcscmError(f"y holds one class only, {found.tolist()[0]!r}; learning needs two")
    if found.dtype.kind == "f" and not np.isfinite(found).all():
        raise IcscmError("y contains infinity; labels must be two distinct finite values")
    check_classification_targets(y)
    raise IcscmError(
        "Only binary classification is supported. The type of the target is "
        f"{type_of_target(y)} with {len(found)} classes; merge them into two, or fit one model "
        "per class"
    )


def check_weights(
    weights: Any, n_features: int, names: Sequence[str] | None
) -> NDArray[np.float64] | None:
    """Feature weights as an array; a mapping gives them by name, 1 where it is silent."""
    if weights is None:
        return None
    if hasattr(weights, "index") and hasattr(weights, "items"):  # a pandas Series
        weights = dict(weights.items())
    if isinstance(weights, Mapping):
        known = {name: i for i, name in enumerate(range(n_features) if names is None else names)}
        unknown = [name for name in weights if name not in known]
        if unknown:
            raise IcscmError(
                f"feature_weights names features that X does not have: {_list(unknown)}"
            )
        full = np.ones(n_features)
        full[[known[name] for name in weights]] = _read_numbers(list(weights.values()))
        weights = full
    numbers = _read_numbers(weights)
    if numbers.shape != (n_features,):
        raise IcscmError(
            f"feature_weights must hold one weight for each of the {n_features} features, "
            f"got shape {numbers.shape}"
        )
    if not (np.isfinite(numbers) & (numbers >= 0)).all():
        raise IcscmError("feature_weights must be finite and not negative (0 excludes a feature)")
    return numbers


def _read_numbers(weights: Any) -> NDArray[np.float64]:
    try:
        return np.asarray(weights, dtype=np.float64)
    except (TypeError, ValueError):
        raise IcscmError(f"feature_weights must be numbers; got {weights!r}") from None


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
    most = np.iinfo(ROW_DTYPE).max
    if numbers.sum() > most:
        raise IcscmError(
            f"sample_weight adds up to {numbers.sum():.3g} samples; {most:,} are the most"
        )
    if (numbers == 1).all():
        return None
    return np.repeat(np.arange(n_rows), numbers.astype(np.int64))


def _to_numbers(values: Array) -> NDArray[np.float64]:
    """As floats; NaN throughout where they are no numbers, text that looks like some included."""
    if values.dtype.kind in "biufO":
        try:
            return values.astype(np.float64)
        except (TypeError, ValueError):
            pass
    return np.full(values.shape, np.nan)


# A parameter's allowed values in words, and the check.
Allowed = tuple[str, Callable[[Any], bool]]


def one_of(*choices: Any) -> Allowed:
    """Any of a few words."""
    return f"one of {', '.join(map(repr, choices))}", lambda value: any(
        value is choice or (isinstance(value, str) and value == choice) for choice in choices
    )


def whole_number(least: int, *, most: float = np.inf, or_none: bool = False) -> Allowed:
    """An integer with bounds."""
    bounds = f"of at least {least}" if most == np.inf else f"from {least} to {most}"
    return (
        f"a whole number {bounds}{' or None' * or_none}",
        lambda value: (
            (or_none and value is None) or (_is_integer(value) and least <= value <= most)
        ),
    )


POSITIVE_NUMBER: Allowed = (
    "a finite number greater than 0",
    lambda value: _is_real(value) and 0 < value < np.inf,
)
LEVEL: Allowed = (
    "a number between 0 and 1, both excluded",
    lambda value: _is_real(value) and 0 < value < 1,
)
LEVEL_OR_AUTO: Allowed = (
    f"{LEVEL[0]}, or 'auto'",
    lambda value: (isinstance(value, str) and value == "auto") or LEVEL[1](value),
)
MAJORITY: Allowed = (
    "a number above 0.5 and at most 1",
    lambda value: _is_real(value) and 0.5 < value <= 1,
)
NAMES_OR_ALL: Allowed = (
    "None, 'all', a column or several columns",
    lambda value: (
        value is None or (isinstance(value, Iterable) and not isinstance(value, bytes | Mapping))
    ),
)
BOOLEAN: Allowed = ("True or False", lambda value: isinstance(value, bool | np.bool_))
N_JOBS: Allowed = (
    "None, or a whole number other than 0",
    lambda value: value is None or (_is_integer(value) and value != 0),
)


def check_parameters(estimator: BaseEstimator, allowed: Mapping[str, Allowed]) -> None:
    """Raise for the first parameter whose value is not allowed."""
    for name, rule in allowed.items():
        check_value(name, getattr(estimator, name), rule)


def check_value(name: str, value: Any, allowed: Allowed) -> None:
    """Raise unless the value is allowed."""
    description, is_allowed = allowed
    if not is_allowed(value):
        raise IcscmError(f"{name} must be {description}; got {value!r}")


def check_matplotlib() -> None:
    """Figures need an optional package: say so before an hour of work, not after."""
    try:
        import matplotlib  # noqa: F401
    except ImportError:
        raise IcscmError(
            "figures need matplotlib; install it with: pip install 'icscm[plot]'"
        ) from None


def _is_integer(value: Any) -> bool:
    return isinstance(value, Integral) and not isinstance(value, bool)


def _is_real(value: Any) -> bool:
    return isinstance(value, Real) and not isinstance(value, bool)


def _check_column_types(X: Any) -> None:
    """Name the columns of a frame that are not numbers or booleans."""
    if not nw.dependencies.is_into_dataframe(X):
        return
    schema = nw.from_native(X).schema
    wrong = [
        f"{name!r} ({dtype})"
        for name, dtype in schema.items()
        if not (dtype.is_numeric() or dtype == nw.Boolean)
    ]
    if wrong:
        raise HoldsTextError(
            f"X has columns that are neither numbers nor booleans: {_list(wrong, quote=False)}; "
            "encode them as numbers or leave them out"
        )


def _find_text_columns(X: Array) -> str:
    """Name the columns of an array that cannot be read as numbers."""

    def is_number(value: Any) -> bool:
        try:
            float(value)
        except ValueError:
            return False
        return True

    columns = [j for j in range(X.shape[1]) if not all(map(is_number, X[:, j]))]
    return f"{_plural(len(columns), 'column')} {_list(columns)}" if columns else "all columns"


def _to_supported_dtype(table: Array, X: Any) -> Array:
    """What the engine can read: booleans as bytes, floats of 32 or 64 bits, native byte order."""
    if table.dtype.kind == "O":
        table = _read_objects(table)
    if table.dtype.kind not in "biuf":
        raise IcscmError(f"X is of type {table.dtype}; give numbers or booleans")
    if not table.dtype.isnative:
        table = table.astype(table.dtype.newbyteorder("="))
    if table.dtype.kind == "b":
        return table.view(np.uint8)
    if table.dtype.kind == "f" and table.dtype not in (np.float32, np.float64):
        return table.astype(np.float32 if table.dtype == np.float16 else np.float64)
    _check_not_rounded(table, X)
    return table


def _read_objects(table: Array) -> Array:
    """Objects that are numbers, such as decimals, or missing; None becomes NaN."""
    try:
        return table.astype(np.float64)
    except (TypeError, ValueError, OverflowError):
        raise IcscmError("X holds objects that float64 cannot hold; give plain numbers") from None


def _check_not_rounded(table: Array, X: Any) -> None:
    """Beside a column of floats, integers become floats: refuse those that would be rounded."""
    if table.dtype.kind != "f" or not nw.dependencies.is_into_dataframe(X):
        return
    frame = nw.from_native(X)
    integers = [name for name, dtype in frame.schema.items() if dtype.is_integer()]
    positions = [j for j, name in enumerate(frame.columns) if name in set(integers)]
    large = [j for j in positions if (np.abs(table[:, j]) >= LARGEST_EXACT).any()]  # NaN is not
    if large:
        raise RoundedError(
            f"X holds integers beyond 2**53 in {_plural(len(large), 'column')} "
            f"{_list([frame.columns[j] for j in large])}, which would be rounded beside columns of "
            "floats; rescale them, or give all columns as integers"
        )


def _check_finite(table: Array, names: Sequence[str] | None, *, allow_missing: bool) -> None:
    # a sum is the fastest look for what is not finite; overflow makes it cry wolf, no more
    with np.errstate(over="ignore", invalid="ignore"):
        if table.dtype.kind != "f" or np.isfinite(np.sum(table)):
            return
    is_bad = np.isinf if allow_missing else lambda values: ~np.isfinite(values)
    bad = np.flatnonzero([is_bad(table[:, j]).any() for j in range(table.shape[1])])
    if len(bad):
        has_nan = not allow_missing and bool(np.isnan(table[:, bad]).any())
        columns = [j if names is None else names[j] for j in bad.tolist()]
        raise IcscmError(
            f"X contains {'NaN' if has_nan else 'infinity'} in {_plural(len(bad), 'column')} "
            f"{_list(columns)}; fill in or drop these values"
        )


def _plural(n: int, noun: str) -> str:
    return noun if n == 1 else f"{n} {noun}s:"


def _list(items: Sequence[Any], *, quote: bool = True) -> str:
    return shorten_list([repr(item) if quote else str(item) for item in items])
