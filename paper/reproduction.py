"""Run experiments one after the other and write their results."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from functools import partial
from math import inf
from pathlib import Path
from time import monotonic
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from icscm.exceptions import IcscmError, IcscmWarning
from paper import NAMES, SCREENS, find_experiment
from paper.base import Experiment, Options
from paper.output import add_caveat, write_page, write_summary
from paper.runner import Plan, Row, run_plan


def reproduce(
    names: Sequence[str],
    out: Path,
    *,
    runs: int | None = None,
    seed: int = 0,
    jobs: int = 1,
    quick: bool = False,
    data_home: Path | None = None,
    time_limit: float = inf,
    **more: Any,
) -> Path:
    """Run the named experiments (or all) into a folder; return the page that shows them.

    After `time_limit` seconds tasks that are not done are given up, and what there is is shown.
    """
    until = monotonic() + time_limit
    experiments = _find_experiments(names)
    options = Options(runs=runs, seed=seed, quick=quick, data_home=data_home, **more)
    plans = _make_plans(experiments, options, may_skip="all" in names)
    out.mkdir(parents=True, exist_ok=True)

    sections = []
    for experiment, plan in plans:
        rows = _run_with_progress(experiment, plan, out, n_jobs=jobs, until=until)
        if len(rows) < len(plan.tasks):
            print(f"{experiment.name}: {len(rows):,} of {len(plan.tasks):,} tasks in the time")
        if not rows:
            continue
        summary = experiment.summarise(rows)
        if quick:
            summary = add_caveat(summary)
        write_summary(summary, out)
        sections.append((experiment, summary, len(rows)))
    command = " ".join(["python -m paper", *names, *_describe_options(options)])
    return write_page(sections, out, command, is_quick=quick)


def _find_experiments(names: Sequence[str]) -> list[Experiment]:
    """The experiments of these names, each once; "all" stands for several."""
    unknown = [name for name in names if name not in (*NAMES, *SCREENS, "all")]
    if unknown:
        raise IcscmError(
            f"there is no experiment called {unknown[0]!r}; choose from "
            f"{', '.join((*NAMES, *SCREENS))} or all"
        )
    wanted: list[str] = []
    for name in names:
        wanted += NAMES if name == "all" else (name,)
    return [find_experiment(name) for name in dict.fromkeys(wanted)]


def _make_plans(
    experiments: Sequence[Experiment], options: Options, *, may_skip: bool
) -> list[tuple[Experiment, Plan]]:
    """Plan everything before anything runs; of all, skip with a warning what cannot run."""
    plans = []
    for experiment in experiments:
        try:
            plans.append((experiment, experiment.make_plan(options)))
        except IcscmError as error:
            if not may_skip:
                raise
            warnings.warn(f"{experiment.name} is skipped: {error}", IcscmWarning, stacklevel=3)
    return plans


def _run_with_progress(
    experiment: Experiment, plan: Plan, out: Path, *, n_jobs: int, until: float
) -> list[Row]:
    """Run the plan into a file of the folder, with a bar on a terminal."""
    remaining = TimeRemainingColumn(elapsed_when_finished=True)
    columns = (TextColumn("{task.description:16}"), BarColumn(), MofNCompleteColumn(), remaining)
    console = Console(stderr=True)
    with Progress(*columns, console=console, disable=not console.is_terminal) as progress:
        bar = progress.add_task(experiment.name, total=len(plan.tasks))
        return run_plan(
            plan,
            out / f"{experiment.name}.csv",
            n_jobs=1 if experiment.is_serial else n_jobs,
            on_done=partial(progress.advance, bar),
            until=until,
        )


def _describe_options(options: Options) -> list[str]:
    """The options that change the results, as the command had them."""
    words = []
    if options.runs is not None:
        words.append(f"--runs {options.runs}")
    if options.seed:
        words.append(f"--seed {options.seed}")
    if options.quick:
        words.append("--quick")
    return words
