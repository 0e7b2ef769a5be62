"""Words for messages."""

from collections.abc import Sequence

# How many items a message lists before it says how many more there are.
N_LISTED = 5


def shorten_list(items: Sequence[str], separator: str = ", ") -> str:
    """The first few items, and how many more there are.

    >>> shorten_list(list("abcdefg"))
    'a, b, c, d, e and 2 more'
    """
    n_more = len(items) - N_LISTED
    return separator.join(items[:N_LISTED]) + (f" and {n_more} more" if n_more > 0 else "")
