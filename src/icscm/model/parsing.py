"""The text of a model file, read and checked; nothing in it is taken on trust.

Reading runs no code of the file's choosing: whoever loads a model may have got it by e-mail.
"""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Callable, Sequence
from hashlib import sha256
from pathlib import Path
from typing import Any, Final, NamedTuple, NoReturn

from icscm.exceptions import IcscmError
from icscm.formatting import escape_controls
from icscm.model.forests import Forest
from icscm.model.kinds import KINDS, Model, make_model
from icscm.model.plain import MAX_WHOLE
from icscm.model.trees import Tree
from icscm.tables.columns import sort_key

FORMAT: Final = "icscm-model"
# The newest that this version reads; each kind of model says which it needs.
SCHEMA: Final = 2

# --- limits: far above any model in use, and low enough that a hostile file does no harm --------

# The names of about four million columns; parsed, the worst such file takes a few gigabytes.
MAX_FILE_BYTES: Final = 2**28
# Lists and objects in a file. Empty ones would take the most memory for their bytes.
MAX_CONTAINERS: Final = 2**23
# Of a rule set or a tree. Rules are meant to be read; ten is the learners' own default.
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

# Which types of features each kind of rule can be about.
_RULE_FEATURES: Final = {
    "threshold": (NUMBER,),
    "presence": (NUMBER,),
    "category": (CATEGORY,),
    "missing": (NUMBER, CATEGORY),
}

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
            raise WrongFileError("it is no file", "name a file that save() wrote")
        with path.open("rb") as file:
            content = file.read(MAX_FILE_BYTES + 1)
    except (OSError, ValueError) as error:  # a path with a NUL is a ValueError
        reason = getattr(error, "strerror", None) or error
        raise WrongFileError(f"it cannot be read ({reason})", "check its name and place") from None
    check_size(len(content))
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        _refuse(f"byte {error.start:,} is not UTF-8 text")


def check_size(n_bytes: int) -> None:
    """Raise for a file too large to be a model."""
    if n_bytes > MAX_FILE_BYTES:
        raise WrongFileError(
            f"it is larger than the {MAX_FILE_BYTES // 2**20} MB that a model file may have",
            "check that it is one, or fit on fewer columns",
        )


def parse_document(text: str) -> dict[str, Any]:
    """The fields of the model in a text; whoever asks turns what this raises into an error."""
    document = _Value(_parse_json(text), "the file")
    _check_kind(document)
    fields = document.read_object(
        "format", "schema", "version", "model", "classes",
        "features", "environments", "settings", "alpha", "fingerprint",
    )  # fmt: skip
    features = _read_features(fields["features"])
    environments = _read_environments(fields["environments"])
    n_environments = 1 if environments is None else len(environments)
    fingerprint = fields["fingerprint"].read(str, "text")
    if fingerprint != compute_fingerprint(features):
        _refuse("fingerprint does not belong to these features: one of them was changed")
    _check_plain(fields["settings"].read(dict, "an object"), "settings", MAX_SETTINGS_DEPTH)
    return {
        "model": _read_model(fields["model"], features, n_environments),
        "classes": _read_classes(fields["classes"]),
        "features": features,
        "environments": environments,
        "settings": fields["settings"].value,
        "version": fields["version"].read(str, "text"),
        "fingerprint": fingerprint,
        "alpha": _read_alpha(fields["alpha"]),
    }


class _LongNumber(NamedTuple):
    """Stands for a whole number with more digits than any field can take."""

    n_digits: int


def _parse_json(text: str) -> Any:
    if text.count("[") + text.count("{") > MAX_CONTAINERS:
        _refuse(f"it holds more than {MAX_CONTAINERS:,} lists and objects")
    try:
        return json.loads(text, object_pairs_hook=_make_object, parse_int=_parse_whole)
    except json.JSONDecodeError as error:
        _refuse(f"it is not JSON, or cut off ({error})")
    except RecursionError:
        _refuse("lists or objects are nested too deeply")


def _make_object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        repeated = _find_repeated([key for key, _ in pairs])
        _refuse(f"the key {_show(repeated)} occurs twice in one object")
    return found


def _find_repeated(texts: list[str]) -> str:
    """The text that occurs most often: what to name in a complaint about repetition."""
    return Counter(texts).most_common(1)[0][0]


def _parse_whole(digits: str) -> int | _LongNumber:
    return int(digits) if len(digits) <= MAX_DIGITS else _LongNumber(len(digits))


class _Value(NamedTuple):
    """A value of the file, and where in it that stands."""

    value: Any
    where: str

    def refuse(self, wanted: str) -> NoReturn:
        _refuse(f"{self.where} must be {wanted}, got {_show(self.value)}")

    def read(self, kinds: Any, wanted: str) -> Any:
        """The value, if it is of these types."""
        if not isinstance(self.value, kinds):
            self.refuse(wanted)
        return self.value

    def read_object(self, *keys: str) -> dict[str, _Value]:
        """The values of an object with exactly these keys."""
        fields: dict[str, Any] = self.read(dict, "an object")
        for key in sorted({*keys} - fields.keys()):
            _refuse(f"{self.where} lacks the key {key!r}")
        for key in sorted(fields.keys() - {*keys}):
            _refuse(f"{self.where} has a key that this version does not know, {_show(key)}")
        place = "" if self.where == "the file" else f"{self.where}."
        return {key: _Value(value, f"{place}{key}") for key, value in fields.items()}

    def read_list(self, *, most: int | None = None, exactly: int | None = None) -> list[_Value]:
        entries: list[Any] = self.read(list, "a list")
        n = len(entries)
        if most is not None and n > most:
            _refuse(f"{self.where} has {n:,} entries, more than the {most:,} allowed")
        if exactly is not None and n != exactly:
            _refuse(f"{self.where} has {n:,} entries instead of {exactly:,}")
        return [_Value(each, f"{self.where}[{number}]") for number, each in enumerate(entries)]

    def read_labels(self, **limits: int) -> list[Label]:
        return [each.read_label() for each in self.read_list(**limits)]

    def read_label(self) -> Label:
        if isinstance(self.value, str | bool):
            return self.value
        return self.read_number("text, a finite number, true or false")

    def read_choice(self, choices: Sequence[str]) -> str:
        if not isinstance(self.value, str) or self.value not in choices:
            self.refuse(f"one of {', '.join(map(repr, choices))}")
        return self.value

    def read_whole(self, least: int, most: int) -> int:
        is_whole = isinstance(self.value, int) and not isinstance(self.value, bool)
        if not is_whole or not least <= self.value <= most:
            self.refuse(f"a whole number from {least} to {most}")
        return int(self.value)

    def read_number(self, wanted: str = "a finite number") -> float:
        is_number = isinstance(self.value, int | float) and not isinstance(self.value, bool)
        if not is_number or not math.isfinite(self.value):
            self.refuse(wanted)
        if isinstance(self.value, int) and abs(self.value) > MAX_WHOLE:
            self.refuse(f"{wanted} of 64 bits")
        number: float = self.value
        return number


def _check_kind(document: _Value) -> None:
    """Raise unless it is a model file of this version: before anything else is looked at."""
    fields = document.value
    if not isinstance(fields, dict) or fields.get("format") != FORMAT:
        _refuse(f'it is not marked as one with "format": "{FORMAT}"')
    if "schema" not in fields:
        _refuse("the schema version is missing")
    schema = _Value(fields["schema"], "schema").read_whole(1, MAX_WHOLE)
    if schema > SCHEMA:
        raise WrongFileError(
            f"it was written by a newer version of icscm (schema {schema}, this one reads "
            f"{SCHEMA})",
            "upgrade icscm",
        )


def _read_model(at: _Value, features: Sequence[Feature], n_environments: int) -> Model:
    if "kind" not in at.read(dict, "an object"):
        _refuse(f"{at.where} lacks the key 'kind'")
    kind = _Value(at.value["kind"], f"{at.where}.kind").read_choice(KINDS)
    parts = [at]
    if kind == Forest.kind:
        parts = at.read_object("kind", "trees")["trees"].read_list(most=MAX_TREES)
    rules = []
    for part in parts:
        own = _read_splits(part) if kind in (Tree.kind, Forest.kind) else _read_rules(part)
        _check_leaves(_Value(part.value["leaves"], f"{part.where}.leaves"), own, n_environments)
        rules += own
    if rules and not features:  # of a packed store, a model without rules names none
        _refuse("features is empty, but the model's rules ask for columns")
    for rule in rules:
        _check_rule(rule, features)
    _check_levels_agree(rules)
    try:
        return make_model(at.value)
    except IcscmError as error:  # of splits that make no tree
        _refuse(f"{at.where} makes no {kind}: {error}")


def _read_rules(at: _Value) -> list[_Value]:
    """The rules of a rule set, not checked yet."""
    return at.read_object("kind", "rules", "leaves")["rules"].read_list(most=MAX_RULES)


def _read_splits(at: _Value) -> list[_Value]:
    """The rules of a tree, not checked yet; of its splits it is known that they lead somewhere."""
    fields = at.read_object("kind", "splits", "leaves", "balanced")
    fields["kind"].read_choice((Tree.kind,))
    _check_boolean(fields["balanced"])
    rules = []
    splits = fields["splits"].read_list(most=MAX_RULES)
    for split in splits:
        parts = split.read_object("rule", "if_true", "if_false")
        for side in ("if_true", "if_false"):
            parts[side].read_whole(-len(splits) - 1, len(splits) - 1)
        rules.append(parts["rule"])
    return rules


def _check_leaves(at: _Value, rules: Sequence[_Value], n_environments: int) -> None:
    n_samples = sum(
        count.read_whole(0, MAX_COUNT)
        for leaf in at.read_list(exactly=len(rules) + 1)
        for row in leaf.read_list(exactly=2)
        for count in row.read_list(exactly=n_environments)
    )
    if n_samples > MAX_COUNT:
        _refuse(f"{at.where} count {n_samples:,} samples in all, more than 64 bits hold")


def _check_rule(at: _Value, features: Sequence[Feature]) -> None:
    if "kind" not in at.read(dict, "an object"):
        _refuse(f"{at.where} lacks the key 'kind'")
    kind = _Value(at.value["kind"], f"{at.where}.kind").read_choice(tuple(_RULE_CHECKS))
    checks = _RULE_CHECKS[kind]
    fields = at.read_object("kind", "column", "name", *checks)
    column = fields["column"].read_whole(0, len(features) - 1)
    name, feature = fields["name"].value, features[column]
    if name != feature.name:
        _refuse(
            f"{at.where}.name is {_show(name)}, but column {column} is "
            f"{_show(feature.name)} in features"
        )
    if feature.type not in _RULE_FEATURES[kind]:
        _refuse(f"{at.where} is a {kind} rule about column {column}, of type {feature.type!r}")
    for key, check in checks.items():
        check(fields[key])
    if kind == "category" and not at.value["pooled"] and len(at.value["levels"]) != 1:
        _refuse(f"{at.where}.levels must hold one level where pooled is false")


def _check_levels_agree(rules: Sequence[_Value]) -> None:
    """Raise where no column could suit all rules: one asks for text, another for numbers."""
    kinds: dict[int, str] = {}
    for rule, where in rules:
        if rule["kind"] == "category":
            kind, _ = sort_key(rule["levels"][0])
            if kinds.setdefault(rule["column"], kind) != kind:
                _refuse(f"{where}.levels are of another kind than an earlier rule's")


def _check_levels(at: _Value) -> None:
    levels = at.read_labels(most=MAX_LEVELS)
    if not levels:
        _refuse(f"{at.where} is empty")
    keys = {sort_key(level) for level in levels}
    if len({kind for kind, _ in keys}) > 1:
        _refuse(f"{at.where} mixes text, numbers and booleans")
    if len(keys) < len(levels):
        _refuse(f"{at.where} names a level twice")


def _check_boolean(at: _Value) -> None:
    at.read(bool, "true or false")


def _check_missing(at: _Value) -> None:
    at.read(bool | None, "true, false or null")


_RULE_CHECKS: Final[dict[str, dict[str, Callable[[_Value], Any]]]] = {
    "threshold": {
        "threshold": _Value.read_number,
        "above": _check_boolean,
        "missing": _check_missing,
    },
    "presence": {"present": _check_boolean},
    "category": {
        "levels": _check_levels,
        "equal": _check_boolean,
        "pooled": _check_boolean,
        "missing": _check_missing,
    },
    "missing": {"is_missing": _check_boolean},
}


def _read_features(at: _Value) -> tuple[Feature, ...]:
    features = tuple(map(_read_feature, at.read_list()))
    names = [name for name, _ in features if name is not None]
    if names and len(names) < len(features):
        _refuse("features has names for some columns only; all have one or none has")
    if len(set(names)) < len(names):
        _refuse(f"features names two columns {_show(_find_repeated(names))}")
    return features


def _read_feature(at: _Value) -> Feature:
    fields = at.read_object("name", "type")
    return Feature(
        fields["name"].read(str | None, "text"), fields["type"].read_choice(FEATURE_TYPES)
    )


def _read_classes(at: _Value) -> tuple[Label, Label]:
    negative, positive = at.read_labels(exactly=2)
    if isinstance(negative, str) != isinstance(positive, str) or negative == positive:
        _refuse(
            f"classes must be two distinct labels of one kind, got {_show(negative)} and "
            f"{_show(positive)}"
        )
    return negative, positive


def _read_environments(at: _Value) -> tuple[Label, ...] | None:
    if at.value is None:
        return None
    labels = at.read_labels(most=MAX_ENVIRONMENTS)
    if not labels:
        _refuse("environments is empty; without environments it is null")
    return tuple(labels)


def _check_plain(value: Any, where: str, depth: int) -> None:
    if not isinstance(value, dict | list):
        if value is not None:
            _Value(value, where).read_label()
        return
    if depth == 0:
        _refuse(f"{where} is nested too deeply")
    for key, each in value.items() if isinstance(value, dict) else enumerate(value):
        _check_plain(each, f"{where}[{_show(key)}]", depth - 1)


def _read_alpha(at: _Value) -> float | None:
    if at.value is None:
        return None
    wanted = "a number between 0 and 1"
    if not 0 < at.read_number(wanted) < 1:
        at.refuse(wanted)
    return float(at.value)


def _refuse(what: str) -> NoReturn:
    raise WrongFileError(what)


def _show(value: Any) -> str:
    """A value of a file as a message quotes it: in JSON's words, on one line, never long."""
    if isinstance(value, dict | list):
        kind = "an object" if isinstance(value, dict) else "a list"
        return f"{kind} of {len(value):,}"
    if isinstance(value, _LongNumber):
        return f"a number of {value.n_digits:,} digits"
    if isinstance(value, str):
        short = value if len(value) <= N_QUOTED else f"{value[:N_QUOTED]}..."
        return escape_controls(json.dumps(short, ensure_ascii=False))
    if isinstance(value, float) and math.isinf(value):
        return "a number that is not finite"
    return json.dumps(value)
