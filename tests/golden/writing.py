"""A golden file: its reason and content, JSON that a person can review, and its comparison."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable
from dataclasses import asdict, dataclass, is_dataclass
from typing import Any

import numpy as np
import pandas as pd

import icscm

LINE_WIDTH = 100
# A larger record, or one with a longer item, has its items on separate lines.
MAX_LINES_OF_RECORD = 6
MAX_ITEM_WIDTH = 85
# Enough for the comparison, and few enough to be read.
N_DIGITS = 12
RELATIVE_TOLERANCE = 1e-9
ABSOLUTE_TOLERANCE = 1e-12
# Keys whose values change from run to run, or with a release.
VOLATILE_KEYS = {"seconds", "version", "fit_seconds", "predict_seconds"}


@dataclass(frozen=True)
class Golden:
    """A file that holds a result.

    Parameters
    ----------
    why : str
        What it is there for that no other file covers, for who reviews a change of it.
    make : function
        What makes the content: a value of a file that ends in `.json`, else a text.
    """

    why: str
    make: Callable[[], Any]


def simplify(value: Any) -> Any:
    """Return the value as JSON holds it: rounded, without what changes from run to run."""
    if isinstance(value, dict):
        kept = {key: item for key, item in value.items() if key not in VOLATILE_KEYS}
        return {str(key): simplify(item) for key, item in kept.items()}
    if isinstance(value, pd.DataFrame):
        table = value if isinstance(value.index, pd.RangeIndex) else value.reset_index()
        return [simplify(drop_unknown(row)) for row in table.to_dict("records")]
    if is_dataclass(value):
        return simplify(asdict(value))
    if isinstance(value, list | tuple | np.ndarray):
        return [simplify(item) for item in value]
    if isinstance(value, str):
        return mask_text(value)
    if isinstance(value, np.generic):
        return simplify(value.item())
    if isinstance(value, bool | int | None):
        return value
    if isinstance(value, float):
        return round_number(value) if math.isfinite(value) else str(value)
    return str(value)  # a rule, as it is printed


def drop_unknown(row: dict[str, Any]) -> dict[str, Any]:
    """Return a row of a table without its missing values."""
    return {
        name: value
        for name, value in row.items()
        if value is not None and not (isinstance(value, float) and math.isnan(value))
    }


def round_number(value: float) -> float:
    return float(f"{value:.{N_DIGITS}g}")


def mask_text(text: str) -> str:
    """Return the text without durations and the version of the package."""
    text = re.sub(r"\d+(\.\d+)?(e[-+]?\d+)? seconds?", "SOME seconds", text)
    return text.replace(icscm.__version__, "VERSION")


def write_json(value: Any, indent: str = "", key: str = "") -> str:
    """Return JSON in which a small record takes a line or a few, and a large one many.

    A change of one number is then one line of a diff, with the rest of its record beside it.
    """
    start = indent + key
    line = dump(value)
    if len(start) + len(line) < LINE_WIDTH or not isinstance(value, dict | list):
        return start + line

    inner = indent + " "
    opening, closing = "{}" if isinstance(value, dict) else "[]"
    if isinstance(value, dict):
        items = {f"{dump(name)}: ": item for name, item in value.items()}.items()
    else:
        items = [("", item) for item in value]
    words = [name + dump(item) for name, item in items]
    if has_short_items(value, words) and len(start) + len(words[0]) < LINE_WIDTH - 1:
        return ",\n".join(fill_lines(start + opening, words, inner)) + closing
    lines = [write_json(item, inner, name) for name, item in items]
    return f"{start}{opening}\n" + ",\n".join(lines) + f"\n{indent}{closing}"


def has_short_items(value: Any, words: list[str]) -> bool:
    """Whether several items of a record or a list fit on a line."""
    if max(map(len, words)) > MAX_ITEM_WIDTH:
        return False
    items = value.values() if isinstance(value, dict) else value
    if not any(isinstance(item, dict | list) for item in items):
        return True
    return isinstance(value, dict) and sum(map(len, words)) < MAX_LINES_OF_RECORD * LINE_WIDTH


def dump(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


def fill_lines(start: str, words: list[str], indent: str) -> list[str]:
    """Return as many words on each line as its width allows; the first one has a start."""
    lines = [start + words[0]]
    for word in words[1:]:
        if len(lines[-1]) + len(word) + 3 <= LINE_WIDTH:
            lines[-1] += f", {word}"
        else:
            lines.append(indent + word)
    return lines


def is_close(actual: Any, expected: Any) -> bool:
    """Whether two values of JSON are equal but for the last digits of numbers.

    The order of keys counts, since it is that of the lines in a file.
    """
    if isinstance(actual, float) or isinstance(expected, float):
        are_numbers = all(type(value) in (int, float) for value in (actual, expected))
        return are_numbers and math.isclose(
            actual, expected, rel_tol=RELATIVE_TOLERANCE, abs_tol=ABSOLUTE_TOLERANCE
        )
    if type(actual) is not type(expected):
        return False
    if isinstance(actual, dict):
        return list(actual) == list(expected) and all(
            is_close(actual[key], expected[key]) for key in expected
        )
    if isinstance(actual, list):
        return len(actual) == len(expected) and all(map(is_close, actual, expected))
    return actual == expected
