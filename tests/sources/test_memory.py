"""The source over an array counts correctly for every type of store."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone

from icscm import InvariantTreeClassifier, SCMClassifier, _constants
from icscm.datasets import make_conjunction
from icscm.engine import sampling
from icscm.engine.binning import choose_edges
from icscm.engine.counts import Cut
from icscm.sources.memory import make_memory_source, open_memory
from icscm.testing import check_row_source
from support.sources import check_any_nodes, countable, draw_cuts, make_literal


@settings(max_examples=300, deadline=None)
@given(countable(), st.sampled_from([1, 3, 50, None]))
def test_counts_equal_literal_counts(table, max_thresholds):
    coded, labels, environments, environment_labels, rng = table
    X = coded.values
    source = make_memory_source(
        coded,
        labels,
        environments,
        environment_labels=environment_labels,
        max_thresholds=max_thresholds,
        n_jobs=2,
    )
    check_row_source(source, make_literal(source, X, labels, environments), draw_cuts(source, rng))


@settings(max_examples=100, deadline=None)
@given(countable(), st.booleans())
def test_any_node_is_counted_in_any_order(table, is_part):
    coded, labels, environments, environment_labels, rng = table
    source = make_memory_source(coded, labels, environments, environment_labels=environment_labels)
    rows = np.arange(len(labels))
    if is_part:
        rows = rows[: len(rows) // 2 + 1]
        source = source.rows.take(rows)
    literal = make_literal(source, coded.values[rows], labels[rows], environments[rows])
    check_any_nodes(source, literal, coded.n_columns, rng)


@pytest.mark.parametrize("n_rows", [50, 3000])
def test_blocks_and_uncached_cubes_count_the_same(n_rows, monkeypatch):
    """The cube in one piece, in small blocks, and counted afresh each step are equal."""
    rng = np.random.default_rng(n_rows)
    X = np.column_stack((rng.random((n_rows, 5)), rng.integers(0, 2, (n_rows, 5))))
    labels, environments = rng.integers(0, 2, n_rows), rng.integers(0, 3, n_rows)

    def make():
        return make_memory_source(X, labels, environments, environment_labels=(0, 1, 2))

    for kept_bytes in (_constants.MAX_KEPT_CUBE_BYTES, 0):
        monkeypatch.setattr(_constants, "MAX_KEPT_CUBE_BYTES", kept_bytes)
        whole, pieces = make(), make()
        cuts = draw_cuts(whole, rng)
        n_blocks = len(list(whole.count_cubes()))
        with monkeypatch.context() as patch:
            patch.setattr(_constants, "BLOCK_CELLS", 50)
            patch.setattr(_constants, "PACKED_BLOCK_CELLS", 50)
            assert len(list(pieces.count_cubes())) > n_blocks
            check_row_source(pieces, whole, cuts)


def test_threads_make_no_difference(monkeypatch):
    monkeypatch.setattr(_constants, "MIN_THREADED_CELLS", 0)
    monkeypatch.setattr(_constants, "MIN_THREADED_CELLS", 0)
    rng = np.random.default_rng(0)
    X = np.column_stack((rng.random((2000, 20)), rng.integers(0, 2, (2000, 20))))
    labels, environments = rng.integers(0, 2, 2000), rng.integers(0, 2, 2000)
    one, *more = [
        make_memory_source(X, labels, environments, environment_labels=(0, 1), n_jobs=n_jobs)
        for n_jobs in (1, 2, 8)
    ]
    cuts = draw_cuts(one, rng)
    for other in more:
        np.testing.assert_array_equal(other.columns.edges, one.columns.edges)
    for other in more:
        check_row_source(
            other,
            make_memory_source(X, labels, environments, environment_labels=(0, 1), n_jobs=1),
            cuts,
        )


class TestSample:
    """Tables larger than the sample: thresholds come from some of the rows."""

    @pytest.fixture(autouse=True)
    def small_sample(self, monkeypatch):
        monkeypatch.setattr(sampling, "QUANTILE_SAMPLE", 500)
        monkeypatch.setattr(_constants, "FIRST_LOOK_ROWS", 50)

    def make(self, X, n_jobs=2, max_thresholds=50):
        labels = np.arange(len(X)) % 2
        return make_memory_source(
            X,
            labels,
            labels,
            environment_labels=(0, 1),
            n_jobs=n_jobs,
            max_thresholds=max_thresholds,
        )

    def test_rare_values_that_the_sample_missed(self):
        """Few values are all cut at; of many the sample's, its greatest included."""
        rng = np.random.default_rng(0)
        few = (rng.random(5000) < 0.5).astype(float)
        few[:3] = [5, 6, 7]
        many = np.zeros(5000)
        many[:60] = np.arange(60)
        source = self.make(np.column_stack((few, many, rng.random(5000))))
        assert source.columns.find_edges(0).tolist() == [0, 1, 5, 6]
        edges = source.columns.find_edges(1).tolist()
        assert edges[0] == 0
        assert len(edges) < 20

    def test_order_of_rows_does_not_matter(self):
        rng = np.random.default_rng(0)
        X = rng.normal(size=(5000, 6))
        shuffled = self.make(X[rng.permutation(len(X))])
        np.testing.assert_array_equal(shuffled.columns.edges, self.make(X).columns.edges)
        assert shuffled.columns.sampled
        assert "sample" in shuffled.notes[0]

    def test_sampled_quantiles_are_near_the_true_ones(self):
        rng = np.random.default_rng(1)
        X = rng.random((20_000, 4))
        binning = self.make(X, max_thresholds=9).columns
        for j in range(4):
            # 5 standard errors of a rank estimated from 500 rows
            np.testing.assert_allclose(binning.find_edges(j), np.arange(1, 10) / 10, atol=0.11)
            assert np.isin(binning.find_edges(j), X[:, j]).all()

    @pytest.mark.parametrize("usual_values", [1, 2, 5])
    def test_values_that_the_sample_lacked_are_found(self, usual_values):
        """A value in one row of 20,000 is nearly never in a sample of 500, yet it is a value:
        a column of few values keeps all of them as thresholds."""
        rng = np.random.default_rng(usual_values)
        X = np.column_stack(
            (rng.integers(0, usual_values, 20_000), rng.normal(size=20_000))
        ).astype(float)
        X[1234, 0] = 77.5
        X[4321, 0] = -3.0
        source = self.make(X)
        expected = [-3.0, *range(usual_values)]
        assert source.columns.find_edges(0).tolist() == expected
        labels = np.arange(len(X)) % 2
        check_row_source(source, make_literal(source, X, labels, labels), [Cut(0, 0, True)])

    def test_all_values_are_kept_when_asked_for(self):
        X = np.random.default_rng(2).integers(0, 1000, size=(3000, 2))
        source = self.make(X, max_thresholds=None)
        for j in range(2):
            assert source.columns.find_edges(j).tolist() == np.unique(X[:, j])[:-1].tolist()
        assert not source.notes


def test_a_heavy_greatest_value_still_leaves_a_threshold():
    """Quantiles of a column that is mostly its greatest value were all that value, which cuts
    nothing off; the value below it must be among the thresholds."""
    ordered = np.array([0.0, 1.0, 2.0, 3.0] + [9.0] * 996)
    (edges,) = choose_edges(ordered[np.newaxis], max_thresholds=2).edges
    assert edges.tolist() == [3.0]


def test_neighbouring_floats_land_on_the_right_side():
    """A value equal to a threshold is not above it, to the last bit, in both widths."""
    for dtype in (np.float32, np.float64):
        base = np.array(0.1, dtype=dtype)
        values = np.array([np.nextafter(base, -base), base, np.nextafter(base, 1)], dtype=dtype)
        X = np.tile(values, 4).reshape(-1, 1)
        labels = np.arange(12) % 2
        source = make_memory_source(X, labels, labels, environment_labels=(0, 1))
        assert source.columns.find_edges(0).tolist() == values[:2].tolist()
        cube = next(source.count_cubes()).counts[0]
        assert cube.sum(axis=(1, 2)).tolist() == [4, 4, 4]
        rule = source.columns.make_rule(Cut(0, 1, False))
        assert rule.mask(X).tolist() == np.tile([False, False, True], 4).tolist()


@pytest.mark.filterwarnings("ignore::icscm.exceptions.FewEnvironmentsWarning")
@pytest.mark.parametrize("second", [SCMClassifier(), InvariantTreeClassifier()])
def test_rows_serve_many_learners(second):
    """A second learner went on from the rows that the first had left, and gave another model."""
    data = make_conjunction(300, random_state=1)
    rows = open_memory(data.X, data.y, environments=data.environments)
    SCMClassifier().fit_counts(rows)
    expected = clone(second).fit(data.X, data.y, environments=data.environments)
    second.fit_counts(rows)
    assert second.model_ == expected.model_
    assert second.trace_ == expected.trace_
