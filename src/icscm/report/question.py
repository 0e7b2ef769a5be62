"""What was asked: the data, the label, the settings with their meanings, the environments."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from icscm._version import __version__
from icscm.formatting import as_text, format_name
from icscm.model.learner import Learner
from icscm.model.plain import make_plain
from icscm.report.words import Names, Plain, describe_counts

# The schema is raised when a key is renamed or changes its meaning.
ABOUT: Plain = {"package": "icscm", "version": __version__, "schema": 1}

MEANINGS = {
    "p": "weight of a sample that a rule settles wrongly, against one that it settles rightly",
    "model_type": "whether all rules must hold (conjunction) or any one (disjunction)",
    "max_rules": "number of rules at which the search stops",
    "max_thresholds": "thresholds tried for each numeric column",
    "feature_weights": "preference for some columns",
    "n_jobs": "threads; changes nothing in the result",
    "device": "where samples are counted; changes nothing in the result",
    "alpha": "level of the tests by which rules or sets of rules are refused",
    "test": "the test of the label against the environment",
    "stop": "what ends the search besides the number of rules",
    "pruning": "whether columns not needed for invariance are removed at the end",
    "min_samples_leaf": "least number of samples that a rule must settle, and leave",
    "min_replication": "in how many environments the samples that a rule settles must lie",
    "min_utility": "least utility of a rule, and of all of them over always saying the same",
    "search": "step by step (greedy), or all sets of a few rules (exhaustive)",
    "evidence": "whether a rule once refused may be tried again",
    "n_candidates": "rules that the exhaustive search combines",
    "screen": "which rule of each column the exhaustive search considers",
    "criterion": "what counts as invariant: not refuted (pvalue), or shown (equivalence)",
    "margin": "difference between environments that still counts as none",
    "margin_on": "what the margin is measured on",
    "correction": "adjustment of p-values for the number of candidates",
    "missing": "what rules make of missing values",
    "keep_columns": "columns used although they look like identifiers or copies",
    "invariance": "what must be the same everywhere: effects of splits, or rates of leaves",
    "tolerance": "how far it may differ all the same; none for a plain tree",
    "max_leaves": "number of leaves at which growth stops",
    "probabilities": "whether a leaf counts all samples alike (pooled) or environments (balanced)",
}
# Where a word means another thing to a tree.
_OF_TREES = {"min_samples_leaf": "the least samples of a leaf: a share of all, or a number"}

LeftOut = Mapping[Any, str] | Iterable[tuple[str | int, str]]


def describe_question(
    learner: Learner, names: Names, data_name: str | None, left_out: LeftOut | None
) -> Plain:
    """The data as the report calls them, the environments, and the settings of the learner."""
    totals = np.array(learner.model_.leaves, dtype=np.int64).sum(axis=0)
    overall, environments = describe_counts(totals.tolist(), names)
    pairs = left_out.items() if isinstance(left_out, Mapping) else left_out or ()
    return {
        "data": None if data_name is None else as_text(data_name),
        "n_rows": int(totals.sum()),
        "n_columns": int(learner.n_features_in_),
        "target": names.target,
        "environment": names.place_column or "environment",
        "every": f"every {names.environment}",
        "classes": {"negative": names.classes[0], "positive": names.classes[1]},
        "negative": names.predict(False),
        "positive": names.positive,
        "overall": overall,
        "n_environments": len(names.environments),
        "has_environments": len(names.environments) > 1,
        "environments": environments,
        "learner": type(learner).__name__,
        "settings": _describe_settings(learner),
        "left_out": [{"column": format_name(name), "reason": as_text(why)} for name, why in pairs],
    }


def _describe_settings(learner: Learner) -> list[Plain]:
    defaults, values = type(learner)().get_params(), learner.get_params(deep=False)
    meanings = {**MEANINGS, **(_OF_TREES if "max_leaves" in values else {})}
    settings = []
    for name in sorted(values, key=[*MEANINGS, *values].index):
        value = _name_value(values[name])
        is_default, meaning = value == _name_value(defaults[name]), meanings.get(name, "")
        used = getattr(learner, f"{name}_", None)  # what an automatic value came to
        if value == "auto" and used is not None:
            value = f"auto ({used:.4g})"
        setting = {"name": name, "value": value, "is_default": is_default, "meaning": meaning}
        settings.append(setting)
    return settings


def _name_value(value: Any) -> Any:
    """A setting's value as JSON knows it; what is long is only named."""
    plain = make_plain(value)
    if isinstance(plain, dict | list):
        return f"given for {len(plain):,} columns"
    return as_text(plain) if isinstance(plain, str) else plain
