"""Drawings: figures of models and studies, and the drawings on pages."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from golden.drawings import list_svg
from golden.models import fit_case, ignore_warnings, make_report
from golden.studies import compare_sites, evaluate_admissions, follow_tolerances, transfer_sites
from golden.tables import make_waves
from golden.writing import Golden
from icscm import InvariantTreeClassifier
from icscm.drawing import Figure


def draw_many_leaves() -> Any:
    """Draw a tree with so many leaves that each is described in words."""
    table = make_waves()
    learner = InvariantTreeClassifier(tolerance=None, max_leaves=42, min_samples_leaf=0)
    with ignore_warnings():
        return learner.fit(table.X, table.y).plot()


FIGURES = {
    "conjunction": Golden(
        "a rule set beside its rates in four environments",
        lambda: fit_case("conjunction").learner.plot(),
    ),
    "many_environments": Golden(
        "forty environments by rising rate, with narrow rows",
        lambda: fit_case("many_environments").learner.plot(order="rate"),
    ),
    "many_leaves": Golden("a tree too large to be drawn", draw_many_leaves),
    "score": Golden(
        "bars of points, and the curve of risks", lambda: fit_case("score").learner.plot()
    ),
    "evaluate": Golden(
        "calibration, decisions, environments and leaves on new rows",
        lambda: evaluate_admissions().plot(),
    ),
    "compare": Golden(
        "learners within sites and at sites left out", lambda: compare_sites().plot()
    ),
    "transfer": Golden("scores by site left out", lambda: transfer_sites().plot()),
    "tolerances": Golden("scores along the tolerance", lambda: follow_tolerances().plot()),
}
DRAWN_PAGES = {
    "conjunction": "rates by environment, errors, levels, and decision curves",
    "equivalence": "rates with the band of a margin",
    "effect_tree": "a tree, its effects by environment, and the path along the tolerance",
    "score": "the curve of risks",
}


def list_drawings() -> dict[str, Golden]:
    """Return figures and drawings of pages: nothing else catches a wrong drawing."""
    goldens = {
        f"drawings/{name}.txt": Golden(golden.why, partial(draw, golden.make))
        for name, golden in FIGURES.items()
    }
    for name, why in DRAWN_PAGES.items():
        make = partial(draw_page, name)
        goldens[f"drawings/{name}.svg.txt"] = Golden(f"on the page of a report: {why}", make)
    goldens["drawings/evaluate.svg.txt"] = Golden(
        "on the page of an evaluation: calibration, decision curve and environments",
        lambda: list_svg(evaluate_admissions().to_html()),
    )
    return goldens


def draw(make_figure: Callable[[], Figure]) -> str:
    """Return what a figure tells those who do not see it, and its elements."""
    figure = make_figure()
    return f"{figure.description}\n{list_svg(figure.to_svg())}"


def draw_page(name: str) -> str:
    return list_svg(make_report(name).to_html())
