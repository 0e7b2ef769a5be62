"""The help of the command line is complete, and its page in the docs is up to date."""

import importlib.util
import inspect
import re
import shlex
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

import icscm
from icscm.cli import main, options
from icscm.cli.learners import MODELS
from icscm.datasets import make_conjunction, make_hospitals
from icscm.parameters import get_spec, list_model_parameters

ROOT = Path(__file__).parents[2]
COMMANDS = sorted(main.list_commands(click.Context(main)))


def load_writer():
    spec = importlib.util.spec_from_file_location("write_cli", ROOT / "docs" / "write_cli.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_page_is_up_to_date():
    """If this fails: python docs/write_cli.py."""
    page = (ROOT / "docs" / "cli.md").read_text(encoding="utf-8")
    # versions of click may break lines elsewhere, or bracket a command that may be left out
    texts = [text.replace("[COMMAND]", "COMMAND") for text in (page, load_writer().make_page())]
    assert texts[0].split() == texts[1].split()


def test_all_commands_of_the_issue_are_there():
    assert {*COMMANDS} == {
        "check", "compare", "datasets", "demo", "evaluate", "export", "fit", "pack", "predict",
        "recalibrate", "screen", "show", "simulate",
    }  # fmt: skip


def test_report_is_another_name_of_fit():
    assert main.commands["report"] is main.commands["fit"]
    shown = CliRunner().invoke(main, ["report", "--help"]).output
    assert " report [OPTIONS] DATA" in shown.splitlines()[0]
    assert "--tripod FILE" in shown


@pytest.mark.parametrize("model", MODELS)
def test_every_parameter_of_a_learner_is_an_option(model):
    names = set(inspect.signature(getattr(icscm, MODELS[model].class_name)).parameters)
    options = {each.name for each in main.commands["fit"].params}
    assert names <= options


@pytest.mark.parametrize("name", COMMANDS)
def test_a_command_has_prose_an_example_and_help_for_each_option(name):
    command = main.commands[name]
    prose, _, example = command.help.partition("Example")
    assert len(prose.split()) > 8
    assert f"icscm {name}" in example
    for parameter in command.params:
        if isinstance(parameter, click.Option):
            assert parameter.help, parameter.name
            assert parameter.help.endswith((".", "]", "..")), parameter.help
    lines = CliRunner().invoke(main, [name, "--help"]).output.splitlines()
    assert max(map(len, lines)) <= 80


@pytest.mark.parametrize("name", COMMANDS)
def test_defaults_are_shown(name):
    for parameter in main.commands[name].params:
        has_default = isinstance(parameter, click.Option) and not parameter.is_flag
        if has_default and not parameter.required and not parameter.multiple:
            shown = parameter.show_default or "[default: " in parameter.help
            is_plain = parameter.name in ("out", "report", "tripod", "environment", "cv")
            assert shown or is_plain, parameter.name


def test_every_entry_of_the_registry_is_an_option():
    """An entry that no command has would be help that nobody reads."""
    registry = {**options.load_options()}
    assert registry.pop("groups")
    opts = {name: {o for p in each.params for o in p.opts} for name, each in main.commands.items()}
    for name, entry in registry.items():
        if name in opts:
            assert {f"--{each.replace('_', '-')}" for each in entry} <= opts[name]
        else:
            assert any(f"--{name.replace('_', '-')}" in each for each in opts.values()), name


@pytest.mark.parametrize("model", MODELS)
def test_the_registry_names_the_models_of_each_parameter(model):
    """So that the command line knows them without loading the learners."""
    signature = inspect.signature(getattr(icscm, MODELS[model].class_name)).parameters
    named = {name for name in list_model_parameters() if model in get_spec(name).models}
    assert named <= {*signature}
    everywhere = {"random_state"}  # an option of its own, for other steps, too
    in_python_only = {"feature_weights", "screen"}
    assert {*signature} - named <= everywhere | in_python_only


@pytest.mark.parametrize("make", [make_conjunction, make_hospitals])
def test_options_of_simulate_have_the_parameters_names(make):
    known = {parameter.name for parameter in main.commands["simulate"].params}
    renamed = {"n_hospitals": "n_environments", "n_causes": "n_parents"}
    without = {"risk", "n_new_rows"}
    wanted = {renamed.get(name, name) for name in inspect.signature(make).parameters}
    assert wanted - without <= known


def list_examples():
    """The lines after "Example:" of each command, continued lines joined."""
    for name in COMMANDS:
        text = main.commands[name].help.partition("Example")[2].partition("\n")[2]
        for line in text.replace("\\\n", " ").splitlines():
            if line.strip().startswith("icscm"):
                yield line.strip()


@pytest.mark.parametrize("line", list(list_examples()))
def test_examples_can_be_parsed(line):
    """Options in examples exist; nothing is run."""
    _, name, *arguments = shlex.split(line)
    with click.Context(main) as parent:
        main.commands[name].make_context(name, arguments, parent=parent, resilient_parsing=False)


def test_every_option_of_fit_is_in_a_group_of_its_help():
    """`icscm fit --help` was a list of 60 options without an order."""
    groups = {
        each.name: each.group
        for each in main.commands["fit"].params
        if isinstance(each, options.GroupedOption)
    }
    assert {name for name, group in groups.items() if group not in options.list_groups()} == {
        "debug"
    }
    titles = re.findall(
        r"^(\S.*):$", CliRunner().invoke(main, ["fit", "--help"]).output, re.MULTILINE
    )
    assert titles == [*options.list_groups(), "Other options"]
