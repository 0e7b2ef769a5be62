"""Sentences on a fitted learner: leaves, requirement, rejections, paths, intervals, suggestions."""

from dataclasses import replace
from types import SimpleNamespace

import pytest

from icscm.report.content.candidates import RatioExtreme, RuleCandidate, SplitCandidate
from icscm.report.content.learner import NewEnvironments
from icscm.report.content.leaves import Leaf, NewEnvironment, Requirement
from icscm.report.content.model import Shape
from icscm.report.content.nodes import Pruning, PruningTestContent, RejectedCandidate, ScanSize
from icscm.report.content.rates import RateExtreme
from icscm.report.formatting import make_names
from icscm.report.wording.advice import (
    decides,
    warn_of_little_data,
    warn_of_poor_ranking,
    warn_of_single_environments,
)
from icscm.report.wording.intervals import describe_new_environments, describe_unknown_intervals
from icscm.report.wording.invariance import find_conclusion
from icscm.report.wording.learner_facts import describe_shape
from icscm.report.wording.leaves import explain_leaf
from icscm.report.wording.ranges import describe_outliers, reverses
from icscm.report.wording.rejections import (
    describe_pruning,
    describe_rejections,
    explain_rejection,
)
from icscm.report.wording.requirement import describe_bounds
from icscm.report.wording.suggestions import describe_nearest_miss
from icscm.stats.verdicts import INVARIANT, NOT_INVARIANT, TOO_LITTLE_DATA

NAMES = make_names(["north", "south"], ("no", "yes"), "ill", "site")
NORTH = RateExtreme(environment="north", n=50, rate=0.1)
SOUTH = RateExtreme(environment="south", n=60, rate=0.3)
LEAF = Leaf(
    number=1,
    condition="age > 63",
    name="age > 63",
    is_rest=False,
    predicts="ill = yes",
    is_positive=True,
    n=110,
    n_positive=23,
    rate=0.21,
    rate_interval=[0.14, 0.29],
    environments=[],
    n_seen=2,
    lowest=NORTH,
    highest=SOUTH,
    outliers=None,
    conclusion=NOT_INVARIANT,
    p_value=0.01,
    difference=0.2,
    difference_interval=[0.05, 0.35],
    detectable=0.25,
    tau=None,
    tau_interval=None,
    i2=None,
    new_interval=None,
    known_interval=None,
    new_reason=None,
)
REQUIREMENT = Requirement(alpha=0.05, margin=0.4)
SPAN = "The rate of ill = yes ranges from 10.0% (site north) to 30.0% (site south)."


# --- leaves ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        ({"conclusion": None}, "Not tested: the data have no environments."),
        (
            {"difference": None, "n_seen": 1},
            "Not testable: only 1 environment has samples in it.",
        ),
        (
            {"conclusion": INVARIANT},
            f"{SPAN} The data rule out a difference of more than 35 points, which is within the "
            "margin of 40 points.",
        ),
        (
            {},
            f"{SPAN} If the rate did not depend on the environment, a difference this large would "
            "occur with probability 0.010.",
        ),
        (
            {"conclusion": TOO_LITTLE_DATA},
            f"{SPAN} This may be chance, but a difference of 35 points is still possible; the "
            "minimum detectable difference is 25 points.",
        ),
        (
            {
                "conclusion": TOO_LITTLE_DATA,
                "difference_interval": [0.0, 0.9999],
                "detectable": None,
            },
            f"{SPAN} This may be chance, but any difference is still possible; the minimum "
            "detectable difference is more than 100 points.",
        ),
    ],
)
def test_a_leaf_is_explained_by_its_verdict(changes, text):
    assert explain_leaf(replace(LEAF, **changes), NAMES, REQUIREMENT) == text


def test_few_environments_that_spoil_a_leaf_are_named():
    leaf = replace(LEAF, outliers=["south"], n_seen=5)
    assert "It holds in 4 of 5 environments; not in south." in explain_leaf(
        leaf, NAMES, REQUIREMENT
    )
    assert describe_outliers(None, 5) == describe_outliers([], 5) == ""


def test_bounds_say_nothing_vacuous():
    assert describe_bounds([], "5 points") == ""
    assert describe_bounds([replace(LEAF, conclusion=None)], "5 points") == ""
    vacuous = replace(LEAF, difference_interval=[0.0, 1.0], detectable=None)
    assert describe_bounds([vacuous], "5 points") == (
        "Invariant: shown to differ by at most 5 points between environments. Largest minimum "
        "detectable difference: more than 100 points."
    )
    assert "In the least certain leaf a difference of 35 points is" in describe_bounds(
        [LEAF, LEAF], "5 points"
    )


def test_the_worst_conclusion_is_that_of_the_model():
    leaves = [replace(LEAF, conclusion=each) for each in (INVARIANT, TOO_LITTLE_DATA)]
    assert find_conclusion(leaves) == TOO_LITTLE_DATA
    assert find_conclusion([*leaves, LEAF]) == NOT_INVARIANT
    assert find_conclusion([replace(LEAF, conclusion=None)]) is None


# --- rejections -----------------------------------------------------------------------------------

RULE = RuleCandidate(
    rule="code > 0",
    feature="code",
    utility=-3.0,
    n=110,
    n_right=40,
    n_wrong=1200,
    counts=[[1, 2], [3, 4]],
    replication=0.123,
    n_seen=2,
    lowest=NORTH,
    highest=SOUTH,
    conclusion=NOT_INVARIANT,
)
SPLIT = SplitCandidate(
    rule="code > 0",
    feature="code",
    n=110,
    n_true=40,
    deviance_explained=50.0,
    rate_heterogeneity=None,
    heterogeneity=20.0,
    heterogeneity_share=0.4,
    odds_ratio=2.0,
    environments=[],
    n_seen=2,
    lowest=RatioExtreme(environment="north", n=50, odds_ratio=0.5),
    highest=RatioExtreme(environment="south", n=60, odds_ratio=4.0),
)


def explain(candidate, reason, **more):
    rejected = RejectedCandidate(candidate=candidate, reason=reason, node="all samples", **more)
    return explain_rejection(rejected, NAMES)


def test_a_rejected_rule_is_explained_by_its_numbers():
    assert explain(RULE, "unhelpful") == "it covers 1,200 samples wrongly and 40 correctly"
    assert explain(replace(RULE, utility=0.0), "unhelpful").endswith(
        "40 correctly, no better than chance among so many candidates"
    )
    assert explain(RULE, "unreplicated").endswith("its effect (replication 0.12)")


def test_a_rule_whose_rate_differs_names_the_environments():
    assert explain(RULE, "dependent") == (
        "the rate of ill = yes differs, from 10.0% (site north) to 30.0% (site south)"
    )
    assert explain(RULE, "dependent", outliers=["south"]).endswith(
        "; it holds in 1 of 2 environments; not in south"
    )
    too_little = replace(RULE, conclusion=TOO_LITTLE_DATA)
    assert explain(too_little, "dependent").startswith("too little data to show")
    assert "was not shown" in explain(replace(RULE, n_seen=1), "dependent")


def test_a_rejected_split_is_explained_by_the_heterogeneity_of_its_column():
    text = explain(SPLIT, "heterogeneous", column_share=0.25)
    assert text.endswith(
        "(25.0% of the deviance explained): odds ratio from 0.5 (site north) to 4 (site south)"
    )
    single = replace(SPLIT, n_seen=1)
    assert explain(single, "heterogeneous", column_share=0.25).endswith("explained)")
    assert explain(SPLIT, "unreplicated", column_replication=0.5).endswith("(replication 0.50)")
    assert explain(SPLIT, "idle").startswith("its feature explains almost no deviance")


def test_an_effect_reverses_where_its_extremes_lie_on_both_sides_of_one():
    assert reverses(SPLIT.lowest, SPLIT.highest, n_seen=2)
    assert not reverses(SPLIT.lowest, SPLIT.highest, n_seen=1)
    assert not reverses(SPLIT.highest, SPLIT.highest, n_seen=2)
    assert not reverses(None, None, n_seen=2)


def test_rejected_candidates_are_counted_by_reason():
    assert describe_rejections(ScanSize(n_candidates=9, n_rejected={"dependent": 0})) == ""
    size = ScanSize(
        n_candidates=1500, n_rejected={"unreplicated": 2, "dependent": 0, "unhelpful": 1200}
    )
    assert describe_rejections(size) == (
        "1,202 of 1,500 candidates were rejected: 2 because it is informative in too few of the "
        "environments that could show its effect; 1,200 because it would cover too many samples "
        "wrongly, or is no better than chance."
    )


def test_pruning_tells_what_it_removed_and_what_that_cost():
    test = PruningTestContent(
        round=1, feature="noise", statistic=1.2, dof=3, p_value=0.4, removed=True, undone=False
    )
    kept = replace(test, feature="age", removed=False, undone=True)
    pruning = Pruning(tests=[test, kept], outcome="removed", n_wrong_before=10, n_wrong_after=1200)
    assert describe_pruning(pruning) == (
        "Pruning removed rules that invariance does not need. Removed: noise (p 0.40). Kept, "
        "because the rate of a leaf would differ between environments: age (p 0.40). Training "
        "errors without pruning: 10, with pruning: 1,200."
    )
    assert describe_pruning(replace(pruning, tests=[], outcome=None)) == ""


# --- warnings -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("n", "n_positive", "rate", "is_deciding"),
    [
        (2000, 2000, 0.5, True),
        (2000, 1990, 0.5, True),
        (2000, 1989, 0.5, False),
        (2000, 0, 0.5, True),
        (39, 39, 0.5, False),
        (2000, 0, 0.005, False),
    ],
)
def test_a_leaf_decides_if_a_label_is_absent_that_should_be_frequent(
    n, n_positive, rate, is_deciding
):
    leaf = replace(LEAF, n=n, n_positive=n_positive)
    assert decides(leaf, overall_rate=rate) == is_deciding


def test_leaves_with_too_little_data_are_counted():
    unclear = replace(LEAF, conclusion=TOO_LITTLE_DATA)
    assert warn_of_little_data([unclear]) is None
    assert warn_of_little_data([LEAF, LEAF]) is None
    assert warn_of_little_data([unclear, LEAF]).startswith("1 of 2 leaves had too little data")


def test_a_rule_of_one_environment_may_be_its_marker():
    model = SimpleNamespace(rules=[SimpleNamespace(text="age > 63")])
    alone = replace(LEAF, n_seen=1)
    assert warn_of_single_environments([LEAF], model, REQUIREMENT) == []
    assert warn_of_single_environments([alone], model, Requirement()) == []
    assert warn_of_single_environments([alone], model, REQUIREMENT) == [
        "age > 63 covers samples from one environment only, north: no test was possible; the rule "
        "may be a marker of it."
    ]
    rest = replace(alone, is_rest=True)
    assert warn_of_single_environments([rest], model, REQUIREMENT) == [
        "The uncovered samples are from one environment only, north: no test was possible."
    ]


def make_shape(conjunction, disjunction, chosen="conjunction"):
    scores = {"conjunction": conjunction, "disjunction": disjunction}
    return Shape(chosen=chosen, prefers_tree=False, scores=scores, held_out="environments")


def test_the_shape_is_given_with_its_scores():
    assert describe_shape(make_shape(0.8, 0.7)) == (
        "conjunction, by AUC in held-out environments: conjunction 0.800, disjunction 0.700"
    )
    assert describe_shape(make_shape(0.8, 0.805)).endswith(
        "(the disjunction is not clearly better)"
    )
    assert warn_of_poor_ranking(make_shape(0.55, 0.5)) is None
    assert "hardly better than chance (AUC 0.549)" in warn_of_poor_ranking(make_shape(0.549, 0.5))


# --- new environments, suggestions ----------------------------------------------------------------


def make_intervals(*, interval, leaves, n_leaves):
    overall = NewEnvironment(
        tau=0.1,
        tau_interval=None,
        i2=None,
        new_interval=interval,
        known_interval=None,
        new_reason=None,
    )
    return NewEnvironments(
        confidence=0.95,
        n_environments=4,
        overall=overall,
        leaves=leaves,
        n_leaves=n_leaves,
        rate=0.25,
    )


def test_intervals_are_explained_or_their_absence_is():
    known = make_intervals(interval=[0.1, 0.4], leaves=[1, 2], n_leaves=3)
    text = describe_new_environments(known, NAMES)
    assert text.startswith(
        "The 95% prediction intervals of the rate of ill = yes follow from its heterogeneity over "
        "4 environments. Intervals with known rate are for a new site whose overall rate is that "
        "in training, 25.0%;"
    )
    assert describe_unknown_intervals(known).startswith("1 leaf has no interval:")
    single = make_intervals(interval=[0.1, 0.4], leaves=[1], n_leaves=1)
    assert "known rate" not in describe_new_environments(single, NAMES)
    assert describe_unknown_intervals(single) == ""
    none = make_intervals(interval=[0.1, 0.4], leaves=[], n_leaves=2)
    assert describe_new_environments(none, NAMES) == (
        "No prediction interval: no leaf has samples of three environments."
    )
    unknown = make_intervals(interval=None, leaves=[], n_leaves=2)
    assert describe_new_environments(unknown, NAMES).startswith(
        "No prediction interval from 2 environments:"
    )
    alone = make_names(["all"], ("no", "yes"))
    assert describe_new_environments(unknown, alone).endswith("the data have no environments.")


@pytest.mark.parametrize(("p_value", "helps"), [(0.0001, True), (0.00009, False)])
def test_a_nearest_miss_says_whether_a_smaller_level_helps(p_value, helps):
    text = describe_nearest_miss(p_value, alpha=0.05, are_sets=True, alpha_name="--alpha")
    assert "sets are rejected up to 0.05" in text
    assert ("choose it beforehand" in text) == helps
    assert ("would not help" in text) != helps
