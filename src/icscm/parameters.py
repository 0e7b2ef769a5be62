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
from math import inf, isfinite
from numbers import Integral, Real
from textwrap import fill, indent
from typing import Any, Final, Self, TypeVar, cast

import numpy as np

from icscm.exceptions import IcscmError, Parameter
from icscm.formatting import format_number

Fit = TypeVar("Fit", bound=Callable[..., Any])
Class = TypeVar("Class", bound=type)

# Seeds are drawn below this bound.
SEED_LIMIT: Final = 2**31 - 1
# The width of the text of a parameter in a docstring, where it is indented by 8.
TEXT_WIDTH: Final = 92


# --- allowed values -------------------------------------------------------------------------------


@dataclass(frozen=True)
class Range:
    """Numbers between two bounds, in the notation of intervals.

    >>> Range.parse("int [1, inf)").accepts(3), str(Range.parse("float (0, 1)"))
    (True, 'a number between 0 and 1, both excluded')
    """

    is_whole: bool
    low: float
    high: float
    excludes_low: bool
    excludes_high: bool

    @classmethod
    def parse(cls, text: str) -> Self:
        """Parse a text such as `float (0, 1]`; infinite bounds are to be excluded."""
        kind, interval = text.strip().split(" ", 1)
        low, high = interval[1:-1].split(",")
        return cls(
            is_whole=kind == "int",
            low=float(low),
            high=float(high),
            excludes_low=interval.startswith("("),
            excludes_high=interval.endswith(")"),
        )

    def accepts(self, value: Any) -> bool:
        """Tell whether a value is a number in this range."""
        if isinstance(value, bool):  # to Python, True is a whole number
            return False
        if not isinstance(value, Integral if self.is_whole else Real):
            return False
        if isinstance(value, int) and abs(value) > sys.float_info.max:
            return False

        number = cast(float, value)
        is_above = number > self.low if self.excludes_low else number >= self.low
        is_below = number < self.high if self.excludes_high else number <= self.high
        return is_above and is_below

    def __str__(self) -> str:
        low = format_number(self.low)
        high = format_number(self.high)
        if self.is_whole and self.high == inf:
            return f"a whole number of at least {low}"
        if self.is_whole:
            return f"a whole number from {low} to {high}"
        if self.high == inf and isfinite(self.low):
            return f"a finite number greater than {low}"
        if self.high == inf:
            return "a finite number"
        if self.excludes_low and self.excludes_high:
            return f"a number between {low} and {high}, both excluded"
        if self.excludes_low:
            return f"a number above {low} and at most {high}"
        return f"a number from {low} to {high}"


@dataclass(frozen=True)
class Allowed:
    """The values that a parameter may have.

    Attributes
    ----------
    ranges : tuple of Range
        Numbers.
    choices : tuple
        Words, None, True and False.
    words : str
        The allowed values in messages, where ranges and choices do not describe them.
    is_other : callable, optional
        Tells whether a value of another kind is allowed, such as an object.
    """

    ranges: tuple[Range, ...]
    choices: tuple[Any, ...]
    words: str = ""
    is_other: Callable[[Any], bool] | None = None

    def accepts(self, value: Any) -> bool:
        """Tell whether a value is allowed."""
        plain_value = bool(value) if isinstance(value, np.bool_) else value
        if any(is_choice(plain_value, choice) for choice in self.choices):
            return True
        if self.is_other is not None and self.is_other(plain_value):
            return True
        return any(numbers.accepts(plain_value) for numbers in self.ranges)

    def parse(self, text: str) -> Any:
        """Return the value of a text of the command line; raises if it is not allowed."""
        for choice in self.choices:
            if text.lower() == str(choice).lower():
                return choice
        for numbers in self.ranges:
            with suppress(ValueError):
                number = int(text) if numbers.is_whole else float(text)
                if numbers.accepts(number):
                    return number
        raise IcscmError(f"{text!r} is not {self.describe().replace('None', 'none')}")

    def describe(self) -> str:
        """Describe the allowed values, in words that complete "must be ..."."""
        if self.words:
            return self.words
        choices = [repr(choice) for choice in self.choices]
        if not self.ranges:
            return f"one of {', '.join(choices)}"
        ranges = [str(numbers) for numbers in self.ranges]
        return ", or ".join([*ranges, *choices])


def is_choice(value: Any, choice: Any) -> bool:
    """Tell whether a value is a choice: words by their letters, None and booleans themselves.

    With `==` alone 1 would be True, and a column of arrays would have no single answer.
    """
    if value is choice:
        return True
    return isinstance(choice, str) and isinstance(value, str) and value == choice


def allow(*values: Any, words: str = "", is_other: Callable[[Any], bool] | None = None) -> Allowed:
    """Make what `check_value` allows: choices, and ranges as text such as `int [1, inf)`.

    >>> allow("int [1, inf)", None).describe()
    'a whole number of at least 1, or None'
    """
    ranges: list[Range] = []
    choices: list[Any] = []
    for value in values:
        if isinstance(value, str) and value.startswith(("int ", "float ")):
            ranges += [Range.parse(interval) for interval in value.split("|")]
        else:
            choices.append(value)
    return Allowed(ranges=tuple(ranges), choices=tuple(choices), words=words, is_other=is_other)


def check_value(name: str, value: Any, allowed: Allowed) -> None:
    """Raise unless the value is allowed."""
    if not allowed.accepts(value):
        raise IcscmError(Parameter(name), f" must be {allowed.describe()}; got {value!r}")


def is_object(value: Any) -> bool:
    """Tell whether a value is an object of the user, such as a test or a splitter."""
    return not isinstance(value, str | bool | Real | None)


def are_two_rates(value: Any) -> bool:
    """Tell whether a value is a pair of rates."""
    if not isinstance(value, tuple | list) or len(value) != 2:
        return False
    rates = Range.parse("float (0, 1)")
    return all(rates.accepts(rate) for rate in value)


def is_generator(value: Any) -> bool:
    """Tell whether a value is a random generator."""
    return isinstance(value, np.random.RandomState | np.random.Generator)


# Values that parameters.toml cannot list, by their names there.
OTHER_VALUES: Final[dict[str, Callable[[Any], bool]]] = {
    "object": is_object,
    "rates": are_two_rates,
    "generator": is_generator,
}


# --- the registry ---------------------------------------------------------------------------------


@dataclass(frozen=True)
class Spec:
    """A parameter as `parameters.toml` describes it.

    Attributes
    ----------
    name : str
        Its name.
    allowed : Allowed or None
        Its values; None where any value is allowed.
    type : str
        Its type, as numpydoc writes it.
    help, more : str
        What it means; `more` is for docstrings only.
    default : str
        As `--help` shows it.
    models : tuple of str
        The learners of `icscm fit --model` that have it.
    """

    name: str
    allowed: Allowed | None
    type: str
    help: str
    more: str
    default: str
    models: tuple[str, ...] = ()


@cache
def _load_registry() -> dict[str, Any]:
    """Read `parameters.toml`."""
    text = files("icscm").joinpath("parameters.toml").read_text("utf-8")
    return tomllib.loads(text)


@cache
def get_spec(name: str, owner: Any = None) -> Spec:
    """Return a parameter, as a class of learners has it: its own entries replace the general."""
    registry = _load_registry()
    entry = dict(registry[name])
    classes = [] if owner is None else owner.__mro__
    for base in reversed(classes):
        entry |= registry.get(base.__name__, {}).get(name, {})

    allowed = _read_allowed(entry)
    is_checked = bool(allowed.ranges or allowed.choices)
    return Spec(
        name=name,
        allowed=allowed if is_checked else None,
        type=entry.get("type") or _name_type(allowed),
        help=entry["help"],
        more=entry.get("more", ""),
        default=entry.get("default", ""),
        models=tuple(entry.get("models", ())),
    )


def _name_type(allowed: Allowed) -> str:
    """Name the type of a parameter whose entry does not: a whole number, or one of some words."""
    if not allowed.ranges:
        words = ", ".join(f'"{choice}"' for choice in allowed.choices if choice is not None)
        return f"{{{words}}}"
    return "int or None" if None in allowed.choices else "int"


def _read_allowed(entry: Mapping[str, Any]) -> Allowed:
    """Read the values that an entry of the registry allows.

    The fields of an entry, all optional:

        numbers    ranges as text, such as "int [1, inf)"
        choices    words, true and false
        none       whether None is allowed
        others     the name of a check in `OTHER_VALUES`, for values of other kinds
        words      the allowed values as a message calls them
    """
    ranges = [entry["numbers"]] if "numbers" in entry else []
    choices = entry.get("choices", ())
    none = [None] if entry.get("none") else []
    is_other = OTHER_VALUES.get(entry.get("others", ""))
    return allow(*ranges, *choices, *none, words=entry.get("words", ""), is_other=is_other)


@cache
def list_model_parameters() -> tuple[str, ...]:
    """List the parameters that are options of `icscm fit`, in the order of the registry."""
    return tuple(name for name, entry in _load_registry().items() if "models" in entry)


def document_parameters(cls: Class) -> Class:
    """Write the parameters' section into the docstring of a learner, in the place of a marker."""
    learner = cast(Any, cls)
    entries = [
        _document_parameter(get_spec(parameter.name, learner), parameter.default)
        for parameter in inspect.signature(cls).parameters.values()
    ]
    section = "Parameters\n----------\n" + "\n".join(entries)
    cls.__doc__ = (cls.__doc__ or "").replace("{parameters}", indent(section, "    ").lstrip())
    return cls


def _document_parameter(spec: Spec, default: Any) -> str:
    """Write the entry of a parameter in the numpydoc form."""
    ending = f'default="{default}"' if isinstance(default, str) else f"default={default!r}"
    if default is None and "None" not in spec.type:
        ending = "optional"
    text = fill(f"{spec.help} {spec.more}".strip(), TEXT_WIDTH)
    return f"{spec.name} : {spec.type}, {ending}\n{indent(text, '    ')}"


# --- checks ---------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _CheckedParameter:
    """A parameter of a learner whose values are checked."""

    name: str
    allowed: Allowed
    default: Any


@cache
def _list_checked_parameters(learner: Any) -> list[_CheckedParameter]:
    """List the parameters of a class of learners whose values are checked."""
    checked: list[_CheckedParameter] = []
    for parameter in inspect.signature(learner).parameters.values():
        allowed = get_spec(parameter.name, learner).allowed
        if allowed is not None:
            checked.append(_CheckedParameter(parameter.name, allowed, parameter.default))
    return checked


def check_parameters(estimator: Any) -> None:
    """Raise for the first parameter whose value is not allowed."""
    for parameter in _list_checked_parameters(cast(Any, type(estimator))):
        value = getattr(estimator, parameter.name)
        if value is not parameter.default:
            check_value(parameter.name, value, parameter.allowed)


def check_arguments(owner: str, arguments: Mapping[str, Any]) -> None:
    """Raise for the first argument of a function that the registry does not allow."""
    for name, entry in _load_registry()[owner].items():
        check_value(name, arguments[name], _read_allowed(entry))


# --- random states --------------------------------------------------------------------------------


def draw_seed(random_state: Any) -> int:
    """Draw the seed of one fit from the parameter `random_state` of a learner."""
    if isinstance(random_state, np.random.Generator):
        return int(random_state.integers(SEED_LIMIT))
    from sklearn.utils import check_random_state  # slow to import

    return int(check_random_state(random_state).randint(SEED_LIMIT))


def make_generator(random_state: Any) -> np.random.Generator:
    """Make the random generator of a study from its argument `random_state`."""
    allowed = get_spec("random_state").allowed
    assert allowed is not None
    check_value("random_state", random_state, allowed)
    if isinstance(random_state, np.random.RandomState):
        return np.random.default_rng(draw_seed(random_state))
    return np.random.default_rng(random_state)


# --- around a fit ---------------------------------------------------------------------------------


def whole_or_nothing(fit: Fit) -> Fit:
    """Decorate a `fit` so that it leaves its estimator unchanged if it fails.

    It runs on a copy with the parameters only, so that nothing of an earlier fit remains; the state
    of the copy replaces that of the estimator at the end.
    """

    @wraps(fit)
    def fit_whole(self: Any, *args: Any, **kwargs: Any) -> Any:
        attempt = copy(self)
        for name in vars(self):
            is_fitted_state = name.endswith("_") and not name.startswith("_")
            if is_fitted_state:
                delattr(attempt, name)
        fit(attempt, *args, **kwargs)
        vars(self).clear()
        vars(self).update(vars(attempt))
        return self

    return cast(Fit, fit_whole)
