"""Text of names, numbers and levels in messages and rules, and readable JSON."""

import json
import math
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

# Items that a message lists before it counts the others, and characters of each.
N_LISTED = 5
MAX_LISTED = 50
# Characters of a message, of something quoted in it, and of a word; what is left of a clipped word.
MAX_MESSAGE, MAX_QUOTED, MAX_WORD, _MIN_WORD = 600, 80, 255, 8
# Paths are never shortened.
MAX_PATH = 250
# Of a model file, whole numbers up to this are written as such: columns may be of uint64.
MAX_WHOLE = 2**64 - 1
# Characters up to which JSON has a list or object on one line.
MAX_LINE = 100

# Text quoted by `repr`: an apostrophe within a word does not open a quote.
_QUOTED = re.compile(r"""(?<![\w\\])(['"])((?:\\.|(?!\1)[^\\])*)\1""", re.DOTALL)


def clip(text: str, most: int) -> str:
    """A long text without its middle, or that of its longest word, such as a name in a rule.

    >>> clip("abcdefghijkl", 7), clip("abcdefghijklmnopq > 0", 13)
    ('abcd…kl', 'abcde…opq > 0')
    """
    if len(text) <= most:
        return text
    word = max(text.split(), key=len, default=text)
    room = most - len(text) + len(word)
    if len(word) < len(text) and room >= _MIN_WORD:
        return text.replace(word, clip(word, room), 1)
    tail = most // 3
    return f"{text[: most - tail - 1]}…{text[len(text) - tail :]}"


def clip_message(text: str) -> str:
    """A message of limited length, whatever names and values it contains.

    >>> clip_message(f"there is no column {'x' * 9_999!r}; did you mean 'age'?")[-50:]
    "x…xxxxxxxxxxxxxxxxxxxxxxxxxx'; did you mean 'age'?"
    """
    if len(text) <= MAX_QUOTED:
        return text
    text = _QUOTED.sub(lambda found: f"{found[1]}{_clip_quoted(found[2])}{found[1]}", text)
    text = re.sub(rf"\S{{{MAX_WORD},}}", lambda found: clip(found[0], MAX_WORD), text)
    return clip(text, MAX_MESSAGE)


def _clip_quoted(text: str) -> str:
    return clip(text, MAX_PATH if "/" in text else MAX_QUOTED)


def shorten_list(items: Sequence[str], separator: str = ", ") -> str:
    """The first few items, and how many more there are.

    >>> shorten_list(list("abcdefg"))
    'a, b, c, d, e and 2 more'
    """
    n_more = len(items) - N_LISTED
    shown = separator.join(clip(each, MAX_LISTED) for each in items[:N_LISTED])
    return shown + (f" and {n_more:,} more" if n_more > 0 else "")


def count(n: int, noun: str) -> str:
    """A number and its noun.

    >>> count(1, "rule"), count(1200, "leaf"), count(3, "leaf")
    ('1 rule', '1,200 leaves', '3 leaves')
    """
    plural = f"{noun[:-1]}ves" if noun.endswith("f") else f"{noun}s"
    return f"{n:,} {noun if n == 1 else plural}"


def format_number(value: float) -> str:
    """A number for display, without last digits that are rounding errors.

    >>> format_number(63.0), format_number(775.6999999999999), format_number(0.123456789012345)
    ('63', '775.7', '0.123456789012345')
    """
    if isinstance(value, float) and math.isfinite(value):
        short = float(f"{value:.12g}")
        value = short if math.isclose(short, value, rel_tol=1e-12) else value
    return format_exactly(value)


def format_exactly(value: float) -> str:
    """The shortest text that reads back as `value`, whole numbers without a point.

    >>> format_exactly(63.0), format_exactly(775.6999999999999), format_exactly(1e300)
    ('63', '775.6999999999999', '1e+300')
    """
    if isinstance(value, float) and value.is_integer() and abs(value) < 1e15:
        return str(int(value))
    return repr(value)


# Text that cannot be mistaken for a number, for the syntax of a rule, or for a missing value.
_PLAIN_LEVEL = re.compile(r"(?i)(?!(true|false|missing|nan|inf)$)[^\W\d][\w.+/ -]*(?<! )")


def format_level(level: str | float | bool) -> str:
    """A level of a category as written in a rule: quoted where it could be misread.

    >>> [format_level(level) for level in ("yes", True, 2.0, "2", "", "a and b", "North East")]
    ['yes', 'True', '2', '"2"', '""', '"a and b"', 'North East']
    """
    if isinstance(level, bool) or not isinstance(level, str):
        return str(level) if isinstance(level, bool) else format_number(level)
    is_plain = _PLAIN_LEVEL.fullmatch(level) and not re.search(r"\b(and|or)\b", level)
    return level if is_plain else escape_controls(json.dumps(level, ensure_ascii=False))


def format_name(name: str | int) -> str:
    r"""A feature as written in a rule: its name on one line, or x and its position.

    >>> format_name("age"), format_name(3), format_name("a\x1b[2J\nb"), format_name(" ")
    ('age', 'x3', 'a\\x1b[2J\\nb', '" "')
    """
    if not isinstance(name, str):
        return f"x{name}"
    return escape_controls(name if name.strip() else f'"{name}"')


def natural_key(text: str) -> list[tuple[bool, int, str]]:
    """A sort key for names in natural order: numbers in them are compared as numbers.

    >>> sorted(["r10", "r2", "10", "b", "9"], key=natural_key)
    ['9', '10', 'b', 'r2', 'r10']
    """
    key = []
    for part in filter(None, re.split(r"([0-9]+)", text)):
        digits = part.lstrip("0") if part[0] in "0123456789" else None
        key.append((True, 0, part.casefold()) if digits is None else (False, len(digits), digits))
    return key


def as_text(value: object) -> str:
    """A user's value as text, with control characters escaped."""
    return escape_controls(str(value))


def escape_controls(text: str, keep: str = "") -> str:
    r"""Text for a terminal: characters that do not print are written as escapes.

    >>> escape_controls("a\x9b\u202e\n"), escape_controls("a\x7f\n", keep="\n")
    ('a\\x9b\\u202e\\n', 'a\\x7f\n')
    """
    if text.isprintable():
        return text
    odd = {each for each in text if not each.isprintable() and each not in keep}
    escaped = {ord(each): each.encode("unicode_escape", "surrogatepass").decode() for each in odd}
    return text.translate(escaped)


def make_plain(
    value: Any, describe: Callable[[Any], str] = lambda each: type(each).__name__
) -> Any:
    """A value that JSON can hold; other objects, such as a test, become a description.

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
        return type(value).__name__ if describe is None else describe(value)
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
    inner, brackets = indent + "  ", "[]"
    keys, values = [""] * len(value), value
    if isinstance(value, Mapping):
        brackets, keys, values = "{}", [f"{dump_json(key)}: " for key in value], value.values()
    laid_out = (_lay_out(each, depth=depth - 1, indent=inner) for each in values)
    joined = f",\n{inner}".join(map("".join, zip(keys, laid_out, strict=True)))
    return f"{brackets[0]}\n{inner}{joined}\n{indent}{brackets[1]}"
