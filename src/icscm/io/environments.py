"""Environments of rows: joined from several columns, excluded, merged, and named by users."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from icscm._constants import JOINT
from icscm.exceptions import IcscmError
from icscm.formatting import format_level
from icscm.io.naming import split_known, suggest
from icscm.tables.columns import read_arrow_groups


def read_environments(rows: Any, columns: Sequence[str]) -> Any:
    """The environment of each row: a column, or `north / 2019` where several are joined.

    Where one of them is missing, so is the environment.
    """
    import pyarrow  # slow to load
    from pyarrow import compute

    parts = [simplify(rows.column(name), name) for name in columns]
    if len(parts) == 1:
        return parts[0]
    texts = []
    for part in parts:
        is_present = compute.invert(part.is_null(nan_is_null=True))
        levels = part.filter(is_present).unique().to_pylist()
        names = pyarrow.array([as_level_text(level) for level in levels], pyarrow.string())
        texts.append(names.take(compute.index_in(part, pyarrow.array(levels, part.type))))
    return compute.binary_join_element_wise(*texts, JOINT)


def simplify(column: Any, name: str) -> Any:
    """The column without categories, and dates as text, which files and messages can hold."""
    import pyarrow
    from pyarrow import types

    plain = read_arrow_groups(column, f"column {name!r}")
    return plain.cast(pyarrow.string()) if types.is_temporal(plain.type) else plain


def rename(column: Any, names: Mapping[Any, Any]) -> Any:
    """Each value under its new name, null if that is None; unchanged without new names."""
    import pyarrow
    from pyarrow import compute

    if not names:
        return column
    # environments that are only excluded leave the others as they are, of whatever type
    is_type_kept = all(old == new for old, new in names.items() if new is not None)
    new_type = column.type if is_type_kept else pyarrow.string()
    new_names = pyarrow.array([*names.values()], new_type)
    return new_names.take(compute.index_in(column, pyarrow.array([*names], column.type)))


def as_level_text(level: Any) -> str:
    """A value as a user would write it."""
    return level if isinstance(level, str) else format_level(level)


def index_texts(levels: Iterable[Any]) -> dict[str, Any]:
    """Levels by the texts that a user may write for them.

    >>> sorted(index_texts([True, 2.0]))
    ['2', '2.0', 'True', 'true']
    """
    level_of: dict[str, Any] = {}
    for level in levels:
        level_of[as_level_text(level)] = level
        level_of[str(level)] = level
        if isinstance(level, bool):
            level_of[str(level).lower()] = level
    return level_of


@dataclass(frozen=True)
class Renaming:
    """Environments that get one new name, as texts that the user wrote; None excludes them."""

    texts: Sequence[str]
    name: str | None


def find_renamed(
    levels: Collection[Any],
    column: str,
    excluded: Sequence[str],
    merged: Sequence[str],
    *,
    may_lack: bool = False,
) -> dict[Any, Any]:
    """The new name of each environment, None if it is excluded; empty if none changes.

    With `may_lack`, environments that are named but not among the levels are ignored.
    """
    if not excluded and not merged:
        return {}
    level_of = index_texts(levels)
    renamings = [Renaming([text], name=None) for text in excluded]
    renamings += [_read_merged(option, level_of) for option in merged]
    new_names: dict[Any, str | None] = {}
    for renaming in renamings:
        for text in renaming.texts:
            if text not in level_of:
                if may_lack:
                    continue
                hint = suggest(text, map(as_level_text, levels))
                raise IcscmError(f"the environment {column!r} has no value {text!r}{hint}")
            level = level_of[text]
            if new_names.get(level, renaming.name) != renaming.name:
                other = new_names[level]
                fate = "excluded" if other is None else f"merged into {other!r}"
                raise IcscmError(f"the environment {text!r} is already to be {fate}; choose one")
            new_names[level] = renaming.name
    # names of merged environments are texts, and so are then all others
    unchanged = {level: as_level_text(level) if merged else level for level in levels}
    return unchanged | new_names


def _read_merged(option: str, known: Collection[str]) -> Renaming:
    """`A+B=C` as A and B, to be called C; names may contain + and =."""
    readings = []
    for position, sign in enumerate(option):
        if sign == "=":
            texts = split_known(option[:position], "+", known)
            readings.append(Renaming(texts, name=option[position + 1 :].strip()))
    sure = [reading for reading in readings if reading.texts and {*reading.texts} <= {*known}]
    candidates = sure or readings
    if not candidates or not candidates[-1].texts or not candidates[-1].name:
        raise IcscmError(f"--merge-environments {option!r} must be of the form A+B=C")
    return candidates[-1]
