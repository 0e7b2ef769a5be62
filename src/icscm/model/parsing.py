"""Reads and checks the text of a model file, which may come from an untrusted source.

    file --read_file--> text --parse_document--> fields of a SavedModel

A *document* is the JSON object in the text. Reading never runs code from the file. Only the present
schema is known here: `older_files` converts documents of older ones before they are checked, by
checks of single values (`checks`) that are put together to checks of the document's parts. The
readers below are such checks, too: of a value and its place in the document, for messages.
"""

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import Any, Final, NamedTuple, TypeVar

from icscm.exceptions import IcscmError
from icscm.formatting import MAX_WHOLE
from icscm.model import checks, older_files
from icscm.model.calibration import take_fields
from icscm.model.checks import Check, list_of, object_of, quote, reject, whole_number
from icscm.model.checks import WrongFileError as WrongFileError
from icscm.model.forest import KINDS, Forest, Model
from icscm.model.novelty import Range, TrainingValues
from icscm.model.rules import CategoryRule, Rule, make_rule
from icscm.model.score import MAX_TOTAL, Score, Term
from icscm.model.splits import LeafCounts, Split
from icscm.model.tree import Tree
from icscm.tables.columns import sort_key

FORMAT: Final = "icscm-model"

# --- limits: far above any model in use, and low enough that a hostile file does no harm --------

# The names of about four million columns; parsed, the worst such file takes a few gigabytes.
MAX_FILE_BYTES: Final = 2**28
# Lists and objects in a file. Empty ones would take the most memory for their bytes.
MAX_CONTAINERS: Final = 2**23
# Splits of a tree. Rules are meant to be read; the learners' default is ten.
MAX_RULES: Final = 10_000
MAX_TREES: Final = 10_000
# Levels of one rule: rare ones are pooled.
MAX_LEVELS: Final = 1_000_000
MAX_ENVIRONMENTS: Final = 100_000
# Nested levels of settings, which hold at most weights by name.
MAX_SETTINGS_DEPTH: Final = 4
# Counts are int64 throughout the package.
MAX_COUNT: Final = 2**63 - 1
# Characters of a whole number, sign included. Python takes long to read very long ones.
MAX_DIGITS: Final = len(str(-MAX_WHOLE))

NUMBER: Final = "number"
CATEGORY: Final = "category"
LEFT_OUT: Final = "left_out"
FEATURE_TYPES: Final = (NUMBER, CATEGORY, LEFT_OUT)

Label = str | bool | int | float
_Model = TypeVar("_Model", Tree, Forest, Score)


class Feature(NamedTuple):
    """A column of the training table: its name, if it had one, and one of `FEATURE_TYPES`."""

    name: str | None
    type: str


def compute_fingerprint(features: Sequence[Feature]) -> str:
    """Compute SHA-256 of the columns' names and types: do two models know the same columns?"""
    text = json.dumps([list(feature) for feature in features], separators=(",", ":"))
    return sha256(text.encode("ascii")).hexdigest()


# --- from a file to JSON --------------------------------------------------------------------------


def read_file(path: Path) -> str:
    """Read the text of a file; raise for one that cannot be a model."""
    try:
        if path.exists() and not path.is_file():
            raise WrongFileError("it is not a file", "name a file that save() wrote")
        with path.open("rb") as file:
            content = file.read(MAX_FILE_BYTES + 1)
    except OSError as error:
        raise _make_unreadable_error(error.strerror or error) from None
    except ValueError as error:  # a path with a NUL
        raise _make_unreadable_error(error) from None
    check_size(len(content))
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise WrongFileError(f"byte {error.start:,} is not UTF-8 text") from None


def _make_unreadable_error(reason: object) -> WrongFileError:
    """Make the error for a file that cannot be opened."""
    return WrongFileError(f"it cannot be read ({reason})", "check its name and place")


def check_size(n_bytes: int) -> None:
    """Raise for a file too large to be a model."""
    if n_bytes > MAX_FILE_BYTES:
        raise WrongFileError(
            f"it is larger than the {MAX_FILE_BYTES // 2**20} MB that a model file may have",
            "check that it is one, or fit on fewer columns",
        )


def parse_document(text: str) -> dict[str, Any]:
    """Return the fields of the `SavedModel` in a text; raise WrongFileError for any other."""
    document = _parse_json(text)
    schema = _read_schema(document)
    try:
        return _read_document(older_files.convert(document, schema))
    except WrongFileError as wrong:
        message = older_files.name_places(wrong.what, document)
        raise WrongFileError(message, wrong.remedy) from None


def _parse_json(text: str) -> Any:
    """Return the JSON object in a text that is marked as a model."""
    if text.count("[") + text.count("{") > MAX_CONTAINERS:
        reject(f"it holds more than {MAX_CONTAINERS:,} lists and objects")
    try:
        document = json.loads(text, object_pairs_hook=_make_object, parse_int=_parse_whole)
    except json.JSONDecodeError as error:
        reject(f"it is not JSON, or cut off ({error})")
    except RecursionError:
        reject("lists or objects are nested too deeply")
    if not isinstance(document, dict) or document.get("format") != FORMAT:
        reject(f'it is not marked as one with "format": "{FORMAT}"')
    return document


def _make_object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Make an object of JSON; raise where a key is repeated."""
    content = dict(pairs)
    if len(content) < len(pairs):
        key = _find_most_frequent([key for key, _ in pairs])
        reject(f"the key {quote(key)} occurs twice in one object")
    return content


def _parse_whole(digits: str) -> int:
    """Read a whole number of JSON; raise for one that takes long to read."""
    if len(digits) > MAX_DIGITS:
        reject(f"it holds a whole number of {len(digits):,} digits")
    return int(digits)


def _read_schema(document: Mapping[str, Any]) -> int:
    """Read the schema of a document; raise for one that this version does not know."""
    if "schema" not in document:
        reject("the schema version is missing")
    schema: int = whole_number(1, MAX_WHOLE)(document["schema"], "schema")
    if schema > older_files.PRESENT_SCHEMA:
        raise WrongFileError(
            f"it was written by a newer version of icscm (schema {schema}, this one reads "
            f"{older_files.PRESENT_SCHEMA})",
            "upgrade icscm",
        )
    return schema


# --- the document ---------------------------------------------------------------------------------


def _read_levels(value: Any, where: str) -> tuple[Label, ...]:
    """Read the levels of a rule: at least one, all of one kind, none of them twice."""
    levels: tuple[Label, ...] = list_of(checks.check_label, max_entries=MAX_LEVELS)(value, where)
    if not levels:
        reject(f"{where} is empty")
    keys = {sort_key(level) for level in levels}
    if len({kind for kind, _ in keys}) > 1:
        reject(f"{where} mixes text, numbers and booleans")
    if len(keys) < len(levels):
        reject(f"{where} names a level twice")
    return levels


def _read_range(value: Any, where: str) -> Range:
    """Read the range of a column of numbers, whose four bounds never fall."""
    bounds = list_of(checks.check_number, n_entries=4)(value, where)
    if list(bounds) != sorted(bounds):
        reject(f"{where} must not fall")
    lowest, low, high, highest = map(float, bounds)
    return Range(lowest=lowest, low=low, high=high, highest=highest)


def _read_environments(value: Any, where: str) -> tuple[Label, ...] | None:
    """Read the environments of a model; None if it has none."""
    if value is None:
        return None
    check_environments = list_of(checks.check_label, max_entries=MAX_ENVIRONMENTS)
    environments: tuple[Label, ...] = check_environments(value, where)
    if not environments:
        reject("environments is empty; without environments it is null")
    return environments


def _read_level_lists(value: Any, where: str) -> list[Any]:
    """Read lists of levels, which are given by column."""
    checks.OBJECT(value, where)
    check_levels = list_of(checks.check_label)
    return [check_levels(levels, where) for levels in value.values()]


_DOCUMENT: Final = object_of(
    version=checks.TEXT,
    features=list_of(object_of(name=checks.NAME, type=checks.one_of(FEATURE_TYPES))),
    fingerprint=checks.TEXT,
    environments=_read_environments,
    settings=checks.OBJECT,
    alpha=checks.check_probability,
    classes=list_of(checks.check_label, n_entries=2),
    model=checks.OBJECT,
)

# How `icscm fit` read its table: the settings with which commands on the model read others.
_TABLE_SETTINGS: Final[dict[str, Check]] = {
    "target": checks.TEXT,
    "format": checks.TEXT,
    "decimal": checks.TEXT,
    "positive": list_of(checks.TEXT),
    "environment_columns": list_of(checks.TEXT),
    "exclude_environment": list_of(checks.TEXT),
    "merge_environments": list_of(checks.TEXT),
    "na": list_of(checks.TEXT),
    "environment": checks.NAME,
    "default_na": checks.BOOLEAN,
    "equivalents": list_of(list_of(checks.TEXT)),
    "levels": _read_level_lists,  # of 0.3, whose models did not have them
}


def _read_document(document: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields of a `SavedModel` in a document of the present schema."""
    content = {key: value for key, value in document.items() if key not in ("format", "schema")}
    fields: dict[str, Any] = _DOCUMENT(content, checks.WHOLE_FILE)
    features = tuple(Feature(**feature) for feature in fields["features"])
    _check_features(features, fields["fingerprint"])
    _check_settings(fields["settings"])
    _check_classes(*fields["classes"])
    reader = ModelReader(features, fields["environments"])
    return fields | {
        "features": features,
        "model": reader.read_model(fields["model"], "model"),
    }


def _check_features(features: Sequence[Feature], fingerprint: str) -> None:
    """Raise unless all columns have names of their own, or none has; and the fingerprint fits."""
    names = [name for name, _ in features if name is not None]
    if names and len(names) < len(features):
        reject("features has names for some columns only; all have one or none has")
    if len(set(names)) < len(names):
        reject(f"features names two columns {quote(_find_most_frequent(names))}")
    if fingerprint != compute_fingerprint(features):
        reject("fingerprint does not belong to these features: one of them was changed")


def _check_settings(settings: Mapping[str, Any]) -> None:
    """Raise unless the settings are plain values, and those of the table what commands expect."""
    checks.check_plain(settings, "settings", max_depth=MAX_SETTINGS_DEPTH)
    table = checks.OBJECT(settings.get("table", {}), "settings.table")
    for name in table.keys() & _TABLE_SETTINGS.keys():
        _TABLE_SETTINGS[name](table[name], f"settings.table.{name}")


def _check_classes(negative: Label, positive: Label) -> None:
    """Raise unless the classes are two labels that can be told apart."""
    if isinstance(negative, str) != isinstance(positive, str) or negative == positive:
        both = f"{quote(negative)} and {quote(positive)}"
        reject(f"classes must be two distinct labels of one kind, got {both}")


def _find_most_frequent(texts: Sequence[str]) -> str:
    """Find the text that occurs most often, to name one that is repeated."""
    return Counter(texts).most_common(1)[0][0]


# --- the model -----------------------------------------------------------------------------------

# How a model's probabilities become predictions.
_CALIBRATION: Final[dict[str, Check]] = {
    "calibration": list_of(checks.check_number, n_entries=2),
    "threshold": checks.check_probability,
}


@dataclass(frozen=True)
class _RuleForm:
    """What a kind of rule looks like: the types of columns that it can use, and its fields."""

    feature_types: tuple[str, ...]
    fields: dict[str, Check]


_RULES: Final = {
    "threshold": _RuleForm(
        feature_types=(NUMBER,),
        fields={
            "threshold": checks.check_number,
            "above": checks.BOOLEAN,
            "missing": checks.BOOLEAN_OR_NULL,
        },
    ),
    "presence": _RuleForm(feature_types=(NUMBER,), fields={"present": checks.BOOLEAN}),
    "category": _RuleForm(
        feature_types=(CATEGORY,),
        fields={
            "levels": _read_levels,
            "equal": checks.BOOLEAN,
            "pooled": checks.BOOLEAN,
            "missing": checks.BOOLEAN_OR_NULL,
        },
    ),
    "missing": _RuleForm(feature_types=(NUMBER, CATEGORY), fields={"is_missing": checks.BOOLEAN}),
}


@dataclass
class ModelReader:
    """Reads a model, as `to_dict` describes it, of these columns and environments.

    `level_kinds` remembers the kind of each column's levels, which is the same in all its rules,
    and `levels_of_rules` the levels themselves, which training must have had.
    """

    features: Sequence[Feature]
    environments: Sequence[Any] | None
    level_kinds: dict[int, str] = field(default_factory=dict)
    levels_of_rules: dict[int, set[Any]] = field(default_factory=dict)

    @property
    def shared_fields(self) -> dict[str, Check]:
        """Fields that every model can have."""
        return _CALIBRATION | {
            "training_values": list_of(self.read_training_values, max_entries=len(self.features))
        }

    def read_model(self, value: Any, where: str) -> Model:
        """Read a model of any kind."""
        kind = checks.read_kind(value, where, KINDS)
        if kind == Score.kind:
            return self.read_score(value, where)
        if kind != Forest.kind:
            return self.read_tree(value, where, KINDS)
        check_forest = object_of(
            self.shared_fields,
            kind=checks.TEXT,
            trees=list_of(self.read_tree, max_entries=MAX_TREES),
        )
        fields = check_forest(value, where)
        return _make(Forest, where, fields, trees=fields["trees"])

    def read_tree(self, value: Any, where: str, kinds: Sequence[str] = ("tree",)) -> Tree:
        """Read a tree, or a conjunction or disjunction, which is a chain of splits.

        A child of a split is a split, by its number, or a leaf, by a negative number: of n splits
        there are n + 1 leaves, -1 to -n-1. So the splits must be counted before they are read.
        """
        kind = checks.read_kind(value, where, kinds)
        listed_splits = value.get("splits")
        n_splits = len(listed_splits) if isinstance(listed_splits, list) else 0
        check_child = whole_number(-n_splits - 1, n_splits - 1)
        check_split = object_of(rule=self.read_rule, if_true=check_child, if_false=check_child)
        check_tree = object_of(
            self.shared_fields,
            kind=checks.TEXT,
            splits=list_of(check_split, max_entries=MAX_RULES),
            leaves=checks.LIST,
            balanced=checks.BOOLEAN,
        )

        fields = check_tree(value, where)
        splits = tuple(Split(**parts) for parts in fields["splits"])
        leaves = self.read_leaves(fields["leaves"], f"{where}.leaves", n_leaves=len(splits) + 1)
        return _make(
            Tree,
            where,
            fields,
            splits=splits,
            leaves=leaves,
            kind=kind,
            balanced=fields["balanced"],
        )

    def read_score(self, value: Any, where: str) -> Score:
        """Read a score of points."""
        check_term = object_of(rule=self.read_rule, points=whole_number(0, MAX_TOTAL))
        check_score = object_of(
            self.shared_fields,
            kind=checks.TEXT,
            terms=list_of(check_term, max_entries=MAX_RULES),
            bounds=list_of(whole_number(1, MAX_TOTAL), max_entries=MAX_TOTAL),
            leaves=checks.LIST,
            log_odds=list_of(checks.check_number, max_entries=MAX_TOTAL + 1),
        )

        fields = check_score(value, where)
        terms = tuple(Term(**parts) for parts in fields["terms"])
        bounds = fields["bounds"]
        leaves = self.read_leaves(fields["leaves"], f"{where}.leaves", n_leaves=len(bounds) + 1)
        return _make(
            Score,
            where,
            fields,
            terms=terms,
            log_odds=tuple(map(float, fields["log_odds"])),
            bounds=bounds,
            leaves=leaves,
        )

    def read_leaves(self, value: Any, where: str, *, n_leaves: int) -> tuple[LeafCounts, ...]:
        """Read the training rows of each leaf, by outcome and environment."""
        n_environments = 1 if self.environments is None else len(self.environments)
        check_outcome = list_of(whole_number(0, MAX_COUNT), n_entries=n_environments)
        check_leaf = list_of(check_outcome, n_entries=2)
        leaves: tuple[LeafCounts, ...] = list_of(check_leaf, n_entries=n_leaves)(value, where)
        n_rows = sum(sum(counts) for leaf in leaves for counts in leaf)
        if n_rows > MAX_COUNT:
            reject(f"{where} count {n_rows:,} samples in all, more than 64 bits hold")
        return leaves

    def read_rule(self, value: Any, where: str) -> Rule:
        """Read a rule about one of the columns."""
        if not self.features:  # a model of a packed store names the columns of its rules only
            reject("features is empty, but the model's rules use columns")
        kind = checks.read_kind(value, where, tuple(_RULES))
        form = _RULES[kind]
        check_rule = object_of(
            kind=checks.TEXT,
            column=whole_number(0, len(self.features) - 1),
            name=checks.NAME,
            **form.fields,
        )
        rule = make_rule(check_rule(value, where))
        self._check_column(rule, where, form)
        return rule

    def _check_column(self, rule: Rule, where: str, form: _RuleForm) -> None:
        """Raise unless a rule fits the column that it is about, and other rules on that column."""
        feature = self.features[rule.column]
        column = f"column {rule.column}"
        if rule.name != feature.name:
            reject(
                f"{where}.name is {quote(rule.name)}, but {column} is {quote(feature.name)} in "
                "features"
            )
        if feature.type not in form.feature_types:
            reject(f"{where} is a {rule.kind} rule about {column}, of type {feature.type!r}")
        if isinstance(rule, CategoryRule):
            self._check_level_kind(rule.column, rule.levels, where)
            levels_of_rules = self.levels_of_rules.setdefault(rule.column, set())
            levels_of_rules.update(map(sort_key, rule.levels))

    def _check_level_kind(self, column: int, levels: Sequence[Any], where: str) -> None:
        """Raise unless levels are of the same kind as those of earlier rules on the column."""
        level_kind, _ = sort_key(levels[0])
        if self.level_kinds.setdefault(column, level_kind) != level_kind:
            reject(f"{where}.levels are of another kind than an earlier rule's")

    def read_training_values(self, value: Any, where: str) -> TrainingValues:
        """Read the levels or the range of a column; they are read after the rules."""
        check_values = object_of(
            {"levels": _read_levels, "range": _read_range},
            column=whole_number(0, len(self.features) - 1),
        )
        fields = check_values(value, where)
        column: int = fields["column"]
        levels = fields.get("levels")
        if levels is not None:
            self._check_level_kind(column, levels, where)
            known_levels = {sort_key(level) for level in levels}
            if not self.levels_of_rules.get(column, set()) <= known_levels:
                reject(f"{where}.levels lack one that a rule uses")
        return TrainingValues(
            column=column,
            name=self.features[column].name,
            levels=levels,
            range=fields.get("range"),
        )


def _make(model_class: type[_Model], where: str, fields: dict[str, Any], **parts: Any) -> _Model:
    """Make a model of checked parts, with its calibration; raise if they are inconsistent."""
    try:
        return model_class(**parts, **take_fields(fields))
    except IcscmError as error:
        reject(f"{where} is not a valid {fields['kind']}: {error}")
