"""Rendered texts: the fewest that catch a broken renderer or template."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from click.testing import CliRunner

from golden.models import fit_case, ignore_warnings, make_report, save_and_load
from golden.studies import (
    check_admissions,
    evaluate_admissions,
    evaluate_shortcuts,
    fit_admissions,
    follow_tolerances,
    resample_network,
    transfer_sites,
)
from golden.tables import Table, make_sites, split_admissions
from golden.writing import Golden
from icscm.cli import main


class VisibleText(HTMLParser):
    """The text of a page, a line for each piece, without styles and scripts."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.lines: list[str] = []
        self.n_hidden = 0
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        self.n_hidden += tag in ("style", "script")

    def handle_endtag(self, tag: str) -> None:
        self.n_hidden -= tag in ("style", "script")

    def handle_data(self, data: str) -> None:
        if not self.n_hidden and data.strip():
            self.lines.append(" ".join(data.split()))


def read_page(page: str) -> str:
    return "\n".join(VisibleText(page).lines) + "\n"


def run_command(*arguments: str, files: dict[str, str]) -> str:
    """Return what a command prints at 80 columns, in a folder with these files."""
    runner = CliRunner(env={"COLUMNS": "80", "NO_COLOR": "1"})
    with ignore_warnings(), TemporaryDirectory() as folder, runner.isolated_filesystem(folder):
        for name, text in files.items():
            Path(name).write_text(text, encoding="utf-8")
        result = runner.invoke(main, arguments)
    assert result.exit_code == 0, result.output
    return re.sub(r" +$", "", result.stdout, flags=re.MULTILINE)


def fit_on_terminal(name: str, options: str) -> str:
    """Run `icscm fit` on a case's table, with options that ask for the case's learner."""
    table = fit_case(name).table
    arguments = ["fit", "zoo.csv", "-q", *table.list_options(), *options.split()]
    return run_command(*arguments, files={"zoo.csv": table.to_csv()})


def show_on_terminal(name: str, *options: str) -> str:
    files = {"model.json": save_and_load(fit_case(name).learner).to_json()}
    return run_command("show", "model.json", *options, files=files)


def evaluate_on_terminal(*options: str) -> str:
    """Save a model of known admissions, and evaluate it on the new ones."""
    _, new = split_admissions()
    model = save_and_load(fit_admissions())
    files = {"model.json": model.to_json(), "new.csv": new.to_csv()}
    arguments = ["evaluate", "model.json", "new.csv", *new.list_options(), *options]
    return run_command(*arguments, files=files)


def compare_on_terminal() -> str:
    table = make_sites(1_200, 3)
    candidates = "scm,icscm,icscm-or,tree"
    options = f"--n-folds 3 --min-rows 100 --candidates {candidates}".split()
    printed = run_command(
        "compare",
        "sites.csv",
        "-q",
        *table.list_options(),
        *options,
        files={"sites.csv": table.to_csv()},
    )
    seconds_at_line_end = r"(?<=  )\d+\.\d\d$"
    return re.sub(seconds_at_line_end, "SOME", printed, flags=re.MULTILINE)


def check_on_terminal(table: Table) -> str:
    arguments = ["check", "zoo.csv", "-q", *table.list_options()]
    return run_command(*arguments, files={"zoo.csv": table.to_csv()})


def print_results() -> str:
    """Return what Python prints of models, searches and studies."""
    rules, tree = fit_case("conjunction").learner, fit_case("rate_tree").learner
    forest = fit_case("forest").learner
    printed = {
        "rule set": f"{rules.model_!r}\n\n{rules.model_}",
        "search of the rule set": repr(rules.trace_),
        "verdicts of the rule set": repr(rules.verdicts_),
        "tree": f"{tree.model_!r}\n\n{tree.model_}",
        "search of the tree": repr(tree.trace_),
        "forest": f"{forest.model_!r}\n\n{forest.model_}",
        "check-up": repr(check_admissions()),
        "evaluation": repr(evaluate_shortcuts()),
        "stability": repr(resample_network()),
        "transfer": repr(transfer_sites()),
        "tolerances": repr(follow_tolerances()),
    }
    return "\n".join(f"=== {kind}\n{text}\n" for kind, text in printed.items())


TEXTS = {
    "fit-rules.txt": Golden(
        "the terminal's short form of a report, with stability",
        lambda: fit_on_terminal("conjunction", "--model-type conjunction --stability 6"),
    ),
    "fit-nothing.txt": Golden(
        "the terminal where no rule was found, with a setting chosen by its score",
        lambda: fit_on_terminal(
            "nothing", "--model-type conjunction --no-validation --stability 0 --cv p=0.5,1"
        ),
    ),
    "fit-tree.txt": Golden(
        "the terminal for a tree",
        lambda: fit_on_terminal("effect_tree", "--model tree --stability 0"),
    ),
    "fit-forest.txt": Golden(
        "the terminal for a forest",
        lambda: fit_on_terminal(
            "forest",
            "--model forest --n-estimators 5 --max-leaves 6 --max-features 1 --no-validation",
        ),
    ),
    "show-rules.txt": Golden(
        "a saved rule set, with its leaves in a few of many environments",
        lambda: show_on_terminal("many_environments"),
    ),
    "show-forest-all.txt": Golden(
        "a saved forest with all its trees", lambda: show_on_terminal("forest", "--all")
    ),
    "evaluate.txt": Golden("the terminal for an evaluation", lambda: evaluate_on_terminal()),
    "compare.txt": Golden("the terminal for a comparison", compare_on_terminal),
    "check.txt": Golden(
        "the terminal for a check-up", lambda: check_on_terminal(fit_case("missing").table)
    ),
    "report-rules.md": Golden(
        "Markdown of a rule set", lambda: make_report("conjunction").to_markdown()
    ),
    "report-tree.md": Golden(
        "Markdown of a tree", lambda: make_report("effect_tree").to_markdown()
    ),
    "page-rules.txt": Golden(
        "the page of a rule set", lambda: read_page(make_report("conjunction").to_html())
    ),
    "page-tree.txt": Golden(
        "the page of a tree", lambda: read_page(make_report("effect_tree").to_html())
    ),
    "page-evaluate.txt": Golden(
        "the page of an evaluation", lambda: read_page(evaluate_admissions().to_html())
    ),
    "printed.txt": Golden("what Python prints of models, searches and studies", print_results),
}


def list_texts() -> dict[str, Golden]:
    """Return a few renderings: the fewest that catch a broken renderer or template."""
    return {f"texts/{name}": golden for name, golden in TEXTS.items()}
