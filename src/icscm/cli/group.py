"""The command `icscm`, and how all its commands end when something is wrong."""

import io
import os
import signal
import sys
import tomllib
import traceback
import warnings
from collections.abc import Callable, Sequence
from functools import cache
from importlib.resources import files
from typing import Any, NoReturn

import click

from icscm._version import __version__
from icscm.cli.console import print_line
from icscm.exceptions import IcscmError, IcscmWarning, Parameter, is_short_of_memory
from icscm.formatting import dump_json, escape_controls
from icscm.writing import FULL

# Parameters that are not the option of the same name.
_OPTIONS = {
    "X": "the table",
    "y": "the target",
    "n_causes": "--n-parents",
    "n_hospitals": "--n-environments",
    "SCMClassifier": "--model scm",
    "InvariantTreeClassifier": "--model tree",
    "folds": "--cv-folds",
    "icscm.validation.checkup.check_environments": "icscm check",
    "icscm.validation.tuning.grid_search": "--cv p=0.1,1,balanced",
}

_COUNTED = ("samples", "distractors", "environments", "parents", "children", "rows", "folds")
# Options of version 0.2, and what they are called now.
RENAMED = {
    "--type": "--model-type",
    "--keep": "--keep-columns",
    "--jobs": "--n-jobs",
    "--seed": "--random-state",
    "--trees": "--n-estimators",
    "--habits": "--shortcut-strength",
    "--no-alpha-path": "--no-path",
    **{f"--{name}": f"--n-{name}" for name in _COUNTED},
}


def name_option(parameter: Parameter) -> str:
    """A parameter as the option that sets it.

    >>> name_option(Parameter("missing", "candidate")), name_option(Parameter("keep_columns"))
    ('--missing candidate', '--keep-columns')
    >>> name_option(Parameter("correction", None)), name_option(Parameter("force", True))
    ('--correction none', '--force')
    """
    name, value = parameter
    option = _OPTIONS.get(name, f"--{name.replace('_', '-')}")
    if value is ... or value is True:
        return option
    return f"{option} {'none' if value is None else value}"


@cache
def load_options() -> dict[str, Any]:
    """The options as `options.toml` describes them, and their groups in the help."""
    return tomllib.loads(files("icscm.cli").joinpath("options.toml").read_text("utf-8"))


def _make_flag(name: str) -> click.Option:
    """A new option each time, since click keeps state in it; its value goes to the context."""

    def keep(ctx: click.Context, _: click.Parameter, value: bool) -> None:
        ctx.meta[name] = value

    text = _FLAGS[name]
    return click.Option([f"--{name}"], is_flag=True, expose_value=False, callback=keep, help=text)


class _Command(click.Command):
    """A command that shows its options in groups, and still accepts those of version 0.2."""

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the options, in groups if there are many, the most used ones first."""
        options = [each for each in self.get_params(ctx) if isinstance(each, click.Option)]
        shown = {max(each.opts, key=len): each.get_help_record(ctx) for each in options}
        records = {name: record for name, record in shown.items() if record}
        groups = load_options()["groups"] if len(records) > _MANY_OPTIONS else {}
        for title, names in (groups | {"Other options" if groups else "Options": ""}).items():
            chosen = [name for name in records if not names or name[2:] in names.split()]
            if chosen:
                with formatter.section(title):
                    formatter.write_dl([records.pop(name) for name in chosen])

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        known = {name for option in self.params for name in option.opts}
        for place, arg in enumerate(args):
            old, equals, text = arg.partition("=")
            new = RENAMED.get(old)
            if new in known and old not in known:
                print_line(f"Warning: {old} is now {new}; version 0.4 will remove the old name")
                args[place] = f"{new}{equals}{text}"
        return super().parse_args(ctx, args)


class _OneLineErrors(click.Group):
    """A group whose commands report an error as one line on standard error, not as a traceback."""

    command_class = _Command

    def add_command(self, cmd: click.Command, name: str | None = None) -> None:
        """Add the flags of all commands: --debug is accepted before or after the command name."""
        cmd.params += map(_make_flag, _FLAGS)
        super().add_command(cmd, name)

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002
        """The commands in the order of use, without second names of a command."""
        return [name for name in _ORDER if name in self.commands]

    def invoke(self, ctx: click.Context) -> Any:
        with warnings.catch_warnings():
            # warnings of this package are part of the result: Python's other filters do not apply
            warnings.simplefilter("always", IcscmWarning)
            warnings.showwarning = _make_printer()
            try:
                found = super().invoke(ctx)
                if ctx.meta.get("json"):
                    found = {"written": ctx.meta.get("written", [])} if found is None else found
                    click.echo(dump_json(found, indent=2))
                sys.stdout.flush()
                return found
            # the reader, such as `head`, has closed the pipe; rich makes it a SystemExit
            except (BrokenPipeError, SystemExit):
                _discard_output()
                return 0
            except Exception as error:
                if isinstance(error, IcscmError) or not is_short_of_memory(error):
                    raise
                options = self.commands[ctx.invoked_subcommand or ""].params
                names = {name for option in options for name in option.opts}
                advice = [words for name, words in _SAVING.items() if name in names]
                advice.append("use fewer rows")
                raise IcscmError(f"out of memory; {'; '.join(advice)}") from error

    def main(self, args: Sequence[str] | None = None, *more: Any, **extra: Any) -> Any:
        run: Any = super().main
        if not extra.pop("standalone_mode", True):
            return run(args, *more, standalone_mode=False, **extra)
        is_debug = "--debug" in (sys.argv[1:] if args is None else args)
        for stream in (sys.stdout, sys.stderr):
            if isinstance(stream, io.TextIOWrapper):  # a name that cannot be encoded must not fail
                stream.reconfigure(errors="backslashreplace")
        try:
            status = run(args, *more, standalone_mode=False, **extra)
        except Exception as error:
            _end(error, is_debug=is_debug)
        sys.exit(status if isinstance(status, int) else 0)


def _end(error: Exception, *, is_debug: bool) -> NoReturn:
    if is_debug:
        lines = "".join(traceback.format_exception(error))
        click.echo(escape_controls(lines, keep="\n"), err=True, nl=False)
    if isinstance(error, click.Abort):
        print_line("Stopped.")
        number = getattr(error.__cause__, "args", ()) or (signal.SIGINT,)
        sys.exit(128 + number[0])  # as shells count
    print_line(f"Error: {_describe(error)}")
    try:
        sys.stdout.flush()
    except OSError:
        _discard_output()
    sys.exit(2)


def _discard_output() -> None:
    """What is left of standard output goes nowhere; Python would try to write it at the end."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _describe(error: Exception) -> str:
    """What was wrong and what to do, on one line."""
    if isinstance(error, click.UsageError):
        command = error.ctx.command_path if error.ctx else "icscm"
        text = error.format_message()
        stop = "" if text.rstrip().endswith((".", "?", "!")) else "."
        return f"{text}{stop} See '{command} --help'."
    if isinstance(error, click.ClickException):
        return error.format_message()
    if isinstance(error, IcscmError):
        return error.render(name_option)
    if isinstance(error, OSError) and error.errno in FULL:
        return f"no space left on device: {error.filename or 'standard output'} is incomplete"
    if isinstance(error, OSError | ValueError):
        return str(error) or type(error).__name__
    what = f"unexpected error ({type(error).__name__}: {error})"
    return f"{what}; run it again with --debug and report the traceback"


def _make_printer() -> Callable[..., None]:
    """A function that prints each warning once, on one line."""
    shown: set[str] = set()

    def show(message: Warning | str, *_: Any, **__: Any) -> None:
        text = message.render(name_option) if isinstance(message, IcscmWarning) else str(message)
        if text not in shown:
            shown.add(text)
            print_line(f"Warning: {text}")

    return show


# Flags of every command.
_FLAGS = {
    "json": "Print the result as JSON, and nothing else, on standard output.",
    "debug": "On an error, show the traceback.",
}

# A command with more options than this has them in groups in its help.
_MANY_OPTIONS = 20
# Options that need less memory.
_SAVING = {
    "--max-memory": "set a smaller --max-memory, with which files are read in passes",
    "--only": "use fewer columns (--only, --drop)",
    "--n-samples": "set fewer --n-samples",
    "--n-jobs": "set fewer --n-jobs",
}

# Of the commands in the help.
_ORDER = (
    "demo", "check", "screen", "fit", "compare", "show", "evaluate", "recalibrate", "predict",
    "export", "pack", "simulate", "datasets",
)  # fmt: skip


@click.group(
    cls=_OneLineErrors,
    invoke_without_command=True,
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog="Each command has its own help: icscm fit --help.",
)
@click.version_option(
    __version__, "-V", "--version", prog_name="icscm", help="Show the version and exit."
)
@click.pass_context
def main(ctx: click.Context) -> None:
    """Find shortcuts in data from several environments, and learn models without them.

    From a table collected in several environments (hospitals, countries, years), screen the
    columns of any classifier for associations that are specific to some of them, or learn a rule
    such as "age > 63 and smoker == yes", a tree, a forest or a points score that predicts a
    yes-or-no outcome.

    \b
    A first session:
      icscm demo
      icscm check data.csv --target ill --environment hospital
      icscm screen data.csv --target ill --environment hospital
      icscm fit data.csv --target ill --environment hospital \\
          --out model.json --report report.html
      icscm predict model.json new.csv --out predictions.csv
    """
    if ctx.invoked_subcommand is None:
        click.echo(ctx.get_help())


main.params.append(_make_flag("debug"))
