"""Where names went: the cases have those of version 0.3.0, this is what a later version calls them.

A refactoring that renames an estimator, an option or a command changes this page, and `reading.py`
where it renames a result. An option that a later version has no more raises `GoneError`, with what
replaces it: such a case is not compared, and is listed as such.
"""

from __future__ import annotations

import inspect
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
# Candidates of `compare` that later versions call otherwise.
CANDIDATES = {
    "invariant-tree": "tree",
    "invariant-forest": "forest",
    "tree": "plain-tree",
    "forest": "plain-forest",
}
# Options that make the kind.
OWN_OPTIONS: dict[str, dict[str, Any]] = {"rate tree": {"invariance": "rate"}}

# Options that later versions do not have, and what replaces them.
REMOVED_OPTIONS = {
    "n_candidates": "the exhaustive search combines eight rules",
    "screen": "the exhaustive search takes the rule of each column that is most associated",
}


# Studies that were methods of the learner in 0.3 are functions of a package that is newer.
HAS_METHODS = find_spec("icscm.studies") is not None


class GoneError(Exception):
    """What a case asks for does not exist any more; the message says what replaces it."""


def find_version() -> str:
    """The version whose names the installed package has.

    It is not `icscm.__version__`, which changes with the release only. A refactoring that renames
    something adds a version here, and tells it from 0.3 by one name that is new.
    """
    return "0.3"


def translate(kind: str, options: dict[str, Any], version: str) -> tuple[type, dict[str, Any]]:
    """The class of an estimator and its options, as a version calls them."""
    assert version == "0.3", f"no names are known of version {version}"
    options = OWN_OPTIONS.get(kind, {}) | options
    estimator = load_name(ESTIMATORS["icp" if kind == "tree icp" else kind])
    if kind == "tree icp":
        if "model" in inspect.signature(estimator).parameters:
            return estimator, {"model": "tree"} | options
        estimator = load_name(ESTIMATORS[kind])
    for name in options:
        if name in REMOVED_OPTIONS and name not in inspect.signature(estimator).parameters:
            raise GoneError(f"{name} was removed: {REMOVED_OPTIONS[name]}")
    return estimator, options


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
    module, _, name = place.partition(":")
    for old_package, new_package in PACKAGES.items():
        if module.startswith(old_package) and find_spec(old_package) is None:
            module = module.replace(old_package, new_package)
    return getattr(import_module(module), name)
