"""The text of a model file, read and checked; nothing in it is trusted.

Reading runs no code of the file's choosing: whoever loads a model may have got it by e-mail.
"""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import Any, Final, NamedTuple, NoReturn, TypeVar

from icscm.exceptions import IcscmError
from icscm.formatting import escape_controls
from icscm.model.forest import KINDS, Forest, Model
from icscm.model.leaves import LeafCounts
from icscm.model.plain import MAX_WHOLE
from icscm.model.rules import RULE_KINDS, CategoryRule, Rule
from icscm.model.splits import Split, make_chain_splits
from icscm.model.tree import Tree
from icscm.tables.columns import sort_key

FORMAT: Final = "icscm-model"
# What this version writes, and the newest that it reads. Up to schema 2 a conjunction or
# disjunction was a list of rules; now it has splits, as any tree.
SCHEMA: Final = 3

# --- limits: far above any model in use, and low enough that a hostile file does no harm --------

# The names of about four million columns; parsed, the worst such file takes a few gigabytes.
MAX_FILE_BYTES: Final = 2**28
# Lists and objects in a file. Empty ones would take the most memory for their bytes.
MAX_CONTAINERS: Final = 2**23
# Of a tree. Rules are meant to be read; ten is the learners' own default.
MAX_RULES: Final = 10_000
MAX_TREES: Final = 10_000
# Of one rule: those too rare for rules of their own, pooled.
MAX_LEVELS: Final = 1_000_000
MAX_ENVIRONMENTS: Final = 100_000
# Settings hold at most weights by name: one level inside another.
MAX_SETTINGS_DEPTH: Final = 4
# Counts are int64 throughout the package.
MAX_COUNT: Final = 2**63 - 1
# Characters of a whole number, sign included. Python takes long to read very long ones.
MAX_DIGITS: Final = len(str(-MAX_WHOLE))
# Characters of what a message quotes from a file.
N_QUOTED: Final = 60

NUMBER: Final = "number"
CATEGORY: Final = "category"
LEFT_OUT: Final = "left_out"
FEATURE_TYPES: Final = (NUMBER, CATEGORY, LEFT_OUT)

_T = TypeVar("_T")

Label = str | bool | int | float


class Feature(NamedTuple):
    """A column of the training table: its name, if it had one, and one of `FEATURE_TYPES`."""

    name: str | None
    type: str


def compute_fingerprint(features: Sequence[Feature]) -> str:
    """SHA-256 of the columns' names and types, to tell whether two models saw the same columns."""
    text = json.dumps([list(feature) for feature in features], separators=(",", ":"))
    return sha256(text.encode("ascii")).hexdigest()


class WrongFileError(Exception):
    """What is wrong with a file, where, and what to do about it."""

    def __init__(
        self, what: str, remedy: str = "use a file as save() wrote it, or fit and save again"
    ) -> None:
        super().__init__(f"{what}; {remedy}")


def read_file(path: Path) -> str:
    """The text of a file; raise for one that cannot be a model."""
    try:
        if path.exists() and not path.is_file():
            raise WrongFileError("it is not a file", "name a file that save() wrote")
        with path.open("rb") as file:
            content = file.read(MAX_FILE_BYTES + 1)
    except (OSError, ValueError) as error:  # a path with a NUL is a ValueError
        reason = getattr(error, "strerror", None) or error
        raise WrongFileError(f"it cannot be read ({reason})", "check its name and place") from None
    check_size(len(content))
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        _reject(f"byte {error.start:,} is not UTF-8 text")


def check_size(n_bytes: int) -> None:
    """Raise for a file too large to be a model."""
    if n_bytes > MAX_FILE_BYTES:
        raise WrongFileError(
            f"it is larger than the {MAX_FILE_BYTES // 2**20} MB that a model file may have",
            "check that it is one, or fit on fewer columns",
        )


def parse_document(text: str) -> dict[str, Any]:
    """The fields of the model in a text; raises WrongFileError."""
    document = _Value(_parse_json(text), "the file")
    _check_format(document)
    fields = document.read_object(
        "format", "schema", "version", "model", "classes",
        "features", "environments", "settings", "alpha", "fingerprint",
    )  # fmt: skip
    features = _read_features(fields["features"])
    environments = _read_environments(fields["environments"])
    fingerprint = fields["fingerprint"].read(str, "text")
    if fingerprint != compute_fingerprint(features):
        _reject("fingerprint does not belong to these features: one of them was changed")
    _check_plain(fields["settings"].read(dict, "an object"), "settings", MAX_SETTINGS_DEPTH)
    reader = _ModelReader(features, 1 if environments is None else len(environments))
    return {
        "model": reader.read_model(fields["model"]),
        "classes": _read_classes(fields["classes"]),
        "features": features,
        "environments": environments,
        "settings": fields["settings"].value,
        "version": fields["version"].read(str, "text"),
        "fingerprint": fingerprint,
        "alpha": _read_alpha(fields["alpha"]),
    }


def _parse_json(text: str) -> Any:
    if text.count("[") + text.count("{") > MAX_CONTAINERS:
        _reject(f"it holds more than {MAX_CONTAINERS:,} lists and objects")
    try:
        return json.loads(text, object_pairs_hook=_make_object, parse_int=_parse_whole)
    except json.JSONDecodeError as error:
        _reject(f"it is not JSON, or cut off ({error})")
    except RecursionError:
        _reject("lists or objects are nested too deeply")


def _make_object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        repeated = _find_repeated([key for key, _ in pairs])
        _reject(f"the key {_show(repeated)} occurs twice in one object")
    return found


def _find_repeated(texts: list[str]) -> str:
    """The most frequent text."""
    return Counter(texts).most_common(1)[0][0]


def _parse_whole(digits: str) -> int:
    if len(digits) > MAX_DIGITS:
        _reject(f"it holds a whole number of {len(digits):,} digits")
    return int(digits)


class _Value(NamedTuple):
    """A value of the file, and its place there."""

    value: Any
    where: str

    def reject(self, wanted: str) -> NoReturn:
        _reject(f"{self.where} must be {wanted}, got {_show(self.value)}")

    def read(self, kinds: Any, wanted: str) -> Any:
        """The value, if it is of these types."""
        if not isinstance(self.value, kinds):
            self.reject(wanted)
        return self.value

    def read_object(self, *keys: str) -> dict[str, _Value]:
        """The values of an object with exactly these keys."""
        fields: dict[str, Any] = self.read(dict, "an object")
        for key in sorted({*keys} - fields.keys()):
            _reject(f"{self.where} lacks the key {key!r}")
        for key in sorted(fields.keys() - {*keys}):
            _reject(f"{self.where} has a key that this version does not know, {_show(key)}")
        place = "" if self.where == "the file" else f"{self.where}."
        return {key: _Value(value, f"{place}{key}") for key, value in fields.items()}

    def read_kind(self, kinds: Sequence[str]) -> str:
        """The kind of an object, which decides on its other keys."""
        if "kind" not in self.read(dict, "an object"):
            _reject(f"{self.where} lacks the key 'kind'")
        return _Value(self.value["kind"], f"{self.where}.kind").read_choice(kinds)

    def read_list(self, *, most: int | None = None, exactly: int | None = None) -> list[_Value]:
        entries: list[Any] = self.read(list, "a list")
        n = len(entries)
        if most is not None and n > most:
            _reject(f"{self.where} has {n:,} entries, more than the {most:,} allowed")
        if exactly is not None and n != exactly:
            _reject(f"{self.where} has {n:,} entries instead of {exactly:,}")
        return [_Value(each, f"{self.where}[{number}]") for number, each in enumerate(entries)]

    def read_labels(self, **limits: int) -> list[Label]:
        return [each.read_label() for each in self.read_list(**limits)]

    def read_label(self) -> Label:
        if isinstance(self.value, str | bool):
            return self.value
        return self.read_number("text, a finite number, true or false")

    def read_choice(self, choices: Sequence[str]) -> str:
        if not isinstance(self.value, str) or self.value not in choices:
            self.reject(f"one of {', '.join(map(repr, choices))}")
        return self.value

    def read_whole(self, least: int, most: int) -> int:
        is_whole = isinstance(self.value, int) and not isinstance(self.value, bool)
        if not is_whole or not least <= self.value <= most:
            self.reject(f"a whole number from {least} to {most}")
        return int(self.value)

    def read_number(self, wanted: str = "a finite number") -> float:
        is_number = isinstance(self.value, int | float) and not isinstance(self.value, bool)
        if not is_number or not math.isfinite(self.value):
            self.reject(wanted)
        if isinstance(self.value, int) and abs(self.value) > MAX_WHOLE:
            self.reject(f"{wanted} of 64 bits")
        number: float = self.value
        return number

    def read_boolean(self) -> bool:
        return bool(self.read(bool, "true or false"))

    def read_missing(self) -> bool | None:
        found: bool | None = self.read(bool | None, "true, false or null")
        return found

    def read_levels(self) -> tuple[Label, ...]:
        """The levels of a category rule: of one kind, each once."""
        levels = self.read_labels(most=MAX_LEVELS)
        if not levels:
            _reject(f"{self.where} is empty")
        keys = {sort_key(level) for level in levels}
        if len({kind for kind, _ in keys}) > 1:
            _reject(f"{self.where} mixes text, numbers and booleans")
        if len(keys) < len(levels):
            _reject(f"{self.where} names a level twice")
        return tuple(levels)


class _RuleForm(NamedTuple):
    """The types of features that a kind of rule can be about, and how its own fields are read."""

    types: tuple[str, ...]
    fields: dict[str, Callable[[_Value], Any]]


_RULES: Final = {
    "threshold": _RuleForm(
        (NUMBER,),
        {
            "threshold": _Value.read_number,
            "above": _Value.read_boolean,
            "missing": _Value.read_missing,
        },
    ),
    "presence": _RuleForm((NUMBER,), {"present": _Value.read_boolean}),
    "category": _RuleForm(
        (CATEGORY,),
        {
            "levels": _Value.read_levels,
            "equal": _Value.read_boolean,
            "pooled": _Value.read_boolean,
            "missing": _Value.read_missing,
        },
    ),
    "missing": _RuleForm((NUMBER, CATEGORY), {"is_missing": _Value.read_boolean}),
}


@dataclass
class _ModelReader:
    """Reads the model of a file with these features and this number of environments."""

    features: Sequence[Feature]
    n_environments: int
    level_kinds: dict[int, str] = field(default_factory=dict)

    def read_model(self, at: _Value) -> Model:
        if at.read_kind(KINDS) != Forest.kind:
            return self.read_tree(at)
        trees = at.read_object("kind", "trees")["trees"].read_list(most=MAX_TREES)
        for tree in trees:
            tree.read_kind(("tree",))
        return self._make(at, Forest, tuple(map(self.read_tree, trees)))

    def read_tree(self, at: _Value) -> Tree:
        kind, is_old = at.value["kind"], at.value["kind"] != "tree" and "rules" in at.value
        if is_old:  # schema 1
            fields = at.read_object("kind", "rules", "leaves")
            rules, balanced = fields["rules"].read_list(most=MAX_RULES), False
        else:
            fields = at.read_object("kind", "splits", "leaves", "balanced")
            balanced = fields["balanced"].read_boolean()
            rules, children = self._read_splits(fields["splits"])
        leaves = self._read_leaves(fields["leaves"], len(rules) + 1)
        found = [self.read_rule(rule) for rule in rules]
        splits = (
            make_chain_splits(kind, found)
            if is_old
            else tuple(Split(rule, *pair) for rule, pair in zip(found, children, strict=True))
        )
        return self._make(at, Tree, splits, leaves, kind, balanced)

    def _make(self, at: _Value, make: Callable[..., _T], *parts: Any) -> _T:
        try:
            return make(*parts)
        except IcscmError as error:  # splits that form no tree
            _reject(f"{at.where} is not a valid {at.value['kind']}: {error}")

    def _read_splits(self, at: _Value) -> tuple[list[_Value], list[tuple[int, int]]]:
        """The rules, not checked yet, and the numbers of the children."""
        splits = [
            each.read_object("rule", "if_true", "if_false") for each in at.read_list(most=MAX_RULES)
        ]
        bounds = -len(splits) - 1, len(splits) - 1
        children = [
            (each["if_true"].read_whole(*bounds), each["if_false"].read_whole(*bounds))
            for each in splits
        ]
        return [each["rule"] for each in splits], children

    def _read_leaves(self, at: _Value, n_leaves: int) -> tuple[LeafCounts, ...]:
        leaves = tuple(
            tuple(
                tuple(
                    count.read_whole(0, MAX_COUNT)
                    for count in row.read_list(exactly=self.n_environments)
                )
                for row in leaf.read_list(exactly=2)
            )
            for leaf in at.read_list(exactly=n_leaves)
        )
        n_samples = sum(sum(map(sum, leaf)) for leaf in leaves)
        if n_samples > MAX_COUNT:
            _reject(f"{at.where} count {n_samples:,} samples in all, more than 64 bits hold")
        return leaves

    def read_rule(self, at: _Value) -> Rule:
        if not self.features:  # a model of a packed store names the columns of its rules only
            _reject("features is empty, but the model's rules use columns")
        kind = at.read_kind(tuple(_RULES))
        form = _RULES[kind]
        fields = at.read_object("kind", "column", "name", *form.fields)
        column = fields["column"].read_whole(0, len(self.features) - 1)
        name, feature = fields["name"].value, self.features[column]
        if name != feature.name:
            _reject(
                f"{at.where}.name is {_show(name)}, but column {column} is "
                f"{_show(feature.name)} in features"
            )
        if feature.type not in form.types:
            _reject(f"{at.where} is a {kind} rule about column {column}, of type {feature.type!r}")
        values = {key: read(fields[key]) for key, read in form.fields.items()}
        rule = RULE_KINDS[kind](column, name, **values)
        if isinstance(rule, CategoryRule):
            self._check_levels(rule, at.where)
        return rule

    def _check_levels(self, rule: CategoryRule, where: str) -> None:
        """Raise for levels that no column could have."""
        if not rule.pooled and len(rule.levels) != 1:
            _reject(f"{where}.levels must hold one level where pooled is false")
        kind, _ = sort_key(rule.levels[0])
        if self.level_kinds.setdefault(rule.column, kind) != kind:
            _reject(f"{where}.levels are of another kind than an earlier rule's")


def _check_format(document: _Value) -> None:
    """Raise unless it is a model file that this version reads; checked first."""
    fields = document.value
    if not isinstance(fields, dict) or fields.get("format") != FORMAT:
        _reject(f'it is not marked as one with "format": "{FORMAT}"')
    if "schema" not in fields:
        _reject("the schema version is missing")
    schema = _Value(fields["schema"], "schema").read_whole(1, MAX_WHOLE)
    if schema > SCHEMA:
        raise WrongFileError(
            f"it was written by a newer version of icscm (schema {schema}, this one reads "
            f"{SCHEMA})",
            "upgrade icscm",
        )


def _read_features(at: _Value) -> tuple[Feature, ...]:
    features = tuple(map(_read_feature, at.read_list()))
    names = [name for name, _ in features if name is not None]
    if names and len(names) < len(features):
        _reject("features has names for some columns only; all have one or none has")
    if len(set(names)) < len(names):
        _reject(f"features names two columns {_show(_find_repeated(names))}")
    return features


def _read_feature(at: _Value) -> Feature:
    fields = at.read_object("name", "type")
    return Feature(
        fields["name"].read(str | None, "text"), fields["type"].read_choice(FEATURE_TYPES)
    )


def _read_classes(at: _Value) -> tuple[Label, Label]:
    negative, positive = at.read_labels(exactly=2)
    if isinstance(negative, str) != isinstance(positive, str) or negative == positive:
        _reject(
            f"classes must be two distinct labels of one kind, got {_show(negative)} and "
            f"{_show(positive)}"
        )
    return negative, positive


def _read_environments(at: _Value) -> tuple[Label, ...] | None:
    if at.value is None:
        return None
    labels = at.read_labels(most=MAX_ENVIRONMENTS)
    if not labels:
        _reject("environments is empty; without environments it is null")
    return tuple(labels)


def _check_plain(value: Any, where: str, depth: int) -> None:
    if not isinstance(value, dict | list):
        if value is not None:
            _Value(value, where).read_label()
        return
    if depth == 0:
        _reject(f"{where} is nested too deeply")
    for key, each in value.items() if isinstance(value, dict) else enumerate(value):
        _check_plain(each, f"{where}[{_show(key)}]", depth - 1)


def _read_alpha(at: _Value) -> float | None:
    if at.value is None:
        return None
    wanted = "a number between 0 and 1"
    if not 0 < at.read_number(wanted) < 1:
        at.reject(wanted)
    return float(at.value)


def _reject(what: str) -> NoReturn:
    raise WrongFileError(what)


def _show(value: Any) -> str:
    """A value of a file as a message quotes it: as JSON, on one line, never long."""
    if isinstance(value, dict | list):
        kind = "an object" if isinstance(value, dict) else "a list"
        return f"{kind} of {len(value):,}"
    if isinstance(value, str):
        short = value if len(value) <= N_QUOTED else f"{value[:N_QUOTED]}..."
        return escape_controls(json.dumps(short, ensure_ascii=False))
    if isinstance(value, float) and math.isinf(value):
        return "a number that is not finite"
    return json.dumps(value)
