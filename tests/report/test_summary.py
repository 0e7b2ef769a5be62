"""The numbers of the summary equal those recomputed from the rows."""

import json

import numpy as np
import pandas as pd
import pytest
from scipy import stats
from sklearn.base import clone
from sklearn.metrics import roc_auc_score

from icscm import ICSCMClassifier, SCMClassifier, stability_selection
from icscm.exceptions import ContraryLeafWarning, IcscmError
from icscm.model.tree import make_chain
from icscm.report.content.errors import make_errors
from icscm.report.content.leaves import make_leaves
from icscm.report.content.model import ModelSize
from icscm.report.formatting import make_names
from icscm.report.page import make_report
from icscm.report.summary import make_summary
from icscm.report.wording.model_facts import list_model_facts
from icscm.report.wording.requirement import describe_bounds
from icscm.stats.independence import make_test
from icscm.stats.verdicts import INVARIANT, NOT_INVARIANT, TOO_LITTLE_DATA, make_verdicts
from support.fitting import PAPER
from support.reports import (
    REPORTED,
    ZOO,
    find_path,
    fit,
    fit_reported,
    make_shifted,
    print_report,
    report_on,
)


@pytest.mark.parametrize("name", REPORTED)
def test_it_is_plain_values_throughout(name):
    summary = report_on(name).summary
    assert json.loads(json.dumps(summary, allow_nan=False)) == summary


def test_the_data_and_the_dropped_columns_are_named():
    dropped = [("id", "different in every row")]
    task = make_summary(fit_reported("greedy"), data_name="a", dropped=dropped)["task"]
    assert task["data"] == "a"
    assert task["dropped"] == [{"column": "id", "reason": "different in every row"}]


@pytest.mark.parametrize("name", ZOO)
def test_errors_are_those_of_predicting_the_rows(name, simulation):
    fitted, errors = fit_reported(name), report_on(name).summary["errors"]
    is_wrong = fitted.predict(simulation.X) != simulation.y
    assert errors["n"] == len(is_wrong)
    assert errors["n_errors"] == is_wrong.sum()
    assert errors["error"] == pytest.approx(is_wrong.mean())
    assert errors["majority_error"] == pytest.approx(simulation.y.mean())  # 0 is more frequent
    predicted = fitted.predict(simulation.X)
    assert errors["sensitivity"] == pytest.approx(predicted[simulation.y == 1].mean())
    assert errors["specificity"] == pytest.approx(1 - predicted[simulation.y == 0].mean())
    assert len(errors["environments"]) == 5
    for number, each in enumerate(errors["environments"]):
        here = simulation.environments == number
        assert each["environment"] == str(number)
        assert each["n"] == here.sum()
        assert each["error"] == pytest.approx(is_wrong[here].mean())
        assert each["majority_error"] == pytest.approx(simulation.y[here].mean())
    worst = max(is_wrong[simulation.environments == k].mean() for k in range(5))
    assert errors["worst"]["error"] == pytest.approx(worst)


@pytest.mark.parametrize("name", ZOO)
def test_rates_and_intervals_are_those_of_the_rows(name, simulation):
    fitted, summary = fit_reported(name), report_on(name).summary
    leaf_of_row = fitted.model_.find_leaves(simulation.X)
    predicted = fitted.predict(simulation.X)
    assert len(summary["leaves"]) == len(fitted.model_) + 1
    n_checked = 0
    for number, leaf in enumerate(summary["leaves"]):
        inside = leaf_of_row == number
        assert leaf["n"] == inside.sum()
        assert set(predicted[inside]) <= {int(leaf["is_positive"])}
        for k, each in enumerate(leaf["environments"]):
            labels = simulation.y[inside & (simulation.environments == k)]
            assert each["n"] == len(labels)
            assert each["n_positive"] == labels.sum()
            if len(labels):
                assert each["rate"] == pytest.approx(labels.mean())
                wilson = stats.binomtest(int(labels.sum()), len(labels)).proportion_ci(
                    method="wilson"
                )
                assert each["rate_interval"] == pytest.approx([wilson.low, wilson.high])
                n_checked += 1
    assert n_checked > 0


def test_leaves_carry_the_learners_verdicts():
    learner, leaves = fit_reported("greedy"), report_on("greedy").summary["leaves"]
    for leaf, verdict in zip(leaves, learner.verdicts_, strict=True):
        assert leaf["conclusion"] == verdict.conclusion
        assert leaf["p_value"] == verdict.p_value
        assert leaf["detectable"] == verdict.minimum_detectable_difference
        rates = [each["rate"] for each in leaf["environments"]]
        assert rates == pytest.approx(list(verdict.rates))
        intervals = [each["rate_interval"] for each in leaf["environments"]]
        assert np.allclose(intervals, verdict.rate_intervals)


def test_the_plain_learner_is_judged_afterwards_and_says_so():
    summary = report_on("plain").summary
    assert summary["task"]["requirement"]["afterwards"]
    assert NOT_INVARIANT in {leaf["conclusion"] for leaf in summary["leaves"]}
    assert "tested after the search" in " ".join(summary["advice"]["warnings"])
    assert summary["headline"]["rejected"]["answer"] == "None"


@pytest.mark.parametrize("learner", [SCMClassifier(), ICSCMClassifier()])
def test_without_environments_nothing_is_judged(learner, simulation):
    summary = make_summary(fit(clone(learner), simulation.X, simulation.y))
    assert not summary["task"]["has_environments"]
    assert {leaf["conclusion"] for leaf in summary["leaves"]} == {None}
    assert summary["headline"]["invariance"]["answer"] == "Not tested"
    assert summary["errors"]["worst"] is None


def test_nothing_found_says_why_and_what_to_try():
    learner, summary = fit_reported("nothing found"), report_on("nothing found").summary
    told = "Always predict label = 0: no rule was found that does better."
    assert summary["model"]["sentence"] == told
    assert summary["headline"]["title"] == "No rule is invariant in every environment"
    assert len(summary["nodes"]["nearest"]) > 0
    nearest = summary["nodes"]["nearest"][0]
    assert nearest["p_value"] == learner.trace_.nearest[0].candidate.p_value
    assert nearest["why"].startswith("the rate of label = 1 differs, from ")
    advice = " ".join(summary["advice"]["suggestions"])
    assert "nearest miss" in advice
    assert "margin=0.05" in advice
    assert summary["headline"]["invariance"]["answer"] == "No leaf to test"


@pytest.mark.parametrize(
    ("options", "word"),
    [
        ({"margin": 0.05}, "To show equivalence takes"),
        ({"search": "exhaustive"}, "No column is associated with the label"),
    ],
)
def test_advice_fits_the_settings(options, word):
    learner = fit(ICSCMClassifier(**options), *make_shifted())
    assert word in " ".join(make_summary(learner)["advice"]["suggestions"])


def test_refused_candidates_are_told_with_the_reason():
    learner, nodes = fit_reported("greedy"), report_on("greedy").summary["nodes"]
    steps = zip(nodes["splits"], nodes["scans"], learner.trace_.steps, strict=False)
    for step, scan, traced in steps:
        assert step["n_right"] - step["n_wrong"] == step["utility"]  # p is 1
        assert step["n"] == step["n_right"] + step["n_wrong"]
        refused = [each["rule"] for each in scan["rejected"]]
        assert refused == [str(each.candidate.rule) for each in traced.best_rejected]
        for each in scan["rejected"]:
            table = np.array(each["counts"])
            rates = table[1] / table.sum(axis=0)
            assert each["lowest"]["rate"] == pytest.approx(rates.min())
            assert each["highest"]["environment"] == str(rates.argmax())


def test_pruned_rules_are_marked():
    rng = np.random.default_rng(0)
    environments = rng.integers(0, 2, 4_000)
    cause = rng.random(4_000) < np.where(environments, 0.7, 0.3)
    noise = rng.random(4_000) < 0.5
    y = cause & (rng.random(4_000) < 0.9)
    X = pd.DataFrame({"cause": cause, "noise": noise})
    learner = fit(ICSCMClassifier(stop="coverage", **PAPER), X, y, environments)
    summary = make_summary(learner)
    assert summary["nodes"]["pruning"]["removed"] == ["noise"]
    marks = {step["rule"]: step["in_model"] for step in summary["nodes"]["splits"]}
    assert sorted(marks.values()) == [False, True]
    assert summary["model"]["features"] == ["cause"]


def test_equivalent_rules_are_listed():
    rng = np.random.default_rng(0)
    x = rng.integers(0, 2, 500)
    X = pd.DataFrame({"one": x, "two": x, "three": 1 - x})
    learner = fit(SCMClassifier(), X, x ^ (rng.random(500) < 0.1))
    (rule,) = make_summary(learner)["model"]["rules"]
    assert rule["text"] == "one > 0"
    assert rule["equivalent"] == ["two > 0", "three <= 0"]


def test_labels_that_read_alike_stay_apart():
    environments = np.array([1, "1"] * 300, dtype=object)
    rng = np.random.default_rng(0)
    x = rng.integers(0, 2, 600)
    learner = fit(ICSCMClassifier(), x[:, np.newaxis], x ^ (rng.random(600) < 0.1), environments)
    names = [each["environment"] for each in make_summary(learner)["task"]["environments"]]
    assert sorted(names) == ["'1'", "1"]


def test_names_lose_what_does_not_print(hostile_report):
    text = json.dumps(hostile_report.to_dict(), ensure_ascii=False)
    assert all(character.isprintable() for character in text)
    assert "\\\\x1b[31m\\\\u202eabc\\\\nnew line" in text


def test_models_along_alpha_carry_their_own_errors(simulation):
    learner = fit_reported("greedy")
    path = find_path(learner, simulation.X, simulation.y, simulation.environments)
    described = make_summary(learner, path=path)["path"]
    assert described["n_searches"] == 18
    assert sum(each["is_own"] for each in described["models"]) == 1
    for each, group in zip(described["models"], path.groups, strict=True):
        model = group[0].model
        is_wrong = model.predict(simulation.X) != simulation.y
        assert each["errors"]["error"] == pytest.approx(is_wrong.mean())
        assert [level["alpha"] for level in each["levels"]] == [point.value for point in group]
        for level in each["levels"]:
            assert sum(level["conclusions"].values()) == len(model) + 1


def test_settings_tell_what_was_chosen(simulation):
    learner = fit(
        ICSCMClassifier(alpha="auto", min_utility=None),
        simulation.X,
        simulation.y,
        simulation.environments,
    )
    settings = {each["name"]: each for each in make_summary(learner)["task"]["settings"]}
    assert set(settings) == set(learner.get_params())
    assert settings["alpha"]["value"] == f"auto ({learner.alpha_:.4g})"
    chosen = {name for name, each in settings.items() if not each["is_default"]}
    assert chosen == {"alpha", "min_utility"}
    assert all(each["meaning"] for each in settings.values())


def test_few_samples_are_said_to_be_too_few(simulation):
    rows = np.arange(0, len(simulation.y), 40)
    learner = fit(
        ICSCMClassifier(min_utility=0.0),
        simulation.X.iloc[rows],
        simulation.y[rows],
        simulation.environments[rows],
    )
    summary = make_summary(learner)
    assert summary["headline"]["invariance"]["conclusion"] == TOO_LITTLE_DATA
    assert "too little data" in " ".join(summary["advice"]["warnings"])
    assert INVARIANT not in {leaf["conclusion"] for leaf in summary["leaves"]}


def test_only_fitted_learners_of_ours():
    with pytest.raises(IcscmError, match="must be an ICSCMClassifier"):
        make_summary(object())
    with pytest.raises(Exception, match="not fitted"):
        make_summary(SCMClassifier())


def test_categories_and_missing_values_read_as_their_rules_do():
    rng = np.random.default_rng(0)
    smoker = rng.choice(["yes", "no", "used | to"], 3_000)
    glucose = rng.normal(100, 20, 3_000).round()
    glucose[rng.random(3_000) < 0.2] = np.nan
    y = (smoker == "yes") & ~(glucose < 90) ^ (rng.random(3_000) < 0.05)
    X = pd.DataFrame({"smoker": smoker, "glucose": glucose})
    environments = rng.integers(0, 3, 3_000)
    learner = fit(ICSCMClassifier(stop="coverage", pruning=False), X, y, environments)
    summary = make_summary(learner, path=find_path(learner, X, y, environments))
    assert [each["text"] for each in summary["model"]["rules"]] == list(map(str, learner.rules_))
    assert "smoker == yes" in summary["model"]["text"]
    assert "(missing: " in summary["model"]["text"]
    assert summary["model"]["missing"].startswith('"missing: true" means')
    is_wrong = learner.predict(X) != y
    assert summary["errors"]["n_errors"] == is_wrong.sum()


# --- what a review found --------------------------------------------------------------------------


def make_model(totals, wrong):
    """A model without rules: negatives are wrong, so many in each environment."""
    return make_chain(
        "conjunction",
        (),
        ((tuple(wrong), tuple(t - w for t, w in zip(totals, wrong, strict=True))),),
    )


def test_the_worst_environment_is_not_one_of_two_samples():
    """The report named the worst of all environments, however small, and the terminal another."""

    def find(*counts):
        wrong, totals = zip(*counts, strict=True)
        model, names = make_model(totals, wrong), make_names(range(len(counts)), (0, 1))
        errors = make_errors(model, names)
        ends = errors.worst, errors.best
        return tuple(each and int(each.environment) for each in ends)

    assert find((2, 2), (30, 100), (20, 100)) == (1, 2)
    assert find((1, 2), (0, 3)) == (0, 1)
    assert find((1, 2), (0, 3), (9, 90)) == (None, None)
    assert find((4, 40)) == (None, None)
    model = make_model([2, 100, 100], [2, 30, 20])
    errors = make_errors(model, make_names(("tiny", "big", "other"), (0, 1)))
    size = ModelSize(noun="rule", text=str(model), n_rules=0, threshold=None)
    text = dict(list_model_facts(size, errors, [], name="no rule"))["In training"]
    assert "worst in environment big, 30.0% of 100 samples, best in other, 20.0% of 100" in text


def test_terminal_and_report_name_the_same_worst_environment():
    """As above, on a fitted learner; the sentence says of how many samples."""
    rng = np.random.default_rng(0)
    n = 1003
    environments = np.array(["tiny"] * 3 + ["big"] * 500 + ["other"] * 500)
    X = pd.DataFrame({"a": rng.integers(0, 2, n), "b": rng.integers(0, 2, n)})
    y = (X["a"] ^ (rng.random(n) < 0.1)).to_numpy(copy=True)
    y[:3] = 1 - X["a"][:3]
    learner = fit(ICSCMClassifier(), X, y, environments)
    summary = make_summary(learner, environment="site")
    worst = summary["errors"]["worst"]
    assert worst["environment"] in ("big", "other")
    assert worst["text"].endswith("% of 500 samples")
    said = dict(summary["headline"]["facts"])["In training"]
    assert f"worst in environment {worst['environment']}, " in said


def test_no_vacuous_bound():
    """ "In no leaf do the data allow more than 100.0%" says nothing, and "more than 87.8%" read
    as if that much had been shown."""

    def describe(leaf):
        model = make_chain("conjunction", (), (leaf,))
        names = make_names(("a", "b"), (0, 1))
        verdicts = make_verdicts([leaf], make_test("chi2"), 0.05, 0.05)
        return describe_bounds(make_leaves(model, names, verdicts), margin="5 points")

    assert "still possible" not in describe(((5, 0), (5, 0)))
    assert "a difference of 11.5 points is still possible." in describe(((50, 50), (50, 50)))


def test_the_ends_of_a_leaf_cannot_be_mistaken():
    """ "0.0% of 8" above "5" read like a range; a single environment stood there twice."""
    rng = np.random.default_rng(0)
    environments = np.repeat([5, 6, 7, 8], 200)
    mark = ((environments == 5) & (rng.random(800) < 0.3)).astype(int)
    y = np.where(mark, 0, rng.random(800) < 0.7).astype(int)
    learner = fit(ICSCMClassifier(**PAPER), pd.DataFrame({"mark": mark}), y, environments)
    text = " ".join(print_report(make_report(learner)).split())
    n = int(mark.sum())
    assert f"mark > 0 negative {n} 0% of {n} (5) no other " in text
    first, second = (f"{y[(environments == e) & (mark == 0)].mean():.1%}" for e in (5, 6))
    assert f"{first} of {200 - n} (5)" in text or f"{second} of 200 (6)" in text


# --- the headline and the advice are true ---------------------------------------------------------


def make_rare(seed=0, n=4_000):
    """A rare label with a cause that finds it at the price of many false alarms."""
    rng = np.random.default_rng(seed)
    environments = rng.integers(0, 4, n)
    risk = rng.random(n) < 0.3 + 0.1 * environments
    y = (risk & (rng.random(n) < 0.2)).astype(int)
    return pd.DataFrame({"risk": risk.astype(int), "noise": rng.integers(0, 3, n)}), y, environments


def test_a_rule_no_better_than_a_constant_is_called_that_first():
    """A rule wrong for 34 % where "no" is wrong for 29 % was headed as one that holds."""
    X, y, environments = make_rare()
    report = make_report(fit(ICSCMClassifier(**PAPER), X, y, environments))
    summary = report.to_dict()
    errors = summary["errors"]
    assert errors["error"] > errors["majority_error"]
    assert summary["headline"]["title"] == "The rule is no better than the majority-class baseline"
    told = summary["headline"]["error"]
    assert told["answer"].startswith(
        "The rule is no better than the majority-class baseline: wrong for "
    )
    assert "Balanced accuracy: " in told["detail"]
    text = print_report(report)
    assert text.startswith("Warning      the rule is no better than the majority-class baseline")
    assert "min_utility=0 rejects rules" in " ".join(summary["advice"]["suggestions"])
    assert "Suggestions" in text
    flipped = X["risk"] ^ (np.random.default_rng(1).random(len(X)) < 0.1)
    better = make_report(fit(SCMClassifier(), X, flipped, environments))
    assert "no better" not in better.to_dict()["headline"]["error"]["answer"]
    assert not print_report(better).startswith("Warning")


def test_rules_set_aside_are_told_with_what_they_are_worth():
    """The headline said that no rule was found, where one was found and set aside."""
    report = make_report(fit(ICSCMClassifier(), *make_rare()))
    summary = report.to_dict()
    assert summary["headline"]["title"].endswith(
        "found and discarded: no better than the majority-class baseline"
    )
    own = summary["model"]["discarded"]["errors"]
    assert summary["headline"]["model"]["detail"] == summary["model"]["discarded"]["explanation"]
    assert (
        f"wrong for {own['error']:.1%} of 4,000 samples (AUC "
        in (summary["model"]["discarded"]["explanation"])
    )
    text = print_report(report)
    assert text.startswith("Warning      rules were found and discarded (error ")
    assert "p='balanced'" in " ".join(summary["advice"]["suggestions"])


def test_a_rule_that_was_asked_to_weigh_errors_is_not_called_worthless():
    report = make_report(fit(ICSCMClassifier(p="balanced"), *make_rare()))
    summary = report.to_dict()
    told = "wrong at least as often as the majority-class baseline, as p = balanced allows"
    assert summary["headline"]["title"] == f"The rule is {told}"
    assert print_report(report).startswith("Warning      the rule is wrong at least as often as")
    assert "judge the rule by its sensitivity" in " ".join(summary["advice"]["suggestions"])


@pytest.mark.parametrize("learner", [SCMClassifier(p=0.3), ICSCMClassifier(p="balanced")])
def test_sensitivity_ppv_and_auc_stand_beside_the_error(learner):
    X, y, environments = make_rare()
    learner = fit(learner, X, y, environments)
    errors = make_summary(learner)["errors"]
    predicted, chance = learner.predict(X), learner.predict_proba(X)[:, 1]
    assert errors["auc"] == pytest.approx(roc_auc_score(y, chance), abs=1e-12)
    assert errors["ppv"] == pytest.approx(y[predicted == 1].mean())
    assert errors["sensitivity"] == pytest.approx(predicted[y == 1].mean())
    for number, each in enumerate(errors["environments"]):
        here = environments == number
        assert each["ppv"] == pytest.approx(y[here & (predicted == 1)].mean())
    assert f"In training  AUC {errors['auc']:.3f}, sens" in print_report(make_report(learner))


def test_predictions_and_probabilities_that_disagree_are_counted():
    """`predict` returned 1 where `predict_proba` was 20 %, without a warning."""
    X, y, environments = make_rare()
    learner = ICSCMClassifier(p="balanced")
    with pytest.warns(ContraryLeafWarning, match="disagree for [0-9,]+ training samples") as seen:
        learner.fit(X, y, environments=environments)
    leaning = (learner.predict_proba(X)[:, 1] > 0.5).astype(int)
    n_contrary = int((leaning != learner.predict(X)).sum())
    assert n_contrary > 0
    assert sum(issubclass(each.category, ContraryLeafWarning) for each in seen) == 1
    assert f"disagree for {n_contrary:,} " in str(seen[0].message)
    summary = make_summary(learner)
    assert summary["errors"]["n_contrary"] == n_contrary
    assert f"For {n_contrary:,} of 4,000 samples prediction and probability disagree" in (
        " ".join(summary["advice"]["warnings"])
    )


def test_the_footer_says_what_decided(simulation):
    """ "Refused unless above 0.05" stood under corrections and under equivalence."""
    samples = simulation.X, simulation.y, simulation.environments

    def explain(**options):
        summary = make_summary(fit(ICSCMClassifier(**options), *samples))
        return summary["nodes"]["tests_text"], summary

    assert "Rejected unless p covered is above 0.05." in explain()[0]
    told, summary = explain(margin=0.2)
    assert "Rejected" not in told
    assert "unless shown, at level 0.05, to differ by at most 20 points" in told
    assert "was shown, at level 0.05" in summary["advice"]["shows"][0]
    assert "accepted if above 0.05" in explain(search="exhaustive")[0]


def advise(learner, *samples):
    learner = fit(learner, *samples)
    assert not learner.rules_
    return " ".join(make_summary(learner)["advice"]["suggestions"])


def test_no_smaller_alpha_where_it_makes_things_worse():
    """Under equivalence a smaller alpha requires more evidence, but it was advised."""
    told = advise(ICSCMClassifier(margin=0.01), *make_shifted())
    assert "smaller alpha" not in told
    assert "a larger alpha" in told


def test_advice_for_sets_that_share_nothing():
    """With a smaller alpha more sets are accepted, and share less."""
    rng = np.random.default_rng(0)
    environments = rng.integers(0, 2, 2_000)
    y = rng.integers(0, 2, 2_000)
    X = pd.DataFrame({name: y ^ (rng.random(2_000) < 0.2) for name in "ab"})
    learner = fit(ICSCMClassifier(search="exhaustive"), X, y, environments)
    assert learner.trace_.stop_reason == "empty_intersection"
    told = " ".join(make_summary(learner)["advice"]["suggestions"])
    assert "A larger alpha rejects more sets" in told
    assert "A smaller alpha" not in told


def test_advice_for_sets_that_were_all_rejected():
    X, _, environments = make_shifted()
    chance = np.where(X["mark"] > 1, 0.3 + 0.3 * environments, 0.05)
    y = (np.random.default_rng(0).random(len(X)) < chance).astype(int)
    learner = fit(ICSCMClassifier(search="exhaustive"), X, y, environments)
    assert learner.trace_.stop_reason == "all_rejected"
    told = " ".join(make_summary(learner)["advice"]["suggestions"])
    assert "sets are rejected up to 0.05" in told
    assert "Every set of the screened rules was rejected" in told


def test_advice_for_rules_of_one_environment():
    """Rules that were refused as not replicated, or of no use, got no advice of their own."""
    rng = np.random.default_rng(0)
    environments = np.repeat([0, 1, 2], 1_000)
    mark = (environments == 0) & (rng.random(3_000) < 0.3)
    mark[-300:] = rng.random(300) < 0.02  # a few in another, or it would determine the environment
    y = ((rng.random(3_000) < 0.5) & ~mark).astype(int)
    told = advise(ICSCMClassifier(p=5.0), pd.DataFrame({"mark": mark * 1}), y, environments)
    assert "informative in too few of the environments" in told
    assert "min_replication=0 accepts them" in told


def test_advice_for_rules_that_do_not_help():
    X, y, environments = make_rare()
    told = advise(ICSCMClassifier(p=50.0, model_type="disjunction"), X, y, environments)
    assert "a smaller p (here 50.0) gives less weight to samples covered wrongly" in told


def test_how_stable_it_is_stands_in_every_rendering(simulation):
    samples = simulation.X, simulation.y, simulation.environments
    learner = fit_reported("plain")
    found = stability_selection(
        learner, *samples[:2], environments=samples[2], n_resamples=4, random_state=0
    )
    report = learner.report(stability=found)
    summary = report.to_dict()
    told = summary["stability"]
    assert json.loads(report.to_json())["stability"] == told
    assert told["text"].startswith("Of 4 random subsamples with half of the samples, ")
    assert told["models"][0]["frequency"] == found.models[0].frequency
    for text in (print_report(report), report.to_html(), report.to_markdown()):
        assert "Stability" in text
    is_warned = "Most subsamples give a different model" in " ".join(summary["advice"]["warnings"])
    assert is_warned == (found.model_frequency < 0.5)
    other = fit(SCMClassifier(max_rules=1), *samples)
    with pytest.raises(IcscmError, match="stability was computed with settings or data"):
        other.report(stability=found)
