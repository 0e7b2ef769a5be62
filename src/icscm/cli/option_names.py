"""Options of the command line for the parameters that messages name as Python does."""

from __future__ import annotations

from icscm.exceptions import Parameter

# What is not the option of the same name.
_OPTIONS = {
    "X": "the table",
    "y": "the target",
    "n_causes": "--parents",
    "n_hospitals": "--environments",
    "n_rows": "--rows",
    "SCMClassifier": "--model scm",
    "InvariantTreeClassifier": "--model tree",
    "folds": "--cv-folds",
    "icscm.studies.checkup.check_environments": "icscm check",
    "icscm.studies.choice.choose": "--cv p=0.1,1,balanced",
}

# Options of version 0.2, and what they are called now.
RENAMED = {
    "--type": "--model-type",
    "--keep": "--keep-columns",
    "--jobs": "--n-jobs",
    "--seed": "--random-state",
    "--trees": "--n-estimators",
    "--habits": "--shortcut-strength",
    "--no-alpha-path": "--no-path",
}


def name_option(parameter: Parameter) -> str:
    """A parameter as the option that sets it.

    >>> name_option(Parameter("missing", "candidate")), name_option(Parameter("keep_columns"))
    ('--missing candidate', '--keep-columns')
    >>> name_option(Parameter("correction", None)), name_option(Parameter("force", True))
    ('--correction none', '--force')
    """
    name, value = parameter
    option = _OPTIONS.get(name, f"--{name.replace('_', '-')}")
    if value is ... or value is True:
        return option
    return f"{option} {'none' if value is None else value}"
