"""`icscm check` and `icscm compare`: the environments before fitting, and candidates compared."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from icscm.cli import console, shared
from icscm.cli.group import main, name_option
from icscm.cli.routes import read_labels, read_samples
from icscm.cli.shared import COLUMNS, FILE, READING, Options, add_options, read_labelled
from icscm.formatting import as_text, format_name
from icscm.io.formats import describe_path, disarm_formulas, write_table
from icscm.io.roles import split_commas
from icscm.writing import write_text

if TYPE_CHECKING:
    from icscm.io.roles import Roles
    from icscm.validation.checkup import CheckUp
    from icscm.validation.comparison import Comparison

# Lines of a table without --all.
_N_SHOWN = 15


@main.command()
@click.argument("data", type=FILE)
@add_options(*COLUMNS, "alpha", "all", *shared.LABELS, *READING)
def check(data: Path, alpha: float, show_all: bool, quiet: bool, **options: Any) -> Options:
    """Check the environments before fitting.

    Rows, rate of the positive label and missing values in each environment; classes with too
    few rows; columns associated with the environment; columns that `fit` will drop; and the
    minimum detectable difference between environments.

    DATA is a .csv, .tsv, .txt, .data (also .gz, .bz2, .zst, .zip), .parquet or .feather file, or
    - for CSV from standard input. Genomes (.bits, .rtab) need --labels.

    \b
    Example:
      icscm check heart.csv --target ill --environment hospital --na '?'
    """
    from icscm.validation.checkup import check_environments

    progress = console.Progress(quiet=quiet)
    labels: Roles
    if shared.check_labels(data, options["labels"], shared.GENOME_ENDINGS):
        with progress.stage(f"Reading {data}"):
            found, labels = _check_genomes(data, options, alpha)
    else:
        with progress.stage(f"Reading {describe_path(data)}"):
            labels = samples = read_labelled(data, options)
        with progress.stage("Checking the environments"):
            found = check_environments(
                samples.X,
                samples.y,
                environments=samples.environments,
                alpha=alpha,
                keep_columns=samples.asked_for or None,
                words=name_option,
            )
    misread: dict[str, dict[str, int]] = {}
    for (column, text), n in labels.misread.items():
        misread.setdefault(column, {})[text] = n
    n_positive = sum(each.n_positive for each in found.environments)
    sizes = n_positive, found.n_columns - len(found.dropped), len(found.environments)
    shown = found.to_dict() | {
        "facts": console.list_data_facts(data, labels, found.n_rows, *sizes),
        "environments": sorted(found.to_dict()["environments"], key=lambda each: -each["n_rows"]),
        "n_strong": len(found.strong_associations),
        "most": None if show_all else _N_SHOWN,
        "as_text": as_text,
        "format_name": format_name,
    }
    console.print_all(console.make_console(), console.render("checkup.md", shown))
    return found.to_dict() | {"read_as_missing": misread}


def _check_genomes(data: Path, options: Options, alpha: float) -> tuple[CheckUp, Roles]:
    """Check a packed store, or a table that is packed to a temporary file."""
    from icscm.sources.bits.opening import open_bits
    from icscm.sources.bits.packing import open_packed
    from icscm.validation.checkup import check_presence

    table, labels = read_labels(options)
    with open_packed(data, shared.read_delimiter(options["delimiter"])) as store:
        countable = open_bits(
            store,
            table,
            labels.target,
            environments=labels.environment,
            sample_column=options["sample_column"],
        )
        return check_presence(countable, alpha=alpha, words=name_option), labels


@main.command()
@click.argument("data", type=FILE)
@add_options(*COLUMNS, "group", "candidates", "n_folds", "min_rows", "min_positives", "out", "plot")
@add_options("random_state", "force", *shared.LABELS, *READING)
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
    shared.check_ending(out, ".csv", ".tsv", ".parquet", ".md")
    shared.check_ending(plot, ".svg")
    shared.check_outputs([out, plot], force=options["force"], inputs=[data])
    from icscm.validation.candidates import choose_candidates, format_score
    from icscm.validation.comparison import compare as compare_candidates

    names = split_commas([options["candidates"]]) if options["candidates"] else None
    candidates = choose_candidates(names)
    progress = console.Progress(quiet=quiet)
    with progress.stage(f"Reading {describe_path(data)}"):
        samples = read_samples(data, options)
    settings = {name: options[name] for name in ("n_folds", "min_rows", "min_positives")}
    settings |= {"keep_columns": samples.asked_for or None, "random_state": options["random_state"]}
    settings["groups"] = samples.groups
    with progress.stage(f"Comparing {', '.join(candidates)}"):
        found = compare_candidates(
            samples.X,
            samples.y,
            environments=samples.environments,
            candidates=names,
            **settings,
        )
    _write(found, out, plot)
    n_columns = samples.X.num_columns - len(found.dropped)
    n_environments = len(found.environments) + len(found.kept_in)
    sizes = found.n_rows, found.n_positive, n_columns, n_environments
    facts, screen = console.list_data_facts(data, samples, *sizes), console.make_console()
    shown = found.to_dict() | {"facts": facts, "cell": format_score, "as_text": as_text}
    console.print_all(screen, console.render("comparison.md", shown))
    console.print_written(out, plot)
    return found.to_dict()


def _write(found: Comparison, out: Path | None, plot: Path | None) -> None:
    import pyarrow

    if plot is not None:
        write_text(plot, found.plot().to_svg())
    if out is not None and out.suffix.lower() == ".md":
        write_text(out, found.to_markdown())
    elif out is not None:
        table = pyarrow.Table.from_pandas(found.to_frame(), preserve_index=False)
        write_table(disarm_formulas(table), out)
