"""Roles of columns: a table split into features, labels and environments."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import reduce
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from icscm._constants import JOINT
from icscm._types import Array
from icscm.exceptions import IcscmError
from icscm.formatting import format_level, shorten_list
from icscm.io import naming

if TYPE_CHECKING:
    import pyarrow

# Values of the target that are negative because others are positive are named up to here.
N_NAMED = 3


@dataclass(frozen=True, kw_only=True)
class Roles:
    """The roles of columns: as the user chose them, and what they mean in a table.

    Those that the user chose are checked by `make_roles`; `find_labelling` adds the others.

    Parameters
    ----------
    target : the column of labels.
    places : columns of the environment: several are joined; empty if there is no environment.
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
    places: tuple[str, ...] = ()
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
        return JOINT.join(self.places) or None

    @property
    def columns(self) -> list[str]:
        """The columns that are not features."""
        return [self.target, *self.places, *filter(None, [self.group])]

    @property
    def is_plain(self) -> bool:
        """Whether target and environment are columns used without change."""
        changed = self.positive, self.exclude_environment, self.merge_environments
        return len(self.places) < 2 and not any((*changed, self.drop_missing))

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
        is_changed = self.n_dropped or self.renamed or len(self.places) > 1
        return self.columns if is_changed else []

    def apply(self, rows: pyarrow.Table) -> pyarrow.Table:
        """The rows that are kept, with their environment; whether the target is positive."""
        import pyarrow
        from pyarrow import compute

        columns = {name: rows.column(name) for name in rows.schema.names}
        is_kept = []
        if self.places and {*self.places} <= {*columns}:
            places = naming.rename(naming.read_environments(rows, self.places), self.renamed)
            columns[self.environment or ""] = places
            is_kept.append(compute.invert(places.is_null(nan_is_null=True)))
        if self.target in columns:
            labels = naming.simplify(columns[self.target], self.target)
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
    naming.check_columns([target, *filter(None, [choices.get("group")])], names, where)
    places = () if environment is None else tuple(split_names([environment], names, where))
    roles = Roles(target=target, places=places, **choices)
    if environment is not None and not places:
        raise IcscmError(f"--environment {environment!r} names no column")
    if target in places:
        raise IcscmError(f"target and environment are both {target!r}; name different columns")
    if roles.group in (target, *places):
        raise IcscmError(f"--group is {roles.group!r}, target or environment; name another column")
    if not places and (roles.exclude_environment or roles.merge_environments):
        why = "--exclude-environment and --merge-environments need a column of environments"
        raise IcscmError(f"{why}; name it with --environment")
    if len(places) > 1 and roles.environment in names:
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
    asked_for : columns that the user chose explicitly.
    """

    X: pyarrow.Table
    y: Array
    environments: Array | None
    groups: Array | None = None
    asked_for: tuple[str, ...] = ()


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
        n_distinct, n_rows = len(set(environments.tolist())), len(environments)
        if n_rows >= 20 and n_distinct > n_rows / 2:
            why = f"the environment {roles.environment!r} has {n_distinct:,} values in {n_rows:,}"
            raise IcscmError(f"{why} rows; name a column with few values, such as hospital or year")
    groups = None if roles.group is None else read_groups(table, roles.group)
    return Samples(
        X=table.select(chosen),
        y=np.array(table.column(target).to_pylist()),
        environments=environments,
        groups=groups,
        asked_for=tuple(chosen) if only else (),
        **vars(roles),
    )


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
    dropped, wanted = split_names(drop, names, where), split_names(only, names, where)
    for name in roles.columns:
        if name in wanted:
            role = "target" if name == roles.target else "environment"
            role = "group" if name == roles.group else role
            raise IcscmError(f"{name!r} is the {role} and cannot be a feature, too")
    both = [name for name in wanted if name in dropped]
    if both:
        raise IcscmError(f"{both[0]!r} is both to be used and to be dropped; choose one")
    away = {*roles.columns, *dropped}
    chosen = wanted or [name for name in names if name not in away and not naming.is_index(name)]
    if not chosen:
        raise IcscmError(f"{where} has no column left to learn from")
    return chosen


def tally_roles(rows: Any, roles: Roles) -> Counter[tuple[Any, ...]]:
    """The number of rows by target and, if there is one, environment; None where it is missing."""
    import pyarrow
    from pyarrow import compute

    columns = {"target": naming.simplify(rows.column(roles.target), roles.target)}
    if roles.places:
        columns["environment"] = naming.read_environments(rows, roles.places)
    for name, column in columns.items():
        is_missing, none = column.is_null(nan_is_null=True), pyarrow.scalar(None, column.type)
        columns[name] = compute.if_else(is_missing, none, column)
    counted = pyarrow.table(columns).group_by([*columns]).aggregate([([], "count_all")])
    found: Counter[tuple[Any, ...]] = Counter()
    keys = zip(*(counted.column(name).to_pylist() for name in columns), strict=True)
    for key, n_rows in zip(keys, counted.column("count_all").to_pylist(), strict=True):
        found[key] += n_rows  # 0.0 and -0.0 are two groups and one key
    return found


def find_labelling(
    tallies: Iterable[Mapping[tuple[Any, ...], int]], roles: Roles, *, is_new: bool = False
) -> Roles:
    """The meaning of the labels, by all rows; raise for missing ones unless rows may be dropped.

    New rows (`is_new`) of a table that a model was learned from need not have every label.
    """
    found: Counter[tuple[Any, ...]] = Counter()
    for tally in tallies:
        found.update(tally)
    if not found:
        raise IcscmError("the data has no rows")
    places = {key[-1] for key in found if roles.places} - {None}
    choices = roles.environment or "", roles.exclude_environment, roles.merge_environments
    renamed = naming.find_renamed(places, *choices)
    excluded = {level for level, name in renamed.items() if name is None}
    kept = {key: n for key, n in found.items() if not (roles.places and key[-1] in excluded)}
    n_rows = sum(kept.values())
    if n_rows == 0:
        raise IcscmError("--exclude-environment leaves no row; exclude fewer environments")
    for i, name in enumerate(filter(None, (roles.target, roles.environment))):
        role = "environment" if i else "target"
        n_missing = sum(n for key, n in kept.items() if key[i] is None)
        if n_missing == n_rows:
            raise IcscmError(f"the {role} {name!r} is missing in every row")
        if n_missing and not roles.drop_missing:
            why = f"the {role} {name!r} is missing in {n_missing:,} of {n_rows:,} rows"
            raise IcscmError(f"{why}; fill it in, or drop these rows with --drop-missing")
    n_dropped = sum(n for key, n in kept.items() if None in key)
    if n_dropped == n_rows:
        raise IcscmError(f"no row has both the target {roles.target!r} and {roles.environment!r}")
    labels = {key[0] for key in kept if None not in key}
    levels = sorted(labels, key=lambda value: (type(value).__name__, value))
    chosen = tuple(_find_positive(levels, roles, is_new=is_new))
    return replace(
        roles,
        label=bool(chosen) or levels[-1],
        positive=chosen,
        negative=tuple(level for level in levels if level not in chosen) if chosen else (),
        renamed=renamed,
        n_dropped=n_dropped,
        n_excluded=found.total() - n_rows,
    )


def _find_positive(levels: Sequence[Any], roles: Roles, *, is_new: bool) -> list[Any]:
    """The levels of the target that the user named by their texts; none if there are just two."""
    by_text, target = naming.index_texts(levels), roles.target
    chosen = []
    for text in dict.fromkeys(roles.positive):
        if text in by_text:
            chosen.append(by_text[text])
        elif not is_new:
            hint = naming.suggest(text, map(naming.as_level_text, levels))
            raise IcscmError(f"the target {target!r} has no value {text!r}{hint}")
    if not is_new and not chosen and len(levels) != 2:
        listed = shorten_list([format_level(level) for level in levels])
        what, advice = "one value only", "learning needs two"
        if len(levels) > 1:
            what = f"{len(levels):,} values"
            advice = "name those that count as positive with --positive; the others are negative"
        raise IcscmError(f"the target {target!r} has {what} ({listed}); {advice}")
    if not is_new and len(set(chosen)) == len(levels):
        raise IcscmError(f"every value of the target {target!r} is named positive; omit one")
    return list(dict.fromkeys(chosen))
