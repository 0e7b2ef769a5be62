"""Every experiment runs, quickly, and writes its tables and figures."""

import re
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

from icscm.exceptions import IcscmWarning
from paper import NAMES, find_experiment, transfer
from paper.__main__ import main
from paper.base import Table
from paper.output import QUICK, add_caveat, to_latex, to_markdown
from paper.real import compute_expected
from paper.runner import read_rows
from paper.shares import compare_with_published

DATA = Path(__file__).parents[3] / "shared" / "data"


@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=() if name == "samples" else pytest.mark.thorough) for name in NAMES],
)
def test_quick(name, tmp_path, capsys, monkeypatch):
    few = "baseline", "plain tree", "invariant tree", "logistic"  # others take minutes
    monkeypatch.setattr(transfer, "METHODS", {each: transfer.METHODS[each] for each in few})
    options = []
    if name in ("real", "transfer"):
        if not DATA.exists():
            pytest.skip("the folder of raw data files is not here")
        options = ["--data", str(DATA)]
    assert main([name, "--quick", "--jobs", "1", "--out", str(tmp_path), *options]) == 0
    rows = read_rows(tmp_path / f"{name}.csv")
    assert rows
    summary = add_caveat(find_experiment(name).summarise(rows))
    assert QUICK in " ".join(capsys.readouterr().out.split())
    assert summary.tables
    assert summary.findings
    page = (tmp_path / "index.html").read_text()
    for table in summary.tables:
        assert (tmp_path / f"{table.name}.md").read_text() == to_markdown(table)
        assert QUICK in to_markdown(table)
        assert r"\toprule" in (tmp_path / f"{table.name}.tex").read_text()
        assert all(len(row) == len(table.header) for row in table.rows)
    for figure in summary.figures:
        assert (tmp_path / f"{figure.name}.png").stat().st_size > 5_000
        assert f'src="{figure.name}.svg"' in page
    assert find_experiment(name).title in page
    assert not list(tmp_path.glob("*partial*"))
    assert not re.search(r"(src|href)=\"(https?:)?//", page)


def test_unknown_name(tmp_path, capsys):
    assert main(["figure-9", "--out", str(tmp_path / "out")]) == 2
    told = capsys.readouterr().err
    assert "there is no experiment called 'figure-9'; choose from identification," in told
    assert not (tmp_path / "out").exists()


def test_all_skips_experiments_without_data(tmp_path, monkeypatch):
    """Without the folder of real data the other experiments still run."""
    monkeypatch.setattr("paper.reproduction.NAMES", ("samples", "real"))
    monkeypatch.setenv("ICSCM_DATA", str(tmp_path))
    with pytest.warns(IcscmWarning, match="real is skipped: no real data set was found"):
        assert main(["all", "--quick", "--jobs", "1", "--out", str(tmp_path)]) == 0
    assert (tmp_path / "samples.csv").exists()
    assert not (tmp_path / "real.csv").exists()


def test_chance_is_the_hypergeometric_mean():
    found = compute_expected({"variables": "183", "causal": "37"})
    wanted = [stats.hypergeom(183, 37, n).mean() for n in range(1, 11)]
    np.testing.assert_allclose(found, wanted)
    assert compute_expected({"variables": "4", "causal": "2"})[-1] == 2.0


def test_agreement_is_judged_by_the_errors_of_both():
    text = compare_with_published("ICP", {"1": 0.96, "2": 0.50}, [0.98, 0.99], n_runs=100)
    assert text == "ICP: differs from the paper at 2 (here 0.50, paper 0.99); agrees elsewhere."
    text = compare_with_published("SCM", {"1": 0.0}, [0.0], n_runs=100)
    assert "agrees with the paper everywhere" in text
    # two runs say next to nothing
    text = compare_with_published("SCM", {"1": 0.5}, [0.96], n_runs=2)
    assert "agrees" in text


def test_tables_escape_what_their_language_reads():
    table = Table("t", "50 % of x_1", ["a|b", "&"], [["1 ± 2", "#"]])
    assert "| a\\|b | & |" in to_markdown(table)
    assert r"a|b & \& \\" in to_latex(table)
    assert r"1 $\pm$ 2 & \# \\" in to_latex(table)
    assert r"50 \% of x\_1" in to_latex(table)
