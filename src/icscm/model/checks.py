"""Checks of values from a JSON file that may be hostile; an error names the place of the value.

    read_person = object_of(name=TEXT, scores=list_of(check_number))
    read_person({"name": "a", "scores": [1, 2]}, "the file")  -->  {"name": "a", "scores": (1, 2)}
    read_person({"name": "a", "scores": [None]}, "the file")  -->  scores[0] must be a finite number

A `Check` takes a value and its place in the file. It returns the value, with tuples for lists, or
raises `WrongFileError`. `object_of` and `list_of` make checks of larger values from those of parts.
"""

import json
import math
from collections.abc import Callable, Mapping, Sequence
from types import NoneType
from typing import Any, Final, NoReturn

from icscm.formatting import MAX_WHOLE, escape_controls

Check = Callable[[Any, str], Any]

# The place of the outermost object.
WHOLE_FILE: Final = "the file"
# Characters of what a message quotes from a file.
_N_QUOTED: Final = 60


class WrongFileError(Exception):
    """Raised with what is wrong with a file, where, and what to do."""

    def __init__(
        self, what: str, remedy: str = "use a file as save() wrote it, or fit and save again"
    ) -> None:
        super().__init__(f"{what}; {remedy}")
        self.what = what
        self.remedy = remedy


def reject(what: str) -> NoReturn:
    """Raise for a file that `save` did not write so."""
    raise WrongFileError(what)


def reject_value(value: Any, where: str, wanted: str) -> NoReturn:
    """Raise for a value that is not what is wanted in this place."""
    reject(f"{where} must be {wanted}, got {quote(value)}")


def quote(value: Any) -> str:
    """Return a value of a file as messages quote it: short JSON on one line."""
    if isinstance(value, dict | list):
        kind = "an object" if isinstance(value, dict) else "a list"
        return f"{kind} of {len(value):,}"
    if isinstance(value, str):
        short = value if len(value) <= _N_QUOTED else f"{value[:_N_QUOTED]}..."
        return escape_controls(json.dumps(short, ensure_ascii=False))
    if isinstance(value, float) and math.isinf(value):
        return "a number that is not finite"
    return json.dumps(value)


# --- single values --------------------------------------------------------------------------------


def instance_of(*types: type, wanted: str) -> Check:
    """Make a check of the type; `wanted` completes "must be ..." in the message."""

    def check(value: Any, where: str) -> Any:
        if not isinstance(value, types):
            reject_value(value, where, wanted)
        return value

    return check


TEXT: Final = instance_of(str, wanted="text")
# A name may be null: columns and environments need none.
NAME: Final = instance_of(str, NoneType, wanted="text")
BOOLEAN: Final = instance_of(bool, wanted="true or false")
BOOLEAN_OR_NULL: Final = instance_of(bool, NoneType, wanted="true, false or null")
OBJECT: Final = instance_of(dict, wanted="an object")
LIST: Final = instance_of(list, wanted="a list")


def one_of(choices: Sequence[str]) -> Check:
    """Make a check of a text that is one of several."""
    wanted = f"one of {', '.join(map(repr, choices))}"

    def check(value: Any, where: str) -> Any:
        if value not in choices:
            reject_value(value, where, wanted)
        return value

    return check


def whole_number(low: int, high: int) -> Check:
    """Make a check of a whole number in a range, both ends included."""

    def check(value: Any, where: str) -> Any:
        is_whole = type(value) is int  # a boolean is not
        if not is_whole or not low <= value <= high:
            reject_value(value, where, f"a whole number from {low} to {high}")
        return value

    return check


def check_number(value: Any, where: str) -> int | float:
    """Return a value that is a finite number of at most 64 bits; raise for any other."""
    wanted = "a finite number"
    if not _is_finite_number(value):
        reject_value(value, where, wanted)
    _check_size(value, where, wanted)
    number: int | float = value
    return number


def check_label(value: Any, where: str) -> str | bool | int | float:
    """Return a value that is a label: text, a boolean or such a number; raise for any other."""
    wanted = "text, a finite number, true or false"
    if not isinstance(value, str | bool) and not _is_finite_number(value):
        reject_value(value, where, wanted)
    _check_size(value, where, wanted)
    label: str | bool | int | float = value
    return label


def check_probability(value: Any, where: str) -> float | None:
    """Return a level of tests, or a threshold on probabilities; either may be null."""
    if value is None:
        return None
    if not isinstance(value, float) or not 0 < value < 1:
        reject_value(value, where, "a number between 0 and 1")
    return value


def _is_finite_number(value: Any) -> bool:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return is_number and math.isfinite(value)


def _check_size(value: Any, where: str, wanted: str) -> None:
    """Raise for a whole number of more than 64 bits, which NumPy could not hold."""
    if isinstance(value, int) and abs(value) > MAX_WHOLE:
        reject_value(value, where, f"{wanted} of 64 bits")


# --- lists and objects ----------------------------------------------------------------------------


def list_of(
    check_entry: Check, *, max_entries: int | None = None, n_entries: int | None = None
) -> Check:
    """Make a check of a list, which is returned as a tuple; its size may be limited or given."""

    def check(value: Any, where: str) -> Any:
        LIST(value, where)
        n_found = len(value)
        if max_entries is not None and n_found > max_entries:
            reject(f"{where} has {n_found:,} entries, more than the {max_entries:,} allowed")
        if n_entries is not None and n_found != n_entries:
            reject(f"{where} has {n_found:,} entries instead of {n_entries:,}")
        return tuple(
            check_entry(entry, f"{where}[{position}]") for position, entry in enumerate(value)
        )

    return check


def object_of(optional: Mapping[str, Check] | None = None, /, **required: Check) -> Check:
    """Make a check of an object with exactly these keys, and any of the optional ones.

    Each key comes with the check of its value.
    """
    check_of_key = {**required, **(optional or {})}

    def check(value: Any, where: str) -> Any:
        OBJECT(value, where)
        for key in sorted(required.keys() - value.keys()):
            reject(f"{where} lacks the key {key!r}")
        for key in sorted(value.keys() - check_of_key.keys()):
            reject(f"{where} has a key that this version does not know, {quote(key)}")

        prefix = "" if where == WHOLE_FILE else f"{where}."
        return {
            key: check_value(value[key], f"{prefix}{key}")
            for key, check_value in check_of_key.items()
            if key in value
        }

    return check


def read_kind(value: Any, where: str, kinds: Sequence[str]) -> Any:
    """Read the kind of an object, which determines its other keys."""
    OBJECT(value, where)
    if "kind" not in value:
        reject(f"{where} lacks the key 'kind'")
    return one_of(kinds)(value["kind"], f"{where}.kind")


def check_plain(value: Any, where: str, *, max_depth: int) -> None:
    """Raise unless a value is null, a label, or nested lists and objects of these."""
    if not isinstance(value, dict | list):
        if value is not None:
            check_label(value, where)
        return
    if max_depth == 0:
        reject(f"{where} is nested too deeply")
    parts = value.items() if isinstance(value, dict) else enumerate(value)
    for key, part in parts:
        check_plain(part, f"{where}[{quote(key)}]", max_depth=max_depth - 1)
