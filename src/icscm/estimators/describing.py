"""A fitted model's leaves as a frame: what they hold, and what to expect of them elsewhere."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from icscm._constants import DEFAULT_MARGIN
from icscm.report.leaves import AFTERWARDS_ALPHA
from icscm.stats.independence import make_test
from icscm.stats.new_environments import make_expectations
from icscm.stats.verdicts import make_verdicts

if TYPE_CHECKING:
    import pandas


class DescribedMixin:
    """Describes the leaves of `model_`, whatever kind of model has them.

    Asks for `model_.leaves`, `model_.leaf_texts`, `environments_` and, where the search judged
    the leaves, `trace_.verdicts`.
    """

    model_: Any
    environments_: tuple[Any, ...] | None

    def describe_leaves(self) -> pandas.DataFrame:
        """The leaves, how much they differ between environments, and what to expect elsewhere.

        The log odds of the positive label are taken to vary between environments as a normal
        distribution does, of standard deviation tau; a new environment is one more draw from it.
        Nothing is promised of an environment of another kind. See `docs/new-environments.md`.

        Returns
        -------
        pandas.DataFrame
            A row for each leaf, in the model's order:

            - `leaf`, `rule`: its number, from 1, and what brings a sample into it;
            - `n`, `rate`: training samples, and the share of `classes_[1]` among them;
            - `tau`, `tau_low`, `tau_high`, `i2`: standard deviation of the log odds between
              environments, its 95 % interval, and the share of the variance between the observed
              ones that is not sampling error;
            - `new_low`, `new_high`: what holds the rate in an environment not seen with
              probability 95 %;
            - `verdict`: whether the rate is the same in all environments (None without any);
            - `note`: why nothing can be expected (fewer than three environments have samples);
              numbers are NaN then.

        Examples
        --------
        >>> from icscm import ICSCMClassifier
        >>> from icscm.datasets import make_conjunction
        >>> data = make_conjunction(random_state=1)
        >>> learner = ICSCMClassifier().fit(data.X, data.y, environments=data.environments)
        >>> learner.describe_leaves()[["leaf", "rule", "n", "verdict"]]
           leaf             rule      n    verdict
        0     1  not met: A1 > 0  13918  invariant
        1     2  not met: A2 > 0   4061  invariant
        2     3    all rules met   2021  invariant
        """
        import pandas  # slow to import

        check_is_fitted(self, "model_")
        tables = np.array(self.model_.leaves, dtype=np.int64)
        verdicts: Any = getattr(getattr(self, "trace_", None), "verdicts", ())
        if not verdicts and self.environments_ is not None:
            verdicts = make_verdicts(tables, make_test("chi2"), AFTERWARDS_ALPHA, DEFAULT_MARGIN)
        conclusions = [each.conclusion for each in verdicts] or [None] * len(tables)
        found = make_expectations(tables)
        sizes = tables.sum(axis=(1, 2))
        nothing = (None, None)
        columns: dict[str, Any] = {
            "leaf": np.arange(1, len(tables) + 1),
            "rule": list(self.model_.leaf_texts),
            "n": sizes,
            "rate": np.where(sizes, tables[:, 1].sum(axis=1) / np.maximum(sizes, 1), np.nan),
            "tau": _make_numbers(each.tau for each in found),
            "tau_low": _make_numbers((each.tau_interval or nothing)[0] for each in found),
            "tau_high": _make_numbers((each.tau_interval or nothing)[1] for each in found),
            "i2": _make_numbers(each.i2 for each in found),
            "new_low": _make_numbers((each.interval or nothing)[0] for each in found),
            "new_high": _make_numbers((each.interval or nothing)[1] for each in found),
            "verdict": pandas.Series(conclusions, dtype=object),
            "note": pandas.Series([each.reason for each in found], dtype=object),
        }
        return pandas.DataFrame(columns)


def _make_numbers(values: Any) -> Any:
    """A column of numbers, NaN for None."""
    return np.array(list(values), dtype=np.float64)
