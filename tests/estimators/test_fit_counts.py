"""A learner raises an error for a source that was opened with other binning settings."""

import numpy as np
import pytest

from icscm import ICSCMClassifier, InvariantTreeClassifier, SCMClassifier
from icscm.datasets import make_conjunction
from icscm.exceptions import IcscmError, LeftOutWarning
from icscm.sources import BinningConfig, open_files, open_memory
from icscm.sources.bits.opening import open_bits
from icscm.sources.bits.packing import pack_matrix
from icscm.sources.sites import LocalSite, make_agreement, open_sites

DATA = make_conjunction(2000, random_state=1)


def test_other_settings_than_those_of_the_source():
    """`fit_counts` ignored these parameters of the learner without a word."""
    countable = open_memory(DATA.X, DATA.y, environments=DATA.environments)
    learner = ICSCMClassifier(max_thresholds=20)
    expected = "has max_thresholds=20, but these samples were opened with max_thresholds=50"
    with pytest.raises(IcscmError, match=expected):
        learner.fit_counts(countable)
    opened = open_memory(
        DATA.X, DATA.y, environments=DATA.environments, preparation=learner.prepare()
    )
    assert learner.fit_counts(opened).rules_


def test_device_other_than_that_of_the_source():
    countable = open_memory(DATA.X, DATA.y, environments=DATA.environments)
    with pytest.raises(IcscmError, match="device='cuda', but these samples were opened with"):
        ICSCMClassifier(device="cuda").fit_counts(countable)
    assert ICSCMClassifier(device="auto").fit_counts(countable).rules_


def test_rows_opened_with_all_columns_keep_a_copy_of_the_environment():
    X = DATA.X.assign(site=DATA.environments)
    with pytest.warns(LeftOutWarning, match="column 'site'"):
        dropped = open_memory(X, DATA.y, environments=DATA.environments)
    config = BinningConfig(drop_suspicious=False)
    kept = open_memory(X, DATA.y, environments=DATA.environments, preparation=config)
    assert {*dropped.table.dropped} == {X.columns.get_loc("site")}
    assert not kept.table.dropped
    with pytest.warns(LeftOutWarning, match="Rejected: site determines the environment"):
        learner = ICSCMClassifier().fit_counts(kept)
    assert (learner.dropped_columns_, learner.rejected_) == ({}, ["site"])


def test_files_know_their_settings(tmp_path):
    path = tmp_path / "visits.parquet"
    DATA.X.assign(y=DATA.y, site=DATA.environments).to_parquet(path)
    with open_files(path, "y", environments="site") as countable:
        with pytest.raises(IcscmError, match="max_thresholds=20, but these samples"):
            ICSCMClassifier(max_thresholds=20).fit_counts(countable)
        assert ICSCMClassifier().fit_counts(countable).rules_


def test_settings_that_a_source_has_no_use_for(tmp_path):
    """The bins of packed stores and of agreements are fixed; there is nothing to disagree on."""
    path, labels = tmp_path / "genes.bits", DATA.X.assign(genome=range(len(DATA.y)), y=DATA.y)
    pack_matrix(DATA.X, path, names=list(DATA.X))
    countable = open_bits(path, labels, "y", sample_column="genome")
    assert SCMClassifier(max_thresholds=20).fit_counts(countable).rules_
    agreement = make_agreement({"A1": [0]}, classes=(0, 1), environments=(0, 1))
    site = LocalSite(
        DATA.X, DATA.y, environments=np.asarray(DATA.environments), agreement=agreement
    )
    countable = open_sites([site], agreement)
    assert SCMClassifier(max_thresholds=20).fit_counts(countable).rules_


@pytest.mark.parametrize(
    "learner", [ICSCMClassifier(alpha=7), InvariantTreeClassifier(tolerance=-1)]
)
def test_a_learner_that_failed_leaves_the_samples_usable(learner):
    """The samples counted as used by a learner whose parameters were invalid."""
    countable = open_memory(DATA.X, DATA.y, environments=DATA.environments)
    with pytest.raises(IcscmError):
        learner.fit_counts(countable)
    assert ICSCMClassifier().fit_counts(countable).rules_


def test_a_single_environment_leaves_the_samples_usable():
    """Samples that one learner cannot use counted as used for all others."""
    countable = open_memory(DATA.X, DATA.y, environments=np.zeros(len(DATA.y)))
    with pytest.raises(IcscmError, match="single environment"):
        ICSCMClassifier().fit_counts(countable)
    assert SCMClassifier().fit_counts(countable).rules_


def test_parameters_are_checked_once_in_a_fit(monkeypatch):
    """`make_settings` repeated the checks that `fit` had made before it opened the table."""
    n_checks = []
    monkeypatch.setattr("icscm.estimators.base.check_parameters", n_checks.append)
    data = make_conjunction(random_state=1)
    ICSCMClassifier().fit(data.X, data.y, environments=data.environments)
    assert len(n_checks) == 1
    samples = open_memory(data.X, data.y, environments=data.environments)
    ICSCMClassifier().make_settings(samples)  # a direct caller has them checked, too
    assert len(n_checks) == 2
