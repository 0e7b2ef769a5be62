"""The export to R, run by R where it is installed."""

import csv
import shutil
import subprocess

import numpy as np
import pandas as pd
import pytest

from icscm import InvariantForestClassifier, InvariantScoreClassifier, InvariantTreeClassifier
from icscm.exceptions import IcscmError
from icscm.export import export_model
from icscm.export.programs import quote_r
from icscm.model.calibration import Decisions
from icscm.model.saved import make_saved_model

RUN = """
source("model.R", encoding = "UTF-8")
rows <- read.csv("rows.csv", na.strings = "", encoding = "UTF-8", check.names = FALSE)
found <- predict_model(rows)
found$probability <- sprintf("%.17g", found$probability)
write.csv(found, "found.csv", row.names = FALSE, fileEncoding = "UTF-8")
"""


def make_rows():
    rng = np.random.default_rng(0)
    site, age = rng.integers(0, 3, 900), rng.normal(50, 15, 900)
    job = rng.choice(["nurse", 'a "b"', "d\u00e9", "x\\y"], 900)
    ill = rng.random(900) < 1 / (1 + np.exp(2 - 2 * (age > 55.5) - 1.5 * (job == "d\u00e9")))
    return pd.DataFrame({"age": age, "job of \u00e9": job}), np.where(ill, "yes", "no"), site


MODELS = {
    "score": InvariantScoreClassifier(tolerance=None, max_terms=4),
    "tree": InvariantTreeClassifier(max_leaves=5),
    "forest": InvariantForestClassifier(n_estimators=3, random_state=0),
}


@pytest.mark.skipif(shutil.which("Rscript") is None, reason="R is not installed")
@pytest.mark.filterwarnings("ignore::icscm.exceptions.IcscmWarning")
@pytest.mark.parametrize("kind", MODELS)
def test_r_predicts_the_same(kind, tmp_path):
    X, y, places = make_rows()
    saved = make_saved_model(MODELS[kind].fit(X, y, environments=places))
    rows = X[:60].copy()
    rows.iloc[::5, 0], rows.iloc[::7, 1], rows.iloc[::9, 1] = np.nan, None, "Nurse"
    rows.to_csv(tmp_path / "rows.csv", index=False)
    (tmp_path / "model.R").write_text(export_model(saved, "r"), encoding="utf-8")
    subprocess.run(["Rscript", "--vanilla", "-e", RUN], cwd=tmp_path, check=True)
    with (tmp_path / "found.csv").open(encoding="utf-8") as file:
        found = [*csv.DictReader(file)]
    knows = ("unknown_levels",) if saved.knows_levels else ()
    assert tuple(found[0]) == Decisions._fields + knows
    is_positive, probability, decided_by = saved.model.decide(rows)
    assert [each["prediction"] for each in found] == np.where(is_positive, "yes", "no").tolist()
    digits = 1e-12 if kind == "forest" else 0  # the exp of a calibration
    expected = pytest.approx(probability.tolist(), rel=digits, abs=0)
    assert [float(each["probability"]) for each in found] == expected
    assert [each["decided_by"] for each in found] == decided_by.tolist()
    assert any(" missing" in each for each in decided_by)
    if saved.knows_levels:
        unknown = saved.find_unknown_levels(rows).tolist()
        assert [each["unknown_levels"] for each in found] == unknown
        assert {*unknown} == {"", "job of \u00e9"}


def test_text_that_could_end_a_literal_is_escaped():
    """Names and levels come from users; R knows no NUL in text."""
    assert quote_r('"); stop("') == r'"\U{22}); stop(\U{22}"'
    assert quote_r("a\\\n") == r'"a\U{5c}\U{a}"'
    assert quote_r((1, 0.1, -1e-7)) == "c(1, 0.1, -0x1.ad7f29abcaf48p-24)"
    long = "\xe9" * 12_000  # R: "string containing Unicode escapes is too long"
    parts = ['"' + n * r"\U{e9}" + '"' for n in (5_000, 5_000, 2_000)]
    assert quote_r(long) == f"paste0({', '.join(parts)})"
    for text in ("\0", "\ud800"):
        with pytest.raises(IcscmError, match="holds a character that R cannot"):
            quote_r(text)
