"""Files that commands read and write: what their names must be, and how they are read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from icscm.cli.console import is_json
from icscm.cli.options import ROLES, Options
from icscm.exceptions import IcscmError
from icscm.io.formats import TextFormat
from icscm.io.locating import describe_path
from icscm.io.roles import Samples, read_samples
from icscm.writing import STDOUT, check_free, is_stream

if TYPE_CHECKING:
    from icscm.io.streams import LoadedTable

# Presence/absence tables: genes in rows, genomes in columns.
BITS = ".bits"
GENOME_ENDINGS = (BITS, ".rtab", ".rtab.gz")


def is_genomes(data: Path) -> bool:
    """Whether a file holds genomes in columns, by its ending: it needs a table of labels."""
    return data.name.lower().endswith(GENOME_ENDINGS)


def check_labels(data: Path, labels: Path | None) -> bool:
    """Whether the data are genomes; raise unless --labels is given for these only.

    In a table, target and environment are columns; for genomes they are in a table of their own.
    """
    if is_genomes(data) and labels is None:
        raise IcscmError(f"{data} needs --labels, the table of target and environment")
    if not is_genomes(data) and labels is not None:
        kinds = ", ".join(GENOME_ENDINGS)
        raise IcscmError(f"--labels is for genomes ({kinds}); pack {data} first if it has any")
    return is_genomes(data)


# --- reading ----------------------------------------------------------------------


def load_table(path: Path, options: Options, types: Mapping[str, str] | None = None) -> LoadedTable:
    """The table in a file, by the options for reading."""
    from icscm.io import streams  # pyarrow is slow to load

    return streams.load_table(
        path, make_text_format(options), member=options["member"], types=types
    )


def make_text_format(options: Options) -> TextFormat:
    """How text is read, by the options for reading."""
    return TextFormat(
        na=options["na"],
        categories=options.get("categories", ()),  # to predict, a model knows its own
        default_na=not options["no_default_na"],
        delimiter=read_delimiter(options["delimiter"]),
        encoding=options["encoding"],
        decimal=options["decimal"] or ".",
    )


def read_delimiter(text: str | None) -> str | None:
    r"""A delimiter as typed on the command line: `\t` and `tab` mean a tab."""
    return "\t" if text in (r"\t", "tab") else text


def read_labelled(path: Path, options: Options) -> Samples:
    """Columns to learn from, labels and environments in a file, by the options for columns."""
    loaded = load_table(path, options)
    samples = read_samples(
        loaded.table,
        **get_roles(options),
        drop=options["drop"],
        only=options["only"],
        where=describe_path(path),
    )
    return samples.keep_misread(loaded.misread, samples.X.column_names)


def get_roles(options: Options) -> dict[str, Any]:
    """Arguments of `make_roles`; not every command has groups, weights and any outcome."""
    optional = {name: options.get(name) for name in ("group", "weight")}
    return {
        **{name: options[name] for name in ROLES},
        **optional,
        "takes_any_outcome": options.get("takes_any_outcome", False),
    }


# --- writing ----------------------------------------------------------------------


def check_ending(path: Path | None, *endings: str) -> None:
    """Raise unless the name of the file ends in one of these."""
    if path is not None and path.suffix.lower() not in endings:
        raise IcscmError(f"{path} must end in {', '.join(endings)}, which determines the format")


def check_outputs(
    outputs: Sequence[Path | None], *, force: bool, inputs: Sequence[Path] = ()
) -> None:
    """Raise unless all files can be written; called before the work starts."""
    paths = [path for path in outputs if path is not None]
    if STDOUT in paths and is_json():
        raise IcscmError("--json prints to standard output; give a file name instead of -")
    for path in paths:
        if any(_is_same_file(path, source) for source in inputs):
            raise IcscmError(f"{path} is an input file; choose another output file")
        check_free(path, force=force)
    if len({path.resolve() for path in paths}) < len(paths):
        raise IcscmError(f"{paths[0]} is named for two outputs; give each its own file")


def _is_same_file(output: Path, source: Path) -> bool:
    """Whether writing the output would overwrite a source."""
    are_there = output.exists() and source.exists()
    return are_there and output.samefile(source) and not is_stream(output)
