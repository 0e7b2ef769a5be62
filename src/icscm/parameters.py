"""Checks of parameters, with clear error messages.

`parameters.toml` lists the parameters, for these checks, the docstrings of the learners and the
options of the command line.
"""

import inspect
import sys
import tomllib
from collections.abc import Callable, Mapping
from contextlib import suppress
from copy import copy
from dataclasses import dataclass
from functools import cache, wraps
from importlib.resources import files
from itertools import compress
from math import inf, isfinite
from numbers import Integral, Real
from textwrap import fill, indent
from typing import Any, Self, TypeVar, cast

import numpy as np

from icscm.exceptions import IcscmError, Parameter
from icscm.formatting import format_number

Fit = TypeVar("Fit", bound=Callable[..., Any])
Class = TypeVar("Class", bound=type)


@dataclass(frozen=True)
class Range:
    """Numbers between two bounds, in the notation of intervals.

    >>> Range.parse("int [1, inf)").accepts(3), str(Range.parse("float (0, 1)"))
    (True, 'a number between 0 and 1, both excluded')
    """

    is_whole: bool
    low: float
    high: float
    is_open: tuple[bool, bool]

    @classmethod
    def parse(cls, text: str) -> Self:
        """The range of a text such as `float (0, 1]`; infinite bounds are excluded."""
        kind, bounds = text.strip().split(" ", 1)
        low, high = bounds[1:-1].split(",")
        return cls(kind == "int", float(low), float(high), (bounds[0] == "(", bounds[-1] == ")"))

    def accepts(self, value: Any) -> bool:
        """Whether it is such a number."""
        if not isinstance(value, Integral if self.is_whole else Real) or isinstance(value, bool):
            return False
        number, excluded = cast(float, value), [*compress((self.low, self.high), self.is_open)]
        is_huge = isinstance(value, int) and abs(value) > sys.float_info.max
        return not is_huge and self.low <= number <= self.high and number not in excluded

    def __str__(self) -> str:
        low, high = (format_number(each) for each in (self.low, self.high))
        if self.is_whole:
            bounds = f"of at least {low}" if self.high == inf else f"from {low} to {high}"
            return f"a whole number {bounds}"
        if self.high == inf:
            return "a finite number" + (f" greater than {low}" if isfinite(self.low) else "")
        if self.is_open == (True, True):
            return f"a number between {low} and {high}, both excluded"
        if self.is_open[0]:
            return f"a number above {low} and at most {high}"
        return f"a number from {low} to {high}"


@dataclass(frozen=True)
class Allowed:
    """The values that a parameter may have: numbers in ranges, and a few others."""

    ranges: tuple[Range, ...]
    choices: tuple[Any, ...]
    words: str = ""
    is_other: Callable[[Any], bool] | None = None

    def accepts(self, value: Any) -> bool:
        """Whether it is one of these."""
        if isinstance(value, np.bool_):
            value = bool(value)
        for each in self.choices:
            if value is each or (
                isinstance(each, str) and isinstance(value, str) and value == each
            ):
                return True
        is_other = self.is_other is not None and self.is_other(value)
        return is_other or any(each.accepts(value) for each in self.ranges)

    def parse(self, text: str) -> Any:
        """The value of a text of the command line; raises IcscmError if it is not allowed."""
        for each in self.choices:
            if text.lower() == str(each).lower():
                return each
        for each in self.ranges:
            with suppress(ValueError):
                number = int(text) if each.is_whole else float(text)
                if each.accepts(number):
                    return number
        raise IcscmError(f"{text!r} is not {self.describe().replace('None', 'none')}")

    def describe(self) -> str:
        """The allowed values as words that complete "must be ..."."""
        if self.words or not self.ranges:
            return self.words or f"one of {', '.join(map(repr, self.choices))}"
        return ", or ".join([*map(str, self.ranges), *map(repr, self.choices)])


def allow(*values: Any, words: str = "", is_other: Callable[[Any], bool] | None = None) -> Allowed:
    """What `check_value` allows: choices, and ranges as text such as `int [1, inf)`.

    >>> allow("int [1, inf)", None).describe()
    'a whole number of at least 1, or None'
    """
    texts = [v for v in values if isinstance(v, str) and v.startswith(("int ", "float "))]
    ranges = tuple(Range.parse(part) for text in texts for part in text.split("|"))
    return Allowed(ranges, tuple(v for v in values if v not in texts), words, is_other)


def _are_rates(value: Any) -> bool:
    rate = Range.parse("float (0, 1)")
    return isinstance(value, tuple | list) and [*map(rate.accepts, value)] == [True, True]


# Values that parameters.toml cannot list, by their names there.
_OTHERS: dict[str, Callable[[Any], bool]] = {
    "object": lambda value: not isinstance(value, str | bool | Real | None),
    "rates": _are_rates,
    "generator": lambda v: isinstance(v, np.random.RandomState | np.random.Generator),
}


@dataclass(frozen=True)
class Spec:
    """A parameter as `parameters.toml` describes it."""

    name: str
    allowed: Allowed | None
    type: str
    help: str
    more: str
    default: str
    models: tuple[str, ...] = ()


@cache
def _load_registry() -> dict[str, Any]:
    return tomllib.loads(files("icscm").joinpath("parameters.toml").read_text("utf-8"))


@cache
def get_spec(name: str, owner: Any = None) -> Spec:
    """A parameter, as a class of learners has it."""
    registry = _load_registry()
    entry = dict(registry[name])
    for each in reversed(owner.__mro__ if owner else ()):
        entry |= registry.get(each.__name__, {}).get(name, {})
    allowed = _read_allowed(entry)
    named = ", ".join(f'"{each}"' for each in allowed.choices if each is not None)
    whole = "int or None" if None in allowed.choices else "int"
    kind = entry.get("type") or (whole if allowed.ranges else f"{{{named}}}")
    texts = entry["help"], entry.get("more", ""), entry.get("default", "")
    return Spec(
        name,
        allowed if allowed.ranges or allowed.choices else None,
        kind,
        *texts,
        models=tuple(entry.get("models", ())),
    )


@cache
def list_model_parameters() -> tuple[str, ...]:
    """The parameters that are options of `icscm fit`, in the order of the registry."""
    return tuple(name for name, entry in _load_registry().items() if "models" in entry)


def _read_allowed(entry: Mapping[str, Any]) -> Allowed:
    """The values that an entry of the registry allows."""
    values = [entry["numbers"]] if "numbers" in entry else []
    values += [*entry.get("choices", ()), *([None] if entry.get("none") else ())]
    other = _OTHERS.get(entry.get("others", ""))
    return allow(*values, words=entry.get("words", ""), is_other=other)


def document_parameters(cls: Class) -> Class:
    """Write the parameters' section into the docstring of a learner, in the place of a marker."""
    entries = []
    for parameter in list(inspect.signature(cls).parameters.values()):
        spec = get_spec(parameter.name, cast(Any, cls))
        default = parameter.default
        shown = f'"{default}"' if isinstance(default, str) else repr(default)
        ending = "optional" if default is None and "None" not in spec.type else f"default={shown}"
        text = fill(f"{spec.help} {spec.more}".strip(), 92)
        entries.append(f"{spec.name} : {spec.type}, {ending}\n{indent(text, '    ')}")
    section = "Parameters\n----------\n" + "\n".join(entries)
    cls.__doc__ = (cls.__doc__ or "").replace("{parameters}", indent(section, "    ").lstrip())
    return cls


def check_parameters(estimator: Any) -> None:
    """Raise for the first parameter whose value is not allowed."""
    for name, allowed, default in _list_allowed(cast(Any, type(estimator))):
        value = getattr(estimator, name)
        if value is not default:
            check_value(name, value, allowed)


@cache
def _list_allowed(learner: Any) -> list[tuple[str, Allowed, Any]]:
    """The parameters of a class of learners whose values are checked, and their defaults."""
    defaults = inspect.signature(learner).parameters.values()
    found = ((each.name, get_spec(each.name, learner).allowed, each.default) for each in defaults)
    return [(name, allowed, default) for name, allowed, default in found if allowed is not None]


def check_arguments(owner: str, given: Mapping[str, Any]) -> None:
    """Raise for the first argument of a function that the registry does not allow."""
    for name, entry in _load_registry()[owner].items():
        check_value(name, given[name], _read_allowed(entry))


def check_value(name: str, value: Any, allowed: Allowed) -> None:
    """Raise unless the value is allowed."""
    if not allowed.accepts(value):
        raise IcscmError(Parameter(name), f" must be {allowed.describe()}; got {value!r}")


def draw_seed(random_state: Any) -> int:
    """The seed of one fit, from the parameter `random_state` of a learner."""
    if isinstance(random_state, np.random.Generator):
        return int(random_state.integers(2**31 - 1))
    from sklearn.utils import check_random_state

    return int(check_random_state(random_state).randint(2**31 - 1))


def make_generator(random_state: Any) -> np.random.Generator:
    """The random generator of a study, from its argument `random_state`."""
    check_value("random_state", random_state, cast(Allowed, get_spec("random_state").allowed))
    is_old = isinstance(random_state, np.random.RandomState)
    return np.random.default_rng(draw_seed(random_state) if is_old else random_state)


def whole_or_nothing(fit: Fit) -> Fit:
    """Decorate a `fit` so that it leaves its estimator unchanged if it fails.

    It runs on a copy with the parameters only, so that nothing of an earlier fit remains; the state
    of the copy replaces that of the estimator at the end.
    """

    @wraps(fit)
    def fit_whole(self: Any, *args: Any, **kwargs: Any) -> Any:
        attempt = copy(self)
        for name in [each for each in vars(self) if each.endswith("_") and each[0] != "_"]:
            delattr(attempt, name)
        fit(attempt, *args, **kwargs)
        vars(self).clear()
        vars(self).update(vars(attempt))
        return self

    return cast(Fit, fit_whole)


def check_matplotlib() -> None:
    """Raise if the optional package for figures is missing; called before long work starts."""
    try:
        import matplotlib  # noqa: F401
    except ImportError:
        raise IcscmError("figures need matplotlib: pip install 'icscm[plot]'") from None
