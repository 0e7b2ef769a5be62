"""The task: data, environments with their rates, settings, dropped columns, and the requirement."""

import inspect
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from icscm.formatting import as_text, format_name, make_plain
from icscm.model.saved import Learner
from icscm.parameters import get_spec
from icscm.report.content.leaves import Requirement
from icscm.report.content.rates import (
    EnvironmentRate,
    Rate,
    count_rows,
    make_environment_rates,
    make_overall_rate,
)
from icscm.report.formatting import Names

DroppedColumns = Mapping[Any, str] | Iterable[tuple[str | int, str]]


@dataclass(frozen=True, kw_only=True)
class Setting:
    """A parameter of the learner, with its value and what that means."""

    name: str
    value: Any
    is_default: bool
    meaning: str


@dataclass(frozen=True, kw_only=True)
class DroppedColumn:
    """A column that was not used, and why."""

    column: str
    reason: str


@dataclass(frozen=True, kw_only=True)
class Task:
    """What was learned from which data."""

    data: str | None
    n_rows: int
    n_columns: int
    overall: Rate
    environments: list[EnvironmentRate]
    learner: str
    settings: list[Setting]
    dropped: list[DroppedColumn]
    requirement: Requirement
    notes: list[str]

    @property
    def n_environments(self) -> int:
        """The number of environments; 1 where none were given."""
        return len(self.environments)

    @property
    def has_environments(self) -> bool:
        """Whether there are environments to compare."""
        return len(self.environments) > 1


def make_task(
    learner: Learner,
    names: Names,
    data_name: str | None,
    dropped: DroppedColumns | None,
    requirement: Requirement,
) -> Task:
    """Return the task of a fitted learner; by default with the columns that it dropped itself."""
    columns = learner.dropped_columns_ if dropped is None else dropped
    pairs = columns.items() if isinstance(columns, Mapping) else columns
    counts = learner.class_counts_
    return Task(
        data=None if data_name is None else as_text(data_name),
        n_rows=count_rows(counts),
        n_columns=int(learner.n_features_in_),
        overall=make_overall_rate(counts),
        environments=make_environment_rates(counts, names),
        learner=type(learner).__name__,
        settings=make_settings(learner),
        dropped=[
            DroppedColumn(column=format_name(name), reason=as_text(reason))
            for name, reason in pairs
        ],
        requirement=requirement,
        notes=list(learner.trace_.notes),
    )


def make_settings(learner: Learner) -> list[Setting]:
    """Return the parameters of a learner in the order of its signature."""
    learner_class: Any = type(learner)
    defaults = learner_class().get_params()
    values = learner.get_params(deep=False)
    automatic_values = {"alpha": learner.trace_.alpha, "tolerance": learner.trace_.tolerance}
    settings = []
    for name in inspect.signature(learner_class).parameters:
        value = format_setting(values[name])
        settings.append(
            Setting(
                name=name,
                value=add_automatic_value(value, automatic_values.get(name)),
                is_default=value == format_setting(defaults[name]),
                meaning=get_spec(name, learner_class).help,
            )
        )
    return settings


def add_automatic_value(setting: Any, automatic_value: float | None) -> Any:
    """Return a setting; of "auto" also the number that was chosen for it, where that is known.

    >>> add_automatic_value("auto", 0.01), add_automatic_value(0.05, 0.05)
    ('auto (0.01)', 0.05)
    """
    if setting != "auto" or automatic_value is None:
        return setting
    return f"auto ({automatic_value:.4g})"


def format_setting(value: Any) -> Any:
    """Return the value of a setting in JSON; of a long one only its length."""
    plain = make_plain(value)
    if isinstance(plain, dict | list):
        return f"given for {len(plain):,} columns"
    return as_text(plain) if isinstance(plain, str) else plain
