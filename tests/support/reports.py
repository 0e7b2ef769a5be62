"""Names, data, learners and reports that the tests of reports share.

What is cached is made once a session: no test may change it.
"""

import io
import warnings
from dataclasses import fields
from functools import cache

import numpy as np
import pandas as pd
from rich.console import Console
from sklearn.base import clone

from icscm import ICSCMClassifier, InvariantTreeClassifier, SCMClassifier
from icscm.datasets import make_conjunction
from icscm.exceptions import IcscmWarning
from icscm.report.documents.learner import write_document
from icscm.report.page import make_report
from icscm.report.terminal import render_blocks
from icscm.validation.path import alpha_path
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


def make_blank(record, **values):
    """Return a record with these values, and None in all other fields."""
    return record(**{field.name: values.get(field.name) for field in fields(record)})


def fit(learner, X, y, environments=None):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", IcscmWarning)
        return learner.fit(X, y, environments=environments)


def find_path(learner, X, y, environments, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", IcscmWarning)
        return alpha_path(learner, X, y, environments=environments, **options)


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
    site = rng.integers(0, n_sites, n)
    age = rng.integers(20, 90, n)
    dose = rng.random(n).round(2)
    log_odds = -1.0 + 0.3 * site + 1.6 * (age > 60) + 0.9 * (dose > 0.5)
    ill = rng.random(n) < 1 / (1 + np.exp(-log_odds))
    works = rng.random(n) < np.linspace(0.9, 0.05, n_sites)[site]
    code = np.where(works, ill, rng.integers(0, 2, n))
    X = pd.DataFrame({"age": age, "code": code, "dose": dose})
    return X, pd.Series(ill, name="ill"), pd.Series([f"site {k}" for k in site], name="site")


def fit_large_tree(n_leaves, n_samples=3_000):
    """A plain tree of so many leaves: the label comes and goes with two columns."""
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.random((n_samples, 2)).round(2)).add_prefix("x")
    y = (np.sin(25 * X).sum(axis=1) > 0.3).astype(int)
    learner = InvariantTreeClassifier(tolerance=None, max_leaves=n_leaves, min_samples_leaf=0.001)
    fit(learner, X, y, rng.integers(0, 2, n_samples))
    assert len(learner.model_.leaves) == n_leaves
    return learner


ZOO = {
    "greedy": ICSCMClassifier(),
    "coverage": ICSCMClassifier(stop="coverage", **PAPER),
    "exhaustive": ICSCMClassifier(search="exhaustive", alpha="auto"),
    "disjunction": ICSCMClassifier(model_type="disjunction", stop="coverage"),
    "equivalence": ICSCMClassifier(margin=0.2),
    "plain": SCMClassifier(),
    "plain disjunction": SCMClassifier(model_type="disjunction", p=2.0),
}

# All that there are reports of: the zoo, and two cases of other data.
REPORTED = [*ZOO, "without environments", "nothing found"]


@cache
def make_simulation():
    """2,000 rows in each of five environments, where three columns are the parents."""
    return make_conjunction(2_000, 4, n_parents=3, n_environments=5, random_state=3)


@cache
def fit_reported(name):
    """A learner of `REPORTED`, fitted."""
    X, y, environments, *_ = make_simulation()
    if name == "without environments":
        return fit(SCMClassifier(), X, y)
    if name == "nothing found":
        return fit(ICSCMClassifier(), *make_shifted())
    return fit(clone(ZOO[name]), X, y, environments)


@cache
def report_on(name):
    """The report on a learner of `REPORTED`."""
    return make_report(fit_reported(name))


def print_parts(parts, width=80):
    """What the terminal shows of some renderables."""
    console = Console(width=width, file=io.StringIO(), highlight=False)
    for part in parts:
        console.print(part)
    return console.file.getvalue()


def print_report(report):
    """The short form of a report on a learner, as the terminal shows it."""
    return print_parts(render_blocks(write_document(report.content, is_brief=True)))


@cache
def fit_tree():
    """A tree of the sites with several leaves, without the code."""
    return fit(InvariantTreeClassifier(max_leaves=6), *make_sites())


@cache
def report_on_tree():
    """The report on `fit_tree`, without a path."""
    return fit_tree().report()
