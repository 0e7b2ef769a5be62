"""Hold the public docstrings to the numpydoc form; every page of the reference has an example.

    python docs/check_docstrings.py

Prints one line for each docstring at fault and the number of those looked at; exits with 1 if any
is at fault. What is inherited from other packages is not ours to check.
"""

from __future__ import annotations

import doctest
import functools
import inspect
import pkgutil
import re
import sys
import warnings
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

from numpydoc.docscrape import get_doc_object
from numpydoc.validate import validate

from icscm.engine.counts import RowSource

PACKAGE = "icscm"
# The names of the package itself, and of the modules that are meant to be imported by name.
PUBLIC_MODULES = ("icscm", "icscm.datasets", "icscm.sources", "icscm.testing")

REFERENCE = Path(__file__).parent / "api"
# A module, and what a list under it names.
LISTED = re.compile(
    r"^\.\. currentmodule:: (\S+)\n\n\.\. autosummary::\n(?: +:.*\n)+\n((?: +[\w.]+\n)+)",
    re.MULTILINE,
)

# Left out on purpose: where the quotes stand (GL01, GL02: ruff's matter), verbs in the summary
# (SS05: nouns are fine), capitals and full stops within sections (PR08, PR09, RT04, RT05), and
# sections that not every docstring needs (ES01, SA01).
CHECKS = frozenset(
    (
        *("GL03", "GL05", "GL06", "GL07", "GL08", "GL10"),  # existence, known sections, layout
        *("SS01", "SS02", "SS03", "SS04", "SS06"),  # a summary: one line, a capital, a full stop
        *("PR01", "PR02", "PR03", "PR04", "PR05", "PR06", "PR07", "PR10"),  # parameters
        *("RT01", "RT03", "YD01"),  # what comes back
    )
)


def find_entries() -> Iterator[str]:
    """The dotted names of public functions and classes, each of which has a page on the site."""
    for module_name in PUBLIC_MODULES:
        module = import_module(module_name)
        for name in list_public(module):
            thing = getattr(module, name)
            # ruff asks for modules' docstrings, and constants have none
            if callable(thing) and not isinstance(thing, ModuleType):
                yield f"{module_name}.{name}"


def list_reference(folder: Path = REFERENCE) -> Iterator[str]:
    """The dotted names that pages of the reference list; each has a page of its own."""
    for page in sorted(folder.glob("*.md")):
        for module, listed in LISTED.findall(page.read_text(encoding="utf-8")):
            yield from (f"{module}.{name}" for name in listed.split())


def has_example(name: str) -> bool:
    """Whether a docstring has an example that the tests run; what is deprecated needs none."""
    text = inspect.getdoc(pkgutil.resolve_name(name)) or ""
    examples = doctest.DocTestParser().get_examples(text)
    is_run = any(not example.options.get(doctest.SKIP) for example in examples)
    return is_run or text.startswith("Deprecated")


def find_names() -> Iterator[str]:
    """The dotted names to check: functions, classes, and the classes' own members."""
    seen: set[int] = set()
    for name in find_entries():
        thing = find_thing(name)
        if id(thing) in seen:
            continue
        seen.add(id(thing))
        yield name
        if inspect.isclass(thing):
            yield from (f"{name}.{member}" for member in find_members(thing, seen))


def list_public(module: ModuleType) -> list[str]:
    """What a module says is public, or else the functions and classes that it defines."""
    if hasattr(module, "__all__"):
        return list(module.__all__)
    return [
        name
        for name, thing in vars(module).items()
        if not name.startswith("_")
        and (inspect.isfunction(thing) or inspect.isclass(thing))
        and thing.__module__ == module.__name__
    ]


def find_members(owner: type, seen: set[int]) -> Iterator[str]:
    """Public methods and properties that the package itself defines, each once."""
    for base in owner.__mro__:
        if not is_ours(base):
            continue
        for name, member in vars(base).items():
            function = find_function(member)
            if name.startswith("_") or function is None:
                continue
            is_overridden = find_function(inspect.getattr_static(owner, name)) is not function
            if is_overridden or not needs_docstring(name, function):
                continue
            if id(function) not in seen:
                seen.add(id(function))
                yield name


def needs_docstring(name: str, function: Any) -> bool:
    """Whether a function of a class has to be described there."""
    if not is_ours(function):
        return False
    if function.__name__ == "<lambda>":  # the default of a field
        return False
    is_described_in_protocol = not function.__doc__ and hasattr(RowSource, name)
    return not is_described_in_protocol


def find_function(member: Any) -> Any:
    """The function behind a method or a property; None for anything else."""
    if inspect.isfunction(member):
        function: Any = member
    elif isinstance(member, property):
        function = member.fget
    elif isinstance(member, functools.cached_property):
        function = member.func
    elif isinstance(member, classmethod | staticmethod):
        function = member.__func__
    else:
        function = getattr(member, "fn", None)  # scikit-learn's available_if
    return inspect.unwrap(function) if inspect.isfunction(function) else None


def is_ours(thing: Any) -> bool:
    """Whether the package defines it."""
    return str(thing.__module__).partition(".")[0] == PACKAGE


def find_faults(name: str) -> list[str]:
    """What is wrong with one docstring, code first; nothing if it is fine."""
    checks = CHECKS
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")  # numpydoc warns of sections it cannot make out
            errors = validate(name)["errors"]
            silent = find_silent_raises(name)
    except (ValueError, UserWarning) as error:
        return [f"cannot be parsed: {' '.join(str(error).split())}"]
    if "Attributes\n" in (find_thing(name).__doc__ or ""):  # what comes back tells its fields there
        checks = checks - {"PR01"}
    faults = [f"{code} {' '.join(text.split())}" for code, text in errors if code in checks]
    return faults + [f"Raises: {exception!r} has no description" for exception in silent]


def find_silent_raises(name: str) -> list[str]:
    """The exceptions in the Raises section of which nothing is said."""
    entries = get_doc_object(find_thing(name))["Raises"]
    return [entry.type or entry.name for entry in entries if not entry.desc]


def find_thing(name: str) -> Any:
    """What a dotted name stands for."""
    modules = [module for module in PUBLIC_MODULES if name.startswith(f"{module}.")]
    module = max(modules, key=len)
    path = name.removeprefix(f"{module}.").split(".")
    return functools.reduce(getattr, path, import_module(module))


def main() -> int:
    """Check all, print what is wrong, and return the exit status."""
    names = list(find_names())
    assert names, "no names were found to check"
    n_faulty = 0
    for name in names:
        faults = find_faults(name)
        if faults:
            n_faulty += 1
            print(f"{name}: {'; '.join(faults)}")

    listed = list(list_reference())
    without_example = [name for name in listed if not has_example(name)]
    for name in without_example:
        print(f"{name}: has a page in the reference and no example that is run")
    print(f"{len(names)} docstrings checked, {n_faulty} at fault.")
    print(
        f"{len(listed)} pages of the reference, {len(without_example)} without an example that is "
        "run."
    )
    return 1 if n_faulty or without_example else 0


if __name__ == "__main__":
    sys.exit(main())
