"""Options that several commands share, and kinds of values that click does not know."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from icscm.exceptions import IcscmError

if TYPE_CHECKING:
    import pyarrow

    from icscm.io.samples import Samples

Decorated = TypeVar("Decorated", bound=Callable[..., Any])
Decorator = Callable[[Any], Any]

# Existence is checked where the file is read: that error knows near names.
FILE = click.Path(path_type=Path)


class NumberOr(click.ParamType):  # type: ignore[type-arg]
    """A number, or one word that stands for something else."""

    name = "number or word"

    def __init__(
        self,
        word: str,
        read: Callable[[str], Any],
        is_allowed: Callable[[Any], bool],
        wanted: str,
        *,
        value: Any = None,
    ) -> None:
        self.word, self.read, self.value = word, read, value
        self.is_allowed, self.wanted = is_allowed, wanted

    def convert(self, value: Any, param: Any, ctx: Any) -> Any:
        if not isinstance(value, str):
            return value
        if value.lower() == self.word:
            return self.value
        try:
            number = self.read(value)
        except ValueError:
            self.fail(f"{value!r} is neither a number nor {self.word!r}", param, ctx)
        if not self.is_allowed(number):
            self.fail(f"{value} is not {self.wanted}, nor {self.word!r}", param, ctx)
        return number


class PositiveNumber(click.ParamType):  # type: ignore[type-arg]
    """A number above 0, neither infinite nor NaN: click's own ranges let these through."""

    name = "positive number"

    def convert(self, value: Any, param: Any, ctx: Any) -> Any:
        try:
            number = float(value)
        except ValueError:
            number = 0.0
        if not 0 < number < float("inf"):
            self.fail(f"{value} is not a number above 0", param, ctx)
        return number


class Numbers(click.ParamType):  # type: ignore[type-arg]
    """Numbers greater than 0 with commas between."""

    name = "numbers"

    def convert(self, value: Any, param: Any, ctx: Any) -> Any:
        try:
            numbers = [float(part) for part in value.split(",")]
        except ValueError:
            numbers = []
        if not numbers or not all(0 < number < float("inf") for number in numbers):
            self.fail(f"{value!r} must be numbers above 0, such as 0.1,0.5,1,2", param, ctx)
        return tuple(dict.fromkeys(numbers))


def apply(*options: Decorator) -> Callable[[Decorated], Decorated]:
    """Several options as one decorator, shown in this order."""

    def decorate(command: Decorated) -> Decorated:
        for option in reversed(options):
            command = option(command)
        return command

    return decorate


reading_options = apply(
    click.option(
        "--na",
        multiple=True,
        metavar="TEXT",
        help="A text that means missing, such as '?' or -9. Repeatable. An empty cell, NA, N/A, "
        "NaN, NULL, None and the like always do in text files.",
    ),
    click.option(
        "--no-default-na",
        is_flag=True,
        help="In text files only empty cells and --na mean missing: NA, None, .. are values.",
    ),
    click.option(
        "--delimiter",
        metavar="CHAR",
        help="Of text files.  [default: a tab for .tsv, .tab and .rtab, else what the first lines "
        "show]",
    ),
    click.option(
        "--decimal",
        type=click.Choice([".", ","]),
        help="Before the fraction of a number in text files.  [default: . or, to predict, as for "
        "fit]",
    ),
    click.option(
        "--encoding", default="utf-8", show_default=True, metavar="NAME", help="Of text files."
    ),
    click.option(
        "--member",
        metavar="NAME",
        help="Of a .zip file, the file in it to read.  [default: the only table]",
    ),
)


def column_options(*, needs_environment: bool) -> Callable[[Decorated], Decorated]:
    """Which column is what."""
    return apply(
        click.option(
            "--target",
            required=True,
            metavar="COLUMN",
            help="The outcome to predict. It has two values, or see --positive.",
        ),
        click.option(
            "--environment",
            required=needs_environment,
            metavar="COLUMN",
            help="Where each row comes from: hospital, country, year. At least two of them"
            + ("." if needs_environment else "; --model scm does without."),
        ),
        click.option(
            "--positive",
            multiple=True,
            metavar="VALUE",
            help="A value of the target that counts as positive, all others being negative. "
            "Repeatable.  [default: of two values the one that sorts last]",
        ),
        click.option(
            "--drop",
            multiple=True,
            metavar="COLUMNS",
            help="Columns to leave out: A,B. Repeatable.",
        ),
        click.option(
            "--only",
            multiple=True,
            metavar="COLUMNS",
            help="The only columns to use, even if they look like identifiers: A,B. Repeatable.",
        ),
        click.option(
            "--drop-missing",
            is_flag=True,
            help="Leave out rows in which target or environment is missing, instead of stopping.",
        ),
    )


force_option = click.option("--force", is_flag=True, help="Overwrite files that exist.")
quiet_option = click.option("--quiet", "-q", is_flag=True, help="Do not tell what is being done.")


def read_data(path: Path, options: dict[str, Any], **more: Any) -> pyarrow.Table:
    """The table in a file, by the options for reading."""
    from icscm.io.reading import read_file

    return read_file(path, member=options["member"], **get_text_settings(options), **more)


def get_text_settings(options: dict[str, Any]) -> dict[str, Any]:
    r"""Parameters of `TextFormat`. A tab is hard to type: `\t` and the word do as well."""
    delimiter = options["delimiter"]
    return {
        "na": options["na"],
        "default_na": not options["no_default_na"],
        "delimiter": {"\\t": "\t", "tab": "\t"}.get(delimiter, delimiter),
        "encoding": options["encoding"],
        "decimal": options["decimal"] or ".",
    }


def take_apart(table: pyarrow.Table, path: Path, options: dict[str, Any]) -> Samples:
    """Features, labels and environments, by the options for columns."""
    from icscm.io.locating import describe_path
    from icscm.io.samples import read_samples

    return read_samples(
        table,
        options["target"],
        options["environment"],
        positive=options["positive"],
        drop=options["drop"],
        only=options["only"],
        drop_missing=options["drop_missing"],
        where=describe_path(path),
    )


def check_outputs(
    paths: Sequence[Path | None], *, force: bool, inputs: Sequence[Path] = ()
) -> None:
    """Raise unless all files may be written: before the work, not after it."""
    from icscm.writing import check_free, is_stream

    wanted = [path for path in paths if path is not None]
    for path in wanted:
        for read in inputs:
            if path.exists() and read.exists() and path.samefile(read) and not is_stream(path):
                raise IcscmError(f"{path} is the file that is read; write elsewhere")
        check_free(path, force=force)
    if len({path.resolve() for path in wanted}) < len(wanted):
        raise IcscmError(f"{wanted[0]} is named for two outputs; give each a file of its own")
