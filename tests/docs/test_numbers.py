"""Numbers on pages are of this version."""

import importlib.util
from pathlib import Path

ROOT = Path(__file__).parents[2]


def load_checker():
    path = ROOT / "docs" / "check_numbers.py"
    spec = importlib.util.spec_from_file_location("check_numbers", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_pages_are_of_this_version():
    checker = load_checker()
    parts = [
        part for page in checker.list_pages() for part in checker.PART.findall(page.read_text())
    ]
    assert len(parts) >= 20
    assert [*checker.find_faults(checker.list_pages(), checker.__version__)] == []


def test_an_older_page_and_one_without_a_version_are_found(tmp_path):
    page = tmp_path / "page.md"
    old = "<!-- a -->\n\nMeasured with icscm 0.2.7.\n\n| x |\n<!-- end of a -->\n"
    without = "<!-- b: by make -->\n\n| x |\n\nicscm 0.3.0\n<!-- end of b -->\n"
    page.write_text(f"{old}\n{without}<!-- screens -->\n")
    assert [*load_checker().find_faults([page], "0.3.0")] == [
        "page.md, a: measured with icscm 0.2.7, the code is 0.3.0",
        "page.md, b: the version it was measured with is not stated",
    ]
    assert len([*load_checker().find_faults([page], "0.2.9")]) == 1
