"""The models whose results are held: each `Case` says what it is there for.

A case is fitted once. Its result is in `files/models`; where its report has content of a kind
that no other report has, this is in `files/reports`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from golden.tables import (
    Table,
    make_admissions,
    make_lone_device,
    make_network,
    make_noise,
    make_rare_outcome,
    make_regions,
    make_shifted,
    make_sites,
)
from icscm import (
    ICSCMClassifier,
    InvariantForestClassifier,
    InvariantScoreClassifier,
    InvariantTreeClassifier,
    SCMClassifier,
)


@dataclass(frozen=True, kw_only=True)
class Case:
    """A model to be fitted.

    Parameters
    ----------
    why : str
        What the case is there for that no other case covers.
    estimator, make_table : estimator, function
        The learner, not fitted, and what returns its table.
    why_report : str or None
        What its report shows that no other report shows; None if the report is not held.
    alphas, tolerances : tuple or None
        Other levels or tolerances at which the model is learned, for the report's path.
    is_validated : bool
        Whether the report has the performance in environments left out.
    n_subsamples : int
        Subsamples of which the report shows the stability; 0 for none.
    """

    why: str
    estimator: Any
    make_table: Callable[[], Table]
    why_report: str | None = None
    alphas: tuple[float, ...] | None = None
    tolerances: tuple[float | None, ...] | None = None
    is_validated: bool = False
    n_subsamples: int = 0


ALPHAS = (0.001, 0.05, 0.3)
TOLERANCES = (None, 0.03, 0.3)
# The search as in the paper: without the limits that our defaults add.
PAPER = {"pruning": "always", "min_replication": 0, "min_utility": None}

RULE_SETS = {
    "conjunction": Case(
        why="the default learner on the paper's network: it finds the parents",
        estimator=ICSCMClassifier(),
        make_table=lambda: make_network(1_500, seed=3),
        why_report="a rule set with all parts: validation, stability, other levels",
        alphas=ALPHAS,
        is_validated=True,
        n_subsamples=6,
    ),
    "disjunction": Case(
        why="rules of which one is enough, added until no row is left to cover",
        estimator=ICSCMClassifier(model_type="disjunction", stop="coverage"),
        make_table=lambda: make_network(1_500, model_type="disjunction", seed=3),
        why_report="rules that predict the positive class where they are true",
    ),
    "shape": Case(
        why="conjunction, disjunction and tree are compared where they were not trained",
        estimator=ICSCMClassifier(model_type="auto"),
        make_table=lambda: make_network(400, 3, model_type="disjunction", seed=3),
    ),
    "nothing": Case(
        why="every candidate is rejected, since the environment acts on the outcome",
        estimator=ICSCMClassifier(),
        make_table=make_shifted,
        why_report="no rule: nearest misses, and what to try next",
        alphas=ALPHAS,
    ),
    "weak": Case(
        why="any utility above 0 is enough, so that rules are found in noise",
        estimator=ICSCMClassifier(min_utility=0.0),
        make_table=make_noise,
        why_report="rules that are not stable, and no better than the baseline",
        n_subsamples=4,
    ),
    "exhaustive": Case(
        why="all sets of rules are tested, at the level that depends on the number of rows",
        estimator=ICSCMClassifier(search="exhaustive", alpha="auto"),
        make_table=make_network,
        why_report="the sets that were tested, and the rules that were screened for them",
    ),
    "exhaustive_rejected": Case(
        why="every set of rules is rejected",
        estimator=ICSCMClassifier(search="exhaustive"),
        make_table=make_sites,
    ),
    "exhaustive_shared": Case(
        why="the accepted sets share no rule, in a small table",
        estimator=ICSCMClassifier(search="exhaustive", alpha=0.01),
        make_table=lambda: make_network(60, 2, seed=2),
    ),
    "not_associated": Case(
        why="no column is associated with the outcome, so that no set is tested",
        estimator=ICSCMClassifier(search="exhaustive"),
        make_table=make_shifted,
    ),
    "pruned": Case(
        why="pruning removes a column, as in the paper's code",
        estimator=ICSCMClassifier(stop="coverage", **PAPER),
        make_table=lambda: make_network(900, 3, seed=1, n_parents=3),
        why_report="tests of pruning, with a rule that was removed",
    ),
    "equivalence": Case(
        why="leaves must be shown to differ by less than a margin",
        estimator=ICSCMClassifier(margin=0.1),
        make_table=lambda: make_network(1_500, 3),
        why_report="margins in place of levels, drawn as bands",
    ),
    "equivalence_nothing": Case(
        why="too few rows to show anything within a margin",
        estimator=ICSCMClassifier(margin=0.02),
        make_table=lambda: make_network(150, 3),
    ),
    "likelihood_ratio": Case(
        why="a likelihood-ratio test",
        estimator=ICSCMClassifier(test="g"),
        make_table=lambda: make_network(600, 2, seed=5),
    ),
    "missing": Case(
        why="categories and missing values; an identifier and a constant are dropped",
        estimator=ICSCMClassifier(),
        make_table=lambda: make_admissions(3_000, 0),
        why_report="dropped columns, and rules with missing values",
        alphas=ALPHAS,
    ),
    "missing_disjunction": Case(
        why="missing values as a rule of their own",
        estimator=ICSCMClassifier(model_type="disjunction", p=0.7, min_utility=0.0),
        make_table=lambda: make_admissions(model_type="disjunction", n_causes=3, seed=6),
    ),
    "many_environments": Case(
        why="forty environments, of which two stand out",
        estimator=ICSCMClassifier(),
        make_table=make_regions,
        why_report="outlying environments, and lists too long to be shown",
    ),
    "set_aside": Case(
        why="rules that are worse than the baseline are set aside",
        estimator=ICSCMClassifier(p=0.3),
        make_table=make_rare_outcome,
        why_report="rules that were found and discarded",
    ),
    "worse": Case(
        why="balanced costs, where the model has more errors than the baseline",
        estimator=ICSCMClassifier(p="balanced", **PAPER),
        make_table=make_rare_outcome,
    ),
    "lone": Case(
        why="a rule whose evidence is of one environment is not replicated",
        estimator=ICSCMClassifier(),
        make_table=make_lone_device,
    ),
    "one_site": Case(
        why="the same rule, accepted without replication, with the warning",
        estimator=ICSCMClassifier(stop="coverage", **PAPER),
        make_table=make_lone_device,
    ),
    "plain": Case(
        why="the plain learner without environments",
        estimator=SCMClassifier(max_rules=3),
        make_table=lambda: make_network().drop_environments(),
        why_report="nothing about environments",
    ),
    "plain_judged": Case(
        why="the plain learner with environments, judged after the search",
        estimator=SCMClassifier(model_type="disjunction", p=2.0),
        make_table=make_admissions,
        why_report="verdicts on a model that was learned without a requirement",
    ),
}

TREES = {
    "effect_tree": Case(
        why="splits whose effects are the same at every site, although rates differ",
        estimator=InvariantTreeClassifier(),
        make_table=make_sites,
        why_report="a tree with all parts: validation, rejected columns, other tolerances",
        tolerances=TOLERANCES,
        is_validated=True,
    ),
    "effect_tree_missing": Case(
        why="splits on categories and missing values, and balanced probabilities",
        estimator=InvariantTreeClassifier(max_leaves=6, probabilities="balanced"),
        make_table=make_admissions,
    ),
    "rate_tree": Case(
        why="leaves with the same rate in every environment: the parents are found",
        estimator=InvariantTreeClassifier(invariance="rate"),
        make_table=make_network,
        why_report="the trees that were tried for invariant rates",
    ),
    "rate_tree_beyond": Case(
        why="no tree has invariant rates, and the nearest one is returned",
        estimator=InvariantTreeClassifier(invariance="rate", max_leaves=5),
        make_table=make_sites,
        why_report="by how much the nearest tree exceeds the tolerance",
    ),
    "tree_two_environments": Case(
        why="two environments, the fewest that can be compared",
        estimator=InvariantTreeClassifier(max_leaves=4),
        make_table=lambda: make_sites(n_sites=2),
    ),
    "tree_alone": Case(
        why="a tree without environments",
        estimator=InvariantTreeClassifier(tolerance=None, max_leaves=3),
        make_table=lambda: make_sites().drop_environments(),
    ),
    "tree_nothing": Case(
        why="no split explains more than chance would",
        estimator=InvariantTreeClassifier(),
        make_table=make_noise,
        why_report="a tree of one leaf",
    ),
    "tree_rejected": Case(
        why="the only column is rejected",
        estimator=InvariantTreeClassifier(tolerance=0.001),
        make_table=lambda: make_sites().select_columns(["code"]),
    ),
}

ENSEMBLES = {
    "forest": Case(
        why="trees of invariant effects on resampled rows",
        estimator=InvariantForestClassifier(
            n_estimators=5, max_leaves=6, max_features=1.0, random_state=0
        ),
        make_table=make_sites,
        why_report="errors out of bag, and importances over trees",
    ),
    "forest_rates": Case(
        why="trees of invariant rates",
        estimator=InvariantForestClassifier(
            n_estimators=4, max_leaves=4, invariance="rate", random_state=0
        ),
        make_table=make_admissions,
    ),
    "score": Case(
        why="points of columns, added up to a risk",
        estimator=InvariantScoreClassifier(random_state=0, n_jobs=1),
        make_table=lambda: make_sites(1_500),
        why_report="tables of points and risks",
    ),
}

CASES = RULE_SETS | TREES | ENSEMBLES
