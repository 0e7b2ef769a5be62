"""Where names went: the cases have those of version 0.3.0, this is what a later version calls them.

A refactoring that renames an estimator, an option or a command changes this page, and `reading.py`
where it renames a result. An option that a later version has no more raises `GoneError`, with what
replaces it: such a case is not compared, and is listed as such.
"""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from typing import Any

# The estimator of each kind, by its place in version 0.3.0.
ESTIMATORS = {
    "rules": "icscm:ICSCMClassifier",
    "plain rules": "icscm:SCMClassifier",
    "tree": "icscm:InvariantTreeClassifier",
    "rate tree": "icscm:InvariantTreeClassifier",
    "forest": "icscm:InvariantForestClassifier",
    "score": "icscm:InvariantScoreClassifier",
    "screen": "icscm:InvariantFeatureSelector",
    "icp": "icscm:InvariantCausalPrediction",
    "tree icp": "icscm:TreeCausalPrediction",
}
# Packages that have another name in later versions.
PACKAGES = {"icscm.studies": "icscm.validation"}
# Names that later versions have at another place.
PLACES = {
    "icscm:choose_threshold": "icscm.validation.tuning:choose_threshold",
    "icscm:validate_screen": "icscm.validation.screening:validate_screen",
}
# Candidates of `compare` that later versions call otherwise.
CANDIDATES = {
    "invariant-tree": "tree",
    "invariant-forest": "forest",
    "tree": "plain-tree",
    "forest": "plain-forest",
}
# Options that make the kind.
OWN_OPTIONS: dict[str, dict[str, Any]] = {"rate tree": {"invariance": "rate"}}

# Defaults that later versions may change: with them, results must be those of 0.3.
DEFAULTS: dict[str, dict[str, Any]] = {
    "rules": {"min_replication": 0.25},
    "tree": {"min_replication": 0.25},
    "rate tree": {"min_replication": 0.25},
    "forest": {"min_replication": 0.25},
}


@dataclass(frozen=True)
class Removed:
    """An option that later versions do not have: what it was if not given, and what replaces it."""

    default: Any
    replacement: str


REMOVED_OPTIONS = {
    # of scores and screens; other learners have it
    "min_replication": Removed(0.15, "columns that determine the environment are rejected"),
    "n_candidates": Removed(8, "the exhaustive search combines eight rules"),
    "screen": Removed("association", "the exhaustive search takes the most associated rules"),
    "conclusion": Removed("intersection", "the exhaustive search returns the rules all sets share"),
    "correction": Removed(None, "a smaller alpha"),
    "evidence": Removed("step", "every step tests all candidates"),
    "feature_weights": Removed(None, "columns are dropped from the table"),
    "margin_on": Removed("rate", "a margin is a difference of rates"),
    "missing": Removed("candidate", "missing values are candidates"),
    "resample": Removed("rows", "forests draw rows"),
    "keep_columns": Removed(None, "columns that are kept are given as categories"),
    "min_samples_leaf": Removed(1, "min_utility and margin reject rules with too little data"),
}
# Values of options that later versions do not have.
REMOVED_VALUES = {"pruning": "shown"}


# Whether this is version 0.3: what were methods of its learners is a package of later versions.
IS_BASE = find_spec("icscm.validation") is None


class GoneError(Exception):
    """What a case asks for does not exist any more; the message says what replaces it."""


def find_version() -> str:
    """The version whose names the installed package has.

    It is not `icscm.__version__`, which changes with the release only. A refactoring that renames
    something adds a version here, and tells it from 0.3 by one name that is new.
    """
    return "0.3"


def translate(
    kind: str, options: dict[str, Any], version: str, n_rows: int | None = None
) -> tuple[type, dict[str, Any]]:
    """The class of an estimator and its options, as a version calls them.

    The number of rows turns a least number of rows into a share of them.
    """
    assert version == "0.3", f"no names are known of version {version}"
    options = OWN_OPTIONS.get(kind, {}) | DEFAULTS.get(kind, {}) | options
    if IS_BASE:
        return load_name(ESTIMATORS[kind]), options

    if kind == "tree icp":
        return load_name(ESTIMATORS["icp"]), {"model": "tree"} | options
    estimator = load_name(ESTIMATORS[kind])
    if kind == "rules":
        options = translate_criterion(options)
    if kind in ("tree", "rate tree", "forest", "score"):
        options = translate_leaf_size(options, n_rows)
    if kind == "score" and options.get("missing") == "separate":
        options = options | {"missing": "candidate"}  # to a score, missing values are always so
    return estimator, remove_options(options, inspect.signature(estimator).parameters)


def translate_leaf_size(options: dict[str, Any], n_rows: int | None) -> dict[str, Any]:
    """A least number of rows of a leaf as a share of all rows."""
    size = options.get("min_samples_leaf", 0.0)
    if size < 1:
        return options
    if n_rows is None:
        raise GoneError("min_samples_leaf is a share")
    # rounded up, the share is the number again
    return options | {"min_samples_leaf": (size - 0.5) / n_rows}


def translate_criterion(options: dict[str, Any]) -> dict[str, Any]:
    """The margin alone says whether leaves must be equivalent."""
    translated = {name: value for name, value in options.items() if name != "criterion"}
    if options.get("criterion") == "equivalence":
        return translated | {"margin": options.get("margin", 0.05)}
    if translated.pop("margin", 0.05) != 0.05:
        raise GoneError("with p-values, the margin of verdicts is 0.05")
    return translated


def remove_options(options: dict[str, Any], known: Mapping[str, Any]) -> dict[str, Any]:
    """The options that are still known; of the others, the value must have been the default."""
    kept = {}
    for name, value in options.items():
        if name in REMOVED_VALUES and value == REMOVED_VALUES[name]:
            raise GoneError(f"{name}={value!r} was removed")
        if name in known or name not in REMOVED_OPTIONS:  # an unknown one is an error, as in 0.3
            kept[name] = value
        elif value != REMOVED_OPTIONS[name].default:
            raise GoneError(f"{name} was removed: {REMOVED_OPTIONS[name].replacement}")
    return kept


def translate_command(arguments: list[str], version: str) -> list[str]:
    """The arguments of the command line, as a version calls them."""
    assert version == "0.3", f"no names are known of version {version}"
    return arguments


def find_candidates(names: list[str]) -> dict[str, Any]:
    """The candidates of a comparison, under their names of version 0.3."""
    known = load_name("icscm.studies.candidates:make_candidates")()
    is_renamed = "plain-tree" in known
    return {name: known[CANDIDATES.get(name, name) if is_renamed else name] for name in names}


def load_name(place: str) -> Any:
    """What is defined at `module:name`, a place in version 0.3.0."""
    if not IS_BASE:
        place = PLACES.get(place, place)
    module, _, name = place.partition(":")
    for old_package, new_package in PACKAGES.items():
        if module.startswith(old_package) and not IS_BASE:
            module = module.replace(old_package, new_package)
    return getattr(import_module(module), name)
