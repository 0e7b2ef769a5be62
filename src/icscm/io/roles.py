"""Roles of columns: a table split into features, labels and environments."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import reduce
from operator import or_
from typing import TYPE_CHECKING, Any

import numpy as np

from icscm._constants import JOINT
from icscm._types import Array
from icscm.exceptions import IcscmError
from icscm.formatting import format_level, shorten_list
from icscm.io.naming import (
    as_level_text,
    check_columns,
    find_renamed,
    index_texts,
    is_index,
    list_texts,
    read_environments,
    rename,
    simplify,
    split_known,
    suggest,
)

if TYPE_CHECKING:
    import pyarrow

# Values of the target that are negative because others are positive are named up to here.
N_NAMED = 3


@dataclass(frozen=True, kw_only=True)
class Roles:
    """The roles of columns as the user chose them; checked by `make_roles`.

    Parameters
    ----------
    target : the column of labels.
    places : columns of the environment: several are joined; empty if there is no environment.
    positive : values of the target that count as positive, as text.
    excluded : environments to exclude.
    merged : environments to merge: `A+B=C`.
    drop_missing : whether rows without target or environment are dropped.
    """

    target: str
    places: tuple[str, ...] = ()
    positive: tuple[str, ...] = ()
    excluded: tuple[str, ...] = ()
    merged: tuple[str, ...] = ()
    drop_missing: bool = False

    @property
    def environment(self) -> str | None:
        """The name of the environment: its column, or `region / year`."""
        return JOINT.join(self.places) or None

    @property
    def columns(self) -> list[str]:
        """The columns that are not features."""
        return [self.target, *self.places]

    @property
    def is_plain(self) -> bool:
        """Whether target and environment are columns used without change."""
        asked = (self.positive, self.excluded, self.merged, self.drop_missing)
        return len(self.places) < 2 and not any(asked)


def make_roles(
    names: Sequence[str],
    target: str,
    environment: str | None = None,
    *,
    positive: Sequence[str] = (),
    exclude_environment: Sequence[str] = (),
    merge_environments: Sequence[str] = (),
    drop_missing: bool = False,
    where: str = "the table",
) -> Roles:
    """The roles that the options define for a table of these columns."""
    check_columns([target], names, where)
    places = () if environment is None else tuple(split_names([environment], names, where))
    if environment is not None and not places:
        raise IcscmError(f"{environment!r} names no column of environments")
    if target in places:
        raise IcscmError(f"target and environment are both {target!r}; name two columns")
    if not places and (exclude_environment or merge_environments):
        raise IcscmError(
            "--exclude-environment and --merge-environments need a column of environments; name "
            "it with --environment"
        )
    roles = Roles(
        target=target,
        places=places,
        positive=tuple(positive),
        excluded=tuple(dict.fromkeys(exclude_environment)),
        merged=tuple(merge_environments),
        drop_missing=drop_missing,
    )
    if len(places) > 1 and roles.environment in names:
        raise IcscmError(f"{where} has a column {roles.environment!r} already; name it alone")
    return roles


@dataclass(frozen=True, kw_only=True)
class Labelling:
    """The meaning of the labels of a table.

    Parameters
    ----------
    roles : the roles of the columns.
    label : the label of the positive class.
    positive : values of the target that count as positive; empty where the target has two values
        and stayed as it is.
    negative : the other values of the target, where positive ones were chosen.
    renamed : the new name of each environment, None if it is excluded; empty where none changed.
    n_dropped : rows dropped because target or environment was missing.
    n_excluded : rows of excluded environments.
    misread : texts that were read as missing: column, text, number of cells.
    """

    roles: Roles
    label: Any = None
    positive: tuple[Any, ...] = ()
    negative: tuple[Any, ...] = ()
    renamed: Mapping[Any, Any] = field(default_factory=dict)
    n_dropped: int = 0
    n_excluded: int = 0
    misread: Mapping[tuple[str, str], int] = field(default_factory=dict)

    @property
    def target(self) -> str:
        """The name of the labels."""
        return self.roles.target

    @property
    def environment(self) -> str | None:
        """The name of the environments."""
        return self.roles.environment

    @property
    def positive_text(self) -> str:
        """A description of the positive class: `readmitted is <30 or >30`."""
        values = self.positive or (self.label,)
        return f"{self.target} is {' or '.join(map(format_level, values))}"

    @property
    def class_names(self) -> tuple[str, str] | None:
        """The values of the target in each class, where positive ones were chosen."""
        if not self.positive:
            return None
        is_short = len(self.negative) <= N_NAMED
        negative = " or ".join(map(format_level, self.negative)) if is_short else "anything else"
        return negative, " or ".join(map(format_level, self.positive))

    @property
    def needs(self) -> list[str]:
        """Columns that `apply` needs to find the rows to keep, or their environment."""
        is_changed = self.n_dropped or self.renamed or len(self.roles.places) > 1
        return self.roles.columns if is_changed else []

    def apply(self, rows: pyarrow.Table) -> pyarrow.Table:
        """The rows that are kept, with their environment; whether the target is positive."""
        import pyarrow
        from pyarrow import compute

        columns = {name: rows.column(name) for name in rows.schema.names}
        is_kept = []
        if self.roles.places and {*self.roles.places} <= {*columns}:
            places = rename(read_environments(rows, self.roles.places), self.renamed)
            columns[self.environment or ""] = places
            is_kept.append(compute.invert(places.is_null(nan_is_null=True)))
        if self.target in columns:
            labels = simplify(columns[self.target], self.target)
            is_missing = labels.is_null(nan_is_null=True)
            is_kept.append(compute.invert(is_missing))
            if self.positive:
                is_one = compute.is_in(labels, value_set=pyarrow.array(self.positive, labels.type))
                labels = compute.if_else(is_missing, None, is_one)
            columns[self.target] = labels
        table = pyarrow.table(columns)
        if self.n_dropped or self.n_excluded:
            table = table.filter(reduce(compute.and_, is_kept))
        return table


@dataclass(frozen=True, kw_only=True)
class Samples(Labelling):
    """Features, labels and environments of a table.

    Parameters
    ----------
    X : the features.
    y : label of each row; with `positive` values chosen, whether the value is one of them.
    environments : of each row; None if no column was named.
    asked_for : columns that the user chose explicitly.
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
    drop: Sequence[str] = (),
    only: Sequence[str] = (),
    where: str = "the table",
    **asked: Any,
) -> Samples:
    """Split a table into features, labels and environments.

    `drop`, `only` and `environment` may hold several names separated by commas; `where` is the name
    of the table in errors, and `asked` are further arguments of `make_roles`.
    """
    roles = make_roles(table.column_names, target, environment, where=where, **asked)
    chosen = choose_features(table.column_names, roles, drop, only, where)
    labelling = find_labelling([tally_roles(table, roles)], roles)
    table = labelling.apply(table)
    environments = None
    if roles.environment is not None:
        environments = np.empty(len(table), dtype=object)
        environments[:] = table.column(roles.environment).to_pylist()
        n_distinct, n_rows = len(set(environments.tolist())), len(environments)
        if n_rows >= 20 and n_distinct > n_rows / 2:
            raise IcscmError(
                f"the environment {roles.environment!r} has {n_distinct:,} values in {n_rows:,} "
                "rows; name a column that many rows share, such as hospital or year"
            )
    return Samples(
        X=table.select(chosen),
        y=np.array(table.column(target).to_pylist()),
        environments=environments,
        asked_for=tuple(chosen) if only else (),
        **vars(labelling),
    )


def keep_used(
    misread: Mapping[tuple[str, str], int], features: Sequence[str], roles: Roles
) -> dict[tuple[str, str], int]:
    """Texts that were read as missing in the columns that are used."""
    used = {*features, *roles.columns}
    return {key: n for key, n in misread.items() if key[0] in used}


def split_names(texts: Sequence[str], names: Sequence[str], where: str) -> list[str]:
    """Names from `A,B` and repeated options; a name that holds a comma is found whole.

    >>> split_names(["a,b", "c,d,a"], ["a", "b", "c,d"], "the table")
    ['a', 'b', 'c,d']
    """
    wanted = [name for text in texts for name in split_known(text, ",", names)]
    check_columns(wanted, names, where)
    return list(dict.fromkeys(wanted))


def split_commas(texts: Sequence[str]) -> list[str]:
    """Names with commas between them.

    >>> split_commas(["a, b", "c"])
    ['a', 'b', 'c']
    """
    return [part.strip() for text in texts for part in text.split(",") if part.strip()]


def choose_features(
    names: Sequence[str], roles: Roles, drop: Sequence[str], only: Sequence[str], where: str
) -> list[str]:
    """The columns to learn from: all but target and environment, as the user chose."""
    dropped, wanted = split_names(drop, names, where), split_names(only, names, where)
    for name in roles.columns:
        if name in wanted:
            role = "target" if name == roles.target else "environment"
            raise IcscmError(f"{name!r} is the {role} and cannot be a feature, too")
    both = [name for name in wanted if name in dropped]
    if both:
        raise IcscmError(f"{both[0]!r} is to be used and to be left out; choose one")
    away = {*roles.columns, *dropped}
    chosen = wanted or [name for name in names if name not in away and not is_index(name)]
    if not chosen:
        raise IcscmError(f"{where} has no column left to learn from")
    return chosen


@dataclass
class RoleTally:
    """Counts and values of target and environment in some rows."""

    n_rows: int = 0
    n_excluded: int = 0
    n_dropped: int = 0
    n_missing: Counter[str] = field(default_factory=Counter)
    labels: set[Any] = field(default_factory=set)
    places: set[Any] = field(default_factory=set)

    def __or__(self, other: RoleTally) -> RoleTally:
        joined = (
            mine | its if isinstance(mine, set) else mine + its
            for mine, its in zip(vars(self).values(), vars(other).values(), strict=True)
        )
        return RoleTally(*joined)


def tally_roles(rows: Any, roles: Roles) -> RoleTally:
    """Summarise target and environment of some rows, without those of excluded environments."""
    from pyarrow import compute

    n_rows, found = len(rows), RoleTally(len(rows))
    columns = {roles.target: simplify(rows.column(roles.target), roles.target)}
    if roles.environment is not None:
        places = read_environments(rows, roles.places)
        found.places = {*places.unique().to_pylist()} - {None}
        left_out = {each: None for each in found.places if list_texts(each) & {*roles.excluded}}
        if left_out:
            is_in = compute.invert(compute.is_null(rename(places, left_out)))
            is_kept = compute.or_(is_in, compute.is_null(places, nan_is_null=True))
            columns[roles.target] = columns[roles.target].filter(is_kept)
            places = places.filter(is_kept)
        columns[roles.environment] = places
    is_missing = {name: each.is_null(nan_is_null=True) for name, each in columns.items()}
    is_dropped = reduce(compute.or_, is_missing.values())
    kept = columns[roles.target].filter(compute.invert(is_dropped))
    found.labels = {*kept.unique().to_pylist()}
    found.n_excluded = n_rows - len(is_dropped)
    found.n_dropped = compute.sum(is_dropped, min_count=0).as_py()
    n_missing = {name: compute.sum(each, min_count=0).as_py() for name, each in is_missing.items()}
    found.n_missing = Counter(n_missing)
    return found


def find_labelling(
    tallies: Iterable[RoleTally], roles: Roles, *, is_new: bool = False
) -> Labelling:
    """What the labels mean, by all rows; raise for missing ones unless their rows may go.

    New rows (`is_new`) of a table that a model was learned from need not have every label.
    """
    found = reduce(or_, tallies, RoleTally())
    if found.n_rows == 0:
        raise IcscmError("the data has no rows")
    renamed = find_renamed(found.places, roles.environment or "", roles.excluded, roles.merged)
    n_rows = found.n_rows - found.n_excluded
    if n_rows == 0:
        raise IcscmError("--exclude-environment leaves no row; leave out fewer environments")
    for name, n_missing in found.n_missing.items():
        role = "target" if name == roles.target else "environment"
        if n_missing == n_rows:
            raise IcscmError(f"the {role} {name!r} is missing in every row")
        if n_missing and not roles.drop_missing:
            raise IcscmError(
                f"the {role} {name!r} is missing in {n_missing:,} of {n_rows:,} rows; fill it "
                "in, or leave these rows out with --drop-missing"
            )
    target, positive = roles.target, roles.positive
    if found.n_dropped == n_rows:
        raise IcscmError(f"no row has both the target {target!r} and {roles.environment!r}")
    levels = sorted(found.labels, key=lambda value: (type(value).__name__, value))
    if is_new:
        known = index_texts(levels)
        positive = tuple(text for text in positive if text in known)
    elif not positive and len(levels) != 2:
        listed = shorten_list([format_level(level) for level in levels])
        what, advice = "one value only", "learning needs two"
        if len(levels) > 1:
            what = f"{len(levels):,} values"
            advice = "name those that count as positive with --positive, the rest being negative"
        raise IcscmError(f"the target {target!r} has {what} ({listed}); {advice}")
    chosen = tuple(_find_positive(levels, target, positive, is_new=is_new)) if positive else ()
    return Labelling(
        roles=roles,
        label=bool(chosen) or levels[-1],
        positive=chosen,
        negative=tuple(level for level in levels if level not in chosen) if chosen else (),
        renamed=renamed,
        n_dropped=found.n_dropped,
        n_excluded=found.n_excluded,
    )


def _find_positive(
    levels: Sequence[Any], target: str, positive: Sequence[str], *, is_new: bool
) -> list[Any]:
    """The levels that the user named by their texts."""
    by_text = index_texts(levels)
    chosen = []
    for text in dict.fromkeys(positive):
        if text not in by_text:
            known = [as_level_text(level) for level in levels]
            raise IcscmError(f"the target {target!r} is never {text!r}{suggest(text, known)}")
        chosen.append(by_text[text])
    if len(set(chosen)) == len(levels) and not is_new:
        raise IcscmError(
            f"every value of the target {target!r} is named positive; leave at least one out"
        )
    return list(dict.fromkeys(chosen))
