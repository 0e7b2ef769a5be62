"""Write docs/cli.md from the commands' own --help.

    python docs/write_cli.py

A test fails when the page is out of date.
"""

from __future__ import annotations

from pathlib import Path

import click

from icscm.cli import main

PAGE = Path(__file__).parent / "cli.md"
WIDTH = 80
INTRODUCTION = """# The command line

The output of `icscm --help` and of `icscm COMMAND --help`; written by `docs/write_cli.py`.

Results go to standard output, messages to standard error. An error is one line, with exit
status 2. Files are written completely or not at all, and an existing file is overwritten only with
`--force`. In text files spaces around names and values are removed; a column is read as numbers,
booleans (`true`, `false`) or dates (`2020-01-31`) if all its values are, and as text otherwise.
Whole numbers with a leading 0 are text: the 0 is part of the code. Columns of dates are dropped.
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
    sections = [INTRODUCTION, f"```text\n{make_help(main, 'icscm')}\n```\n", MORE]
    for name in main.list_commands(context):
        text = make_help(main.commands[name], name, context)
        sections.append(f"## icscm {name}\n\n```text\n{text}\n```\n")
    return "\n".join(sections)


if __name__ == "__main__":
    PAGE.write_text(make_page(), encoding="utf-8")
