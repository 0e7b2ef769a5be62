"""Roles of columns: which column is the target, which the environment, which are learned from.

    make_roles       the roles that the user chose, for a table of these columns
    tally_roles      how many rows have each target and environment, in a part of the rows
    find_labelling   what the target means, by the tallies of all rows
    Roles.apply      rows with their environment, and whether the target is positive

A table in memory is one part, and `read_samples` does all four. Files larger than memory, and those
of many workers, are many parts.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import reduce
from typing import TYPE_CHECKING, Any, Final, NamedTuple, NoReturn, Self

import numpy as np

from icscm._constants import JOINT
from icscm._types import Array
from icscm.exceptions import IcscmError
from icscm.formatting import format_level, shorten_list
from icscm.io import naming
from icscm.io.environments import (
    as_level_text,
    find_renamed,
    index_texts,
    read_environments,
    rename,
    simplify,
)

if TYPE_CHECKING:
    import pyarrow

# Values of the target that are negative because others are positive are named up to here.
N_NAMED = 3
# An environment of more values than this share of the rows is no environment; in how many rows.
_MAX_DISTINCT_SHARE = 0.5
_MIN_ROWS = 20
# Stands for the environment of each row where no column is named.
_ALL_ROWS: Final = "all rows"


@dataclass(frozen=True, kw_only=True)
class Roles:
    """The roles of columns: as the user chose them, and what they mean in a table.

    Those that the user chose are checked by `make_roles`; `find_labelling` adds the others.

    Parameters
    ----------
    target : the column of labels.
    environment_columns : several are joined; empty if there is no environment.
    group : the column of groups, rows that belong together; None if there are none.
    positive : values of the target that count as positive, as text; after `find_labelling` as they
        are in the table. Empty where the target has two values and stays as it is.
    exclude_environment : environments to exclude.
    merge_environments : environments to merge: `A+B=C`.
    drop_missing : whether rows without target or environment are dropped.
    label : the label of the positive class.
    negative : the other values of the target, where positive ones were chosen.
    renamed : the new name of each environment, None if it is excluded; empty where none changed.
    n_dropped : rows dropped because target or environment was missing.
    n_excluded : rows of excluded environments.
    misread : texts that were read as missing: column, text, number of cells.
    """

    target: str
    environment_columns: tuple[str, ...] = ()
    group: str | None = None
    positive: Sequence[Any] = ()
    exclude_environment: Sequence[str] = ()
    merge_environments: Sequence[str] = ()
    drop_missing: bool = False
    label: Any = None
    negative: tuple[Any, ...] = ()
    renamed: Mapping[Any, Any] = field(default_factory=dict)
    n_dropped: int = 0
    n_excluded: int = 0
    misread: Mapping[tuple[str, str], int] = field(default_factory=dict)

    @property
    def environment(self) -> str | None:
        """The name of the environment: its column, or `region / year`."""
        return JOINT.join(self.environment_columns) or None

    @property
    def columns(self) -> list[str]:
        """The columns that are not features."""
        return [self.target, *self.environment_columns, *filter(None, [self.group])]

    @property
    def is_plain(self) -> bool:
        """Whether target and environment are columns used without change."""
        are_environments_changed = (
            len(self.environment_columns) > 1
            or bool(self.exclude_environment)
            or bool(self.merge_environments)
        )
        return not (are_environments_changed or self.positive or self.drop_missing)

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
        positive = " or ".join(map(format_level, self.positive))
        if len(self.negative) > N_NAMED:
            return "anything else", positive
        return " or ".join(map(format_level, self.negative)), positive

    @property
    def needs(self) -> list[str]:
        """Columns that `apply` needs to find the rows to keep, or their environment."""
        is_changed = self.n_dropped or self.renamed or len(self.environment_columns) > 1
        return self.columns if is_changed else []

    def apply(self, rows: pyarrow.Table) -> pyarrow.Table:
        """The rows that are kept, with their environment; whether the target is positive."""
        import pyarrow
        from pyarrow import compute

        columns = {name: rows.column(name) for name in rows.schema.names}
        has_role = []
        if self.environment is not None and {*self.environment_columns} <= {*columns}:
            environments = read_environments(rows, self.environment_columns)
            environments = rename(environments, self.renamed)
            columns[self.environment] = environments
            has_role.append(compute.invert(environments.is_null(nan_is_null=True)))
        if self.target in columns:
            labels = simplify(columns[self.target], self.target)
            is_missing = labels.is_null(nan_is_null=True)
            has_role.append(compute.invert(is_missing))
            if self.positive:
                positive = pyarrow.array(self.positive, labels.type)
                is_positive = compute.is_in(labels, value_set=positive)
                labels = compute.if_else(is_missing, None, is_positive)
            columns[self.target] = labels
        table = pyarrow.table(columns)
        if self.n_dropped or self.n_excluded:
            return table.filter(reduce(compute.and_, has_role))
        return table

    def keep_misread(self, misread: Mapping[tuple[str, str], int], features: Sequence[str]) -> Self:
        """With the texts that were read as missing in the columns that are used."""
        used = {*features, *self.columns}
        return replace(self, misread={key: n for key, n in misread.items() if key[0] in used})


def make_roles(
    names: Sequence[str], target: str, environment: str | None = None, *, where: str, **choices: Any
) -> Roles:
    """The roles that the options define for a table of these columns.

    `where` is the name of the table in errors, `choices` are other fields of `Roles`.
    """
    group = choices.get("group")
    naming.check_columns([target] if group is None else [target, group], names, where)
    chosen = [] if environment is None else split_names([environment], names, where)
    if environment is not None and not chosen:
        raise IcscmError(f"--environment {environment!r} names no column")
    roles = Roles(target=target, environment_columns=tuple(chosen), **choices)
    if target in chosen:
        raise IcscmError(f"target and environment are both {target!r}; name different columns")
    if group in (target, *chosen):
        raise IcscmError(f"--group is {group!r}, target or environment; name another column")
    if not chosen and (roles.exclude_environment or roles.merge_environments):
        why = "--exclude-environment and --merge-environments need a column of environments"
        raise IcscmError(f"{why}; name it with --environment")
    if len(chosen) > 1 and roles.environment in names:
        raise IcscmError(f"{where} already has a column {roles.environment!r}; rename it")
    return roles


@dataclass(frozen=True, kw_only=True)
class Samples(Roles):
    """Features, labels and environments of a table.

    Parameters
    ----------
    X : the features.
    y : label of each row; with `positive` values chosen, whether the value is one of them.
    environments, groups : of each row; None if no column was named.
    """

    X: pyarrow.Table
    y: Array
    environments: Array | None
    groups: Array | None = None


def read_samples(
    table: pyarrow.Table,
    target: str,
    environment: str | None = None,
    *,
    drop: Sequence[str] = (),
    only: Sequence[str] = (),
    where: str = "the table",
    **choices: Any,
) -> Samples:
    """Split a table into features, labels and environments.

    `drop`, `only` and `environment` may hold several names separated by commas; `where` is the name
    of the table in errors, and `choices` are other arguments of `make_roles`.
    """
    roles = make_roles(table.column_names, target, environment, where=where, **choices)
    chosen = choose_features(table.column_names, roles, drop, only, where)
    roles = find_labelling([tally_roles(table, roles)], roles)
    table = roles.apply(table)
    environments = None
    if roles.environment is not None:
        environments = np.fromiter(table.column(roles.environment).to_pylist(), dtype=object)
        _check_environments(environments, roles.environment)
    groups = None if roles.group is None else read_groups(table, roles.group)
    return Samples(
        X=table.select(chosen),
        y=np.array(table.column(target).to_pylist()),
        environments=environments,
        groups=groups,
        **vars(roles),
    )


def _check_environments(environments: Array, name: str) -> None:
    """Raise if the environment is another in nearly every row, as an identifier is."""
    n_rows, n_distinct = len(environments), len(set(environments.tolist()))
    if n_rows >= _MIN_ROWS and n_distinct > _MAX_DISTINCT_SHARE * n_rows:
        why = f"the environment {name!r} has {n_distinct:,} values in {n_rows:,} rows"
        raise IcscmError(f"{why}; name a column with few values, such as hospital or year")


def read_groups(table: pyarrow.Table, name: str) -> Array:
    """The group of each row; raise where it is missing."""
    groups = table.column(name)
    if groups.null_count:
        raise IcscmError(f"the group {name!r} is missing in {groups.null_count:,} rows; fill it in")
    return np.asarray(groups.to_numpy())


def split_names(texts: Sequence[str], names: Sequence[str], where: str) -> list[str]:
    """Names from `A,B` and repeated options; a name that holds a comma is found whole.

    >>> split_names(["a,b", "c,d,a"], ["a", "b", "c,d"], "the table")
    ['a', 'b', 'c,d']
    """
    wanted = [name for text in texts for name in naming.split_known(text, ",", names)]
    naming.check_columns(wanted, names, where)
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
    dropped = split_names(drop, names, where)
    wanted = split_names(only, names, where)
    for name in roles.columns:
        if name in wanted:
            raise IcscmError(
                f"{name!r} is the {_find_role(name, roles)} and cannot be a feature, too"
            )
    for name in wanted:
        if name in dropped:
            raise IcscmError(f"{name!r} is both to be used and to be dropped; choose one")
    unused = {*roles.columns, *dropped}
    chosen = wanted or [name for name in names if name not in unused and not naming.is_index(name)]
    if not chosen:
        raise IcscmError(f"{where} has no column left to learn from")
    return chosen


def _find_role(name: str, roles: Roles) -> str:
    """The role of a column that is not learned from."""
    if name == roles.group:
        return "group"
    return "target" if name == roles.target else "environment"


# --- what labels and environments mean ----------------------------------------------


class RowKey(NamedTuple):
    """What a row is counted by: its target and its environment, None where it is missing."""

    target: Any
    environment: Any

    @property
    def is_complete(self) -> bool:
        """Whether neither is missing."""
        return self.target is not None and self.environment is not None


Tally = Mapping[RowKey, int]


def tally_roles(rows: Any, roles: Roles) -> Counter[RowKey]:
    """The number of rows by target and environment, in a part of a table."""
    import pyarrow
    from pyarrow import compute

    columns = {"target": simplify(rows.column(roles.target), roles.target)}
    if roles.environment_columns:
        environments = read_environments(rows, roles.environment_columns)
        columns["environment"] = environments
    for name, column in columns.items():  # NaN is missing, too
        is_missing = column.is_null(nan_is_null=True)
        columns[name] = compute.if_else(is_missing, pyarrow.scalar(None, column.type), column)
    counted = pyarrow.table(columns).group_by([*columns]).aggregate([([], "count_all")])
    tally: Counter[RowKey] = Counter()
    for row in counted.to_pylist():
        key = RowKey(target=row["target"], environment=row.get("environment", _ALL_ROWS))
        tally[key] += row["count_all"]  # 0.0 and -0.0 are two groups and one key
    return tally


def find_labelling(tallies: Iterable[Tally], roles: Roles, *, is_new: bool = False) -> Roles:
    """The meaning of the labels, by all rows; raise for missing ones unless rows may be dropped.

    New rows (`is_new`) of a table that a model was learned from need not have every label.
    """
    tally: Counter[RowKey] = Counter()
    for part in tallies:
        tally.update(part)
    if not tally:
        raise IcscmError("the data has no rows")

    renamed = _find_renamed(tally, roles)
    excluded = {environment for environment, name in renamed.items() if name is None}
    kept = {key: n for key, n in tally.items() if key.environment not in excluded}
    if not kept:
        raise IcscmError("--exclude-environment leaves no row; exclude fewer environments")
    _check_missing(kept, roles)

    targets = {key.target for key in kept if key.is_complete}
    levels = sorted(targets, key=lambda value: (type(value).__name__, value))
    positive = tuple(_find_positive(levels, roles, is_new=is_new))
    return replace(
        roles,
        label=True if positive else levels[-1],
        positive=positive,
        negative=tuple(level for level in levels if level not in positive) if positive else (),
        renamed=renamed,
        n_dropped=sum(n for key, n in kept.items() if not key.is_complete),
        n_excluded=tally.total() - sum(kept.values()),
    )


def _find_renamed(tally: Tally, roles: Roles) -> dict[Any, Any]:
    """The new name of each environment, None if it is excluded; empty if none changes."""
    if roles.environment is None:
        return {}
    environments = {key.environment for key in tally} - {None}
    return find_renamed(
        environments, roles.environment, roles.exclude_environment, roles.merge_environments
    )


def _check_missing(kept: Tally, roles: Roles) -> None:
    """Raise for missing targets and environments, unless such rows may be dropped."""
    n_rows = sum(kept.values())
    n_missing = sum(n for key, n in kept.items() if key.target is None)
    _check_column_missing("target", roles.target, n_missing, n_rows, may_drop=roles.drop_missing)
    if roles.environment is not None:
        n_missing = sum(n for key, n in kept.items() if key.environment is None)
        _check_column_missing(
            "environment", roles.environment, n_missing, n_rows, may_drop=roles.drop_missing
        )
    if not any(key.is_complete for key in kept):
        raise IcscmError(f"no row has both the target {roles.target!r} and {roles.environment!r}")


def _check_column_missing(
    role: str, name: str, n_missing: int, n_rows: int, *, may_drop: bool
) -> None:
    """Raise if a column is missing in every row, or in some that may not be dropped."""
    if n_missing == n_rows:
        raise IcscmError(f"the {role} {name!r} is missing in every row")
    if n_missing and not may_drop:
        why = f"the {role} {name!r} is missing in {n_missing:,} of {n_rows:,} rows"
        raise IcscmError(f"{why}; fill it in, or drop these rows with --drop-missing")


def _find_positive(levels: Sequence[Any], roles: Roles, *, is_new: bool) -> list[Any]:
    """The levels of the target that the user named by their texts; none if there are just two."""
    level_of = index_texts(levels)
    chosen: list[Any] = []
    for text in dict.fromkeys(roles.positive):
        if text in level_of:
            chosen.append(level_of[text])
        elif not is_new:
            hint = naming.suggest(text, map(as_level_text, levels))
            raise IcscmError(f"the target {roles.target!r} has no value {text!r}{hint}")
    chosen = list(dict.fromkeys(chosen))
    if is_new:
        return chosen
    if not chosen and len(levels) != 2:
        _reject_levels(levels, roles.target)
    if len(chosen) == len(levels):
        raise IcscmError(f"every value of the target {roles.target!r} is named positive; omit one")
    return chosen


def _reject_levels(levels: Sequence[Any], target: str) -> NoReturn:
    """Raise for a target that has not two values, none of which is named positive."""
    listed = shorten_list([format_level(level) for level in levels])
    if len(levels) == 1:
        raise IcscmError(f"the target {target!r} has one value only ({listed}); learning needs two")
    advice = "name those that count as positive with --positive; the others are negative"
    raise IcscmError(f"the target {target!r} has {len(levels):,} values ({listed}); {advice}")
