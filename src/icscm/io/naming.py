"""Names of columns: checked to be unique and present, with suggestions for misspelt ones."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from difflib import get_close_matches

from icscm.exceptions import IcscmError
from icscm.formatting import shorten_list


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
    """Raise unless all columns are there; names the near ones."""
    known = set(there)
    absent = [name for name in dict.fromkeys(wanted) if name not in known]
    if len(absent) == 1:
        raise IcscmError(f"{where} has no column {absent[0]!r}{suggest(absent[0], there)}")
    if absent:
        names = shorten_list([repr(name) for name in absent])
        raise IcscmError(f"{where} lacks {len(absent)} columns: {names}")


def check_names(names: Sequence[str], where: object) -> None:
    """Raise unless there are names, and each once."""
    if not names:
        raise IcscmError(f"{where} has no columns")
    twice = [repr(name) for name, n in Counter(names).items() if n > 1]
    if twice:
        raise IcscmError(
            f"{where} has several columns called {shorten_list(twice)}; rename them: rules refer "
            "to columns by name"
        )


def check_same_names(first: Sequence[str], other: Sequence[str], where: object, at: object) -> None:
    """Raise unless two files have the same columns, in whatever order."""
    if different := sorted({*first} ^ {*other}):
        raise IcscmError(
            f"{at} has not the same columns as {where}: they differ in "
            f"{shorten_list([repr(name) for name in different])}; all files must have the same"
        )
