"""Names, data and learners that the tests of reports share."""

import warnings

import numpy as np
import pandas as pd

from icscm import ICSCMClassifier, SCMClassifier
from icscm.exceptions import IcscmWarning
from icscm.report.path import compute_alpha_path
from icscm.sources import open_memory
from support.fitting import PAPER

HOSTILE = [
    "<script>alert(1)</script>",
    '"; DROP TABLE x; --',
    "a | b `c` *d* <b> $x^2$ _e_ [l](http://x) http://evil.example www.evil.example",
    "</script><!-- <img src=x onerror=alert(2)>",
    "{{ 7 * 7 }} {% raw %} &lt;",
    "W" * 300,
    "ünï 日本語 🎉 \x1b[31m\u202eabc\nnew line",
    "</title></style><svg onload=alert(3)>",
]


def fit(learner, X, y, environments=None):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", IcscmWarning)
        return learner.fit(X, y, environments=environments)


def find_path(learner, X, y, environments, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", IcscmWarning)
        samples = open_memory(X, y, environments, preparation=learner.prepare())
    return compute_alpha_path(samples.source, learner.make_settings(samples), **options)


def make_noise(n_samples, n_environments, n_columns=12, seed=2):
    """A conjunction of ten columns that no environment touches, with noise."""
    rng = np.random.default_rng(seed)
    X = pd.DataFrame(rng.random((n_samples, n_columns)).round(2))
    X.columns = [f"column {i}" for i in range(n_columns)]
    holds = (X.to_numpy()[:, :10] > 0.08).all(axis=1)
    y = (holds ^ (rng.random(n_samples) < 0.05)).astype(int)
    return X, y, rng.integers(0, n_environments, n_samples)


def make_shifted(n_samples=3_000):
    """Nothing is invariant: the environment acts on the label itself."""
    rng = np.random.default_rng(1)
    X = pd.DataFrame({"mark": rng.integers(0, 4, n_samples), "x": rng.random(n_samples).round(1)})
    environments = rng.integers(0, 3, n_samples)
    return X, (rng.random(n_samples) < 0.2 + 0.25 * environments).astype(int), environments


def make_sites(n=4_000, n_sites=4, seed=0):
    """Age acts alike everywhere, the code works at some sites, and rates differ between sites."""
    rng = np.random.default_rng(seed)
    site, age = rng.integers(0, n_sites, n), rng.integers(20, 90, n)
    dose = rng.random(n).round(2)
    odds = -1.0 + 0.3 * site + 1.6 * (age > 60) + 0.9 * (dose > 0.5)
    ill = rng.random(n) < 1 / (1 + np.exp(-odds))
    follows = rng.random(n) < np.linspace(0.9, 0.05, n_sites)[site]
    code = np.where(follows, ill, rng.integers(0, 2, n))
    X = pd.DataFrame({"age": age, "code": code, "dose": dose})
    return X, pd.Series(ill, name="ill"), pd.Series([f"site {k}" for k in site], name="site")


ZOO = {
    "greedy": ICSCMClassifier(),
    "coverage": ICSCMClassifier(stop="coverage", **PAPER),
    "exhaustive": ICSCMClassifier(search="exhaustive", alpha="auto"),
    "disjunction": ICSCMClassifier(model_type="disjunction", stop="coverage"),
    "equivalence": ICSCMClassifier(criterion="equivalence", margin=1.5, margin_on="odds_ratio"),
    "corrected": ICSCMClassifier(correction="holm", evidence="cumulative", test="g"),
    "plain": SCMClassifier(),
    "plain disjunction": SCMClassifier(model_type="disjunction", p=2.0),
}
