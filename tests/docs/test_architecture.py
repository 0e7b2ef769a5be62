"""The map of the code names files and functions; they must be there."""

import ast
import re
from pathlib import Path

import pytest

import icscm

PAGE = Path(__file__).parents[2] / "docs" / "background" / "architecture.md"
PACKAGE = Path(icscm.__file__).parent
REPOSITORY = Path(__file__).parents[2]
# `search/greedy.py`: `learn_conjunction`, or the file alone
MENTION = re.compile(r"`([\w/]+\.(?:py|toml))`(?:: `([\w.]+)`)?")
FOLDER = re.compile(r"`(tests/[\w/]+)`")


def list_mentions():
    return sorted(set(MENTION.findall(PAGE.read_text(encoding="utf-8"))))


def list_definitions(path):
    """The functions, classes and methods that a file defines, as `name` or `Class.name`."""
    definitions = set()
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            definitions.add(node.name)
        if isinstance(node, ast.ClassDef):
            methods = [item.name for item in node.body if isinstance(item, ast.FunctionDef)]
            definitions.update(f"{node.name}.{method}" for method in methods)
    return definitions


def test_the_map_mentions_the_ten_steps():
    assert len(list_mentions()) > 20


@pytest.mark.parametrize(("file", "name"), list_mentions())
def test_what_the_map_names_exists(file, name):
    assert (PACKAGE / file).exists()
    if name:
        assert name in list_definitions(PACKAGE / file)


def test_folders_of_tests_exist():
    folders = FOLDER.findall(PAGE.read_text(encoding="utf-8"))
    assert folders
    assert [folder for folder in folders if not (REPOSITORY / folder).is_dir()] == []


def test_every_package_is_on_the_map():
    text = PAGE.read_text(encoding="utf-8")
    packages = [path.parent.name for path in PACKAGE.glob("*/__init__.py")]
    assert packages
    assert [name for name in packages if f"| `{name}` |" not in text] == []
