"""What version 0.3 accepted and this one does not: an error in one sentence, until version 0.5.

Each sentence names what to write instead, where Python's own message would only say that an
argument is unknown. `inspect.signature` shows the present parameters only.
"""

import inspect
from collections.abc import Callable
from functools import wraps
from typing import Any, Final, TypeVar, cast

Function = TypeVar("Function", bound=Callable[..., Any])

# Arguments of functions and methods that take data, with what replaces them.
REMOVED_ARGUMENTS: Final = {
    "seed": "its name is random_state",
}

# Names at the top level, with what replaces them.
REMOVED_NAMES: Final = {
    "TreeCausalPrediction": 'use InvariantCausalPrediction(model="tree")',
}


def data_by_name(function: Function) -> Function:
    """Decorate a function that takes data, so that a call of version 0.3 gets a clear error.

    Version 0.3 took environments, groups and weights by position, in an order that differed between
    learners: patient numbers were taken for weights in silence.
    """
    parameters = inspect.signature(function).parameters
    positional = [
        name
        for name, parameter in parameters.items()
        if parameter.kind is inspect.Parameter.POSITIONAL_OR_KEYWORD
    ]
    by_name = [
        name
        for name in ("environments", "groups", "sample_weight")
        if name in parameters and name not in positional
    ]

    @wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        if len(args) > len(positional):
            wanted = ", ".join(f"{name}=..." for name in by_name)
            taken = ", ".join(name for name in positional if name != "self")
            raise TypeError(
                f"{function.__name__} takes {taken} by position and all other arguments by name: "
                f"pass {wanted}"
            )
        for name in kwargs:
            if name in REMOVED_ARGUMENTS and name not in parameters:
                raise TypeError(
                    f"{function.__name__} has no argument {name}: {REMOVED_ARGUMENTS[name]}"
                )
        return function(*args, **kwargs)

    return cast(Function, call)
