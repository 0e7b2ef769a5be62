"""What every study's figure has in common."""

import numpy as np
import pytest

from icscm import (
    InvariantTreeClassifier,
    SCMClassifier,
    compare,
    evaluate,
    leave_one_environment_out,
)
from icscm.datasets import make_conjunction
from icscm.validation.path import tolerance_path
from support.drawings import parse


def follow_tolerances(X, y, environments):
    learner = InvariantTreeClassifier(max_leaves=2)
    return tolerance_path(learner, X, y, environments=environments, tolerances=[None, 0.03])


@pytest.mark.parametrize(
    "study",
    [
        lambda *data: evaluate(
            SCMClassifier(max_rules=1).fit(*data[:2]), *data[:2], environments=data[2]
        ),
        lambda *data: leave_one_environment_out(
            SCMClassifier(max_rules=1), *data[:2], environments=data[2]
        ),
        lambda *data: compare(*data[:2], environments=data[2], candidates=["scm"], n_folds=2),
        follow_tolerances,
    ],
    ids=["evaluate", "leave_one_environment_out", "compare", "tolerance_path"],
)
def test_every_study_draws_a_figure(study):
    r"""Every study's figure holds an environment or column called `$\frac$` or `<b>` as text."""
    X, y, environments = make_conjunction(200, 1, n_environments=3, random_state=1)[:3]
    X = X.rename(columns={X.columns[0]: r"$\frac$"})
    found = study(X, y, np.array(["a", "b", r"$\frac$ <b>"])[environments])
    figure = found.plot()
    parse(figure)
    assert figure.description
