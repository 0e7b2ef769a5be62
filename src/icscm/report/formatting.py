"""Names, counts, rates and numbers as text: what all renderings of a report share."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import sqrt
from typing import Any

from icscm.formatting import as_text, format_number
from icscm.stats.verdicts import INVARIANT, NOT_INVARIANT, TOO_LITTLE_DATA

# Values that JSON can hold.
Plain = dict[str, Any]

# Conclusions on leaves, the best first.
CONCLUSIONS = (INVARIANT, NOT_INVARIANT, TOO_LITTLE_DATA)
# Columns that a sentence names.
MAX_FEATURES = 6
# Nearer to 0 or 1 a rate has more decimals, so that it is not rounded to 0 % or 100 %.
EDGE_SHARE = 0.001
# Smaller p-values have no digits that a computer knows.
SMALLEST_P = 1e-300
# Beyond these odds ratios a bound is written: a count is 0, or nearly.
SMALLEST_RATIO, LARGEST_RATIO = 1e-3, 1e3
# Half of the last digit of a percentage with one decimal.
HALF_DIGIT = 0.0005


@dataclass(frozen=True)
class Names:
    """Names of the outcome, its classes and the environments, made safe for one line of text.

    `target` is the outcome, `column` the column of environments, if it has a name. Classes are the
    negative and the positive one.
    """

    target: str
    column: str | None
    classes: tuple[str, str]
    environments: tuple[str, ...]

    def predict(self, is_positive: bool) -> str:
        """Return a prediction in words: `ill = yes`."""
        return f"{self.target} = {self.classes[is_positive]}"

    @property
    def positive(self) -> str:
        """The positive class: `ill = yes`."""
        return self.predict(True)

    @property
    def negative(self) -> str:
        """The negative class: `ill = no`."""
        return self.predict(False)

    @property
    def place(self) -> str:
        """The name of the column of environments, as the title of a column of a table."""
        return self.column or "environment"

    @property
    def environment(self) -> str:
        """The noun in a sentence, with the name of the column: `environment (site)`."""
        is_named = self.column not in (None, "environment")
        return f"environment ({self.column})" if is_named else "environment"

    def describe_place(self, label: str) -> str:
        """Return an environment in a sentence: `hospital 3`, but not `hospital Hospital 3`."""
        is_in_label = label.lower().startswith(self.place.lower())
        return label if is_in_label else f"{self.place} {label}"


def join_words(words: Sequence[str]) -> str:
    """Join words to a list in a sentence.

    >>> join_words(["b"]), join_words(["b", "f"]), join_words(["b", "f", "k"])
    ('b', 'b and f', 'b, f and k')
    """
    *first, last = words
    return f"{', '.join(first)} and {last}" if first else last


def format_features(features: Sequence[str]) -> str:
    """Write the first six columns, and how many more there are.

    >>> format_features(["a", "b"]), format_features(list("abcdefgh"))
    ('a and b', 'a, b, c, d, e, f and 2 more')
    """
    if len(features) <= MAX_FEATURES:
        return join_words(features)
    n_more = len(features) - MAX_FEATURES
    return f"{', '.join(features[:MAX_FEATURES])} and {n_more:,} more"


def format_share(share: float | None) -> str:
    """Write a rate as a percentage, never rounded to 0 % or 100 % when it is not.

    >>> [format_share(each) for each in (0.1234, 0.0, 1.0, 0.00042, 0.99996, None)]
    ['12.3%', '0%', '100%', '0.042%', '99.996%', 'none']
    """
    if share is None:
        return "none"
    if share in (0.0, 1.0):
        return f"{share:.0%}"
    edge = min(share, 1.0 - share)  # the distance from 0 or from 1
    if edge >= EDGE_SHARE:
        return f"{share:.1%}"
    edge_percent = float(f"{100 * edge:.2g}")
    percent = edge_percent if share < 0.5 else 100 - edge_percent
    return f"{percent:.10g}%"


def format_points(difference: float | None) -> str:
    """Write a difference of two rates in percentage points.

    >>> [format_points(each) for each in (0.0512, 0.0004, 0.01, -0.0, None)]
    ['5.1 points', '0.04 points', '1 point', '0 points', 'any number of points']
    """
    if difference is None:
        return "any number of points"
    points = 100 * difference + 0.0  # no -0
    number = f"{points:.2g}" if points < 1 else f"{points:.1f}".removesuffix(".0")
    return "1 point" if number == "1" else f"{number} points"


def format_utility(utility: float) -> str:
    """Write a utility with at most two decimals.

    >>> format_utility(6449), format_utility(37.347740667976424), format_utility(-0.5)
    ('6,449', '37.35', '-0.5')
    """
    number = f"{utility:,.2f}" if abs(utility) >= 0.01 else f"{utility:.2g}"
    has_decimals = "." in number and "e" not in number
    return number.rstrip("0").rstrip(".") if has_decimals else number


def format_p(p_value: float | None) -> str:
    """Write a p-value with two or three decimals, or in scientific notation.

    >>> format_p(0.20427), format_p(0.04), format_p(3.1e-12), format_p(0.0), format_p(None)
    ('0.20', '0.040', '3e-12', '<1e-300', '-')
    """
    if p_value is None:
        return "-"
    if p_value < SMALLEST_P:
        return "<1e-300"
    if p_value < 0.001:
        return f"{p_value:.0e}"
    return f"{p_value:.2f}" if p_value >= 0.1 else f"{p_value:.3f}"


def format_ratio(ratio: float | None) -> str:
    """Write an odds ratio in two digits; of an extreme one, as where a count is 0, a bound.

    >>> [format_ratio(each) for each in (2.104, 0.0321, 38.4, 1e-9, 5e7, None)]
    ['2.1', '0.032', '38', 'below 0.001', 'above 1,000', '-']
    """
    if ratio is None:
        return "-"
    if ratio < SMALLEST_RATIO:
        return f"below {SMALLEST_RATIO:,g}"
    if ratio > LARGEST_RATIO:
        return f"above {LARGEST_RATIO:,g}"
    two_digits = float(f"{ratio:.2g}")
    return f"{two_digits:,g}"


def format_heterogeneity(share: float | None) -> str:
    """Write a share of heterogeneity or a tolerance in two digits, as tolerances are given.

    >>> [format_heterogeneity(each) for each in (0.09137, 0.0, 0.000534, 1.26, 0.01)]
    ['0.091', '0', '0.0005', '1.3', '0.01']
    """
    if share is None:
        return "-"
    digits = f"{share:.2g}" if share >= 0.001 else f"{share:.1g}"
    return f"{float(digits):.10g}"


def format_odds_interval(interval: Sequence[float] | None) -> str:
    """Write the ends of an interval of odds ratios.

    >>> format_odds_interval([0.31, 1e9]), format_odds_interval(None)
    ('0.31 to above 1,000', '-')
    """
    return "-" if interval is None else " to ".join(map(format_ratio, interval))


def format_deviance(value: float) -> str:
    """Write a deviance, from 10 on as a whole number.

    >>> format_deviance(1234.5), format_deviance(3.14159)
    ('1,234', '3.1')
    """
    return f"{value:,.0f}" if abs(value) >= 10 else f"{value:.1f}"


def format_score(value: float | None) -> str:
    """Write an AUC or another score between 0 and 1 that is not a share, or a difference of two.

    >>> format_score(0.8123), format_score(-0.0004), format_score(None)
    ('0.812', '0.000', '-')
    """
    return "-" if value is None else f"{value:z.3f}"


def format_interval(interval: Sequence[float] | None) -> str:
    """Write the ends of an interval of rates.

    >>> format_interval([0.1, 0.25]), format_interval(None)
    ('10.0% to 25.0%', '')
    """
    return "" if interval is None else " to ".join(map(format_share, interval))


def format_prediction_interval(interval: Sequence[float] | None) -> str:
    """Write a prediction interval of a rate; ends near 0 and 1 are rounded outwards, to them.

    >>> format_prediction_interval((1e-7, 0.25)), format_prediction_interval((0.5, 0.99999))
    ('0% to 25.0%', '50.0% to 100%')
    """
    if interval is None:
        return "unknown"
    low, high = interval
    if low < HALF_DIGIT:
        low = 0.0
    if high > 1 - HALF_DIGIT:
        high = 1.0
    return format_interval([low, high])


def format_value(value: Any) -> str:
    """Write the value of a setting.

    >>> [format_value(each) for each in (None, True, 1.0, "chi2")]
    ['none', 'yes', '1', 'chi2']
    """
    if value is None:
        return "none"
    if isinstance(value, bool):
        return "yes" if value else "no"
    return format_number(value) if isinstance(value, int | float) else str(value)


def format_detectable(difference: float | None) -> str:
    """Write a minimum detectable difference; None is larger than 100 points."""
    return "more than 100 points" if difference is None else format_points(difference)


def format_variation(share: float) -> str:
    """Write the coefficient of variation of an effect over environments.

    The heterogeneity as a share of the deviance explained is its square.

    >>> format_variation(0.0), format_variation(0.03), format_variation(1.7)
    ('by no more than chance', 'by about 17%', 'by more than 100%')
    """
    if share == 0:
        return "by no more than chance"
    if share > 1:
        return "by more than 100%"
    variation = max(sqrt(share), 0.01)  # beyond chance it is never 0 %
    return f"by about {variation:.0%}"


def count_conclusions(conclusions: Iterable[str | None]) -> dict[str, int]:
    """Return the number of leaves by conclusion, the best first."""
    counts = Counter(conclusions)
    return {conclusion: counts[conclusion] for conclusion in CONCLUSIONS if conclusion in counts}


def format_conclusions(counts: Mapping[str, int]) -> str:
    """Write the number of leaves by conclusion."""
    return ", ".join(f"{n} {conclusion}" for conclusion, n in counts.items())


def format_span(names: Sequence[str]) -> str:
    """Write neighbouring values with the same model by the first and the last.

    >>> format_span(["0.3"]), format_span(["0.3", "0.1", "0.05"])
    ('0.3', '0.3 to 0.05')
    """
    return names[0] if len(names) == 1 else f"{names[0]} to {names[-1]}"


def make_names(
    environments: Sequence[Any],
    classes: Sequence[Any],
    target: str | None = None,
    environment: str | None = None,
) -> Names:
    """Make the names of the outcome, its classes and the environments, safe for a line of text."""
    texts = tuple(as_text(label) for label in environments)
    if len(set(texts)) < len(texts):  # 1 and "1" are two environments
        texts = tuple(as_text(repr(label)) for label in environments)
    negative, positive = map(as_text, classes)
    return Names(
        target=as_text(target or "label"),
        column=as_text(environment) if environment else None,
        classes=(negative, positive),
        environments=texts,
    )
