"""Plain values for JSON, and readable JSON."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping
from typing import Any, Final

# Whole numbers up to this are written as such; thresholds and levels may come from uint64 columns.
MAX_WHOLE: Final = 2**64 - 1
# Characters up to which a list or object is written on one line.
MAX_LINE: Final = 100


def _name_type(value: Any) -> str:
    return type(value).__name__


def make_plain(value: Any, describe: Callable[[Any], str] = _name_type) -> Any:
    """A value that JSON can hold; other objects, such as a test, are described.

    >>> make_plain({"weights": (1, float("nan")), "test": object()})
    {'weights': [1, 'nan'], 'test': 'object'}
    """
    if hasattr(value, "to_dict") and hasattr(value, "index"):  # a pandas Series
        value = value.to_dict()
    elif hasattr(value, "tolist"):  # an array, or one number of it
        value = value.tolist()
    if isinstance(value, Mapping):
        return {str(key): make_plain(each, describe) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [make_plain(each, describe) for each in value]
    if value is None or isinstance(value, str | bool):
        return value
    if not isinstance(value, int | float):
        return describe(value)
    is_plain = abs(value) <= MAX_WHOLE if isinstance(value, int) else math.isfinite(value)
    return value if is_plain else str(value)


def format_json(document: Mapping[str, Any]) -> str:
    """Readable JSON: one split, leaf or feature per line, and no unprintable character."""
    return _lay_out(document, depth=3, indent="") + "\n"


def dump_json(value: Any, indent: int | None = None) -> str:
    r"""Standard JSON: NaN and infinity as text, unprintable characters escaped.

    >>> print(dump_json({"most": float("inf"), "name": "é\x9b"}))
    {"most": "inf", "name": "é\u009b"}
    """
    layout: Any = {"ensure_ascii": False, "allow_nan": False, "indent": indent}
    try:
        text = json.dumps(value, **layout)
    except ValueError:  # of what is not finite
        text = json.dumps(make_plain(value), **layout)
    if text.isprintable() or (text.isascii() and "\x7f" not in text):
        return text
    return "".join(
        each if each.isprintable() or each == "\n" else json.dumps(each)[1:-1] for each in text
    )


def _lay_out(value: Any, *, depth: int, indent: str) -> str:
    """JSON in which long lists and objects span several lines, down to `depth` levels."""
    is_plain = depth == 0 or not isinstance(value, Mapping | list)
    if is_plain or len(value) < MAX_LINE:
        line = dump_json(value)
        if is_plain or len(line) <= MAX_LINE - len(indent):
            return line
    inner = indent + "  "
    if isinstance(value, list):
        parts = [_lay_out(each, depth=depth - 1, indent=inner) for each in value]
        opening, closing = "[", "]"
    else:
        parts = [
            f"{dump_json(key)}: {_lay_out(each, depth=depth - 1, indent=inner)}"
            for key, each in value.items()
        ]
        opening, closing = "{", "}"
    joined = f",\n{inner}".join(parts)
    return f"{opening}\n{inner}{joined}\n{indent}{closing}"
