"""Groups of rows from every source that takes them: the same tests as in memory."""

import json
from contextlib import nullcontext

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner

from icscm import ICSCMClassifier, InvariantTreeClassifier
from icscm.cli import main
from icscm.engine.counts import BinnedRule, BinnedSplit
from icscm.engine.pieces import negate
from icscm.exceptions import IcscmError
from icscm.sources import open_bits, open_dask, open_memory
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


def test_errors(visits):
    table = visits.drop(columns=["ill"])
    with pytest.raises(IcscmError, match="groups names 'family', but X has only"):
        ICSCMClassifier().fit(table, visits["ill"], environments="site", groups="family")
    missing = visits["patient"].where(visits["patient"] != "p7")
    with pytest.raises(IcscmError, match="groups is missing"):
        InvariantTreeClassifier().fit(
            table[list("abcd")], visits["ill"], environments=visits["site"], groups=missing
        )


def split_visits(visits, n_partitions=5):
    """The visits as a Dask frame: patients have rows in several partitions."""
    frames = pytest.importorskip("dask.dataframe")
    return frames.from_pandas(visits.reset_index(drop=True), npartitions=n_partitions)


@pytest.mark.parametrize("n_partitions", [1, 5])
@pytest.mark.parametrize("search", ["greedy", "exhaustive"])
def test_rules_on_dask(visits, n_partitions, search):
    """Groups could not be used with Dask collections."""
    frame = split_visits(visits, n_partitions)
    table = visits.reset_index(drop=True)
    found, wanted = (
        fit_quietly(
            ICSCMClassifier(search=search),
            rows.drop(columns=["ill"]),
            rows["ill"],
            "site",
            groups="patient",
        )
        for rows in (frame, table)
    )
    assert found.trace_ == wanted.trace_
    assert found.model_ == wanted.model_
    assert found.verdicts_[0].design_effect > 1.5


def test_trees_on_dask(visits):
    frame = split_visits(visits)
    table = visits.reset_index(drop=True)
    columns = list("abcd")
    found, wanted = (
        fit_quietly(
            InvariantTreeClassifier(max_leaves=4),
            rows[columns],
            rows["ill"],
            rows["site"],
            groups=rows["patient"],
        )
        for rows in (frame, table)
    )
    assert str(found.model_) == str(wanted.model_)
    for on_dask, in_memory in zip(found.verdicts_, wanted.verdicts_, strict=True):
        assert on_dask.design_effect == pytest.approx(in_memory.design_effect)


def open_twice(visits):
    """The same visits on Dask and in memory."""
    frame = split_visits(visits)
    table = visits.reset_index(drop=True)
    columns = list("abcd")
    on_dask = open_dask(
        frame[columns], frame["ill"], environments=frame["site"], groups=frame["patient"]
    )
    in_memory = open_memory(
        table[columns], table["ill"], environments=table["site"], groups=table["patient"]
    )
    return on_dask.source.clusters, in_memory.source.clusters


def assert_same_moments(found, wanted):
    for name, values in vars(wanted).items():
        assert (getattr(found, name) == values).all(), name


def test_clusters_of_partitions_are_those_of_the_table(visits):
    on_dask, in_memory = open_twice(visits)
    a, b, c = (BinnedRule(column, np.array([False, True])) for column in (0, 1, 2))
    for path in ((), (a,), (a, negate(b))):
        rules = [a, b, negate(c)]
        assert_same_moments(
            on_dask.count_moments(path, rules), in_memory.count_moments(path, rules)
        )

    found, wanted = on_dask.count_patterns([a, b, c]), in_memory.count_patterns([a, b, c])
    parts = np.arange(wanted.patterns.max() + 1)
    assert_same_moments(
        found.count_moments(parts, len(parts)), wanted.count_moments(parts, len(parts))
    )

    splits = [BinnedSplit(a, 1, -1), BinnedSplit(b, -2, -3)]
    assert_same_moments(on_dask.count_leaf_moments(splits), in_memory.count_leaf_moments(splits))
    p = np.random.default_rng(0).random((3, 3))
    sums, wanted_sums = (clusters.square_residuals(splits, p) for clusters in (on_dask, in_memory))
    assert sums.squares == pytest.approx(wanted_sums.squares)
    assert (sums.n_groups == wanted_sums.n_groups).all()


def test_dask_on_the_command_line(visits, tmp_path):
    """`--group` did not go with --dask and --workers."""
    folder = tmp_path / "visits"
    folder.mkdir()
    for number in range(3):
        part = visits[400 * number : 400 * (number + 1)]
        part.to_csv(folder / f"{number}.csv", index=False)
    command = ["--target", "ill", "--environment", "site", "--group", "patient", "--json"]
    command += ["--no-validation", "--stability", "0", "--merge-environments", "south+west=far"]
    models = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("icscm.sources.dask.client.open_client", lambda *_: nullcontext())
        for options in (["--workers", "1"], []):
            arguments = ["fit", str(folder), *command, *options]
            done = CliRunner().invoke(main, arguments, catch_exceptions=False)
            assert done.exit_code == 0, done.output
            # shapes are compared where rows are in this process
            models.append(json.loads(done.stdout)["model"] | {"shape": None})
    assert models[0] == models[1]


def test_errors_on_dask(visits):
    frame = split_visits(visits)
    arguments = {"environments": frame["site"]}
    columns = list("abcd")
    missing = frame["patient"].where(frame["patient"] != "p7")
    with pytest.raises(IcscmError, match="groups is missing"):
        ICSCMClassifier().fit(frame[columns], frame["ill"], groups=missing, **arguments)
    with pytest.raises(IcscmError, match="X is a Dask collection but groups is not"):
        ICSCMClassifier().fit(frame[columns], frame["ill"], groups=visits["patient"], **arguments)
    with pytest.raises(IcscmError, match="weights cannot be used with Dask collections"):
        ICSCMClassifier().fit(frame[columns], frame["ill"], sample_weight=frame["a"], **arguments)
