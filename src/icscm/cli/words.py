"""What the library says in Python's words, in those of the command line."""

from __future__ import annotations

import re

# Parameters and the options that set them.
_OPTIONS = {
    "keep_columns": "--keep",
    "model_type": "--type",
    "min_samples_leaf": "--min-samples-leaf",
    "max_thresholds": "--max-thresholds",
    "max_rules": "--max-rules",
    "margin_on": "--margin-on",
    "n_jobs": "--jobs",
    "missing": "--missing",
    "criterion": "--criterion",
    "correction": "--correction",
    "evidence": "--evidence",
    "search": "--search",
    "test": "--test",
    "stop": "--stop",
    "alpha": "--alpha",
    "margin": "--margin",
    "p": "--p",
}
# Those whose names are no words of a sentence, so that they can be told anywhere in one.
_NAMES = "|".join(name for name in _OPTIONS if "_" in name)
_KEYS = "|".join(_OPTIONS)
# Text in quotes is a user's: a column may be called keep_columns.
_FREE = r"(?<![\w'\"-])"

_CHANGES: tuple[tuple[str, str], ...] = (
    (r" \((?:force|drop_missing)=True\)", ""),
    (r" \(member=\.\.\.\)| \(decimal=','\)", ""),
    (rf"{_FREE}pruning=False(?!\w)", "--no-pruning"),
    (r", or a larger n_candidates|, or a\s+larger n_candidates", ""),
    (r"See (?:trace_|verdicts_)[^.;]*[.;] ?", ""),
    (rf"{_FREE}X(?= (?:contains|holds|has|is|lacks|needs)\b)", "the table"),
    (rf"{_FREE}leave_one_environment_out asks it", "in Python, leave_one_environment_out asks it"),
)


def translate(text: str) -> str:
    """A message with options in the place of parameters.

    >>> translate("fill them in, or let rules decide with missing='candidate'")
    'fill them in, or let rules decide with --missing candidate'
    >>> translate("Name columns in keep_columns to keep them; not 'keep_columns'.")
    "Name columns in --keep to keep them; not 'keep_columns'."
    """
    for pattern, words in _CHANGES:
        text = re.sub(pattern, words, text)
    text = re.sub(rf"{_FREE}({_KEYS})=['\"]?([\w.]+)['\"]?", _set_option, text)
    text = re.sub(rf"{_FREE}({_KEYS})(?= must be\b)", _name_option, text)
    return re.sub(rf"{_FREE}({_NAMES})(?![\w'\"])", _name_option, text)


def _name_option(match: re.Match[str]) -> str:
    return _OPTIONS[match[1]]


def _set_option(match: re.Match[str]) -> str:
    return f"{_OPTIONS[match[1]]} {match[2].lower() if match[2] == 'None' else match[2]}"
