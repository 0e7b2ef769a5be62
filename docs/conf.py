"""How the site is built: `make docs`."""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path
from typing import Any

import matplotlib

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE))
# what an example or a tutorial runs as a command is that of this very environment, 80 columns wide
os.environ["PATH"] = os.pathsep.join((str(Path(sys.executable).parent), os.environ["PATH"]))
os.environ["COLUMNS"] = "80"
matplotlib.use("agg")

from check_docstrings import find_function, is_ours  # noqa: E402
from docutils import nodes  # noqa: E402
from docutils.utils.math import MathError, latex2mathml  # noqa: E402
from sphinx.util.logging import getLogger  # noqa: E402

from icscm import __version__  # noqa: E402

project = "icscm"
author = "the authors of icscm"
copyright = author  # noqa: A001 (what Sphinx calls it)
version = release = __version__

extensions = [
    "myst_parser",
    "numpydoc",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx_design",
    "sphinx_gallery.gen_gallery",
]
exclude_patterns = ["_build", "_templates", "**/GALLERY_HEADER.*"]
templates_path = ["_templates"]
default_role = "py:obj"  # `name` in a docstring links to what it names, where that has a page
toc_object_entries_show_parents = "hide"
suppress_warnings = [
    "config.cache",  # the gallery's settings
    "myst.header",  # pages that scripts write skip a level of headings
]

myst_enable_extensions = [
    *("attrs_inline", "colon_fence", "deflist", "dollarmath", "fieldlist", "substitution")
]
myst_substitutions = {"version": __version__}
myst_heading_anchors = 3

autodoc_typehints = "none"  # numpydoc tells the types, in words
autodoc_member_order = "groupwise"
autosummary_generate = True
numpydoc_show_class_members = False  # the template lists them
numpydoc_class_members_toctree = False

# Tutorials on real data are run where their files are at hand, and shown without output elsewhere.
DATA = HERE.parents[1] / "shared" / "data"
if DATA.is_dir():
    os.environ.setdefault("ICSCM_DATA", str(DATA))
IS_RUN = r"\.py$" if "ICSCM_DATA" in os.environ else r"/(?!0[1-4]_)[^/]*\.py$"

# The gallery's sections, in this order.
SECTIONS = "shortcuts", "settings", "results", "new_sites", "independence"

sphinx_gallery_conf = {
    "examples_dirs": ["../examples", "../tutorials"],
    "gallery_dirs": ["gallery", "tutorials"],
    "filename_pattern": IS_RUN,
    "subsection_order": [f"../examples/{section}" for section in SECTIONS],
    "within_subsection_order": "FileNameSortKey",
    "thumbnail_size": (640, 340),
    "backreferences_dir": "api/examples",
    "doc_module": ("icscm",),
    "capture_repr": ("_repr_html_", "__str__"),
    "ignore_repr_types": "matplotlib",  # its figures are shown already
    "reset_modules": ("matplotlib", "example_style.apply"),
    "image_scrapers": ("matplotlib",),
    "image_srcset": ["2x"],
    "remove_config_comments": True,
    "download_all_examples": False,
    "show_memory": False,
    "show_signature": False,
    "write_computation_times": False,
    "min_reported_time": 1_000_000,  # nobody's concern
    "nested_sections": False,
    "parallel": True,
}

html_math_renderer = "mathml"  # below: formulas are shown without a script and without a network
html_theme = "pydata_sphinx_theme"
html_title = "icscm"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_favicon = "_static/mark.svg"
html_copy_source = False
html_show_sourcelink = False
html_theme_options: dict[str, Any] = {
    "logo": {"image_light": "_static/mark.svg", "image_dark": "_static/mark.svg", "text": "icscm"},
    "header_links_before_dropdown": 6,
    "navbar_end": ["theme-switcher"],
    "navbar_align": "left",
    "show_nav_level": 1,
    "show_toc_level": 2,
    "footer_start": ["copyright"],
    "footer_end": [],
    "secondary_sidebar_items": ["page-toc", "sg_download_links"],
}
# Pages without a list of others at their side.
ALONE = (
    *("changelog", "cite", "contributing", "faq", "gallery/index", "glossary", "tutorials/index"),
    "upgrading",
)
html_sidebars = {page: [] for page in ALONE}

# Files of the repository that are pages of the site, under another name.
PAGES = {
    "CHANGELOG.md": "changelog.md",
    "CODE_OF_CONDUCT.md": "conduct.md",
    "CONTRIBUTING.md": "contributing.md",
    "SECURITY.md": "security.md",
    "benchmarks/README.md": "background/benchmarks.md",
}


def link_pages(_: Any, docname: str, source: list[str]) -> None:
    """Let links to a file that is a page, such as ../CHANGELOG.md, lead to that page."""
    folder = (HERE / docname).parent

    def translate(match: re.Match[str]) -> str:
        target = os.path.relpath(os.path.normpath(folder / match[1]), HERE.parent)
        page = PAGES.get(Path(target).as_posix())
        return match[0] if page is None else f"]({os.path.relpath(HERE / page, folder)}"

    source[0] = re.sub(r"\]\((\.\./[^)#\s]*)", translate, source[0])


def link_root(_: Any, __: Path, ___: str, content: list[str]) -> None:
    """Let links of an included file to one beside it, such as SECURITY.md, lead to its page."""
    content[0] = re.sub(
        r"\]\(([A-Z_]+\.md)", lambda match: f"]({PAGES.get(match[1], match[1])}", content[0]
    )


def skip_foreign(_: Any, what: str, __: str, member: Any, *___: Any) -> bool | None:
    """Leave out members that come from scikit-learn or dataclasses: they are described there."""
    function = find_function(member)
    if what == "class" and function is not None and not (is_ours(function) and function.__doc__):
        return True
    return None


def write_formula(translator: Any, node: nodes.math | nodes.math_block) -> None:
    """A formula as MathML, which browsers draw themselves."""
    is_block = isinstance(node, nodes.math_block)
    try:
        formula = latex2mathml.tex2mathml(node.astext(), as_block=is_block)
    except MathError as error:
        getLogger("formulas").warning("%s", error, location=node)
        raise nodes.SkipNode from error
    translator.body.append(f'<div class="formula">{formula}</div>' if is_block else formula)
    raise nodes.SkipNode


def setup(app: Any) -> None:
    """Called by Sphinx."""
    app.add_html_math_renderer("mathml", (write_formula, None), (write_formula, None))
    app.connect("source-read", link_pages)
    app.connect("include-read", link_root)
    app.connect("autodoc-skip-member", skip_foreign)
