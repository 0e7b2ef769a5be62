"""What the search did and why: the one source for reports and debugging.

Everything is plain immutable values, so two traces can be compared with `==`. Counts are by
label (in the order of the classes) and environment. p-values and verdicts are None where nothing
was tested.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict, dataclass, field, fields, is_dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from icscm._repr import Display, DisplayMixin
from icscm.formatting import format_number
from icscm.model.leaves import LeafCounts
from icscm.model.rules import Rule
from icscm.model.tree import Tree
from icscm.stats.breaking import find_breaking
from icscm.stats.criteria import Criterion
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
    "unreplicated": "its leaf lies in too few environments to be compared",
    "unhelpful": "it would settle too few samples rightly for those that it settles wrongly",
}

# What came of pruning, as sentences.
PRUNING_OUTCOMES = {
    "removed": "Pruning removed what invariance does not need.",
    "needed": "Pruning removed nothing: without any one of the columns a leaf would not be "
    "invariant.",
    "single": "Nothing to prune: the rules use a single column.",
    "not_ended": "Nothing was pruned: the search did not end because what remains is independent "
    "of the environment, which Proposition 3.2 needs.",
}


# The fields of a trace that tell of leaves which are not the model's.
_MADE_LATER = ("steps", "last_look", "nearest")


@dataclass(frozen=True)
class Candidate:
    """One rule that a step looked at.

    Parameters
    ----------
    rule, utility : Rule, float
        As the model prints it, and abs(A) - p abs(B), times the weight of its feature.
    p_value, leaf, verdict : float or None, tuple of tuple of int, Verdict or None
        Of the samples that it settles.
    """

    rule: Rule
    utility: float
    p_value: float | None
    leaf: LeafCounts
    verdict: Verdict | None = None


@dataclass(frozen=True)
class Refusal:
    """A candidate that was not allowed.

    Parameters
    ----------
    candidate, reason : Candidate, str
        What was refused, and why: a key of `REFUSALS`.
    """

    candidate: Candidate
    reason: str


@dataclass(frozen=True)
class Look:
    """One look at all candidates.

    Parameters
    ----------
    n_candidates, n_refused : int, dict
        How many there were, and how many were refused by reason.
    best_refused : tuple of Refusal
        Those of largest utility.
    cutoff : float or None
        The p-value up to which candidates were refused: alpha, or what a correction made of it;
        None where p-values did not decide.
    """

    n_candidates: int
    n_refused: dict[str, int]
    best_refused: tuple[Refusal, ...]
    cutoff: float | None = None


@dataclass(frozen=True)
class Step:
    """One rule added to the model.

    Parameters
    ----------
    chosen, look : Candidate, Look
        The rule, and what else was there.
    remaining, p_value_remaining, verdict_remaining : tuple, float or None, Verdict or None
        The samples that no rule has settled so far, and the test on these (criterion (ii)).
    equivalent : tuple of Rule
        Other rules that would have settled exactly the same samples.
    n_tied : int
        Candidates that shared the largest utility, the chosen one included.
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
    """One conditional test of Proposition 3.2: label against environment without a feature.

    Parameters
    ----------
    round, feature, removed : int, str or int, bool
        The feature left out, and whether it was removed; each round removes at most one.
    statistic, dof, p_value : float, int, float
        Of the conditional G-test.
    undone : bool
        Whether the removal was undone, since a leaf of what is left did not pass.
    """

    round: int
    feature: str | int
    statistic: float
    dof: int
    p_value: float
    removed: bool
    undone: bool = False


@dataclass(frozen=True)
class PruningOutcome:
    """What pruning came to, and what it cost.

    Parameters
    ----------
    outcome : str
        A key of `PRUNING_OUTCOMES`.
    n_wrong_before, n_wrong_after : int
        Training samples that the model gets wrong, without pruning and with it.
    """

    outcome: str
    n_wrong_before: int
    n_wrong_after: int


@dataclass(frozen=True)
class Screened:
    """A feature's best rule that passed the screen of the exhaustive search.

    Parameters
    ----------
    rule, statistic, p_value : Rule, float, float
        Pearson's statistic of the rule against the label, and its p-value corrected for all tried.
    """

    rule: Rule
    statistic: float
    p_value: float


@dataclass(frozen=True)
class SetTest:
    """One set of features tested by the exhaustive search.

    Parameters
    ----------
    features, p_value, accepted : tuple of str or int, float, bool
        The set, the test over the leaves of its conjunction, and whether it was passed.
    """

    features: tuple[str | int, ...]
    p_value: float
    accepted: bool


@dataclass(frozen=True, repr=False)
class Trace(DisplayMixin):
    """The whole search.

    Parameters
    ----------
    steps : tuple of Step
        One for each rule that was added.
    stop_reason : str
        A key of `STOP_REASONS`.
    last_look, nearest : Look or None, tuple of Refusal
        The look that found no candidate to add, if the search ended so, and the refused ones whose
        p-values came nearest to alpha at it.
    pruning, pruned : tuple of PruningTest, PruningOutcome or None
        The tests made for pruning, and what came of it; None where it was not asked for.
    classes, environments, alpha : tuple, tuple, float or None
        The order of all counts, and the level of the tests.
    notes : tuple of str
        What a user should know of how the counts came about.
    screening, sets : tuple of Screened, tuple of SetTest
        The candidates of the exhaustive search and the sets tested.
    verdicts : tuple of Verdict
        Of the final model's leaves, the last for the samples that no rule settles.
    set_aside : Tree or None
        What was found and does worse than always saying the same, so that the model has no rule.
    criterion : object or None
        What decided whether a leaf is invariant.

    Examples
    --------
    >>> from icscm import ICSCMClassifier
    >>> from icscm.datasets import make_conjunction
    >>> data = make_conjunction(random_state=1)
    >>> trace = ICSCMClassifier().fit(data.X, data.y, environments=data.environments).trace_
    >>> trace.to_frame()[["rule", "utility", "n_refused"]]
         rule  utility  n_refused
    0  A1 > 0  13222.0         10
    1  A2 > 0   3893.0          9
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
    pruned: PruningOutcome | None = None
    set_aside: Tree | None = None
    criterion: Criterion | None = field(default=None, compare=False, repr=False)

    def complete_later(self, make: Callable[[], dict[str, Any]]) -> Trace:
        """The same trace, some fields of which are made when one of them is first asked for."""
        later = self.change(_make=make)
        for name in _MADE_LATER:
            del vars(later)[name]
        return later

    def change(self, **changes: Any) -> Trace:
        """The same trace with other values; what was left for later stays so."""
        changed = object.__new__(Trace)
        vars(changed).update({**vars(self), **changes})
        return changed

    if not TYPE_CHECKING:  # which would take it for an answer to any name

        def __getattr__(self, name: str) -> Any:
            """A field that was left for later."""
            make = vars(self).get("_make")
            if make is not None and name in _MADE_LATER:
                vars(self).update(make())
                vars(self).pop("_make", None)
            if name not in vars(self):
                raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
            return vars(self)[name]

    def __getstate__(self) -> dict[str, Any]:
        """Plain values, whole, to be pickled or copied."""
        return {each.name: getattr(self, each.name) for each in fields(self)}

    @property
    def looks(self) -> tuple[Look, ...]:
        """Every look at all candidates: one for each step, and that which found none to add."""
        return (*(step.look for step in self.steps), *([self.last_look] if self.last_look else []))

    @property
    def stop_text(self) -> str:
        """Why the search ended, as a sentence."""
        return f"The search stopped because {STOP_REASONS[self.stop_reason]}."

    def find_breaking(self, leaf: LeafCounts) -> tuple[Any, ...] | None:
        """The environments without which a leaf would be taken for invariant.

        Parameters
        ----------
        leaf : tuple of tuple of int
            Its samples by label and environment.

        Returns
        -------
        tuple or None
            Their labels, the one that stands out most first; empty where the leaf passes as it
            is, None where leaving out fewer than half does not help, or nothing was tested.
        """
        if self.criterion is None:
            return None
        found = find_breaking(np.array(leaf), self.criterion)
        return None if found is None else tuple(self.environments[k] for k in found)

    def _display(self) -> Display:
        """The steps and why the search ended."""
        rows = []
        for step in self.steps:
            chosen, look = step.chosen, step.look
            tests = chosen.p_value, step.p_value_remaining
            p_values = ["-" if p is None else f"{p:.2g}" for p in tests]
            settled = f"{sum(map(sum, chosen.leaf)):,}"
            refused = f"{sum(look.n_refused.values()):,} of {look.n_candidates:,}"
            row = str(chosen.rule), format_number(chosen.utility), settled, *p_values, refused
            rows.append(row)
        columns = "rule", ">utility", ">settles", ">p leaf", ">p rest", ">refused"
        return Display(self.stop_text, columns if rows else (), rows)

    def to_dict(self) -> dict[str, Any]:
        """Everything in plain values.

        Returns
        -------
        dict
            Dataclasses as dicts, rules as text, tuples as lists.
        """
        plain: dict[str, Any] = as_plain(replace(self, criterion=None))
        del plain["criterion"]
        return plain

    def to_frame(self, what: str = "steps") -> pandas.DataFrame:
        """A table of one part.

        Parameters
        ----------
        what : {"steps", "refused", "pruning", "sets"}, default="steps"
            The rules added, the best candidates refused, the tests made for pruning, or the sets
            tested by the exhaustive search.

        Returns
        -------
        pandas.DataFrame
            A row for each.

        Raises
        ------
        ValueError
            If there is no such part.
        """
        import pandas

        makers: dict[str, Callable[[], Iterable[dict[str, Any]]]] = {
            "sets": lambda: map(asdict, self.sets),
            "steps": self._list_steps,
            "refused": self._list_refused,
            "pruning": lambda: map(asdict, self.pruning),
        }
        if what not in makers:
            raise ValueError(f"to_frame gives {', '.join(map(repr, makers))}, not {what!r}")
        return pandas.DataFrame(list(makers[what]()))

    def _list_steps(self) -> Iterator[dict[str, Any]]:
        for number, step in enumerate(self.steps, start=1):
            tested = {
                "p_value": step.chosen.p_value,
                "p_value_remaining": step.p_value_remaining,
                "verdict": step.chosen.verdict and step.chosen.verdict.conclusion,
                "verdict_remaining": step.verdict_remaining and step.verdict_remaining.conclusion,
            }
            yield {
                "step": number,
                "rule": str(step.chosen.rule),
                "feature": step.chosen.rule.feature,
                "utility": step.chosen.utility,
                **_drop_none(tested),
                "n_candidates": step.look.n_candidates,
                "n_refused": sum(step.look.n_refused.values()),
                "n_tied": step.n_tied,
                "n_equivalent": len(step.equivalent),
                **self._count_columns("leaf", step.chosen.leaf),
                **self._count_columns("remaining", step.remaining),
            }

    def _list_refused(self) -> Iterator[dict[str, Any]]:
        for number, look in enumerate(self.looks, start=1):
            for refusal in look.best_refused:
                refused = refusal.candidate
                verdict = refused.verdict and refused.verdict.conclusion
                yield {
                    "step": number,
                    "rule": str(refused.rule),
                    "reason": refusal.reason,
                    "utility": refused.utility,
                    **_drop_none({"p_value": refused.p_value, "verdict": verdict}),
                    "breaking": self._name_breaking(refusal),
                    **self._count_columns("leaf", refused.leaf),
                }

    def _name_breaking(self, refusal: Refusal) -> list[Any] | None:
        """The environments that a rule was refused for, where it holds in most."""
        if refusal.reason != "dependent":
            return None
        found = self.find_breaking(refusal.candidate.leaf)
        return list(found) if found else None

    def _count_columns(self, prefix: str, counts: LeafCounts) -> dict[str, int]:
        return {
            f"{prefix} {label} in {environment}": counts[i][j]
            for i, label in enumerate(self.classes)
            for j, environment in enumerate(self.environments)
        }


def _drop_none(fields: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in fields.items() if value is not None}


def as_plain(value: Any) -> Any:
    """Dataclasses as dicts, rules as text, tuples as lists."""
    if isinstance(value, Rule):
        return str(value)
    if is_dataclass(value):
        return {each.name: as_plain(getattr(value, each.name)) for each in fields(value)}
    return [as_plain(each) for each in value] if isinstance(value, tuple) else value
