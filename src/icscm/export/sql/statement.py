"""One SELECT that adds a model's prediction, its probability and what decided to each row.

Of a model of categories it names columns with levels that training did not have, too.

For a tree of one rule it is, in short:

    SELECT
      d.*,
      CASE WHEN d."age" > 63 THEN 'yes' ELSE 'no' END AS prediction,
      CASE WHEN d."age" > 63 THEN 8e0 / 12e0 ELSE 2e0 / 24e0 END AS probability,
      CASE WHEN d."age" > 63 THEN 'age > 63' ELSE 'age <= 63' END AS decided_by
    FROM "data" AS d;

The conditions are written three times, not once in a subquery: this keeps the order of rows and
avoids helper columns, whose names the table may have. An *expression* below is SQL text.
"""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from icscm.exceptions import IcscmError, IcscmWarning, warn
from icscm.export.conditions import (
    ConditionPoints,
    find_missing_texts,
    list_known_columns,
    list_points,
    list_reported_columns,
    make_condition,
)
from icscm.export.sql.cases import Branch, Case, make_case
from icscm.export.sql.conditions import ConditionWriter
from icscm.export.sql.literals import format_sql_number, quote_label, quote_name, quote_text
from icscm.export.sql.means import Mean, make_mean
from icscm.export.templates import fill_template
from icscm.formatting import count, escape_controls, format_exactly
from icscm.model.forest import Forest
from icscm.model.saved import SavedModel, get_table_settings
from icscm.model.score import Score
from icscm.model.tree import Tree

# Terms of a sum: SQLite and DuckDB take expressions 1,000 deep.
MAX_SQL_TERMS: Final = 500
# Characters of a line of missing texts: with "--     " before it, it stays below 100.
_COMMENT_WIDTH: Final = 92
# Indentation of a CASE that is a term of a sum.
_TERM_INDENT: Final = "    "
# Bytes of a statement from which on there is a warning.
_LARGE_STATEMENT: Final = 10**6
# The text in place of a mean over leaves that SQLite could not parse.
_TOO_DEEP: Final = "'too deep for SQL'"


@dataclass(frozen=True)
class ResultColumns:
    """The expressions of the three columns that the statement adds to the table."""

    prediction: str
    probability: str
    decided_by: str


@dataclass(frozen=True)
class TreeTerm:
    """What a tree adds to the sums of a forest: its probability, and its vote of 0 or 1."""

    probability: str
    vote: str


def make_sql(saved: SavedModel, *, table: str, schema: str | None) -> str:
    """Write the statement, with comments on what the model is and which values are missing."""
    _check_column_names(saved)
    missing = find_missing_texts(saved)
    columns = _make_columns(saved, ConditionWriter(missing))

    missing_texts: Sequence[str] = []
    missing_numbers = ""
    if missing is not None:
        missing_texts = _write_comment_lines(missing.texts)
        missing_numbers = ", ".join(format_exactly(number) for number in missing.numbers)

    table_name = quote_name(table)
    statement = fill_template(
        "model.sql.txt",
        saved,
        columns=columns,
        unknown_levels=_name_unknown(saved, ConditionWriter(missing)),
        missing_texts=missing_texts,
        missing_numbers=missing_numbers,
        has_commas=get_table_settings(saved).get("decimal") == ",",
        place=table_name if schema is None else f"{quote_name(schema)}.{table_name}",
    )
    _warn_of_size(statement)
    return statement


def _warn_of_size(statement: str) -> None:
    """Warn of a statement that a database takes long to parse, as that of a large forest."""
    n_bytes = len(statement.encode("utf-8"))
    if n_bytes > _LARGE_STATEMENT:
        warn(
            f"the SQL takes {n_bytes / 1e6:.1f} MB, for it must write each tree for each of its "
            "columns, and databases take long to parse it; a forest of fewer or smaller trees "
            "(n_estimators, max_leaves), one tree or a score takes less, and 'python', 'r' and "
            "'json' write each rule once",
            IcscmWarning,
        )


def _check_column_names(saved: SavedModel) -> None:
    """Raise if SQL, which ignores case, could read another column in place of one in a rule."""
    rule_names = [rule.name for rule in saved.model.rules if rule.name is not None]
    rule_name_in_lower_case = {name.lower(): name for name in rule_names}
    for feature in saved.features:
        if feature.name is None:
            continue
        rule_name = rule_name_in_lower_case.get(feature.name.lower(), feature.name)
        if rule_name != feature.name:
            raise IcscmError(
                f"{rule_name!r} and {feature.name!r} are the same name to SQL; rename a column "
                "before fitting, or export to 'python' or 'json'"
            )


def _write_comment_lines(texts: Sequence[str]) -> Sequence[str]:
    """Write texts as lines of a comment, which no line break or control code in them can end."""
    printable_texts = [escape_controls(quote_text(text)) for text in texts]
    return textwrap.wrap(", ".join(printable_texts), _COMMENT_WIDTH, break_long_words=False)


def _make_columns(saved: SavedModel, writer: ConditionWriter) -> ResultColumns:
    model = saved.model
    if isinstance(model, Forest):
        return _make_forest_columns(saved, model, writer)
    if isinstance(model, Score):
        return _make_score_columns(saved, model, writer)
    return _make_tree_columns(saved, model, writer)


# --- trees ----------------------------------------------------------------------------------------


def _make_tree_columns(saved: SavedModel, model: Tree, writer: ConditionWriter) -> ResultColumns:
    """Make the columns from the row's leaf, or from several leaves where a value is missing.

    A row that lacks a value which no training row lacked may be in either child of a split. It has
    no single leaf, and gets the mean over all leaves that it may be in.
    """
    case = make_case(saved, model, writer)
    columns = ResultColumns(
        prediction=case.write("prediction"),
        probability=case.write("probability"),
        decided_by=case.write("decided_by"),
    )
    missing_names = _name_missing(saved, writer)
    if missing_names is None:  # every row has a single leaf
        return columns

    # now the columns are NULL for rows that have no single leaf
    mean = make_mean(saved, model, writer)
    if mean is None:
        too_deep = f"{missing_names} || {_TOO_DEEP}"
        return replace(columns, decided_by=_replace_null(columns.decided_by, too_deep))

    mean_prediction = _decide(saved, mean.probability, model.threshold)
    mean_text = f"{missing_names} || 'mean of ' || CAST({mean.n_leaves} AS VARCHAR) || ' leaves'"
    return ResultColumns(
        prediction=_replace_null(columns.prediction, mean_prediction),
        probability=_replace_null(columns.probability, mean.probability),
        decided_by=_replace_null(columns.decided_by, mean_text),
    )


# --- forests --------------------------------------------------------------------------------------


def _make_forest_columns(
    saved: SavedModel, model: Forest, writer: ConditionWriter
) -> ResultColumns:
    """Make the columns from sums over trees: of their probabilities, and of their votes.

    A row that lacks a value which no training row lacked may be in several leaves of a tree. In
    the sums, that tree then counts with the mean over these leaves.
    """
    n_trees = len(model.trees)
    if n_trees > MAX_SQL_TERMS:
        raise IcscmError(
            f"a sum over {n_trees:,} trees is more than SQLite and DuckDB take; export to "
            "'python' or 'json'"
        )
    # in the order in which the model adds its trees, for a mean that is the same to the last bit
    terms = [_make_term(saved, tree, writer) for tree in model.trees]
    columns = _combine_trees(saved, model, terms)
    missing_names = _name_missing(saved, writer)
    if missing_names is None:  # every row has a single leaf in every tree
        return columns

    # now a term is NULL for rows that have no single leaf in its tree, and a sum where a term is
    means = _make_means(saved, model, writer)
    if means is None:
        has_probability = f"{_average_probability(terms)} IS NOT NULL"
        too_deep = f"{missing_names} || {_TOO_DEEP}"
        return ResultColumns(
            prediction=f"CASE WHEN {has_probability} THEN {columns.prediction} END",
            probability=columns.probability,
            decided_by=_replace_null(columns.decided_by, too_deep),
        )

    filled_terms = [_fill_term(term, mean) for term, mean in zip(terms, means, strict=True)]
    filled_columns = _combine_trees(saved, model, filled_terms)
    prefix = f"CASE WHEN {_count_votes(terms)} IS NULL THEN {missing_names} ELSE '' END"
    return replace(filled_columns, decided_by=f"{prefix} || {filled_columns.decided_by}")


def _make_term(saved: SavedModel, tree: Tree, writer: ConditionWriter) -> TreeTerm:
    """Make what a tree adds to the sums; NULL where a row has no single leaf."""
    case = make_case(saved, tree, writer)
    return TreeTerm(
        probability=case.write("probability", _TERM_INDENT),
        vote=case.write("vote", _TERM_INDENT),
    )


def _make_means(saved: SavedModel, model: Forest, writer: ConditionWriter) -> Sequence[Mean] | None:
    """Make the mean over the leaves of each tree; None if one of them is too deep for SQL."""
    means = []
    for tree in model.trees:
        mean = make_mean(saved, tree, writer)
        if mean is None:
            return None
        means.append(mean)
    return means


def _fill_term(term: TreeTerm, mean: Mean) -> TreeTerm:
    """Replace what a tree adds by the mean over its leaves, where no single leaf is known."""
    mean_vote = f"CASE WHEN {mean.probability} > 0.5e0 THEN 1 ELSE 0 END"
    return TreeTerm(
        probability=_replace_null(term.probability, mean.probability),
        vote=_replace_null(term.vote, mean_vote),
    )


def _combine_trees(saved: SavedModel, model: Forest, terms: Sequence[TreeTerm]) -> ResultColumns:
    """Make the columns from what each tree adds."""
    mean = _average_probability(terms)
    cut = model.find_cut() if model.is_moved else None
    of_trees = quote_text(f" of {count(len(terms), 'tree')} above 0.5")
    return ResultColumns(
        prediction=_decide(saved, mean, cut),
        probability=_calibrate(model, mean),
        decided_by=f"CAST({_count_votes(terms)} AS VARCHAR) || {of_trees}",
    )


def _average_probability(terms: Sequence[TreeTerm]) -> str:
    total = _add([term.probability for term in terms])
    return f"({total}) / {len(terms)}e0"


def _count_votes(terms: Sequence[TreeTerm]) -> str:
    return _add([term.vote for term in terms])


def _calibrate(model: Forest, mean: str) -> str:
    """Write the calibrated probability, expit(intercept + slope * logit(mean)).

    The mean is long, so it is written once:  1 / (1 + exp(slope * ln(1 / mean - 1) - intercept)).
    """
    if not model.is_calibrated:
        return mean
    intercept, slope = map(format_sql_number, model.calibration)
    return f"1e0 / (1e0 + exp({slope} * ln(1e0 / ({mean}) - 1e0) - ({intercept})))"


# --- scores ---------------------------------------------------------------------------------------


def _make_score_columns(saved: SavedModel, model: Score, writer: ConditionWriter) -> ResultColumns:
    """Make the columns from the total of points."""
    points = [_write_points(terms, writer) for terms in list_points(saved, model)]
    total = f"({_add(points) or 0})"
    negative, positive = map(quote_label, saved.classes)

    decided_by = f"'total of ' || CAST({total} AS VARCHAR)"
    missing_names = _name_missing(saved, writer)
    if missing_names is not None:
        # a row in which nothing is missing has no prefix
        prefix = _replace_null(f"NULLIF({missing_names}, ': ')", "''")
        decided_by = f"{prefix} || {decided_by}"
    return ResultColumns(
        prediction=f"CASE WHEN {total} >= {model.cut} THEN {positive} ELSE {negative} END",
        probability=_write_risk(model, total),
        decided_by=decided_by,
    )


def _write_points(terms: Sequence[ConditionPoints], writer: ConditionWriter) -> str:
    """Write the points that a column gives: those of its first condition that is true, or 0."""
    branches = []
    for term in terms:
        # in a score a condition that leaves open what a missing value means is false of it
        condition = replace(term.condition, if_missing=bool(term.condition.if_missing))
        points = Case([], {"points": str(term.points)})
        branches.append(Branch(writer.write(condition), points))
    return Case(branches, otherwise={"points": "0"}).write("points", _TERM_INDENT)


def _write_risk(model: Score, total: str) -> str:
    """Write the risk of a total of points, by a table of risks: not every SQLite has `exp`."""
    risks = model.compute_risks().tolist()
    branches = [
        f"    WHEN {points} THEN {format_sql_number(risk)}" for points, risk in enumerate(risks)
    ]
    return "\n".join([f"CASE {total}", *branches, "  END"])


# --- parts of expressions -------------------------------------------------------------------------


def _replace_null(expression: str, otherwise: str) -> str:
    """Write an expression that has another value where it is NULL."""
    return f"COALESCE({expression}, {otherwise})"


def _add(terms: Sequence[str]) -> str:
    return "\n    + ".join(f"({term})" for term in terms)


def _decide(saved: SavedModel, probability: str, threshold: float | None) -> str:
    """Write the class predicted from a probability: by the threshold, or above 1/2."""
    is_positive = "> 0.5e0" if threshold is None else f">= {format_sql_number(threshold)}"
    negative, positive = map(quote_label, saved.classes)
    return f"CASE WHEN {probability} {is_positive} THEN {positive} ELSE {negative} END"


def _name_unknown(saved: SavedModel, writer: ConditionWriter) -> str | None:
    """Write an expression that names the columns of a row with a level that training did not have.

    It is None where no levels are known.
    """
    parts = []
    for known in list_known_columns(saved):
        is_unknown = writer.write(known.make_unknown_condition())
        text_if_unknown = quote_text(f", {known.name}")
        parts.append(f"CASE WHEN {is_unknown} THEN {text_if_unknown} ELSE '' END")
    if not parts:
        return None
    joined_names = "\n    || ".join(parts)
    # from the third character on: without the comma and the space before the first name
    return f"SUBSTR({joined_names}, 3)"


def _name_missing(saved: SavedModel, writer: ConditionWriter) -> str | None:
    """Write an expression that names the missing columns of a row; None if none is ever named.

    For a row it is `age missing, bmi missing: `, or `: ` where nothing is missing. A tree names
    only columns that no training row lacked: its rules do not say what a missing value means.
    """
    parts = []
    for column in list_reported_columns(saved.model):
        is_missing = writer.write_is_missing(make_condition(column.rule, saved))
        text_if_missing = quote_text(f", {column.name}")
        parts.append(f"CASE WHEN {is_missing} THEN {text_if_missing} ELSE '' END")
    if not parts:
        return None

    joined_names = " || ".join(parts)
    # from the third character on: without the comma and the space before the first name
    return f"SUBSTR({joined_names}, 3) || ': '"
