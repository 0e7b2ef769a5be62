"""A table taken apart: which column is what."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import TYPE_CHECKING, Any

import numpy as np

from icscm._types import Array
from icscm.exceptions import IcscmError
from icscm.io.naming import check_columns, is_index, suggest
from icscm.tables.columns import read_arrow_groups
from icscm.text import format_level, shorten_list

if TYPE_CHECKING:
    import pyarrow

# Values of the target that are negative because others are positive are named up to here.
N_NAMED = 3


@dataclass(frozen=True, kw_only=True)
class Labelling:
    """What the labels of a table mean.

    Parameters
    ----------
    target, environment : names of the columns of labels and environments.
    label : that of the positive class.
    positive : values of the target that count as positive; empty where the target has two values
        and stayed as it is.
    negative : the other values of the target, where positive ones were chosen.
    n_dropped : rows left out because target or environment was missing.
    """

    target: str
    environment: str | None
    label: Any = None
    positive: tuple[Any, ...] = ()
    negative: tuple[Any, ...] = ()
    n_dropped: int = 0

    @property
    def positive_text(self) -> str:
        """What the positive class is: `readmitted is <30 or >30`."""
        values = self.positive or (self.label,)
        return f"{self.target} is {' or '.join(map(format_level, values))}"

    @property
    def class_names(self) -> tuple[str, str] | None:
        """What the target is in each class, where True and False stand for several values."""
        if not self.positive:
            return None
        is_short = len(self.negative) <= N_NAMED
        negative = " or ".join(map(format_level, self.negative)) if is_short else "anything else"
        return negative, " or ".join(map(format_level, self.positive))

    @property
    def roles(self) -> list[str]:
        """The columns that are no features."""
        return [name for name in (self.target, self.environment) if name is not None]

    def apply(self, rows: pyarrow.Table) -> pyarrow.Table:
        """The rows that are kept; with positive values, whether the target is one of them."""
        import pyarrow
        from pyarrow import compute

        columns = {name: rows.column(name) for name in rows.schema.names}
        roles = [name for name in self.roles if name in columns]
        is_missing = {name: columns[name].is_null(nan_is_null=True) for name in roles}
        columns |= {name: _simplify(columns[name], name) for name in roles}
        if self.positive and self.target in columns:
            labels = columns[self.target]
            is_one = compute.is_in(labels, value_set=pyarrow.array(self.positive, labels.type))
            columns[self.target] = compute.if_else(is_missing[self.target], None, is_one)
        table = pyarrow.table(columns)
        if self.n_dropped:
            table = table.filter(compute.invert(reduce(compute.or_, is_missing.values())))
        return table


@dataclass(frozen=True, kw_only=True)
class Samples(Labelling):
    """A table taken apart.

    Parameters
    ----------
    X : the features.
    y : label of each row. With `positive` values chosen, whether the row's is one of them.
    environments : of each row; None if no column was named.
    asked_for : columns that the user named to be used, however they look.
    """

    X: pyarrow.Table
    y: Array
    environments: Array | None
    asked_for: tuple[str, ...] = ()


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

    Values of `positive` are given as text, names of `drop` and `only` also several with commas
    between; `where` is what to call the table in errors.
    """
    chosen = choose_features(table.column_names, target, environment, drop, only, where)
    labelling = find_labelling([table], target, environment, positive, drop_missing=drop_missing)
    table = labelling.apply(table)
    environments = None
    if environment is not None:
        environments = np.empty(len(table), dtype=object)
        environments[:] = table.column(environment).to_pylist()
        _check_few(environments, environment)
    return Samples(
        X=table.select(chosen),
        y=np.array(table.column(target).to_pylist()),
        environments=environments,
        asked_for=tuple(chosen) if only else (),
        **vars(labelling),
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


def choose_features(
    names: Sequence[str],
    target: str,
    environment: str | None,
    drop: Sequence[str],
    only: Sequence[str],
    where: str,
) -> list[str]:
    """The columns to learn from: all but target and environment, as the user chose."""
    for name in (target, environment):
        check_columns([name] if name is not None else [], names, where)
    if target == environment:
        raise IcscmError(f"target and environment are both {target!r}; name two columns")
    dropped, wanted = split_names(drop, names, where), split_names(only, names, where)
    for name, role in ((target, "target"), (environment, "environment")):
        if name in wanted:
            raise IcscmError(f"{name!r} is the {role} and cannot be a feature, too")
    both = [name for name in wanted if name in dropped]
    if both:
        raise IcscmError(f"{both[0]!r} is to be used and to be left out; choose one")
    away = {target, environment, *dropped}
    chosen = wanted or [name for name in names if name not in away and not is_index(name)]
    if not chosen:
        raise IcscmError(f"{where} has no column left to learn from")
    return chosen


def find_labelling(
    batches: Iterable[Any],
    target: str,
    environment: str | None,
    positive: Sequence[str],
    *,
    drop_missing: bool,
) -> Labelling:
    """What the labels mean, by all rows; raise for missing ones unless their rows may go."""
    from pyarrow import compute

    roles = {target: "target"} | ({} if environment is None else {environment: "environment"})
    missing, n_rows, n_dropped = dict.fromkeys(roles, 0), 0, 0
    found: set[Any] = set()
    for batch in batches:
        plain = {name: _simplify(batch.column(name), name) for name in roles}
        is_missing = {name: plain[name].is_null(nan_is_null=True) for name in roles}
        is_dropped = reduce(compute.or_, is_missing.values())
        kept = plain[target].filter(compute.invert(is_dropped))
        found.update(kept.unique().to_pylist())
        missing = {name: missing[name] + _count(is_missing[name]) for name in roles}
        n_rows, n_dropped = n_rows + len(batch), n_dropped + _count(is_dropped)
    for name, role in roles.items():
        if missing[name] == n_rows:
            raise IcscmError(f"the {role} {name!r} is missing in every row")
        if missing[name] and not drop_missing:
            raise IcscmError(
                f"the {role} {name!r} is missing in {missing[name]:,} of {n_rows:,} rows; fill it "
                "in, or leave these rows out with --drop-missing"
            )
    if n_dropped == n_rows:
        raise IcscmError(f"no row has both the target {target!r} and {environment!r}")
    levels = sorted(found, key=lambda value: (type(value).__name__, value))
    if not positive:
        _check_two(levels, target)
    chosen = tuple(_find_positive(levels, target, positive)) if positive else ()
    return Labelling(
        target=target,
        environment=environment,
        label=bool(chosen) or levels[-1],
        positive=chosen,
        negative=tuple(level for level in levels if level not in chosen) if chosen else (),
        n_dropped=n_dropped,
    )


def _count(mask: Any) -> int:
    return int(mask.to_numpy(zero_copy_only=False).sum())


def _simplify(column: Any, name: str) -> Any:
    """No categories, and dates as text, which files and messages can hold."""
    import pyarrow
    from pyarrow import types

    plain = read_arrow_groups(column, f"column {name!r}")
    return plain.cast(pyarrow.string()) if types.is_temporal(plain.type) else plain


def _check_few(environments: Array, name: str) -> None:
    """Raise for a column that is no environment: each row would be one of its own."""
    n_distinct, n_rows = len(set(environments.tolist())), len(environments)
    if n_rows >= 20 and n_distinct > n_rows / 2:
        raise IcscmError(
            f"the environment {name!r} has {n_distinct:,} values in {n_rows:,} rows; name a "
            "column that many rows share, such as hospital or year"
        )


def _find_positive(levels: Sequence[Any], target: str, positive: Sequence[str]) -> list[Any]:
    """The levels that the user named, as text."""
    by_text = index_texts(levels)
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


def index_texts(levels: Sequence[Any]) -> dict[str, Any]:
    """Levels by the texts that a user may call them.

    >>> index_texts([True, 2.0])
    {'True': True, '2': 2.0, '2.0': 2.0, 'true': True}
    """
    by_text = {_as_text(level): level for level in levels}
    by_text |= {str(level): level for level in levels}
    return by_text | {str(level).lower(): level for level in levels if isinstance(level, bool)}


def _check_two(levels: Sequence[Any], target: str) -> None:
    if len(levels) == 2:
        return
    listed = shorten_list([format_level(level) for level in levels])
    what, advice = "one value only", "learning needs two"
    if len(levels) > 1:
        what = f"{len(levels):,} values"
        advice = "name those that count as positive with --positive, the rest being negative"
    raise IcscmError(f"the target {target!r} has {what} ({listed}); {advice}")


def _as_text(level: Any) -> str:
    return level if isinstance(level, str) else format_level(level)
