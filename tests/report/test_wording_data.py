"""Sentences on data: facts of a command, a check-up, new rows, a screen, stability."""

from dataclasses import replace

import pytest

from icscm.report.wording import checkup, data, predictions
from icscm.report.wording.evaluation import (
    describe_decisions,
    describe_interval_check,
    describe_interval_checks,
    describe_moved_leaves,
)
from icscm.report.wording.importances import describe_importances
from icscm.report.wording.screening import (
    describe_screen,
    describe_screen_validation,
)
from icscm.report.wording.stability import describe_stability
from icscm.validation.leaf_calibration import IntervalCheck


def name_option(name, *value):
    return "=".join(map(str, (name, *value)))


# --- facts of a command ---------------------------------------------------------------------------


def test_the_table_is_described_by_its_size_and_rate():
    facts = data.describe_table("a.csv", n_rows=1200, n_columns=1)
    assert facts == [("Data", "a.csv: 1,200 rows, 1 column to learn from")]
    positive = data.describe_positive("ill = yes", n_positive=300, n_rows=1200)
    assert positive == [("Positive", "ill = yes, in 25.0% of the rows")]


def test_facts_that_do_not_apply_are_left_out():
    assert data.describe_environments(None, 3) == []
    assert data.describe_groups(None) == []
    assert data.describe_dropped_rows(0) == []
    assert data.describe_excluded_environments(0, []) == []
    assert data.describe_merged_environments({}) == []
    assert data.describe_missing_texts([], has_defaults=False) == []


def test_what_was_done_to_rows_and_environments_is_told():
    assert data.describe_environments("site", 1234) == [("Environments", "1,234, by site")]
    assert data.describe_groups("id") == [("Groups", "rows with the same id belong together")]
    assert data.describe_dropped_rows(1) == [("Dropped", "1 row without target or environment")]
    assert data.describe_excluded_environments(7, ["A", "B"]) == [("Excluded", "7 rows of A, B")]
    merged = {"north": ["B", "A"], "south": ["C"]}
    assert data.describe_merged_environments(merged) == [("Merged", "A, B as north; C as south")]


def test_texts_that_were_read_as_missing_are_listed_with_their_columns():
    cells = [("?", {"age": 3}), ("NA", {"age": 1, "dose": 4})]
    text = "'?' in age (3 cells), 'NA' in 2 columns (5 cells), read as missing"
    assert data.describe_missing_texts(cells, has_defaults=False) == [("Missing", text)]
    ((_, with_hint),) = data.describe_missing_texts(cells, has_defaults=True)
    assert with_hint == f"{text}; --no-default-na keeps such texts"


# --- a check-up -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("in_table", "in_a_tenth", "start"),
    [
        (None, None, "Even in the whole table a difference of 20%"),
        (0.21, 0.5, "Even in the whole table a difference of 20%"),
        (0.002, 0.005, "Even in a tenth of the rows a difference of 0.5% is detectable"),
    ],
)
def test_too_little_and_too_much_power_are_told(in_table, in_a_tenth, start):
    (advice,) = checkup.advise_on_power(in_table, in_a_tenth, name_option)
    assert advice.startswith(start)


def test_power_in_between_needs_no_advice():
    assert checkup.advise_on_power(0.1, None, name_option) == []
    assert checkup.advise_on_power(0.1, 0.15, name_option) == []


def test_one_environment_may_hold_nearly_all_rows():
    assert checkup.advise_on_dominance(0.95) == []
    (advice,) = checkup.advise_on_dominance(0.97)
    assert advice.startswith("One environment holds 97.0% of the rows")


def test_equal_rates_reject_little():
    assert checkup.advise_on_equal_rates(0.05, alpha=0.05) == []
    (advice,) = checkup.advise_on_equal_rates(0.06, alpha=0.05)
    assert "(p 0.06): few rules can be rejected." in advice


def test_each_kind_of_column_has_its_own_advice():
    names = ["determining", "nearly", "strong", "deciding", "missing"]
    kinds = {name: [] for name in names}
    starts = {
        "determining": "Determines the environment: a, b. Learners that compare environments",
        "nearly": "Nearly determines the environment (Cramer's V above 0.9): a, b. There",
        "strong": "Strongly associated with the environment: a, b. A rule on such a column",
        "deciding": "Determines the label of many rows by itself: a, b. Check",
        "missing": "Missing values depend on the environment: a, b. Rules on missingness",
    }
    for kind, start in starts.items():
        columns = kinds | {kind: ["a", "b"]}
        (advice,) = checkup.advise_on_columns(**columns)
        assert advice.startswith(start)
    assert checkup.advise_on_columns(**kinds) == []


# --- new rows -------------------------------------------------------------------------------------


def test_notes_on_new_rows():
    assert predictions.note_excluded_rows(0) == []
    assert predictions.note_excluded_rows(2) == [
        "Excluded: 2 samples of environments that were excluded in training."
    ]
    assert predictions.note_groups(None) == []
    assert predictions.note_groups(1)[0].startswith("Intervals and tests are those of 1 group of")
    assert predictions.note_absent_levels("'sex'", [], ["m"]) == []
    assert predictions.note_absent_levels("'sex'", ["f"], []) == [
        "Column 'sex' does not contain f, which the rules use; it contains no value."
    ]
    assert predictions.note_new_levels("'sex'", [], 0) == []
    assert predictions.note_new_levels("'sex'", ["F"], 3) == [
        "Column 'sex' contains levels that did not occur in training, in 3 rows: F."
    ]


def test_leaves_whose_rate_moved_are_numbered():
    assert describe_moved_leaves([], n_tested=0) == "No leaf has samples to compare."
    assert describe_moved_leaves([], 3) == "The rate of none of 3 leaves differs from training."
    assert describe_moved_leaves(["2"], 3) == (
        "The rates of 1 of 3 leaves differ from training: leaf 2."
    )
    assert describe_moved_leaves(["1", "2"], 3).endswith("leaves 1, 2.")


def test_rates_outside_their_prediction_interval_are_listed():
    inside = IntervalCheck("north", n_samples=10, n_positive=4, p_value=0.8, is_inside=True)
    outside = IntervalCheck("south", n_samples=40, n_positive=2, p_value=0.01, is_inside=False)
    whole = replace(outside, environment=None)
    assert describe_interval_check([]) == ""
    assert describe_interval_check([inside]) == "within"
    assert describe_interval_check([inside, outside]) == "outside: south (5.0%)"
    assert describe_interval_check([whole]) == "outside: (5.0%)"


def test_intervals_that_hold_are_counted():
    def describe(n_rates, n_inside, has_environments):
        return describe_interval_checks(
            n_rates=n_rates,
            n_inside=n_inside,
            n_new_environments=2,
            has_environments=has_environments,
        )

    assert describe(0, 0, True) == ""
    assert describe(6, 1, True) == (
        "Of 6 rates of leaves in 2 environments not seen in training 1 is within the 95% "
        "prediction interval."
    )
    assert describe(3, 2, False) == (
        "Of 3 rates of leaves in these samples, taken as a new environment, 2 are within the 95% "
        "prediction interval."
    )


def test_thresholds_at_which_a_model_is_of_use():
    cuts = [0.1, 0.2, 0.3, 0.4]
    assert describe_decisions(cuts, [0.2, 0.1, 0.05, 0.0], [0.2, 0.05, -0.1, -0.2]) == (
        "The net benefit of the model is above that of treating all and of treating none at 50% "
        "of the thresholds from 0.1 to 0.4, between 0.2 and 0.3."
    )
    assert describe_decisions(cuts, [0.0] * 4, [0.1] * 4).startswith(
        "The net benefit of the model is at no threshold from 0.1 to 0.4 above"
    )


# --- a screen, stability, importances -------------------------------------------------------------


def test_a_screen_counts_what_it_rejects():
    assert describe_screen(0, 3, 0.05) == "None of 3 columns is rejected at tolerance 0.05."
    assert describe_screen(1, 3, 0.05) == "1 of 3 columns is rejected at tolerance 0.05."
    assert describe_screen(2, 3, 0.05) == "2 of 3 columns are rejected at tolerance 0.05."


def test_a_screen_that_costs_accuracy_at_left_out_environments_is_told():
    def describe(gains, auc_all, auc_screened):
        return describe_screen_validation(gains, auc_all, auc_screened, negligible=0.005)

    assert describe([], 0.5, 0.5) == "The AUC is undefined in every environment left out."
    better = describe([0.1, 0.001, -0.02], 0.7, 0.73)
    assert "higher in 1 of 3 environments, lower in 1." in better
    assert "still helped" not in better
    assert "still helped" in describe([-0.1], 0.8, 0.7)


def test_stability_names_the_model_or_its_columns():
    counts = {"n_subsamples": 20, "n_same_model": 3, "n_same_columns": 12}
    assert describe_stability(**counts, is_forest=False) == (
        "Of 20 random subsamples with half of the samples, 3 gave this model and 12 one with the "
        "same columns."
    )
    assert describe_stability(**counts, is_forest=True).endswith(
        "12 gave a forest of the same columns."
    )


def test_losses_are_explained_where_columns_were_permuted():
    assert "losses" not in describe_importances(None)
    assert "in 1,200 training rows;" in describe_importances(1200)
