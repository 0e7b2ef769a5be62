"""`icscm compare`: rules beside other classifiers, by rows and where environments are left out."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from icscm.cli.console import Progress, list_data_facts, make_console, print_all, print_written
from icscm.cli.group import main
from icscm.cli.options import (
    FILE,
    check_outputs,
    column_options,
    flag,
    force_option,
    number,
    read_labelled,
    reading_options,
    value,
)
from icscm.exceptions import IcscmError
from icscm.formatting import as_text, clip, count, shorten_list
from icscm.io.formats import describe_path, disarm_formulas, name_data, write_table
from icscm.io.roles import split_commas
from icscm.writing import write_text, write_whole

if TYPE_CHECKING:
    from rich.console import RenderableType

    from icscm.studies.comparison import Comparison

_TABLES, _FIGURES = (".csv", ".tsv", ".parquet", ".md"), (".svg", ".png", ".pdf")
# Characters of a model in the terminal; --json has all of it.
_MAX_MODEL = 160


@main.command()
@click.argument("data", type=FILE)
@column_options(needs_environment=True)
@value(
    "--candidates NAMES",
    "Which to compare, with commas between; the constant always is.  [default: scm, icscm, "
    "icscm-exhaustive, icscm-equivalence and these with -or, invariant-tree, invariant-forest, "
    "tree, forest, logistic, boosting]",
)
@number("--folds", 5, "Folds of rows.", "int [2, inf)")
@number("--min-rows", 200, "Environments with fewer rows are not left out.", "int [2, inf)")
@number("--min-positives", 20, "Nor are those with fewer positive ones.", "int [0, inf)")
@value("--out FILE", "Write the table here: .csv, .tsv, .parquet or .md.", FILE)
@value("--plot FILE", "Draw it here: .svg, .png or .pdf.  [default: no figure]", FILE)
@flag("--json as_json", "Print all as JSON, for other programs.")
@number("--random-state", 0, "Random seed of the folds.", "int [0, inf)")
@force_option
@reading_options
def compare(data: Path, as_json: bool, quiet: bool, **options: Any) -> None:
    """Set rules and other classifiers side by side.

    What does a short rule cost, and what does it gain? Each candidate is fitted without each of
    five folds of the rows, then without each environment, and judged on what was left out: error,
    balanced accuracy, AUC. The constant always says the more frequent class. scm are plain rules,
    icscm those that hold in every environment (-or: any of them suffices), invariant-tree and
    invariant-forest split by what has the same effect in every environment; tree (at most 16
    leaves), forest (100 trees), logistic (a regression) and boosting are scikit-learn's.

    DATA is a .csv, .tsv, .txt, .data (also .gz, .bz2, .zst, .zip), .parquet or .feather file, or
    - for CSV from standard input.

    \b
    Examples:
      icscm compare heart.csv --target ill --environment hospital --na '?'
      icscm compare heart.csv --target ill --environment hospital \\
          --candidates icscm,tree --out table.md --plot table.svg
    """
    _check_options(data, options)
    from icscm.formatting import dump_json
    from icscm.studies.candidates import choose_candidates
    from icscm.studies.comparison import compare as compare_candidates

    names = split_commas([options["candidates"]]) if options["candidates"] else None
    choose_candidates(names)
    progress = Progress(quiet=quiet)
    with progress.stage(f"Reading {describe_path(data)}"):
        samples = read_labelled(data, options)
    found = compare_candidates(
        samples.X,
        samples.y,
        samples.environments,
        names,
        n_folds=options["folds"],
        min_rows=options["min_rows"],
        min_positives=options["min_positives"],
        keep_columns=samples.asked_for or None,
        seed=options["random_state"],
        stage=progress.stage,
    )
    written = _write(found, options)
    if as_json:
        click.echo(dump_json(found.to_dict(), indent=2))
        return
    facts = list_data_facts(
        name_data(data),
        samples,
        n_rows=found.n_rows,
        n_positive=found.n_positive,
        n_columns=samples.X.num_columns - len(found.dropped),
        n_environments=len(found.environments) + len(found.kept_in),
    )
    console = make_console()
    print_all(console, render_comparison(found, facts))
    for path in written:
        print_written(console, path)


def _check_options(data: Path, options: dict[str, Any]) -> None:
    """Raise for files that cannot be written, before anything is read."""
    from icscm.parameters import check_matplotlib

    for name, endings in (("out", _TABLES), ("plot", _FIGURES)):
        path = options[name]
        if path is not None and path.suffix.lower() not in endings:
            raise IcscmError(f"{path} must end in {', '.join(endings)}, which tells the format")
    if options["plot"] is not None:
        check_matplotlib()
    wanted = [options["out"], options["plot"]]
    check_outputs(wanted, force=options["force"], inputs=[data])


def _write(found: Comparison, options: dict[str, Any]) -> list[Path]:
    import pyarrow

    out, plot = options["out"], options["plot"]
    if plot is not None:
        kind = plot.suffix.lower().removeprefix(".")
        write_whole(plot, partial(found.plot().savefig, format=kind, dpi=150))
    if out is not None:
        if out.suffix.lower() == ".md":
            write_text(out, found.to_markdown())
        else:
            table = pyarrow.Table.from_pandas(found.to_frame(), preserve_index=False)
            write_table(disarm_formulas(table), out)
    return [path for path in (out, plot) if path is not None]


def render_comparison(found: Comparison, facts: list[tuple[str, str]]) -> Iterator[RenderableType]:
    """Two tables, the rules, and what all of it says."""
    from icscm.report.terminal import (
        make_fact_table,
        make_heading,
        make_list,
        make_note,
        make_table,
    )

    yield make_fact_table([*facts, *_list_left_out(found)])
    yield make_heading(f"By rows: {found.n_folds} folds")
    yield make_table(
        ("candidate", ">error", ">balanced accuracy", ">AUC", ">seconds to fit"),
        [(each.name, *_format(each.rows), f"{each.seconds:.2f}") for each in found.candidates],
    )
    if found.environments:
        yield make_heading(f"{count(len(found.environments), 'environment')} left out in turn")
        yield make_table(
            ("candidate", ">error", ">worst", ">balanced", ">worst", ">AUC", ">worst"),
            [(each.name, *_interleave(each.environments, each.worst)) for each in found.candidates],
        )
    yield make_note("\nMeans over folds and over environments, and the worst environment.")
    models = [(each.name, clip(each.model, _MAX_MODEL)) for each in found.candidates if each.model]
    if models:
        yield make_heading("Learned from all rows")
        yield make_fact_table(models)
    failures = [(each.name, as_text(each.failure)) for each in found.candidates if each.failure]
    if failures:
        yield make_heading("Not fitted everywhere")
        yield make_fact_table(failures)
    yield make_heading("What this says")
    yield make_list(found.conclusions)


def _list_left_out(found: Comparison) -> Iterator[tuple[str, str]]:
    if found.dropped:
        columns = shorten_list(list(found.dropped))
        yield "Left out", as_text(f"{columns}, for all candidates; icscm check says why")
    if found.kept_in:
        names = [f"{name} ({n:,} rows)" for name, (n, _) in found.kept_in.items()]
        yield "Too small", as_text(f"to be left out: {shorten_list(names)}")


def _format(scores: dict[str, float | None]) -> list[str]:
    error, *others = scores.values()
    return [
        "-" if error is None else f"{error:.1%}",
        *("-" if each is None else f"{each:.3f}" for each in others),
    ]


def _interleave(means: dict[str, float | None], worst: dict[str, float | None]) -> list[str]:
    pairs = zip(_format(means), _format(worst), strict=True)
    return [text for pair in pairs for text in pair]
