"""Surveys of pieces joined: in any order and grouping, and equal in the end."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import replace
from typing import TypeVar

import numpy as np

from icscm.engine.survey import (
    NO_LEVELS,
    ColumnSurvey,
    Survey,
    ValueSample,
    if_all_differ,
    limit_values,
    make_sample,
    sample_values,
)
from icscm.exceptions import IcscmError
from icscm.tables.columns import Level
from icscm.tables.complaints import name_columns

Key = TypeVar("Key", bound=Hashable)


def merge_surveys(a: Survey, b: Survey, names: Sequence[str] | None = None) -> Survey:
    """The survey of the rows of both."""
    if len(a.columns) != len(b.columns):
        raise IcscmError(
            f"one piece of the data has {len(a.columns)} columns, another {len(b.columns)}; all "
            "pieces must have the same columns"
        )
    # types of a piece without rows say nothing: an empty text file has none, for one
    if a.n_rows == 0 or b.n_rows == 0:
        return b if a.n_rows == 0 else a
    merged = (
        _merge_columns(one, other, a.most_values, name_columns([j], names))
        for j, (one, other) in enumerate(zip(a.columns, b.columns, strict=True))
    )
    return Survey(
        a.n_rows + b.n_rows,
        a.most_values,
        tuple(merged),
        _add_counts(a.labels, b.labels),
        _add_counts(a.environments, b.environments),
    )


def _merge_columns(
    a: ColumnSurvey, b: ColumnSurvey, most_values: int | None, name: str
) -> ColumnSurvey:
    lowest = [each.lowest for each in (a, b) if each.lowest is not None]
    highest = [each.highest for each in (a, b) if each.highest is not None]
    merged = ColumnSurvey(
        _join_kinds(a, b, name),
        a.n_missing + b.n_missing,
        None,
        None if a.dtype is None or b.dtype is None else np.result_type(a.dtype, b.dtype),
        min(lowest, default=None),
        max(highest, default=None),
        a.is_whole and b.is_whole,
        label_values=_merge_copied(a.label_values, b.label_values),
        environment_values=_merge_copied(a.environment_values, b.environment_values),
    )
    if a.values is not None and b.values is not None:
        return limit_values(replace(merged, values=_add_counts(a.values, b.values)), most_values)
    if merged.is_number and not merged.is_whole:
        return merged
    return replace(merged, samples=_merge_samples(sample_values(a), sample_values(b)))


def _join_kinds(a: ColumnSurvey, b: ColumnSurvey, name: str) -> str:
    if a.kind == b.kind:
        return a.kind
    if NO_LEVELS in (a.kind, b.kind) and a.is_category and b.is_category:
        return b.kind if a.kind == NO_LEVELS else a.kind
    raise IcscmError(
        f"{name} holds {a.kind} in one piece of the data and {b.kind} in another; give it "
        "one type in all of them, or leave it out"
    )


def _merge_samples(a: ValueSample | None, b: ValueSample | None) -> ValueSample | None:
    if a is None or b is None:
        return None
    return make_sample(np.concatenate((a.hashes, b.hashes)), np.concatenate((a.n_rows, b.n_rows)))


def _merge_copied(
    a: Mapping[Hashable, Level | None] | None, b: Mapping[Hashable, Level | None] | None
) -> Mapping[Hashable, Level | None] | None:
    if a is None or b is None or any(a[group] != b[group] for group in {*a} & {*b}):
        return None
    return if_all_differ({**a, **b})


def _add_counts(a: Mapping[Key, int], b: Mapping[Key, int]) -> dict[Key, int]:
    total = dict(a)
    for key, n in b.items():
        total[key] = total.get(key, 0) + n
    return total
