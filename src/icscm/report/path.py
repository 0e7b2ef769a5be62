"""How the model depends on alpha: the level is a choice, and a reader may ask about others.

The table was binned once; each level costs one more search over the same counts.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from operator import itemgetter

from icscm.exceptions import IcscmError
from icscm.model.tree import Tree
from icscm.parameters import LEVEL, check_value
from icscm.search.greedy import SharedScans
from icscm.search.rules import find_model
from icscm.search.settings import Settings
from icscm.search.trace import Trace
from icscm.sources.memory import MemorySource

# 1, 2, 5 in each decade: even steps on a logarithmic scale, in numbers that people would choose.
DEFAULT_ALPHAS = tuple(float(f"{digit}e{power}") for power in range(-6, 0) for digit in (1, 2, 5))


@dataclass(frozen=True)
class AlphaModel:
    """One model and the neighbouring levels at which it is learned, ascending.

    `traces` has one entry for each level: the same model is judged differently at different ones.
    """

    model: Tree
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

    def find_own_model(self) -> Tree:
        """The model at the learner's own level."""
        return next(each.model for each in self.models if self.own_alpha in each.alphas)

    @property
    def alphas(self) -> tuple[float, ...]:
        """Every level tried."""
        return tuple(alpha for each in self.models for alpha in each.alphas)


def compute_alpha_path(
    source: MemorySource, settings: Settings, alphas: Iterable[float] = DEFAULT_ALPHAS
) -> AlphaPath:
    """Learn again at each level and join neighbouring levels that give the same model.

    All other settings stay as they are, and their own level is always among those tried. `source`
    may be used up or not, and is not changed. The cost is one search for each level.

    >>> from icscm import ICSCMClassifier
    >>> from icscm.datasets import make_conjunction
    >>> from icscm.sources.memory import open_memory
    >>> data = make_conjunction(random_state=1)
    >>> samples = open_memory(data.X, data.y, data.environments)
    >>> settings = ICSCMClassifier().make_settings(samples)
    >>> path = compute_alpha_path(samples.source, settings, alphas=[0.001, 0.01, 0.5])
    >>> for each in path.models:
    ...     print(each.alpha_from, each.alpha_to, each.model)
    0.001 0.001 A1 > 0 and C1 > 0
    0.01 0.05 A1 > 0 and A2 > 0
    0.5 0.5 no rule holds in every environment and does better than always negative
    """
    levels = set(alphas)
    for alpha in sorted(levels):
        check_value("each of alphas", alpha, LEVEL)
    if settings.test is None:
        raise IcscmError(
            "models along alpha need an ICSCMClassifier fitted with environments: without "
            "them nothing is tested, and alpha changes nothing"
        )
    started = time.perf_counter()
    ordered = sorted({*levels, settings.alpha})
    shared = SharedScans(ordered)
    learned = [
        (alpha, *find_model(source.start_again(), replace(settings, alpha=alpha), shared))
        for alpha in ordered
    ]
    return AlphaPath(_join_equal(learned), settings.alpha, time.perf_counter() - started)


def _join_equal(learned: Sequence[tuple[float, Tree, Trace]]) -> tuple[AlphaModel, ...]:
    found = []
    for model, group in groupby(learned, key=itemgetter(1)):
        alphas, _, traces = zip(*group, strict=True)
        found.append(AlphaModel(model, alphas, traces))
    return tuple(found)
