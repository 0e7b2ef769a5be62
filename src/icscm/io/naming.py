"""Names of columns and of environments: checked, suggested, joined, renamed, merged."""

import re
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from difflib import get_close_matches
from typing import Any

from icscm._constants import JOINT
from icscm.exceptions import IcscmError
from icscm.formatting import format_level, shorten_list
from icscm.tables.columns import read_arrow_groups


def is_index(name: str) -> bool:
    """Whether a column is an index that pandas wrote to the file."""
    return re.match(r"__index_level_\d+__$", name) is not None


def suggest(name: str, names: Iterable[str]) -> str:
    """`; did you mean ...?` with the nearest names, or else a list of all names.

    >>> suggest("Age", ["age", "sex"]), suggest("xyz", ["age", "sex"])
    ("; did you mean 'age'?", "; there are 'age', 'sex'")
    """
    known = list(names)
    by_lower = {each.lower(): each for each in known}
    near = [by_lower[each] for each in get_close_matches(name.lower(), by_lower, n=3, cutoff=0.6)]
    if near:
        return f"; did you mean {' or '.join(map(repr, near))}?"
    return f"; there are {shorten_list([repr(each) for each in known])}" if known else ""


def split_known(text: str, separator: str, known: Iterable[str]) -> list[str]:
    """Split names at separators; a known name that contains the separator is kept whole.

    >>> split_known("a,b, c,d", ",", ["a,b", "c", "d"])
    ['a,b', 'c', 'd']
    """
    known = set(known)
    longest = 1 + max((name.count(separator) for name in known), default=0)
    parts, names = text.split(separator), []
    while parts:
        starts = (separator.join(parts[:n]) for n in range(min(longest, len(parts)), 0, -1))
        whole = next((each for each in starts if {each, each.strip()} & known), parts[0])
        names.append(whole if whole in known else whole.strip())
        parts = parts[1 + whole.count(separator) :]
    return [name for name in names if name]


def check_columns(wanted: Iterable[str], there: Sequence[str], where: str) -> None:
    """Raise unless all columns exist; suggests similar names."""
    known = set(there)
    absent = [name for name in dict.fromkeys(wanted) if name not in known]
    if len(absent) == 1:
        raise IcscmError(f"{where} has no column {absent[0]!r}{suggest(absent[0], there)}")
    if absent:
        names = shorten_list([repr(name) for name in absent])
        raise IcscmError(f"{where} lacks {len(absent)} columns: {names}")


def check_names(names: Sequence[str], where: object) -> None:
    """Raise unless there are names, all different."""
    if not names:
        raise IcscmError(f"{where} has no columns")
    twice = [repr(name) for name, n in Counter(names).items() if n > 1]
    if twice:
        what = f"{where} has several columns called {shorten_list(twice)}"
        raise IcscmError(f"{what}; rename them: rules refer to columns by name")


def check_same_names(first: Sequence[str], other: Sequence[str], where: object, at: object) -> None:
    """Raise unless two files have the same columns, in whatever order."""
    if different := sorted({*first} ^ {*other}):
        names = shorten_list([repr(name) for name in different])
        why = f"{at} and {where} have different columns: {names}"
        raise IcscmError(f"{why}; all files must have the same columns")


def read_environments(rows: Any, columns: Sequence[str]) -> Any:
    """The environment of each row: a column, or `north / 2019` where several are joined.

    Where one of them is missing, so is the environment.
    """
    import pyarrow  # slow to load
    from pyarrow import compute

    plain = [simplify(rows.column(name), name) for name in columns]
    if len(plain) == 1:
        return plain[0]
    texts = []
    for column in plain:
        levels = [each for each in column.unique().to_pylist() if each is not None and each == each]
        names = pyarrow.array([as_level_text(level) for level in levels], pyarrow.string())
        texts.append(names.take(compute.index_in(column, pyarrow.array(levels, column.type))))
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
    are_same = all(old == new for old, new in names.items() if new is not None)  # or leave
    new = pyarrow.array([*names.values()], column.type if are_same else pyarrow.string())
    return new.take(compute.index_in(column, pyarrow.array([*names], column.type)))


def as_level_text(level: Any) -> str:
    """A value as a user would write it."""
    return level if isinstance(level, str) else format_level(level)


def index_texts(levels: Iterable[Any]) -> dict[str, Any]:
    """Levels by the texts that a user may write for them.

    >>> sorted(index_texts([True, 2.0]))
    ['2', '2.0', 'True', 'true']
    """
    found: dict[str, Any] = {}
    for level in levels:
        texts = [as_level_text(level), str(level)]
        texts += [str(level).lower()] if isinstance(level, bool) else []
        found |= dict.fromkeys(texts, level)
    return found


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
    by_text = index_texts(levels)
    new: dict[Any, str | None] = {}
    options: list[tuple[list[str], str | None]] = [([text], None) for text in excluded]
    options += [_read_merged(option, by_text) for option in merged]
    for texts, name in options:
        for text in texts:
            if text not in by_text:
                if may_lack:
                    continue
                hint = suggest(text, map(as_level_text, levels))
                raise IcscmError(f"the environment {column!r} has no value {text!r}{hint}")
            level = by_text[text]
            if new.get(level, name) != name:
                to = "excluded" if new[level] is None else f"merged into {new[level]!r}"
                raise IcscmError(f"the environment {text!r} is already to be {to}; choose one")
            new[level] = name
    return {level: new.get(level, as_level_text(level) if merged else level) for level in levels}


def _read_merged(option: str, known: Collection[str]) -> tuple[list[str], str]:
    """`A+B=C` as A, B and C; names may contain + and =."""
    places = [i for i, sign in enumerate(option) if sign == "="]
    pairs = [(split_known(option[:i], "+", known), option[i + 1 :].strip()) for i in places]
    sure = [(texts, name) for texts, name in pairs if texts and {*texts} <= {*known}]
    texts, name = (sure or pairs or [([], "")])[-1]
    if not texts or not name:
        raise IcscmError(f"--merge-environments {option!r} must be of the form A+B=C")
    return texts, name
