"""Rounds that were measured serve other tolerances; results are the same, bit for bit."""

from dataclasses import dataclass, fields, is_dataclass, replace

import numpy as np
import pandas as pd
import pytest

from icscm import InvariantFeatureSelector
from icscm.estimators.selector import make_verdicts
from icscm.screening import measuring
from icscm.screening.measuring import MeasuredRounds, ScreenedRows
from icscm.screening.outcomes import make_outcome
from icscm.screening.rounds import deal_rows, run_screen
from icscm.screening.screened_table import Clusters
from icscm.validation.path import tolerance_path
from support.screened import bin_evenly, make_screened_table
from support.screens import make_causes, plant

TOLERANCES = (9.0, 0.5)


def make_rows(kinds=("graded",), n_rows=60):
    """A table with shortcuts of some kinds."""
    table = make_causes("linear", n_rows=n_rows)
    for kind in kinds:
        table = plant(table, kind)
    columns = [
        column if len(np.unique(column)) < 3 else bin_evenly(column, 30)
        for column in table.X.to_numpy().T
    ]
    screened = make_screened_table(columns, table.environments)
    outcome = make_outcome(table.y, None, is_number=False)
    folds = deal_rows(screened, classes=table.y, groups=None, n_folds=2, seed=0)
    return ScreenedRows(outcome, screened, folds, seed=0)


def screen(rows, tolerance, memory=None):
    return run_screen(
        rows.outcome,
        rows.table,
        fold_numbers=rows.fold_numbers,
        tolerance=tolerance,
        seed=rows.seed,
        n_jobs=1,
        memory=memory,
    )


@pytest.fixture(scope="module")
def rows():
    return make_rows()


@pytest.fixture
def cross_fits(monkeypatch):
    """The columns of each model that is cross-fitted."""
    calls = []
    cross_fit = measuring.cross_fit

    def count(outcome, table, columns, *arguments, **options):
        calls.append(tuple(columns))
        return cross_fit(outcome, table, columns, *arguments, **options)

    monkeypatch.setattr(measuring, "cross_fit", count)
    return calls


def assert_same(first, second):
    assert first.rejected == second.rejected
    assert first.groups == second.groups
    assert first.rounds == second.rounds
    for own, other in zip(first.rounds, second.rounds, strict=True):
        assert (own.scores == other.scores).all()
    assert first.judged.keys() == second.judged.keys()
    for column, judged in first.judged.items():
        other = second.judged[column]
        assert (judged.reason, judged.round) == (other.reason, other.round)
        assert judged.is_undecided == other.is_undecided
        assert vars(judged.evidence.separate) == vars(other.evidence.separate)
        assert (judged.worth.values == other.worth.values).all()


@pytest.mark.parametrize(
    "kinds", [("graded",), pytest.param(("graded", "copies"), marks=pytest.mark.thorough)]
)
def test_a_shared_memory_changes_nothing_and_measures_each_set_of_columns_once(kinds, cross_fits):
    """A report screened five times, each time with the same first round."""
    rows = make_rows(kinds, n_rows=60 if len(kinds) == 1 else 150)
    memory = MeasuredRounds()
    shared = [screen(rows, tolerance, memory) for tolerance in TOLERANCES]
    assert len(cross_fits) == len(set(cross_fits))
    n_shared = len(cross_fits)
    alone = [screen(rows, tolerance) for tolerance in TOLERANCES]
    assert len(cross_fits) - n_shared > n_shared
    assert len({tuple(finished.rejected) for finished in alone}) > 1
    for first, second in zip(shared, alone, strict=True):
        assert_same(first, second)


def test_the_memory_is_bounded(rows, cross_fits):
    first_round = MeasuredRounds()
    screen(rows, 9.0, first_round)
    assert first_round.n_bytes > 0
    memory = MeasuredRounds(max_bytes=first_round.n_bytes)
    for tolerance in TOLERANCES:
        assert_same(screen(rows, tolerance, memory), screen(rows, tolerance))
        assert memory.n_bytes <= first_round.n_bytes
    # the first round is remembered, the others are not
    cross_fits.clear()
    finished = screen(rows, 0.5, memory)
    assert len(cross_fits) == len(finished.rounds) - 1


def change(rows, what):
    """Change one thing on which measurements depend."""
    table = rows.table
    outcome = rows.outcome
    if what == "bins":
        bins = table.columns.bins.copy()
        bins[0, 0] ^= 1
        return replace(rows, table=replace(table, columns=replace(table.columns, bins=bins)))
    if what == "environments":
        places = replace(table.places, numbers=np.roll(table.places.numbers, 1))
        return replace(rows, table=replace(table, places=places))
    if what == "targets":
        return replace(rows, outcome=replace(outcome, targets=outcome.targets[::-1].copy()))
    if what == "weights":
        return replace(rows, outcome=replace(outcome, weights=2 * outcome.weights))
    if what == "clusters":
        clusters = Clusters(np.arange(table.n_rows), table.places.numbers)
        return replace(rows, table=replace(table, clusters=clusters))
    if what == "folds":
        return replace(rows, fold_numbers=1 - rows.fold_numbers)
    return replace(rows, seed=1)


CHANGES = ["bins", "environments", "targets", "weights", "clusters", "folds", "seed"]


def test_other_rows_have_another_digest(rows):
    digests = {change(rows, what).compute_digest() for what in CHANGES}
    assert len(digests | {rows.compute_digest()}) == len(CHANGES) + 1
    assert replace(rows).compute_digest() == rows.compute_digest()


def list_fields(record, parents=()):
    """List the fields of a record and of the records in it, each as a path of names."""
    paths = []
    for field in fields(record):
        value = getattr(record, field.name)
        path = (*parents, field.name)
        paths += list_fields(value, path) if is_dataclass(value) else [path]
    return paths


def change_field(record, path):
    """Change one value of a record, or of a record in it, and nothing else."""
    name, *rest = path
    value = getattr(record, name)
    if rest:
        return replace(record, **{name: change_field(value, rest)})
    if isinstance(value, np.ndarray):
        changed = value.copy()
        changed.flat[-1] = not changed.flat[-1] if value.dtype == bool else changed.flat[-1] + 1
    elif isinstance(value, bool):
        changed = not value
    elif isinstance(value, tuple):
        changed = (*value, "more")
    else:
        changed = value + 1
    return replace(record, **{name: changed})


@pytest.mark.parametrize("has_clusters", [False, True])
def test_any_field_of_the_rows_changes_their_digest(rows, has_clusters):
    """Fields that are added later, too; but for the names of columns, which measure nothing."""
    if has_clusters:
        rows = change(rows, "clusters")
    paths = list_fields(rows)
    assert ("table", "columns", "bins") in paths
    assert (("table", "clusters", "numbers") in paths) == has_clusters
    paths.remove(("table", "names"))
    if not has_clusters:
        paths.remove(("table", "clusters"))  # None; its change is tested above
    digests = {change_field(rows, path).compute_digest() for path in paths}
    assert len(digests | {rows.compute_digest()}) == len(paths) + 1

    renamed = replace(rows, table=replace(rows.table, names=("a", "b")))
    assert renamed.compute_digest() == rows.compute_digest()


@pytest.mark.parametrize("value", [[1], {"a": 1}, np.array(["a"], dtype=object), object()])
def test_what_has_no_digest_is_an_error(rows, value):
    """What is abridged by `repr` made other rows look the same."""
    with pytest.raises(TypeError, match="has no digest"):
        replace(rows, seed=value).compute_digest()


def test_values_are_not_mistaken_for_each_other(rows):
    @dataclass(frozen=True)
    class Pair:
        first: object
        second: object

    values = [None, "None", 1, 1.0, "1", True, (1, 2), ((1,), 2), (1, (2,)), "1, 2", Pair(1, 2)]
    values += [Pair(2, 1), np.array([1, 2]), np.array([[1, 2]]), np.array([1.0, 2.0])]
    digests = {replace(rows, seed=value).compute_digest() for value in values}
    assert len(digests) == len(values)


def test_the_rounds_of_other_rows_are_forgotten(rows):
    memory = MeasuredRounds()
    screen(rows, 0.5, memory)
    in_other_folds = change(rows, "folds")
    assert_same(screen(in_other_folds, 0.5, memory), screen(in_other_folds, 0.5))


@pytest.fixture(scope="module")
def table():
    simulated = plant(make_causes("linear", n_rows=60), "graded")
    X = pd.DataFrame(simulated.X)
    X.columns = [f"x{column}" for column in range(X.shape[1])]
    return {"X": X, "y": simulated.y, "environments": simulated.environments}


def test_a_path_is_what_each_screen_finds_alone(table, cross_fits):
    selector = InvariantFeatureSelector(cv=2, random_state=0)
    path = tolerance_path(selector, **table, tolerances=TOLERANCES, leave_one_out=False)
    assert len(cross_fits) == len(set(cross_fits))
    for point in path.points:
        alone = InvariantFeatureSelector(cv=2, random_state=0, tolerance=point.tolerance)
        alone.fit(**table)
        assert list(point.kept) == alone.kept_
        assert list(point.rejected) == alone.rejected_
        assert point.score == alone.rounds_["score"].iloc[-1]
        assert point.loss == alone.rounds_["loss"].iloc[-1]


def test_a_path_begins_with_the_rounds_of_the_screen_before_it(table, cross_fits):
    verdicts = make_verdicts(InvariantFeatureSelector(cv=2, random_state=0), MeasuredRounds())
    verdicts.fit(**table)
    n_of_screen = len(cross_fits)
    tolerance_path(verdicts, **table, tolerances=[0.5], leave_one_out=False)
    assert len(cross_fits) == n_of_screen
