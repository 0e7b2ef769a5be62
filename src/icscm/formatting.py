"""Text of names, numbers and levels in messages and rules, and readable JSON.

Names, levels, classes, environments and file names come from users, and may hold line breaks, codes
of terminals or characters that reverse the text around them. All such text passes one function,
`escape_controls`, on its way to people: as `as_text` where a sentence or a row is made, and again
where a document is written, by every renderer (`report.terminal`, `report.markdown`,
`report.rendering` for pages, `drawing.svg`), message and line of progress. To pass it twice changes
nothing.
"""

import json
import math
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

# Items that a message lists before it counts the others, and characters of each.
N_LISTED = 5
MAX_LISTED = 50
# Characters of a message, of something quoted in it, and of a word: names in data may be long.
MAX_MESSAGE = 600
MAX_QUOTED = 80
MAX_WORD = 255
# Characters of a quoted path, which is only of use if it is complete.
MAX_PATH = 250
# Characters below which what is left of a clipped word would say nothing.
_MIN_WORD = 8
# Of a model file, whole numbers up to this are written as such: columns may be of uint64.
MAX_WHOLE = 2**64 - 1
# Characters up to which JSON has a list or object on one line.
MAX_LINE = 100

# Text quoted by `repr`: an apostrophe within a word does not open a quote.
_QUOTED = re.compile(r"""(?<![\w\\])(['"])((?:\\.|(?!\1)[^\\])*)\1""", re.DOTALL)
_LONG_WORD = re.compile(rf"\S{{{MAX_WORD},}}")


def clip(text: str, max_length: int) -> str:
    """A long text without its middle, or that of its longest word, such as a name in a rule.

    >>> clip("abcdefghijkl", 7), clip("abcdefghijklmnopq > 0", 13)
    ('abcd…kl', 'abcde…opq > 0')
    """
    if len(text) <= max_length:
        return text

    # To clip one name leaves the rest of a rule readable, if enough of the name is left.
    longest_word = max(text.split(), key=len, default=text)
    length_of_rest = len(text) - len(longest_word)
    room_for_word = max_length - length_of_rest
    if length_of_rest > 0 and room_for_word >= _MIN_WORD:
        return text.replace(longest_word, clip(longest_word, room_for_word), 1)

    n_at_end = max_length // 3
    n_at_start = max_length - n_at_end - 1  # one for the ellipsis
    return f"{text[:n_at_start]}…{text[len(text) - n_at_end :]}"


def clip_message(text: str) -> str:
    """A message of limited length, whatever names and values it contains.

    >>> clip_message(f"there is no column {'x' * 9_999!r}; did you mean 'age'?")[-50:]
    "x…xxxxxxxxxxxxxxxxxxxxxxxxxx'; did you mean 'age'?"
    """
    if len(text) <= MAX_QUOTED:
        return text
    without_long_quotes = _QUOTED.sub(_clip_quoted, text)
    without_long_words = _LONG_WORD.sub(
        lambda word: clip(word.group(), MAX_WORD), without_long_quotes
    )
    return clip(without_long_words, MAX_MESSAGE)


def _clip_quoted(quoted: re.Match[str]) -> str:
    """Clip what stands between two quotation marks; a path may be longer than a name."""
    mark, content = quoted.groups()
    limit = MAX_PATH if "/" in content else MAX_QUOTED
    return f"{mark}{clip(content, limit)}{mark}"


def shorten_list(items: Sequence[str], separator: str = ", ") -> str:
    """The first few items, and how many more there are.

    >>> shorten_list(list("abcdefg"))
    'a, b, c, d, e and 2 more'
    """
    listed = separator.join(clip(item, MAX_LISTED) for item in items[:N_LISTED])
    n_more = len(items) - N_LISTED
    if n_more <= 0:
        return listed
    return f"{listed} and {n_more:,} more"


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
    if not isinstance(value, float) or not math.isfinite(value):
        return format_exactly(value)
    rounded = float(f"{value:.12g}")
    is_rounding_error = math.isclose(rounded, value, rel_tol=1e-12)
    return format_exactly(rounded if is_rounding_error else value)


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
    if isinstance(level, bool):
        return str(level)
    if not isinstance(level, str):
        return format_number(level)
    joins_rules = re.search(r"\b(and|or)\b", level)
    if _PLAIN_LEVEL.fullmatch(level) and not joins_rules:
        return level
    return escape_controls(json.dumps(level, ensure_ascii=False))


def format_name(name: str | int) -> str:
    r"""A column as written in a rule: its name on one line, or x and its position.

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
    parts = re.split(r"([0-9]+)", text)  # texts and numbers by turns, as in "r", "10", ""
    return [_make_natural_key_of_part(part) for part in parts if part]


def _make_natural_key_of_part(part: str) -> tuple[bool, int, str]:
    """A number goes before a text; of two numbers the one with fewer digits is smaller.

    So numbers are compared by (digits, text), whatever their size: `int` has a limit of digits.
    """
    is_text = part[0] not in "0123456789"
    if is_text:
        return is_text, 0, part.casefold()
    digits = part.lstrip("0")
    return is_text, len(digits), digits


def as_text(value: object) -> str:
    r"""A user's value as text on one line: what does not print is escaped.

    >>> as_text("north\nwing"), as_text(7)
    ('north\\nwing', '7')
    """
    return escape_controls(str(value))


def escape_controls(text: str, keep: str = "") -> str:
    r"""Text for people: characters that do not print are written as escapes.

    These are controls, such as line breaks and the codes of terminals; characters that reverse or
    hide text around them (U+202E, zero-width ones); and unusual spaces. `keep` are those that a
    text has on purpose, such as the breaks between its lines.

    >>> escape_controls("a\x9b\u202e\n"), escape_controls("a\x7f\n", keep="\n")
    ('a\\x9b\\u202e\\n', 'a\\x7f\n')
    """
    if text.isprintable():
        return text
    unprintable = {char for char in text if not char.isprintable() and char not in keep}
    escapes = {
        ord(char): char.encode("unicode_escape", "surrogatepass").decode() for char in unprintable
    }
    return text.translate(escapes)


def name_type(value: object) -> str:
    """The type of an object, to stand for it where it cannot be written."""
    return type(value).__name__


def make_plain(value: Any, describe: Callable[[Any], Any] = name_type) -> Any:
    """A value that JSON can hold; other objects, such as a test, become a description.

    >>> make_plain({"weights": (1, float("nan")), "test": object()})
    {'weights': [1, 'nan'], 'test': 'object'}
    """
    # By their methods, since importing pandas or NumPy for this would be slow.
    is_series = hasattr(value, "to_dict") and hasattr(value, "index")
    if is_series:
        return make_plain(value.to_dict(), describe)
    is_array_or_number_of_it = hasattr(value, "tolist")
    if is_array_or_number_of_it:
        return make_plain(value.tolist(), describe)

    if isinstance(value, Mapping):
        return {str(key): make_plain(item, describe) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [make_plain(item, describe) for item in value]
    if value is None or isinstance(value, str | bool):
        return value
    if isinstance(value, int):
        return value if abs(value) <= MAX_WHOLE else str(value)
    if isinstance(value, float):
        return value if math.isfinite(value) else str(value)
    return describe(value)


def format_json(document: Mapping[str, Any]) -> str:
    """Readable JSON: one split, leaf or column per line, and no unprintable character."""
    return _lay_out(document, depth=3, indent="") + "\n"


def dump_json(value: Any, indent: int | None = None) -> str:
    r"""Standard JSON: NaN and infinity as text, unprintable characters escaped.

    >>> print(dump_json({"most": float("inf"), "name": "é\x9b"}))
    {"most": "inf", "name": "é\u009b"}
    """
    try:
        text = json.dumps(value, ensure_ascii=False, allow_nan=False, indent=indent)
    except ValueError:  # a number that is not finite
        text = json.dumps(make_plain(value), ensure_ascii=False, allow_nan=False, indent=indent)

    has_only_escaped_controls = text.isascii() and "\x7f" not in text
    if text.isprintable() or has_only_escaped_controls:
        return text
    return "".join(
        char if char.isprintable() or char == "\n" else _escape_in_json(char) for char in text
    )


def _escape_in_json(char: str) -> str:
    return json.dumps(char).strip('"')


def _lay_out(value: Any, *, depth: int, indent: str) -> str:
    """JSON in which long lists and objects span several lines, down to `depth` levels.

    `indent` is that of the line on which the value begins.
    """
    if depth == 0 or not isinstance(value, Mapping | list):
        return dump_json(value)
    may_fit_on_line = len(value) < MAX_LINE  # each item takes a character at least
    if may_fit_on_line:
        line = dump_json(value)
        if len(line) <= MAX_LINE - len(indent):
            return line

    inner_indent = indent + "  "
    if isinstance(value, Mapping):
        brackets = "{}"
        items = [
            f"{dump_json(key)}: {_lay_out(item, depth=depth - 1, indent=inner_indent)}"
            for key, item in value.items()
        ]
    else:
        brackets = "[]"
        items = [_lay_out(item, depth=depth - 1, indent=inner_indent) for item in value]
    lines = f",\n{inner_indent}".join(items)
    return f"{brackets[0]}\n{inner_indent}{lines}\n{indent}{brackets[1]}"
