"""A model in a file: everything needed to predict and to explain, and nothing else.

The file is JSON. Reading it runs no code of the file's choosing, and takes nothing in it on trust:
whoever loads a model may have got it by e-mail.
"""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple, NoReturn, cast

import numpy as np
from numpy.typing import NDArray

from icscm._version import __version__
from icscm.exceptions import IcscmError
from icscm.model.rule_sets import MODEL_KINDS, RuleSet, make_model
from icscm.model.rules import PresenceRule
from icscm.tables.columns import Level, is_frame, list_names, sort_key
from icscm.text import escape_controls
from icscm.writing import check_free, write_text

if TYPE_CHECKING:
    import os

    from icscm.model.learner import Learner

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
# Counts are int64 throughout the package; thresholds and levels may come from uint64 columns.
MAX_COUNT: Final = 2**63 - 1
MAX_WHOLE: Final = 2**64 - 1
# Characters of a whole number, sign included. Python takes long to read very long ones.
MAX_DIGITS: Final = len(str(-MAX_WHOLE))
# Characters of what a message quotes from a file.
N_QUOTED: Final = 60
# Characters up to which a list or object is written on one line.
MAX_LINE: Final = 100

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


class Decisions(NamedTuple):
    """What a model says of each row; the exports give the same three columns."""

    prediction: NDArray[Any]
    probability: NDArray[np.float64]
    decided_by: NDArray[np.object_]


@dataclass(frozen=True)
class SavedModel:
    """A fitted model apart from the estimator that learned it.

    Parameters
    ----------
    model : the rules, and the training counts of their leaves.
    classes : the two labels; the second is the positive one.
    features : every column of the training table.
    environments : labels, in the order of the counts; None where none were given.
    settings : the learner's parameters as plain values.
    version : of the package that learned the model.
    fingerprint : of the training columns' names and types, see `compute_fingerprint`.
    alpha : the level of the tests; None where nothing was tested.
    """

    model: RuleSet
    classes: tuple[Label, Label]
    features: tuple[Feature, ...]
    environments: tuple[Label, ...] | None
    settings: Mapping[str, Any] = field(hash=False)
    version: str
    fingerprint: str
    alpha: float | None = None

    def predict(self, X: Any) -> NDArray[Any]:
        """The class of each row of X, an array or any kind of table.

        A table's columns are found by name: their order does not matter, and those that no
        rule asks for need not be there. An array has all the training columns, in their order.
        """
        return self.decide(X).prediction

    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        """Probability of each class, from the training samples in the row's leaf."""
        positive = self.decide(X).probability
        return np.column_stack((1.0 - positive, positive))

    def explain(self, X: Any) -> NDArray[np.object_]:
        """For each row the rule that decided, as text."""
        return self.decide(X).decided_by

    def decide(self, X: Any) -> Decisions:
        """Prediction, probability of the positive class and what decided, in one pass.

        A model that was fitted with `missing="error"` refuses missing values here, too.
        """
        table = self._check_table(X)
        if self.settings.get("missing") == "error":
            from icscm.tables.intake import refuse_missing_values

            refuse_missing_values(table, self.model.rules)
        leaves = self.model.find_leaves(table)
        is_positive = find_verdicts(self.model)[leaves]
        return Decisions(
            _make_array(self.classes)[is_positive.astype(np.intp)],
            self.model.leaf_probabilities()[leaves],
            np.array(describe_leaves(self.model), dtype=object)[leaves],
        )

    def _check_table(self, X: Any) -> Any:
        """X, or an array of it; columns found by position must all be there."""
        if is_frame(X) and self.features[0].name is not None:
            return X
        table = X if is_frame(X) else _make_table(X)
        n_columns = len(list_names(X)) if is_frame(X) else table.shape[1]
        if n_columns != len(self.features):
            raise IcscmError(
                f"X has {n_columns:,} columns and the model was fitted on {len(self.features):,}; "
                "without names columns are found by position, so give all of them in their order"
            )
        return table

    def to_dict(self) -> dict[str, Any]:
        """The content of the file as plain values."""
        return {
            "format": FORMAT,
            "schema": SCHEMA,
            "version": self.version,
            "model": self.model.to_dict(),
            "classes": list(self.classes),
            "features": [{"name": name, "type": kind} for name, kind in self.features],
            "environments": None if self.environments is None else list(self.environments),
            "settings": dict(self.settings),
            "alpha": self.alpha,
            "fingerprint": self.fingerprint,
        }

    def save(self, path: str | os.PathLike[str], *, force: bool = False) -> None:
        """Write the model to a file, whole or not at all; with `force` over an existing one."""
        path = Path(path)
        check_free(path, force=force)
        text = format_json(self.to_dict())
        self._check_readable(text)
        write_text(path, text)

    def _check_readable(self, text: str) -> None:
        """Raise unless `load` would give this model back: better now than when it is needed."""
        try:
            _check_size(len(text.encode()))
            is_same = parse_model(text) == self
        except _WrongFileError as wrong:
            raise IcscmError(f"this model cannot be saved: {wrong}") from None
        if not is_same:
            raise IcscmError(
                "this model cannot be saved: it would not read back the same, as a name, level or "
                "label with surrogates in pairs does not; rename it"
            )

    def __str__(self) -> str:
        return str(self.model)


def _make_table(X: Any) -> NDArray[Any]:
    """Rows as an array of two dimensions."""
    try:
        table = np.asarray(X)
    except ValueError:
        raise IcscmError("the rows of X differ in length; give each the same columns") from None
    if table.ndim != 2:
        raise IcscmError(
            "X must be a table, or an array of two dimensions, rows and columns; got "
            f"{type(X).__name__} of {table.ndim}"
        )
    if table.dtype.kind in "US" and not isinstance(X, np.ndarray):
        return np.array(X, dtype=object)  # lists of numbers and text: not all of it is text
    return table


def get_table_settings(saved: SavedModel) -> dict[str, Any]:
    """What `icscm fit` noted of its file; models saved from Python have none."""
    told = saved.settings.get("table")
    return told if isinstance(told, dict) else {}


# --- what a model says, leaf by leaf --------------------------------------------------------------


def describe_leaves(model: RuleSet) -> tuple[str, ...]:
    """What decides the samples of each leaf; the last are those that no rule settled.

    >>> from icscm.model.rule_sets import Conjunction
    >>> from icscm.model.rules import ThresholdRule
    >>> one = ((1,), (1,))
    >>> describe_leaves(Conjunction((ThresholdRule(0, "age", 63, above=True),), (one, one)))
    ('not met: age > 63', 'all rules met')
    """
    if not model.rules:
        return ("the model has no rule",)
    word, last = ("met", "no rule met") if model.settles_when else ("not met", "all rules met")
    return (*(f"{word}: {rule}" for rule in model.rules), last)


def find_verdicts(model: RuleSet) -> NDArray[np.bool_]:
    """Of each leaf whether its samples are predicted positive."""
    verdicts = np.full(len(model.leaves), model.settles_when)
    verdicts[-1] = not model.settles_when
    return verdicts


def _make_array(classes: Sequence[Label]) -> NDArray[Any]:
    """The classes as the array type that holds them exactly: NumPy's text drops trailing NULs."""
    array = np.array(classes)
    return array if array.tolist() == list(classes) else np.array(classes, dtype=object)


# --- from a fitted estimator ----------------------------------------------------------------------


def make_saved_model(learner: Learner) -> SavedModel:
    """All of a fitted estimator that predicting and explaining need."""
    from sklearn.utils.validation import check_is_fitted

    from icscm.model.learner import check_learner

    check_learner(learner)
    check_is_fitted(learner, "model_")
    model = make_model(_make_plain(learner.model_.to_dict()))
    if hasattr(learner, "feature_types_"):
        features = _list_features(learner)
    else:  # a packed store of millions of columns: those of the rules are enough
        model, features = _keep_used(model)
    alpha = getattr(learner, "alpha_", None)
    return SavedModel(
        model=model,
        classes=_list_classes(learner),
        features=features,
        environments=_list_environments(learner),
        settings=_make_plain(learner.get_params(deep=False)),
        version=__version__,
        fingerprint=compute_fingerprint(features),
        alpha=None if alpha is None else float(alpha),
    )


def compute_fingerprint(features: Sequence[Feature]) -> str:
    """SHA-256 of the columns' names and types, to tell whether two models saw the same columns."""
    text = json.dumps([list(feature) for feature in features], separators=(",", ":"))
    return sha256(text.encode("ascii")).hexdigest()


def _list_features(learner: Learner) -> tuple[Feature, ...]:
    names = getattr(learner, "feature_names_in_", [None] * learner.n_features_in_)
    return tuple(
        Feature(None if name is None else str(name), str(kind))
        for name, kind in zip(names, learner.feature_types_, strict=True)
    )


def _keep_used(model: RuleSet) -> tuple[RuleSet, tuple[Feature, ...]]:
    """The model with its rules' columns numbered anew, and these columns."""
    rules = cast(Sequence[PresenceRule], model.rules)
    columns = sorted({rule.column: rule.name for rule in rules}.items())
    places = {column: place for place, (column, _) in enumerate(columns)}
    renumbered = tuple(replace(rule, column=places[rule.column]) for rule in rules)
    return replace(model, rules=renumbered), tuple(Feature(name, NUMBER) for _, name in columns)


def _list_classes(learner: Learner) -> tuple[Label, Label]:
    negative, positive = learner.classes_.tolist()
    for label in (negative, positive):
        if not isinstance(label, Label):
            raise IcscmError(
                f"a model file holds classes that are text, numbers or booleans, not {label!r}; "
                "fit with such labels"
            )
    return negative, positive


def _list_environments(learner: Learner) -> tuple[Label, ...] | None:
    labels = learner.environments_
    return None if labels is None else tuple(_make_scalar(label, str) for label in labels)


def _make_plain(value: Any) -> Any:
    """What JSON can hold; of an object that it cannot, such as a test, the name of its type."""
    if hasattr(value, "to_dict") and hasattr(value, "index"):  # a pandas Series
        value = value.to_dict()
    if isinstance(value, np.ndarray):
        value = value.tolist()
    if isinstance(value, Mapping):
        return {str(key): _make_plain(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [_make_plain(each) for each in value]
    return None if value is None else _make_scalar(value, lambda other: type(other).__name__)


def _make_scalar(value: Any, describe: Callable[[Any], str]) -> Label:
    """A plain value; text where JSON has none like it."""
    if isinstance(value, np.generic):
        value = value.tolist()
    if isinstance(value, str | bool):
        return value
    if not isinstance(value, int | float):
        return describe(value)
    is_plain = abs(value) <= MAX_WHOLE if isinstance(value, int) else math.isfinite(value)
    return value if is_plain else str(value)


# --- JSON -----------------------------------------------------------------------------------------


def format_json(document: Mapping[str, Any]) -> str:
    """JSON for people too: one rule, leaf or feature to a line, and no character unprintable."""
    text = _lay_out(document, depth=3, indent="") + "\n"
    if text.isascii() and "\x7f" not in text:
        return text
    return "".join(
        each if each.isprintable() or each == "\n" else json.dumps(each)[1:-1] for each in text
    )


def _lay_out(value: Any, *, depth: int, indent: str) -> str:
    """JSON with what does not fit on a line spread over several, down to `depth` levels."""
    is_plain = depth == 0 or not isinstance(value, Mapping | list)
    if is_plain or len(value) < MAX_LINE:
        line = json.dumps(value, ensure_ascii=False)
        if is_plain or len(line) <= MAX_LINE - len(indent):
            return line
    inner = indent + "  "
    if isinstance(value, list):
        parts = [_lay_out(each, depth=depth - 1, indent=inner) for each in value]
        opening, closing = "[", "]"
    else:
        parts = [
            f"{json.dumps(key, ensure_ascii=False)}: "
            f"{_lay_out(each, depth=depth - 1, indent=inner)}"
            for key, each in value.items()
        ]
        opening, closing = "{", "}"
    joined = f",\n{inner}".join(parts)
    return f"{opening}\n{inner}{joined}\n{indent}{closing}"


# --- loading --------------------------------------------------------------------------------------


class _WrongFileError(Exception):
    """What is wrong with a file, where, and what to do about it."""

    def __init__(
        self, what: str, remedy: str = "use a file as save() wrote it, or fit and save again"
    ) -> None:
        super().__init__(f"{what}; {remedy}")


def load(path: str | os.PathLike[str]) -> SavedModel:
    """The model that `SavedModel.save` wrote to a file.

    Raises `IcscmError`, and nothing else, for a file that holds no model that can be used.
    """
    shown = escape_controls(str(path))
    try:
        return parse_model(_read_text(Path(path)))
    except _WrongFileError as wrong:
        raise IcscmError(f"{shown} is no model that can be used: {wrong}") from None
    except MemoryError:
        raise IcscmError(
            f"{shown} takes more memory than there is; load it on a larger machine"
        ) from None


def _read_text(path: Path) -> str:
    try:
        if path.exists() and not path.is_file():
            raise _WrongFileError("it is no file", "name a file that save() wrote")
        with path.open("rb") as file:
            content = file.read(MAX_FILE_BYTES + 1)
    except (OSError, ValueError) as error:  # a path with a NUL is a ValueError
        reason = getattr(error, "strerror", None) or error
        raise _WrongFileError(f"it cannot be read ({reason})", "check its name and place") from None
    _check_size(len(content))
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        _refuse(f"byte {error.start:,} is not UTF-8 text")


def _check_size(n_bytes: int) -> None:
    if n_bytes > MAX_FILE_BYTES:
        raise _WrongFileError(
            f"it is larger than the {MAX_FILE_BYTES // 2**20} MB that a model file may have",
            "check that it is one, or fit on fewer columns",
        )


def parse_model(text: str) -> SavedModel:
    """The model in a text; `load` turns what this raises into an `IcscmError`."""
    document = _parse_json(text)
    _check_kind(document)
    keys = {"format", "schema", "version", "model", "classes"}
    keys |= {"features", "environments", "settings", "alpha", "fingerprint"}
    fields = _read_object(document, "the file", keys)
    features = _read_features(fields["features"])
    environments = _read_environments(fields["environments"])
    n_environments = 1 if environments is None else len(environments)
    fingerprint = _read_text_value(fields["fingerprint"], "fingerprint")
    if fingerprint != compute_fingerprint(features):
        _refuse("fingerprint does not belong to these features: one of them was changed")
    return SavedModel(
        model=_read_model(fields["model"], features, n_environments),
        classes=_read_classes(fields["classes"]),
        features=features,
        environments=environments,
        settings=_read_settings(fields["settings"]),
        version=_read_text_value(fields["version"], "version"),
        fingerprint=fingerprint,
        alpha=_read_alpha(fields["alpha"]),
    )


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
        raise _WrongFileError(
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
    if not isinstance(value, dict):
        _refuse_type(value, where, "an object")
    if "kind" not in value:
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
        _read_text_value(name, f"{where}.name")
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
    if not isinstance(value, dict):
        _refuse_type(value, "settings", "an object")
    _check_plain(value, "settings", MAX_SETTINGS_DEPTH)
    return value


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
    if not isinstance(value, dict):
        _refuse_type(value, where, "an object")
    for key in sorted(keys - value.keys()):
        _refuse(f"{where} lacks the key {key!r}")
    for key in sorted(value.keys() - keys):
        _refuse(f"{where} has a key that this version does not know, {_show(key)}")
    return value


def _read_list(
    value: Any, where: str, *, most: int | None = None, exactly: int | None = None
) -> list[Any]:
    if not isinstance(value, list):
        _refuse_type(value, where, "a list")
    if most is not None and len(value) > most:
        _refuse(f"{where} has {len(value):,} entries, more than the {most:,} allowed")
    if exactly is not None and len(value) != exactly:
        _refuse(f"{where} has {len(value):,} entries instead of {exactly:,}")
    return value


def _read_choice(value: Any, where: str, choices: Sequence[str]) -> str:
    if not isinstance(value, str) or value not in choices:
        _refuse_type(value, where, f"one of {', '.join(map(repr, choices))}")
    return value


def _read_text_value(value: Any, where: str) -> str:
    if not isinstance(value, str):
        _refuse_type(value, where, "text")
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


def _read_boolean(value: Any, where: str) -> bool:
    if not isinstance(value, bool):
        _refuse_type(value, where, "true or false")
    return value


def _read_missing(value: Any, where: str) -> bool | None:
    if not (value is None or isinstance(value, bool)):
        _refuse_type(value, where, "true, false or null")
    return value


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
    raise _WrongFileError(what)


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
