"""Errors and warnings that users may want to catch.

A message is in parts: text, and the parameters that it names. So the command line can show the
option of a parameter, `--min-utility 0`, where Python shows `min_utility=0`.
"""

import re
import sys
import warnings
from collections.abc import Callable, Container, Iterable
from types import FrameType
from typing import Any, Final, NamedTuple

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


# Names a parameter in a message, as in Python or as an option of the command line.
Words = Callable[[Parameter], str]


class _Message(Exception):  # noqa: N818 (also a base of warnings)
    """A message in parts: text, and parameters that it names."""

    def __init__(self, *parts: str | Parameter) -> None:
        self.parts = parts
        super().__init__(self.render(str))

    def render(self, words: Words) -> str:
        """Return the message, with parameters named by `words`; control characters are escaped."""
        texts = [words(part) if isinstance(part, Parameter) else str(part) for part in self.parts]
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
    wanted: Iterable[Any],
    known: Container[Any],
    *before: str | Parameter,
    after: str | tuple[str | Parameter, ...] = "",
) -> None:
    """Raise for values that are not known; the message lists them, each once, between two texts."""
    distinct = dict.fromkeys(wanted)
    unknown = [repr(value) for value in distinct if value not in known]
    if unknown:
        parts_after = (after,) if isinstance(after, str) else after
        raise IcscmError(*before, shorten_list(unknown), *parts_after)


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
    """An environment holds too few rows, or lacks a class, for a test of invariance."""


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
    """Most subsamples give a different model than all rows."""


class NothingAcceptedWarning(IcscmWarning):
    """Invariant causal prediction rejected every set of columns: the model does not fit."""


class UntestedSetsWarning(IcscmWarning):
    """More columns could be causes than the limits on sets allow to be tested together."""


class UnseenMissingWarning(IcscmWarning):
    """Values are missing in a column that had none at fitting; predictions are averaged."""


class UnknownLevelWarning(IcscmWarning):
    """Rows have levels that the column did not have in training; they are treated as missing."""


class RangeWarning(IcscmWarning):
    """Many numbers of a column are far outside their range in training: another unit?"""


class ThresholdWarning(IcscmWarning):
    """Probabilities were shifted after the threshold was chosen."""


class StreamedWarning(IcscmWarning):
    """A table is larger than the memory of the card and is sent again for each step."""


class LeftOutWarning(ShownWarning):
    """Columns that rules should not use were dropped."""


# --- showing warnings -----------------------------------------------------------------------------

# Frames of Python's stack, counted from `_find_caller`: itself, `warn`, and what calls `warn`.
_DEPTH_OF_WARNING_FUNCTION: Final = 2


class _Occurrence(NamedTuple):
    """A message of a category at a line of the user: what is shown once."""

    message: str
    category: type[Warning]
    file: str
    line: int


# The list of filters that applied when each occurrence was last shown; see `_is_repeated`.
_filters_when_shown: dict[_Occurrence, Any] = {}


class _Caller(NamedTuple):
    """The innermost line outside this package, and its level as `warnings.warn` counts it.

    `frame` is None where there is no such line.
    """

    frame: FrameType | None
    stack_level: int


def warn(message: str | tuple[str | Parameter, ...], category: type[IcscmWarning]) -> None:
    """Warn, with the location of the innermost line outside this package.

    The same warning from the same line is shown once, as Python's filter `default` has it; users
    who set another filter for it, such as `error` or `always`, get what they ask for.
    """
    parts = (message,) if isinstance(message, str) else message
    warning = category(*parts)
    caller = _find_caller()

    if caller.frame is None or _has_other_filter(warning):
        is_repeated = False
    else:
        is_repeated = _is_repeated(warning, caller.frame)
    if not is_repeated:
        warnings.warn(warning, stacklevel=caller.stack_level)


def _is_repeated(warning: IcscmWarning, frame: FrameType) -> bool:
    """Tell whether a warning was shown for this line before, and remember that it is now.

    Python remembers this, too, but forgets it whenever any library adds a filter. Only inside
    another block of `warnings.catch_warnings` should a warning be shown again: each block has a
    list of filters of its own, `warnings.filters`, so the same list means the same block.
    """
    occurrence = _Occurrence(
        message=str(warning),
        category=type(warning),
        file=frame.f_code.co_filename,
        line=frame.f_lineno,
    )
    is_repeated = _filters_when_shown.get(occurrence) is warnings.filters
    _filters_when_shown[occurrence] = warnings.filters
    return is_repeated


def _find_caller() -> _Caller:
    """Find the user's line that led to a warning; called by `warn` only."""
    frame = sys._getframe(_DEPTH_OF_WARNING_FUNCTION).f_back
    stack_level = 3  # for warnings.warn, 1 is our `warn` and 2 the function that calls it
    while frame is not None and _is_of_this_package(frame):
        frame = frame.f_back
        stack_level += 1
    return _Caller(frame=frame, stack_level=stack_level)


def _is_of_this_package(frame: FrameType) -> bool:
    module: str = frame.f_globals.get("__name__", "")
    return module.split(".")[0] == "icscm"


def _has_other_filter(warning: IcscmWarning) -> bool:
    """Tell whether the first filter that fits the warning is another than Python's `default`."""
    for action, message, category, _, _ in warnings.filters:
        if not isinstance(warning, category):
            continue
        pattern: Any = message  # compiled, unlike its type
        if pattern is None or pattern.match(str(warning)):
            return action != "default"
    return False


# --- errors of libraries --------------------------------------------------------------------------

_SHORT_OF_MEMORY: Final = re.compile(
    "alloc of size|bad_alloc|Cannot allocate memory|failed to map segment"
    "|can't start new thread|launch worker thread"
)


def is_short_of_memory(error: BaseException | None) -> bool:
    """Tell whether an error, or one that led to it, means that memory ran out.

    Libraries report this in several ways.
    """
    while error is not None:
        if isinstance(error, MemoryError) or _SHORT_OF_MEMORY.search(str(error)):
            return True
        error = error.__cause__ or error.__context__
    return False
