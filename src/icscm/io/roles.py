"""Roles of columns: which is the target, which the environment, and which are learned from.

The target is the column of outcomes. Which of its values is the positive outcome, and which rows
are dropped, may depend on all rows. So roles are found in four steps:

    make_roles       the roles that the user chose, for a table of these columns
    tally_roles      how many rows have each target and environment, in a part of the rows
    find_labelling   what the values of the target mean, by the tallies of all rows
    Roles.apply      rows with their environment, and whether the target is positive

A table in memory is one part, and `read_samples` takes all four steps. Files larger than memory,
and those of many workers, are many parts.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import reduce
from typing import TYPE_CHECKING, Any, Final, NamedTuple, NoReturn, Self

import numpy as np

from icscm._constants import JOINT
from icscm._types import Array, FloatArray
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
from icscm.tables.weights import read_weights

if TYPE_CHECKING:
    import pyarrow

# Values of the target that are negative because others are positive are named up to here.
N_NAMED = 3
# A column of more values than this share of the rows, if there are so many rows, is no environment.
_MAX_DISTINCT_SHARE = 0.5
_MIN_ROWS = 20
# Stands for the environment of each row where no column is named.
_ALL_ROWS: Final = "all rows"


@dataclass(frozen=True, kw_only=True)
class Roles:
    """The roles of columns: as the user chose them, and what they mean in a table.

    `make_roles` checks what the user chose; `find_labelling` finds the rest, from `label` on.

    Parameters
    ----------
    target : the column of outcomes.
    environment_columns : several are joined; empty if there is no environment.
    group : the column of groups, rows that belong together; None if there are none.
    weight : the column of the weights of rows; None if there is none.
    takes_any_outcome : whether the target may have any values, several classes or numbers.
    positive : values of the target that count as positive, as text; after `find_labelling` as they
        are in the table. Empty where the target has two values and stays as it is.
    exclude_environment : environments to exclude.
    merge_environments : environments to merge: `A+B=C`.
    drop_missing : whether rows without target or environment are dropped.
    label : the positive outcome, as it is in the relabelled target.
    negative : the other values of the target, where positive ones were chosen.
    renamed : the new name of each environment, None if it is excluded; empty where none changed.
    n_dropped : rows dropped because target or environment was missing.
    n_excluded : rows of excluded environments.
    misread : texts that were read as missing: column, text, number of cells.
    """

    target: str
    environment_columns: tuple[str, ...] = ()
    group: str | None = None
    weight: str | None = None
    takes_any_outcome: bool = False
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
        """The columns that have a role, and so are not learned from."""
        optional = [column for column in (self.group, self.weight) if column is not None]
        return [self.target, *self.environment_columns, *optional]

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
        """Return the rows that are kept, with their environment, and the target relabelled.

        Target or environment may be among the columns or not; if rows are to be dropped, both must
        be, as `needs` says.
        """
        import pyarrow
        from pyarrow import compute

        columns = {name: rows.column(name) for name in rows.schema.names}
        masks_of_present = []  # for each role, whether a row has a value
        if self.environment is not None and {*self.environment_columns} <= {*columns}:
            environments = read_environments(rows, self.environment_columns)
            environments = rename(environments, self.renamed)  # null where they are excluded
            columns[self.environment] = environments
            masks_of_present.append(_find_present(environments))
        if self.target in columns:
            outcomes = simplify(columns[self.target], self.target)
            columns[self.target] = self._relabel(outcomes)
            masks_of_present.append(_find_present(outcomes))

        table = pyarrow.table(columns)
        if self.n_dropped or self.n_excluded:
            return table.filter(reduce(compute.and_, masks_of_present))
        return table

    def _relabel(self, outcomes: Any) -> Any:
        """Return whether each outcome is positive, if positive ones were chosen; else as it is."""
        import pyarrow
        from pyarrow import compute

        if not self.positive:
            return outcomes
        positive = pyarrow.array(self.positive, outcomes.type)
        is_positive = compute.is_in(outcomes, value_set=positive)
        return compute.if_else(_find_present(outcomes), is_positive, None)

    def keep_misread(self, misread: Mapping[tuple[str, str], int], features: Sequence[str]) -> Self:
        """Add the texts that were read as missing in the columns that are used."""
        used = {*features, *self.columns}
        misread_in_used = {
            (column, text): n_cells for (column, text), n_cells in misread.items() if column in used
        }
        return replace(self, misread=misread_in_used)


def _find_present(column: Any) -> Any:
    """Find the rows in which a column has a value: neither null nor NaN."""
    from pyarrow import compute

    return compute.invert(column.is_null(nan_is_null=True))


def make_roles(
    names: Sequence[str], target: str, environment: str | None = None, *, where: str, **choices: Any
) -> Roles:
    """Make the roles that the options define for a table of these columns; raise if they clash.

    `environment` may name several columns, separated by commas. `where` is the name of the table in
    errors, `choices` are other fields of `Roles`.
    """
    others = {role: choices.get(role) for role in ("group", "weight")}
    named = {role: column for role, column in others.items() if column is not None}
    naming.check_columns([target, *named.values()], names, where)
    environment_columns = []
    if environment is not None:
        environment_columns = split_names([environment], names, where)
        if not environment_columns:
            raise IcscmError(f"--environment {environment!r} names no column")

    roles = Roles(target=target, environment_columns=tuple(environment_columns), **choices)
    if target in environment_columns:
        raise IcscmError(f"target and environment are both {target!r}; name different columns")
    for role, column in named.items():
        if column in (target, *environment_columns):
            raise IcscmError(f"--{role} is {column!r}, target or environment; name another column")
    if len(set(named.values())) < len(named):
        raise IcscmError(f"--group and --weight are both {roles.group!r}; name different columns")
    if not environment_columns and (roles.exclude_environment or roles.merge_environments):
        raise IcscmError(
            "--exclude-environment and --merge-environments need a column of environments; "
            "name it with --environment"
        )
    if len(environment_columns) > 1 and roles.environment in names:
        raise IcscmError(f"{where} already has a column {roles.environment!r}; rename it")
    return roles


@dataclass(frozen=True, kw_only=True)
class Samples(Roles):
    """The rows of a table, taken apart by the roles of its columns.

    Parameters
    ----------
    X : the columns to learn from, a table in memory or in a store.
    y : outcome of each row; with `positive` values chosen, whether it is one of them.
    environments, groups, weights : of each row; None if no column was named.
    """

    X: Any
    y: Array
    environments: Array | None
    groups: Array | None = None
    weights: Array | None = None


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
    """Split a table in memory into columns to learn from, outcomes, environments and groups.

    `drop`, `only` and `environment` may hold several names separated by commas; `where` is the name
    of the table in errors, and `choices` are other arguments of `make_roles`.
    """
    chosen_roles = make_roles(table.column_names, target, environment, where=where, **choices)
    columns = choose_features(table.column_names, chosen_roles, drop, only, where)
    roles = find_labelling([tally_roles(table, chosen_roles)], chosen_roles)
    rows = roles.apply(table)
    return make_samples(rows.select(columns), rows, roles)


def make_samples(X: Any, rows: pyarrow.Table, roles: Roles) -> Samples:
    """Make the samples of which X holds what is learned from, and `rows` the columns with a role.

    Both have the same rows: `rows` is what `Roles.apply` returned.
    """
    environments = None
    if roles.environment is not None:
        environments = np.fromiter(rows.column(roles.environment).to_pylist(), dtype=object)
        _check_environments(environments, roles.environment)
    return Samples(
        X=X,
        y=np.array(rows.column(roles.target).to_pylist()),
        environments=environments,
        groups=None if roles.group is None else read_groups(rows, roles.group),
        weights=None if roles.weight is None else read_weights_of_rows(rows, roles.weight),
        **vars(roles),
    )


def _check_environments(environments: Array, name: str) -> None:
    """Raise if the environment is another in nearly every row, as an identifier is."""
    n_rows = len(environments)
    n_distinct = len(set(environments.tolist()))
    if n_rows >= _MIN_ROWS and n_distinct > _MAX_DISTINCT_SHARE * n_rows:
        why = f"the environment {name!r} has {n_distinct:,} values in {n_rows:,} rows"
        raise IcscmError(f"{why}; name a column with few values, such as hospital or year")


def read_groups(table: pyarrow.Table, name: str) -> Array:
    """Read the group of each row; raise if any is missing."""
    groups = table.column(name)
    if groups.null_count:
        raise IcscmError(f"the group {name!r} is missing in {groups.null_count:,} rows; fill it in")
    return np.asarray(groups.to_numpy())


def read_weights_of_rows(table: pyarrow.Table, name: str) -> FloatArray:
    """Read the weight of each row; raise unless they are numbers of 0 or more."""
    return read_weights(
        np.array(table.column(name).to_pylist()), len(table), f"the weight {name!r}"
    )


def split_names(texts: Sequence[str], names: Sequence[str], where: str) -> list[str]:
    """Split names from `A,B` and repeated options; a name that holds a comma is found whole.

    >>> split_names(["a,b", "c,d,a"], ["a", "b", "c,d"], "the table")
    ['a', 'b', 'c,d']
    """
    wanted = [name for text in texts for name in naming.split_known(text, ",", names)]
    naming.check_columns(wanted, names, where)
    return list(dict.fromkeys(wanted))


def split_commas(texts: Sequence[str]) -> list[str]:
    """Split texts at commas, where the names are not known.

    >>> split_commas(["a, b", "c"])
    ['a', 'b', 'c']
    """
    return [part.strip() for text in texts for part in text.split(",") if part.strip()]


def choose_features(
    names: Sequence[str], roles: Roles, drop: Sequence[str], only: Sequence[str], where: str
) -> list[str]:
    """Choose the columns to learn from: the `only` ones, or all without a role but those to `drop`.

    Columns in which pandas wrote an index are not learned from unless they are named.
    """
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
    if wanted:
        return wanted

    unused = {*roles.columns, *dropped}
    chosen = [name for name in names if name not in unused and not naming.is_index(name)]
    if not chosen:
        raise IcscmError(f"{where} has no column left to learn from")
    return chosen


def _find_role(name: str, roles: Roles) -> str:
    """Find the role of a column that is not learned from."""
    if name == roles.group:
        return "group"
    if name == roles.weight:
        return "weight"
    return "target" if name == roles.target else "environment"


# --- what outcomes and environments mean --------------------------------------------


class RowKey(NamedTuple):
    """What a row is counted by: its target and its environment, None where one is missing."""

    target: Any
    environment: Any

    @property
    def is_complete(self) -> bool:
        """Whether neither is missing."""
        return self.target is not None and self.environment is not None


Tally = Mapping[RowKey, int]


def tally_roles(rows: Any, roles: Roles) -> Counter[RowKey]:
    """Count the rows by target and environment, in a part of a table.

    Where no column of environments is named, all rows are in the same one.
    """
    import pyarrow

    outcomes = simplify(rows.column(roles.target), roles.target)
    columns = {"target": _set_nan_to_null(outcomes)}
    if roles.environment_columns:
        environments = read_environments(rows, roles.environment_columns)
        columns["environment"] = _set_nan_to_null(environments)

    grouped = pyarrow.table(columns).group_by([*columns])
    groups = grouped.aggregate([([], "count_all")]).to_pylist()  # the rows of each, of no column

    tally: Counter[RowKey] = Counter()
    for group in groups:
        key = RowKey(target=group["target"], environment=group.get("environment", _ALL_ROWS))
        # Added, since two groups may have one key: 0.0 and -0.0 are equal in Python.
        tally[key] += group["count_all"]
    return tally


def _set_nan_to_null(column: Any) -> Any:
    """Set NaN to null: both mean missing, and groups of rows by NaN would be others."""
    import pyarrow
    from pyarrow import compute

    is_missing = column.is_null(nan_is_null=True)
    return compute.if_else(is_missing, pyarrow.scalar(None, column.type), column)


def find_labelling(tallies: Iterable[Tally], roles: Roles, *, is_new: bool = False) -> Roles:
    """Find what the values of the target mean, by all rows, and which rows are dropped.

    `tallies` count the rows by target and environment, one for each part of the table. From these:

        1. the new names of environments, and those that are excluded
        2. among the other rows, whether target or environment is missing, which is an error unless
           such rows are to be dropped
        3. the positive values of the target: those that the user named, or the last of two

    In new rows for a model (`is_new`), values of the target that it was learned with may lack.
    """
    tally: Counter[RowKey] = Counter()
    for part in tallies:
        tally.update(part)
    if not tally:
        raise IcscmError("the data has no rows")

    # Environments first: rows of excluded ones may lack a target, or have values of their own.
    renamed = _find_renamed(tally, roles)
    excluded = {environment for environment, name in renamed.items() if name is None}
    kept = {key: n_rows for key, n_rows in tally.items() if key.environment not in excluded}
    if not kept:
        raise IcscmError("--exclude-environment leaves no row; exclude fewer environments")
    _check_missing(kept, roles)

    # Values of different types are ordered by type, since they cannot be compared.
    targets = {key.target for key in kept if key.is_complete}
    levels = sorted(targets, key=lambda value: (type(value).__name__, value))
    positive = tuple(_find_positive(levels, roles, is_new=is_new))
    if positive:  # the target becomes whether a value is one of them
        label = True
        negative = tuple(level for level in levels if level not in positive)
    else:
        label = levels[-1]
        negative = ()
    return replace(
        roles,
        label=label,
        positive=positive,
        negative=negative,
        renamed=renamed,
        n_dropped=sum(n_rows for key, n_rows in kept.items() if not key.is_complete),
        n_excluded=tally.total() - sum(kept.values()),
    )


def _find_renamed(tally: Tally, roles: Roles) -> dict[Any, Any]:
    """Find the new name of each environment, None if it is excluded; empty if none changes."""
    if roles.environment is None:
        return {}
    environments = {key.environment for key in tally} - {None}
    return find_renamed(
        environments, roles.environment, roles.exclude_environment, roles.merge_environments
    )


def _check_missing(kept: Tally, roles: Roles) -> None:
    """Raise for missing targets and environments, unless such rows may be dropped."""
    n_rows = sum(kept.values())
    n_without_target = sum(n for key, n in kept.items() if key.target is None)
    _check_column_missing(
        "target", roles.target, n_without_target, n_rows, may_drop=roles.drop_missing
    )
    if roles.environment is not None:
        n_without_environment = sum(n for key, n in kept.items() if key.environment is None)
        _check_column_missing(
            "environment",
            roles.environment,
            n_without_environment,
            n_rows,
            may_drop=roles.drop_missing,
        )
    # each may be missing in other rows
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
    """Find the levels of the target that the user chose as positive, by their texts.

    None need be chosen if there are two levels, or the target may have any values.
    """
    level_of_text = index_texts(levels)
    named: list[Any] = []
    for text in roles.positive:
        if text in level_of_text:
            named.append(level_of_text[text])
        elif not is_new:
            hint = naming.suggest(text, map(as_level_text, levels))
            raise IcscmError(f"the target {roles.target!r} has no value {text!r}{hint}")

    chosen = list(dict.fromkeys(named))  # two texts may name the same level: "1" and "1.0"
    if is_new:
        return chosen
    if not chosen and roles.takes_any_outcome and len(levels) > 2:
        return []
    if not chosen and len(levels) != 2:
        _reject_levels(levels, roles.target)
    if len(chosen) == len(levels):
        raise IcscmError(f"every value of the target {roles.target!r} is named positive; omit one")
    return chosen


def _reject_levels(levels: Sequence[Any], target: str) -> NoReturn:
    """Raise for a target of one value, or of more than two without any that is named positive."""
    listed = shorten_list([format_level(level) for level in levels])
    if len(levels) == 1:
        raise IcscmError(f"the target {target!r} has one value only ({listed}); learning needs two")
    advice = (
        "name those that count as positive with --positive; the others are negative. icscm screen "
        "takes several classes and numbers"
    )
    raise IcscmError(f"the target {target!r} has {len(levels):,} values ({listed}); {advice}")
