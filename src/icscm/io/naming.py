"""Names of columns: checked, suggested where one is misspelt, split where several are listed."""

import re
from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from difflib import get_close_matches

from icscm.exceptions import IcscmError
from icscm.formatting import shorten_list


def is_index(name: str) -> bool:
    """Whether a column is an index that pandas wrote to the file."""
    return re.match(r"__index_level_\d+__$", name) is not None


def suggest(name: str, names: Iterable[str]) -> str:
    """Return the end of a message: `; did you mean ...?` with the nearest names, or all names.

    >>> suggest("Age", ["age", "sex"]), suggest("xyz", ["age", "sex"])
    ("; did you mean 'age'?", "; there are 'age', 'sex'")
    """
    known = list(names)
    known_by_lower = {name.lower(): name for name in known}
    near = get_close_matches(name.lower(), known_by_lower, n=3, cutoff=0.6)
    if near:
        near_names = " or ".join(repr(known_by_lower[match]) for match in near)
        return f"; did you mean {near_names}?"
    if known:
        return f"; there are {shorten_list([repr(name) for name in known])}"
    return ""


def split_known(text: str, separator: str, known: Iterable[str]) -> list[str]:
    """Split names at separators; a known name that contains the separator is kept whole.

    The text is split at every separator, and then as many parts as possible are joined again if
    they make a known name.

    >>> split_known("a,b, c,d", ",", ["a,b", "c", "d"])
    ['a,b', 'c', 'd']
    """
    known_names = set(known)
    max_separators = max((name.count(separator) for name in known_names), default=0)
    max_parts = 1 + max_separators

    parts = text.split(separator)
    names = []
    while parts:
        name = _join_first_name(parts[:max_parts], separator, known_names)
        names.append(name if name in known_names else name.strip())
        n_parts = 1 + name.count(separator)
        parts = parts[n_parts:]
    return [name for name in names if name]


def _join_first_name(parts: Sequence[str], separator: str, known: Collection[str]) -> str:
    """Join the first parts to the longest known name, or return the first part if none is known."""
    for n_parts in range(len(parts), 0, -1):
        name = separator.join(parts[:n_parts])
        if name in known or name.strip() in known:
            return name
    return parts[0]


def check_columns(wanted: Iterable[str], names: Sequence[str], where: str) -> None:
    """Raise unless all columns exist; suggests similar names."""
    known = set(names)
    absent = [name for name in dict.fromkeys(wanted) if name not in known]
    if len(absent) == 1:
        raise IcscmError(f"{where} has no column {absent[0]!r}{suggest(absent[0], names)}")
    if absent:
        listed = shorten_list([repr(name) for name in absent])
        raise IcscmError(f"{where} lacks {len(absent)} columns: {listed}")


def check_names(names: Sequence[str], where: object) -> None:
    """Raise unless there are names, all different."""
    if not names:
        raise IcscmError(f"{where} has no columns")
    repeated = [repr(name) for name, n in Counter(names).items() if n > 1]
    if repeated:
        what = f"{where} has several columns called {shorten_list(repeated)}"
        raise IcscmError(f"{what}; rename them: rules refer to columns by name")


def check_same_names(
    first_names: Sequence[str], names: Sequence[str], *, first: object, where: object
) -> None:
    """Raise unless a file has the columns of the first one, in whatever order."""
    different = sorted(set(first_names).symmetric_difference(names))
    if different:
        listed = shorten_list([repr(name) for name in different])
        why = f"{where} and {first} have different columns: {listed}"
        raise IcscmError(f"{why}; all files must have the same columns")
