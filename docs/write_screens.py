"""Run the pages that say so and write down what was printed; take the picture of a report.

    python docs/write_screens.py            or  make screens

A page that holds the comment <!-- screens --> is run from top to bottom in an empty folder: the
lines of its ```bash blocks are commands of icscm, its ```python blocks one program. A ```text block
right after one shows what it printed, at 80 columns; where it ends in a line "..", only as many
lines as it has. Commands that are not to be run stand in ```sh blocks. The tests fail when a page
does not say what is printed.
"""

from __future__ import annotations

import contextlib
import io
import re
import shlex
import shutil
import subprocess
import tempfile
import warnings
from pathlib import Path
from typing import Any

from click.testing import CliRunner

from icscm.cli import main

ROOT = Path(__file__).parents[1]
MARK = "<!-- screens -->"
MORE = ".."
PICTURE = ROOT / "docs" / "figures" / "report.png"
PICTURE_SIZE = 1100, 855
BLOCK = re.compile(r"```(bash|python)\n(.*?)```\n(\n```text\n(.*?)```\n)?", re.DOTALL)


def find_pages() -> list[Path]:
    """All pages that are run."""
    pages = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
    return [page for page in pages if MARK in page.read_text(encoding="utf-8")]


def make_page(text: str, folder: Path) -> str:
    """A page with what its blocks print when they are run in a folder."""
    program: dict[str, Any] = {"__name__": "__main__"}

    def run(block: re.Match[str]) -> str:
        kind, code, output_block, shown = block.groups()
        printed = run_commands(code) if kind == "bash" else run_python(code, program)
        code_block = f"```{kind}\n{code}```\n"
        if not output_block:
            return code_block
        return f"{code_block}\n```text\n{cut(printed, shown)}```\n"

    with contextlib.chdir(folder), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return BLOCK.sub(run, text)


def run_commands(lines: str) -> str:
    """What commands of icscm print, one after the other: results, and the files written."""
    printed = ""
    for line in lines.replace("\\\n", " ").splitlines():
        words = shlex.split(line, comments=True)
        if words[:1] != ["icscm"]:
            raise ValueError(f"only icscm is run; put this in a block of sh: {line}")
        done = CliRunner().invoke(main, words[1:], env={"COLUMNS": "80"})
        if done.exit_code:
            raise ValueError(f"{line}: {done.output}")
        written = re.findall(r"^Written: .*\n(?: .*\n)*", done.stderr, re.MULTILINE)
        printed += "".join([done.stdout, *written])
    return printed


def run_python(code: str, program: dict[str, Any]) -> str:
    """What code prints; names live on in the program."""
    with contextlib.redirect_stdout(io.StringIO()) as stream:
        exec(code, program)
    return stream.getvalue()


def cut(printed: str, shown: str) -> str:
    """The first lines only where the page shows no more of them; no spaces at the end of lines."""
    lines = [line.rstrip() for line in printed.strip("\n").splitlines()]
    before = shown.splitlines()
    if before and before[-1] == MORE:
        lines = [*lines[: len(before) - 1], MORE]
    return "".join(f"{line}\n" for line in lines)


def take_picture(report: Path) -> None:
    """The report's first screen, in few colours to be small."""
    from PIL import Image

    browser = shutil.which("chromium") or shutil.which("chromium-browser")
    if browser is None:
        raise SystemExit("No Chromium here: the picture of the report stays as it is.")
    width, height = PICTURE_SIZE
    with tempfile.TemporaryDirectory() as folder:
        shot = Path(folder, "shot.png")
        options = "--headless", "--no-sandbox", "--hide-scrollbars", f"--screenshot={shot}"
        size = f"--window-size={width},{height}"
        subprocess.run([browser, *options, size, report.as_uri()], check=True, capture_output=True)
        Image.open(shot).convert("RGB").quantize(64).save(PICTURE, optimize=True)


if __name__ == "__main__":
    for path in find_pages():
        with tempfile.TemporaryDirectory() as folder:
            page = make_page(path.read_text(encoding="utf-8"), Path(folder))
            path.write_text(page, encoding="utf-8")
            if path.name == "README.md":
                take_picture(Path(folder, "report.html"))
