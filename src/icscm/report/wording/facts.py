"""What a report says in brief: facts, and answers to the questions of its headline.

A fact is a term and its text, such as `Data` and `sites.csv: 1,200 rows`. An answer is a sentence
on a topic, with a detail that explains it.
"""

from dataclasses import dataclass
from typing import NamedTuple


class Fact(NamedTuple):
    """A term and its text."""

    term: str
    text: str


@dataclass(frozen=True)
class Judgement:
    """An answer and its detail, before they have a topic."""

    answer: str
    detail: str


@dataclass(frozen=True)
class Answer:
    """What a report says on one topic; the conclusion, if any, is that on the leaves."""

    topic: str
    answer: str
    detail: str
    conclusion: str | None = None
