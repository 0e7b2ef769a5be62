"""A model as conditions and leaves, of which all exports are made."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined

from icscm._constants import LARGEST_EXACT
from icscm.formatting import count, escape_controls, format_number
from icscm.io.formats import TextFormat, find_numbers
from icscm.model.forest import Forest, Model
from icscm.model.parsing import NUMBER, Label
from icscm.model.rules import CategoryRule, MissingRule, Rule, ThresholdRule
from icscm.model.saved import SavedModel, get_table_settings, list_missing_texts
from icscm.model.splits import count_labels
from icscm.model.tree import Tree
from icscm.tables.columns import Level


@dataclass(frozen=True)
class Leaf:
    """The prediction for samples in a leaf; `training_samples` are counts of each class."""

    prediction: Label
    probability: float
    decided_by: str
    training_samples: tuple[int, int]

    @property
    def fraction(self) -> tuple[int, int] | None:
        """The whole numbers of Laplace's rule; None if their quotient is not the probability."""
        above, below = self.training_samples[1] + 1, sum(self.training_samples) + 2
        is_exact = below < LARGEST_EXACT and above / below == self.probability
        return (above, below) if is_exact else None


@dataclass(frozen=True)
class Condition:
    """A condition on one column."""

    column: str | None
    position: int
    type: str
    operator: str
    value: float | tuple[Level, ...] | None
    if_missing: bool

    @property
    def compares(self) -> str:
        """What it compares: numbers (also as categories), booleans or text."""
        first = self.value[0] if isinstance(self.value, tuple) else ""
        if self.type == NUMBER or not isinstance(first, str | bool):
            return "numbers"
        return "booleans" if isinstance(first, bool) else "text"


@dataclass(frozen=True)
class Absent:
    """What stood for a missing value in the file that `icscm fit` read.

    `numbers` are those of the user's own texts that are numbers. `is_trimmed` is whether spaces
    around a text are ignored, as in text files.
    """

    texts: tuple[str, ...]
    numbers: tuple[float, ...]
    is_trimmed: bool


def find_absent(saved: SavedModel) -> Absent | None:
    """From the settings of the model; None where missing values are NULL, None or NaN only."""
    settings = get_table_settings(saved)
    if not settings:
        return None
    na = list_missing_texts(settings)
    is_text = settings.get("format", "text") == "text"
    form = TextFormat(tuple(na), settings.get("default_na") is not False)
    texts = tuple(dict.fromkeys(form.missing_texts if is_text else na))
    return Absent(texts, tuple(find_numbers(na)), is_text) if texts else None


def make_leaves(saved: SavedModel, model: Tree) -> list[Leaf]:
    """The leaves of a tree, in their order."""
    labels = [saved.classes[int(verdict)] for verdict in model.leaf_verdicts]
    counts = [count_labels(leaf) for leaf in model.leaves]
    parts = labels, model.leaf_probabilities().tolist(), model.leaf_texts, counts
    return [Leaf(*each) for each in zip(*parts, strict=True)]


def make_condition(rule: Rule, saved: SavedModel, *, is_true: bool = True) -> Condition:
    """The condition that is true where the rule is true, or where it is false."""
    operators, if_missing = (">", "<="), bool(getattr(rule, "missing", False))
    value: float | tuple[Level, ...] | None = 0  # of presence
    if isinstance(rule, ThresholdRule):
        value = rule.threshold
    elif isinstance(rule, CategoryRule):
        operators, value = ("in", "not in"), rule.levels
    elif isinstance(rule, MissingRule):
        operators, value, if_missing = ("is missing", "is present"), None, rule.is_missing
    operator = operators[getattr(rule, rule.sense) != is_true]
    kind = saved.features[rule.column].type
    return Condition(rule.name, rule.column, kind, operator, value, if_missing == is_true)


def list_trees(model: Model) -> tuple[Tree, ...]:
    """The trees of a forest, or the one that the model is."""
    return (model,) if isinstance(model, Tree) else model.trees


def describe_missing_error(saved: SavedModel) -> list[str]:
    """A line for models that reject missing values; exported code cannot enforce that."""
    line = "The model was fitted without missing values and rejects them: make sure there are none."
    return [line] if saved.settings.get("missing") == "error" else []


def describe_origin(saved: SavedModel) -> str:
    """The version that learned the model, and from how many samples."""
    sizes = [sum(sum(map(sum, leaf)) for leaf in tree.leaves) for tree in list_trees(saved.model)]
    origin = f"Learned by icscm {escape_controls(saved.version)} from {max(sizes):,} samples"
    if isinstance(saved.model, Forest):
        origin += " for each tree" if len(set(sizes)) == 1 else " at most for each tree"
    if saved.environments is not None:
        origin += f" in {count(len(saved.environments), 'environment')}"
    if saved.alpha is not None:
        origin += f", at level alpha = {format_number(saved.alpha)}"
    return origin + "."


def fill_template(name: str, saved: SavedModel, **values: Any) -> str:
    """An export made with a template; the caller quotes all text that comes from users."""
    facts = {"origin": describe_origin(saved), "rejected": describe_missing_error(saved)}
    return _TEMPLATES.get_template(name).render(facts, **values)


_TEMPLATES = Environment(
    loader=PackageLoader("icscm.export"),
    trim_blocks=True,
    keep_trailing_newline=True,
    undefined=StrictUndefined,
)
