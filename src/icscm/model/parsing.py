"""The text of a model file, read and checked; nothing in it is taken on trust.

Reading runs no code of the file's choosing: whoever loads a model may have got it by e-mail.
"""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from hashlib import sha256
from pathlib import Path
from typing import Any, Final, NamedTuple, NoReturn

from icscm.model.plain import MAX_WHOLE
from icscm.model.rule_sets import MODEL_KINDS, RuleSet, make_model
from icscm.tables.columns import Level, sort_key
from icscm.text import escape_controls

FORMAT: Final = "icscm-model"
# Raised when older versions of the package would misread the file.
SCHEMA: Final = 1

# --- limits: far above any model in use, and low enough that a hostile file does no harm --------

# The names of about four million columns; parsed, the worst such file takes a few gigabytes.
MAX_FILE_BYTES: Final = 2**28
# Lists and objects in a file. Empty ones would take the most memory for their bytes.
MAX_CONTAINERS: Final = 2**23
# Rules are meant to be read; ten is the learners' own default.
MAX_RULES: Final = 10_000
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
    document = _parse_json(text)
    _check_kind(document)
    keys = {"format", "schema", "version", "model", "classes"}
    keys |= {"features", "environments", "settings", "alpha", "fingerprint"}
    fields = _read_object(document, "the file", keys)
    features = _read_features(fields["features"])
    environments = _read_environments(fields["environments"])
    n_environments = 1 if environments is None else len(environments)
    fingerprint = _read_text(fields["fingerprint"], "fingerprint")
    if fingerprint != compute_fingerprint(features):
        _refuse("fingerprint does not belong to these features: one of them was changed")
    return {
        "model": _read_model(fields["model"], features, n_environments),
        "classes": _read_classes(fields["classes"]),
        "features": features,
        "environments": environments,
        "settings": _read_settings(fields["settings"]),
        "version": _read_text(fields["version"], "version"),
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


def _check_kind(document: Any) -> None:
    """Raise unless it is a model file of this version: before anything else is looked at."""
    if not isinstance(document, dict) or document.get("format") != FORMAT:
        _refuse(f'it is not marked as one with "format": "{FORMAT}"')
    if "schema" not in document:
        _refuse("the schema version is missing")
    schema = _read_whole(document["schema"], "schema", least=1, most=MAX_WHOLE)
    if schema > SCHEMA:
        raise WrongFileError(
            f"it was written by a newer version of icscm (schema {schema}, this one reads "
            f"{SCHEMA})",
            "upgrade icscm",
        )


def _read_model(value: Any, features: Sequence[Feature], n_environments: int) -> RuleSet:
    fields = _read_object(value, "model", {"kind", "rules", "leaves"})
    _read_choice(fields["kind"], "model.kind", tuple(MODEL_KINDS))
    rules = _read_list(fields["rules"], "model.rules", most=MAX_RULES)
    for number, rule in enumerate(rules):
        _check_rule(rule, f"model.rules[{number}]", features)
    _check_levels_agree(rules)
    leaves = _read_list(fields["leaves"], "model.leaves", exactly=len(rules) + 1)
    n_samples = sum(
        _count_leaf(leaf, f"model.leaves[{number}]", n_environments)
        for number, leaf in enumerate(leaves)
    )
    if n_samples > MAX_COUNT:
        _refuse(f"model.leaves count {n_samples:,} samples in all, more than 64 bits hold")
    return make_model(fields)


def _check_rule(value: Any, where: str, features: Sequence[Feature]) -> None:
    if "kind" not in _read_any_object(value, where):
        _refuse(f"{where} lacks the key 'kind'")
    kind = _read_choice(value["kind"], f"{where}.kind", tuple(_RULE_CHECKS))
    checks = _RULE_CHECKS[kind]
    fields = _read_object(value, where, {"kind", "column", "name", *checks})
    most = len(features) - 1
    column = _read_whole(fields["column"], f"{where}.column", least=0, most=most)
    feature = features[column]
    if fields["name"] != feature.name:
        _refuse(
            f"{where}.name is {_show(fields['name'])}, but column {column} is "
            f"{_show(feature.name)} in features"
        )
    if feature.type not in _RULE_FEATURES[kind]:
        _refuse(f"{where} is a {kind} rule about column {column}, of type {feature.type!r}")
    for key, check in checks.items():
        check(fields[key], f"{where}.{key}")
    if kind == "category" and not fields["pooled"] and len(fields["levels"]) != 1:
        _refuse(f"{where}.levels must hold one level where pooled is false")


def _check_levels_agree(rules: Sequence[Mapping[str, Any]]) -> None:
    """Raise where no column could suit all rules: one asks for text, another for numbers."""
    kinds: dict[int, str] = {}
    for number, rule in enumerate(rules):
        if rule["kind"] == "category":
            kind, _ = sort_key(rule["levels"][0])
            if kinds.setdefault(rule["column"], kind) != kind:
                _refuse(f"model.rules[{number}].levels are of another kind than an earlier rule's")


def _count_leaf(value: Any, where: str, n_environments: int) -> int:
    """Number of samples in a leaf whose counts are in order."""
    n_samples = 0
    for label, row in enumerate(_read_list(value, where, exactly=2)):
        counts = _read_list(row, f"{where}[{label}]", exactly=n_environments)
        for number, count in enumerate(counts):
            place = f"{where}[{label}][{number}]"
            n_samples += _read_whole(count, place, least=0, most=MAX_COUNT)
    return n_samples


def _read_features(value: Any) -> tuple[Feature, ...]:
    features = tuple(
        _read_feature(each, f"features[{number}]")
        for number, each in enumerate(_read_list(value, "features"))
    )
    if not features:
        _refuse("features is empty, but a model is fitted on at least one column")
    names = [name for name, _ in features if name is not None]
    if names and len(names) < len(features):
        _refuse("features has names for some columns only; all have one or none has")
    if len(set(names)) < len(names):
        _refuse(f"features names two columns {_show(_find_repeated(names))}")
    return features


def _read_feature(value: Any, where: str) -> Feature:
    fields = _read_object(value, where, {"name", "type"})
    name = fields["name"]
    if name is not None:
        _read_text(name, f"{where}.name")
    return Feature(name, _read_choice(fields["type"], f"{where}.type", FEATURE_TYPES))


def _read_classes(value: Any) -> tuple[Label, Label]:
    negative, positive = _read_list(value, "classes", exactly=2)
    for number, label in enumerate((negative, positive)):
        _check_label(label, f"classes[{number}]")
    if isinstance(negative, str) != isinstance(positive, str) or negative == positive:
        _refuse(
            f"classes must be two distinct labels of one kind, got {_show(negative)} and "
            f"{_show(positive)}"
        )
    return negative, positive


def _read_environments(value: Any) -> tuple[Label, ...] | None:
    if value is None:
        return None
    labels = _read_list(value, "environments", most=MAX_ENVIRONMENTS)
    if not labels:
        _refuse("environments is empty; without environments it is null")
    for number, label in enumerate(labels):
        _check_label(label, f"environments[{number}]")
    return tuple(labels)


def _check_label(value: Any, where: str) -> None:
    if isinstance(value, str | bool):
        return
    _read_number(value, where, "text, a finite number, true or false")


def _read_settings(value: Any) -> dict[str, Any]:
    settings: dict[str, Any] = _read_any_object(value, "settings")
    _check_plain(settings, "settings", MAX_SETTINGS_DEPTH)
    return settings


def _check_plain(value: Any, where: str, depth: int) -> None:
    if isinstance(value, dict | list) and depth == 0:
        _refuse(f"{where} is nested too deeply")
    if isinstance(value, dict):
        for key, each in value.items():
            _check_plain(each, f"{where}[{_show(key)}]", depth - 1)
    elif isinstance(value, list):
        for number, each in enumerate(value):
            _check_plain(each, f"{where}[{number}]", depth - 1)
    elif value is not None:
        _check_label(value, where)


def _read_alpha(value: Any) -> float | None:
    if value is None:
        return None
    alpha = _read_number(value, "alpha", "a number between 0 and 1")
    if not 0 < alpha < 1:
        _refuse_type(value, "alpha", "a number between 0 and 1")
    return float(alpha)


# --- single values of a file ----------------------------------------------------------------------


def _read_object(value: Any, where: str, keys: set[str]) -> dict[str, Any]:
    """An object with exactly these keys."""
    fields: dict[str, Any] = _read_any_object(value, where)
    for key in sorted(keys - fields.keys()):
        _refuse(f"{where} lacks the key {key!r}")
    for key in sorted(fields.keys() - keys):
        _refuse(f"{where} has a key that this version does not know, {_show(key)}")
    return fields


def _read_list(
    value: Any, where: str, *, most: int | None = None, exactly: int | None = None
) -> list[Any]:
    entries: list[Any] = _read_any_list(value, where)
    if most is not None and len(entries) > most:
        _refuse(f"{where} has {len(entries):,} entries, more than the {most:,} allowed")
    if exactly is not None and len(entries) != exactly:
        _refuse(f"{where} has {len(entries):,} entries instead of {exactly:,}")
    return entries


def _read_choice(value: Any, where: str, choices: Sequence[str]) -> str:
    if not isinstance(value, str) or value not in choices:
        _refuse_type(value, where, f"one of {', '.join(map(repr, choices))}")
    return value


def _read_whole(value: Any, where: str, *, least: int, most: int) -> int:
    is_whole = isinstance(value, int) and not isinstance(value, bool)
    if not is_whole or not least <= value <= most:
        _refuse_type(value, where, f"a whole number from {least} to {most}")
    whole: int = value
    return whole


def _read_number(value: Any, where: str, wanted: str = "a finite number") -> float:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if not is_number or not math.isfinite(value):
        _refuse_type(value, where, wanted)
    if isinstance(value, int) and abs(value) > MAX_WHOLE:
        _refuse_type(value, where, f"{wanted} of 64 bits")
    number: float = value
    return number


def _make_reader(kinds: Any, wanted: str) -> Callable[[Any, str], Any]:
    """What reads a value of some types, and refuses any other."""

    def read(value: Any, where: str) -> Any:
        if not isinstance(value, kinds):
            _refuse_type(value, where, wanted)
        return value

    return read


_read_text = _make_reader(str, "text")
_read_boolean = _make_reader(bool, "true or false")
_read_missing = _make_reader(bool | None, "true, false or null")
_read_any_object = _make_reader(dict, "an object")
_read_any_list = _make_reader(list, "a list")


def _read_levels(value: Any, where: str) -> list[Level]:
    levels = _read_list(value, where, most=MAX_LEVELS)
    if not levels:
        _refuse(f"{where} is empty")
    for number, level in enumerate(levels):
        _check_label(level, f"{where}[{number}]")
    keys = {sort_key(level) for level in levels}
    if len({kind for kind, _ in keys}) > 1:
        _refuse(f"{where} mixes text, numbers and booleans")
    if len(keys) < len(levels):
        _refuse(f"{where} names a level twice")
    return levels


_RULE_CHECKS: Final[dict[str, dict[str, Callable[[Any, str], Any]]]] = {
    "threshold": {"threshold": _read_number, "above": _read_boolean, "missing": _read_missing},
    "presence": {"present": _read_boolean},
    "category": {
        "levels": _read_levels,
        "equal": _read_boolean,
        "pooled": _read_boolean,
        "missing": _read_missing,
    },
    "missing": {"is_missing": _read_boolean},
}


def _refuse(what: str) -> NoReturn:
    raise WrongFileError(what)


def _refuse_type(value: Any, where: str, wanted: str) -> NoReturn:
    _refuse(f"{where} must be {wanted}, got {_show(value)}")


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
