"""Draw docs/figures/which-estimator.svg, the questions that lead to an estimator.

    python docs/write_which_estimator.py

A test fails when the picture is out of date.
"""

from __future__ import annotations

from html import escape
from pathlib import Path

PICTURE = Path(__file__).parent / "figures" / "which-estimator.svg"
WIDTH, HEIGHT = 960, 640
STYLE = """
text { font-family: system-ui, sans-serif; font-size: 15px; fill: #1d1d1b; text-anchor: middle }
.name { font-family: ui-monospace, monospace; font-weight: 600; fill: #075e67 }
.small { font-size: 13px; fill: #55534e }
rect { fill: #ffffff; stroke: #1d1d1b; rx: 8 }
.question { fill: #efede6; stroke: none }
path { fill: none; stroke: #55534e; stroke-width: 1.5; marker-end: url(#tip) }
"""

# Boxes: left, top, width, height, lines; the first line of an answer is a name.
QUESTIONS = [
    (250, 20, 460, 50, ["Do the rows come from several known environments?"]),
    (250, 130, 460, 50, ["What is wanted?"]),
    (20, 225, 290, 70, ["A rule whose rates are the", "same in every environment"]),
    (335, 225, 290, 70, ["Which variables matter,", "whatever the form"]),
    (650, 225, 290, 70, ["Predictions at a new site,", "though rates differ"]),
]
ANSWERS = [
    (760, 20, 180, 50, ["SCMClassifier", "nothing is tested"]),
    (20, 335, 290, 70, ["ICSCMClassifier", "causal only under its assumptions"]),
    (335, 335, 290, 70, ["InvariantCausalPrediction", "for values that are discrete"]),
    (650, 335, 290, 70, ["InvariantTreeClassifier", "one tree, to be read"]),
    (20, 430, 290, 50, ['search="exhaustive"', "where rows are few"]),
    (335, 430, 290, 50, ['model="tree"', "for numbers"]),
    (650, 430, 290, 50, ["InvariantForestClassifier", "many trees, often more accurate"]),
    (650, 500, 290, 50, ["InvariantScoreClassifier", "points to add up"]),
    (650, 570, 290, 50, ["InvariantFeatureSelector", "your own learner, on screened columns"]),
]
# Arrows: where they start, where they end, and a word beside them.
ARROWS = [
    (710, 45, 755, 45, "no"),
    (480, 70, 480, 125, "yes"),
    (480, 180, 480, 220, ""),
    *((x, 295, x, 331, "") for x in (165, 480, 795)),
    *((x, 405, x, 426, "") for x in (165, 480, 795)),
    *((795, y, 795, y + 16, "") for y in (480, 550)),
]
BENDS = ["M250 155 H165 V220", "M710 155 H795 V220"]


def draw_box(box: tuple[int, int, int, int, list[str]], *, is_question: bool) -> str:
    """A box and its lines, one under the other around its middle."""
    left, top, width, height, lines = box
    class_of_box = ' class="question"' if is_question else ""
    drawn = f'<rect x="{left}" y="{top}" width="{width}" height="{height}"{class_of_box}/>\n'
    middle_x = left + width / 2
    first_y = top + height / 2 + 5 - 20 * (len(lines) - 1) / 2
    for number, line in enumerate(lines):
        class_of_answer = ' class="name"' if number == 0 else ' class="small"'
        class_of_line = "" if is_question else class_of_answer
        y = first_y + 20 * number
        drawn += f'<text x="{middle_x:g}" y="{y:g}"{class_of_line}>{escape(line)}</text>\n'
    return drawn


def draw_arrow(x1: int, y1: int, x2: int, y2: int, word: str) -> str:
    """A straight arrow, its word above or to the right of it."""
    path = f'<path d="M{x1} {y1} L{x2} {y2}"/>\n'
    if not word:
        return path
    is_horizontal = y1 == y2
    x = (x1 + x2) / 2 if is_horizontal else x1 + 20
    y = y1 - 8 if is_horizontal else (y1 + y2) / 2 + 4
    return f'{path}<text x="{x:g}" y="{y:g}" class="small">{word}</text>\n'


def make_picture() -> str:
    """The whole picture, on a ground of its own: pages are light or dark."""
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" role="img">\n',
        f"<title>Which estimator?</title>\n<style>{STYLE}</style>\n",
        '<defs><marker id="tip" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" '
        'markerHeight="7" orient="auto"><path d="M0 0 L8 4 L0 8 z" style="fill: #55534e; '
        'stroke: none; marker-end: none"/></marker></defs>\n',
        f'<rect width="{WIDTH}" height="{HEIGHT}" style="fill: #fcfbf7; stroke: none"/>\n',
        *(draw_arrow(*arrow) for arrow in ARROWS),
        *(f'<path d="{bend}"/>\n' for bend in BENDS),
        *(draw_box(box, is_question=True) for box in QUESTIONS),
        *(draw_box(box, is_question=False) for box in ANSWERS),
        "</svg>\n",
    ]
    return "".join(parts)


if __name__ == "__main__":
    PICTURE.write_text(make_picture(), encoding="utf-8")
