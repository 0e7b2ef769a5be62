"""Conclusions of a comparison, from scores."""

from dataclasses import dataclass, field

from icscm.report.wording.comparison import describe_comparison


@dataclass(frozen=True)
class Candidate:
    """A learner with the same scores by rows and in environments left out, unless given."""

    name: str
    kind: str
    environments: dict
    rows: dict
    intervals: dict = field(default_factory=lambda: dict.fromkeys(("auc", "slope", "error")))
    gain: tuple | None = None


def make_candidate(name, kind, *, auc, error, slope=None, auc_by_rows=None, gain=None):
    scores = {"auc": auc, "slope": slope, "error": error}
    by_rows = scores | {"auc": auc if auc_by_rows is None else auc_by_rows}
    return Candidate(name, kind, scores, by_rows, gain=gain)


BASELINE = make_candidate("baseline", "baseline", auc=0.5, error=0.3)
FOREST = make_candidate("forest", "other", auc=0.7, error=0.25, slope=0.6, auc_by_rows=0.9)
TREE = make_candidate("tree", "trees", auc=0.75, error=0.32, slope=1.0, auc_by_rows=0.8)


def describe(*candidates, n_left_out=4, n_environments=4):
    return describe_comparison(candidates, n_left_out=n_left_out, n_environments=n_environments)


def test_the_largest_auc_is_named_and_that_of_the_learners_that_compare_environments():
    best, *_ = describe(BASELINE, FOREST, TREE)
    assert best == (
        "Leave-one-environment-out: tree has the largest AUC, 0.750, with calibration slope 1.00."
    )
    by_rows = describe(BASELINE, FOREST, TREE)[2]
    assert by_rows == (
        "Cross-validation by rows: forest has the largest AUC, 0.900, with calibration slope 0.60; "
        "of the learners that compare environments, tree: 0.800, with calibration slope 1.00."
    )


def test_a_slope_far_from_one_is_reported():
    assert describe(BASELINE, FOREST, TREE)[1] == (
        "Calibration slope at new environments below 0.8 (predictions too extreme) or above 1.25 "
        "(too moderate): forest (0.60)."
    )
    assert not [line for line in describe(BASELINE, TREE) if line.startswith("Calibration")]


def test_the_fall_from_rows_to_environments_is_reported_for_each_family():
    assert describe(BASELINE, FOREST, TREE)[3] == (
        "Change of the AUC from rows to held-out environments: forest -0.200, tree -0.050."
    )
    assert not [line for line in describe(BASELINE, TREE) if line.startswith("Change")]


def test_errors_are_compared_with_the_baseline():
    lines = describe(BASELINE, FOREST, TREE)[4:]
    assert lines == [
        "Leave-one-environment-out: forest has the smallest error at 0.5, 25.0%, 5.0 points less "
        "than the baseline.",
        "Best of the trees tested for invariance at 0.5: tree, 32.0%, 7.0 points more than forest; "
        "2.0 points more than the baseline.",
        "Leave-one-environment-out: a larger error at 0.5 than the majority-class baseline: tree "
        "(by 2.0 points).",
        "Cross-validation by rows: forest has the smallest error at 0.5, 25.0%, 5.0 points less "
        "than the baseline.",
        "Best of the trees tested for invariance at 0.5: tree, 32.0%, 7.0 points more than forest; "
        "2.0 points more than the baseline.",
        "Cross-validation by rows: a larger error at 0.5 than the majority-class baseline: tree "
        "(by 2.0 points).",
    ]


def test_by_rows_the_interval_of_the_gain_decides():
    unsure = make_candidate("rules", "rules", auc=0.6, error=0.29, gain=(0.01, -0.01, 0.03))
    lines = describe(BASELINE, unsure)
    assert lines[2].endswith(
        "rules has the smallest error at 0.5, 29.0%, 1.0 points less than the baseline."
    )
    assert lines[3].endswith("29.0%, not significantly different from the baseline (30.0%).")


def test_no_candidate_may_be_better_than_the_baseline():
    worse = make_candidate("rules", "rules", auc=0.6, error=0.4)
    same = make_candidate("score", "scores", auc=0.6, error=0.3002)
    lines = describe(BASELINE, worse, same)
    assert lines[3] == (
        "Leave-one-environment-out: no candidate has a smaller error at 0.5 than the "
        "majority-class baseline, 30.0%."
    )
    assert (
        "Best of the points scores at 0.5: score, 30.0%; the same as the baseline (30.0%)." in lines
    )


def test_too_few_environments_are_said_first():
    assert describe(BASELINE, TREE, n_left_out=2, n_environments=2)[0].startswith(
        "There are two environments: each held-out score comes from a model learned in one"
    )
    assert describe(BASELINE, TREE, n_left_out=1, n_environments=3)[0].startswith(
        "One environment is large enough to be held out"
    )
