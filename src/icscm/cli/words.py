"""What the command line calls the things that messages name as Python does."""

from __future__ import annotations

from icscm.exceptions import Parameter

# Where the option is not spelled as the parameter is; empty where there is none.
_OPTIONS = {
    "X": "the table",
    "y": "the target",
    "keep_columns": "--keep",
    "model_type": "--type",
    "n_jobs": "--jobs",
    "habit_strength": "--habits",
    "n_candidates": "",
    "n_causes": "--parents",
    "n_estimators": "--trees",
    "n_hospitals": "--environments",
    "n_rows": "--rows",
    "random_state": "--seed",
    "SCMClassifier": "--model scm",
    "InvariantTreeClassifier": "--model tree",
    "folds": "--cv-folds",
    "icscm.studies.checkup.check_environments": "icscm check",
    "icscm.studies.choice.choose": "--cv p=0.1,1,balanced",
}


def name_option(parameter: Parameter) -> str:
    """A parameter as the option that sets it.

    >>> name_option(Parameter("missing", "candidate")), name_option(Parameter("keep_columns"))
    ('--missing candidate', '--keep')
    >>> name_option(Parameter("correction", None)), name_option(Parameter("force", True))
    ('--correction none', '--force')
    """
    name, value = parameter
    option = _OPTIONS.get(name, f"--{name.replace('_', '-')}")
    if value is ... or value is True:
        return option
    return f"{option} {'none' if value is None else value}"
