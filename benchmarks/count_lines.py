"""Count lines of code: without docstrings, comments and blank lines.

    python benchmarks/count_lines.py                      src/icscm, by package
    python benchmarks/count_lines.py FOLDER               another folder
    python benchmarks/count_lines.py --check              fail above the limits of this project
    python benchmarks/count_lines.py --check --code 20000 --body 60

A function's body is counted in the same way, with the functions inside it. The longest file is in
lines of any kind.
"""

from __future__ import annotations

import argparse
import ast
import io
import sys
import tokenize
from collections import Counter
from pathlib import Path
from statistics import median
from typing import NamedTuple

SOURCE = Path(__file__).parents[1] / "src" / "icscm"
# Lines of code of all files, of a file with all its lines, of a function's body, and its median.
LIMITS = {"code": 22_000, "file": 450, "body": 50, "median": 6}
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
DOCUMENTED = (ast.Module, ast.ClassDef, *FUNCTIONS)
NO_CODE = {
    *(tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT),
    tokenize.ENDMARKER,
}


class File(NamedTuple):
    path: Path
    n_code: int
    n_lines: int
    bodies: dict[str, int]


def read_file(path: Path) -> File:
    text = path.read_text(encoding="utf-8")
    tree = ast.parse(text)
    code = find_code_lines(text, tree)
    bodies = {
        f"{path}:{node.lineno} {node.name}": sum(
            line in code for line in range(node.body[0].lineno, (node.end_lineno or 0) + 1)
        )
        for node in ast.walk(tree)
        if isinstance(node, FUNCTIONS)
    }
    return File(path, len(code), len(text.splitlines()), bodies)


def find_code_lines(text: str, tree: ast.Module) -> set[int]:
    """The numbers of the lines that hold code."""
    found: set[int] = set()
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type not in NO_CODE:
            found.update(range(token.start[0], token.end[0] + 1))
    for node in ast.walk(tree):
        if isinstance(node, DOCUMENTED) and ast.get_docstring(node, clean=False) is not None:
            docstring = node.body[0]
            found.difference_update(range(docstring.lineno, (docstring.end_lineno or 0) + 1))
    return found


def count(folder: Path) -> tuple[list[str], dict[str, float]]:
    """A report, and the numbers that have limits."""
    files = [read_file(path) for path in sorted(folder.rglob("*.py"))]
    packages, n_files = Counter(), Counter()
    for file in files:
        package = str(file.path.relative_to(folder).parent)
        packages[package] += file.n_code
        n_files[package] += 1
    bodies = {name: n for file in files for name, n in file.bodies.items()}
    longest_body = max(bodies, key=bodies.__getitem__)
    longest_file = max(files, key=lambda file: file.n_lines)
    total = sum(packages.values())
    lines = [f"{name:32}{packages[name]:8,}{n_files[name]:6,} files" for name in sorted(packages)]
    lines += [
        f"{'total':32}{total:8,}{len(files):6,} files",
        "",
        f"functions           {len(bodies):,}",
        f"body, median        {median(bodies.values()):g}",
        f"body, maximum       {bodies[longest_body]} ({longest_body})",
        f"longest file        {longest_file.n_lines} ({longest_file.path})",
    ]
    numbers = {"code": total, "file": longest_file.n_lines, "body": bodies[longest_body]}
    return lines, numbers | {"median": median(bodies.values())}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", nargs="?", type=Path, default=SOURCE)
    parser.add_argument("--check", action="store_true", help="fail above the limits")
    for name, limit in LIMITS.items():
        parser.add_argument(f"--{name}", type=float, default=limit, help=f"default: {limit:,}")
    options = parser.parse_args()
    lines, numbers = count(options.folder)
    print("\n".join(lines))
    limits = {name: getattr(options, name) for name in LIMITS}
    above = [f"{name} {n:g} > {limits[name]:g}" for name, n in numbers.items() if n > limits[name]]
    if options.check and above:
        print(f"above the limits: {', '.join(above)}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
