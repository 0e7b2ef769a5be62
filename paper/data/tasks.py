"""The columns of the six tasks, as `tasks.toml` beside this file lists them."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Task:
    """The columns of one task; see the head of `tasks.toml`.

    Features not in `categories` are numbers.
    """

    features: tuple[str, ...]
    categories: frozenset[str]
    environment: str
    causal: tuple[str, ...]
    shifted: tuple[float, ...] = ()

    @property
    def numbers(self) -> tuple[str, ...]:
        """The features that are numbers, in order."""
        return tuple(name for name in self.features if name not in self.categories)


_FACTS = tomllib.loads(Path(__file__).with_name("tasks.toml").read_text(encoding="utf-8"))


def _names(text: str) -> tuple[str, ...]:
    return tuple(text.split())


def _read_task(name: str) -> Task:
    facts = _FACTS[name]
    features, listed = _names(facts["features"]), {*_names(facts.get("categories", ""))}
    categories = frozenset(listed or {*features} - {*_names(facts["numbers"])})
    shifted = tuple(facts.get("shifted", ()))
    return Task(features, categories, facts["environment"], _names(facts["causal"]), shifted)


DIABETES = _read_task("diabetes_readmission")
ACS_INCOME = _read_task("acs_income")
ACS_FOODSTAMPS = _read_task("acs_foodstamps")
COLLEGE_SCORECARD = _read_task("college_scorecard")
ASSISTMENTS = _read_task("assistments")
MEPS = _read_task("meps")

# Visits to offices, outpatient departments and emergency rooms, hospital nights, home care days.
MEPS_UTILISATION = _names("OBTOTV19 OPTOTV19 ERTOT19 IPNGTD19 HHTOTD19")
# The codes of the Carnegie classes out of distribution, by the edition of the classification.
SHIFTED_CARNEGIE_CLASSES = {int(year): codes for year, codes in _FACTS["carnegie_classes"].items()}
