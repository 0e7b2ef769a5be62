"""Section `task`: the data, the label, the environments, the settings and the requirement."""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Mapping
from typing import Any

from icscm.formatting import as_text, format_name, make_plain
from icscm.model.saved import Learner
from icscm.parameters import get_spec
from icscm.report.formatting import Names, Plain, count_samples, describe_counts

DroppedColumns = Mapping[Any, str] | Iterable[tuple[str | int, str]]


def describe_task(
    learner: Learner,
    names: Names,
    data_name: str | None,
    dropped: DroppedColumns | None,
    requirement: Plain,
) -> Plain:
    """Names of the data, the environments with their rates, settings and requirement."""
    dropped = learner.dropped_columns_ if dropped is None else dropped
    pairs = dropped.items() if isinstance(dropped, Mapping) else dropped
    overall, environments = describe_counts(learner.class_counts_, names)
    return {
        "data": None if data_name is None else as_text(data_name),
        "n_rows": count_samples(learner.class_counts_),
        "n_columns": int(learner.n_features_in_),
        "target": names.target,
        "environment": names.column or "environment",
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
        "dropped": [{"column": format_name(name), "reason": as_text(why)} for name, why in pairs],
        "requirement": requirement,
        "notes": list(learner.trace_.notes),
    }


def _describe_settings(learner: Learner) -> list[Plain]:
    kind: Any = type(learner)
    defaults = kind().get_params()
    settings = []
    for name in inspect.signature(kind).parameters:
        setting = learner.get_params(deep=False)[name]
        value, default = _describe_value(setting), _describe_value(defaults[name])
        used = getattr(learner, f"{name}_", None)  # the value that "auto" stands for
        shown = f"auto ({used:.4g})" if value == "auto" and used is not None else value
        entry = {"name": name, "value": shown, "is_default": value == default}
        settings.append({**entry, "meaning": get_spec(name, kind).help})
    return settings


def _describe_value(value: Any) -> Any:
    """The value of a setting in JSON; of a long one only its length."""
    plain = make_plain(value)
    if isinstance(plain, dict | list):
        return f"given for {len(plain):,} columns"
    return as_text(plain) if isinstance(plain, str) else plain
