"""A fitted model as a frame, a figure or a report.

Everything here is computed from fitted attributes: the model with its counts, and the trace of the
search. Nothing is fitted again.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from icscm._changes import results_by_name
from icscm._types import CountArray, FloatArray
from icscm.exceptions import IcscmError
from icscm.model.forest import Forest
from icscm.model.tree import Tree
from icscm.report.content.leaves import AFTERWARDS_ALPHA
from icscm.stats.independence import make_test
from icscm.stats.new_environments import make_expectations
from icscm.stats.splits import measure_effects
from icscm.stats.verdicts import Verdict, deflate_alike, make_verdicts

if TYPE_CHECKING:
    import pandas

    from icscm.drawing import Figure
    from icscm.report.content.validation import ValidationRecord
    from icscm.report.importances import PermutationImportance
    from icscm.report.page import Report
    from icscm.report.path import Path


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
        describe the training data; `icscm.validation.permutation_importance` measures
        new data as well.
        """
        deviances = np.zeros(self.n_features_in_)
        trees = self.model_.trees if isinstance(self.model_, Forest) else (self.model_,)
        for tree in trees:
            for rule, deviance in zip(tree.rules, explain_splits(tree), strict=True):
                deviances[rule.column] += deviance
        total = deviances.sum()
        return deviances / total if total > 0 else deviances

    def describe_leaves(self, *, prevalence: float | None = None) -> pandas.DataFrame:
        """Describe the leaves: heterogeneity, and 95% prediction intervals for a new environment.

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
        if isinstance(self.model_, Forest):
            raise IcscmError("each tree of a forest has leaves of its own, in model_.trees")
        leaves = np.array(self.model_.leaves, dtype=np.int64)
        verdicts: Sequence[Verdict] = self.trace_.verdicts
        if not verdicts and self.environments_:
            verdicts = make_verdicts(leaves, make_test("chi2"), AFTERWARDS_ALPHA)
        return make_leaf_table(
            leaves, names=self.model_.leaf_texts, verdicts=verdicts, prevalence=prevalence
        )

    def plot(self, *, order: str = "name") -> Figure:
        """Draw the tree of the rules and the label's rate in each leaf, by environment.

        Parameters
        ----------
        order : {"name", "size", "rate"}, default="name"
            Environments by name (r2 before r10), decreasing size, or increasing rate.

        Returns
        -------
        icscm.drawing.Figure
            Notebooks display it; `save` writes it as SVG.
        """
        from icscm.report.figures import draw_model

        return draw_model(
            self,
            order,
            target=self._series_names_["target"],
            environment=self._series_names_["environment"],
        )

    @results_by_name
    def report(
        self,
        *,
        data_name: str | None = None,
        target: str | None = None,
        environment: str | None = None,
        path: Path | None = None,
        validation: ValidationRecord | None = None,
        stability: Any = None,
        importances: PermutationImportance | None = None,
    ) -> Report:
        """Make a report to read, save (`.html`, `.md`, `.json`) or show in a notebook.

        It shows the model and its search, and any results of further fits that it is given.

        Parameters
        ----------
        data_name, target, environment : str, optional
            Names of the data, of the outcome's column and of the environments' column; by default
            the columns have the names of the Series given to `fit`.
        path : Path, optional
            What `icscm.validation.alpha_path` or `tolerance_path` returned for this learner
            and its data: the models at other levels or tolerances.
        validation : Validation, optional
            What `icscm.leave_one_environment_out` returned for this learner and its data.
        stability : StabilitySelection, optional
            What `icscm.stability_selection` returned for this learner and its data: how often each
            rule and model is found in subsamples.
        importances : PermutationImportance, optional
            For a forest, what `icscm.validation.permutation_importance` returned.

        Returns
        -------
        Report
            The page and its other renderings.

        Raises
        ------
        IcscmError
            If the path or the stability are those of another model.
        """
        from icscm.report.page import make_report  # jinja2 is slow to import

        check_is_fitted(self)
        if path is not None and path.own_point.model != self.model_:
            raise IcscmError(
                "path is of other data or settings, which give a different model; compute it with "
                "the settings and the data of fit"
            )
        return make_report(
            self,
            data_name=data_name,
            target=self._series_names_["target"] if target is None else target,
            environment=self._series_names_["environment"] if environment is None else environment,
            dropped=self.dropped_columns_,
            path=path,
            validation=validation,
            stability=stability,
            importances=importances,
        )


def explain_splits(tree: Tree) -> list[float]:
    """Return the deviance that the effect of each split of a tree explains, at least 0.

    Effects are measured from the rows of each node and those where its rule is true, both counted
    by (outcome, environment).
    """
    counts_of_nodes, counts_where_true = tree.count_splits()
    min_rows = 0  # a split that was made is measured whatever its size
    deviances: list[float] = []
    for node, where_true in zip(counts_of_nodes, counts_where_true, strict=True):
        only_split = where_true[np.newaxis]  # splits are measured many at a time
        effects = measure_effects(only_split, node, min_rows)
        deviances.append(max(effects.deviance_explained.item(), 0.0))
    return deviances


def make_leaf_table(
    leaves: CountArray,
    *,
    names: Sequence[str],
    verdicts: Sequence[Verdict],
    prevalence: float | None,
) -> pandas.DataFrame:
    """Make the table of `describe_leaves` from counts by leaf, outcome and environment.

    Expectations are made of effective counts: rows of a group are alike, so they tell less.
    """
    import pandas  # slow to import

    n_rows = leaves.sum(axis=(1, 2))
    n_positives = leaves[:, 1].sum(axis=1)
    rates = np.where(n_rows > 0, n_positives / np.maximum(n_rows, 1), np.nan)

    expectations = make_expectations(deflate_alike(leaves, verdicts), prevalence)
    tau_low, tau_high = split_intervals([leaf.tau_interval for leaf in expectations])
    new_low, new_high = split_intervals([leaf.interval for leaf in expectations])
    known_low, known_high = split_intervals([leaf.known_interval for leaf in expectations])

    conclusions: list[str | None] = [verdict.conclusion for verdict in verdicts]
    if not verdicts:
        conclusions = [None] * len(leaves)
    return pandas.DataFrame(
        {
            "leaf": np.arange(1, len(leaves) + 1),
            "rule": list(names),
            "n": n_rows,
            "rate": rates,
            "tau": fill_unknown([leaf.tau for leaf in expectations]),
            "tau_low": tau_low,
            "tau_high": tau_high,
            "i2": fill_unknown([leaf.i2 for leaf in expectations]),
            "new_low": new_low,
            "new_high": new_high,
            "known_low": known_low,
            "known_high": known_high,
            "verdict": pandas.Series(conclusions, dtype=object),
            "note": pandas.Series([leaf.reason for leaf in expectations], dtype=object),
        }
    )


def split_intervals(
    intervals: Sequence[tuple[float, float] | None],
) -> tuple[FloatArray, FloatArray]:
    """Split intervals into their lower and their upper ends; NaN where there is no interval."""
    lows = [None if interval is None else interval[0] for interval in intervals]
    highs = [None if interval is None else interval[1] for interval in intervals]
    return fill_unknown(lows), fill_unknown(highs)


def fill_unknown(values: Sequence[float | None]) -> FloatArray:
    """Return numbers as an array, with NaN for those that are unknown."""
    return np.array([np.nan if value is None else value for value in values], dtype=np.float64)
