"""Write summaries: tables as Markdown and LaTeX, figures as PNG and SVG, and one page."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from jinja2 import Environment, FileSystemLoader

from paper.base import Experiment, Summary, Table

_LATEX_SPECIAL = str.maketrans(
    {character: rf"\{character}" for character in "&%$#_{}"}
    | {"\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}"}
    | {"±": r"$\pm$"}
)


# Shown wherever the numbers of a quick run are.
QUICK = (
    "A quick run: few repetitions of small samples, to see that everything works. Its numbers "
    "cannot be compared with the paper's."
)

# An experiment, its summary, and its number of rows.
Section = tuple[Experiment, Summary, int]


def write_summary(summary: Summary, folder: Path) -> None:
    """Every table and figure of one experiment as files."""
    for table in summary.tables:
        (folder / f"{table.name}.md").write_text(to_markdown(table), encoding="utf-8")
        (folder / f"{table.name}.tex").write_text(to_latex(table), encoding="utf-8")
    for figure in summary.figures:
        drawn = figure.draw()
        # no date inside, so that the same rows give the same file
        drawn.savefig(folder / f"{figure.name}.svg", metadata={"Date": None})
        drawn.savefig(folder / f"{figure.name}.png", dpi=150)


def write_page(sections: Sequence[Section], folder: Path, command: str, *, is_quick: bool) -> Path:
    """One page with all tables and figures beside the published numbers."""
    loader = FileSystemLoader(Path(__file__).parent / "templates")
    page = Environment(loader=loader, autoescape=True, trim_blocks=True, lstrip_blocks=True)
    shown = {"sections": sections, "command": command, "caveat": QUICK if is_quick else ""}
    path = folder / "index.html"
    path.write_text(page.get_template("index.html").render(**shown), encoding="utf-8")
    return path


def add_caveat(summary: Summary) -> Summary:
    """The same, its captions saying that the run was a quick one."""
    tables = [replace(each, caption=f"{each.caption} {QUICK}") for each in summary.tables]
    figures = [replace(figure, caption=f"{figure.caption} {QUICK}") for figure in summary.figures]
    return replace(summary, tables=tables, figures=figures)


def to_markdown(table: Table) -> str:
    """A Markdown table below its caption."""
    head = [table.caption, "", _join_markdown(table.header), "|" + "---|" * len(table.header)]
    return "\n".join([*head, *map(_join_markdown, table.rows)]) + "\n"


def to_latex(table: Table) -> str:
    """A LaTeX table in booktabs style."""
    lines = [
        r"\begin{table}",
        r"\centering",
        rf"\caption{{{escape_latex(table.caption)}}}",
        rf"\label{{tab:{table.name}}}",
        rf"\begin{{tabular}}{{l{'r' * (len(table.header) - 1)}}}",
        r"\toprule",
        _join_latex(table.header),
        r"\midrule",
        *map(_join_latex, table.rows),
        r"\bottomrule",
        r"\end{tabular}",
        r"\end{table}",
    ]
    return "\n".join(lines) + "\n"


def escape_latex(text: str) -> str:
    r"""Text that LaTeX prints as it is.

    >>> escape_latex("50 % of x_1 ± 2")
    '50 \\% of x\\_1 $\\pm$ 2'
    """
    return text.translate(_LATEX_SPECIAL)


def _join_markdown(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cell.replace("|", r"\|") for cell in cells) + " |"


def _join_latex(cells: Sequence[str]) -> str:
    return " & ".join(map(escape_latex, cells)) + r" \\"
