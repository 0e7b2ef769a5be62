"""Why a candidate rule is rejected: one list for the search and for devices that examine rules.

The search rejects candidates in `icscm.search.candidates`. A device that examines them where their
counts are gets the same criteria in plain numbers (`CandidateCriteria`).
"""

from enum import IntEnum
from typing import Final


class Reason(IntEnum):
    """Why a candidate is rejected; where several reasons hold, the first of them is recorded."""

    DEPENDENT = 0  # the outcome in its leaf depends on the environment: criterion (i)
    UNREPLICATED = 1  # too few environments have information on it
    UNHELPFUL = 2  # its utility is too low, or may be due to chance


# The reasons as traces and reports name them, by number.
REASONS: Final = tuple(reason.name.lower() for reason in Reason)
