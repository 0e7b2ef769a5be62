"""A model as a list of conditions and leaves, from which all exports are written."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from icscm._constants import LARGEST_EXACT
from icscm.exceptions import IcscmError
from icscm.io.formats import TextFormat, find_numbers
from icscm.model.rule_sets import RuleSet
from icscm.model.rules import AnyRule, CategoryRule, PresenceRule, Rule, ThresholdRule
from icscm.model.saved import (
    Feature,
    Label,
    SavedModel,
    describe_leaves,
    find_verdicts,
    get_table_settings,
)
from icscm.tables.columns import Level
from icscm.text import escape_controls, format_name, format_number

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
        return (above, below) if below < LARGEST_EXACT else None


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


def make_branches(saved: SavedModel) -> tuple[tuple[Branch, ...], Leaf]:
    """The conditions in order, and the leaf of the samples for which none is true."""
    *leaves, last = make_leaves(saved)
    branches = tuple(
        _make_branch(rule, saved.model, saved.features, leaf)
        for rule, leaf in zip(saved.model.rules, leaves, strict=True)
    )
    return branches, last


def make_leaves(saved: SavedModel) -> list[Leaf]:
    """What becomes of the samples that each condition, or none, decides."""
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


def list_facts(saved: SavedModel) -> list[str]:
    """The rule and where it comes from, each on one line: nothing in a name can break out."""
    return [say_origin(saved), "", f"    {saved}", ""]


def say_refused(saved: SavedModel) -> list[str]:
    """A line for models that predict complete samples only; code elsewhere cannot enforce that."""
    if saved.settings.get("missing") != "error":
        return []
    return [
        "The model was fitted without missing values and refuses them: make sure there are none."
    ]


def name_column(branch: Branch) -> str:
    """A column as exports call it."""
    return format_name(branch.column) if branch.name is None else branch.name


def indent(lines: Sequence[str]) -> str:
    """Lines set in by four spaces."""
    return "\n".join(f"    {line}" for line in lines)


def say_origin(saved: SavedModel) -> str:
    """What learned the model, from how much."""
    n_samples = sum(sum(map(sum, leaf)) for leaf in saved.model.leaves)
    parts = [f"Learned by icscm {escape_controls(saved.version)} from {n_samples:,} samples"]
    if saved.environments is not None:
        n = len(saved.environments)
        parts.append(f" in {n:,} environment{'s' * (n != 1)}")
    if saved.alpha is not None:
        parts.append(f", at level alpha = {format_number(saved.alpha)}")
    return "".join(parts) + "."
