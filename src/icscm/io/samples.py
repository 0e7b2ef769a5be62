"""A table taken apart: which column is what."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from icscm._types import Array
from icscm.exceptions import IcscmError
from icscm.io.reading import check_columns, suggest
from icscm.text import format_level, shorten_list

if TYPE_CHECKING:
    import pyarrow


# Values of the target that are negative because others are positive are named up to here.
N_NAMED = 3


@dataclass(frozen=True)
class Samples:
    """A table taken apart.

    Parameters
    ----------
    X : the features.
    y : label of each row. With `positive` values chosen, whether the row's is one of them.
    environments : of each row; None if no column was named.
    target, environment : names of the columns they come from.
    positive : values of the target that count as positive; empty where the target has two values
        and stayed as it is.
    negative : the other values of the target, where positive ones were chosen.
    n_dropped : rows left out because target or environment was missing.
    asked_for : columns that the user named to be used, however they look.
    """

    X: pyarrow.Table
    y: Array
    environments: Array | None
    target: str
    environment: str | None
    positive: tuple[Any, ...] = ()
    negative: tuple[Any, ...] = ()
    n_dropped: int = 0
    asked_for: tuple[str, ...] = ()

    @property
    def positive_text(self) -> str:
        """What the positive class is: `readmitted is <30 or >30`."""
        values = self.positive or (sorted(set(self.y.tolist()))[-1],)
        return f"{self.target} is {' or '.join(map(format_level, values))}"

    @property
    def class_names(self) -> tuple[str, str] | None:
        """What the target is in each class, where True and False stand for several values."""
        if not self.positive:
            return None
        is_short = len(self.negative) <= N_NAMED
        negative = " or ".join(map(format_level, self.negative)) if is_short else "anything else"
        return negative, " or ".join(map(format_level, self.positive))


def read_samples(
    table: pyarrow.Table,
    target: str,
    environment: str | None = None,
    *,
    positive: Sequence[str] = (),
    drop: Sequence[str] = (),
    only: Sequence[str] = (),
    drop_missing: bool = False,
    where: str = "the table",
) -> Samples:
    """Take a table apart into features, labels and environments.

    Parameters
    ----------
    target, environment : columns; the rest are features.
    positive : values of the target that count as positive, as text; all others are negative.
    drop, only : features to leave out, or the only ones to use; each item is a name or several
        with commas between.
    drop_missing : leave out rows without a label or an environment instead of raising.
    where : what to call the table in errors.
    """
    names = table.column_names
    check_columns([target], names, where)
    if environment is not None:
        check_columns([environment], names, where)
    if target == environment:
        raise IcscmError(f"target and environment are both {target!r}; name two columns")
    chosen = _choose_features(table, target, environment, drop, only, where)
    table, n_dropped = _drop_rows(table, target, environment, drop_missing)
    y, found, others = _read_labels(table.column(target), target, positive)
    environments = None
    if environment is not None:
        environments = _read_values(table.column(environment))
        _check_few(environments, environment)
    return Samples(
        X=table.select(chosen),
        y=y,
        environments=environments,
        target=target,
        environment=environment,
        positive=found,
        negative=others,
        n_dropped=n_dropped,
        asked_for=tuple(chosen) if only else (),
    )


def split_names(texts: Sequence[str], names: Sequence[str], where: str) -> list[str]:
    """Names from `A,B` and repeated options; a name that holds a comma is found whole.

    >>> split_names(["a,b", "c,d"], ["a", "b", "c,d"], "the table")
    ['a', 'b', 'c,d']
    """
    known = set(names)
    wanted = [
        name for text in texts for name in ([text] if text in known else split_commas([text]))
    ]
    check_columns(wanted, names, where)
    return list(dict.fromkeys(wanted))


def split_commas(texts: Sequence[str]) -> list[str]:
    """Names with commas between them.

    >>> split_commas(["a, b", "c"])
    ['a', 'b', 'c']
    """
    return [part.strip() for text in texts for part in text.split(",") if part.strip()]


def _choose_features(
    table: pyarrow.Table,
    target: str,
    environment: str | None,
    drop: Sequence[str],
    only: Sequence[str],
    where: str,
) -> list[str]:
    names = table.column_names
    dropped, wanted = split_names(drop, names, where), split_names(only, names, where)
    for name, role in ((target, "target"), (environment, "environment")):
        if name in wanted:
            raise IcscmError(f"{name!r} is the {role} and cannot be a feature, too")
    both = [name for name in wanted if name in dropped]
    if both:
        raise IcscmError(f"{both[0]!r} is to be used and to be left out; choose one")
    away = {target, environment, *dropped}
    chosen = wanted or [name for name in names if name not in away]
    if not chosen:
        raise IcscmError(f"{where} has no column left to learn from")
    return chosen


def _drop_rows(
    table: pyarrow.Table, target: str, environment: str | None, drop_missing: bool
) -> tuple[pyarrow.Table, int]:
    """Rows that have a label and an environment; raise for others unless they may go."""
    from pyarrow import compute

    keep = np.ones(table.num_rows, dtype=np.bool_)
    for name, role in ((target, "target"), (environment, "environment")):
        if name is None:
            continue
        missing = compute.is_null(table.column(name), nan_is_null=True).to_numpy()
        if missing.all():
            raise IcscmError(f"the {role} {name!r} is missing in every row")
        if missing.any() and not drop_missing:
            raise IcscmError(
                f"the {role} {name!r} is missing in {missing.sum():,} of {len(missing):,} rows; "
                "fill it in, or leave these rows out with --drop-missing"
            )
        keep &= ~missing
    if keep.all():
        return table, 0
    if not keep.any():
        raise IcscmError(f"no row has both the target {target!r} and {environment!r}")
    return table.filter(keep), int((~keep).sum())


def _check_few(environments: Array, name: str) -> None:
    """Raise for a column that is no environment: each row would be one of its own."""
    n_distinct, n_rows = len(set(environments.tolist())), len(environments)
    if n_rows >= 20 and n_distinct > n_rows / 2:
        raise IcscmError(
            f"the environment {name!r} has {n_distinct:,} values in {n_rows:,} rows; name a "
            "column that many rows share, such as hospital or year"
        )


def _read_values(column: Any) -> Array:
    """Plain values, none missing. Dates become text, which files and messages can hold."""
    import pyarrow
    from pyarrow import types

    kind = column.type
    if types.is_dictionary(kind):
        column = column.cast(kind.value_type)
    elif types.is_temporal(kind):
        column = column.cast(pyarrow.string())
    values: Array = np.empty(len(column), dtype=object)
    values[:] = column.to_pylist()
    return values


def _read_labels(
    column: Any, target: str, positive: Sequence[str]
) -> tuple[Array, tuple[Any, ...], tuple[Any, ...]]:
    """Labels, and which values are positive and negative if that had to be said."""
    values = _read_values(column)
    levels = sorted(set(values.tolist()), key=lambda value: (type(value).__name__, value))
    if positive:
        chosen = _find_positive(levels, target, positive)
        others = tuple(level for level in levels if level not in chosen)
        return np.array([value in chosen for value in values.tolist()]), tuple(chosen), others
    if len(levels) != 2:
        listed = shorten_list([format_level(level) for level in levels])
        what = "one value only" if len(levels) == 1 else f"{len(levels):,} values"
        advice = (
            "learning needs two"
            if len(levels) == 1
            else "name those that count as positive with --positive, the rest being negative"
        )
        raise IcscmError(f"the target {target!r} has {what} ({listed}); {advice}")
    return np.array(values.tolist()), (), ()


def _find_positive(levels: Sequence[Any], target: str, positive: Sequence[str]) -> list[Any]:
    """The levels that the user named, as text."""
    by_text = {_as_text(level): level for level in levels}
    by_text |= {str(level): level for level in levels}
    by_text |= {str(level).lower(): level for level in levels if isinstance(level, bool)}
    chosen = []
    for text in dict.fromkeys(positive):
        if text not in by_text:
            known = [_as_text(level) for level in levels]
            raise IcscmError(f"the target {target!r} is never {text!r}{suggest(text, known)}")
        chosen.append(by_text[text])
    if len(set(chosen)) == len(levels):
        raise IcscmError(
            f"every value of the target {target!r} is named positive; leave at least one out"
        )
    return list(dict.fromkeys(chosen))


def _as_text(level: Any) -> str:
    return level if isinstance(level, str) else format_level(level)
