"""Checks of values from a JSON file that may be hostile; an error names the place of the value.

    read_person = object_of(name=TEXT, scores=list_of(NUMBER))
    read_person({"name": "a", "scores": [1, 2]}, "the file")  -->  {"name": "a", "scores": (1, 2)}
    read_person({"name": "a", "scores": [None]}, "the file")  -->  scores[0] must be a finite number

A `Check` takes a value and its place in the file. It returns the value, with tuples for lists, or
raises `WrongFileError`. `object_of` and `list_of` make checks of larger values from those of parts.
"""

import json
import math
from collections.abc import Callable, Mapping, Sequence
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


def quote(value: Any) -> str:
    """A value of a file as messages quote it: short JSON on one line."""
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


def require(is_right: Callable[[Any], bool], wanted: str) -> Check:
    """Make a check of a condition; `wanted` completes "must be ..."."""

    def check(value: Any, where: str) -> Any:
        if not is_right(value):
            reject(f"{where} must be {wanted}, got {quote(value)}")
        return value

    return check


def one_of(choices: Sequence[str]) -> Check:
    """Make a check of a text that is one of several."""
    return require(lambda value: value in choices, f"one of {', '.join(map(repr, choices))}")


def whole_number(low: int, high: int) -> Check:
    """Make a check of a whole number in a range, both ends included."""
    return require(
        lambda value: type(value) is int and low <= value <= high,
        f"a whole number from {low} to {high}",
    )


def number_or(*other_types: type, wanted: str) -> Check:
    """Make a check of a finite number of at most 64 bits, or a value of other types."""
    check_finite = require(
        lambda value: isinstance(value, other_types) or _is_finite_number(value), wanted
    )
    check_size = require(
        lambda value: not isinstance(value, int) or abs(value) <= MAX_WHOLE, f"{wanted} of 64 bits"
    )

    def check(value: Any, where: str) -> Any:
        return check_size(check_finite(value, where), where)

    return check


def _is_finite_number(value: Any) -> bool:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return is_number and math.isfinite(value)


TEXT: Final = require(lambda value: isinstance(value, str), "text")
# A name may be null: columns and environments need none.
NAME: Final = require(lambda value: isinstance(value, str | None), "text")
BOOLEAN: Final = require(lambda value: isinstance(value, bool), "true or false")
BOOLEAN_OR_NULL: Final = require(
    lambda value: isinstance(value, bool | None), "true, false or null"
)
OBJECT: Final = require(lambda value: isinstance(value, dict), "an object")
LIST: Final = require(lambda value: isinstance(value, list), "a list")
NUMBER: Final = number_or(wanted="a finite number")
LABEL: Final = number_or(str, bool, wanted="text, a finite number, true or false")
# A level of tests, or a threshold on probabilities; either may be null.
PROBABILITY: Final = require(
    lambda value: value is None or (isinstance(value, float) and 0 < value < 1),
    "a number between 0 and 1",
)


# --- lists and objects ----------------------------------------------------------------------------


def list_of(
    check_entry: Check, *, max_entries: int | None = None, n_entries: int | None = None
) -> Check:
    """Make a check of a list, which is returned as a tuple; its size may be limited or given."""

    def check(value: Any, where: str) -> Any:
        n_found = len(LIST(value, where))
        if max_entries is not None and n_found > max_entries:
            reject(f"{where} has {n_found:,} entries, more than the {max_entries:,} allowed")
        if n_entries is not None and n_found != n_entries:
            reject(f"{where} has {n_found:,} entries instead of {n_entries:,}")
        return tuple(
            check_entry(entry, f"{where}[{position}]") for position, entry in enumerate(value)
        )

    return check


def object_of(optional: Mapping[str, Check] | None = None, /, **required: Check) -> Check:
    """Make a check of an object with exactly these keys, and any of the optional ones."""
    may_have = optional or {}

    def check(value: Any, where: str) -> Any:
        keys = OBJECT(value, where).keys()
        for key in sorted(required.keys() - keys):
            reject(f"{where} lacks the key {key!r}")
        for key in sorted(keys - required.keys() - may_have.keys()):
            reject(f"{where} has a key that this version does not know, {quote(key)}")

        prefix = "" if where == WHOLE_FILE else f"{where}."
        present = {key: check_part for key, check_part in may_have.items() if key in keys}
        return {
            key: check_part(value[key], f"{prefix}{key}")
            for key, check_part in {**required, **present}.items()
        }

    return check


def read_kind(value: Any, where: str, kinds: Sequence[str]) -> Any:
    """The kind of an object, which determines its other keys."""
    if "kind" not in OBJECT(value, where):
        reject(f"{where} lacks the key 'kind'")
    return one_of(kinds)(value["kind"], f"{where}.kind")


def check_plain(value: Any, where: str, *, max_depth: int) -> None:
    """Raise unless a value is null, a label, or nested lists and objects of these."""
    if not isinstance(value, dict | list):
        if value is not None:
            LABEL(value, where)
        return
    if max_depth == 0:
        reject(f"{where} is nested too deeply")
    parts = value.items() if isinstance(value, dict) else enumerate(value)
    for key, part in parts:
        check_plain(part, f"{where}[{quote(key)}]", max_depth=max_depth - 1)
