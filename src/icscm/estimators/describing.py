"""A fitted model as a frame, a figure or a report, and its performance in other environments."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from icscm._changes import data_by_name
from icscm._types import FloatArray
from icscm.exceptions import IcscmError, IcscmWarning
from icscm.model.forest import Forest
from icscm.report.sections.leaves import AFTERWARDS_ALPHA
from icscm.stats.independence import make_test
from icscm.stats.new_environments import make_expectations
from icscm.stats.splits import measure_effects
from icscm.stats.verdicts import Verdict, deflate_alike, make_verdicts

if TYPE_CHECKING:
    import pandas
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from icscm.report.page import Report


def get_names(target: Any = None, environments: Any = None) -> dict[str, str | None]:
    """Names of the columns of the label and of the environments, for reports; a text is a name."""
    names: dict[str, str | None] = {}
    for key, column in (("target", target), ("environment", environments)):
        name = column if isinstance(column, str) else getattr(column, "name", None)
        names[key] = name if isinstance(name, str) and name else None
    return names


class DescribingMixin:
    """Descriptions of a fitted learner."""

    model_: Any
    trace_: Any
    n_features_in_: int
    environments_: tuple[Any, ...] | None
    dropped_columns_: dict[str | int, str]
    _series_names_: dict[str, str | None]

    @property
    def feature_importances_(self) -> FloatArray:
        """Share of each column in the deviance that the splits or rules of the model explain.

        The deviance is that of an effect common to all environments: differences between the
        environments' own rates do not count. The shares sum to 1; all are 0 without a split. They
        describe the training data; `icscm.permutation_importance` measures new data as well.
        """
        importances = np.zeros(self.n_features_in_)
        for tree in getattr(self.model_, "trees", (self.model_,)):
            for rule, node, half in zip(tree.rules, *tree.count_splits(), strict=True):
                explained = measure_effects(half[np.newaxis], node, 0).deviance_explained
                importances[rule.column] += max(explained.item(), 0.0)
        return importances / (importances.sum() or 1.0)

    def describe_leaves(self, *, prevalence: float | None = None) -> pandas.DataFrame:
        """The leaves, their heterogeneity, and 95% prediction intervals for a new environment.

        The log odds of the positive label are modelled as normal across environments, with
        standard deviation tau, of which a part is shared by all leaves of an environment; a new
        environment is one more draw. See `docs/new-environments.md`.

        Parameters
        ----------
        prevalence : float, optional
            The rate of `classes_[1]` among all samples of the new environment, where it is
            known; by default that of training.

        Returns
        -------
        pandas.DataFrame
            A row for each leaf, in the model's order:

            - `leaf`, `rule`: its number, from 1, and its condition;
            - `n`, `rate`: training samples, and the share of `classes_[1]` among them;
            - `tau`, `tau_low`, `tau_high`, `i2`: standard deviation of the log odds between
              environments, estimated from all leaves together, its 95% interval, and the share of
              the variance between the observed ones that is not sampling error;
            - `new_low`, `new_high`: 95% prediction interval of the rate in a new environment;
            - `known_low`, `known_high`: the same once the rate of all its samples is known to be
              `prevalence` (NaN for a single leaf);
            - `verdict`: whether the rate is the same in all environments (None without any);
            - `note`: why there is no interval (fewer than three environments have samples); the
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

        if isinstance(self.model_, Forest):
            raise IcscmError("each tree of a forest has leaves of its own, in model_.trees")
        tables = np.array(self.model_.leaves, dtype=np.int64)
        verdicts: Sequence[Verdict] = self.trace_.verdicts
        if not verdicts and self.environments_:
            verdicts = make_verdicts(tables, make_test("chi2"), AFTERWARDS_ALPHA)
        conclusions: list[Any] = [e.conclusion for e in verdicts] or [None] * len(tables)
        sizes, nothing = tables.sum(axis=(1, 2)), (None, None)
        found = make_expectations(deflate_alike(tables, verdicts), prevalence)
        numbers = [
            (each.tau, *(each.tau_interval or nothing), each.i2)
            + (each.interval or nothing)
            + (each.known_interval or nothing)
            for each in found
        ]
        names = "tau", "tau_low", "tau_high", "i2", "new_low", "new_high", "known_low", "known_high"
        return pandas.DataFrame(
            {
                "leaf": np.arange(1, len(tables) + 1),
                "rule": list(self.model_.leaf_texts),
                "n": sizes,
                "rate": np.where(sizes, tables[:, 1].sum(axis=1) / np.maximum(sizes, 1), np.nan),
                **dict(zip(names, np.array(numbers, dtype=np.float64).T, strict=True)),
                "verdict": pandas.Series(conclusions, dtype=object),
                "note": pandas.Series([each.reason for each in found], dtype=object),
            }
        )

    @data_by_name
    def validate(
        self, X: Any, y: Any, *, environments: Any, groups: Any = None, **options: Any
    ) -> Any:
        """Measure the performance in environments left out, and keep it for the report.

        Parameters
        ----------
        X, y, environments, groups : as for `fit`
            The samples that the learner was fitted on, of at least three environments for a
            learner that tests invariance, two for others.
        **options : optional
            As for `icscm.leave_one_environment_out`.

        Returns
        -------
        icscm.validation.transfer.Validation
            AUC, calibration and Brier score in each environment, of a model learned without it,
            and their random-effects summary; also the attribute `validation_`.

        Raises
        ------
        IcscmError
            If there are too few environments, or a class occurs in only one of them.
        """
        check_is_fitted(self)
        # imported late, since studies import the learners
        measure = import_module("icscm.validation.transfer").leave_one_environment_out
        with warnings.catch_warnings(action="ignore", category=IcscmWarning):  # `fit` warned
            self.validation_ = measure(self, X, y, environments, groups=groups, **options)
        return self.validation_

    def plot(self, ax: Axes | None = None, *, order: str = "name") -> Figure:
        """The tree of the rules and the label's rate in each leaf, by environment.

        Parameters
        ----------
        ax : matplotlib.axes.Axes, optional
            Where to draw; by default on a new figure of pyplot.
        order : {"name", "size", "rate"}, default="name"
            Environments by name (r2 before r10), decreasing size, or increasing rate.

        Returns
        -------
        matplotlib.figure.Figure
            The figure.
        """
        from icscm.report.figures import draw_model

        return draw_model(self, ax, order, **self._series_names_)

    def _make_report(self, y: Any, environments: Any, **options: Any) -> Report:
        from icscm.report.page import make_report  # jinja2 is slow to import

        given = {key: name for key, name in get_names(y, environments).items() if name is not None}
        names = self._series_names_ | given
        return make_report(self, dropped=self.dropped_columns_, **names, **options)
