"""Sentences on a whole result: title, headline, advice, suggestions, TRIPOD.

Each test arranges the numbers of a learner's content and asserts the sentence, also where the data
cannot tell.
"""

from dataclasses import replace
from types import SimpleNamespace

import pytest

from icscm.report.content.errors import Errors
from icscm.report.content.learner import LearnerContent
from icscm.report.content.leaves import Leaf, Requirement
from icscm.report.content.model import Discarded, ModelContent, Shape
from icscm.report.content.nodes import CriterionName, Nodes, Pruning
from icscm.report.content.rates import EnvironmentRate, Rate, RateExtreme
from icscm.report.content.task import Setting, Task
from icscm.report.formatting import make_names
from icscm.report.wording import (
    advice,
    headline,
    invariance,
    model_facts,
    rejected,
    suggestions,
    tripod,
)
from icscm.report.wording.facts import Judgement
from icscm.stats.verdicts import INVARIANT, NOT_INVARIANT, TOO_LITTLE_DATA
from support.reports import make_blank

NAMES = make_names(["north", "south", "west"], ("no", "yes"), "ill", "site")


LEAF = make_blank(
    Leaf,
    number=1,
    condition="age > 63",
    is_rest=False,
    n=100,
    n_positive=20,
    rate=0.2,
    n_seen=3,
    lowest=RateExtreme(environment="north", n=50, rate=0.1),
    highest=RateExtreme(environment="south", n=50, rate=0.3),
    environments=[],
    conclusion=INVARIANT,
    p_value=0.4,
    difference=0.05,
    difference_interval=[0.0, 0.1],
    detectable=0.15,
)
ERRORS = make_blank(
    Errors,
    n=300,
    n_errors=30,
    error=0.1,
    p=1.0,
    auc=0.85,
    sensitivity=0.8,
    specificity=0.9,
    majority_error=0.4,
    majority_class="ill = no",
    majority_is_positive=False,
    beats_majority=True,
    is_out_of_bag=False,
    n_contrary=0,
    contrary_leaves=[],
    environments=[],
)
RULES = make_blank(
    ModelContent,
    kind="conjunction",
    noun="rule",
    text="age > 63 and dose > 2",
    n_rules=2,
    features=["age", "dose"],
    rules=[],
    simple_rules=[],
    has_missing=False,
)
TREE = replace(RULES, kind="tree", noun="tree")
NODES = make_blank(
    Nodes,
    walk=[],
    criterion=CriterionName.P_VALUES,
    is_tested=True,
    alpha=0.05,
    splits=[],
    scans=[],
    outliers=[],
    rejected_features=[],
    rejected_columns=[],
    nearest=[],
    screening=[],
    sets=[],
    pruning=make_blank(Pruning, tests=[]),
    importances=[],
    tried=[],
)
TASK = make_blank(
    Task,
    n_rows=300,
    n_columns=12,
    overall=Rate(n=300, n_positive=120, rate=0.4, rate_interval=[0.34, 0.46]),
    environments=[
        EnvironmentRate(environment=name, n=100, n_positive=40, rate=0.4, rate_interval=[0.3, 0.5])
        for name in NAMES.environments
    ],
    learner="ICSCMClassifier",
    settings=[Setting(name="p", value=2.0, is_default=False, meaning="cost ratio")],
    dropped=[],
    requirement=Requirement(alpha=0.05, margin=0.05),
    notes=[],
)
CONTENT = make_blank(
    LearnerContent,
    names=NAMES,
    task=TASK,
    model=RULES,
    nodes=NODES,
    leaves=[LEAF, replace(LEAF, number=2, is_rest=True)],
    errors=ERRORS,
    unvalidated="it was not measured",
    settings={"p": 1.0, "model_type": "conjunction", "min_utility": "auto", "margin": None},
    tests_invariance=True,
    learned="age > 63 and dose > 2",
    trace=SimpleNamespace(describe_excess=lambda: None, describe_lone=lambda: None),
)


def name_option(name, *value):
    return "=".join(map(str, (name, *value)))


# --- the title ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("changes", "title"),
    [
        ({}, "A rule tested for invariance in every environment (site)"),
        ({"model": replace(RULES, n_rules=0)}, "No rule is invariant in every environment (site)"),
        (
            {"errors": replace(ERRORS, beats_majority=False)},
            "The rule is no better than the majority-class baseline",
        ),
        (
            {"errors": replace(ERRORS, beats_majority=False, p=2.0)},
            "The rule is wrong at least as often as the majority-class baseline, as p = 2.0 allows",
        ),
        (
            {"nodes": replace(NODES, is_tested=False)},
            "A rule learned without a requirement on environments",
        ),
        ({"model": replace(TREE, n_rules=0)}, "No split was made"),
        (
            {"model": TREE, "nodes": replace(NODES, invariance="effect")},
            "A tree whose splits must have the same effect in every environment (site)",
        ),
        (
            {"model": TREE, "nodes": replace(NODES, invariance="rate")},
            "A tree whose leaves must have the same rate in every environment (site)",
        ),
    ],
)
def test_the_title_says_what_was_found(changes, title):
    assert headline.write_title(replace(CONTENT, **changes)) == title


def test_rules_that_were_discarded_are_told_in_title_and_warning():
    errors = replace(ERRORS, error=0.45, n_errors=135)
    discarded = Discarded(text="age > 63", errors=errors, is_worse=True)
    model = replace(RULES, n_rules=0, discarded=discarded)
    title = headline.write_title(replace(CONTENT, model=model))
    assert title.startswith("Rules were found and discarded: ")
    (warning,) = model_facts.list_warnings(model, ERRORS)
    assert warning.term == "Warning"
    assert "(error 45.0%)" in warning.text
    assert warning.text.endswith("the majority-class baseline (negative)")


# --- the headline ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("conclusions", "answer", "start"),
    [
        (
            [INVARIANT, INVARIANT],
            "All leaves invariant, as far as these data can show",
            "2 leaves: 2 invariant. No heterogeneity was found, and the data rule out",
        ),
        (
            [INVARIANT, TOO_LITTLE_DATA],
            "Too little data in 1 of 2 leaves",
            "2 leaves: 1 invariant, 1 too little data to tell. No heterogeneity was found, but a",
        ),
        (
            [NOT_INVARIANT, TOO_LITTLE_DATA],
            "1 of 2 leaves not invariant",
            "2 leaves: 1 not invariant, 1 too little data to tell. The rate differs",
        ),
    ],
)
def test_the_worst_leaf_decides_on_the_invariance_of_rates(conclusions, answer, start):
    leaves = [replace(LEAF, conclusion=conclusion) for conclusion in conclusions]
    said = invariance.answer_invariance(replace(CONTENT, leaves=leaves))
    assert (said.answer, said.conclusion) == (answer, invariance.find_conclusion(leaves))
    assert said.detail.startswith(start)
    assert said.detail.endswith("Margin 5 points, level 0.05.")


def test_without_environments_or_leaves_nothing_is_concluded():
    untested = replace(TASK, requirement=Requirement())
    assert invariance.judge_rates(replace(CONTENT, task=untested)) == Judgement(
        "Not tested", "The data have no environments to compare."
    )
    assert invariance.judge_rates(replace(CONTENT, leaves=[])).answer == "Not tested by leaf"
    assert invariance.judge_rates(replace(CONTENT, leaves=[LEAF])).answer == "No leaf to test"
    alone = replace(TASK, environments=TASK.environments[:1])
    assert invariance.judge_effects(replace(CONTENT, task=alone)).answer == "Not tested"
    assert invariance.judge_effects(replace(CONTENT, model=TREE)).answer == "No split to test"
    forest = replace(CONTENT, model=replace(TREE, noun="forest"))
    assert invariance.judge_effects(forest).answer == "By column, on all samples"


def test_performance_at_new_sites_is_unknown_without_validation():
    said = headline.answer_new_sites(CONTENT)
    assert said.answer == "Not validated"
    assert said.detail == (
        "Performance in environments left out is not known: it was not measured."
    )


def test_errors_stand_beside_those_of_the_baseline():
    said = headline.answer_error(CONTENT)
    assert said.answer == "AUC 0.850 in training"
    assert "The majority-class baseline, ill = no, is wrong for 40.0%." in said.detail
    assert said.detail.endswith("on the training data; expect poorer performance on new data.")
    faulty = headline.answer_error(replace(CONTENT, errors=replace(ERRORS, beats_majority=False)))
    assert faulty.answer.startswith("The rule is no better than the majority-class baseline: wrong")
    assert faulty.detail.startswith("Balanced accuracy: 85.0%.")


def test_nothing_is_rejected_where_nothing_was_tested():
    untested = replace(CONTENT, nodes=replace(NODES, is_tested=False))
    why = "Nothing was tested: the search did not use environments."
    assert rejected.judge_rejected(untested) == Judgement("None", why)
    alone = replace(untested, task=replace(TASK, environments=TASK.environments[:1]))
    why = "Nothing was tested: the data have no environments."
    assert rejected.judge_rejected(alone) == Judgement("None", why)
    assert rejected.judge_rejected(CONTENT).answer == "None in the first scan"


# --- advice ---------------------------------------------------------------------------------------


def test_a_test_that_did_not_reject_shows_no_more_than_its_power():
    (shown, _) = advice.list_shown(CONTENT)
    assert shown == (
        "The null hypothesis of every test: ill does not depend on environment (site) in this "
        "leaf. A rule in the model was not rejected at level 0.05: it is invariant across these "
        "environments as far as this many samples can show."
    )
    margin = replace(NODES, criterion=CriterionName.MARGIN)
    (shown, _) = advice.list_shown(replace(CONTENT, nodes=margin))
    assert shown == (
        "It was shown, at level 0.05, that the rate of ill = yes in the leaf of each rule differs "
        "by at most 5 points between any two of these environments."
    )
    (shown,) = advice.list_shown(replace(CONTENT, nodes=replace(NODES, is_tested=False)))
    assert "may contain a shortcut" in shown


def test_a_tree_of_rates_within_the_tolerance_or_beyond():
    content = replace(CONTENT, model=TREE, nodes=replace(NODES, invariance="rate"))
    assert "is within the tolerance" in advice.list_shown(content)[0]
    beyond = SimpleNamespace(describe_excess=lambda: "It is beyond.", describe_lone=lambda: None)
    assert advice.list_shown(replace(content, trace=beyond))[0] == "It is beyond."


def test_no_result_proves_a_cause():
    for model in (RULES, TREE):
        points = advice.list_not_shown(replace(CONTENT, model=model))
        assert points[0].startswith("It does not prove a cause.")
        assert points[-1].endswith(
            "Its performance in a new environment is not known: it was not measured."
        )


@pytest.mark.parametrize(
    ("n_environments", "tolerance", "warning"),
    [
        (1, 0.01, "No environments were given, so nothing was tested: this is a plain tree."),
        (3, None, "No tolerance was given, so nothing was rejected: this is a plain tree."),
        (
            2,
            0.01,
            "Two environments show only one difference: a shortcut that both share is not "
            "rejected. Use three or more.",
        ),
        (3, 0.01, None),
    ],
)
def test_few_environments_show_little(n_environments, tolerance, warning):
    content = replace(
        CONTENT,
        model=TREE,
        task=replace(TASK, environments=TASK.environments[:n_environments]),
        nodes=replace(NODES, tolerance=tolerance),
    )
    assert advice.warn_of_few_environments(content) == warning


def test_uncovered_rows_that_depend_on_the_environment_lack_a_rule():
    dependent = [LEAF, replace(LEAF, conclusion=NOT_INVARIANT)]
    assert "a cause may be missing" in advice.warn_of_dependent_rest(dependent)
    assert advice.warn_of_dependent_rest([LEAF, LEAF]) is None


def test_contradictions_and_instability_are_told():
    assert advice.warn_of_contradictions(ERRORS) is None
    contrary = replace(ERRORS, n_contrary=12, contrary_leaves=[1, 3])
    assert advice.warn_of_contradictions(contrary) == (
        "For 12 of 300 samples prediction and probability disagree: the majority in leaf 1, 3 is "
        "of the other class."
    )
    assert advice.warn_of_instability(SimpleNamespace(model_frequency=0.5)) is None
    assert advice.warn_of_instability(SimpleNamespace(model_frequency=0.4)).startswith("Most")


# --- suggestions ----------------------------------------------------------------------------------


def test_a_tree_that_ranks_better_is_suggested():
    shape = Shape(
        chosen="conjunction",
        prefers_tree=True,
        scores={"conjunction": 0.7, "tree": 0.8},
        held_out="environments",
    )
    content = replace(CONTENT, model=replace(RULES, shape=shape))
    (text,) = suggestions.suggest_other_learners(content, name_option, {"tree": "icscm fit"})
    assert "(AUC 0.800 against 0.700)" in text
    assert text.endswith("children of the label may be in it: icscm fit")
    assert suggestions.suggest_other_learners(CONTENT, name_option, {}) == []


def test_rules_that_are_better_than_the_baseline_need_no_suggestion():
    assert suggestions.suggest_for_rules(CONTENT, name_option) == []
    poor = replace(CONTENT, errors=replace(ERRORS, beats_majority=False))
    texts = suggestions.suggest_for_rules(poor, name_option)
    assert texts[0] == "model_type=disjunction: its rules cover the other label."
    assert texts[-1].startswith("icscm.validation.tuning.grid_search")


def test_the_promising_suggestion_comes_first():
    """Where no level lets a rule pass, the other type of rule set is the better idea."""
    none = replace(CONTENT, model=replace(RULES, n_rules=0))
    first, *_ = suggestions.suggest_levels(none, name_option)
    assert first.startswith("model_type=disjunction")
    text = " ".join(suggestions.suggest_for_rules(none, name_option))
    assert "SCMClassifier: the best rule without invariance, to compare." in text


def test_columns_without_association_cannot_be_helped_by_settings():
    empty = replace(CONTENT, model=replace(TREE, n_rules=0))
    assert suggestions.suggest_for_tree(empty, name_option) == [
        "Add columns or samples: no column here is associated with the label."
    ]
    screened = replace(empty, nodes=replace(NODES, rejected_columns=["code"]))
    assert suggestions.suggest_for_tree(screened, name_option) == [
        "A larger tolerance keeps more columns, with less protection from shortcuts."
    ]


# --- TRIPOD ---------------------------------------------------------------------------------------


def test_the_checklist_has_the_numbers_and_leaves_the_rest_open():
    assert tripod.describe_preparation(CONTENT) == (
        "no column was dropped; numbers were cut at observed values"
    )
    assert tripod.describe_analyses(CONTENT) == "300 samples, 40.0% with the outcome"
    assert tripod.describe_centres(CONTENT).startswith("north: 100 samples, 40.0%; south: 100")
    assert tripod.describe_class_balance(CONTENT) == (
        "misclassification cost ratio p = 2; no resampling of classes"
    )
    assert tripod.describe_missing_at_use(CONTENT) == tripod.TODO


def test_performance_that_was_not_measured_is_not_claimed():
    text = tripod.describe_performance(CONTENT)
    assert text.startswith("not known in environments left out: it was not measured; ")
    assert tripod.describe_performance_by_environment(CONTENT) == "not known"
    assert tripod.describe_clusters(CONTENT) == "the requirement on environments above"
    alone = replace(CONTENT, task=replace(TASK, environments=TASK.environments[:1]))
    assert tripod.describe_clusters(alone) == "no environments were given"
