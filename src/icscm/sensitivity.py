"""How the model depends on alpha: the level is a choice, and a reader may ask about others.

The table was binned once; each level costs one more search over the same counts.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Iterable, Sequence
from copy import copy
from dataclasses import dataclass
from itertools import groupby

import numpy as np

from icscm.engine.memory import MemorySource
from icscm.estimators import ICSCMClassifier
from icscm.exceptions import IcscmError, IcscmWarning
from icscm.models import RuleSet
from icscm.trace import Trace
from icscm.validation import LEVEL, check_value

# 1, 2, 5 in each decade: even steps on a logarithmic scale, in numbers that people would choose.
DEFAULT_ALPHAS = tuple(
    float(f"{digit}e{exponent}") for exponent in range(-6, 0) for digit in (1, 2, 5)
)


@dataclass(frozen=True)
class AlphaModel:
    """One model and the neighbouring levels at which it is learned, ascending.

    `traces` has one entry for each level: the same model is judged differently at different ones.
    """

    model: RuleSet
    alphas: tuple[float, ...]
    traces: tuple[Trace, ...]

    @property
    def alpha_from(self) -> float:
        """The smallest level tried that gives this model."""
        return self.alphas[0]

    @property
    def alpha_to(self) -> float:
        """The largest level tried that gives this model."""
        return self.alphas[-1]


@dataclass(frozen=True)
class AlphaPath:
    """The models along alpha, ascending; see `compute_alpha_path`.

    A model can occur more than once: it may give way to another one and come back. `own_alpha` is
    the level that the learner itself used; `seconds` is what all searches took together.
    """

    models: tuple[AlphaModel, ...]
    own_alpha: float
    seconds: float

    def find_own_model(self) -> RuleSet:
        """The model at the learner's own level."""
        return next(each.model for each in self.models if self.own_alpha in each.alphas)

    @property
    def alphas(self) -> tuple[float, ...]:
        """Every level tried."""
        return tuple(alpha for each in self.models for alpha in each.alphas)


def compute_alpha_path(
    learner: ICSCMClassifier,
    source: MemorySource,
    alphas: Iterable[float] | None = DEFAULT_ALPHAS,
) -> AlphaPath | None:
    """Learn again at each level and join neighbouring levels that give the same model.

    All other settings are the learner's own, and its own level is always among those tried.
    `source` is the one it was fitted from (used up or not) and is not changed, nor is the learner.
    The cost is one search for each level. `alphas` None or empty turns this off and gives None.

    >>> from icscm import ICSCMClassifier
    >>> from icscm.datasets import make_conjunction
    >>> data = make_conjunction(random_state=1)
    >>> learner = ICSCMClassifier().fit(data.X, data.y, environments=data.environments)
    >>> source = ICSCMClassifier()._make_source(data.X, data.y, data.environments)
    >>> path = compute_alpha_path(learner, source, alphas=[0.001, 0.01, 0.5])
    >>> for each in path.models:
    ...     print(each.alpha_from, each.alpha_to, each.model)
    0.001 0.001 A1 > 0 and A2 <= 0
    0.01 0.05 A1 > 0 and A2 > 0
    0.5 0.5 always true (no rule)
    """
    levels = sorted(set(alphas or ()))
    if not levels:
        return None
    for alpha in levels:
        check_value("each of alphas", alpha, LEVEL)
    own_alpha = _find_own_alpha(learner)
    started = time.perf_counter()
    rows = np.arange(int(source.count_totals().sum()))
    learned = [
        (alpha, *_learn_at(alpha, learner, source.take(rows)))
        for alpha in sorted({*levels, own_alpha})
    ]
    return AlphaPath(_join_equal(learned), own_alpha, time.perf_counter() - started)


def _find_own_alpha(learner: ICSCMClassifier) -> float:
    if not isinstance(learner, ICSCMClassifier) or getattr(learner, "environments_", None) is None:
        raise IcscmError(
            "models along alpha need an ICSCMClassifier fitted with environments: without "
            "them nothing is tested, and alpha changes nothing"
        )
    return learner.alpha_


def _learn_at(
    alpha: float, learner: ICSCMClassifier, source: MemorySource
) -> tuple[RuleSet, Trace]:
    """What the learner would have found at another level."""
    other = copy(learner)  # the fitted one's names and number of columns come along
    other.alpha = alpha
    with warnings.catch_warnings():
        # that a level gives no rule, or little data, is what the path itself shows
        warnings.simplefilter("ignore", IcscmWarning)
        other._learn_from(source, has_environments=True)
    return other.model_, other.trace_


def _join_equal(learned: Sequence[tuple[float, RuleSet, Trace]]) -> tuple[AlphaModel, ...]:
    groups = [list(group) for _, group in groupby(learned, key=lambda each: each[1])]
    return tuple(
        AlphaModel(
            model=group[0][1],
            alphas=tuple(alpha for alpha, _, _ in group),
            traces=tuple(trace for _, _, trace in group),
        )
        for group in groups
    )
