"""Options of the commands, and files read by them.

`options.toml` and the parameter registry describe the options: name, values, help.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from functools import reduce
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from icscm.cli.console import is_json
from icscm.cli.group import load_options
from icscm.exceptions import IcscmError
from icscm.io.formats import describe_path
from icscm.io.roles import Samples, read_samples, split_names
from icscm.parameters import Allowed, allow, get_spec
from icscm.writing import STDOUT, check_free, is_stream

if TYPE_CHECKING:
    import pyarrow

Decorator = Callable[[Any], Any]
Options = dict[str, Any]

# Options that several commands share.
ROLES = (
    *("target", "environment", "exclude_environment", "merge_environments", "positive"),
    "drop_missing",
)
COLUMNS = *ROLES, "drop", "only"
LABELS = "labels", "sample_column"
READING = "na", "no_default_na", "delimiter", "decimal", "encoding", "member", "quiet"

# Presence/absence tables: features in rows, genomes in columns.
BITS = ".bits"
GENOME_ENDINGS = (BITS, ".rtab", ".rtab.gz")

# The reader checks that the file exists; its error suggests similar names.
FILE = click.Path(path_type=Path)


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
        choices = [str(each).lower() for each in self.allowed.choices]
        text = "|".join([*(["NUMBER"] if self.allowed.ranges else []), *choices])
        return text if self.allowed.ranges else f"[{text}]"


_TYPES = {
    "file": FILE,
    "output": _Output(path_type=Path),
    "folder": click.Path(file_okay=False, path_type=Path),
    "float": click.FLOAT,
}


def add_options(*names: str) -> Decorator:
    """A decorator that adds options to a command, shown in this order."""

    def add(command: Any) -> Any:
        made = [_make_option(name, command.__name__) for name in names]
        return reduce(lambda done, option: option(done), reversed(made), command)

    return add


def _make_option(name: str, command: str) -> Decorator:
    """The option of a command; a parameter of the learners is None if not given."""
    kind: Any = None
    registry = load_options()
    entry = {**registry.get(name, {}), **registry.get(command, {}).get(name, {})}
    if not entry:
        spec = get_spec(name)
        assert spec.allowed is not None
        entry["help"] = f"{spec.help}  [default: {spec.default}]"
        kind = _AllowedValue(spec.allowed)
    elif "numbers" in entry:
        kind = _AllowedValue(allow(entry.pop("numbers")))
    elif "choices" in entry:
        kind = click.Choice(entry.pop("choices"))
    else:
        kind = _TYPES.get(entry.pop("type", ""))
    names = f"--{name.replace('_', '-')}", entry.pop("short", None), entry.pop("to", name)
    shown = "default" in entry
    return click.option(*filter(None, names), type=kind, show_default=shown, **entry)


def is_given(ctx: click.Context, name: str) -> bool:
    """Whether the user set an option."""
    return ctx.get_parameter_source(name) is not ParameterSource.DEFAULT


def read_data(path: Path, options: Options, **more: Any) -> pyarrow.Table:
    """The table in a file, by the options for reading."""
    from icscm.io.streams import read_file

    return read_file(path, member=options["member"], **get_text_settings(options), **more)


def get_text_settings(options: Options) -> dict[str, Any]:
    """Parameters of `TextFormat`."""
    return {
        "na": options["na"],
        "default_na": not options["no_default_na"],
        "delimiter": read_delimiter(options["delimiter"]),
        "encoding": options["encoding"],
        "decimal": options["decimal"] or ".",
    }


def read_delimiter(text: str | None) -> str | None:
    r"""A delimiter as typed on the command line: `\t` and `tab` mean a tab."""
    return {"\\t": "\t", "tab": "\t"}.get(text or "", text)


def read_labelled(path: Path, options: Options) -> Samples:
    """Features, labels and environments in a file, by the options for columns, too."""
    misread: Counter[tuple[str, str]] = Counter()
    table, where = read_data(path, options, misread=misread), describe_path(path)
    chosen = {name: options[name] for name in ("drop", "only")}
    samples = read_samples(table, **get_roles(options), **chosen, where=where)
    return samples.keep_misread(misread, samples.X.column_names)


def get_roles(options: Options) -> dict[str, Any]:
    """Arguments of `make_roles`; not every command has groups."""
    return {name: options[name] for name in ROLES} | {"group": options.get("group")}


def find_kept(names: Sequence[str], options: Options, where: str) -> Any:
    """The columns named by --only and --keep-columns, which are used even if suspicious."""
    kept = options["keep_columns"]
    if "all" in kept and "all" not in names:
        return "all"
    return split_names((*options["only"], *kept), names, where) or None


def check_ending(path: Path | None, *endings: str) -> None:
    """Raise unless the name of the file ends in one of these."""
    if path is not None and path.suffix.lower() not in endings:
        raise IcscmError(f"{path} must end in {', '.join(endings)}, which determines the format")


def check_labels(data: Path, labels: Path | None, endings: tuple[str, ...]) -> bool:
    """Whether the data are genomes, by the ending; raise unless --labels is given for these only.

    In a table, target and environment are columns; for genomes they are in a separate table.
    """
    is_genomes = data.name.lower().endswith(endings)
    if is_genomes and labels is None:
        raise IcscmError(f"{data} needs --labels, the table of target and environment")
    if not is_genomes and labels is not None:
        kinds = ", ".join(endings)
        raise IcscmError(f"--labels is for genomes ({kinds}); pack {data} first if it has any")
    return is_genomes


def check_outputs(
    paths: Sequence[Path | None], *, force: bool, inputs: Sequence[Path] = ()
) -> None:
    """Raise unless all files can be written; called before the work starts."""
    wanted = [path for path in paths if path is not None]
    if STDOUT in wanted and is_json():
        raise IcscmError("--json prints to standard output; give a file name instead of -")
    for path in wanted:
        for read in inputs:
            if path.exists() and read.exists() and path.samefile(read) and not is_stream(path):
                raise IcscmError(f"{path} is an input file; choose another output file")
        check_free(path, force=force)
    if len({path.resolve() for path in wanted}) < len(wanted):
        raise IcscmError(f"{wanted[0]} is named for two outputs; give each its own file")
