"""Genomes on the command line: a presence/absence table of genes, and a table of their labels."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from icscm.cli import files
from icscm.cli.options import Options
from icscm.exceptions import IcscmError
from icscm.io import roles as io_roles
from icscm.io.locating import describe_path
from icscm.io.naming import check_columns
from icscm.io.roles import Roles, Samples

if TYPE_CHECKING:
    import pyarrow

    from icscm.sources.bits.store import BitFile


@contextmanager
def open_genome_file(data: Path, options: Options) -> Iterator[BitFile]:
    """A packed store; a presence/absence table (.Rtab) is packed to a temporary one."""
    from icscm.sources.bits.packing import open_packed

    with open_packed(data, files.read_delimiter(options["delimiter"])) as store:
        yield store


def read_labels(options: Options) -> tuple[pyarrow.Table, Roles]:
    """Return the table of `--labels`, its rows as the options select them, and what they mean.

    That is said by the roles of its columns: which is the target, and which of its values is the
    positive outcome. No column of this table is learned from, since the genes are elsewhere.
    """
    _reject_categories(options)
    path = options["labels"]
    loaded = files.load_table(path, options)

    column_names = loaded.table.column_names
    chosen_roles = io_roles.make_roles(
        column_names, **files.get_roles(options), where=describe_path(path)
    )
    tally = io_roles.tally_roles(loaded.table, chosen_roles)
    roles = io_roles.find_labelling([tally], chosen_roles)

    labels = roles.apply(loaded.table)
    # Reports say which texts were read as missing.
    roles_with_misread = roles.keep_misread(loaded.misread, features=())
    return labels, roles_with_misread


def read_genome_samples(store: BitFile, options: Options) -> Samples:
    """The genomes of a packed store that `--labels` names, as a table to learn from.

    They are in the order of the store, so that the order of the labels does not matter.
    """
    from icscm.sources.bits.genomes import open_genomes

    labels, roles = read_labels(options)
    column_names = labels.column_names
    genome_column = options["sample_column"] or column_names[0]
    check_columns([genome_column], column_names, describe_path(options["labels"]))
    genomes = open_genomes(store, labels.column(genome_column).to_pylist())

    order_in_store = np.argsort(genomes.samples)
    in_order = replace(genomes, samples=genomes.samples[order_in_store])
    return io_roles.make_samples(in_order, labels.take(order_in_store), roles)


def _reject_categories(options: Options) -> None:
    """Raise if columns are declared categories."""
    if options["categories"]:
        raise IcscmError("--categories does not go with genomes: a gene is present or absent")


def read_any_samples(data: Path, options: Options) -> Samples:
    """A table with its labels or, of genomes, the genes of those that --labels names."""
    if not files.check_labels(data, options["labels"]):
        return files.read_labelled(data, options)
    from icscm.sources.bits.opening import read_patterns

    _reject_categories(options)
    # --only and --drop name genes here, not columns of the table of labels
    labels_path = options["labels"]
    samples = files.read_labelled(labels_path, options | {"only": (), "drop": ()})
    column_names = samples.X.column_names
    genome_column = options["sample_column"] or next(iter(column_names), "")
    check_columns([genome_column], column_names, describe_path(labels_path))
    genome_names = samples.X.column(genome_column).to_pylist()

    with open_genome_file(data, options) as store:
        genes = read_patterns(store, genome_names)
    chosen_genes = io_roles.choose_features(
        genes.column_names,
        samples,
        drop=options["drop"],
        only=options["only"],
        where=str(data),
    )
    return replace(samples, X=genes.select(chosen_genes))
