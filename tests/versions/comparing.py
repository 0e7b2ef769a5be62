"""Where two results differ: nested dicts and lists of plain values, value by value."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from fnmatch import fnmatch
from typing import Any

TOLERANCE = 1e-12  # largest relative difference of two floats that count as equal


class Absent:
    """Stands for a value that one of the results does not have."""

    def __repr__(self) -> str:
        return "(absent)"


ABSENT = Absent()


@dataclass(frozen=True)
class Difference:
    """Two values at the same place, and by how much they differ; infinitely if not by rounding."""

    path: str
    base: Any
    tree: Any
    gap: float

    def __str__(self) -> str:
        gap = f" (relative difference {self.gap:.1e})" if math.isfinite(self.gap) else ""
        return f"{self.path}: {shorten(self.base)} -> {shorten(self.tree)}{gap}"


@dataclass(frozen=True)
class Comparison:
    """What is different, and the largest relative difference of any two floats."""

    differences: list[Difference]
    largest_gap: float


def compare(
    base: Any, tree: Any, *, tolerance: float = TOLERANCE, ignored: list[str] | None = None
) -> Comparison:
    """Compare two results; places that match a pattern of `ignored` are left out.

    Whole numbers, texts and truth values must be equal, floats within a relative tolerance.
    """
    differences: list[Difference] = []
    largest_gap = 0.0
    for difference in walk(base, tree):
        if any(fnmatch(difference.path, pattern) for pattern in ignored or ()):
            continue
        if difference.gap > tolerance:
            differences.append(difference)
        if math.isfinite(difference.gap):
            largest_gap = max(largest_gap, difference.gap)
    return Comparison(differences, largest_gap)


def walk(base: Any, tree: Any, path: str = "") -> Iterator[Difference]:
    """All pairs of values that are not equal; of lists of different lengths the lengths, too."""
    if isinstance(base, dict) and isinstance(tree, dict):
        for key in [*base, *(key for key in tree if key not in base)]:
            place = f"{path}.{key}" if path else key
            yield from walk(base.get(key, ABSENT), tree.get(key, ABSENT), place)
    elif isinstance(base, list) and isinstance(tree, list):
        if len(base) != len(tree):
            yield Difference(f"{path}.length", len(base), len(tree), math.inf)
        for number, pair in enumerate(zip(base, tree, strict=False)):
            yield from walk(*pair, f"{path}[{number}]")
    else:
        gap = measure_gap(base, tree)
        if gap:
            yield Difference(path, base, tree, gap)


def measure_gap(base: Any, tree: Any) -> float:
    """0 of equal values, the relative difference of two numbers, infinity of all others."""
    are_floats = isinstance(base, float) or isinstance(tree, float)
    if not are_floats or not (is_number(base) and is_number(tree)):
        return 0.0 if type(base) is type(tree) and base == tree else math.inf
    if base == tree or (math.isnan(base) and math.isnan(tree)):
        return 0.0
    if not (math.isfinite(base) and math.isfinite(tree)):
        return math.inf
    return abs(base - tree) / max(abs(base), abs(tree))


def is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def shorten(value: Any, most: int = 70) -> str:
    text = repr(value)
    return text if len(text) <= most else f"{text[: most - 3]}..."
