"""`icscm compare`: candidates compared on the same folds of rows and environments."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from icscm.cli import console, files
from icscm.cli.genomes import read_any_samples
from icscm.cli.group import main
from icscm.cli.options import COLUMNS, FILE, LABELS, READING, Options, add_options
from icscm.io.locating import describe_path
from icscm.io.roles import Samples, split_commas
from icscm.io.writing_tables import disarm_formulas, write_table
from icscm.writing import write_text

if TYPE_CHECKING:
    from icscm.validation.comparison import Comparison


@main.command()
@click.argument("data", type=FILE)
@add_options(*COLUMNS, "group", "candidates", "n_folds", "min_rows", "min_positives", "out", "plot")
@add_options("random_state", "force", *LABELS, *READING)
def compare(
    data: Path, out: Path | None, plot: Path | None, quiet: bool, **options: Any
) -> Options:
    """Compare rules and other classifiers.

    Each candidate is fitted without each environment, then without each of three folds of the
    rows, and scored on the held-out rows: AUC, log loss, calibration slope and intercept, error,
    next to those of the majority-class baseline. icscm are rules that are invariant across
    environments, icscm-balanced the same with p=balanced; tree and forest have columns whose
    effect is homogeneous across environments, as with icscm fit --model; logistic (a regression)
    and boosting are scikit-learn's. Others by name: score; scm, plain rules, icscm-exhaustive,
    icscm-equivalence (all rules also with -or: disjunctions); scikit-learn's plain-tree (at most 16
    leaves) and plain-forest (100 trees).

    DATA is a .csv, .tsv, .txt, .data (also .gz, .bz2, .zst, .zip), .parquet or .feather file, or
    - for CSV from standard input. Genomes (.bits, .rtab) need --labels; genes that are present in
    the same genomes are one column.

    \b
    Examples:
      icscm compare heart.csv --target ill --environment hospital --na '?'
      icscm compare heart.csv --target ill --environment hospital \\
          --candidates icscm,tree --out table.md --plot table.svg
    """
    files.check_ending(out, ".csv", ".tsv", ".parquet", ".md")
    files.check_ending(plot, ".svg")
    files.check_outputs([out, plot], force=options["force"], inputs=[data])

    from icscm.validation.candidates import choose_candidates
    from icscm.validation.comparison import compare as compare_candidates

    # Before the file is read, so that a name that is unknown shows at once.
    names = split_commas([options["candidates"]]) if options["candidates"] else None
    candidates = choose_candidates(names)

    progress = console.Progress(quiet=quiet)
    with progress.stage(f"Reading {describe_path(data)}"):
        samples = read_any_samples(data, options)
    with progress.stage(f"Comparing {', '.join(candidates)}"):
        comparison = compare_candidates(
            samples.X,
            samples.y,
            environments=samples.environments,
            groups=samples.groups,
            candidates=names,
            n_folds=options["n_folds"],
            min_rows=options["min_rows"],
            min_positives=options["min_positives"],
            random_state=options["random_state"],
        )

    _write(comparison, out, plot)
    _print(comparison, data, samples)
    console.print_written(out, plot)
    return comparison.to_dict()


def _print(comparison: Comparison, data: Path, samples: Samples) -> None:
    """Print the scores of the candidates and the conclusions."""
    facts = console.list_data_facts(
        data,
        samples,
        n_rows=comparison.n_rows,
        n_positive=comparison.n_positive,
        n_columns=samples.X.num_columns - len(comparison.dropped),
        n_environments=len(comparison.environments) + len(comparison.kept_in),
    )
    console.print_document(console.make_console(), comparison.write_document(facts))


def _write(comparison: Comparison, out: Path | None, plot: Path | None) -> None:
    """Write the table and the figure."""
    import pyarrow

    if plot is not None:
        write_text(plot, comparison.plot().to_svg())
    if out is None:
        return
    if out.suffix.lower() == ".md":
        write_text(out, comparison.to_markdown())
    else:
        table = pyarrow.Table.from_pandas(comparison.to_frame(), preserve_index=False)
        write_table(disarm_formulas(table), out)
