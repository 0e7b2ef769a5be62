"""One SELECT of each row's prediction, its probability and what decided.

The conditions are written three times, not once in a subquery: this keeps the order of rows and
avoids helper columns, whose names the table may have.
"""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from icscm.exceptions import IcscmError
from icscm.export.conditions import (
    find_missing_texts,
    list_points,
    list_reported_columns,
    make_condition,
)
from icscm.export.sql.cases import Branch, Case, make_case
from icscm.export.sql.conditions import ConditionWriter
from icscm.export.sql.literals import format_sql_number, quote_label, quote_name, quote_text
from icscm.export.sql.means import make_mean
from icscm.export.templates import fill_template
from icscm.formatting import count, escape_controls, format_exactly
from icscm.model.forest import Forest
from icscm.model.saved import SavedModel, get_table_settings
from icscm.model.score import Score
from icscm.model.tree import Tree

# Terms of a sum: SQLite and DuckDB take expressions 1,000 deep.
MAX_SQL_TERMS: Final = 500
# The text in place of a mean over leaves that SQLite could not parse.
_TOO_DEEP: Final = "'too deep for SQL'"


@dataclass(frozen=True)
class Columns:
    """The three columns that the statement adds to the table."""

    prediction: str
    probability: str
    decided_by: str


def make_sql(saved: SavedModel, *, table: str, schema: str | None) -> str:
    """Write the statement."""
    _check_names(saved)
    missing = find_missing_texts(saved)
    columns = _make_columns(saved, ConditionWriter(missing))
    missing_texts = [] if missing is None else [quote_text(text) for text in missing.texts]
    missing_numbers = () if missing is None else missing.numbers
    place = quote_name(table) if schema is None else f"{quote_name(schema)}.{quote_name(table)}"
    return fill_template(
        "model.sql.txt",
        saved,
        columns=columns,
        missing_texts=textwrap.wrap(", ".join(map(escape_controls, missing_texts)), 92),
        missing_numbers=", ".join(map(format_exactly, missing_numbers)),
        has_commas=get_table_settings(saved).get("decimal") == ",",
        place=place,
    )


def _check_names(saved: SavedModel) -> None:
    """Raise if two columns have the same name to SQL, which could read the wrong one."""
    used = {rule.name.lower(): rule.name for rule in saved.model.rules if rule.name is not None}
    for feature in saved.features:
        if feature.name is None:
            continue
        used_name = used.get(feature.name.lower(), feature.name)
        if used_name != feature.name:
            raise IcscmError(
                f"{used_name!r} and {feature.name!r} are the same name to SQL; rename a column "
                "before fitting, or export to 'python' or 'json'"
            )


def _make_columns(saved: SavedModel, writer: ConditionWriter) -> Columns:
    model = saved.model
    if isinstance(model, Forest):
        return _make_forest_columns(saved, model, writer)
    if isinstance(model, Score):
        return _make_score_columns(saved, model, writer)
    return _make_tree_columns(saved, model, writer)


def _make_tree_columns(saved: SavedModel, model: Tree, writer: ConditionWriter) -> Columns:
    """Make the columns from the row's leaf, or where a value is missing from several."""
    case = make_case(saved, model, writer)
    columns = Columns(case.write("prediction"), case.write("probability"), case.write("decided_by"))
    names = _name_missing(saved, writer)
    if not names:
        return columns

    mean = make_mean(saved, model, writer)
    if mean is None:
        decided_by = f"COALESCE({columns.decided_by}, {names} || {_TOO_DEEP})"
        return Columns(columns.prediction, columns.probability, decided_by)
    prediction = _decide(saved, mean.probability, model.threshold)
    decided_by = f"{names} || 'mean of ' || CAST({mean.n_leaves} AS VARCHAR) || ' leaves'"
    return Columns(
        f"COALESCE({columns.prediction}, {prediction})",
        f"COALESCE({columns.probability}, {mean.probability})",
        f"COALESCE({columns.decided_by}, {decided_by})",
    )


def _make_forest_columns(saved: SavedModel, model: Forest, writer: ConditionWriter) -> Columns:
    """Make the columns as sums over trees, added in order as the model adds them."""
    n_trees = len(model.trees)
    if n_trees > MAX_SQL_TERMS:
        raise IcscmError(
            f"a sum over {n_trees:,} trees is more than SQLite and DuckDB take; export to "
            "'python' or 'json'"
        )
    cases = [make_case(saved, tree, writer) for tree in model.trees]
    leaf_probabilities = [case.write("probability", "    ") for case in cases]
    leaf_votes = [case.write("vote", "    ") for case in cases]
    probabilities: Sequence[str] = leaf_probabilities
    votes: Sequence[str] = leaf_votes

    names = _name_missing(saved, writer)
    means = [make_mean(saved, tree, writer) for tree in model.trees]
    known_means = [mean.probability for mean in means if mean is not None]
    has_means = len(known_means) == n_trees
    if names and has_means:
        mean_votes = [f"CASE WHEN {mean} > 0.5e0 THEN 1 ELSE 0 END" for mean in known_means]
        probabilities = _replace_null(leaf_probabilities, known_means)
        votes = _replace_null(leaf_votes, mean_votes)

    mean = f"({_add(probabilities)}) / {n_trees}e0"
    cut = model.find_cut() if model.is_moved else None
    prediction = _decide(saved, mean, cut)
    of_trees = quote_text(f" of {count(n_trees, 'tree')} above 0.5")
    decided_by = f"CAST({_add(votes)} AS VARCHAR) || {of_trees}"
    if names and has_means:  # a sum is NULL where a term is
        prefix = f"CASE WHEN {_add(leaf_votes)} IS NULL THEN {names} ELSE '' END"
        decided_by = f"{prefix} || {decided_by}"
    elif names:
        prediction = f"CASE WHEN {mean} IS NOT NULL THEN {prediction} END"
        decided_by = f"COALESCE({decided_by}, {names} || {_TOO_DEEP})"
    return Columns(prediction, _calibrate(model, mean), decided_by)


def _calibrate(model: Forest, mean: str) -> str:
    """Write the calibrated probability, with the mean once.

    expit(a + b * logit(mean)) = 1 / (1 + exp(b * ln(1 / mean - 1) - a))
    """
    if not model.is_calibrated:
        return mean
    intercept, slope = map(format_sql_number, model.calibration)
    return f"1e0 / (1e0 + exp({slope} * ln(1e0 / ({mean}) - 1e0) - ({intercept})))"


def _make_score_columns(saved: SavedModel, model: Score, writer: ConditionWriter) -> Columns:
    """Make the columns from the total of points; risks are a table, since not all SQL has exp."""
    cases = []
    for terms in list_points(saved, model):
        branches = [
            Branch(writer.write(term.condition), Case([], {"points": str(term.points)}))
            for term in terms
        ]
        cases.append(Case(branches, {"points": "0"}).write("points", "    "))
    total = f"({_add(cases) or 0})"
    risks = "\n".join(
        f"    WHEN {number} THEN {format_sql_number(risk)}"
        for number, risk in enumerate(model.compute_risks().tolist())
    )
    negative, positive = map(quote_label, saved.classes)
    decided_by = f"'total of ' || CAST({total} AS VARCHAR)"
    names = _name_missing(saved, writer)
    if names:
        decided_by = f"COALESCE(NULLIF({names}, ': '), '') || {decided_by}"
    return Columns(
        prediction=f"CASE WHEN {total} >= {model.cut} THEN {positive} ELSE {negative} END",
        probability=f"CASE {total}\n{risks}\n  END",
        decided_by=decided_by,
    )


def _replace_null(terms: Sequence[str], others: Sequence[str]) -> Sequence[str]:
    """Write terms that have other values where they are NULL."""
    return [f"COALESCE({term}, {other})" for term, other in zip(terms, others, strict=True)]


def _add(terms: Sequence[str]) -> str:
    return "\n    + ".join(f"({term})" for term in terms)


def _decide(saved: SavedModel, probability: str, threshold: float | None) -> str:
    """Write the class predicted from a probability: by the threshold, or above 1/2."""
    is_positive = "> 0.5e0" if threshold is None else f">= {format_sql_number(threshold)}"
    negative, positive = map(quote_label, saved.classes)
    return f"CASE WHEN {probability} {is_positive} THEN {positive} ELSE {negative} END"


def _name_missing(saved: SavedModel, writer: ConditionWriter) -> str:
    """Write `age, bmi missing: ` of the columns that are reported; "" if there is none.

    SUBSTR removes the separator before the first name.
    """
    names = []
    for column in list_reported_columns(saved.model):
        is_missing = writer.write_is_missing(make_condition(column.rule, saved))
        name = quote_text(f", {column.name}")
        names.append(f"CASE WHEN {is_missing} THEN {name} ELSE '' END")
    return f"SUBSTR({' || '.join(names)}, 3) || ': '" if names else ""
