"""`icscm check`: the environments of a table, before fitting."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import numpy as np

from icscm._types import FloatArray
from icscm.cli import console, files
from icscm.cli.genomes import open_genome_file, read_any_samples, read_labels
from icscm.cli.group import main, name_option
from icscm.cli.options import COLUMNS, FILE, LABELS, READING, Options, add_options
from icscm.cli.outcomes import TargetValues, find_outcome
from icscm.io.locating import describe_path

if TYPE_CHECKING:
    from icscm.io.roles import Roles, Samples
    from icscm.validation.checkup import CheckUp

# Lines of a table without --all.
_N_SHOWN = 15


@main.command()
@click.argument("data", type=FILE)
@add_options(*COLUMNS, "outcome", "group", "weight", "alpha", "all", *LABELS, *READING)
def check(data: Path, alpha: float, show_all: bool, quiet: bool, **options: Any) -> Options:
    """Check the environments before fitting.

    Rows, rate of the positive label and missing values in each environment; classes with too
    few rows; columns associated with the environment; columns that `fit` will drop; and the
    minimum detectable difference between environments. The outcome may be two classes, several
    classes, or a number: then the shares of the classes, or mean and standard deviation.

    DATA is a .csv, .tsv, .txt, .data (also .gz, .bz2, .zst, .zip), .parquet or .feather file, or
    - for CSV from standard input. Genomes (.bits, .rtab) need --labels.

    \b
    Example:
      icscm check heart.csv --target ill --environment hospital --na '?'
    """
    progress = console.Progress(quiet=quiet)
    options = options | {"takes_any_outcome": True}
    if files.check_labels(data, options["labels"]):
        with progress.stage(f"Reading {data}"):
            checked = _check_genomes(data, options, alpha)
    else:
        checked = _check_table(data, options, alpha, progress=progress)
    checkup = checked.checkup
    roles = checked.roles
    _print_checkup(data, checked, max_lines=None if show_all else _N_SHOWN)

    # the texts of each column that were read as missing, with their number of cells
    missing_texts: dict[str, dict[str, int]] = {}
    for (column, text), n_cells in roles.misread.items():
        if text == "":  # an empty cell can mean nothing else
            continue
        missing_texts.setdefault(column, {})[text] = n_cells
    return checkup.to_dict() | {"read_as_missing": missing_texts}


@dataclass(frozen=True)
class _CheckedTable:
    """A table, what its target was taken for, and what the check-up found."""

    roles: Roles
    outcome: TargetValues
    checkup: CheckUp
    weights: FloatArray | None = None


def _check_table(
    data: Path, options: Options, alpha: float, *, progress: console.Progress
) -> _CheckedTable:
    """Check a table in memory."""
    with progress.stage(f"Reading {describe_path(data)}"):
        samples = files.read_labelled(data, options)
    outcome = find_outcome(samples.y, options["outcome"])
    with progress.stage("Checking the environments"):
        return _check_samples(samples, outcome, alpha)


def _check_samples(samples: Samples, outcome: TargetValues, alpha: float) -> _CheckedTable:
    """Check rows in memory."""
    from icscm.validation.checkup import check_environments

    checkup = check_environments(
        samples.X,
        samples.y,
        environments=samples.environments,
        groups=samples.groups,
        sample_weight=samples.weights,
        outcome="number" if outcome.is_number else "classes",
        alpha=alpha,
        words=name_option,
    )
    return _CheckedTable(roles=samples, outcome=outcome, checkup=checkup, weights=samples.weights)


def _check_genomes(data: Path, options: Options, alpha: float) -> _CheckedTable:
    """Check genomes: as bits or, for an outcome that bits cannot hold, as a table of genes."""
    from icscm.sources.bits.opening import open_bits
    from icscm.validation.checkup import check_presence

    labels, roles = read_labels(options)
    outcome = find_outcome(np.asarray(labels.column(roles.target).to_pylist()), options["outcome"])
    are_independent = roles.group is None and roles.weight is None
    if outcome.has_two_classes and are_independent:
        with open_genome_file(data, options) as store:
            countable = open_bits(
                store,
                labels,
                roles.target,
                environments=roles.environment,
                sample_column=options["sample_column"],
            )
            checkup = check_presence(countable, alpha=alpha, words=name_option)
        return _CheckedTable(roles=roles, outcome=outcome, checkup=checkup)
    samples = read_any_samples(data, options)
    return _check_samples(samples, find_outcome(samples.y, options["outcome"]), alpha)


def _print_checkup(data: Path, checked: _CheckedTable, *, max_lines: int | None) -> None:
    """Print the findings, the largest environments first."""
    from icscm.report.documents.checkup import write_document

    checkup = checked.checkup
    facts = console.list_data_facts(
        data,
        checked.roles,
        n_rows=checkup.n_rows,
        n_columns=checkup.n_columns - len(checkup.dropped),
        n_environments=len(checkup.environments),
        outcome=checked.outcome.describe(checked.roles, checked.weights),
    )
    document = write_document(
        checkup.to_dict(),
        facts=facts,
        n_strong=len(checkup.strong_associations),
        n_listed=max_lines,
    )
    console.print_document(console.make_console(), document)
