"""Where `icscm fit` learns when the data are no table in memory: files in passes, Dask, bits."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from icscm.cli.console import Progress, make_console, print_written
from icscm.cli.group import main
from icscm.cli.options import (
    FILE,
    apply,
    check_outputs,
    find_kept,
    force_option,
    get_role_options,
    get_text_settings,
    number,
    quiet_option,
    read_data,
    read_delimiter,
    value,
)
from icscm.exceptions import IcscmError
from icscm.io.formats import TextFormat, describe_path, translate_errors
from icscm.io.roles import (
    Labelling,
    choose_features,
    find_labelling,
    keep_used,
    make_roles,
    tally_roles,
)

if TYPE_CHECKING:
    import pyarrow

    from icscm.estimators.base import BaseRuleClassifier

BITS = ".bits"
MEMORY, PASSES, DASK, PACKED = "memory", "passes", "dask", "packed"

# A table takes a few times its file's size while it is read and binned.
_ROOM = 4

# What each route cannot do: some options need all rows at once, or columns before the rows.
_NOT_DONE = {
    PASSES: ("cv", "stability"),
    DASK: ("cv", "stability", "member"),
    PACKED: ("cv", "stability"),
}
_HOW = {PASSES: "in passes", DASK: "on Dask", PACKED: "as bits"}

label_options = apply(
    value(
        "--labels FILE",
        "For genomes, made by icscm pack: the table of target and environment, a row a genome.  "
        "[default: DATA has them]",
        FILE,
    ),
    value(
        "--sample-column COLUMN", "Of --labels: the genomes' names.  [default: its first column]"
    ),
)

scale_options = apply(
    value(
        "--max-memory SIZE",
        "A Parquet or CSV file too large for this, or a folder of files, is read in passes.",
        default="2GiB",
    ),
    value(
        "--temp-dir FOLDER",
        "Where files read in passes are kept binned meanwhile.  [default: the system's]",
    ),
    value(
        "--dask ADDRESS",
        "Learn on the Dask cluster at tcp://HOST:PORT.  [default: in this process]",
    ),
    number(
        "--workers",
        None,
        "Learn on a Dask cluster of so many processes here.  [default: in this process]",
    ),
    label_options,
)


def choose_route(data: Path, options: dict[str, Any]) -> str:
    """Where to learn, by what the data and the options are; raise for what does not go together."""
    route = _find_route(data, options)
    if (options["labels"] is None) == (route == PACKED):
        raise IcscmError(
            f"{data} needs --labels, the table of target and environment"
            if route == PACKED
            else f"--labels is for data made by icscm pack; pack {data} first if it holds genomes"
        )
    for name in _NOT_DONE.get(route, ()):
        if options[name]:
            raise IcscmError(
                f"--{name.replace('_', '-')} needs the table in memory, and {data} is learned from "
                f"{_HOW[route]}; prepare the files, or raise --max-memory"
            )
    if route == PACKED and (options["only"] or options["drop"] or options["keep_columns"]):
        raise IcscmError(
            "--only, --drop and --keep-columns are for tables; leave the genes out before"
        )
    return route


def _find_route(data: Path, options: dict[str, Any]) -> str:
    from icscm.sources.files.source import parse_size

    if data.suffix.lower() == BITS:
        return PACKED
    if options["dask"] is not None or options["workers"] is not None:
        return DASK
    if data.is_dir():
        return PASSES
    if not data.is_file() or data.suffix.lower() == ".zip":
        return MEMORY
    is_large = data.stat().st_size * _ROOM > parse_size(options["max_memory"])
    return PASSES if is_large else MEMORY


def learn_elsewhere(
    learner: BaseRuleClassifier, route: str, data: Path, options: dict[str, Any], progress: Progress
) -> Labelling:
    """Fit the learner where the data are; what the labels mean."""
    with progress.stage(f"Learning from {data}"):
        found = _LEARN[route](learner, data, options)
    return replace(found, label=learner.classes_.tolist()[1])


def _learn_in_passes(learner: BaseRuleClassifier, data: Path, options: dict[str, Any]) -> Labelling:
    from icscm.io.streams import ChangedReader, get_misread, open_table

    reader = open_table(data, TextFormat(**get_text_settings(options)), member=options["member"])
    roles = make_roles(reader.names, **get_role_options(options), where=str(data))
    columns = choose_features(reader.names, roles, options["drop"], options["only"], str(data))
    learner.keep_columns = find_kept(reader.names, options, str(data))
    labelling = Labelling(roles=roles)
    if not roles.is_plain:
        batches = reader.read(roles.columns, 2**16)
        labelling = find_labelling((tally_roles(each, roles) for each in batches), roles)
    learner.fit_dataset(
        ChangedReader(reader, labelling.apply, labelling.needs),
        roles.target,
        roles.environment,
        columns=columns,
        max_memory=options["max_memory"],
        temp_dir=options["temp_dir"],
    )
    return replace(labelling, misread=keep_used(get_misread(reader), columns, roles))


def _learn_on_dask(learner: BaseRuleClassifier, data: Path, options: dict[str, Any]) -> Labelling:
    from icscm.sources.dask.client import open_client
    from icscm.sources.dask.frames import read_folder, take_apart
    from icscm.sources.dask.opening import open_dask

    with open_client(options["dask"], options["workers"]), translate_errors(data):
        frame = read_folder(data, TextFormat(**get_text_settings(options)))
        names, where = list(frame.columns), str(data)
        roles = make_roles(names, **get_role_options(options), where=where)
        columns = choose_features(names, roles, options["drop"], options["only"], where)
        learner.keep_columns = find_kept(names, options, where)
        table, labelling = take_apart(frame, roles, columns)
        learner.fit_counts(open_dask(*table, preparation=learner.prepare()))
    return labelling


def _learn_packed(learner: BaseRuleClassifier, data: Path, options: dict[str, Any]) -> Labelling:
    from icscm.sources.bits.opening import open_bits

    table, labelling = read_labels(options)
    roles = labelling.target, labelling.environment
    column, asked = options["sample_column"], learner.prepare()
    learner.fit_counts(open_bits(data, table, *roles, sample_column=column, preparation=asked))
    return labelling


_LEARN = {PASSES: _learn_in_passes, DASK: _learn_on_dask, PACKED: _learn_packed}


def read_labels(options: dict[str, Any]) -> tuple[pyarrow.Table, Labelling]:
    """The table of `--labels`, its rows as the options for columns say, and what they mean."""
    misread: Counter[tuple[str, str]] = Counter()
    table = read_data(options["labels"], options, misread=misread)
    where = describe_path(options["labels"])
    roles = make_roles(table.column_names, **get_role_options(options), where=where)
    labelling = find_labelling([tally_roles(table, roles)], roles)
    return labelling.apply(table), replace(labelling, misread=keep_used(misread, (), roles))


@main.command()
@click.argument("table", type=FILE)
@value("--out FILE", "Write the store here; it ends in .bits.", FILE, required=True)
@value(
    "--delimiter CHAR",
    "Between cells; ' ' for blanks.  [default: a tab, else what the first line shows]",
)
@force_option
@quiet_option
def pack(table: Path, out: Path, delimiter: str | None, force: bool, quiet: bool) -> None:
    """Pack a presence/absence table into bits.

    TABLE is text (.Rtab, .tsv, .csv, also .gz): genomes in columns, named in the first line;
    genes, k-mers or unitigs in rows, each a name and then 0 or 1 for every genome. It is read
    once, in pieces, whatever its size; the store takes a bit a cell, and rows that are the same
    in all genomes share one.

    \b
    Example:
      icscm pack kmers.tsv --out kmers.bits
      icscm fit kmers.bits --labels phenotypes.tsv --target resistant \\
          --environment country --out model.json
    """
    from icscm.sources.bits.packing import pack_table

    if str(out) == "-":
        raise IcscmError(f"a store is no text for standard output; name a file that ends in {BITS}")
    if out.suffix.lower() != BITS:
        raise IcscmError(f"{out} must end in {BITS}, by which icscm fit knows it")
    check_outputs([out], force=force, inputs=[table])
    with Progress(quiet=quiet).stage(f"Packing {table}"):
        pack_table(table, out, delimiter=read_delimiter(delimiter), force=force)
    print_written(make_console(), out)
