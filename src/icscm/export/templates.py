"""The templates of exports, filled in. Whoever passes text that comes from users quotes it."""

from __future__ import annotations

from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined

from icscm.export.conditions import find_missing_texts
from icscm.formatting import count, escape_controls, format_level, format_name, format_number
from icscm.model.calibration import Decisions
from icscm.model.forest import Forest
from icscm.model.saved import SavedModel
from icscm.model.splits import count_labels

_TEMPLATES = Environment(
    loader=PackageLoader("icscm.export"),
    trim_blocks=True,
    keep_trailing_newline=True,
    undefined=StrictUndefined,
)
_TEMPLATES.filters |= {
    "level": format_level,
    "name": format_name,
    "of": count,
    "number": format_number,
    "escape_controls": escape_controls,
}
# A comment of the export: unlike the model, exported code does not check it.
_NO_MISSING = (
    "The model was fitted without missing values and rejects them: make sure there are none."
)


def fill_template(name: str, saved: SavedModel, **values: Any) -> str:
    """Fill in a template with the facts that every export tells, and the values of this one."""
    negative, positive = map(format_level, saved.classes)
    rejects_missing = saved.settings.get("missing") == "error"
    common_facts: dict[str, Any] = {
        "saved": saved,
        "model": saved.model,
        "is_forest": isinstance(saved.model, Forest),
        "negative": negative,
        "positive": positive,
        "origin": describe_origin(saved),
        "missing": find_missing_texts(saved),
        "rejected": [_NO_MISSING] if rejects_missing else [],
        "fields": Decisions._fields,
    }
    return _TEMPLATES.get_template(name).render(common_facts | values)


def describe_origin(saved: SavedModel) -> str:
    """Describe which version learned the model, and from how many rows."""
    template = _TEMPLATES.get_template("origin.txt")
    return template.render(saved=saved, sizes=_count_training_rows(saved)).strip()


def _count_training_rows(saved: SavedModel) -> list[int]:
    """Count the rows that the model was learned from; of a forest, those of each tree."""
    model = saved.model
    parts = model.trees if isinstance(model, Forest) else (model,)
    n_rows_by_part = []
    for part in parts:
        n_rows_by_leaf = [sum(count_labels(leaf)) for leaf in part.leaves]
        n_rows_by_part.append(sum(n_rows_by_leaf))
    return n_rows_by_part
