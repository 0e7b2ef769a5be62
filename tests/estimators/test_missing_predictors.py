"""Values missing at prediction in columns that had none at fitting."""

import dask.dataframe
import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner

from icscm import ICSCMClassifier, InvariantForestClassifier, InvariantTreeClassifier, evaluate
from icscm.cli import main
from icscm.exceptions import UnseenMissingWarning
from icscm.model.saved import make_saved_model

pytestmark = pytest.mark.filterwarnings("ignore::icscm.exceptions.UnseenMissingWarning")


def make_table(n=6_000):
    """Patients of three sites, of whom the old die more often, and those with a high lactate."""
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"age": rng.integers(20, 90, n), "lactate": rng.gamma(2.0, 1.0, n).round(1)})
    risk = np.where(X.age > 70, 0.15, 0.007) + 0.5 * ((X.age > 70) & (X.lactate > 4))
    return X, (rng.random(n) < risk).astype(int), rng.integers(0, 3, n)


LEARNERS = [
    ICSCMClassifier(model_type="disjunction", p=0.2, stop="coverage", pruning=False, max_rules=2),
    InvariantTreeClassifier(max_leaves=4),
    InvariantForestClassifier(n_estimators=5, random_state=0),
]


@pytest.fixture(scope="module", params=LEARNERS, ids=lambda each: type(each).__name__)
def fitted(request):
    X, y, e = make_table()
    return request.param.fit(X, y, environments=e)


def test_a_missing_predictor_is_not_the_healthy_side(fitted):
    """A missing value made every rule false: at age 80 the risk was .145, without the age .007."""
    X = pd.DataFrame({"age": [80.0, None, 30.0], "lactate": [1.0, 1.0, 1.0]})
    with pytest.warns(UnseenMissingWarning, match="'age' is missing in 1 row but never was"):
        old, unknown, young = fitted.predict_proba(X)[:, 1]
    assert young < unknown < old
    is_old = make_table()[0].age > 70
    assert unknown == pytest.approx(young + is_old.mean() * (old - young), rel=0.25)


def test_every_way_to_predict_has_the_mean_and_the_flag(fitted, tmp_path):
    X, y, _ = make_table(60)
    X = X.astype(float).mask(np.random.default_rng(1).random(X.shape) < 0.3)
    saved = make_saved_model(fitted)
    prediction, probability, decided_by = saved.decide(X)
    assert probability.tolist() == fitted.predict_proba(X)[:, 1].tolist()
    lazy = dask.dataframe.from_pandas(X, npartitions=3)
    assert np.asarray(fitted.predict_proba(lazy))[:, 1].tolist() == probability.tolist()
    assert np.asarray(fitted.predict(lazy)).tolist() == prediction.tolist()
    found = evaluate(fitted, X, y)
    assert found.overall.scores["error"].value == pytest.approx((prediction != y).mean())
    saved.save(tmp_path / "model.json")
    X.to_csv(tmp_path / "new.csv", index=False)
    words = ["predict", str(tmp_path / "model.json"), str(tmp_path / "new.csv")]
    done = CliRunner().invoke(main, [*words, "--out", str(tmp_path / "out.csv")])
    assert done.exit_code == 0, done.output
    written = pd.read_csv(tmp_path / "out.csv")
    assert written["decided_by"].tolist() == decided_by.tolist()
    is_flagged = written["decided_by"].str.contains("missing: ")
    assert not is_flagged[X.notna().all(axis=1)].any()
    assert is_flagged[X.age.isna()].all()
