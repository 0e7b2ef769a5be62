"""Rows that can be counted, and what is known of their table: the result of opening a source."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, Self, TypeVar

from icscm._constants import QUANTILE_SAMPLE
from icscm._types import Array
from icscm.engine.counts import RowSource
from icscm.engine.survey import Survey
from icscm.engine.survey_binning import (
    describe_survey,
    find_empty_surveyed,
    find_suspicious_surveyed,
)
from icscm.exceptions import IcscmError, Parameter
from icscm.tables.coded import CodedTable
from icscm.tables.suspicion import EMPTY, drop_columns

# A remark on tables with columns of many values.
SAMPLED = (
    f"Thresholds of columns with many values are quantiles of a sample of {QUANTILE_SAMPLE:,} "
    "rows, picked by a hash of their content."
)

Source = TypeVar("Source", bound=RowSource)


@dataclass(frozen=True)
class BinningConfig:
    """The parameters of a learner that decide how a table is read and binned.

    Parameters
    ----------
    max_thresholds : int, optional
        How many thresholds a column may have; None for every value.
    n_jobs : int, optional
        The number of threads.
    device : {"cpu", "cuda", "auto"}
        Where rows are counted.
    drop_suspicious : bool
        Whether columns that look like identifiers, constants, and copies of the outcome or the
        environment are dropped. They are for every learner; `InvariantFeatureSelector`, which must
        judge each column of X, keeps them.

    Examples
    --------
    >>> from icscm import ICSCMClassifier
    >>> from icscm.sources import BinningConfig
    >>> ICSCMClassifier(max_thresholds=20).prepare() == BinningConfig(max_thresholds=20)
    True
    """

    max_thresholds: int | None = 50
    n_jobs: int | None = None
    device: str = "cpu"
    drop_suspicious: bool = True


def describe_columns(
    survey: Survey, names: tuple[str, ...] | None, config: BinningConfig, *, has_types: bool = True
) -> CodedTable:
    """Describe the columns of a surveyed table, without those that rules should not use.

    Arrays, whose columns have no types of their own, come from users who prepared them.
    """
    table = describe_survey(survey, names)
    if not has_types or not config.drop_suspicious:
        empty = dict.fromkeys(find_empty_surveyed(survey, table), EMPTY)
        return drop_columns(table, {**table.dropped, **empty})
    return drop_columns(table, find_suspicious_surveyed(survey, table))


@dataclass(frozen=True)
class Countable(Generic[Source]):
    """Rows made countable; an estimator's `fit_counts` turns it into fitted state.

    Use it in a `with` statement, or `close` it: some sources hold a temporary file.

    Parameters
    ----------
    source : RowSource
        What counts the rows.
    table : CodedTable, optional
        The columns, without rows; None where they are too many to describe.
    names : tuple of str, optional
        The names of the columns; None where they go by their positions.
    classes : array of shape (2,)
        The two classes, the positive one last.
    n_features : int
        The number of columns.
    has_environments : bool
        Whether environments were given.
    close : callable
        Releases the resources of the source.
    config : BinningConfig
        How the rows were opened; a learner must have the same settings.
    is_binned : bool
        Whether `config` decided on the bins; False where they were fixed before.
    is_part : bool
        Whether these are a fold or a subsample: what only a report of all rows shows is omitted.

    Examples
    --------
    >>> from icscm import ICSCMClassifier
    >>> from icscm.datasets import make_conjunction
    >>> data = make_conjunction(random_state=1)

    >>> from icscm.sources import open_memory
    >>> with open_memory(data.X, data.y, environments=data.environments) as countable:
    ...     print(countable.n_features, countable.classes)
    ...     print(ICSCMClassifier().fit_counts(countable).model_)
    6 [0 1]
    A1 > 0 and A2 > 0
    """

    source: Source
    table: CodedTable | None
    names: tuple[str, ...] | None
    classes: Array
    n_features: int
    has_environments: bool = True
    close: Callable[[], None] = lambda: None  # nothing is held
    config: BinningConfig = BinningConfig()
    is_binned: bool = True
    is_part: bool = False

    def check_config(self, learner: str, config: BinningConfig) -> None:
        """Raise if the rows were opened with other settings than those of a learner.

        Parameters
        ----------
        learner : str
            Its name.
        config : BinningConfig
            The settings of the learner.

        Raises
        ------
        IcscmError
            If they were; the message names the setting.
        """
        opened = self.config
        if self.is_binned and config.max_thresholds != opened.max_thresholds:
            raise _make_config_error(
                learner,
                wanted=Parameter("max_thresholds", config.max_thresholds),
                opened=Parameter("max_thresholds", opened.max_thresholds),
            )
        if config.device not in (opened.device, "auto"):
            raise _make_config_error(
                learner,
                wanted=Parameter("device", config.device),
                opened=Parameter("device", opened.device),
            )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()


def _make_config_error(learner: str, *, wanted: Parameter, opened: Parameter) -> IcscmError:
    """Make the error for a learner and rows with different settings."""
    advice = "; open them with preparation=learner.prepare(), or give it that value"
    return IcscmError(
        f"{learner} has ", wanted, ", but these samples were opened with ", opened, advice
    )
