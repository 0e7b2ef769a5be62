"""Labels, environments and weights of rows: from any hashable values to numbers and names."""

from collections.abc import Sequence
from contextlib import suppress
from datetime import date
from numbers import Real
from typing import Any, NoReturn

import numpy as np

from icscm import exceptions
from icscm._constants import JOINT, LARGEST_EXACT, MANY_ENVIRONMENTS, SPARSE_ENVIRONMENT
from icscm._lazy import multiclass, nw, validation
from icscm._types import Array, CountArray, FloatArray, IntArray
from icscm.exceptions import IcscmError, reject_unknown, warn
from icscm.formatting import count, format_number, shorten_list
from icscm.tables.columns import count_rows, is_dask, is_frame, list_names, open_frame
from icscm.tables.errors import describe_many, make_missing_error


def check_labels(y: Any, n_rows: int, rows: Array | None = None) -> tuple[IntArray, Array]:
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
        y = validation.column_or_1d(y, warn=True)
    codes, found = number_groups(y, n_rows, rows, "y")
    if len(found) != 2 or (found.dtype.kind == "f" and not np.isfinite(found).all()):
        _reject_labels(y if rows is None else y[rows], found)
    try:
        classes = np.sort(np.asarray(found))
    except TypeError:
        what = f"y mixes labels that cannot be ordered, {found[0]!r} and {found[1]!r}"
        raise IcscmError(f"{what}; use labels of one kind") from None
    is_second = np.array([label == classes[1] for label in found], dtype=np.int64)
    return is_second[codes], classes if dtype is None else classes.astype(dtype)


def find_series_names(target: Any = None, environments: Any = None) -> dict[str, str | None]:
    """Return the names of the columns of outcomes and environments; a text is itself a name."""
    names: dict[str, str | None] = {}
    for role, column in (("target", target), ("environment", environments)):
        name = column if isinstance(column, str) else getattr(column, "name", None)
        names[role] = name if isinstance(name, str) and name else None
    return names


def number_groups(values: Any, n_rows: int, rows: Array | None, what: str) -> tuple[Array, Any]:
    """The number of each row's label or environment, and what each number stands for, in any order.

    Values that occur only outside the `rows` that count are omitted.
    """
    if len(values) != n_rows:
        why = f"{what} has {len(values)} entries but X has {n_rows} rows"
        raise IcscmError(f"{why}; give one per row")
    codes, found = factorize(values, what)
    if (codes < 0).any():
        where = f"{(codes < 0).sum()} rows, the first of them row {int(np.argmax(codes < 0))}"
        raise make_missing_error(what, where, is_label=what == "y")
    return (codes, found) if rows is None else factorize(values[rows], what)


def shuffle_within(environments: Array, rng: np.random.Generator) -> Array:
    """A permutation of the rows that keeps each in its environment."""
    order, key = np.empty(len(environments), dtype=np.intp), rng.random(len(environments))
    order[np.argsort(environments, kind="stable")] = np.lexsort((key, environments))
    return order


def factorize(values: Any, what: str) -> tuple[Array, Any]:
    """The number of each value and what each number stands for; -1 is a missing value."""
    import pandas

    try:
        return pandas.factorize(values)  # type: ignore[no-any-return]
    except TypeError:
        why = "holds labels that are not hashable, such as lists; use text instead"
        raise IcscmError(f"{what} {why}") from None


def find_plain_dtype(values: Any) -> np.dtype[Any] | None:
    """NumPy's type for labels of NumPy, pandas or Dask; None where they have another."""
    dtype = getattr(values, "dtype", None)
    return getattr(dtype, "numpy_dtype", dtype if isinstance(dtype, np.dtype) else None)


def _reject_labels(y: Array, found: Array) -> NoReturn:
    if len(found) < 2:
        held = f"one class only, {found.tolist()[0]!r}" if len(found) else "no class"
        raise IcscmError(f"y holds {held}; learning needs two")
    if found.dtype.kind == "f" and not np.isfinite(found).all():
        raise IcscmError("y contains infinity; labels must be two distinct finite values")
    multiclass.check_classification_targets(y)
    listed = shorten_list([repr(label) for label in found.tolist()])
    raise IcscmError(
        "Only binary classification is supported. The type of the target is "
        f"{multiclass.type_of_target(y)} with {len(found)} classes ({listed}); merge them into "
        f"two, such as y == {found.tolist()[0]!r}, or fit one model per class"
    )


def code_known(y: Any, classes: Array) -> IntArray:
    """Labels as 0 and 1; raises for labels that are not classes of the model."""
    import pandas

    codes, found = pandas.factorize(np.asarray(y).ravel(), use_na_sentinel=False)
    # as objects: NumPy's dates would become whole numbers
    labels, known = (pandas.Series(each, dtype=object).tolist() for each in (found, classes))
    why = f", not among the classes of the model, {' and '.join(map(repr, known))}; "
    reject_unknown(labels, known, "y holds ", after=f"{why}give labels of these classes")
    return np.asarray(np.array([known.index(label) for label in labels], dtype=np.int64)[codes])


def read_weights(weights: Any, n_rows: int, what: str) -> FloatArray:
    """Weights of the rows, checked: finite numbers, 0 or more."""
    given = np.asarray(weights)
    if given.shape != (n_rows,):
        why = f"{what} must hold one weight for each of the {n_rows} rows of X"
        raise IcscmError(f"{why}, got shape {given.shape}")
    numbers = np.full(given.shape, np.nan)  # also for text that looks like numbers
    if given.dtype.kind in "biufO":
        with suppress(TypeError, ValueError):
            numbers = given.astype(np.float64)
    wrong = ~(np.isfinite(numbers) & (numbers >= 0))
    if wrong.any():
        first = int(np.argmax(wrong))
        value = given.tolist()[first]
        why = f"{what} must hold finite numbers, 0 or more"
        raise IcscmError(f"{why}; got {value!r} in row {first}")
    if not numbers.any():
        raise IcscmError(f"{what} is zero in every row; give some rows a positive weight")
    return numbers


# Largest mean number of repetitions of a row, where weights are not small whole numbers (fewer for
# many rows), and the scales that are tried.
_MOST_REPEATED, _LEAST_REPEATED, _REPEATED_ROWS = 16.0, 4.0, 2**24
_N_SCALES, _N_WEIGHTS_TRIED = 200, 1000


def find_weighted_rows(sample_weight: Any, n_rows: int) -> Array | None:
    """The rows that count, repeated in proportion to their weights; None when each counts once.

    Whole numbers are divided by their greatest common divisor. Others, and large ones, are rounded
    at the scale at which that loses least. So rows of equal weights are repeated equally often,
    in whatever order they are.

    >>> find_weighted_rows([30, 0, 60], n_rows=3), find_weighted_rows([7.5, 7.5], n_rows=2)
    (array([0, 2, 2]), None)
    """
    weights = read_weights(sample_weight, n_rows, "sample_weight")
    counted = np.flatnonzero(weights)
    own = weights[counted]
    most = max(min(_MOST_REPEATED, _REPEATED_ROWS / len(own)), _LEAST_REPEATED)
    own = own / own[0] if (own == own[0]).all() else own
    is_whole = own.max() < LARGEST_EXACT and bool((own == np.floor(own)).all())
    repeats = own.astype(np.int64) if is_whole else np.zeros(1, dtype=np.int64)
    repeats //= max(np.gcd.reduce(repeats), 1)
    if not is_whole or repeats.mean() > most:
        own = own / own.mean()
        tried = np.quantile(own, np.linspace(0, 1, _N_WEIGHTS_TRIED), method="nearest")
        scales = np.linspace(most / 4, most, _N_SCALES)[:, np.newaxis]
        errors = np.abs(np.maximum(np.rint(tried * scales), 1.0) - tried * scales) / scales
        scale = scales[int(errors.sum(axis=1).round(9).argmin()), 0]
        repeats = np.maximum(np.rint(own * scale), 1.0).astype(np.int64)
    is_plain = len(counted) == n_rows and (repeats == 1).all()
    return None if is_plain else np.repeat(counted, repeats)


# The label of the only environment in all counts where no environments were given.
ALL_SAMPLES = "all"


def encode_environments(
    environments: Any, n_rows: int, rows: Array | None = None, what: str = "environments"
) -> tuple[IntArray, tuple[Any, ...]]:
    """The number of each row's environment, and the label of each number.

    `rows` are those that count, as often as they are named; None means each once. `what` names
    the values in errors.

    Labels are in their natural order where they have one, by type and text otherwise, so
    that the result does not depend on the order of the rows.

    >>> encode_environments(["b", "a", "b"], n_rows=3)
    (array([1, 0, 1]), ('a', 'b'))
    """
    import pandas

    values = _as_one_dimensional(environments, what)
    codes, labels = number_groups(values, n_rows, rows, what)
    is_plain = getattr(labels, "dtype", np.dtype("O")).kind in "biu"
    plain = (labels if is_plain else pandas.Index(labels)).tolist()
    order = _sort(plain)
    rank = np.empty(len(order), dtype=np.int64)
    rank[order] = np.arange(len(order))
    return rank[codes], tuple(map(plain.__getitem__, order))


def take_environments(X: Any, environments: Any, what: str = "environments") -> tuple[Any, Any]:
    """X without the columns that `environments`, or groups, name, and what is in them.

    A text names a column of a frame, a list of such texts several that are joined (a list as long
    as the frame is labels, as an array or a Series always is). All else stays as it is.

    >>> import pandas
    >>> frame = pandas.DataFrame({"age": [1, 2, 3], "region": list("abb"), "year": [8, 8, 9]})
    >>> X, environments = take_environments(frame, ["region", "year"])
    >>> list(X), list(environments)
    (['age'], ['a / 8', 'b / 8', 'b / 9'])
    """
    names = [environments] if isinstance(environments, str) else environments
    if not isinstance(names, list | tuple) or not all(isinstance(each, str) for each in names):
        return X, environments
    is_lazy = is_dask(X)
    if not is_frame(X) and not (is_lazy and hasattr(X, "columns")):
        if names is environments:  # labels
            return X, environments
        why = f"{what}={environments!r} names a column, but X has no column names"
        raise IcscmError(f"{why}; give a DataFrame, or one label for each row")
    known = list(X.columns) if is_lazy else list_names(X)
    absent = [name for name in names if name not in known]
    if names is environments:
        n_rows = -1 if is_lazy else count_rows(X)
        if not names or absent == names or len(names) == n_rows:
            return X, environments
    if absent:
        there = shorten_list([repr(name) for name in known])
        raise IcscmError(f"{what} names {absent[0]!r}, but X has only the columns {there}")
    if is_lazy:
        part, rest = X[list(names)], X.drop(columns=list(names))
        if len(names) == 1:
            return rest, X[names[0]]
        return rest, part.map_partitions(join_columns, meta=join_columns(part._meta))
    frame = open_frame(X)
    one, rest = frame[names[0]].to_native(), frame.drop(*names).to_native()
    return rest, one if len(names) == 1 else join_columns(frame.select(*names).to_native())


def join_columns(frame: Any) -> Any:
    """`north / 2019` of each row; None where a value is missing."""
    import pandas

    columns = [each.to_list() for each in nw.from_native(frame, eager_only=True).iter_columns()]
    joined: list[str | None] = []
    for row in zip(*columns, strict=True):
        is_missing = any(each is None or each != each for each in row)
        texts = [format_number(v) if isinstance(v, float) else str(v) for v in row]
        joined.append(None if is_missing else JOINT.join(texts))
    return pandas.Series(joined, index=getattr(frame, "index", None), dtype=object)


def number_environments(
    environments: Any, n_rows: int, rows: Array | None = None
) -> tuple[IntArray, tuple[Any, ...]]:
    """As `encode_environments`; where none were given all samples are in one."""
    if environments is not None:
        return encode_environments(environments, n_rows, rows)
    return np.zeros(n_rows if rows is None else len(rows), dtype=np.int64), (ALL_SAMPLES,)


def check_several(labels: Sequence[Any]) -> None:
    """Raise unless there are environments to compare."""
    if len(labels) < 2:
        why = f"environments holds a single environment, {labels[0]!r}"
        raise IcscmError(f"{why}; invariance needs at least two to compare")


def warn_of_sparse(totals: CountArray, labels: Sequence[Any], classes: Sequence[Any]) -> None:
    """Warn of few samples, or too many environments; `totals` are by (label, environment)."""
    sparse = []
    for environment, (negatives, positives) in zip(labels, totals.T.tolist(), strict=True):
        if (n := negatives + positives) < SPARSE_ENVIRONMENT:
            sparse.append(f"{environment!r} holds only {count(n, 'sample')}")
        elif 0 in (negatives, positives):
            absent = classes[0 if negatives == 0 else 1]
            sparse.append(f"{environment!r} holds no sample of class {absent!r}")
    many = describe_many(labels, totals.sum(axis=0).tolist(), MANY_ENVIRONMENTS)
    what = many or f"Some environments have few samples to compare: {shorten_list(sparse, '; ')}."
    if not (totals > 0).all(axis=0).any():
        what = "Every environment holds samples of one class only, so no rule can be compared."
    if sparse or many:
        warn(what, exceptions.SparseEnvironmentWarning)


def warn_of_two(labels: Sequence[Any]) -> None:
    """Warn where there are two environments only."""
    if len(labels) == 2:
        what = "Two environments show only one difference: a shortcut that both share is not "
        warn(f"{what}rejected. Use three or more.", exceptions.FewEnvironmentsWarning)


def _as_one_dimensional(environments: Any, what: str) -> Any:
    """Something `pandas.factorize` takes, with tuples kept as labels."""
    if is_frame(environments):
        raise IcscmError(f"{what} must be one column of labels, not a table")
    if not isinstance(environments, np.ndarray) and nw.dependencies.is_into_series(environments):
        environments = nw.from_native(environments, series_only=True).to_numpy()
    if isinstance(environments, np.ndarray):
        if environments.ndim == 1:
            return environments
        raise IcscmError(f"{what} must be one-dimensional, got the shape {environments.shape}")
    try:
        return np.fromiter(environments, dtype=object)
    except TypeError:
        kind = type(environments).__name__
        raise IcscmError(f"{what} must hold one label per row, got {kind}") from None


def _sort(labels: list[Any]) -> list[int]:
    """Their order by value where they have one natural order, by type and text otherwise.

    Only for kinds known to be ordered throughout: sets compare, for example, but are not.
    """
    for kind in (str, Real, date, tuple):
        if all(isinstance(label, kind) for label in labels):
            with suppress(TypeError):
                return sorted(range(len(labels)), key=labels.__getitem__)
    return sorted(range(len(labels)), key=lambda i: (type(labels[i]).__name__, repr(labels[i])))
