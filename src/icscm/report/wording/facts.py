"""A fact: a term and its text, such as `Data` and `sites.csv: 1,200 rows`."""

from typing import NamedTuple


class Fact(NamedTuple):
    """A term and its text."""

    term: str
    text: str
