"""How a fitted learner shows itself: the report and the figure."""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, ClassVar, Self

from sklearn.utils.validation import check_is_fitted

from icscm._constants import DEFAULT_TOLERANCES
from icscm.estimators.describing import DescribedMixin
from icscm.exceptions import IcscmError, LeftOutWarning
from icscm.model.tree import Tree
from icscm.report.path import DEFAULT_ALPHAS, AlphaPath, compute_alpha_path
from icscm.sources.countable import Countable
from icscm.sources.memory import open_memory

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from icscm.report.render import Report
    from icscm.report.summary import Resampled
    from icscm.report.tolerance import TolerancePath


class ReportedMixin(DescribedMixin):
    """Report and figure of a learner, in the words of the columns it learned from."""

    tests_invariance: ClassVar[bool]
    left_out_: dict[str | int, str]

    def _keep_series_names(self, y: Any, environments: Any) -> Self:
        """What a report calls the label and the environments: as their columns are called."""
        self._series_names = _find_series_name(y), _find_series_name(environments)
        return self

    def _get_series_names(self) -> dict[str, str | None]:
        names = getattr(self, "_series_names", (None, None))
        return dict(zip(("target", "environment"), names, strict=True))

    def _make_report(self, y: Any, environments: Any, **options: Any) -> Report:
        from icscm.report.render import make_report  # jinja2 is slow to import

        names = self._get_series_names()
        given = {"target": _find_series_name(y), "environment": _find_series_name(environments)}
        names |= {key: name for key, name in given.items() if name is not None}
        learner: Any = self  # a mixin cannot say that it will be a `Learner`
        return make_report(learner, left_out=self.left_out_, **names, **options)

    def _open_again(self, X: Any, y: Any, environments: Any, weight: Any) -> Countable[Any]:
        """The samples that `fit` was given, once more."""
        learner: Any = self
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", LeftOutWarning)  # `fit` has said it
            return open_memory(X, y, environments, weight, preparation=learner.prepare())

    def plot(self, ax: Axes | None = None, *, order: str = "name") -> Figure:
        """The tree of the rules and the label's rate in each leaf, by environment.

        Parameters
        ----------
        ax : matplotlib.axes.Axes, optional
            Where to draw, as small as it must be; by default on a figure of its own, of pyplot's:
            a notebook shows it, and so does `plt.show()`.
        order : {"name", "size", "rate"}, default="name"
            The order of the environments: by name (r2 before r10), from the one of most samples,
            or from the lowest rate of the positive label.

        Returns
        -------
        matplotlib.figure.Figure
            To be shown or saved.

        Raises
        ------
        IcscmError
            If matplotlib is not installed, or there is no such order.
        """
        from icscm.report.figures import draw_model

        check_is_fitted(self, "model_")
        learner: Any = self
        return draw_model(learner, ax, order, is_registered=ax is None, **self._get_series_names())


_OTHER_DATA = (
    "{} was given other data than fit: from these another model is learned; give what the "
    "estimator was fitted on, or nothing"
)


class ReportedRulesMixin(ReportedMixin):
    """Report of a learner of rule sets, and how these depend on alpha."""

    model_: Tree

    def report(
        self,
        X: Any = None,
        y: Any = None,
        environments: Any = None,
        sample_weight: Any = None,
        *,
        data_name: str | None = None,
        alphas: Iterable[float] | None = DEFAULT_ALPHAS,
        stability: Resampled | None = None,
    ) -> Report:
        """A report to read, save (`.html`, `.md`, `.json`) or show in a notebook.

        Parameters
        ----------
        X, y, environments, sample_weight : optional
            What the learner was fitted on. With them, and environments, the report also shows
            how the model depends on alpha. The label and the environments are called as their
            Series are, here or in `fit`.
        data_name : str, optional
            What to call the data.
        alphas : iterable of float, optional
            The levels to learn at again, one search each; None turns this off.
        stability : StabilitySelection, optional
            What `icscm.stability_selection` returned for this learner and its data: the report
            then tells how often each rule and model comes back on halves.

        Returns
        -------
        Report
            The page and its other renderings.

        Raises
        ------
        IcscmError
            If the data are not those that the learner was fitted on.
        """
        check_is_fitted(self, "model_")
        path = None
        if X is not None and environments is not None:
            path = self._follow_alpha(X, y, environments, sample_weight, alphas)
        options = {"data_name": data_name, "alpha_path": path, "stability": stability}
        return self._make_report(y, environments, **options)

    def _follow_alpha(
        self, X: Any, y: Any, environments: Any, weight: Any, alphas: Iterable[float] | None
    ) -> AlphaPath | None:
        levels = None if alphas is None else list(alphas)
        if not levels or not self.tests_invariance:
            return None
        learner: Any = self
        countable = self._open_again(X, y, environments, weight)
        path = compute_alpha_path(countable.source, learner.make_settings(countable), levels)
        if path.find_own_model() != self.model_:
            raise IcscmError(_OTHER_DATA.format("report"))
        return path


class ReportedTreeMixin(ReportedMixin):
    """Report of a learner of trees, and how these depend on the tolerance."""

    model_: Tree
    tolerance_: float | None

    def report(
        self,
        X: Any = None,
        y: Any = None,
        environments: Any = None,
        sample_weight: Any = None,
        *,
        data_name: str | None = None,
        tolerances: Iterable[float | None] | None = DEFAULT_TOLERANCES,
        tolerance_path: TolerancePath | None = None,
    ) -> Report:
        """A report to read, save (`.html`, `.md`, `.json`) or show in a notebook.

        Parameters
        ----------
        X, y, environments, sample_weight : optional
            What the learner was fitted on. With them, and environments, the report also shows
            how the tree depends on the tolerance. The label and the environments are called as
            their Series are, here or in `fit`.
        data_name : str, optional
            What to call the data.
        tolerances : iterable of float or None, optional
            The tolerances to grow the tree at again, None for a plain one; no iterable turns this
            off.
        tolerance_path : TolerancePath, optional
            What `icscm.tolerance_path` returned for this learner and its data: the report then
            also tells what leaving each environment out says of every tolerance.

        Returns
        -------
        Report
            The page and its other renderings.

        Raises
        ------
        IcscmError
            If the data are not those that the learner was fitted on.
        """
        check_is_fitted(self, "model_")
        path = tolerance_path
        has_data = X is not None and environments is not None and self.tolerance_ is not None
        if path is None and has_data and tolerances is not None:
            samples = X, y, environments, sample_weight
            path = self._follow_tolerance(samples, tolerances, "report")
        elif path is not None:
            self._check_own(path, "tolerance_path")
        return self._make_report(y, environments, data_name=data_name, tolerance_path=path)

    def tolerance_path(
        self,
        X: Any,
        y: Any,
        environments: Any,
        sample_weight: Any = None,
        *,
        tolerances: Iterable[float | None] = DEFAULT_TOLERANCES,
    ) -> TolerancePath:
        """The trees of other tolerances, from a plain one to a strict one, of the same data.

        `icscm.tolerance_path` also tells how they do in environments left out, at the price of
        growing each of them once for every environment.

        Parameters
        ----------
        X, y, environments, sample_weight : optional
            What the learner was fitted on.
        tolerances : iterable of float or None, optional
            Those to grow the tree at; None is a plain tree. The learner's own is always among
            them.

        Returns
        -------
        TolerancePath
            It prints as a table; `to_frame()` and `plot()` show it.

        Raises
        ------
        IcscmError
            If the data are not those that the learner was fitted on, or it is a plain tree.
        """
        check_is_fitted(self, "model_")
        samples = X, y, environments, sample_weight
        return self._follow_tolerance(samples, tolerances, "tolerance_path")

    def _follow_tolerance(
        self, samples: tuple[Any, ...], tolerances: Iterable[float | None], what: str
    ) -> TolerancePath:
        from icscm.report.tolerance import compute_tolerance_path  # rule sets have no use for it

        learner: Any = self
        countable = self._open_again(*samples)
        path = compute_tolerance_path(
            countable.source, learner.make_settings(countable), tolerances
        )
        return self._check_own(path, what)

    def _check_own(self, path: TolerancePath, what: str) -> TolerancePath:
        if path.own_point.model != self.model_:
            raise IcscmError(_OTHER_DATA.format(what))
        return path


def _find_series_name(column: Any) -> str | None:
    """What a column is called; text is the name of one."""
    name = column if isinstance(column, str) else getattr(column, "name", None)
    return name if isinstance(name, str) and name else None
