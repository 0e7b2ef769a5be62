"""Errors and warnings that users may want to catch."""

import sys
import warnings


class IcscmError(ValueError):
    """Something in the input cannot be used; the message says what, where and what to do."""


class IcscmWarning(UserWarning):
    """Base of all warnings of this package."""


class NoEnvironmentsWarning(IcscmWarning):
    """`fit` got no environments, so nothing could be tested for invariance."""


class SparseEnvironmentWarning(IcscmWarning):
    """An environment holds too few samples, or lacks a class, to say much about invariance."""


class NothingFoundWarning(IcscmWarning):
    """No rule was chosen, so the model is empty; `trace_` says why each candidate was refused."""


class TooLittleDataWarning(IcscmWarning):
    """The model rests on leaves too small to tell whether they are invariant."""


class NothingAcceptedWarning(IcscmWarning):
    """Invariant causal prediction rejected every set of features: the model does not fit."""


class UnseenMissingWarning(IcscmWarning):
    """Values are missing where none was at fitting, so no rule says what to make of them."""


class LeftOutWarning(IcscmWarning):
    """Columns that no rule should be made of were left out."""


def warn(message: str, category: type[IcscmWarning]) -> None:
    """Warn, and point to the line outside this package that led here, however deep it is."""
    level, frame = 3, sys._getframe(1).f_back  # 2 would be the caller of this function
    while frame is not None and frame.f_globals.get("__name__", "").split(".")[0] == "icscm":
        level, frame = level + 1, frame.f_back
    warnings.warn(message, category, stacklevel=level)
