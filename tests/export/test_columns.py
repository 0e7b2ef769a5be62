"""`icscm predict`, the SQL and the Python export give the same columns, in one order."""

import csv

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner

import icscm
from icscm.cli import main
from icscm.export import export_model
from icscm.model.calibration import Decisions
from icscm.model.saved import make_saved_model

MODELS = {
    "rules": icscm.ICSCMClassifier(),
    "tree": icscm.InvariantTreeClassifier(max_leaves=4, min_samples_leaf=0.02),
    "forest": icscm.InvariantForestClassifier(n_estimators=3, max_features=1.0, random_state=0),
    "score": icscm.InvariantScoreClassifier(tolerance=None, max_terms=3),
}


def make_table():
    rng = np.random.default_rng(0)
    age, bmi, site = rng.normal(50, 15, 600), rng.normal(25, 4, 600), rng.integers(0, 3, 600)
    ill = (age > 55) ^ (rng.random(600) < 0.1)
    return (
        pd.DataFrame({"age": age.round(1), "bmi": bmi.round(1)}),
        np.where(ill, "yes", "no"),
        site,
    )


def run_sql(connection, frame, query):
    """Names and rows of the result, without the columns of the table."""
    connection.execute("CREATE TABLE data (age DOUBLE, bmi DOUBLE)")
    rows = frame.astype(object).where(frame.notna(), None).values.tolist()
    connection.executemany("INSERT INTO data VALUES (?, ?)", rows)
    done = connection.execute(query)
    return [each[0] for each in done.description][2:], [row[2:] for row in done.fetchall()]


@pytest.mark.filterwarnings("ignore::icscm.exceptions.IcscmWarning")
@pytest.mark.parametrize("kind", MODELS)
def test_columns_agree(default_engines, tmp_path, kind):
    """`icscm predict` called them class and rule, and had them in another order."""
    X, y, places = make_table()
    saved = make_saved_model(MODELS[kind].fit(X, y, environments=places))
    rows = X[:40].copy()
    rows.iloc[::5, 0], rows.iloc[::7, 1] = np.nan, np.nan
    rows.to_csv(tmp_path / "rows.csv", index=False)
    (tmp_path / "model.json").write_text(saved.to_json(), encoding="utf-8")
    words = ["predict", "model.json", "rows.csv", "--out", "p.csv", "-q"]
    words = [str(tmp_path / each) if "." in each else each for each in words]
    assert CliRunner().invoke(main, words).exit_code == 0
    with (tmp_path / "p.csv").open(encoding="utf-8") as file:
        names, *found = csv.reader(file)
    assert tuple(names) == Decisions._fields == ("prediction", "probability", "decided_by")
    expected = [
        (label, pytest.approx(float(probability), rel=1e-12, abs=0), text)
        for label, probability, text in found
    ]
    assert any(" missing" in text for _, _, text in expected)
    module = {}
    exec(export_model(saved, "python"), module)  # the export is a program; this is its test
    made = [module["predict"](row) for row in rows.to_dict("records")]
    assert {each._fields for each in made} == {Decisions._fields}
    assert made == expected
    query = export_model(saved, "sql")
    for connection in default_engines.values():
        connection.execute("DROP TABLE IF EXISTS data")
        assert run_sql(connection, rows, query) == (names, expected)
