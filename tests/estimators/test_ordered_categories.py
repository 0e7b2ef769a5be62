"""Ordered categories are split by their order, as whole numbers in that order would be."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
from click.testing import CliRunner
from hypothesis import given, settings
from hypothesis import strategies as st

from icscm import InvariantForestClassifier, InvariantTreeClassifier, SCMClassifier
from icscm.cli import main
from icscm.exceptions import UnknownLevelWarning
from icscm.model.rules import CategoryRule, MissingRule, ThresholdRule
from icscm.model.saved import load, make_saved_model
from support.fitting import fit_all_columns

STAGES = ["IV", "II", "unknown", "I", "III"]  # no order that sorting gives
LEARNERS = [
    SCMClassifier(max_rules=3),
    SCMClassifier(max_rules=3, model_type="disjunction"),
    InvariantTreeClassifier(tolerance=None, max_leaves=5, min_samples_leaf=0),
    InvariantForestClassifier(tolerance=None, n_estimators=2, random_state=0, min_samples_leaf=0),
]


def make_ordered(codes):
    return pd.Categorical.from_codes(codes, STAGES, ordered=True)


def translate(rule, present):
    """The rule on the names of stages, from that on their numbers."""
    if rule.name != "stage" or not isinstance(rule, ThresholdRule):
        return rule
    above = tuple(STAGES[code] for code in present if code > rule.threshold)
    return CategoryRule(rule.column, rule.name, above, rule.above, missing=rule.missing)


CODES = st.lists(st.sampled_from([-1, 0, 1, 2, 3, 4]), min_size=12, max_size=40)


@pytest.mark.filterwarnings("ignore")
@settings(max_examples=40, deadline=None)
@given(CODES, st.randoms(use_true_random=False), st.sampled_from(LEARNERS), st.booleans())
def test_the_model_is_that_of_numbers(codes, rng, learner, is_polars):
    present = sorted({*codes} - {-1})
    if len(present) < 3:
        return
    other = [rng.randrange(3) for _ in codes]
    y = np.array([int(code + rng.randrange(4) > 3) for code in codes])
    if len({*y.tolist()}) < 2:
        return
    numbers = pd.DataFrame({"stage": [float(c) if c >= 0 else None for c in codes], "x": other})
    frame = pd.DataFrame({"stage": make_ordered(codes), "x": other})
    if is_polars:
        stages = pl.Series([None if code < 0 else STAGES[code] for code in codes])
        frame = pl.DataFrame({"stage": stages.cast(pl.Enum(STAGES)), "x": other})
    expected = learner.fit(numbers, y).model_
    found = learner.fit(frame, y).model_
    assert found == expected.replace_rules(lambda rule: translate(rule, present))
    assert found.predict_proba(frame).tolist() == expected.predict_proba(numbers).tolist()


def test_an_ordered_category_reads_saves_and_meets_new_levels(tmp_path):
    codes = np.arange(200) % 5
    frame = pd.DataFrame({"stage": make_ordered(codes)})
    learner = SCMClassifier().fit(frame, codes >= 3)
    assert str(learner.model_) == "stage in {I, III}"
    assert not any(isinstance(rule, MissingRule) for rule in learner.rules_)
    learner.save(tmp_path / "model.json")
    saved = load(tmp_path / "model.json")
    assert saved == make_saved_model(learner)
    new = pd.DataFrame({"stage": ["III", "IV", "V", "I"]})  # as text, and one never seen
    with pytest.warns(UnknownLevelWarning, match="in 1 of 4 rows that training did not have: 'V'"):
        assert saved.predict(new).tolist() == [True, False, False, True]


def test_two_levels_and_pools_are_as_without_an_order():
    codes = np.arange(200) % 2
    frame = pd.DataFrame({"stage": make_ordered(codes)})
    (rule,) = fit_all_columns(SCMClassifier(), frame, codes == 1).rules_
    assert str(rule) == "stage == II"
    codes = np.arange(200) % 5
    frame = pd.DataFrame({"stage": make_ordered(codes)})
    (rule,) = SCMClassifier(max_thresholds=2).fit(frame, codes > 1).rules_
    assert str(rule) == "stage in 3 rare levels"


@pytest.mark.parametrize("writer", ["pandas", "polars"])
def test_a_parquet_file_that_is_read_as_a_whole_keeps_the_order(tmp_path, writer):
    """`icscm fit` reads it into memory; pieces of `fit_dataset` have plain categories."""
    rng = np.random.default_rng(0)
    codes = rng.integers(0, 5, 400)
    y = (rng.random(400) < np.where(codes > 2, 0.9, 0.1)).astype(int)
    path = tmp_path / "stages.parquet"
    if writer == "pandas":
        pd.DataFrame({"stage": make_ordered(codes), "y": y}).to_parquet(path)
    else:
        stages = pl.Series([STAGES[code] for code in codes]).cast(pl.Enum(STAGES))
        pl.DataFrame({"stage": stages, "y": y}).write_parquet(path)
    options = ["--target", "y", "--model", "tree", "--tolerance", "none", "--max-leaves", "2"]
    out = ["--no-validation", "--out", str(tmp_path / "model.json")]
    done = CliRunner().invoke(main, ["fit", str(path), *options, *out])
    assert done.exit_code == 0, done.output
    (split,) = load(tmp_path / "model.json").model.splits
    assert split.rule.levels == ("I", "III")
