"""Where `icscm fit` learns when the data are no table in memory: files in passes, Dask, bits."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from icscm.cli.console import Progress, make_console, print_written
from icscm.cli.group import main
from icscm.cli.options import (
    check_outputs,
    force_option,
    get_text_settings,
    quiet_option,
    read_data,
)
from icscm.cli.shorthand import FILE, apply, number, value
from icscm.exceptions import IcscmError
from icscm.io.formats import TextFormat
from icscm.io.roles import Labelling, choose_features, find_labelling

if TYPE_CHECKING:
    from icscm.estimators.base import CoverClassifier

BITS = ".bits"
MEMORY, PASSES, DASK, PACKED = "memory", "passes", "dask", "packed"

# A table takes a few times its file's size while it is read and binned.
_ROOM = 4

# What each route cannot do: some options need all rows at once, or columns before the rows.
_NOT_DONE = {
    PASSES: ("cv", "stability"),
    DASK: ("cv", "stability", "drop_missing", "positive", "member"),
    PACKED: ("cv", "stability"),
}
_HOW = {PASSES: "in passes", DASK: "on Dask", PACKED: "as bits"}

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
    value(
        "--labels FILE",
        "For DATA made by icscm pack: the table of target and environment, a row a genome.  "
        "[default: DATA has them]",
        FILE,
    ),
    value(
        "--sample-column COLUMN", "Of --labels: the genomes' names.  [default: its first column]"
    ),
)


def choose_route(data: Path, options: dict[str, Any]) -> str:
    """Where to learn, by what the data and the options are; raise for what does not go together."""
    route = _find_route(data, options)
    if (options["labels"] is None) == (route == PACKED):
        raise IcscmError(
            f"{data} needs --labels, the table of target and environment"
            if route == PACKED
            else f"--labels is for data made by icscm pack; {data} has its own target"
        )
    for name in _NOT_DONE.get(route, ()):
        if options[name]:
            raise IcscmError(
                f"--{name.replace('_', '-')} needs the table in memory, and {data} is learned from "
                f"{_HOW[route]}; prepare the files, or raise --max-memory"
            )
    if route in (DASK, PACKED) and (options["only"] or options["drop"] or options["keep"]):
        raise IcscmError("--only, --drop and --keep are for tables; leave the columns out before")
    return route


def _find_route(data: Path, options: dict[str, Any]) -> str:
    from icscm.sources.files.budget import parse_size

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
    learner: CoverClassifier, route: str, data: Path, options: dict[str, Any], progress: Progress
) -> Labelling:
    """Fit the learner where the data are; what the labels mean."""
    found = Labelling(target=options["target"], environment=options["environment"])
    with progress.stage(f"Learning from {data}"):
        if route == PASSES:
            found = _learn_in_passes(learner, data, found, options)
        elif route == DASK:
            _learn_on_dask(learner, data, options)
        else:
            _learn_packed(learner, data, options)
    return replace(found, label=learner.classes_.tolist()[1])


def _learn_in_passes(
    learner: CoverClassifier, data: Path, labelling: Labelling, options: dict[str, Any]
) -> Labelling:
    from icscm.io.streams import ChangedReader, open_table

    reader = open_table(data, TextFormat(**get_text_settings(options)), member=options["member"])
    roles = labelling.target, labelling.environment
    columns = choose_features(reader.names, *roles, options["drop"], options["only"], str(data))
    if options["positive"] or options["drop_missing"]:
        chosen = {name: options[name] for name in ("positive", "drop_missing")}
        labelling = find_labelling(reader.read(labelling.roles, 2**16), *roles, **chosen)
    learner.fit_dataset(
        ChangedReader(reader, labelling.apply, labelling.roles if labelling.n_dropped else ()),
        *roles,
        columns=columns,
        max_memory=options["max_memory"],
        temp_dir=options["temp_dir"],
    )
    return labelling


def _learn_on_dask(learner: CoverClassifier, data: Path, options: dict[str, Any]) -> None:
    from icscm.sources.dask.client import open_client
    from icscm.sources.dask.opening import open_dask_files

    with open_client(options["dask"], options["workers"]):
        countable = open_dask_files(
            data,
            options["target"],
            options["environment"],
            text=TextFormat(**get_text_settings(options)),
            preparation=learner.prepare(),
        )
        learner.fit_counts(countable)


def _learn_packed(learner: CoverClassifier, data: Path, options: dict[str, Any]) -> None:
    from icscm.sources.bits.opening import open_bits

    countable = open_bits(
        data,
        read_data(options["labels"], options),
        options["target"],
        options["environment"],
        sample_column=options["sample_column"],
        preparation=learner.prepare(),
    )
    learner.fit_counts(countable)


@main.command()
@click.argument("table", type=FILE)
@value("--out FILE", "Write the store here; it ends in .bits.", FILE, required=True)
@force_option
@quiet_option
def pack(table: Path, out: Path, force: bool, quiet: bool) -> None:
    """Pack a presence/absence table into bits.

    TABLE is tab-separated (.Rtab, .tsv, also .gz): genomes in columns, named in the first line;
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
        pack_table(table, out, force=force)
    print_written(make_console(), out)
