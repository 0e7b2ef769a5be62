"""A saved model in other languages: SQL, Python, JSON for any other, and words.

All are written from one list of branches. A sample goes through their conditions in order, and the
first that is true decides:

    condition 1 true?  -> leaf 0
    condition 2 true?  -> leaf 1
    ...
    none               -> the last leaf

In a disjunction the conditions are the rules. In a conjunction they are the rules' opposites. Names
and levels come from users: each language has one function here that quotes text, and nothing else
lets text through.
"""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Final

from icscm.exceptions import IcscmError
from icscm.files import TextFormat, find_numbers
from icscm.models import RuleSet
from icscm.rules import (
    AnyRule,
    CategoryRule,
    PresenceRule,
    Rule,
    ThresholdRule,
    escape_controls,
    format_level,
    format_name,
    format_number,
)
from icscm.saved import (
    NUMBER,
    Feature,
    Label,
    SavedModel,
    describe_leaves,
    find_verdicts,
    format_json,
    get_table_settings,
)
from icscm.table import Level

FORMAT: Final = "icscm-decision-list"
SCHEMA: Final = 1

# Whole numbers that a float64 holds exactly.
MAX_EXACT: Final = 2**53
# Significant digits that every SQLite reads exactly. Of a longer number, versions before 3.43 can
# get the last bit wrong, and a threshold is a value that was observed.
MAX_SQL_DIGITS: Final = 15
# The largest power of ten that a float64 holds exactly.
MAX_TEN_POWER: Final = 22

OPPOSITES: Final = {
    ">": "<=",
    "<=": ">",
    "in": "not in",
    "not in": "in",
    "is missing": "is present",
    "is present": "is missing",
}


@dataclass(frozen=True)
class Leaf:
    """What becomes of the samples that one condition, or none, decides.

    `counts` are the training samples of each class; Laplace's rule makes the probability of them.
    """

    label: Label
    probability: float
    decided_by: str
    counts: tuple[int, int]

    @property
    def fraction(self) -> tuple[int, int] | None:
        """Two whole numbers whose quotient is the probability; None if floats cannot hold them."""
        above, below = self.counts[1] + 1, sum(self.counts) + 2
        return (above, below) if below < MAX_EXACT else None


@dataclass(frozen=True)
class Branch:
    """A condition on one column and the leaf of the samples for which it is true."""

    column: int
    name: str | None
    type: str
    operator: str
    value: float | tuple[Level, ...] | None
    if_missing: bool
    leaf: Leaf

    @property
    def has_number_levels(self) -> bool:
        """Whether it asks for categories that are numbers."""
        levels = self.value
        return isinstance(levels, tuple) and not isinstance(levels[0], str | bool)


@dataclass(frozen=True)
class Absent:
    """What `icscm fit` took for missing in its file, and so stands for it in tables made of it.

    Parameters
    ----------
    texts : that mean missing.
    numbers : those of them that the user named and that are numbers.
    is_trimmed : whether spaces around a text are no part of it, as in text files.
    """

    texts: tuple[str, ...]
    numbers: tuple[float, ...]
    is_trimmed: bool

    @property
    def texts_of_numbers(self) -> tuple[str, ...]:
        """In columns of numbers NaN is missing, however it is written."""
        return tuple(dict.fromkeys((*self.texts, "NaN", "nan", "-nan")))


def find_absent(saved: SavedModel) -> Absent | None:
    """What the file of the model tells; None where missing values are NULL, None or NaN alone."""
    told = get_table_settings(saved)
    if not told:
        return None
    known = told.get("na")
    na = [text for text in known if isinstance(text, str)] if isinstance(known, list) else []
    is_text = told.get("format", "text") == "text"
    form = TextFormat(tuple(na), told.get("default_na") is not False)
    texts = tuple(dict.fromkeys(form.missing_texts if is_text else na))
    return Absent(texts, tuple(find_numbers(na)), is_text) if texts else None


def export_model(
    saved: SavedModel, to: str, *, table: str = "data", schema: str | None = None
) -> str:
    """The model as `"sql"`, `"python"`, `"json"` or `"text"`; all predict what it predicts.

    sql : one SELECT on `table`, in `schema` if that is named, for SQLite and DuckDB.
    python : a module with `predict(row)` that needs the standard library only.
    json : the conditions in order, for a program in any language.
    text : the rule and a table of its leaves, for an e-mail or a paper.
    """
    if to == "sql":
        return make_sql(saved, table, schema)
    if to not in _WRITERS:
        raise IcscmError(
            f"a model is exported to 'sql', {', '.join(map(repr, _WRITERS))}; not {to!r}"
        )
    return _WRITERS[to](saved)


def make_branches(saved: SavedModel) -> tuple[tuple[Branch, ...], Leaf]:
    """The conditions in order, and the leaf of the samples for which none is true."""
    *leaves, last = _make_leaves(saved)
    branches = tuple(
        _make_branch(rule, saved.model, saved.features, leaf)
        for rule, leaf in zip(saved.model.rules, leaves, strict=True)
    )
    return branches, last


def _make_leaves(saved: SavedModel) -> list[Leaf]:
    model = saved.model
    return [
        Leaf(saved.classes[int(verdict)], probability, text, (sum(counts[0]), sum(counts[1])))
        for verdict, probability, text, counts in zip(
            find_verdicts(model).tolist(),
            model.leaf_probabilities().tolist(),
            describe_leaves(model),
            model.leaves,
            strict=True,
        )
    ]


def _make_branch(rule: Rule, model: RuleSet, features: Sequence[Feature], leaf: Leaf) -> Branch:
    if not isinstance(rule, AnyRule):
        raise IcscmError(f"a rule of type {type(rule).__name__} cannot be exported")
    operator, value, is_true_of_missing = _read_rule(rule)
    return Branch(
        column=rule.column,
        name=rule.name,
        type=features[rule.column].type,
        operator=operator if model.settles_when else OPPOSITES[operator],
        value=value,
        if_missing=is_true_of_missing == model.settles_when,
        leaf=leaf,
    )


def _read_rule(rule: AnyRule) -> tuple[str, float | tuple[Level, ...] | None, bool]:
    """A rule's operator, value and truth for a missing value."""
    if isinstance(rule, PresenceRule):
        return ">" if rule.present else "<=", 0, False
    if isinstance(rule, ThresholdRule):
        return ">" if rule.above else "<=", rule.threshold, bool(rule.missing)
    if isinstance(rule, CategoryRule):
        return "in" if rule.equal else "not in", rule.levels, bool(rule.missing)
    return "is missing" if rule.is_missing else "is present", None, rule.is_missing


# --- SQL ------------------------------------------------------------------------------------------

_SQL_NOTES = """\
For SQLite and DuckDB. To the columns of the table it adds three (put what you need in place of
d.*, such as d."id"): the class predicted, the probability of {positive}, and what decided.
{missing}"""
_SQL_NULL = """\
Missing must be NULL (an empty text is a value like any other) or, in columns of numbers, NaN,
which DuckDB holds to be above infinity (9e999)."""
_SQL_ABSENT = """\
Missing is NULL and, as in the file that the model was fitted on,
each of these texts{trimmed}:
{texts}"""
_SQL_POINTS = "Numbers that are held as text need decimal points here, not commas as in that file."
_SQL_UNNAMED = (
    "The model was fitted on columns without names; here they are called x0, x1 and so on."
)


def make_sql(saved: SavedModel, table: str = "data", schema: str | None = None) -> str:
    """One SELECT that gives each row's prediction, its probability and what decided.

    The conditions stand there three times rather than once in a subquery: so rows keep their order,
    and no column of the table can be taken for a helper's. Columns are written with their table
    (d."age"), since SQLite reads a lone "age" as text where there is no such column.
    """
    branches, last = make_branches(saved)
    absent = find_absent(saved)
    conditions = [
        _make_sql_condition(branch) if absent is None else _make_guarded_condition(branch, absent)
        for branch in branches
    ]

    def choose(value: Callable[[Leaf], str], name: str) -> str:
        values = [value(branch.leaf) for branch in branches]
        return _make_case(conditions, values, value(last), name)

    columns = [
        choose(lambda leaf: _quote_label(leaf.label), "prediction"),
        choose(_make_sql_probability, "probability"),
        choose(lambda leaf: _quote_text(leaf.decided_by), "decided_by"),
    ]
    place = ".".join(_quote_name(each) for each in (schema, table) if each is not None)
    return (
        f"{_make_sql_comment(saved, absent)}\nSELECT\n  d.*,\n" + ",\n".join(columns) + "\n"
        f"FROM {place} AS d;\n"
    )


def _make_sql_comment(saved: SavedModel, absent: Absent | None) -> str:
    missing = _SQL_NULL if absent is None else _describe_absent(absent)
    notes = _SQL_NOTES.format(positive=format_level(saved.classes[1]), missing=missing)
    lines = [*_list_facts(saved), *notes.split("\n"), *_say_refused(saved)]
    lines += [_SQL_POINTS] * (get_table_settings(saved).get("decimal") == ",")
    lines += [_SQL_UNNAMED] * (saved.features[0].name is None)
    return "\n".join(f"-- {line}".rstrip() for line in lines)


def _describe_absent(absent: Absent) -> str:
    """The texts once, for people: the statement repeats them where it needs them."""
    texts = ", ".join(escape_controls(_quote_text(text)) for text in absent.texts)
    trimmed = ", spaces around it aside" if absent.is_trimmed else ""
    told = _SQL_ABSENT.format(trimmed=trimmed, texts=_indent(textwrap.wrap(texts, 92)))
    if absent.numbers:
        numbers = ", ".join(map(format_number, absent.numbers))
        told += f"\nand in columns of numbers {numbers}."
    return told


def _make_case(conditions: Sequence[str], values: Sequence[str], otherwise: str, name: str) -> str:
    if not conditions:
        return f"  {otherwise} AS {name}"
    cases = [
        f"    WHEN {condition}\n      THEN {value}"
        for condition, value in zip(conditions, values, strict=True)
    ]
    return "\n".join(["  CASE", *cases, f"    ELSE {otherwise}", f"  END AS {name}"])


def _make_sql_condition(branch: Branch) -> str:
    """The condition, so that NULL and NaN come out as the rule says.

    A CASE takes NULL for false, so where missing is false NULL needs no mention.
    """
    column = f"d.{_quote_name(_name_column(branch))}"
    number = _find_sql_number(branch, column)
    truth = _compare_sql(branch, number or column)
    if truth is None:  # missing or present
        return (
            _join_missing([], column, number) if branch.if_missing else _is_present(column, number)
        )
    if branch.if_missing:
        is_nan_covered = branch.operator == ">"  # NaN is greater than any threshold
        return _join_missing([truth], column, None if is_nan_covered else number)
    is_nan_wrong = number is not None and branch.operator in (">", "not in")
    return f"{truth} AND {number} <= 9e999" if is_nan_wrong else truth


def _make_guarded_condition(branch: Branch, absent: Absent) -> str:
    """The condition for columns of any type in which texts stand for missing values.

    Number columns that hold text: SQLite reads '' as 0, and DuckDB stops at it. So a value is made
    a number behind a CASE, the one thing that both are bound to evaluate in order.
    """
    column = f"d.{_quote_name(_name_column(branch))}"
    text = f"CAST({column} AS VARCHAR)"
    text = f"TRIM({text})" if absent.is_trimmed else text
    if branch.type == NUMBER or branch.has_number_levels:
        return _guard_number(branch, absent, column, text)
    levels = branch.value if isinstance(branch.value, tuple) else ()
    if levels and isinstance(levels[0], bool):
        text = f"LOWER({text})"
        levels = tuple(each for level in levels for each in (str(level).lower(), str(int(level))))
    texts = [_quote_level(level) for level in levels]
    missing = [_quote_text(each) for each in absent.texts]
    if branch.operator == "in" and not branch.if_missing:
        return _is_in(text, texts)
    if branch.operator == "not in" and branch.if_missing:
        return f"{_is_in(text, texts, 'NOT IN')} OR {column} IS NULL"
    if branch.if_missing:
        return f"{_is_in(text, texts + missing)} OR {column} IS NULL"
    return _is_in(text, texts + missing, "NOT IN")


def _guard_number(branch: Branch, absent: Absent, column: str, text: str) -> str:
    missing = [_quote_text(each) for each in absent.texts_of_numbers]
    is_long = isinstance(branch.value, int) and abs(branch.value) >= MAX_EXACT
    number = column if is_long else f"CAST({column} AS DOUBLE)"
    number = f"CASE WHEN {_is_in(text, missing, 'NOT IN')} THEN {number} END"
    for each in absent.numbers:
        number = f"NULLIF({number}, {format_sql_number(each)})"
    truth = _compare_sql(branch, number)
    if truth is None:
        return f"{number} IS {'' if branch.if_missing else 'NOT '}NULL"
    return f"COALESCE({truth}, 1 = 1)" if branch.if_missing else truth


def _is_in(subject: str, texts: Sequence[str], operator: str = "IN") -> str:
    if len(texts) == 1:
        return f"{subject} {'=' if operator == 'IN' else '<>'} {texts[0]}"
    return f"{subject} {operator} ({', '.join(texts)})"


def _find_sql_number(branch: Branch, column: str) -> str | None:
    """The column as a number that may be NaN; None where it is a category of another kind.

    The cast makes booleans and text that hold numbers comparable. It is left out where it would
    round: beside whole thresholds of more than 53 bits.
    """
    if branch.type != NUMBER:
        return column if branch.has_number_levels else None
    is_long = isinstance(branch.value, int) and abs(branch.value) >= MAX_EXACT
    return column if is_long else f"CAST({column} AS DOUBLE)"


def _compare_sql(branch: Branch, subject: str) -> str | None:
    if branch.value is None:
        return None
    if not isinstance(branch.value, tuple):
        return f"{subject} {branch.operator} {format_sql_number(branch.value)}"
    levels = [_quote_level(level) for level in branch.value]
    return _is_in(subject, levels, branch.operator.upper())


def _join_missing(parts: list[str], column: str, number: str | None) -> str:
    is_nan = [] if number is None else [f"{number} > 9e999"]
    return " OR ".join([*parts, f"{column} IS NULL", *is_nan])


def _is_present(column: str, number: str | None) -> str:
    return f"{column} IS NOT NULL" if number is None else f"{number} <= 9e999"


def _make_sql_probability(leaf: Leaf) -> str:
    """A quotient of counts: exact, and it tells how much it rests on."""
    if leaf.fraction is None:
        return format_sql_number(leaf.probability)
    above, below = leaf.fraction
    return f"{above}e0 / {below}e0"


def format_sql_number(value: float) -> str:
    """A number that SQLite and DuckDB read as exactly this one.

    DuckDB reads 0.1 as a decimal and 0.1e0 as a float. SQLite does not read every long number
    exactly: those are written as quotients of numbers that it does.

    >>> format_sql_number(63.0), format_sql_number(-0.5), format_sql_number(0.1 + 0.2)
    ('63', '-0.5e0', '(1351079888211149e0 / 4503599627370496e0 /* 0.30000000000000004 */)')
    """
    if isinstance(value, int) or (value.is_integer() and abs(value) < MAX_EXACT):
        return str(int(value))
    text = repr(value)
    if _is_read_exactly(text):
        return text if "e" in text else f"{text}e0"
    above, below = abs(value).as_integer_ratio()
    product = " * ".join(f"{factor}e0" for factor in _factor(above) or [1])
    quotient = product + "".join(f" / {factor}e0" for factor in _factor(below))
    return f"({'-' if value < 0 else ''}{quotient} /* {text} */)"


def _is_read_exactly(text: str) -> bool:
    """Whether a number is a quotient of two that floats hold: one rounding is then all it takes."""
    _, digits, exponent = Decimal(text).as_tuple()
    return len(digits) <= MAX_SQL_DIGITS and -MAX_TEN_POWER <= int(exponent) <= 0


def _factor(number: int) -> list[int]:
    """An odd number and powers of two, all below 2**53, that multiply to this one.

    Taken in order, no product or quotient of them is rounded.


    >>> _factor(3 * 2**60) == [3, 2**52, 2**8], _factor(1)
    (True, [])
    """
    n_twos = (number & -number).bit_length() - 1
    odd = number >> n_twos
    whole, rest = divmod(n_twos, 52)
    return [odd] * (odd > 1) + [2**52] * whole + [2**rest] * (rest > 0)


def _quote_name(name: str) -> str:
    return '"' + _check_sql_text(name).replace('"', '""') + '"'


def _quote_text(text: str) -> str:
    return "'" + _check_sql_text(text).replace("'", "''") + "'"


def _check_sql_text(text: str) -> str:
    """Raise for what no SQL statement can hold."""
    is_broken = any("\ud800" <= each <= "\udfff" for each in text)
    if "\0" in text or is_broken:
        what = "surrogates" if is_broken else "NUL characters"
        raise IcscmError(
            f"{escape_controls(repr(text))} holds {what}, which SQL cannot; rename it, or export "
            "to 'python' or 'json'"
        )
    return text


def _quote_level(level: Level) -> str:
    if isinstance(level, bool):  # SQLite reads TRUE as a column where there is one of that name
        return f"CAST({int(level)} AS BOOLEAN)"
    return _quote_text(level) if isinstance(level, str) else format_sql_number(level)


def _quote_label(label: Label) -> str:
    """A class as SQL returns it: of the type that it has."""
    is_whole_float = isinstance(label, float) and label.is_integer() and abs(label) < MAX_EXACT
    return f"{int(label)}e0" if is_whole_float else _quote_level(label)


# --- Python ---------------------------------------------------------------------------------------

_PYTHON_HEADER = """\
{facts}
`predict(row)` takes one sample, a dict of its columns by {keys}, and returns the class, the
probability of {positive}, and what decided. None and NaN are missing values; a column that is
not there is a KeyError.{missing}{refused}

The leaves, in the order in which they are tried:

{leaves}
"""

_PYTHON_IS_MISSING = '''

def is_missing(value):
    """Whether a value is None or NaN, which alone does not equal itself."""
    return value is None or value != value
'''

_PYTHON_AS_NUMBER = '''

def as_number(value):
    """A number to compare; a Decimal would go by digits that no threshold has."""
{of_text}    if value is not None and not hasattr(value, "__index__"):
        value = float(value)
    return {result}
'''

_PYTHON_OF_TEXT = """\
    if isinstance(value, str):
        value = {stripped}
        if value in MISSING_TEXTS:
            return None
        value = int(value) if value.isdecimal() else float(value)
"""

_PYTHON_AS_LEVEL = '''

def as_level(value):
    """A category{trimmed}; None where the text stands for a missing value."""
    value = {stripped} if isinstance(value, str) else value
    return None if isinstance(value, str) and value in MISSING_TEXTS else value
'''

_PYTHON_AS_BOOLEAN = '''

def as_boolean(value):
    """True and False, also where they are written as text."""
    value = as_level(value)
    is_text = isinstance(value, str)
    return {"true": True, "false": False}.get(value.lower(), value) if is_text else value
'''

_PYTHON_PREDICT = '''

def predict(row):
    """The class, the probability of the positive one, and what decided."""
'''


def make_python(saved: SavedModel) -> str:
    """A module that predicts, without imports."""
    branches, last = make_branches(saved)
    absent = find_absent(saved)
    sets = [
        _make_set(f"LEVELS_{number + 1}", each.value)
        for number, each in enumerate(branches)
        if _is_pool(each) and isinstance(each.value, tuple)
    ]
    readers = [_find_reader(branch, absent) for branch in branches]
    if absent is not None and any(readers):
        sets += [_make_set("MISSING_TEXTS", absent.texts)]
        sets += [_make_set("MISSING_NUMBERS", absent.numbers)] * bool(absent.numbers)
    parts = [_make_docstring(saved, absent)] + ["\n"] * bool(sets) + sets
    parts += [_PYTHON_IS_MISSING] * bool(branches) + _make_readers({*readers}, absent)
    parts += [_PYTHON_PREDICT]
    parts += [
        _make_python_branch(number, each, reader)
        for number, (each, reader) in enumerate(zip(branches, readers, strict=True))
    ]
    parts += [f"    return {_make_python_leaf(last)}\n"]
    return "".join(parts)


def _find_reader(branch: Branch, absent: Absent | None) -> str:
    """The function that makes a value comparable; none where there is nothing to do."""
    if branch.type == NUMBER or branch.has_number_levels:
        return "as_number"
    if absent is None:
        return ""
    is_boolean = isinstance(branch.value, tuple) and isinstance(branch.value[0], bool)
    return "as_boolean" if is_boolean else "as_level"


def _make_readers(used: set[str], absent: Absent | None) -> list[str]:
    """The functions that the branches call."""
    stripped = "value.strip()" if absent is None or absent.is_trimmed else "value"
    trimmed = " without the spaces around it" if stripped != "value" else ""
    found = []
    if "as_number" in used:
        of_text = "" if absent is None else _PYTHON_OF_TEXT.format(stripped=stripped)
        has_numbers = absent is not None and absent.numbers
        result = "None if value in MISSING_NUMBERS else value" if has_numbers else "value"
        found.append(_PYTHON_AS_NUMBER.format(of_text=of_text, result=result))
    if used & {"as_level", "as_boolean"}:
        found.append(_PYTHON_AS_LEVEL.format(stripped=stripped, trimmed=trimmed))
    return found + [_PYTHON_AS_BOOLEAN] * ("as_boolean" in used)


def _make_docstring(saved: SavedModel, absent: Absent | None) -> str:
    text = _PYTHON_HEADER.format(
        facts="\n".join(_list_facts(saved)),
        keys="position" if saved.features[0].name is None else "name",
        positive=format_level(saved.classes[1]),
        missing=""
        if absent is None
        else "\nText in MISSING_TEXTS is missing, as it was at fitting.",
        refused="".join(f"\n{line}" for line in _say_refused(saved)),
        leaves=_indent(_make_leaf_table(saved)),
    )
    escaped = text.replace("\\", "\\\\").replace('"""', '\\"\\"\\"')
    return f'"""{escaped}"""\n'


def _make_python_branch(number: int, branch: Branch, reader: str) -> str:
    key = branch.column if branch.name is None else branch.name
    value = f"row[{quote_python(key)}]"
    return (
        f"    value = {f'{reader}({value})' if reader else value}\n"
        f"    if {_make_python_condition(number, branch)}:\n"
        f"        return {_make_python_leaf(branch.leaf)}\n"
    )


def _make_python_condition(number: int, branch: Branch) -> str:
    """The condition; None and NaN equal no level, so only comparisons need to ask for them."""
    if branch.value is None:
        return "is_missing(value)" if branch.if_missing else "not is_missing(value)"
    truth = _compare_python(number, branch)
    if branch.operator == ("not in" if branch.if_missing else "in"):
        return truth
    return (
        f"is_missing(value) or {truth}"
        if branch.if_missing
        else f"not is_missing(value) and {truth}"
    )


def _compare_python(number: int, branch: Branch) -> str:
    if _is_pool(branch):
        return f"value {branch.operator} LEVELS_{number + 1}"
    if isinstance(branch.value, tuple):
        return f"value {'==' if branch.operator == 'in' else '!='} {quote_python(branch.value[0])}"
    return f"value {branch.operator} {format_number(branch.value or 0)}"


def _is_pool(branch: Branch) -> bool:
    """Whether its levels stand apart: several, or booleans, which `==` is not meant for."""
    levels = branch.value
    return isinstance(levels, tuple) and (len(levels) > 1 or isinstance(levels[0], bool))


def _make_set(name: str, values: Sequence[Level]) -> str:
    lines = "".join(f"    {quote_python(value)},\n" for value in values)
    return f"{name} = {{\n{lines}}}\n"


def _make_python_leaf(leaf: Leaf) -> str:
    above, below = leaf.fraction or (leaf.probability, 1)
    return f"{quote_python(leaf.label)}, {above} / {below}, {quote_python(leaf.decided_by)}"


def quote_python(value: Level) -> str:
    """A literal: `repr`, with the quotes that most code has where the text allows them.

    >>> print(quote_python("age"), quote_python('"'), quote_python(2))
    "age" '"' 2
    """
    literal = repr(value)
    is_simple = isinstance(value, str) and literal == f"'{value}'" and '"' not in value
    return f'"{value}"' if is_simple else literal


# --- JSON -----------------------------------------------------------------------------------------


def make_json(saved: SavedModel) -> str:
    """The conditions in order, each with its leaf, for a program in any language."""
    branches, last = make_branches(saved)
    absent = find_absent(saved)
    return format_json(
        {
            "format": FORMAT,
            "schema": SCHEMA,
            "version": saved.version,
            "how_to_read": (
                "Go through the conditions in order. The first that is true gives the result; if "
                "none is, 'otherwise' does. For a missing value (null, NaN) a condition is what "
                "its if_missing says. Columns without a name are found by position, from 0. Text "
                "that is in missing_texts, spaces around it aside, is missing, and in columns of "
                "numbers all that is in missing_numbers is."
                + "".join(f" {line}" for line in _say_refused(saved))
            ),
            "missing_texts": [] if absent is None else list(absent.texts),
            "missing_numbers": [] if absent is None else list(absent.numbers),
            "rule": str(saved),
            "classes": list(saved.classes),
            "conditions": [_describe_branch(branch) for branch in branches],
            "otherwise": _describe_leaf(last),
        }
    )


def _describe_branch(branch: Branch) -> dict[str, Any]:
    value = branch.value
    return {
        "column": branch.name,
        "position": branch.column,
        "type": branch.type,
        "operator": branch.operator,
        "value": list(value) if isinstance(value, tuple) else value,
        "if_missing": branch.if_missing,
        "then": _describe_leaf(branch.leaf),
    }


def _describe_leaf(leaf: Leaf) -> dict[str, Any]:
    return {
        "prediction": leaf.label,
        "probability": leaf.probability,
        "decided_by": leaf.decided_by,
        "training_samples": list(leaf.counts),
    }


# --- text -----------------------------------------------------------------------------------------


def make_text(saved: SavedModel) -> str:
    """The rule in words and tables of its leaves."""
    parts = [_say_rule(saved), _list_pools(saved.model), "\n".join(_make_leaf_table(saved))]
    parts += [_say_probability(saved), _make_environment_table(saved), *_say_refused(saved)]
    parts += [_say_origin(saved)]
    return "\n\n".join(part for part in parts if part) + "\n"


def _say_rule(saved: SavedModel) -> str:
    negative, positive = map(format_level, saved.classes)
    model = saved.model
    if not model.rules:
        always = negative if model.settles_when else positive
        return f"Predicts {always} for every sample: the model has no rule."
    rules = f"\n   {model.joiner}".join(map(str, model.rules))
    return f"Predicts {positive} where\n\n    {rules}\n\nand {negative} elsewhere."


def _list_pools(model: RuleSet) -> str:
    """The levels that a rule sums up as rare."""
    return "\n".join(
        f"The rare levels of {format_name(rule.feature)}: "
        f"{', '.join(format_level(level) for level in rule.levels)}."
        for rule in model.rules
        if isinstance(rule, CategoryRule) and rule.pooled
    )


def _say_probability(saved: SavedModel) -> str:
    positive = format_level(saved.classes[1])
    return (
        "The first line that is true of a sample decides. The probability is\n"
        f"(samples of {positive} + 1) / (samples + 2)."
    )


def _make_leaf_table(saved: SavedModel) -> list[str]:
    negative, positive = map(format_level, saved.classes)
    header = ["decided by", "predicts", f"probability of {positive}", negative, positive]
    rows = [
        [
            leaf.decided_by,
            format_level(leaf.label),
            f"{leaf.probability:.4f}",
            *(f"{count:,}" for count in leaf.counts),
        ]
        for leaf in _make_leaves(saved)
    ]
    return _align([header, *rows], n_text=2)


def _make_environment_table(saved: SavedModel) -> str:
    """Positive samples of all in each leaf, a line for each environment."""
    if saved.environments is None:
        return ""
    positive = format_level(saved.classes[1])
    leaves = saved.model.leaves
    header = ["environment", *(f"line {number + 1}" for number in range(len(leaves)))]
    rows = [
        [
            escape_controls(str(label)),
            *(f"{leaf[1][number]:,} / {leaf[0][number] + leaf[1][number]:,}" for leaf in leaves),
        ]
        for number, label in enumerate(saved.environments)
    ]
    title = f"Samples of {positive} / all samples, by environment and line of the table above:"
    return "\n".join([title, "", *_align([header, *rows], n_text=1)])


def _say_origin(saved: SavedModel) -> str:
    n_samples = sum(sum(map(sum, leaf)) for leaf in saved.model.leaves)
    parts = [f"Learned by icscm {escape_controls(saved.version)} from {n_samples:,} samples"]
    if saved.environments is not None:
        n = len(saved.environments)
        parts.append(f" in {n:,} environment{'s' * (n != 1)}")
    if saved.alpha is not None:
        parts.append(f", at level alpha = {format_number(saved.alpha)}")
    return "".join(parts) + "."


def _align(rows: Sequence[Sequence[str]], *, n_text: int) -> list[str]:
    """Columns under each other: the first few are text, to the left, the others numbers."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return [
        "  ".join(
            cell.ljust(width) if number < n_text else cell.rjust(width)
            for number, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    ]


# --- what several share ---------------------------------------------------------------------------


def _list_facts(saved: SavedModel) -> list[str]:
    """The rule and where it comes from, each on one line: nothing in a name can break out."""
    return [_say_origin(saved), "", f"    {saved}", ""]


def _say_refused(saved: SavedModel) -> list[str]:
    """A line for models that predict complete samples only; code elsewhere cannot enforce that."""
    if saved.settings.get("missing") != "error":
        return []
    return [
        "The model was fitted without missing values and refuses them: make sure there are none."
    ]


def _name_column(branch: Branch) -> str:
    return format_name(branch.column) if branch.name is None else branch.name


def _indent(lines: Sequence[str]) -> str:
    return "\n".join(f"    {line}" for line in lines)


_WRITERS: Final[dict[str, Callable[[SavedModel], str]]] = {
    "python": make_python,
    "json": make_json,
    "text": make_text,
}
