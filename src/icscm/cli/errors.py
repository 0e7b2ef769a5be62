"""How commands end: what went wrong and what to do about it, on one line of standard error."""

import os
import signal
import sys
import traceback
from collections.abc import Callable
from typing import Any, NoReturn

import click

from icscm.cli.console import print_line
from icscm.exceptions import IcscmError, IcscmWarning, Parameter
from icscm.formatting import escape_controls
from icscm.writing import FULL

# How the command line calls what is not an option of the same name.
_OPTION_NAMES = {
    "X": "the table",
    "y": "the target",
    "n_causes": "--n-parents",
    "n_hospitals": "--n-environments",
    "a regressor": "--outcome number",
    "a categorical column": "named in --categories",
    "SCMClassifier": "--model scm",
    "InvariantTreeClassifier": "--model tree",
    "InvariantFeatureSelector": "icscm screen",
    "folds": "--cv-folds",
    "icscm.validation.checkup.check_environments": "icscm check",
    "icscm.validation.tuning.grid_search": "--cv p=0.1,1,balanced",
}
# Values of parameters that are flags on the command line.
_FLAGS = {Parameter("unknown", "allow"): "--allow-unknown"}

# Exit statuses: a wrong use or wrong data, and what shells add to the number of a signal.
_FAILED = 2
_STOPPED_BY_SIGNAL = 128


def name_option(parameter: Parameter) -> str:
    """A parameter as the option that sets it.

    >>> name_option(Parameter("search", "greedy")), name_option(Parameter("max_rules"))
    ('--search greedy', '--max-rules')
    >>> name_option(Parameter("margin", None)), name_option(Parameter("force", True))
    ('--margin none', '--force')
    >>> name_option(Parameter("unknown", "allow"))
    '--allow-unknown'
    """
    if parameter in _FLAGS:
        return _FLAGS[parameter]
    name, value = parameter
    option = _OPTION_NAMES.get(name, f"--{name.replace('_', '-')}")
    if value is ... or value is True:
        return option
    return f"{option} {'none' if value is None else value}"


def make_warning_printer() -> Callable[..., None]:
    """Return a function that prints each warning once, on one line."""
    shown: set[str] = set()

    def show(message: Warning | str, *_: Any, **__: Any) -> None:
        text = message.render(name_option) if isinstance(message, IcscmWarning) else str(message)
        if text not in shown:
            shown.add(text)
            print_line(f"Warning: {text}")

    return show


def end_with(error: Exception, *, is_debug: bool) -> NoReturn:
    """Say what went wrong, and exit."""
    if is_debug:
        lines = "".join(traceback.format_exception(error))
        click.echo(escape_controls(lines, keep="\n"), err=True, nl=False)
    if isinstance(error, click.Abort):
        print_line("Stopped.")
        sys.exit(_STOPPED_BY_SIGNAL + _find_signal(error))
    print_line(f"Error: {describe_error(error)}")
    try:
        sys.stdout.flush()
    except OSError:
        discard_output()
    sys.exit(_FAILED)


def _find_signal(stopped: click.Abort) -> int:
    """The number of the signal, which the program puts into its KeyboardInterrupt."""
    cause = stopped.__cause__
    if isinstance(cause, KeyboardInterrupt) and cause.args:
        return int(cause.args[0])
    return signal.SIGINT


def discard_output() -> None:
    """Let the rest of standard output go nowhere; Python would try to write it at the end."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def describe_error(error: Exception) -> str:
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
