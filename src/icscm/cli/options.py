"""The options of the commands, made from two tables: `parameters.toml` and `options.toml`.

An option that sets a parameter of a learner has the values and the help of the parameter; where the
command line differs, as in a default, `options.toml` says so. All other options are described in
`options.toml` alone. No command lists the parameters of the learners.
"""

from __future__ import annotations

import tomllib
from collections.abc import Callable
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

import click
from click.core import ParameterSource

from icscm.exceptions import IcscmError
from icscm.parameters import Allowed, Spec, allow, get_spec, list_model_parameters
from icscm.writing import STDOUT

Options = dict[str, Any]
Decorator = Callable[[Any], Any]

# Options that several commands share.
ROLES = (
    "target",
    "environment",
    "exclude_environment",
    "merge_environments",
    "positive",
    "drop_missing",
)
COLUMNS = (*ROLES, "drop", "only", "categories")
LABELS = ("labels", "sample_column")
READING = ("na", "no_default_na", "delimiter", "decimal", "encoding", "member", "quiet")

# Groups of the parameters of learners in the help of `icscm fit`, by the models that have them.
RULE_MODELS = {"rule", "scm"}
RULES_GROUP = "Rules"
TREES_GROUP = "Trees, forests and scores"
COMMON_GROUP = "All models"

# The function that reads a file checks that it exists; its error suggests similar names.
FILE = click.Path(path_type=Path)


class GroupedOption(click.Option):
    """An option that knows its group in the help of a command with many options."""

    def __init__(self, *args: Any, group: str = "", **settings: Any) -> None:
        super().__init__(*args, **settings)
        self.group = group


class _Output(click.Path):
    """A file to write, or - for standard output."""

    def convert(self, value: Any, param: Any, ctx: Any) -> Any:
        return STDOUT if value == "-" else super().convert(value, param, ctx)


class _AllowedValue(click.ParamType):  # type: ignore[type-arg]
    """A value that a parameter may have."""

    name = "value"

    def __init__(self, allowed: Allowed) -> None:
        self.allowed = allowed

    def convert(self, value: Any, param: Any, ctx: Any) -> Any:
        if not isinstance(value, str):
            return value
        try:
            return self.allowed.parse(value)
        except IcscmError as error:
            self.fail(str(error), param, ctx)

    def get_metavar(self, param: Any, ctx: Any = None) -> str:  # noqa: ARG002
        words = [str(choice).lower() for choice in self.allowed.choices]
        if self.allowed.ranges:
            return "|".join(["NUMBER", *words])
        return f"[{'|'.join(words)}]"


class _Choice(click.Choice):  # type: ignore[type-arg]
    """One of some words; a word may have another name, which the help does not list."""

    def __init__(self, words: list[str], synonyms: dict[str, str]) -> None:
        super().__init__(words)
        self.synonyms = synonyms

    def convert(self, value: Any, param: Any, ctx: Any) -> Any:
        return super().convert(self.synonyms.get(value, value), param, ctx)


_TYPES = {
    "file": FILE,
    "output": _Output(path_type=Path),
    "folder": click.Path(file_okay=False, path_type=Path),
    "float": click.FLOAT,
}


@cache
def load_options() -> dict[str, Any]:
    """The content of `options.toml`."""
    return tomllib.loads(files("icscm.cli").joinpath("options.toml").read_text("utf-8"))


def list_groups() -> list[str]:
    """The titles of groups of options, in the order of the help."""
    return list(load_options()["groups"])


def list_learner_options() -> tuple[str, ...]:
    """The options of `icscm fit` that are parameters of its models."""
    return list_model_parameters()


def add_options(*names: str) -> Decorator:
    """Return a decorator that adds options to a command, shown in this order."""

    def add(command: Any) -> Any:
        for name in reversed(names):  # the decorator that is applied last is shown first
            command = make_option(name, command.__name__)(command)
        return command

    return add


def make_option(name: str, command: str) -> Decorator:
    """Return the decorator of one option of a command."""
    entries = load_options()
    entry_of_command = entries.get(command, {}).get(name, {})
    entry = entries.get(name, {}) | entry_of_command
    value_type = _take_type(entry)
    names = _take_names(entry, name)

    is_parameter = "help" not in entry
    if is_parameter:
        spec = get_spec(name)
        assert spec.allowed is not None
        value_type = _AllowedValue(spec.allowed)
        entry.setdefault("group", _find_parameter_group(spec))
        default_text = "" if "default" in entry else f"  [default: {spec.default}]"
        entry["help"] = spec.help + default_text

    # what is left in the entry are arguments of click.option
    return click.option(
        *names, cls=GroupedOption, type=value_type, show_default="default" in entry, **entry
    )


def _take_names(entry: dict[str, Any], name: str) -> list[str]:
    """Take the names out of an entry of `options.toml`: --long, -s, and that of the argument."""
    long_name = f"--{name.replace('_', '-')}"
    short_names = [entry.pop("short")] if "short" in entry else []
    argument = entry.pop("to", name)
    return [long_name, *short_names, argument]


def _take_type(entry: dict[str, Any]) -> Any:
    """Take what describes the type out of an entry of `options.toml`; None is text or a flag."""
    if "numbers" in entry:
        return _AllowedValue(allow(entry.pop("numbers")))
    if "choices" in entry:
        return _Choice(entry.pop("choices"), entry.pop("synonyms", {}))
    return _TYPES.get(entry.pop("type", ""))


def _find_parameter_group(spec: Spec) -> str:
    """The group of a parameter, by the models that have it."""
    models = set(spec.models)
    if models <= RULE_MODELS:
        return RULES_GROUP
    if models & RULE_MODELS:
        return COMMON_GROUP
    return TREES_GROUP


def is_given(ctx: click.Context, name: str) -> bool:
    """Whether the user set an option."""
    return ctx.get_parameter_source(name) is not ParameterSource.DEFAULT
