"""Where `icscm fit` learns when the data are not a table in memory; `icscm pack`."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from icscm.cli import shared
from icscm.cli.console import Progress, print_written
from icscm.cli.group import main
from icscm.cli.shared import FILE, Options, add_options
from icscm.exceptions import IcscmError, Parameter
from icscm.io import roles as io_roles
from icscm.io.formats import PACKED_ENDINGS, TextFormat, describe_path, translate_errors
from icscm.io.naming import check_columns
from icscm.io.roles import Roles, Samples

if TYPE_CHECKING:
    import pyarrow

    from icscm.estimators.base import BaseRuleClassifier

MEMORY, PASSES, DASK, PACKED = "memory", "passes", "dask", "packed"
_HOW = {PASSES: "in passes", DASK: "on Dask", PACKED: "as bits"}

# While it is read and binned, a table takes several times the size of its file, compressed or not.
_ROOM, _PACKED_ROOM = 4, 12
# Bytes that the libraries take, and that any table may take besides.
_LIBRARIES, _SMALL = 400 * 10**6, 2**25


def choose_route(data: Path, options: Options) -> str:
    """Where to learn, by the data and the options; raise for options that conflict."""
    route = _find_route(data, options)
    if data.name.lower().endswith(shared.GENOME_ENDINGS[1:]):
        raise IcscmError(f"pack {data} first: icscm pack {data} --out genes.bits")
    shared.check_labels(data, options["labels"], (shared.BITS,))
    for name in () if route == MEMORY else ("cv", "stability", "member"):
        if options[name] and (name != "member" or route == DASK):
            why = f" needs a table in memory, but {data} is learned from {_HOW[route]}"
            raise IcscmError(Parameter(name), why, "; prepare the files, or raise --max-memory")
    if route == PACKED and (options["only"] or options["drop"] or options["keep_columns"]):
        raise IcscmError("--only, --drop and --keep-columns are for tables; drop genes first")
    if route == DASK and options["group"]:
        raise IcscmError("--group cannot be used on Dask; omit --dask and --workers")
    if route == DASK and options["model"] == "forest":
        why = "--model forest draws rows, which is not possible on Dask"
        raise IcscmError(f"{why}; use --model tree, or omit --dask and --workers")
    return route


def _find_route(data: Path, options: Options) -> str:
    from icscm.sources.files.source import parse_size

    if data.suffix.lower() == shared.BITS:
        return PACKED
    if options["dask"] is not None or options["workers"] is not None:
        return DASK
    if data.is_dir():
        return PASSES
    if not data.is_file() or data.suffix.lower() == ".zip":
        return MEMORY
    room = _PACKED_ROOM if data.suffix.lower() in PACKED_ENDINGS else _ROOM
    limit = parse_size(options["max_memory"])
    free = max(limit - _LIBRARIES, min(limit, _SMALL))
    return PASSES if data.stat().st_size * room > free else MEMORY


def learn_elsewhere(learner: BaseRuleClassifier, route: str, data: Path, options: Options) -> Roles:
    """Fit the learner where the data are; what the labels mean."""
    learn = {PASSES: _learn_in_passes, DASK: _learn_on_dask, PACKED: _learn_packed}[route]
    return replace(learn(learner, data, options), label=learner.classes_.tolist()[1])


def _choose_columns(
    learner: BaseRuleClassifier, names: list[str], data: Path, options: Options
) -> tuple[Roles, list[str]]:
    """Target, environment and the columns to learn from."""
    where = str(data)
    roles = io_roles.make_roles(names, **shared.get_roles(options), where=where)
    learner.keep_columns = shared.find_kept(names, options, where)
    return roles, io_roles.choose_features(names, roles, options["drop"], options["only"], where)


def _learn_in_passes(learner: BaseRuleClassifier, data: Path, options: Options) -> Roles:
    from icscm.io.streams import ChangedReader, get_misread, open_table

    form = TextFormat(**shared.get_text_settings(options))
    reader = open_table(data, form, member=options["member"])
    roles, columns = _choose_columns(learner, reader.names, data, options)
    if not roles.is_plain:
        tallies = (io_roles.tally_roles(each, roles) for each in reader.read(roles.columns, 2**16))
        roles = io_roles.find_labelling(tallies, roles)
    changed = ChangedReader(reader, roles.apply, roles.needs)
    limits = {name: options[name] for name in ("max_memory", "temp_dir")} | {"groups": roles.group}
    learner.fit_dataset(
        changed, roles.target, environments=roles.environment, columns=columns, **limits
    )
    return roles.keep_misread(get_misread(reader), columns)


def _learn_on_dask(learner: BaseRuleClassifier, data: Path, options: Options) -> Roles:
    from icscm.sources.dask.client import open_client
    from icscm.sources.dask.frames import read_folder, take_apart
    from icscm.sources.dask.opening import open_dask

    with open_client(options["dask"], options["workers"]), translate_errors(data):
        frame = read_folder(data, TextFormat(**shared.get_text_settings(options)))
        roles, columns = _choose_columns(learner, list(frame.columns), data, options)
        table, labelling = take_apart(frame, roles, columns)
        X, y, environments = table
        countable = open_dask(X, y, environments=environments, preparation=learner.prepare())
        learner.fit_counts(countable)
    return labelling


def _learn_packed(learner: BaseRuleClassifier, data: Path, options: Options) -> Roles:
    from icscm.sources.bits.opening import open_bits

    table, found = read_labels(options)
    settings = {"sample_column": options["sample_column"], "preparation": learner.prepare()}
    settings["groups"] = found.group
    learner.fit_counts(
        open_bits(data, table, found.target, environments=found.environment, **settings)
    )
    return found


def read_labels(options: Options) -> tuple[pyarrow.Table, Roles]:
    """The table of `--labels`, its rows by the options for columns, and what the labels mean."""
    path, misread = options["labels"], Counter[tuple[str, str]]()
    table, where = shared.read_data(path, options, misread=misread), describe_path(path)
    roles = io_roles.make_roles(table.column_names, **shared.get_roles(options), where=where)
    found = io_roles.find_labelling([io_roles.tally_roles(table, roles)], roles)
    return found.apply(table), found.keep_misread(misread, ())


def read_samples(data: Path, options: Options) -> Samples:
    """A table with its labels or, of genomes, the genes of those that --labels names."""
    if not shared.check_labels(data, options["labels"], shared.GENOME_ENDINGS):
        return shared.read_labelled(data, options)
    from icscm.sources.bits.opening import read_patterns
    from icscm.sources.bits.packing import open_packed

    samples = shared.read_labelled(options["labels"], {**options, "only": (), "drop": ()})
    column = options["sample_column"] or next(iter(samples.X.column_names), "")
    check_columns([column], samples.X.column_names, describe_path(options["labels"]))
    with open_packed(data, shared.read_delimiter(options["delimiter"])) as store:
        X = read_patterns(store, samples.X.column(column).to_pylist())
    names = X.column_names, samples, options["drop"], options["only"], str(data)
    return replace(samples, X=X.select(io_roles.choose_features(*names)))


@main.command()
@click.argument("table", type=FILE)
@add_options("out", "delimiter", "force", "quiet")
def pack(table: Path, out: Path, delimiter: str | None, force: bool, quiet: bool) -> None:
    """Pack a presence/absence table into bits.

    TABLE is text (.Rtab, .tsv, .csv, also .gz): genomes in columns, named in the first line;
    genes, k-mers or unitigs in rows, each a name and then 0 or 1 for every genome. It is read
    once, in pieces, whatever its size; the store takes one bit per cell, and features that are
    present in the same genomes are stored once.

    \b
    Example:
      icscm pack kmers.tsv --out kmers.bits
      icscm fit kmers.bits --labels phenotypes.tsv --target resistant \\
          --environment country --out model.json
    """
    from icscm.sources.bits.packing import pack_table

    shared.check_ending(out, shared.BITS)
    shared.check_outputs([out], force=force, inputs=[table])
    size = table.stat().st_size if table.is_file() else None
    with Progress(quiet=quiet).stage(f"Packing {table}", size) as show:
        between = shared.read_delimiter(delimiter)
        pack_table(table, out, delimiter=between, force=force, on_chunk=show)
    print_written(out)
