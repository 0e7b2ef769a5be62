"""Environments of rows: joined from several columns, excluded, merged, and named by users.

Users write names as texts, while the values of a column may be numbers or booleans; a value is
called a level here.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from icscm._constants import JOINT
from icscm.exceptions import IcscmError
from icscm.formatting import format_level
from icscm.io.naming import split_known, suggest
from icscm.tables.columns import read_arrow_groups


def read_environments(rows: Any, columns: Sequence[str]) -> Any:
    """Read the environment of each row: a column, or `north / 2019` where several are joined.

    Where one of them is missing, so is the environment.
    """
    from pyarrow import compute  # slow to load

    parts = [simplify(rows.column(name), name) for name in columns]
    if len(parts) == 1:
        return parts[0]
    texts = [_write_levels(part) for part in parts]
    return compute.binary_join_element_wise(*texts, JOINT)


def _write_levels(column: Any) -> Any:
    """Write each value of a column as a user would, null where it is missing."""
    import pyarrow
    from pyarrow import compute

    is_present = compute.invert(column.is_null(nan_is_null=True))
    levels = column.filter(is_present).unique().to_pylist()
    texts = pyarrow.array([as_level_text(level) for level in levels], pyarrow.string())
    number_of_level = compute.index_in(column, pyarrow.array(levels, column.type))
    return texts.take(number_of_level)


def simplify(column: Any, name: str) -> Any:
    """Return a column without categories, and dates as text, which files and messages can hold."""
    import pyarrow
    from pyarrow import types

    plain = read_arrow_groups(column, f"column {name!r}")
    return plain.cast(pyarrow.string()) if types.is_temporal(plain.type) else plain


def rename(column: Any, names: Mapping[Any, Any]) -> Any:
    """Rename the values of a column, to null where the new name is None.

    Without new names it is unchanged.
    """
    import pyarrow
    from pyarrow import compute

    if not names:
        return column
    # environments that are only excluded leave the others as they are, of whatever type
    is_type_kept = all(old == new for old, new in names.items() if new is not None)
    new_type = column.type if is_type_kept else pyarrow.string()

    old_names = pyarrow.array([*names], column.type)
    new_names = pyarrow.array([*names.values()], new_type)
    number_of_name = compute.index_in(column, old_names)
    return new_names.take(number_of_name)


def as_level_text(level: Any) -> str:
    """Return a value as a user would write it."""
    return level if isinstance(level, str) else format_level(level)


def index_texts(levels: Iterable[Any]) -> dict[str, Any]:
    """Return levels by the texts that a user may write for them.

    >>> sorted(index_texts([True, 2.0]))
    ['2', '2.0', 'True', 'true']
    """
    level_of_text: dict[str, Any] = {}
    for level in levels:
        level_of_text[as_level_text(level)] = level
        level_of_text[str(level)] = level
        if isinstance(level, bool):
            level_of_text[str(level).lower()] = level
    return level_of_text


@dataclass(frozen=True)
class Renaming:
    """One option of the user: environments, as texts, and the new name of all of them.

    They are excluded if the name is None.
    """

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
    """Find the new name of each environment, None if it is excluded; empty if none changes.

    The user names environments by texts, as on a command line, where `levels` may be numbers.

    Parameters
    ----------
    levels : collection
        All environments.
    column : str
        Their name in messages.
    excluded : sequence of str
        Environments to exclude.
    merged : sequence of str
        Environments to merge: `A+B=C`.
    may_lack : bool
        Whether environments that are named but not among the levels are ignored.
    """
    if not excluded and not merged:
        return {}
    level_of_text = index_texts(levels)
    renamings = [Renaming([text], name=None) for text in excluded]
    renamings += [_read_merged(option, level_of_text) for option in merged]

    new_names: dict[Any, str | None] = {}
    for renaming in renamings:
        for text in renaming.texts:
            if text not in level_of_text and may_lack:
                continue
            if text not in level_of_text:
                hint = suggest(text, map(as_level_text, levels))
                raise IcscmError(f"the environment {column!r} has no value {text!r}{hint}")
            level = level_of_text[text]
            _check_not_renamed(text, renaming.name, new_names.get(level, renaming.name))
            new_names[level] = renaming.name

    # Names of merged environments are texts, and so are then all others.
    unchanged = {level: as_level_text(level) if merged else level for level in levels}
    return unchanged | new_names


def _check_not_renamed(text: str, new_name: str | None, name_before: str | None) -> None:
    """Raise if another option gives an environment another name, or excludes it."""
    if new_name == name_before:
        return
    fate = "excluded" if name_before is None else f"merged into {name_before!r}"
    raise IcscmError(f"the environment {text!r} is already to be {fate}; choose one")


def _read_merged(option: str, known: Collection[str]) -> Renaming:
    """Read `A+B=C` as A and B, to be called C.

    Names may contain + and =, so the option may be cut at any = in it. The last cut before which
    there are known names only is taken, or else the last of all.
    """
    readings = []
    for position, character in enumerate(option):
        if character == "=":
            texts = split_known(option[:position], "+", known)
            readings.append(Renaming(texts, name=option[position + 1 :].strip()))
    known_readings = [
        reading for reading in readings if reading.texts and {*reading.texts} <= {*known}
    ]

    candidates = known_readings or readings
    if not candidates or not candidates[-1].texts or not candidates[-1].name:
        raise IcscmError(f"--merge-environments {option!r} must be of the form A+B=C")
    return candidates[-1]
