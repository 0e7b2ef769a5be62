"""What every export is written from: conditions on columns, leaves, and texts that mean missing.

An export writes these records in its language, and so needs to know no kind of rule and no model.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

from icscm._constants import LARGEST_EXACT
from icscm.io.formats import TextFormat, find_numbers
from icscm.model.forest import Model
from icscm.model.novelty import name_column
from icscm.model.parsing import NUMBER, Label
from icscm.model.routes import name_missing
from icscm.model.rules import CategoryRule, MissingRule, Rule, ThresholdRule
from icscm.model.saved import SavedModel, get_table_settings, list_missing_texts
from icscm.model.score import Score
from icscm.model.splits import count_labels
from icscm.model.tree import Tree
from icscm.tables.columns import Level

ComparedKind = Literal["numbers", "booleans", "text"]


@dataclass(frozen=True)
class Condition:
    """A condition on one column.

    `if_missing` is its value for a missing value; where it is None, a model follows both branches.
    `known` has the levels that training had; any other level is missing. It is None of numbers, and
    where the levels are not known.
    """

    column: str | None
    position: int
    type: str
    operator: str
    value: float | tuple[Level, ...] | None
    if_missing: bool | None
    known: tuple[Level, ...] | None = None

    @property
    def compares(self) -> ComparedKind:
        """What it compares: numbers (also as categories), booleans or text."""
        levels = self.value if isinstance(self.value, tuple) else self.known
        first_level = levels[0] if levels else ""
        if self.type == NUMBER or not isinstance(first_level, str | bool):
            return "numbers"
        return "booleans" if isinstance(first_level, bool) else "text"

    def to_dict(self) -> dict[str, Any]:
        """Return it as the JSON export has it, where known levels are given once by column."""
        plain = asdict(self)
        del plain["known"]
        return plain


@dataclass(frozen=True)
class KnownColumn:
    """A column of which the levels in training are known, and how it is named in predictions."""

    column: str | None
    position: int
    type: str
    name: str
    levels: tuple[Level, ...]

    def make_unknown_condition(self) -> Condition:
        """Make the condition that a value is a level that training did not have."""
        return Condition(
            column=self.column,
            position=self.position,
            type=self.type,
            operator="not in",
            value=self.levels,
            if_missing=False,
        )


@dataclass(frozen=True)
class Comparison:
    """How a rule compares a value: the operator where the rule is true, and where it is false."""

    value: float | tuple[Level, ...] | None
    affirmative: str
    negative: str


@dataclass(frozen=True)
class ConditionPoints:
    """The points of a score for rows of which a condition is true."""

    condition: Condition
    points: int


@dataclass(frozen=True)
class Leaf:
    """The prediction for rows in a leaf; `training_samples` are counts of each class."""

    prediction: Label
    probability: float
    decided_by: str
    training_samples: tuple[int, int]

    @property
    def fraction(self) -> tuple[int, int] | None:
        """The whole numbers of Laplace's rule; None if their quotient is not the probability.

        (positives + 1) / (rows + 2)
        """
        n_negative, n_positive = self.training_samples
        numerator = n_positive + 1
        denominator = n_negative + n_positive + 2
        is_exact = denominator < LARGEST_EXACT and numerator / denominator == self.probability
        return (numerator, denominator) if is_exact else None


@dataclass(frozen=True)
class MissingTexts:
    """The texts and numbers that meant missing in the file that `icscm fit` read.

    `numbers` are those of the user's own texts that are numbers: with -9 as missing, -9.0 is, too.
    `is_trimmed` is whether spaces around a text are ignored, as in text files.
    """

    texts: tuple[str, ...]
    numbers: tuple[float, ...]
    is_trimmed: bool


@dataclass(frozen=True)
class ReportedColumn:
    """A column whose missing values are reported: a rule on it, and how it is named."""

    rule: Rule
    name: str


def find_missing_texts(saved: SavedModel) -> MissingTexts | None:
    """Find the texts that mean missing; None where only NULL, None and NaN do."""
    settings = get_table_settings(saved)
    if not settings:
        return None
    own_texts = list_missing_texts(settings)
    is_text_file = settings.get("format", "text") == "text"
    texts: Sequence[str] = own_texts
    if is_text_file:
        has_defaults = settings.get("default_na") is not False
        texts = TextFormat(na=own_texts, default_na=has_defaults).missing_texts
    if not texts:
        return None
    return MissingTexts(
        texts=tuple(dict.fromkeys(texts)),
        numbers=tuple(find_numbers(own_texts)),
        is_trimmed=is_text_file,
    )


def make_condition(rule: Rule, saved: SavedModel, *, is_true: bool = True) -> Condition:
    """Make the condition that is true where the rule is true or, if asked for, where it is false.

    Of `age <= 63` these are `age <= 63` and `age > 63`.
    """
    comparison = _find_comparison(rule)
    is_affirmative = rule.is_affirmative == is_true
    truth_of_missing = rule.truth_of_missing
    return Condition(
        column=rule.name,
        position=rule.column,
        type=saved.features[rule.column].type,
        operator=comparison.affirmative if is_affirmative else comparison.negative,
        value=comparison.value,
        if_missing=None if truth_of_missing is None else truth_of_missing == is_true,
        known=_find_known_levels(rule, saved),
    )


def _find_known_levels(rule: Rule, saved: SavedModel) -> tuple[Level, ...] | None:
    """Find the levels that training had of the column of a rule; None where they are not known."""
    for values in saved.model.training_values:
        if values.column == rule.column:
            return values.levels
    return None


def list_known_columns(saved: SavedModel) -> Sequence[KnownColumn]:
    """List the columns of which the levels in training are known, in the order of their rules.

    Exports name those of them that have an unknown level in a row.
    """
    rule_of_column = {rule.column: rule for rule in reversed(saved.model.rules)}
    columns_in_order = dict.fromkeys(rule.column for rule in saved.model.rules)
    known_columns = []
    for column in columns_in_order:
        rule = rule_of_column[column]
        levels = _find_known_levels(rule, saved)
        if levels is not None:
            known_columns.append(
                KnownColumn(
                    column=rule.name,
                    position=column,
                    type=saved.features[column].type,
                    name=name_column(rule.feature),
                    levels=levels,
                )
            )
    return known_columns


def _find_comparison(rule: Rule) -> Comparison:
    """Return how a kind of rule compares a value."""
    if isinstance(rule, ThresholdRule):
        return Comparison(rule.threshold, affirmative=">", negative="<=")
    if isinstance(rule, CategoryRule):
        return Comparison(rule.levels, affirmative="in", negative="not in")
    if isinstance(rule, MissingRule):
        return Comparison(None, affirmative="is missing", negative="is present")
    # a gene is present if its number is above 0
    return Comparison(0, affirmative=">", negative="<=")


def make_leaves(saved: SavedModel, model: Tree | Score) -> Sequence[Leaf]:
    """Make the leaves of a tree, or the classes of totals of a score, in their order."""
    leaves = zip(
        model.leaf_verdicts.tolist(),
        model.leaf_probabilities().tolist(),
        model.leaf_texts,
        model.leaves,
        strict=True,
    )
    return [
        Leaf(
            prediction=saved.classes[int(is_positive)],
            probability=probability,
            decided_by=text,
            training_samples=count_labels(counts),
        )
        for is_positive, probability, text, counts in leaves
    ]


def list_reported_columns(model: Model) -> Sequence[ReportedColumn]:
    """List the columns whose missing values are reported, in the order of their rules.

    Of trees these are the columns without missing values at fitting, of a score all.
    """
    if isinstance(model, Score):
        rule_of_column: dict[str | int, Rule] = {rule.feature: rule for rule in model.missing_rules}
        averaged = model.averaged
    else:
        rule_of_column = _find_first_unsure_rules(model.rules)
        averaged = set()

    columns_in_order = dict.fromkeys(rule.feature for rule in model.rules)
    return [
        ReportedColumn(rule_of_column[column], name_missing(column, averaged))
        for column in columns_in_order
        if column in rule_of_column
    ]


def _find_first_unsure_rules(rules: Sequence[Rule]) -> dict[str | int, Rule]:
    """Find for each column the first rule that leaves open what a missing value means."""
    first_rules: dict[str | int, Rule] = {}
    for rule in rules:
        if rule.is_unsure:
            first_rules.setdefault(rule.feature, rule)
    return first_rules


def list_trees(model: Model) -> tuple[Tree, ...]:
    """List the trees of a forest, or the model itself if it is a tree; a score has none."""
    if isinstance(model, Score):
        return ()
    return (model,) if isinstance(model, Tree) else model.trees


def list_points(saved: SavedModel, model: Score) -> Sequence[Sequence[ConditionPoints]]:
    """List for each column its conditions and their points; the first true one counts."""
    return [
        [ConditionPoints(make_condition(term.rule, saved), term.points) for term in terms]
        for terms in model.list_columns()
    ]
