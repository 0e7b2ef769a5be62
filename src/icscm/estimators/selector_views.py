"""What a fitted screen of columns shows: a forest plot, a report, and other tolerances."""

import warnings
from collections.abc import Iterable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.base import clone
from sklearn.metrics import get_scorer
from sklearn.utils.validation import check_is_fitted

from icscm._changes import data_by_name
from icscm.exceptions import IcscmError, IcscmWarning
from icscm.report import screen as reports
from icscm.tables.columns import count_rows, is_frame, take_columns, take_rows
from icscm.tables.labels import encode_environments, take_environments

if TYPE_CHECKING:
    from matplotlib.figure import Figure


class SelectorViews:
    """Views of `InvariantFeatureSelector`; everything comes from its fitted attributes."""

    # leave-one-environment-out leaves two to compare
    tests_invariance = True

    tolerance: Any

    @data_by_name
    def tolerance_path(
        self,
        X: Any,
        y: Any,
        *,
        environments: Any,
        groups: Any = None,
        tolerances: Iterable[float] = reports.SCREEN_TOLERANCES,
        leave_one_out: bool = False,
    ) -> reports.ScreenPath:
        """Which columns are rejected at other tolerances, and the cost in AUC and log loss.

        The worst column is always rejected first, so that one screen at the smallest tolerance
        gives all others, which only stop earlier. At tolerance t, a column that carries a share
        s of the model's information may have an effect that varies by sqrt(t / s).

        Parameters
        ----------
        X, y, environments, groups : as for `fit`
            The samples.
        tolerances : iterable of float, optional
            Tolerances to show; the selector's own is always added.
        leave_one_out : bool, default=False
            Whether to fit the learner without each environment in turn, on the columns kept, for
            its AUC there. The columns are those kept in the screen of all environments;
            `icscm.validation.screening.validate_screen` repeats the screen in every fold.

        Returns
        -------
        ScreenPath
            With `to_frame()` and `plot()`. The selector itself is not changed.

        Raises
        ------
        IcscmError
            If there are no environments, or the data cannot be used.
        """
        if environments is None:
            raise IcscmError("a path along the tolerance needs environments to compare")
        wanted = {*tolerances, self.tolerance}
        screen: Any = clone(self).set_params(tolerance=min(wanted))
        with warnings.catch_warnings(action="ignore", category=IcscmWarning):  # `fit` warns
            screen.fit(X, y, environments=environments, groups=groups)
        frames = screen.screen_, screen.rounds_
        path = reports.make_screen_path(*frames, wanted, self.tolerance, screen.tolerance)
        if not leave_one_out:
            return path
        columns = [*screen.screen_["column"]]
        X, environments = take_environments(X, environments)
        codes, _ = encode_environments(environments, count_rows(X))
        X, y = X if is_frame(X) else np.asarray(X), np.asarray(y)
        known: dict[tuple[Any, ...], tuple[float | None, ...]] = {}
        for kept in {each.kept for each in path.points if each.kept}:
            table = take_columns(X, np.array([columns.index(each) for each in kept]))
            known[kept] = tuple(screen._score_left_out(table, y, codes))
        points = (replace(each, aucs=known.get(each.kept, ())) for each in path.points)
        return replace(path, points=tuple(points))

    def _score_left_out(self: Any, table: Any, y: Any, codes: Any) -> Iterable[float | None]:
        """The AUC in each environment of the learner fitted without it."""
        for code in np.unique(codes):
            train, test = np.flatnonzero(codes != code), np.flatnonzero(codes == code)
            if min(len(np.unique(y[train])), len(np.unique(y[test]))) < 2:
                yield None
                continue
            learner = self._make_learner().fit(take_rows(table, train), y[train])
            yield float(get_scorer("roc_auc")(learner, take_rows(table, test), y[test]))

    def report(
        self,
        *,
        path: reports.ScreenPath | None = None,
        validation: Any = None,
        data_name: str | None = None,
        target: str | None = None,
        environment: str | None = None,
    ) -> reports.ScreenReport:
        """A report on the screen: a page, Markdown or JSON.

        Parameters
        ----------
        path : ScreenPath, optional
            That of `tolerance_path`. Without it, tolerances above the selector's own are shown,
            which need no new screen.
        validation : ScreenValidation, optional
            That of `icscm.validation.screening.validate_screen`.
        data_name, target, environment : str, optional
            Names of the data, of the label and of the environments' column.

        Returns
        -------
        ScreenReport
            With `save`, `to_html`, `to_markdown`, `to_json` and `to_dict`; notebooks display it.
        """
        check_is_fitted(self)
        names = {"data": data_name, "target": target, "environment": environment}
        return reports.make_screen_report(self, path, validation, names)

    def plot(self, column: Any = None) -> "Figure":
        """The effect of a column in each environment, as a forest plot.

        Parameters
        ----------
        column : str or int, optional
            A column; by default those with the largest shares of heterogeneity, at most six.

        Returns
        -------
        matplotlib.figure.Figure
            Odds ratios of the column's rule, other columns held fixed, with 95% intervals; below
            them the pooled effect and the 95% prediction interval for a new environment.

        Raises
        ------
        IcscmError
            If nothing is known of the column, or matplotlib is not installed.
        """
        check_is_fitted(self)
        return reports.draw_forests(self, column)
