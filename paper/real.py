"""Tables 2 to 4 and Figures 4 and 5: real data sets with features known to be causes."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache, partial
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from icscm import ICSCMClassifier, SCMClassifier
from icscm.datasets import RealData
from icscm.exceptions import IcscmError
from paper.base import Figure, Options, Summary, Table, cross
from paper.data import LOADERS, find_present
from paper.methods import PAPER
from paper.runner import Plan, Row, Rows, Task
from paper.shares import Cells, find_mean, format_mean, group_rows, read_numbers

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as MatplotlibFigure

TITLE = "Real data (Tables 2 to 4, Figures 4 and 5)"
DESCRIPTION = "Causal features among those used, and prediction error, over random halves."

MAX_RULES = 10
# As the published code does for real data: p = 1, no stop at independence, no pruning.
_PAPER = PAPER | {"pruning": False}
LEARNERS = {
    "SCM": SCMClassifier(max_rules=MAX_RULES, n_jobs=1),
    "ICSCM": ICSCMClassifier(max_rules=MAX_RULES, stop="coverage", n_jobs=1, **_PAPER),
}
SIZES = ("samples", "variables", "causal")

# Table 2: samples, variables, causal ones. Table 4: train and test error of SCM and ICSCM.
PUBLISHED_SIZES = {
    "acs_foodstamps": (840_582, 239, 137),
    "acs_income": (1_664_500, 232, 66),
    "assistments": (2_667_776, 26, 20),
    "college_scorecard": (124_699, 118, 11),
    "diabetes_readmission": (99_493, 183, 37),
    "meps": (26_402, 3_595, 120),
}
PUBLISHED_ERRORS = {
    "acs_foodstamps": {"SCM": (0.19, 0.19), "ICSCM": (0.19, 0.19)},
    "acs_income": {"SCM": (0.27, 0.27), "ICSCM": (0.32, 0.32)},
    "assistments": {"SCM": (0.07, 0.07), "ICSCM": (0.11, 0.11)},
    "college_scorecard": {"SCM": (0.08, 0.08), "ICSCM": (0.11, 0.11)},
    "diabetes_readmission": {"SCM": (0.38, 0.38), "ICSCM": (0.46, 0.46)},
    "meps": {"SCM": (0.26, 0.27), "ICSCM": (0.33, 0.34)},
}


def make_plan(options: Options) -> Plan:
    """One task per data set at hand and random split in halves."""
    present = find_present(options.data_home)
    if not present:
        raise IcscmError(
            "no real data set was found; name the folder of the raw files with --data or the "
            "environment variable ICSCM_DATA (paper/README.md lists them)"
        )
    if options.quick:
        present = [min(present, key=lambda name: name != "heart_disease")]
    tasks = options.repeat(cross(dataset=present), full=20, what="split")
    measures = ("curve", "train error", "test error")
    columns = [f"{method}: {measure}" for method in LEARNERS for measure in measures]
    run = partial(run_task, data_home=options.data_home)
    return Plan(tasks, run, (*SIZES, *columns))


@lru_cache(maxsize=1)
def _load(name: str, data_home: Path | None) -> RealData:
    """Splits of one data set follow each other, so one is kept."""
    return LOADERS[name](data_home)


def run_task(task: Task, seed: int, data_home: Path | None = None) -> Row:
    """Both learners on one half, tested on the other."""
    data = _load(task["dataset"], data_home)
    X = data.X.to_numpy()
    n_rows, n_columns = X.shape
    order = np.random.default_rng(seed).permutation(n_rows)
    train = order[: n_rows // 2]
    test = order[n_rows // 2 :]
    is_causal = data.X.columns.isin(data.causal)

    row: Row = {"samples": n_rows, "variables": n_columns, "causal": len(data.causal)}
    for method, unfitted in LEARNERS.items():
        learner = clone(unfitted)
        learner.fit(X[train], data.y[train], environments=data.environments[train])
        row[f"{method}: curve"] = " ".join(map(str, _count_causal(learner, is_causal)))
        row[f"{method}: train error"] = 1.0 - learner.score(X[train], data.y[train])
        row[f"{method}: test error"] = 1.0 - learner.score(X[test], data.y[test])
    return row


def _count_causal(
    learner: SCMClassifier | ICSCMClassifier, is_causal: NDArray[np.bool_]
) -> list[int]:
    """Distinct causal features among the first 1, 2, .. rules; a model that ends early stays."""
    columns = [int(step.chosen.rule.feature) for step in learner.trace_.steps]
    counts = []
    for length in range(1, MAX_RULES + 1):
        causal_columns = {column for column in columns[:length] if is_causal[column]}
        counts.append(len(causal_columns))
    return counts


def summarise(rows: Rows) -> Summary:
    """Sizes, errors and curves beside the paper's."""
    cells = group_rows(rows, "dataset")
    caption_of_means = (
        "Causal features among those used as the model grows, mean and standard "
        "error over the splits; dashed: expected by chance."
    )
    caption_of_splits = "The same for every single split."
    figures = [
        Figure("real", caption_of_means, lambda: _draw(cells, single=False)),
        Figure("real-splits", caption_of_splits, lambda: _draw(cells, single=True)),
    ]
    findings = [finding for name, cell in cells.items() for finding in _find(name, cell)]
    return Summary(_make_tables(cells), figures, findings)


def _make_tables(cells: Cells) -> list[Table]:
    return [_show_sizes(cells), _show_causal(cells), _show_errors(cells)]


def _show_sizes(cells: Cells) -> Table:
    """Rows and columns of the data sets, beside the paper's."""
    lines = []
    for name, cell in cells.items():
        sizes = tuple(int(cell[0][column]) for column in SIZES)
        lines.append([name, *_format_sizes(sizes), *_format_sizes(PUBLISHED_SIZES.get(name))])
    header = _beside_paper("samples", "variables (causal)")
    return Table("real-sizes", "The data sets.", header, lines)


def _show_causal(cells: Cells) -> Table:
    """Causal columns that each method uses, beside what chance would find."""
    lines = []
    for name, cell in cells.items():
        counts = [format_mean(_read_curves(cell, method)[:, -1]) for method in LEARNERS]
        lines.append([name, *counts, f"{compute_expected(cell[0])[-1]:.2f}"])
    caption = f"Causal features among those used by models of {MAX_RULES} rules (± standard error)."
    return Table("real-causal", caption, ["data set", *LEARNERS, "by chance"], lines)


def _show_errors(cells: Cells) -> Table:
    """Train and test errors, beside the paper's."""
    lines = []
    for name, cell in cells.items():
        for position, part in enumerate(("train", "test")):
            errors = [read_numbers(cell, f"{method}: {part} error") for method in LEARNERS]
            ours = [f"{values.mean():.3f} ({values.std():.4f})" for values in errors]
            published = [_format_error(name, method, position) for method in LEARNERS]
            lines.append([name, part, *ours, *published])
    caption = "Prediction error (standard deviation over the splits)."
    return Table("real-errors", caption, _beside_paper("", *LEARNERS), lines)


def _beside_paper(*columns: str) -> list[str]:
    """A header: our columns, then the paper's."""
    published = [f"paper: {column}" for column in columns if column]
    return ["data set", *columns, *published]


def _format_sizes(sizes: tuple[int, ...] | None) -> list[str]:
    if sizes is None:
        return ["-", "-"]
    n_samples, n_variables, n_causal = sizes
    return [f"{n_samples:,}", f"{n_variables:,} ({n_causal})"]


def _format_error(name: str, method: str, position: int) -> str:
    if name not in PUBLISHED_ERRORS:
        return "-"
    return f"{PUBLISHED_ERRORS[name][method][position]:.2f}"


def _find(name: str, cell: Rows) -> Iterator[str]:
    scm, icscm = (_read_curves(cell, method)[:, -1].mean() for method in LEARNERS)
    chance = compute_expected(cell[0])[-1]
    yield (
        f"{name}: {icscm:.1f} causal features for ICSCM, {scm:.1f} for SCM, {chance:.1f} by chance."
    )
    if name in PUBLISHED_ERRORS:
        texts = [
            f"{method} {find_mean(cell, f'{method}: test error'):.3f} (paper {paper:.2f})"
            for method, (_, paper) in PUBLISHED_ERRORS[name].items()
        ]
        yield f"{name}: test error {', '.join(texts)}."


def compute_expected(row: Row) -> NDArray[np.float64]:
    """Causal features expected among 1, 2, .. drawn without replacement (hypergeometric mean)."""
    n_variables, n_causal = int(row["variables"]), int(row["causal"])
    drawn = np.minimum(np.arange(1, MAX_RULES + 1), n_variables)
    return drawn * n_causal / n_variables


def _read_curves(cell: Rows, method: str) -> NDArray[np.float64]:
    return np.array([list(map(float, row[f"{method}: curve"].split())) for row in cell])


def _draw(cells: Cells, *, single: bool) -> MatplotlibFigure:
    from matplotlib.figure import Figure as NewFigure

    n_columns = min(3, len(cells))
    n_rows = -(-len(cells) // n_columns)
    figure = NewFigure(figsize=(3.6 * n_columns, 3.0 * n_rows), layout="constrained")
    grid = figure.subplots(n_rows, n_columns, squeeze=False).ravel()
    for axes, (name, cell) in zip(grid, cells.items(), strict=False):
        _draw_curves(axes, cell, single=single)
        axes.set(title=name, xlabel="rules", ylabel="causal features")
    for axes in grid[len(cells) :]:
        axes.set_axis_off()
    grid[0].legend()
    return figure


def _draw_curves(axes: Axes, cell: Rows, *, single: bool) -> None:
    lengths = np.arange(1, MAX_RULES + 1)
    for method, color in zip(LEARNERS, ("tab:blue", "tab:orange"), strict=True):
        curves = _read_curves(cell, method)
        if single:
            # a little apart, or equal curves would hide each other
            shifts = np.linspace(-0.15, 0.15, len(curves))
            shifted = (curves + shifts[:, np.newaxis]).T
            labels = [method, *[None] * (len(curves) - 1)]  # one in the legend
            axes.plot(lengths, shifted, color=color, alpha=0.4, linewidth=0.8, label=labels)
            continue
        mean = curves.mean(axis=0)
        error = curves.std(axis=0) / np.sqrt(len(curves))
        axes.plot(lengths, mean, color=color, label=method)
        axes.fill_between(lengths, mean - error, mean + error, color=color, alpha=0.25)
    axes.plot(lengths, compute_expected(cell[0]), "--", color="gray", label="by chance")
