"""A model as one SELECT for SQLite and DuckDB."""

import textwrap
from collections.abc import Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Final

from icscm._constants import LARGEST_EXACT
from icscm.exceptions import IcscmError
from icscm.export import documents
from icscm.export.documents import Absent, Condition, Leaf, find_absent, make_condition, make_leaves
from icscm.formatting import count, escape_controls, format_exactly, format_name
from icscm.model.calibration import Decisions
from icscm.model.forest import Forest
from icscm.model.parsing import NUMBER, Label
from icscm.model.saved import SavedModel, get_table_settings
from icscm.model.score import Score
from icscm.model.tree import Tree
from icscm.tables.columns import Level

# Significant digits that every SQLite reads exactly. Of a longer number, versions before 3.43 can
# get the last bit wrong, and a threshold is a value that was observed.
MAX_SQL_DIGITS: Final = 15

# Terms of a sum: SQLite and DuckDB take expressions 1,000 deep.
MAX_SQL_TERMS: Final = 500

# Symbols that a mean over leaves may keep on the stack of SQLite's parser, which holds 100.
MAX_SQL_SYMBOLS: Final = 60

# The text in place of the mean where it would need more.
_TOO_DEEP: Final = "'too deep for SQL'"

# The largest power of ten that a float64 holds exactly.
MAX_TEN_POWER: Final = 22


def make_sql(saved: SavedModel, table: str, schema: str | None) -> str:
    """One SELECT of each row's prediction, its probability and what decided.

    The conditions are written three times, not once in a subquery: this keeps the order of rows and
    avoids helper columns, whose names the table may have. Columns are written with their table
    (d."age"), since SQLite reads a lone "age" as text where there is no such column.
    """
    model, absent = saved.model, find_absent(saved)
    used = {rule.name.lower(): rule.name for rule in model.rules if rule.name is not None}
    for name in (each.name for each in saved.features if each.name is not None):
        if used.get(name.lower(), name) != name:  # SQL could read another column than the model
            raise IcscmError(
                f"{used[name.lower()]!r} and {name!r} are the same name to SQL; rename a column "
                "before fitting, or export to 'python' or 'json'"
            )
    texts = [escape_controls(_quote_text(each)) for each in absent.texts] if absent else []
    if isinstance(model, Forest):
        columns = _make_forest_columns(saved, model, absent)
    elif isinstance(model, Score):
        columns = _make_score_columns(saved, model, absent)
    else:
        columns = _make_tree_columns(saved, model, absent)
    return documents.fill_template(
        "model.sql.txt",
        saved,
        missing_texts=textwrap.wrap(", ".join(texts), 92),
        missing_numbers=", ".join(map(format_exactly, absent.numbers if absent else ())),
        has_commas=get_table_settings(saved).get("decimal") == ",",
        columns=columns,
        place=".".join(_quote_text(each, '"') for each in (schema, table) if each is not None),
    )


def _make_tree_columns(saved: SavedModel, model: Tree, absent: Absent | None) -> list[str]:
    """The three columns: those of the row's leaf, or else by the mean over several."""
    case, mean = _make_case(saved, model, absent), _make_mean(saved, model, absent)
    columns = [case.write(name) for name in Decisions._fields]
    names = _name_missing(saved, absent)
    if names and mean is None:
        columns[-1] = f"COALESCE({columns[-1]}, {names} || {_TOO_DEEP})"
    elif names and mean is not None:
        probability, n_leaves = mean
        decided_by = f"{names} || 'mean of ' || CAST({n_leaves} AS VARCHAR) || ' leaves'"
        others = _decide(saved, probability, model.threshold), probability, decided_by
        columns = [f"COALESCE({a}, {b})" for a, b in zip(columns, others, strict=True)]
    return columns


def _make_forest_columns(saved: SavedModel, model: Forest, absent: Absent | None) -> list[str]:
    """The three columns as sums over trees, added in order as the model adds them."""
    n_trees = len(model.trees)
    if n_trees > MAX_SQL_TERMS:
        raise IcscmError(
            f"a sum over {n_trees:,} trees is more than SQLite and DuckDB take; export to "
            "'python' or 'json'"
        )
    cases = [_make_case(saved, tree, absent) for tree in model.trees]
    means = [_make_mean(saved, tree, absent) for tree in model.trees]
    chances = [case.write("probability", "    ") for case in cases]
    votes = found = [case.write("vote", "    ") for case in cases]
    known = [each[0] for each in means if each is not None]
    if (names := _name_missing(saved, absent)) and len(known) == n_trees:
        chances = [f"COALESCE({a}, {b})" for a, b in zip(chances, known, strict=True)]
        verdicts = (f"CASE WHEN {each} > 0.5e0 THEN 1 ELSE 0 END" for each in known)
        votes = [f"COALESCE({a}, {b})" for a, b in zip(votes, verdicts, strict=True)]
    mean = probability = f"({_add(chances)}) / {n_trees}e0"
    if model.is_calibrated:  # with the mean once: expit(a + b * logit(mean))
        intercept, slope = map(format_sql_number, model.calibration)
        probability = f"1e0 / (1e0 + exp({slope} * ln(1e0 / ({mean}) - 1e0) - ({intercept})))"
    prediction = _decide(saved, mean, model.find_cut() if model.is_moved else None)
    whole = _quote_text(f" of {count(n_trees, 'tree')} above 0.5")
    decided_by = f"CAST({_add(votes)} AS VARCHAR) || {whole}"
    if names and votes is found:
        prediction = f"CASE WHEN {mean} IS NOT NULL THEN {prediction} END"
        decided_by = f"COALESCE({decided_by}, {names} || {_TOO_DEEP})"
    elif names:  # a sum is NULL where a term is
        decided_by = f"CASE WHEN {_add(found)} IS NULL THEN {names} ELSE '' END || {decided_by}"
    return [prediction, probability, decided_by]


def _add(terms: Sequence[str]) -> str:
    return "\n    + ".join(f"({each})" for each in terms)


def _decide(saved: SavedModel, chance: str, cut: float | None) -> str:
    """The class predicted from a probability: by the threshold, or above 1/2."""
    verdict = "> 0.5e0" if cut is None else f">= {format_sql_number(cut)}"
    negative, positive = map(_quote_label, saved.classes)
    return f"CASE WHEN {chance} {verdict} THEN {positive} ELSE {negative} END"


def _name_missing(saved: SavedModel, absent: Absent | None) -> str:
    """`age, bmi missing: ` of the columns of `list_unsure`; '' if there is none.

    Leading separators are removed.
    """
    names = [
        f"CASE WHEN {_write_missing(make_condition(rule, saved), absent)} "
        f"THEN {_quote_text(f', {name}')} ELSE '' END"
        for rule, name in documents.list_unsure(saved.model)
    ]
    return f"SUBSTR({' || '.join(names)}, 3) || ': '" if names else ""


def _make_mean(saved: SavedModel, tree: Tree, absent: Absent | None) -> tuple[str, str] | None:
    """The probability where values are missing that never were at fitting; the number of leaves.

    A split is `t * (one side) + (1 - t) * (other)`, in which t is 1, 0 or a share. So each side is
    written once, the deeper one first, which is easier to parse. None if it is too deep.
    """
    leaves = [(0, _write_probability(leaf), "1") for leaf in make_leaves(saved, tree)]
    nodes = [leaves[0]] * len(tree.splits)
    for number, share in reversed([*enumerate(tree.shares)]):
        split = tree.splits[number]
        condition = make_condition(split.rule, saved)
        truth = _write_condition(condition, absent)
        lacks = _write_missing(condition, absent) if split.rule.is_unsure else None
        sides = []
        for child, is_true, own in ((split.if_true, 1, share), (split.if_false, 0, 1.0 - share)):
            n_symbols, *texts = leaves[~child] if child < 0 else nodes[child]
            cases = []
            for weight in (format_sql_number(own), "1"):
                both = f"WHEN {lacks} THEN {weight} " if lacks else ""
                cases.append(f"CASE {both}WHEN {truth} THEN {is_true} ELSE {1 - is_true} END")
            terms = [f"{case} * ({text})" for case, text in zip(cases, texts, strict=True)]
            sides.append((n_symbols, terms))
        (n_deep, deep), (n_other, other) = sorted(sides, reverse=True)
        n_symbols = max(n_deep + 3, n_other + 5)
        if n_symbols > MAX_SQL_SYMBOLS:
            return None
        mean, n_leaves = (f"{one}\n    + {two}" for one, two in zip(deep, other, strict=True))
        nodes[number] = n_symbols, mean, n_leaves
    _, probability, n_leaves = nodes[0] if nodes else leaves[0]
    return probability, n_leaves


def _make_score_columns(saved: SavedModel, model: Score, absent: Absent | None) -> list[str]:
    """The three columns from the total of points; risks are a table, since not all SQL has exp."""
    cases = []
    for terms in documents.list_points(saved, model):
        whens = [(_write_condition(each, absent), _Case((), {"": str(n)})) for each, n in terms]
        cases.append(_Case(whens, {"": "0"}).write("", "    "))
    total = f"({_add(cases) or 0})"
    risks = "\n".join(
        f"    WHEN {n} THEN {format_sql_number(risk)}"
        for n, risk in enumerate(model.compute_risks().tolist())
    )
    negative, positive = map(_quote_label, saved.classes)
    decided_by = f"'total of ' || CAST({total} AS VARCHAR)"
    if names := _name_missing(saved, absent):
        decided_by = f"COALESCE(NULLIF({names}, ': '), '') || {decided_by}"
    prediction = f"CASE WHEN {total} >= {model.cut} THEN {positive} ELSE {negative} END"
    return [prediction, f"CASE {total}\n{risks}\n  END", decided_by]


@dataclass(frozen=True)
class _Case:
    """Conditions, of which the first that is true decides, and the result if none is."""

    whens: "Sequence[tuple[str, _Case]]"
    otherwise: dict[str, str]

    def write(self, name: str, indent: str = "  ") -> str:
        """A CASE for one entry of the leaves, or the entry itself."""
        if not self.whens:
            return self.otherwise[name]
        lines = ["CASE"]
        for condition, then in self.whens:
            lines += [f"  WHEN {condition}", f"    THEN {then.write(name, indent + 4 * ' ')}"]
        return f"\n{indent}".join([*lines, f"  ELSE {self.otherwise[name]}", "END"])


def _make_case(saved: SavedModel, tree: Tree, absent: Absent | None) -> "_Case":
    """Write each split once: the side of fewer leaves as a nested CASE, the other in this CASE.

    So thousands of nested splits nest no deeper than log2 of the number of leaves;
    SQLite's parser stops at about twenty.
    """
    leaves = []
    for leaf in make_leaves(saved, tree):
        entries = {
            "prediction": _quote_label(leaf.prediction),
            "probability": _write_probability(leaf),
            "decided_by": _quote_text(leaf.decided_by),
            "vote": str(int(leaf.prediction == saved.classes[1])),
        }
        leaves.append(_Case((), entries))
    unknown = _Case((), dict.fromkeys(leaves[0].otherwise, "NULL"))
    cases, sizes = [leaves[0]] * len(tree.splits), [0] * len(tree.splits)
    for number in reversed(range(len(tree.splits))):
        split = tree.splits[number]
        # each side with its number of leaves; of two leaves the first comes first
        one, other = (
            (1, ~child, leaves[~child]) if child < 0 else (sizes[child], 0, cases[child])
            for child in (split.if_true, split.if_false)
        )
        is_true = one[:2] <= other[:2]
        lesser, greater = (one[2], other[2]) if is_true else (other[2], one[2])
        condition = make_condition(split.rule, saved, is_true=is_true)
        whens = [(_write_condition(condition, absent), lesser), *greater.whens]
        if split.rule.is_unsure:
            whens.insert(0, (_write_missing(condition, absent), unknown))
        cases[number] = _Case(whens, greater.otherwise)
        sizes[number] = one[0] + other[0]
    return cases[0] if cases else leaves[0]


def _write_probability(leaf: Leaf) -> str:
    exact = leaf.fraction and "{}e0 / {}e0".format(*leaf.fraction)
    return exact or format_sql_number(leaf.probability)


def _write_missing(condition: Condition, absent: Absent | None) -> str:
    """Whether the value that a condition needs is missing."""
    return _write_condition(replace(condition, operator="is missing", if_missing=True), absent)


def _write_condition(condition: Condition, absent: Absent | None) -> str:
    """The condition, with NULL and NaN treated as the rule does.

    A CASE takes NULL for false, so where missing is false, or decided before, NULL needs no
    mention.
    """
    name = format_name(condition.position) if condition.column is None else condition.column
    column = "d." + _quote_text(name, '"')
    if absent is not None:
        return _make_guarded_condition(condition, absent, column)
    number = None  # what may be NaN
    if condition.compares == "numbers":
        number = _cast(condition, column) if condition.type == NUMBER else column
    truth = _compare_sql(condition, number or column)
    if condition.if_missing:  # NaN is greater than any threshold
        is_nan = f"{number} > 9e999" if number and condition.operator != ">" else None
        return " OR ".join(filter(None, [truth, f"{column} IS NULL", is_nan]))
    if truth is None:
        return f"{number} <= 9e999" if number else f"{column} IS NOT NULL"
    is_nan_wrong = number and condition.operator in (">", "not in")
    return f"{truth} AND {number} <= 9e999" if is_nan_wrong else truth


def _make_guarded_condition(condition: Condition, absent: Absent, column: str) -> str:
    """The condition for columns of any type in which texts stand for missing values.

    Number columns may hold text: SQLite reads '' as 0, and DuckDB fails on it. So a value is cast
    to a number inside a CASE, the only expression that both must evaluate in order.
    """
    text = f"CAST({column} AS VARCHAR)"
    text = f"TRIM({text})" if absent.is_trimmed else text
    if condition.compares == "numbers":  # NaN is missing, however it is written
        every = dict.fromkeys((*absent.texts, "NaN", "nan", "-nan"))
        is_there = _is_in(text, [_quote_text(each) for each in every], "NOT IN")
        number = f"CASE WHEN {is_there} THEN {_cast(condition, column)} END"
        for each in absent.numbers:
            number = f"NULLIF({number}, {format_sql_number(each)})"
        compared = _compare_sql(condition, number)
        if compared is None:
            return f"{number} IS {'' if condition.if_missing else 'NOT '}NULL"
        return f"COALESCE({compared}, 1 = 1)" if condition.if_missing else compared
    is_about_value = condition.operator in ("in", "not in")
    levels = condition.value if is_about_value and isinstance(condition.value, tuple) else ()
    if condition.compares == "booleans":
        text = f"LOWER({text})"
        levels = tuple(each for level in levels for each in (str(level).lower(), str(int(level))))
    texts = [_quote_level(level) for level in levels]
    is_listed = condition.operator in ("in", "is missing")
    if is_listed == condition.if_missing:
        is_boolean = condition.compares == "booleans"
        texts += [_quote_text(each.lower() if is_boolean else each) for each in absent.texts]
    truth = _is_in(text, texts, "IN" if is_listed else "NOT IN")
    return f"{truth} OR {column} IS NULL" if condition.if_missing else truth


def _is_in(subject: str, texts: Sequence[str], operator: str = "IN") -> str:
    if len(texts) == 1:
        return f"{subject} {'=' if operator == 'IN' else '<>'} {texts[0]}"
    return f"{subject} {operator} ({', '.join(texts)})"


def _cast(condition: Condition, column: str) -> str:
    """The column as a number: the cast makes booleans and text that hold numbers comparable.

    It is omitted where it would round: for whole thresholds of more than 53 bits.
    """
    is_long = isinstance(condition.value, int) and abs(condition.value) >= LARGEST_EXACT
    return column if is_long else f"CAST({column} AS DOUBLE)"


def _compare_sql(condition: Condition, subject: str) -> str | None:
    if condition.value is None or condition.operator == "is missing":
        return None
    if not isinstance(condition.value, tuple):
        return f"{subject} {condition.operator} {format_sql_number(condition.value)}"
    levels = [_quote_level(level) for level in condition.value]
    return _is_in(subject, levels, condition.operator.upper())


def format_sql_number(value: float) -> str:
    """A number that SQLite and DuckDB read as exactly this one.

    DuckDB reads 0.1 as a decimal and 0.1e0 as a float. SQLite does not read every long number
    exactly: such numbers are written as quotients of numbers that it reads exactly.

    >>> format_sql_number(63.0), format_sql_number(-0.5), format_sql_number(0.1 + 0.2)
    ('63', '-0.5e0', '(1351079888211149e0 / 4503599627370496e0 /* 0.30000000000000004 */)')
    """
    if isinstance(value, int) or (value.is_integer() and abs(value) < LARGEST_EXACT):
        return str(int(value))
    text = repr(value)
    # a quotient of two exact floats is rounded once
    _, digits, exponent = Decimal(text).as_tuple()
    if len(digits) <= MAX_SQL_DIGITS and -MAX_TEN_POWER <= int(exponent) <= 0:
        return text if "e" in text else f"{text}e0"
    above, below = abs(value).as_integer_ratio()
    product = " * ".join(f"{factor}e0" for factor in _factor(above) or [1])
    quotient = product + "".join(f" / {factor}e0" for factor in _factor(below))
    return f"({'-' if value < 0 else ''}{quotient} /* {text} */)"


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


def _quote_text(text: str, mark: str = "'") -> str:
    """Quoted text; raises for characters that no SQL statement can hold."""
    is_broken = any("\ud800" <= each <= "\udfff" for each in text)
    what = "surrogates" if is_broken else "NUL characters" if "\0" in text else None
    if what:
        raise IcscmError(
            f"{escape_controls(repr(text))} holds {what}, which SQL cannot; rename it, or export "
            "to 'python' or 'json'"
        )
    return mark + text.replace(mark, 2 * mark) + mark


def _quote_level(level: Level) -> str:
    if isinstance(level, bool):  # SQLite reads TRUE as a column where there is one of that name
        return f"CAST({int(level)} AS BOOLEAN)"
    return _quote_text(level) if isinstance(level, str) else format_sql_number(level)


def _quote_label(label: Label) -> str:
    """A class as SQL returns it, with its own type."""
    is_whole_float = isinstance(label, float) and label.is_integer() and abs(label) < LARGEST_EXACT
    return f"{int(label)}e0" if is_whole_float else _quote_level(label)
