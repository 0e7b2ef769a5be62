"""Parameters: what each may be, and one clear sentence where it is not."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from copy import copy
from functools import wraps
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

from icscm.exceptions import IcscmError, Parameter
from icscm.formatting import shorten_list

if TYPE_CHECKING:
    from sklearn.base import BaseEstimator

Fit = TypeVar("Fit", bound=Callable[..., Any])


def whole_or_nothing(fit: Fit) -> Fit:
    """Let a `fit` that fails leave its estimator as it was, fitted or not.

    The work is done on a copy that starts from the parameters only, so that nothing of an earlier
    fit stays behind; its state replaces the estimator's at the end.
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


def check_weights(
    weights: Any, n_features: int, names: Sequence[str] | None
) -> NDArray[np.float64] | None:
    """Feature weights as an array; a mapping gives them by name, 1 where it is silent."""
    if weights is None:
        return None
    if hasattr(weights, "index") and hasattr(weights, "items"):  # a pandas Series
        weights = dict(weights.items())
    if isinstance(weights, Mapping):
        known = {name: i for i, name in enumerate(range(n_features) if names is None else names)}
        unknown = [name for name in weights if name not in known]
        if unknown:
            raise IcscmError(
                "feature_weights names features that X does not have: "
                f"{shorten_list([repr(name) for name in unknown])}"
            )
        full = np.ones(n_features)
        full[[known[name] for name in weights]] = _read_numbers(list(weights.values()))
        weights = full
    numbers = _read_numbers(weights)
    if numbers.shape != (n_features,):
        raise IcscmError(
            f"feature_weights must hold one weight for each of the {n_features} features, "
            f"got shape {numbers.shape}"
        )
    if not (np.isfinite(numbers) & (numbers >= 0)).all():
        raise IcscmError("feature_weights must be finite and not negative (0 excludes a feature)")
    return numbers


def _read_numbers(weights: Any) -> NDArray[np.float64]:
    try:
        return np.asarray(weights, dtype=np.float64)
    except (TypeError, ValueError):
        raise IcscmError(f"feature_weights must be numbers; got {weights!r}") from None


# A parameter's allowed values in words, and the check.
Allowed = tuple[str, Callable[[Any], bool]]


def one_of(*choices: Any) -> Allowed:
    """Any of a few words."""
    return f"one of {', '.join(map(repr, choices))}", lambda value: any(
        value is choice or (isinstance(value, str) and value == choice) for choice in choices
    )


def whole_number(least: int, *, most: float = np.inf, or_none: bool = False) -> Allowed:
    """An integer with bounds."""
    bounds = f"of at least {least}" if most == np.inf else f"from {least} to {most}"
    return (
        f"a whole number {bounds}{' or None' * or_none}",
        lambda value: (
            (or_none and value is None) or (_is_integer(value) and least <= value <= most)
        ),
    )


POSITIVE_NUMBER: Allowed = (
    "a finite number greater than 0",
    lambda value: _is_real(value) and 0 < value < np.inf,
)
LEVEL: Allowed = (
    "a number between 0 and 1, both excluded",
    lambda value: _is_real(value) and 0 < value < 1,
)
LEVEL_OR_AUTO: Allowed = (
    f"{LEVEL[0]}, or 'auto'",
    lambda value: (isinstance(value, str) and value == "auto") or LEVEL[1](value),
)
MAJORITY: Allowed = (
    "a number above 0.5 and at most 1",
    lambda value: _is_real(value) and 0.5 < value <= 1,
)
NAMES_OR_ALL: Allowed = (
    "None, 'all', a column or several columns",
    lambda value: (
        value is None or (isinstance(value, Iterable) and not isinstance(value, bytes | Mapping))
    ),
)
POSITIVE_OR_BALANCED: Allowed = (
    f"{POSITIVE_NUMBER[0]}, or 'balanced'",
    lambda value: (isinstance(value, str) and value == "balanced") or POSITIVE_NUMBER[1](value),
)
SHARE: Allowed = ("a number from 0 to 1", lambda value: _is_real(value) and 0 <= value <= 1)
POSITIVE_SHARE: Allowed = (
    "a number above 0 and at most 1",
    lambda value: _is_real(value) and 0 < value <= 1,
)
NUMBER_OR_NONE: Allowed = (
    "a finite number, or None",
    lambda value: value is None or (_is_real(value) and np.isfinite(value)),
)
PRUNING: Allowed = (
    "True, False, 'shown' or 'always'",
    lambda value: isinstance(value, bool | np.bool_) or value in ("shown", "always"),
)
TOLERANCE: Allowed = (
    "'auto', None or a finite number greater than 0",
    lambda value: (
        value is None or (isinstance(value, str) and value == "auto") or POSITIVE_NUMBER[1](value)
    ),
)
SHARE_OR_NUMBER: Allowed = (
    "a share between 0 and 1, or a whole number of at least 1",
    lambda value: LEVEL[1](value) or (_is_integer(value) and value >= 1),
)
BOOLEAN: Allowed = ("True or False", lambda value: isinstance(value, bool | np.bool_))
N_JOBS: Allowed = (
    "None, or a whole number other than 0",
    lambda value: value is None or (_is_integer(value) and value != 0),
)


def check_parameters(estimator: BaseEstimator, allowed: Mapping[str, Allowed]) -> None:
    """Raise for the first parameter whose value is not allowed."""
    for name, rule in allowed.items():
        check_value(name, getattr(estimator, name), rule)


def check_value(name: str, value: Any, allowed: Allowed) -> None:
    """Raise unless the value is allowed."""
    description, is_allowed = allowed
    if not is_allowed(value):
        raise IcscmError(Parameter(name), f" must be {description}; got {value!r}")


def check_matplotlib() -> None:
    """Figures need an optional package: say so before an hour of work, not after."""
    try:
        import matplotlib  # noqa: F401
    except ImportError:
        raise IcscmError(
            "figures need matplotlib; install it with: pip install 'icscm[plot]'"
        ) from None


def _is_integer(value: Any) -> bool:
    return isinstance(value, Integral) and not isinstance(value, bool)


def _is_real(value: Any) -> bool:
    return isinstance(value, Real) and not isinstance(value, bool)
