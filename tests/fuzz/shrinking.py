"""The smallest input that still fails: rows, columns, options and edits left out, one by one."""

from __future__ import annotations

import copy
import json
import time
from collections.abc import Callable, Iterator
from typing import Any

Spec = dict[str, Any]


def shrink(spec: Spec, fails: Callable[[Spec], bool], seconds: float) -> Spec:
    """Leave things out while it fails and there is time."""
    until = time.monotonic() + seconds
    is_smaller = True
    while is_smaller:
        is_smaller = False
        for smaller in _make_smaller(spec):
            if time.monotonic() > until:
                return spec
            if fails(smaller):
                spec, is_smaller = smaller, True
                break
    return spec


def measure(spec: Spec) -> int:
    """How large a case is."""
    return len(json.dumps(spec))


def _make_smaller(spec: Spec) -> Iterator[Spec]:
    """The case with less in one of its lists: halves first, then parts of them."""
    for path in _find_lists(spec):
        size = len(_get(spec, path))
        step = size
        while step:
            for start in range(0, size, step):
                smaller = copy.deepcopy(spec)
                del _get(smaller, path)[start : start + step]
                yield smaller
            # of a long list single elements are left out only once it is short
            step = step // 2 if step > 1 and size // step < 16 else 0


def _find_lists(value: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """Where the lists of a document are; those inside of others are left alone."""
    if isinstance(value, list) and value:
        yield path
    elif isinstance(value, dict):
        for key, each in value.items():
            yield from _find_lists(each, (*path, key))


def _get(value: Any, path: tuple[str, ...]) -> Any:
    for key in path:
        value = value[key]
    return value
