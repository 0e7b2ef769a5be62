"""Work done ahead comes in order, and errors come where they belong."""

import pytest

from icscm.engine.threads import read_ahead


def count_up(stop, made):
    for number in range(stop):
        made.append(number)
        yield number
    raise ValueError("no more")


@pytest.mark.parametrize("n_threads", [1, 2])
def test_items_are_read_ahead_by_one(n_threads):
    made = []
    items = read_ahead(count_up(5, made), n_threads)
    for number in range(5):
        assert next(items) == number
        assert len(made) <= number + 2
    with pytest.raises(ValueError, match="no more"):
        next(items)


@pytest.mark.parametrize("n_threads", [1, 2])
def test_who_stops_early_leaves_the_rest(n_threads):
    made = []
    items = read_ahead(count_up(100, made), n_threads)
    assert next(items) == 0
    items.close()
    assert len(made) <= 2
