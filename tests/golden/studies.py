"""The results of studies: check-up, evaluation, comparison, stability, transfer and choice."""

from __future__ import annotations

from functools import cache
from typing import Any

from golden.models import fit_case, ignore_warnings, resample
from golden.tables import make_lopsided_regions, make_regions, make_sites, split_admissions
from golden.writing import Golden
from golden.zoo import TOLERANCES
from icscm import (
    ICSCMClassifier,
    InvariantTreeClassifier,
    SCMClassifier,
    compare,
    evaluate,
    leave_one_environment_out,
)
from icscm.datasets import make_hospitals
from icscm.report.path import Path
from icscm.validation.checkup import CheckUp, check_environments
from icscm.validation.comparison import Comparison
from icscm.validation.evaluation import Evaluation
from icscm.validation.leave_one_out import Validation
from icscm.validation.path import tolerance_path
from icscm.validation.stability import StabilitySelection
from icscm.validation.tuning import grid_search


@cache
def fit_admissions() -> ICSCMClassifier:
    """Learn from the admissions that `split_admissions` keeps for this."""
    known, _ = split_admissions()
    with ignore_warnings():
        return ICSCMClassifier().fit(known.X, known.y, environments=known.environments)


@cache
def evaluate_admissions() -> Evaluation:
    """Evaluate a rule set on new rows, some of a hospital that it does not know."""
    _, new = split_admissions()
    with ignore_warnings():
        return evaluate(fit_admissions(), new.X, new.y, environments=new.environments)


@cache
def evaluate_shortcuts() -> Evaluation:
    """Evaluate a model with shortcuts at a hospital where they lead astray."""
    data = make_hospitals(2_500, n_new_rows=500, random_state=0)
    with ignore_warnings():
        learner = SCMClassifier(max_rules=3)
        learner.fit(data.X, data.y, environments=data.environments)
        return evaluate(learner, data.X_new, data.y_new)


@cache
def evaluate_regions() -> Evaluation:
    """Evaluate a tree in forty environments, twenty of which it knows."""
    table = make_regions()
    is_known = table.environments.str[1:].astype(int) <= 20
    known = table.select_rows(is_known)
    with ignore_warnings():
        learner = InvariantTreeClassifier(max_leaves=4)
        learner.fit(known.X, known.y, environments=known.environments)
        return evaluate(learner, table.X, table.y, environments=table.environments)


@cache
def check_admissions() -> CheckUp:
    """Check a table before anything is learned from it."""
    table = fit_case("missing").table
    return check_environments(table.X, table.y, environments=table.environments)


@cache
def check_lopsided_regions() -> CheckUp:
    """Check a table of which nearly all rows are of one environment."""
    table = make_lopsided_regions()
    return check_environments(table.X, table.y, environments=table.environments)


@cache
def resample_network() -> StabilitySelection:
    """Learn from random halves of the paper's network."""
    return resample(ICSCMClassifier(), fit_case("conjunction").table, n_subsamples=8, seed=1)


@cache
def compare_sites() -> Comparison:
    """Compare four learners within sites and at sites left out."""
    names = ["scm", "icscm", "icscm-or", "tree"]
    sites = make_sites(1_200, 3)
    return compare(
        sites.X,
        sites.y,
        environments=sites.environments,
        candidates=names,
        n_folds=3,
        min_rows=100,
    )


@cache
def transfer_sites() -> Validation:
    """Leave out one site after another."""
    learner = InvariantTreeClassifier(max_leaves=4)
    sites = make_sites(1_200, 3)
    with ignore_warnings():
        return leave_one_environment_out(learner, sites.X, sites.y, environments=sites.environments)


@cache
def follow_tolerances() -> Path:
    """Learn trees from a plain one to a strict one."""
    learner = InvariantTreeClassifier(max_leaves=4)
    sites = make_sites(1_200, 3)
    with ignore_warnings():
        return tolerance_path(
            learner, sites.X, sites.y, environments=sites.environments, tolerances=TOLERANCES
        )


def describe_choice(scorer: str, folds: str) -> dict[str, Any]:
    """Choose two settings of a rule set by a score."""
    grid = {"p": [0.5, 1.0], "model_type": ["conjunction", "disjunction"]}
    sites = make_sites(1_200, 3)
    with ignore_warnings():
        search = grid_search(
            ICSCMClassifier(),
            sites.X,
            sites.y,
            environments=sites.environments,
            grid=grid,
            scorer=scorer,
            folds=folds,
        )
    facts = ("scorer", "folds", "n_folds", "best", "baseline", "beats_baseline")
    return {**{name: getattr(search, name) for name in facts}, "tried": search.to_frame()}


# Of forty regions the worst ones are held.
N_REGIONS = 6

STUDIES = {
    "evaluate": Golden(
        "a rule set on new rows, some of a hospital that it does not know",
        lambda: evaluate_admissions().to_dict(),
    ),
    "evaluate_shortcuts": Golden(
        "a model that is worse than its baseline, without environments",
        lambda: evaluate_shortcuts().to_dict(),
    ),
    "evaluate_regions": Golden(
        "a tree in forty environments, twenty of which it knows",
        lambda: {
            "notes": evaluate_regions().to_dict()["notes"],
            "environments": evaluate_regions().to_frame()[:N_REGIONS],
        },
    ),
    "compare": Golden(
        "four learners, within sites and at sites left out, with the conclusions",
        lambda: compare_sites().to_dict(),
    ),
    "stability": Golden(
        "rules and columns found on random halves of the rows",
        lambda: {**resample_network().describe(), "table": resample_network().to_frame()},
    ),
    "check": Golden(
        "a table of admissions before anything is learned", lambda: check_admissions().to_dict()
    ),
    "check_lopsided": Golden(
        "advice where nearly all rows are of one environment, and rates do not differ",
        lambda: check_lopsided_regions().to_dict(),
    ),
    "transfer": Golden(
        "a tree learned without one site after another",
        lambda: {**transfer_sites().to_dict(), "table": transfer_sites().to_frame()},
    ),
    "tolerances": Golden(
        "trees from a plain one to a strict one, with their scores at sites left out",
        lambda: {
            "points": follow_tolerances().describe_points(),
            "table": follow_tolerances().to_frame(),
        },
    ),
    "choice": Golden(
        "settings chosen by a score over folds of rows",
        lambda: describe_choice("balanced_accuracy", "rows"),
    ),
    "choice_log_loss": Golden(
        "settings chosen by a loss over folds of environments",
        lambda: describe_choice("log_loss", "environments"),
    ),
}


def list_studies() -> dict[str, Golden]:
    """Return the result of each study."""
    return {f"studies/{name}.json": golden for name, golden in STUDIES.items()}
