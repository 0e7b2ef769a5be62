"""What the README and the pages show is what is printed."""

import importlib.util
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def load_writer(name):
    spec = importlib.util.spec_from_file_location(name, ROOT / "docs" / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


screens = load_writer("write_screens")
PAGES = {page.relative_to(ROOT).as_posix(): page for page in screens.find_pages()}
START = ["install", "five-minutes", "from-a-file", "from-a-frame", "which-estimator"]


def test_the_readme_and_the_first_pages_are_run():
    assert {"README.md", *(f"docs/start/{name}.md" for name in START)} <= set(PAGES)


def test_the_guides_and_the_questions_are_run():
    guides = (ROOT / "docs" / "guide").glob("*.md")
    names = {f"docs/guide/{guide.name}" for guide in guides if guide.stem != "index"}
    assert len(names) >= 10
    assert {"docs/faq.md", *names} <= set(PAGES)


@pytest.mark.thorough
@pytest.mark.filterwarnings("default")
@pytest.mark.parametrize("name", PAGES)
def test_a_page_shows_what_is_printed(name, tmp_path):
    """If this fails: make screens."""
    page = PAGES[name].read_text(encoding="utf-8")
    if name == "README.md":  # shows nothing of its fit, which from-a-file.md does with as many rows
        page = page.replace("--n-rows 40000", "--n-rows 1000")
    assert screens.make_page(page, tmp_path) == page
    if name == "README.md":
        written = {path.name for path in tmp_path.iterdir()}
        assert written == {"admissions.csv", "report.html"}


@pytest.mark.parametrize("name", PAGES)
def test_a_page_shows_nothing_that_is_not_run(name):
    """A block of output follows the block that prints it."""
    page = PAGES[name].read_text(encoding="utf-8")
    shown = [block for block in screens.BLOCK.finditer(page) if block[3]]
    assert page.count("```text") == len(shown)
    assert shown
    assert max(len(line) for block in shown for line in block[4].splitlines()) <= 110


def test_the_targets_of_make_exist():
    makefile = (ROOT / "Makefile").read_text()
    pages = "".join(page.read_text(encoding="utf-8") for page in PAGES.values())
    targets = set(re.findall(r"^make (\w+)", pages, re.MULTILINE))
    assert {"demo", "test"} <= targets
    for target in targets:
        assert f"\n{target}:" in makefile, target


@pytest.mark.parametrize("name", PAGES)
def test_figures_are_there_and_small(name):
    for target in re.findall(r"!\[[^]]*\]\(([^)]+)\)", PAGES[name].read_text(encoding="utf-8")):
        assert (PAGES[name].parent / target).stat().st_size < 150_000


def test_the_picture_of_estimators_is_up_to_date():
    """If this fails: make screens."""
    writer = load_writer("write_which_estimator")
    assert writer.PICTURE.read_text(encoding="utf-8") == writer.make_picture()


def test_the_pictures_of_benchmarks_show_the_numbers_of_their_pages():
    """If this fails: python docs/write_benchmarks.py."""
    pictures = [*load_writer("write_benchmarks").make_pictures()]
    assert len(pictures) == 3
    for path, picture in pictures:
        assert path.read_text(encoding="utf-8") == picture


@pytest.mark.parametrize(("shown", "expected"), [
    ("", "one\n two\n"),
    ("x\n", "one\n two\n"),
    ("x\n..\n", "one\n..\n"),
])  # fmt: skip
def test_screens_are_cut_where_the_page_shows_no_more(shown, expected):
    assert screens.cut("one  \n two\n\n", shown) == expected


def test_other_commands_and_failing_ones_are_errors(tmp_path):
    for block, message in (("rm x", "only icscm is run"), ("icscm show none.json", "none.json")):
        with pytest.raises(ValueError, match=message):
            screens.make_page(f"```bash\n{block}\n```\n", tmp_path)
