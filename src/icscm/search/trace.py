"""What the search did and why: the one source for reports and debugging.

Everything is plain immutable values, so two traces can be compared with `==`. Counts are by
label (in the order of the classes) and environment. p-values and verdicts are None where nothing
was tested.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, fields, is_dataclass
from typing import TYPE_CHECKING, Any

from icscm.model.rule_sets import LeafCounts
from icscm.model.rules import Rule
from icscm.stats.verdicts import Verdict

if TYPE_CHECKING:
    import pandas

# Why a search ended, in words that complete "the search stopped because ...".
STOP_REASONS = {
    "covered": "no sample is left for another rule to settle correctly",
    "independence": "what remains no longer depends on the environment",
    "max_rules": "the largest allowed number of rules was reached",
    "no_candidate": "no candidate rule was left that may be added",
    "intersection": "all sets were tested, and those accepted share these rules",
    "empty_intersection": "all sets were tested, and those accepted share no rule",
    "all_rejected": "all sets were tested, and every one was rejected",
    "nothing_associated": "no feature is significantly associated with the label",
}

# Why a candidate was not allowed.
REFUSALS = {
    # which of the two, the candidate's verdict tells
    "dependent": "the label depends on the environment in its leaf, or was not shown not to",
    "small": "its leaf, or what would remain, has too few samples",
}


@dataclass(frozen=True)
class Candidate:
    """One rule that a step looked at."""

    rule: Rule
    utility: float
    p_value: float | None
    leaf: LeafCounts
    verdict: Verdict | None = None


@dataclass(frozen=True)
class Refusal:
    """A candidate that was not allowed, and why (a key of `REFUSALS`)."""

    candidate: Candidate
    reason: str


@dataclass(frozen=True)
class Look:
    """One look at all candidates.

    `n_refused` counts refusals by reason, `best_refused` are those of largest utility. `cutoff` is
    the p-value up to which candidates were refused: alpha, or what a correction made of it; None
    where p-values did not decide.
    """

    n_candidates: int
    n_refused: dict[str, int]
    best_refused: tuple[Refusal, ...]
    cutoff: float | None = None


@dataclass(frozen=True)
class Step:
    """One rule added to the model.

    `remaining`, `p_value_remaining` and `verdict_remaining` tell of the samples that no rule has
    settled so far (criterion (ii)). `n_tied` candidates shared the largest utility, the chosen
    one included; `equivalent` are those of them that would have settled exactly the same samples.
    """

    chosen: Candidate
    remaining: LeafCounts
    p_value_remaining: float | None
    look: Look
    equivalent: tuple[Rule, ...]
    n_tied: int
    verdict_remaining: Verdict | None = None


@dataclass(frozen=True)
class PruningTest:
    """One conditional test of Proposition 3.2: label against environment without a feature."""

    round: int
    feature: str | int
    statistic: float
    dof: int
    p_value: float
    removed: bool


@dataclass(frozen=True)
class Screened:
    """A feature's best rule that passed the screen of the exhaustive search.

    `p_value` is that of its association with the label, corrected for all rules tried.
    """

    rule: Rule
    statistic: float
    p_value: float


@dataclass(frozen=True)
class SetTest:
    """One set of features tested by the exhaustive search."""

    features: tuple[str | int, ...]
    p_value: float
    accepted: bool


@dataclass(frozen=True)
class Trace:
    """The whole search.

    `last_look` is the look that found no candidate to add, if the search ended so, and
    `nearest` the refused candidates whose p-values came nearest to alpha at that look.
    `screening` and `sets` tell of the exhaustive search: its candidates and the sets tested.
    `verdicts` are those of the final model's leaves, the last for the samples no rule settles.
    """

    steps: tuple[Step, ...]
    stop_reason: str
    last_look: Look | None
    nearest: tuple[Refusal, ...]
    pruning: tuple[PruningTest, ...]
    classes: tuple[Any, ...]
    environments: tuple[Any, ...]
    alpha: float | None
    notes: tuple[str, ...]
    screening: tuple[Screened, ...] = ()
    sets: tuple[SetTest, ...] = ()
    verdicts: tuple[Verdict, ...] = ()

    @property
    def stop_text(self) -> str:
        """Why the search ended, as a sentence."""
        return f"The search stopped because {STOP_REASONS[self.stop_reason]}."

    def to_dict(self) -> dict[str, Any]:
        """Plain values, rules as text."""
        plain: dict[str, Any] = _as_plain(self)
        return plain

    def to_frame(self, what: str = "steps") -> pandas.DataFrame:
        """A table of `"steps"`, `"refused"` candidates, `"pruning"` tests or tested `"sets"`."""
        import pandas

        makers = {
            "sets": self._set_rows,
            "steps": self._step_rows,
            "refused": self._refused_rows,
            "pruning": self._pruning_rows,
        }
        if what not in makers:
            raise ValueError(f"to_frame gives {', '.join(map(repr, makers))}, not {what!r}")
        return pandas.DataFrame(makers[what]())

    def _step_rows(self) -> list[dict[str, Any]]:
        return [
            {
                "step": number,
                "rule": str(step.chosen.rule),
                "feature": step.chosen.rule.feature,
                "utility": step.chosen.utility,
                **self._p_value("p_value", step.chosen.p_value),
                **self._p_value("p_value_remaining", step.p_value_remaining),
                **self._verdict("verdict", step.chosen.verdict),
                **self._verdict("verdict_remaining", step.verdict_remaining),
                "n_candidates": step.look.n_candidates,
                "n_refused": sum(step.look.n_refused.values()),
                "n_tied": step.n_tied,
                "n_equivalent": len(step.equivalent),
                **self._count_columns("leaf", step.chosen.leaf),
                **self._count_columns("remaining", step.remaining),
            }
            for number, step in enumerate(self.steps, start=1)
        ]

    def _refused_rows(self) -> list[dict[str, Any]]:
        looks = [step.look for step in self.steps] + [self.last_look] * (self.last_look is not None)
        return [
            {
                "step": number,
                "rule": str(refusal.candidate.rule),
                "reason": refusal.reason,
                "utility": refusal.candidate.utility,
                **self._p_value("p_value", refusal.candidate.p_value),
                **self._verdict("verdict", refusal.candidate.verdict),
                **self._count_columns("leaf", refusal.candidate.leaf),
            }
            for number, look in enumerate(looks, start=1)
            if look is not None
            for refusal in look.best_refused
        ]

    def _set_rows(self) -> list[dict[str, Any]]:
        return [asdict(test) for test in self.sets]

    def _pruning_rows(self) -> list[dict[str, Any]]:
        return [asdict(test) for test in self.pruning]

    def _p_value(self, name: str, value: float | None) -> dict[str, float]:
        return {} if value is None else {name: value}

    def _verdict(self, name: str, verdict: Verdict | None) -> dict[str, str]:
        return {} if verdict is None else {name: verdict.conclusion}

    def _count_columns(self, prefix: str, counts: LeafCounts) -> dict[str, int]:
        return {
            f"{prefix} {label} in {environment}": counts[i][j]
            for i, label in enumerate(self.classes)
            for j, environment in enumerate(self.environments)
        }


def _as_plain(value: Any) -> Any:
    """Dataclasses as dicts, rules as text, tuples as lists."""
    if isinstance(value, Rule):
        return str(value)
    if is_dataclass(value):
        return {each.name: _as_plain(getattr(value, each.name)) for each in fields(value)}
    return [_as_plain(each) for each in value] if isinstance(value, tuple) else value
