"""Options in a line or two each, those that several commands share, and what they mean."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import reduce
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from icscm.exceptions import IcscmError
from icscm.io.formats import describe_path
from icscm.io.roles import Samples, keep_used, read_samples, split_names
from icscm.parameters import Allowed, allow, get_spec
from icscm.writing import STDOUT, check_free, is_stream

if TYPE_CHECKING:
    import pyarrow

Decorator = Callable[[Any], Any]

# Existence is checked where the file is read: that error suggests similar names.
FILE = click.Path(path_type=Path)


class _Output(click.Path):
    """A file to write, or - for standard output."""

    def convert(self, value: Any, param: Any, ctx: Any) -> Any:
        return STDOUT if value == "-" else super().convert(value, param, ctx)


OUTPUT = _Output(path_type=Path)


class AllowedValue(click.ParamType):  # type: ignore[type-arg]
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
        choices = [str(each).lower() for each in self.allowed.choices]
        kinds = ["NUMBER"] if self.allowed.ranges else []
        text = "|".join([*kinds, *choices])
        return text if self.allowed.ranges else f"[{text}]"


def parameter(name: str, *, text: str = "", owner: Any = None) -> Decorator:
    """The option of a learner's parameter, with its name, values and help; None if not given."""
    spec = get_spec(name, owner)
    assert spec.allowed is not None
    shown = f"{text or spec.help}  [default: {spec.default}]"
    return click.option(
        f"--{name.replace('_', '-')}", name, type=AllowedValue(spec.allowed), help=shown
    )


def value(words: str, text: str, kind: Any = str, default: Any = None, **more: Any) -> Decorator:
    """An option's name and what it takes; without a default its help says what holds then."""
    name, metavar = words.split()
    if default is not None:
        more |= {"default": default, "show_default": True}
    return click.option(name, metavar=metavar, type=kind, help=text, **more)


def number(
    words: str, default: float | None, text: str, allowed: str = "int [1, inf)"
) -> Decorator:
    """A number in a range."""
    name, metavar = [*words.split(), "NUMBER"][:2]
    return value(f"{name} {metavar}", text, AllowedValue(allow(allowed)), default)


def choice(words: str, text: str) -> Decorator:
    """One of a few words, which follow the option's name; the first is the default."""
    name, *choices = words.split()
    kind = click.Choice(choices)
    return click.option(name, type=kind, default=choices[0], show_default=True, help=text)


def flag(words: str, text: str) -> Decorator:
    """An option without a value, and further names of it."""
    return click.option(*words.split(), is_flag=True, help=text)


def apply(*options: Decorator) -> Decorator:
    """Several options as one decorator, shown in this order."""
    return lambda command: reduce(lambda done, option: option(done), reversed(options), command)


def is_given(ctx: click.Context, name: str) -> bool:
    """Whether the user set an option."""
    return ctx.get_parameter_source(name) is not ParameterSource.DEFAULT


# The options of `column_options` that say what target and environment are.
_ROLES = (
    *("target", "environment", "positive", "drop_missing"),
    *("exclude_environment", "merge_environments"),
)

force_option = flag("--force", "Overwrite files that exist.")
quiet_option = flag("--quiet -q", "Do not tell what is being done.")

reading_options = apply(
    value(
        "--na TEXT",
        "A text that means missing, such as '?' or -9. Repeatable. An empty cell, NA, N/A, "
        "NaN, NULL, None and the like always do in text files.",
        multiple=True,
    ),
    flag(
        "--no-default-na",
        "In text files only empty cells and --na mean missing: NA, None, .. are values.",
    ),
    value(
        "--delimiter CHAR",
        "Of text files.  [default: a tab for .tsv, .tab and .rtab, else what the first lines show]",
    ),
    click.option(
        "--decimal",
        type=click.Choice([".", ","]),
        help="Before the fraction of a number in text files.  [default: . or, to predict, as for "
        "fit]",
    ),
    value("--encoding NAME", "Of text files.", default="utf-8"),
    value("--member NAME", "Of a .zip file, the file in it to read.  [default: the only table]"),
    quiet_option,
)


def column_options(*, needs_environment: bool) -> Decorator:
    """Which column is what."""
    return apply(
        value(
            "--target COLUMN",
            "The outcome to predict. It has two values, or see --positive.",
            required=True,
        ),
        value(
            "--environment COLUMN",
            "Where each row comes from: hospital, country, year; A,B joins columns. At least two "
            "environments"
            + ("." if needs_environment else "; --model scm and --tolerance none do without."),
            required=needs_environment,
        ),
        value(
            "--exclude-environment NAME",
            "Leave out the rows of an environment, such as 'north / 2019' of joined columns. "
            "Repeatable.",
            multiple=True,
        ),
        value(
            "--merge-environments A+B=C",
            "Take environments A and B for one, called C. Repeatable.",
            multiple=True,
        ),
        value(
            "--positive VALUE",
            "A value of the target that counts as positive, all others being negative. "
            "Repeatable.  [default: of two values the one that sorts last]",
            multiple=True,
        ),
        value("--drop COLUMNS", "Columns to leave out: A,B. Repeatable.", multiple=True),
        value(
            "--only COLUMNS",
            "The only columns to use, even if they look like identifiers: A,B. Repeatable.",
            multiple=True,
        ),
        flag(
            "--drop-missing",
            "Leave out rows in which target or environment is missing, instead of stopping.",
        ),
    )


def read_data(path: Path, options: dict[str, Any], **more: Any) -> pyarrow.Table:
    """The table in a file, by the options for reading."""
    from icscm.io.streams import read_file

    return read_file(path, member=options["member"], **get_text_settings(options), **more)


def get_text_settings(options: dict[str, Any]) -> dict[str, Any]:
    """Parameters of `TextFormat`."""
    return {
        "na": options["na"],
        "default_na": not options["no_default_na"],
        "delimiter": read_delimiter(options["delimiter"]),
        "encoding": options["encoding"],
        "decimal": options["decimal"] or ".",
    }


def read_delimiter(text: str | None) -> str | None:
    r"""A delimiter as typed. A tab is hard to type: `\t` and the word do as well."""
    return {"\\t": "\t", "tab": "\t"}.get(text or "", text)


def read_labelled(path: Path, options: dict[str, Any]) -> Samples:
    """Features, labels and environments in a file, by the options for columns, too."""
    misread: Counter[tuple[str, str]] = Counter()
    table, where = read_data(path, options, misread=misread), describe_path(path)
    chosen = {name: options[name] for name in ("drop", "only")}
    samples = read_samples(table, **get_role_options(options), **chosen, where=where)
    return replace(samples, misread=keep_used(misread, samples.X.column_names, samples.roles))


def find_kept(names: Sequence[str], options: dict[str, Any], where: str) -> Any:
    """The columns that --only and --keep-columns name, which are used whatever they look like."""
    kept = options["keep_columns"]
    if "all" in kept and "all" not in names:
        return "all"
    return split_names((*options["only"], *kept), names, where) or None


def get_role_options(options: dict[str, Any]) -> dict[str, Any]:
    """What the options say of target and environment: parameters of `make_roles`."""
    return {name: options[name] for name in _ROLES}


def check_outputs(
    paths: Sequence[Path | None], *, force: bool, inputs: Sequence[Path] = ()
) -> None:
    """Raise unless all files may be written: before the work, not after it."""
    wanted = [path for path in paths if path is not None]
    for path in wanted:
        for read in inputs:
            if path.exists() and read.exists() and path.samefile(read) and not is_stream(path):
                raise IcscmError(f"{path} is the file that is read; write elsewhere")
        check_free(path, force=force)
    if len({path.resolve() for path in wanted}) < len(wanted):
        raise IcscmError(f"{wanted[0]} is named for two outputs; give each a file of its own")
