"""Groups of rows from every source that takes them: the same tests as in memory."""

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner

from icscm import ICSCMClassifier, InvariantTreeClassifier
from icscm.cli import main
from icscm.exceptions import IcscmError
from icscm.sources import open_bits
from icscm.sources.bits.packing import pack_matrix
from support.fitting import fit_quietly

pytestmark = pytest.mark.filterwarnings("ignore::icscm.exceptions.IcscmWarning")


@pytest.fixture(scope="module")
def visits():
    rng = np.random.default_rng(3)
    patients = np.repeat(np.arange(300), 4)
    of_patient = rng.integers(0, 2, (300, 4))
    frailty = np.where(of_patient[:, 0], 0.9, rng.beta(0.6, 1.4, 300))
    table = pd.DataFrame(of_patient[patients], columns=list("abcd"))
    table["ill"] = (rng.random(1200) < frailty[patients]).astype(int)
    table["site"] = np.array(["north", "south", "west"])[patients % 3]
    return table.assign(patient=[f"p{each}" for each in patients]).sample(frac=1, random_state=0)


def fit_in_memory(visits):
    table = visits.reset_index(drop=True)
    return fit_quietly(
        ICSCMClassifier(), table.drop(columns=["ill"]), table["ill"], "site", groups="patient"
    )


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_files(visits, tmp_path, ending):
    path = tmp_path / f"visits.{ending}"
    visits.to_parquet(path) if ending == "parquet" else visits.to_csv(path, index=False)
    found = ICSCMClassifier().fit_dataset(path, "ill", environments="site", groups="patient")
    wanted = fit_in_memory(visits)
    assert found.trace_ == wanted.trace_
    assert found.verdicts_[0].design_effect > 1.5
    with pytest.raises(IcscmError, match="'site' is named twice among target"):
        ICSCMClassifier().fit_dataset(path, "ill", environments="site", groups="site")


def test_packed_genomes(visits, tmp_path):
    labels = visits.assign(genome=[str(each) for each in range(len(visits))])
    pack_matrix(visits[list("abcd")].to_numpy(), tmp_path / "genes.bits", names=list("abcd"))
    own = {"groups": "patient", "sample_column": "genome"}
    countable = open_bits(tmp_path / "genes.bits", labels, "ill", environments="site", **own)
    found, wanted = ICSCMClassifier().fit_counts(countable), fit_in_memory(visits)
    assert found.trace_.verdicts == wanted.trace_.verdicts
    assert found.trace_.steps[0].chosen.verdict == wanted.trace_.steps[0].chosen.verdict


def test_command_line(visits, tmp_path):
    path = tmp_path / "visits.csv"
    visits.to_csv(path, index=False)
    command = ["fit", str(path), "--target", "ill", "--environment", "site"]
    report = tmp_path / "report.json"
    command += ["--no-validation", "--stability", "0"]
    given = [*command, "--group", "patient", "--report", str(report)]
    result = CliRunner().invoke(main, given, catch_exceptions=False)
    assert result.exit_code == 0
    assert "the mean design effect of the leaves is" in report.read_text()
    wrong = CliRunner().invoke(main, [*command, "--group", "patient", "--workers", "2"])
    assert wrong.exit_code == 2


def test_errors(visits):
    table = visits.drop(columns=["ill"])
    with pytest.raises(IcscmError, match="groups names 'family', but X has only"):
        ICSCMClassifier().fit(table, visits["ill"], environments="site", groups="family")
    missing = visits["patient"].where(visits["patient"] != "p7")
    with pytest.raises(IcscmError, match="groups is missing"):
        InvariantTreeClassifier().fit(
            table[list("abcd")], visits["ill"], environments=visits["site"], groups=missing
        )


def test_dask_collections():
    frames = pytest.importorskip("dask.dataframe")
    table = frames.from_pandas(pd.DataFrame({"a": [0, 1] * 4, "y": [0, 1] * 4}), npartitions=2)
    with pytest.raises(IcscmError, match="groups cannot be used with Dask collections"):
        ICSCMClassifier().fit(table[["a"]], table["y"], environments=table["a"], groups=table["a"])
