"""What version 0.3 accepted and this one does not: an error in one sentence, until version 0.5.

Each sentence names what to write instead, where Python's own message would only say that an
argument is unknown. `inspect.signature` shows the present parameters only.
"""

import inspect
from collections.abc import Callable, Iterable, Mapping
from functools import wraps
from typing import Any, Final, TypeVar, cast

Function = TypeVar("Function", bound=Callable[..., Any])
Class = TypeVar("Class", bound=type)

# What replaces `keep_columns` and `--keep-columns`.
KEEP_AS_CATEGORY: Final = (
    "a column that looks like an identifier is used if it is a category, by its type "
    "(X.astype({'code': 'category'})) or, in files, by --categories code"
)

# Arguments of functions and methods that take data, with what replaces them.
REMOVED_ARGUMENTS: Final = {
    "seed": "its name is random_state",
    "keep_columns": KEEP_AS_CATEGORY,
    "frequency_weight": "repeat the rows instead, as in X.loc[X.index.repeat(n)]; weights that "
    "count no rows are sample_weight",
}

# Parameters of learners, with what replaces them.
REMOVED_OPTIONS: Final = {
    "conclusion": "the model has the rules that all accepted sets share; "
    "InvariantCausalPrediction names the best set",
    "correction": "a smaller alpha rejects fewer candidates",
    "criterion": "margin=0.05 requires equivalence within that margin, margin=None uses p-values",
    "evidence": "every step tests all candidates again",
    "feature_weights": "drop the columns that should not be used from X",
    "keep_columns": KEEP_AS_CATEGORY,
    "margin_on": "a margin is a difference of rates",
    "min_samples_leaf": "min_utility and margin reject rules with too little data",
    "missing": "missing values are candidates; X.dropna() removes such rows",
    "min_replication": "columns that determine the environment are rejected, and no others are",
    "n_candidates": "the exhaustive search combines at most 8 rules",
    "resample": "each tree is grown on some of the rows",
    "screen": "the exhaustive search takes the rule of each column that is most associated with "
    "the label",
}

# Arguments of the reports of learners, which described data and now describe results.
REMOVED_REPORT_ARGUMENTS: Final = {
    "alphas": "pass path=icscm.validation.alpha_path(learner, X, y, ...)",
    "tolerances": "pass path=icscm.validation.tolerance_path(learner, X, y, ...)",
    "tolerance_path": "its name is path",
}

# Methods of learners, with what replaces them.
REMOVED_METHODS: Final = {
    "permute_columns": "use icscm.validation.permutation_importance(forest, X, y, ...)",
    "tolerance_path": "use icscm.validation.tolerance_path(learner, X, y, ...)",
    "validate": "use icscm.leave_one_environment_out(learner, X, y, ...) and "
    "report(validation=...)",
}

# Names at the top level, with what replaces them.
REMOVED_NAMES: Final = {
    "Conjunction": "make one with icscm.model.tree.make_chain",
    "Disjunction": "make one with icscm.model.tree.make_chain",
    "Forest": "it is in icscm.model",
    "SavedModel": "it is in icscm.model",
    "Score": "it is in icscm.model",
    "Tree": "it is in icscm.model",
    "choose_threshold": "it is in icscm.validation",
    "permutation_importance": "it is in icscm.validation",
    "tolerance_path": "it is in icscm.validation",
    "validate_screen": "it is in icscm.validation",
    "studies": "it is icscm.validation",
    "TreeCausalPrediction": 'use InvariantCausalPrediction(model="tree")',
}


# What takes data takes these by name.
DATA_ARGUMENTS: Final = ("environments", "groups", "sample_weight")


def data_by_name(function: Function) -> Function:
    """Decorate a function that takes data, so that a call of version 0.3 gets a clear error.

    Version 0.3 took environments, groups and weights by position, in an order that differed between
    learners: patient numbers were taken for weights in silence. Now they go by name. The error says
    which to name, or what replaces an argument that is gone.
    """
    parameters = inspect.signature(function).parameters
    positional = [
        name
        for name, parameter in parameters.items()
        if parameter.kind is inspect.Parameter.POSITIONAL_OR_KEYWORD
    ]
    by_name = [name for name in DATA_ARGUMENTS if name in parameters and name not in positional]

    @wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        if len(args) > len(positional):
            taken = ", ".join(name for name in positional if name != "self")
            by_keyword = ", ".join(f"{name}=..." for name in by_name)
            raise TypeError(
                f"{function.__name__} takes {taken} by position and all other arguments by name: "
                f"pass {by_keyword}"
            )
        reject_removed(
            [name for name in kwargs if name not in parameters],
            removed=REMOVED_ARGUMENTS,
            what=f"{function.__name__} has no argument",
        )
        return function(*args, **kwargs)

    return cast(Function, call)


def results_by_name(report: Function) -> Function:
    """Decorate a report, so that a call of version 0.3, which took data, gets a clear error."""

    @wraps(report)
    def call(self: Any, *args: Any, **kwargs: Any) -> Any:
        if args or "X" in kwargs:
            raise TypeError(
                "report takes no data, since it fits nothing: pass results of icscm.validation, as "
                "in report(path=..., validation=...)"
            )
        reject_removed(kwargs, removed=REMOVED_REPORT_ARGUMENTS, what="report has no argument")
        return report(self, **kwargs)

    return cast(Function, call)


def reject_removed_options(learner: Class) -> Class:
    """Decorate a class of learners, so that a parameter of version 0.3 gets a clear error."""
    construct = learner.__init__  # type: ignore[misc]
    parameters = inspect.signature(construct).parameters

    @wraps(construct)
    def construct_checked(self: Any, *args: Any, **kwargs: Any) -> None:
        reject_removed(
            [name for name in kwargs if name not in parameters],
            removed=REMOVED_OPTIONS,
            what=f"{learner.__name__} has no parameter",
        )
        construct(self, *args, **kwargs)

    learner.__init__ = construct_checked  # type: ignore[misc]
    return learner


def reject_removed(names: Iterable[str], *, removed: Mapping[str, str], what: str) -> None:
    """Raise for the first name that was removed; Python itself rejects those that never were."""
    for name in names:
        if name in removed:
            raise TypeError(f"{what} {name}: {removed[name]}")
