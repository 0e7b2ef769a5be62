"""Reads and checks the text of a model file, which may come from an untrusted source.

Reading never runs code from the file.
"""

import json
import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import Any, Final, NamedTuple, NoReturn, TypeVar

from icscm.exceptions import IcscmError
from icscm.formatting import MAX_WHOLE, escape_controls
from icscm.model.calibration import take_fields
from icscm.model.forest import KINDS, Forest, Model
from icscm.model.rules import CategoryRule, Rule, make_rule
from icscm.model.score import MAX_TOTAL, Score, Term
from icscm.model.splits import LeafCounts, Split, make_chain_splits
from icscm.model.tree import Tree
from icscm.tables.columns import sort_key

FORMAT: Final = "icscm-model"
# The schema that this version writes, and the newest that it reads. Up to schema 2 a conjunction or
# disjunction was a list of rules; up to schema 3 models had no calibration and no threshold.
SCHEMA: Final = 4

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
# Characters of what a message quotes from a file.
N_QUOTED: Final = 60

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
    """SHA-256 of the columns' names and types, to tell whether two models saw the same columns."""
    text = json.dumps([list(feature) for feature in features], separators=(",", ":"))
    return sha256(text.encode("ascii")).hexdigest()


class WrongFileError(Exception):
    """Raised with what is wrong with a file, where, and what to do."""

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
        raise WrongFileError(f"byte {error.start:,} is not UTF-8 text") from None


def check_size(n_bytes: int) -> None:
    """Raise for a file too large to be a model."""
    if n_bytes > MAX_FILE_BYTES:
        raise WrongFileError(
            f"it is larger than the {MAX_FILE_BYTES // 2**20} MB that a model file may have",
            "check that it is one, or fit on fewer columns",
        )


def parse_document(text: str) -> dict[str, Any]:
    """The fields of the model in a text; raises WrongFileError."""
    fields: dict[str, Any] = _object(
        version=_TEXT,
        features=_list(_object(name=_NAME, type=_choice(FEATURE_TYPES))),
        fingerprint=_TEXT,
        environments=_read_environments,
        settings=_OBJECT,
        alpha=_ALPHA,
        classes=_list(_LABEL, exactly=2),
        model=_OBJECT,
    )(_parse_json(text), "the file")
    features = fields["features"] = tuple(Feature(**each) for each in fields["features"])
    names = [name for name, _ in features if name is not None]
    if names and len(names) < len(features):
        _reject("features has names for some columns only; all have one or none has")
    if len(set(names)) < len(names):
        _reject(f"features names two columns {_show_repeated(names)}")
    if fields["fingerprint"] != compute_fingerprint(features):
        _reject("fingerprint does not belong to these features: one of them was changed")
    _check_plain(fields["settings"], "settings", MAX_SETTINGS_DEPTH)
    table = _OBJECT(fields["settings"].get("table", {}), "settings.table")
    for key in table.keys() & _TABLE.keys():
        _TABLE[key](table[key], f"settings.table.{key}")
    negative, positive = fields["classes"]
    if isinstance(negative, str) != isinstance(positive, str) or negative == positive:
        both = f"{_show(negative)} and {_show(positive)}"
        _reject(f"classes must be two distinct labels of one kind, got {both}")
    reader = ModelReader(features, fields["environments"])
    return fields | {"model": reader.read_model(fields["model"], "model")}


def _parse_json(text: str) -> Any:
    """The content of a file that is marked as a model, in a schema that this version reads."""
    if text.count("[") + text.count("{") > MAX_CONTAINERS:
        _reject(f"it holds more than {MAX_CONTAINERS:,} lists and objects")
    try:
        document = json.loads(text, object_pairs_hook=_make_object, parse_int=_parse_whole)
    except json.JSONDecodeError as error:
        _reject(f"it is not JSON, or cut off ({error})")
    except RecursionError:
        _reject("lists or objects are nested too deeply")
    if not isinstance(document, dict) or document.get("format") != FORMAT:
        _reject(f'it is not marked as one with "format": "{FORMAT}"')
    if "schema" not in document:
        _reject("the schema version is missing")
    schema = _whole(1, MAX_WHOLE)(document["schema"], "schema")
    if schema > SCHEMA:
        what = f"it was written by a newer version of icscm (schema {schema}, this one reads "
        raise WrongFileError(f"{what}{SCHEMA})", "upgrade icscm")
    return {key: value for key, value in document.items() if key not in ("format", "schema")}


def _make_object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    if len(dict(pairs)) < len(pairs):
        _reject(f"the key {_show_repeated([key for key, _ in pairs])} occurs twice in one object")
    return dict(pairs)


def _parse_whole(digits: str) -> int:
    if len(digits) > MAX_DIGITS:
        _reject(f"it holds a whole number of {len(digits):,} digits")
    return int(digits)


# --- checks: from a value and its place in the file to the value in the model ---------------------

Check = Callable[[Any, str], Any]


def _require(is_right: Callable[[Any], bool], wanted: str) -> Check:
    def check(value: Any, where: str) -> Any:
        if not is_right(value):
            _reject(f"{where} must be {wanted}, got {_show(value)}")
        return value

    return check


def _of_type(kinds: Any, wanted: str) -> Check:
    return _require(lambda value: isinstance(value, kinds), wanted)


def _choice(choices: Sequence[str]) -> Check:
    return _require(lambda value: value in choices, f"one of {', '.join(map(repr, choices))}")


def _whole(least: int, most: int) -> Check:
    wanted = f"a whole number from {least} to {most}"
    return _require(lambda value: type(value) is int and least <= value <= most, wanted)


def _number(wanted: str, others: tuple[type, ...] = ()) -> Check:
    """A finite number of at most 64 bits, or a value of other types."""

    def is_right(value: Any) -> bool:
        is_number = isinstance(value, int | float) and not isinstance(value, bool)
        return isinstance(value, others) or (is_number and math.isfinite(value))

    def is_short(value: Any) -> bool:
        return not isinstance(value, int) or abs(value) <= MAX_WHOLE

    finite, short = _require(is_right, wanted), _require(is_short, f"{wanted} of 64 bits")
    return lambda value, where: short(finite(value, where), where)


_TEXT = _of_type(str, "text")
_NAME = _of_type(str | None, "text")
_BOOLEAN = _of_type(bool, "true or false")
_MISSING = _of_type(bool | None, "true, false or null")
_OBJECT = _of_type(dict, "an object")
_LIST = _of_type(list, "a list")
_NUMBER = _number("a finite number")
_LABEL = _number("text, a finite number, true or false", (str, bool))
_ALPHA = _require(
    lambda value: value is None or (isinstance(value, float) and 0 < value < 1),
    "a number between 0 and 1",
)


def _list(each: Check, *, most: int | None = None, exactly: int | None = None) -> Check:
    def check(value: Any, where: str) -> Any:
        n = len(_LIST(value, where))
        if most is not None and n > most:
            _reject(f"{where} has {n:,} entries, more than the {most:,} allowed")
        if exactly is not None and n != exactly:
            _reject(f"{where} has {n:,} entries instead of {exactly:,}")
        return tuple(each(entry, f"{where}[{number}]") for number, entry in enumerate(value))

    return check


def _object(optional: Mapping[str, Check] | None = None, /, **fields: Check) -> Check:
    """An object with exactly these keys, and any of the optional ones."""
    extra = optional or {}

    def check(value: Any, where: str) -> Any:
        keys = _OBJECT(value, where).keys()
        for key in sorted(fields.keys() - keys):
            _reject(f"{where} lacks the key {key!r}")
        for key in sorted(keys - fields.keys() - extra.keys()):
            _reject(f"{where} has a key that this version does not know, {_show(key)}")
        place = "" if where == "the file" else f"{where}."
        known = fields | {key: read for key, read in extra.items() if key in keys}
        return {key: read(value[key], f"{place}{key}") for key, read in known.items()}

    return check


def _read_kind(value: Any, where: str, kinds: Sequence[str]) -> Any:
    """The kind of an object, which determines its other keys."""
    if "kind" not in _OBJECT(value, where):
        _reject(f"{where} lacks the key 'kind'")
    return _choice(kinds)(value["kind"], f"{where}.kind")


def _read_levels(value: Any, where: str) -> tuple[Label, ...]:
    levels: tuple[Label, ...] = _list(_LABEL, most=MAX_LEVELS)(value, where)
    if not levels:
        _reject(f"{where} is empty")
    keys = {sort_key(level) for level in levels}
    if len({kind for kind, _ in keys}) > 1:
        _reject(f"{where} mixes text, numbers and booleans")
    if len(keys) < len(levels):
        _reject(f"{where} names a level twice")
    return levels


def _read_environments(value: Any, where: str) -> tuple[Label, ...] | None:
    if value is not None and not _LIST(value, where):
        _reject("environments is empty; without environments it is null")
    return None if value is None else _list(_LABEL, most=MAX_ENVIRONMENTS)(value, where)


def _check_plain(value: Any, where: str, depth: int) -> None:
    if not isinstance(value, dict | list):
        if value is not None:
            _LABEL(value, where)
        return
    if depth == 0:
        _reject(f"{where} is nested too deeply")
    for key, each in value.items() if isinstance(value, dict) else enumerate(value):
        _check_plain(each, f"{where}[{_show(key)}]", depth - 1)


# How `icscm fit` read its table, and commands on the model read others.
_NAMES: Final = ("positive", "environment_columns", "exclude_environment", "na")
_TABLE: Final[dict[str, Check]] = {
    **dict.fromkeys(("target", "format", "decimal"), _TEXT),
    **dict.fromkeys((*_NAMES, "merge_environments"), _list(_TEXT)),
    "environment": _NAME,
    "default_na": _BOOLEAN,
    "equivalents": _list(_list(_TEXT)),
    "levels": lambda each, where: [_list(_LABEL)(v, where) for v in _OBJECT(each, where).values()],
}
# Fields that every model can have.
_CALIBRATION: Final = {"calibration": _list(_NUMBER, exactly=2), "threshold": _ALPHA}


# --- the model -----------------------------------------------------------------------------------

# For each kind of rule, the types of features that it can use, and its fields.
_RULES: Final[dict[str, tuple[tuple[str, ...], dict[str, Check]]]] = {
    "threshold": ((NUMBER,), {"threshold": _NUMBER, "above": _BOOLEAN, "missing": _MISSING}),
    "presence": ((NUMBER,), {"present": _BOOLEAN}),
    "category": (
        (CATEGORY,),
        {"levels": _read_levels, "equal": _BOOLEAN, "pooled": _BOOLEAN, "missing": _MISSING},
    ),
    "missing": ((NUMBER, CATEGORY), {"is_missing": _BOOLEAN}),
}


@dataclass
class ModelReader:
    """Reads a model, as `to_dict` describes it, of these features and environments."""

    features: Sequence[Feature]
    environments: Sequence[Any] | None
    level_kinds: dict[int, str] = field(default_factory=dict)

    def read_model(self, value: Any, where: str) -> Model:
        kind = _read_kind(value, where, KINDS)
        if kind == Score.kind:
            return self.read_score(value, where)
        if kind != Forest.kind:
            return self.read_tree(value, where, KINDS)
        trees = _list(self.read_tree, most=MAX_TREES)
        fields = _object(_CALIBRATION, kind=_TEXT, trees=trees)(value, where)
        return _make(Forest, where, fields, fields["trees"])

    def read_tree(self, value: Any, where: str, kinds: Sequence[str] = ("tree",)) -> Tree:
        kind, balanced = _read_kind(value, where, kinds), False
        if kind != "tree" and "rules" in value:  # schema 1
            rules = _list(self.read_rule, most=MAX_RULES)
            fields = _object(kind=_TEXT, rules=rules, leaves=_LIST)(value, where)
            splits = make_chain_splits(kind, fields["rules"])
        else:
            n = len(value["splits"]) if isinstance(value.get("splits"), list) else 0
            child = _whole(-n - 1, n - 1)
            split = _object(rule=self.read_rule, if_true=child, if_false=child)
            parts = {"splits": _list(split, most=MAX_RULES), "leaves": _LIST, "balanced": _BOOLEAN}
            fields = _object(_CALIBRATION, kind=_TEXT, **parts)(value, where)
            splits = tuple(Split(**each) for each in fields["splits"])
            balanced = fields["balanced"]
        leaves = self.read_leaves(value["leaves"], f"{where}.leaves", len(splits) + 1)
        return _make(Tree, where, fields, splits, leaves, kind, balanced)

    def read_leaves(self, value: Any, where: str, n_leaves: int) -> tuple[LeafCounts, ...]:
        n_environments = 1 if self.environments is None else len(self.environments)
        leaf = _list(_list(_whole(0, MAX_COUNT), exactly=n_environments), exactly=2)
        leaves: tuple[LeafCounts, ...] = _list(leaf, exactly=n_leaves)(value, where)
        n_samples = sum(sum(map(sum, leaf)) for leaf in leaves)
        if n_samples > MAX_COUNT:
            _reject(f"{where} count {n_samples:,} samples in all, more than 64 bits hold")
        return leaves

    def read_score(self, value: Any, where: str) -> Score:
        term = _object(rule=self.read_rule, points=_whole(0, MAX_TOTAL))
        bounds = _list(_whole(1, MAX_TOTAL), most=MAX_TOTAL)
        parts = {"terms": _list(term, most=MAX_RULES), "bounds": bounds, "leaves": _LIST}
        parts["log_odds"] = _list(_NUMBER, most=MAX_TOTAL + 1)
        fields = _object(_CALIBRATION, kind=_TEXT, **parts)(value, where)
        terms = tuple(Term(**each) for each in fields["terms"])
        leaves = self.read_leaves(value["leaves"], f"{where}.leaves", len(fields["bounds"]) + 1)
        log_odds = tuple(map(float, fields["log_odds"]))
        return _make(Score, where, fields, terms, log_odds, fields["bounds"], leaves)

    def read_rule(self, value: Any, where: str) -> Rule:
        if not self.features:  # a model of a packed store names the columns of its rules only
            _reject("features is empty, but the model's rules use columns")
        kind = _read_kind(value, where, tuple(_RULES))
        types, parts = _RULES[kind]
        column = _whole(0, len(self.features) - 1)
        rule = make_rule(_object(kind=_TEXT, column=column, name=_NAME, **parts)(value, where))
        feature, at = self.features[rule.column], f"column {rule.column}"
        if rule.name != feature.name:
            own = _show(feature.name)
            _reject(f"{where}.name is {_show(rule.name)}, but {at} is {own} in features")
        if feature.type not in types:
            _reject(f"{where} is a {kind} rule about {at}, of type {feature.type!r}")
        if isinstance(rule, CategoryRule):
            level_kind, _ = sort_key(rule.levels[0])
            if self.level_kinds.setdefault(rule.column, level_kind) != level_kind:
                _reject(f"{where}.levels are of another kind than an earlier rule's")
        return rule


def _make(kind: type[_Model], where: str, fields: dict[str, Any], *parts: Any) -> _Model:
    """A model of checked parts, with its calibration; raises if they are inconsistent."""
    try:
        return kind(*parts, **take_fields(fields))
    except IcscmError as error:
        _reject(f"{where} is not a valid {fields['kind']}: {error}")


def _reject(what: str) -> NoReturn:
    raise WrongFileError(what)


def _show_repeated(texts: list[str]) -> str:
    return _show(Counter(texts).most_common(1)[0][0])


def _show(value: Any) -> str:
    """A value of a file as quoted in messages: short JSON on one line."""
    if isinstance(value, dict | list):
        kind = "an object" if isinstance(value, dict) else "a list"
        return f"{kind} of {len(value):,}"
    if isinstance(value, str):
        short = value if len(value) <= N_QUOTED else f"{value[:N_QUOTED]}..."
        return escape_controls(json.dumps(short, ensure_ascii=False))
    if isinstance(value, float) and math.isinf(value):
        return "a number that is not finite"
    return json.dumps(value)
