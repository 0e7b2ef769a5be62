"""Draw the measured times in benchmarks/README.md and docs/scaling.md, from the tables there.

    python docs/write_benchmarks.py            or  make screens

`benchmarks/run.py` runs it after it has written its tables. A test fails when a picture does not
show the numbers of its page.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from html import escape
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[1]
FIGURES = ROOT / "docs" / "figures"
# Pixels of a picture, of the room for names, from the axis to the right edge, and of a row.
WIDTH = 640
NAMES = 225
RIGHT = 70
ROW = 24
# A title, a line about the data, and a table of times.
TIMES = re.compile(r"^\*\*(.*)\*\*\n\n.*\n\n(\| \| time \|.*\n(?:\|.*\n)+)", re.MULTILINE)
STYLE = """
text { font-family: system-ui, sans-serif; font-size: 14px; fill: #1d1d1b }
.title { font-weight: 600 } .name { text-anchor: end } .small { font-size: 12px; fill: #55534e }
.tick { text-anchor: middle } .ours { fill: #0b6170 } .other { fill: #8a857c }
.p0 { fill: #0b6170 } .p1 { fill: #6fb0ba } .p2 { fill: #d9822b } .p3 { fill: #f0c391 }
.p4 { fill: #6b5b95 } .p5 { fill: #b9b4aa }
line { stroke: #d9d5cc } line.stem { stroke-width: 3 }
"""


class Row(NamedTuple):
    """A measured time in seconds, as the table writes it, and whether it is of this package."""

    name: str
    seconds: float
    text: str
    is_own: bool


def find_table(text: str, first_line: str) -> list[list[str]]:
    """The cells of the table whose header begins with `first_line`, with the header."""
    lines = text[text.index(first_line) :].split("\n\n")[0].splitlines()
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
    return [rows[0], *rows[2:]]


def read_seconds(text: str) -> float:
    """A time of a table.

    >>> read_seconds("4 ms"), read_seconds("38.42 s")
    (0.004, 38.42)
    """
    number, unit = text.split()
    return float(number) / {"ms": 1_000, "s": 1}[unit]


def make_picture(title: str, height: float, parts: list[str]) -> str:
    """A picture on a ground of its own: pages are light or dark."""
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height:g}" role="img">\n'
        f"<title>{escape(title)}</title>\n<style>{STYLE}</style>\n"
        f'<rect width="{WIDTH}" height="{height:g}" style="fill: #fcfbf7"/>\n'
        + "\n".join(parts)
        + "\n</svg>\n"
    )


def write(x: float, y: float, text: str, kind: str) -> str:
    """A line of text."""
    return f'<text x="{x:g}" y="{y:g}" class="{kind}">{escape(text)}</text>'


def draw_times(title: str, groups: dict[str, list[Row]]) -> str:
    """For each group its times as dots on one logarithmic axis, ours in colour."""
    axis = make_axis([row.seconds for rows in groups.values() for row in rows])
    bottom = 12 + sum(ROW * (len(rows) + 1.6) for rows in groups.values())
    parts = draw_axis(axis, bottom)
    y = 12.0
    for name, rows in groups.items():
        y += ROW
        parts.append(write(12, y, name, "title"))
        for row in rows:
            y += ROW
            parts += draw_row(row, axis.find_x(row.seconds), y)
        y += 0.6 * ROW
    return make_picture(title, bottom + 32, parts)


class Axis(NamedTuple):
    """A logarithmic axis of seconds, from one power of ten to another."""

    lowest_power: int
    highest_power: int

    def find_x(self, seconds: float) -> float:
        """The position of a time, in pixels."""
        share = (math.log10(seconds) - self.lowest_power) / (self.highest_power - self.lowest_power)
        return round(NAMES + share * (WIDTH - NAMES - RIGHT), 1)


def make_axis(times: list[float]) -> Axis:
    """An axis that holds all times."""
    return Axis(
        lowest_power=math.floor(math.log10(min(times))),
        highest_power=math.ceil(math.log10(max(times))),
    )


def draw_axis(axis: Axis, bottom: float) -> list[str]:
    """A line for each power of ten, and its name below."""
    parts = []
    for power in range(axis.lowest_power, axis.highest_power + 1):
        x = axis.find_x(10.0**power)
        text = f"{10**power:g} s" if power >= 0 else f"{10.0 ** (power + 3):g} ms"
        parts.append(f'<line x1="{x:g}" x2="{x:g}" y1="12" y2="{bottom:g}"/>')
        parts.append(write(x, bottom + 18, text, "small tick"))
    return parts


def draw_row(row: Row, x: float, y: float) -> list[str]:
    """A name, a stem with a dot at the time, and the time as text."""
    kind = "ours" if row.is_own else "other"
    return [
        write(NAMES - 12, y + 5, row.name, "name"),
        f'<line class="stem" x1="{NAMES}" x2="{x:g}" y1="{y:g}" y2="{y:g}"/>',
        f'<circle class="{kind}" cx="{x:g}" cy="{y:g}" r="6"/>',
        write(x + 11, y + 5, row.text, "small"),
    ]


def draw_parts(title: str, table: list[list[str]]) -> str:
    """For each row its parts side by side, in seconds, with the total at the end."""
    header, *rows = table
    _, _, *names, _ = header  # without the size, the number of scans, and the total
    pixels_of_second = (WIDTH - NAMES - RIGHT) / max(read_seconds(row[-1]) for row in rows)
    parts = draw_legend(names)
    y = 24.0 + ROW * math.ceil(len(names) / 3)
    for size, _, *cells, total in rows:
        parts.append(write(NAMES - 12, y + 16, size, "name"))
        x = float(NAMES)
        for number, cell in enumerate(cells):
            width = float(cell) * pixels_of_second
            parts.append(
                f'<rect class="p{number}" x="{x:.1f}" y="{y:g}" width="{width:.1f}" height="22"/>'
            )
            x += width
        parts.append(write(x + 8, y + 16, total, "small"))
        y += 1.5 * ROW
    return make_picture(title, y, parts)


def draw_legend(names: list[str]) -> list[str]:
    """The colour of each part and its name, three to a line."""
    parts = []
    for number, name in enumerate(names):
        x = 12 + 205 * (number % 3)
        y = 24 + ROW * (number // 3)
        parts.append(f'<rect class="p{number}" x="{x}" y="{y - 11}" width="12" height="12"/>')
        parts.append(write(x + 18, y, name, "small"))
    return parts


def read_benchmarks(text: str) -> dict[str, list[Row]]:
    """The tables of benchmarks/README.md, by their titles."""
    groups = {}
    for title, table in TIMES.findall(text):
        rows = find_table(table, "|")[1:]
        groups[title] = [
            Row(name, read_seconds(time), time, name.startswith("icscm"))
            for name, time, *_ in rows
            if time[0].isdigit()  # others could not run
        ]
    return groups


def read_card(text: str) -> dict[str, list[Row]]:
    """The table of docs/scaling.md with times on a card and on cores."""
    head, *rows = find_table(text, "| | card | 16 cores |")
    return {
        name: [
            Row(where, read_seconds(time), time, where == "card")
            for where, time in zip(head[1:], times, strict=True)
            if time
        ]
        for name, *times in rows
    }


def make_pictures() -> Iterator[tuple[Path, str]]:
    """Where each picture is, and its content."""
    bench = (ROOT / "benchmarks" / "README.md").read_text(encoding="utf-8")
    scaling = (ROOT / "docs" / "scaling.md").read_text(encoding="utf-8")
    yield FIGURES / "benchmarks.svg", draw_times("Time of a fit", read_benchmarks(bench))
    yield FIGURES / "card.svg", draw_times("Time on a card and on 16 cores", read_card(scaling))
    parts = find_table(scaling, "| rows x columns, environments, partitions |")
    yield FIGURES / "cluster.svg", draw_parts("Where the time of a fit on Dask goes", parts)


if __name__ == "__main__":
    for path, picture in make_pictures():
        path.write_text(picture, encoding="utf-8")
