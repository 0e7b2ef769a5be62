"""Write docs/cli.md from the commands' own --help.

    python docs/write_cli.py

A test fails when the page is out of date.
"""

from __future__ import annotations

from pathlib import Path

import click

from icscm.cli import main
from icscm.io.formats import MISSING_TEXTS

PAGE = Path(__file__).parent / "cli.md"
WIDTH = 80
INTRODUCTION = """# The command line

The output of `icscm --help` and of `icscm COMMAND --help`; written by `docs/write_cli.py`.

Results go to standard output, messages to standard error. An error is one line, with exit
status 2. Files are written completely or not at all, and an existing file is overwritten only with
`--force`. All cores are used (`--n-jobs`).
"""
MISSING = ", ".join(f"`{text}`" for text in MISSING_TEXTS)
CELLS = f"""## What the cells of a text file mean

Spaces around names and values are removed. A column has one type, by all its cells that are not
missing:

| cells | are read as |
|---|---|
| empty; a number or text that `--na` names; those below, unless `--no-default-na` | missing |
| whole numbers, or else numbers (`1.5`, `1e3`, `inf`; `1.234,5` with `--decimal ,`) | numbers |
| whole numbers, one of which begins with 0 (`007`) | text: the 0 is part of the code |
| `true` and `false`, in small or large letters; not `yes` and `no` | booleans |
| `2020-01-31`, with or without a time | dates; such columns are dropped |
| all others | text |

These texts mean missing: {MISSING}.

Parquet and Arrow files have types; there only empty cells and what `--na` names are missing.
"""
MORE = """## Names of options

Options of learners have the name, the values and the default of the parameter in Python, with `-`
instead of `_`. Exceptions:

| option | in Python | why |
|---|---|---|
| `--target`, `--environment`, `--group` | `y`, `environments`, `groups` | they name columns |
| `--model tree` | `InvariantTreeClassifier` and so on | an option selects the class |
| `--model-type`, default `auto` | default `"conjunction"` | `auto` needs rows in memory or files |
| `--random-state`, default 0 | default `None` | commands are reproducible by default |
| `--n-jobs`, default -1 | default `None` | a command has the machine for itself |
| `--cv p=0.1,1` | `icscm.validation.tuning.grid_search` | |
| none | `sample_weight` | Python only |

## JSON

With `--json` every command prints its result as one JSON document on standard output, without
other output; messages still go to standard error. NaN and infinite numbers are strings.

| command | document |
|---|---|
| `fit` | what `--report report.json` writes, without the models at other levels |
| `screen` | what `--report report.json` writes |
| `check`, `compare`, `evaluate` | `to_dict()` of the result in Python |
| `show` | the model file |
| `predict` | `predictions`: for each row the [columns](guide/numbers.md#columns-of-predictions) |
| `recalibrate` | `recalibration`: the shift of the log odds with its interval |
| `export` | `to` and `text`, the code |
| `demo` | `parents`, and for both `learners` the rule, its features and its accuracy |
| `datasets` | `datasets`: one object per data set |
| `pack`, `simulate`, and `predict` and `export` with `--out` | `written`: the files |

`--json` and `--out -` exclude each other: both write to standard output.
"""


def make_help(command: click.Command, name: str, parent: click.Context | None = None) -> str:
    """A command's help as the terminal shows it, at a fixed width."""
    settings = {**command.context_settings, "terminal_width": WIDTH, "max_content_width": WIDTH}
    settings.setdefault("help_option_names", ["-h", "--help"])
    with click.Context(command, info_name=name, parent=parent, **settings) as context:
        return command.get_help(context)


def make_page() -> str:
    """The whole page."""
    context = click.Context(main, info_name="icscm")
    sections = [INTRODUCTION, f"```text\n{make_help(main, 'icscm')}\n```\n", CELLS, MORE]
    for name in main.list_commands(context):
        text = make_help(main.commands[name], name, context)
        sections.append(f"## icscm {name}\n\n```text\n{text}\n```\n")
    return "\n".join(sections)


if __name__ == "__main__":
    PAGE.write_text(make_page(), encoding="utf-8")
