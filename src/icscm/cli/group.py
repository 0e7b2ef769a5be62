"""The command `icscm`: a group of commands, with flags that all of them have."""

import io
import signal
import sys
import warnings
from collections.abc import Sequence
from typing import Any

import click

from icscm._changes import REMOVED_OPTIONS
from icscm._version import __version__
from icscm.cli.errors import discard_output, end_with, make_warning_printer
from icscm.cli.errors import name_option as name_option
from icscm.cli.options import GroupedOption, list_groups
from icscm.exceptions import IcscmError, IcscmWarning, is_short_of_memory
from icscm.formatting import dump_json

# The commands of the help, in the order of use.
_ORDER = (
    "demo",
    "check",
    "screen",
    "fit",
    "compare",
    "show",
    "evaluate",
    "recalibrate",
    "predict",
    "export",
    "pack",
    "simulate",
    "datasets",
)
# A command with more options than this has them in groups in its help.
_MANY_OPTIONS = 20
_OTHER_GROUP = "Other options"
# What shells say of a program that Ctrl-C ended: 128 and the number of the signal.
_STOPPED_BY_CTRL_C = 128 + signal.SIGINT
# What an option can do where memory is short.
_ADVICE_ON_MEMORY = {
    "--max-memory": "set a smaller --max-memory, with which files are read in passes",
    "--only": "use fewer columns (--only, --drop)",
    "--n-samples": "set fewer --n-samples",
    "--n-jobs": "set fewer --n-jobs",
}


def make_json_flag() -> click.Option:
    """Return the flag --json: commands print their result, and nothing else on standard output."""
    text = "Print the result as JSON, and nothing else, on standard output."
    return _make_flag("json", text, group="Output and validation")


def make_debug_flag() -> click.Option:
    """Return the flag --debug, accepted before and after the name of a command."""
    return _make_flag("debug", "On an error, show the traceback.")


def _make_flag(name: str, text: str, group: str = "") -> click.Option:
    """Make a flag whose value goes to the context, where functions without arguments find it.

    Each command gets one of its own, since click keeps state in it.
    """

    def keep_in_context(ctx: click.Context, _: click.Parameter, value: bool) -> None:
        ctx.meta[name] = value

    return GroupedOption(
        [f"--{name}"],
        is_flag=True,
        expose_value=False,  # commands need no argument for it
        callback=keep_in_context,
        help=text,
        group=group,
    )


class _Command(click.Command):
    """A command that shows its options in groups if there are many, and knows those of 0.3."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Read the options; one that is gone is an error that says what replaces it."""
        try:
            return super().parse_args(ctx, args)
        except click.NoSuchOption as error:
            name = error.option_name.lstrip("-").replace("-", "_")
            if name not in REMOVED_OPTIONS:
                raise
            why = f"there is no {error.option_name} any more: {REMOVED_OPTIONS[name]}"
            raise IcscmError(why) from None

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the options, the most used ones first."""
        options = [option for option in self.get_params(ctx) if isinstance(option, click.Option)]
        if len(options) <= _MANY_OPTIONS:
            _write_options("Options", options, ctx, formatter)
            return
        for title in list_groups():
            options_of_group = [option for option in options if _find_group(option) == title]
            _write_options(title, options_of_group, ctx, formatter)
        other_options = [option for option in options if not _find_group(option)]
        _write_options(_OTHER_GROUP, other_options, ctx, formatter)


def _find_group(option: click.Option) -> str:
    """The group of an option in the help; that of click's own --help is empty."""
    return option.group if isinstance(option, GroupedOption) else ""


def _write_options(
    title: str, options: list[click.Option], ctx: click.Context, formatter: click.HelpFormatter
) -> None:
    """Write a section of the help, unless all of its options are hidden."""
    records = [option.get_help_record(ctx) for option in options]
    shown_records = [record for record in records if record is not None]
    if shown_records:
        with formatter.section(title):
            formatter.write_dl(shown_records)


class _Group(click.Group):
    """A group whose commands report an error as one line on standard error, not as a traceback."""

    command_class = _Command

    def add_command(self, cmd: click.Command, name: str | None = None) -> None:
        """Add a command, with the flags of all commands."""
        cmd.params += [make_json_flag(), make_debug_flag()]
        super().add_command(cmd, name)

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002
        """The commands in the order of use, without second names of a command."""
        return [name for name in _ORDER if name in self.commands]

    def invoke(self, ctx: click.Context) -> Any:
        """Run a command; print its result if --json is given.

        Warnings of this package are part of the result: each is printed once, whatever Python's
        other filters say. A lack of memory becomes an error that says how to need less.
        """
        with warnings.catch_warnings():
            warnings.simplefilter("always", IcscmWarning)
            warnings.showwarning = make_warning_printer()
            try:
                result = super().invoke(ctx)
                if ctx.meta.get("json"):
                    _print_json(ctx, result)
                sys.stdout.flush()
                if is_interrupted(ctx):
                    return _STOPPED_BY_CTRL_C
            except (BrokenPipeError, SystemExit):
                # The reader, such as `head`, has closed the pipe; rich makes it a SystemExit.
                discard_output()
                return 0
            except Exception as error:
                if isinstance(error, IcscmError) or not is_short_of_memory(error):
                    raise
                advice = self._advise_on_memory(ctx)
                raise IcscmError(f"out of memory; {advice}") from error
            return result

    def _advise_on_memory(self, ctx: click.Context) -> str:
        """How to need less memory, by the options that the command has."""
        command = self.commands[ctx.invoked_subcommand or ""]
        names = {name for option in command.params for name in option.opts}
        advice = [text for name, text in _ADVICE_ON_MEMORY.items() if name in names]
        return "; ".join([*advice, "use fewer rows"])

    def main(
        self, args: Sequence[str] | None = None, *more_args: Any, **click_settings: Any
    ) -> Any:
        """Run the program and exit with its status; in click's other mode, return or raise."""
        run: Any = super().main
        is_program = click_settings.pop("standalone_mode", True)
        if not is_program:
            return run(args, *more_args, standalone_mode=False, **click_settings)

        for stream in (sys.stdout, sys.stderr):
            if isinstance(stream, io.TextIOWrapper):  # a name that cannot be encoded must not fail
                stream.reconfigure(errors="backslashreplace")
        words = sys.argv[1:] if args is None else args
        try:
            # click's own mode for programs would report errors in its own way
            status = run(args, *more_args, standalone_mode=False, **click_settings)
        except Exception as error:
            end_with(error, is_debug="--debug" in words)
        sys.exit(status if isinstance(status, int) else 0)


def mark_interrupted() -> None:
    """Let the program exit as after Ctrl-C, once the command has shown what it has."""
    click.get_current_context().meta["is_interrupted"] = True


def is_interrupted(ctx: click.Context) -> bool:
    """Whether Ctrl-C ended the work of a command, which showed what it had."""
    return bool(ctx.meta.get("is_interrupted"))


def _print_json(ctx: click.Context, result: Any) -> None:
    """Print what a command returned or, if nothing, the names of the files that it wrote."""
    if result is None:
        result = {"written": ctx.meta.get("written", [])}
    click.echo(dump_json(result, indent=2))


@click.group(
    cls=_Group,
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


main.params.append(make_debug_flag())
