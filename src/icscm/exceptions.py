"""Errors and warnings that users may want to catch."""

import re
import sys
import warnings
from collections.abc import Callable, Container, Iterable
from typing import Any, NamedTuple

from icscm.formatting import clip_message, escape_controls, shorten_list


class Parameter(NamedTuple):
    """A parameter named in a message, with the value to give it; as text, in Python syntax.

    The command line replaces it by the option of that parameter when it shows the message.

    >>> print(Parameter("alpha"), Parameter("missing", "candidate"))
    alpha missing='candidate'
    """

    name: str
    value: Any = ...

    def __str__(self) -> str:
        return self.name if self.value is ... else f"{self.name}={self.value!r}"


Words = Callable[[Parameter], str]


class _Message(Exception):  # noqa: N818 (also a base of warnings)
    """A message in parts: text, and parameters that it names."""

    def __init__(self, *parts: str | Parameter) -> None:
        self.parts = parts
        super().__init__(self.render(str))

    def render(self, words: Words) -> str:
        """The message, with parameters formatted by `words`; control characters are escaped."""
        texts = (words(p) if isinstance(p, Parameter) else str(p) for p in self.parts)
        return clip_message(escape_controls("".join(texts), keep="\n"))


class IcscmError(_Message, ValueError):
    """Something in the input cannot be used; the message says what, where and what to do.

    Examples
    --------
    >>> from icscm import ICSCMClassifier
    >>> from icscm.exceptions import IcscmError
    >>> try:
    ...     ICSCMClassifier().fit([[0], [1]], [0, 1], environments=["here", "here"])
    ... except IcscmError as error:
    ...     print(error)
    environments holds a single environment, 'here'; invariance needs at least two to compare
    """


def reject_unknown(
    wanted: Iterable[Any], known: Container[Any], *before: str | Parameter, after: str = ""
) -> None:
    """Raise for values that are not known; the message lists them between two texts."""
    unknown = [repr(each) for each in dict.fromkeys(wanted) if each not in known]
    if unknown:
        raise IcscmError(*before, shorten_list(unknown), after)


class IcscmWarning(_Message, UserWarning):
    """Base of all warnings of this package.

    Examples
    --------
    >>> import warnings
    >>> from icscm import ICSCMClassifier
    >>> from icscm.exceptions import NoEnvironmentsWarning
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("ignore", NoEnvironmentsWarning)
    ...     learner = ICSCMClassifier().fit([[0], [1]] * 50, [0, 1] * 50)
    >>> print(learner.model_)
    x0 > 0
    """


class ShownWarning(IcscmWarning):
    """Base of warnings that commands hide, since the printed result contains them."""


class NoEnvironmentsWarning(ShownWarning):
    """`fit` got no environments, so nothing could be tested for invariance."""


class SparseEnvironmentWarning(IcscmWarning):
    """An environment holds too few samples, or lacks a class, for a test of invariance."""


class FewEnvironmentsWarning(ShownWarning):
    """There are only two environments, which show a single difference."""


class NothingFoundWarning(ShownWarning):
    """No rule was chosen, so the model is empty; `trace_` lists why each candidate was rejected."""


class NotInvariantWarning(IcscmWarning):
    """The best tree that was found is not invariant within the tolerance."""


class TooLittleDataWarning(ShownWarning):
    """The model rests on leaves too small to test for invariance."""


class ContraryLeafWarning(ShownWarning):
    """`predict` and `predict_proba` disagree in a leaf: it holds more of the other class."""


class UnstableModelWarning(ShownWarning):
    """Most subsamples give a different model than all samples."""


class NothingAcceptedWarning(IcscmWarning):
    """Invariant causal prediction rejected every set of features: the model does not fit."""


class UntestedSetsWarning(IcscmWarning):
    """More features could be causes than the limits on sets allow to be tested together."""


class UnseenMissingWarning(IcscmWarning):
    """Values are missing in a column that had none at fitting; predictions are averaged."""


class ThresholdWarning(IcscmWarning):
    """Probabilities were shifted after the threshold was chosen."""


class StreamedWarning(IcscmWarning):
    """A table is larger than the memory of the card and is sent again for each step."""


class LeftOutWarning(ShownWarning):
    """Columns that rules should not use were dropped."""


# Warnings that were shown, by place, with the list of filters at that time: Python clears its own
# registry whenever a filter is added. `catch_warnings` makes a new list, for which all are shown.
_shown: dict[tuple[str, type[Warning], str, int], Any] = {}


def warn(message: str | tuple[str | Parameter, ...], category: type[IcscmWarning]) -> None:
    """Warn, with the location of the innermost line outside this package.

    The same warning from the same line is shown once, unless a filter requires otherwise.
    """
    level, frame = 3, sys._getframe(1).f_back  # 2 would be the caller of this function
    while frame is not None and frame.f_globals.get("__name__", "").split(".")[0] == "icscm":
        level, frame = level + 1, frame.f_back
    warning = category(*((message,) if isinstance(message, str) else message))
    if frame is not None and not _is_filtered(warning):
        place = str(warning), category, frame.f_code.co_filename, frame.f_lineno
        if _shown.get(place) is warnings.filters:
            return
        _shown[place] = warnings.filters
    warnings.warn(warning, stacklevel=level)


def _is_filtered(warning: IcscmWarning) -> bool:
    """Whether a filter other than Python's `default` applies to the warning."""
    for action, message, category, _, _ in warnings.filters:
        pattern: Any = message  # compiled, unlike its type
        if isinstance(warning, category) and (pattern is None or pattern.match(str(warning))):
            return action != "default"
    return False


_SHORT_OF_MEMORY = re.compile(
    "alloc of size|bad_alloc|Cannot allocate memory|failed to map segment"
    "|can't start new thread|launch worker thread"
)


def is_short_of_memory(error: BaseException | None) -> bool:
    """Whether memory ran out; libraries report this in several ways."""
    while error is not None:
        if isinstance(error, MemoryError) or _SHORT_OF_MEMORY.search(str(error)):
            return True
        error = error.__cause__ or error.__context__
    return False
