"""Put what candidates do on four real tables into docs/real-data.md.

    PYTHONPATH=. python docs/write_real_data.py [FOLDER]

FOLDER holds the raw data files, by default that of ICSCM_DATA. Everything between the marks is
replaced; no number there is typed by hand. On a busy machine OMP_NUM_THREADS=1 spares boosting
from waiting for itself. About ten minutes on two cores.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from dataclasses import replace
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np

from icscm import ICSCMClassifier, __version__, compare
from icscm.validation.candidates import make_candidates
from icscm.validation.comparison import Comparison
from paper.data import TABLES as STUDIED

PAGE = Path(__file__).parent / "real-data.md"
Table = tuple[Any, Any, Any]

# As the search of the paper's code is; `Before` adds what an empty conjunction predicted.
PAPER: dict[str, Any] = {"pruning": "always", "min_replication": 0, "min_utility": None}
# Ours as the defaults are now; of the others in `make_all` those that are not pruned.
OURS, PLAIN = [name for name in make_candidates() if "scm" in name], ", no pruning"
N_DRAWS = 5


class Before(ICSCMClassifier):
    """ICSCM as it was: nothing found predicted the positive class."""

    def predict(self, X: Any) -> Any:
        """The class of each row."""
        found = super().predict(X)
        if not self.model_.rules and self.model_type == "conjunction":
            found[:] = self.classes_[1]
        return found


MEASURES = "error", "balanced_accuracy", "auc"


def make_all() -> dict[str, Any]:
    """The candidates of `icscm compare`, and what shows that the defaults became better."""
    found = make_candidates()
    for name in ("baseline", "score"):  # `compare` adds the first; transfer.md has the second
        del found[name]
    found["icscm, before"] = Before(**PAPER)
    found["icscm-or, before"] = Before(**PAPER, model_type="disjunction")
    found["icscm-exhaustive, before"] = Before(**PAPER, search="exhaustive")
    found["icscm, no pruning"] = ICSCMClassifier(pruning=False)
    found["icscm-or, no pruning"] = ICSCMClassifier(pruning=False, model_type="disjunction")
    return found


TABLES: dict[str, Any] = {title: load for title, (_, load) in STUDIED.items()}


def describe(title: str, X: Any, found: Comparison) -> Iterator[str]:
    """A table and what it says."""
    held_out = ", ".join(map(str, found.environments))
    text = (
        f"{found.n_rows:,} rows, {X.shape[1]} columns, {found.n_positive / found.n_rows:.1%} "
        f"positive. Held out in turn: {held_out}."
    )
    if found.kept_in:
        small = ", ".join(f"{name} ({n} rows)" for name, (n, _) in found.kept_in.items())
        text += f" Too small for that: {small}."
    if found.dropped:
        text += f" Columns dropped for all: {', '.join(found.dropped)}."
    yield f"### {title}\n\n{text}\n\n{make_table(found)}"
    now = tuple(each for each in found.candidates if "," not in each.name)
    yield "\n".join(f"- {sentence}" for sentence in replace(found, candidates=now).conclusions)
    names: dict[str, list[str]] = {}
    for each in now:
        if each.model is not None:
            names.setdefault(each.model, []).append(each.name)
    models = [f"- {', '.join(names)}: {model}" for model, names in names.items()]
    yield "Rules learned from all rows:\n\n" + "\n".join(models)


def make_table(found: Comparison) -> str:
    """Error, balanced accuracy and AUC, by rows and by environment, and the worst error."""
    lines = [
        "| candidate | error | balanced | AUC | held out: error | worst | balanced | AUC | fit s |",
        "|---|---:|---:|---:|---:|---:|---:|---:|---:|",
    ]
    for each in found.candidates:
        cells = [
            *(each.rows[name] for name in MEASURES),
            each.environments["error"],
            each.worst["error"],
            each.environments["balanced_accuracy"],
            each.environments["auc"],
        ]
        shown = ["-" if cell is None else f"{cell:.3f}" for cell in cells]
        lines.append(f"| {' | '.join([each.name, *shown, f'{each.seconds:.2f}'])} |")
    return "\n".join(lines)


def hold_against_goals(title: str, table: Table, found: Comparison) -> Iterator[str]:
    """Whether a default of ours is worse than the baseline, and what pruning costs."""
    ours = {name: each for name, each in make_all().items() if name in OURS or PLAIN in name}
    without = {"min_rows": len(table[1]) + 1}  # environments are not held out again
    draws = [
        compare(*table[:2], environments=table[2], candidates=ours, random_state=seed, **without)
        for seed in range(N_DRAWS)
    ]
    worse = []
    for i, name in enumerate(ours, start=1):
        losses = [-100 * draw.candidates[i].gain[0] for draw in draws]  # type: ignore[index]
        if name in OURS and max(losses) > 0.005:
            worse.append(f"{name} ({np.mean(losses):+.2f} on average, {max(losses):+.2f} at most)")
    listed = ", ".join(worse) or "none of ours"
    yield f"- **{title}.** Worse than the majority-class baseline by rows: {listed}."
    baseline, *others = found.candidates
    errors = {e.name: e.environments["error"] - baseline.environments["error"] for e in others}
    worse = [f"{name} ({100 * errors[name]:+.1f})" for name in OURS if errors[name] > 5e-4]
    yield f"  Leave-one-environment-out: {', '.join(worse) or 'none of ours'}."
    costs = [
        max(compute_cost(draw, name, "rows") for draw in draws) for name in ("icscm", "icscm-or")
    ]
    costs += [compute_cost(found, name, "environments") for name in ("icscm", "icscm-or")]
    yield f"  Most that pruning adds: {max(costs):+.1f}."
    said = [each.name for each in found.candidates if (each.model or "").startswith("no rule")]
    yield f"  Found nothing in all rows: {', '.join(n for n in said if n in OURS) or 'none'}."


def compute_cost(found: Comparison, name: str, way: str) -> float:
    """By how many points a pruned model errs more."""
    by_name = {each.name: getattr(each, way)["error"] for each in found.candidates}
    return 100 * float(by_name[name] - by_name[name + PLAIN])


def list_changes(results: dict[str, Comparison]) -> Iterator[str]:
    """What the defaults were and are, by rows."""
    yield "| data | candidate | error | balanced | AUC |\n|---|---|---:|---:|---:|"
    for title, found in results.items():
        by_name = {each.name: [each.rows[m] for m in MEASURES] for each in found.candidates}
        for name in ("icscm", "icscm-or", "icscm-exhaustive"):
            pairs = zip(by_name[f"{name}, before"], by_name[name], strict=True)
            cells = " | ".join(f"{before:.3f} → {now:.3f}" for before, now in pairs)
            yield f"| {title} | {name} | {cells} |"


def main(folder: str | None = None) -> None:
    """Compare on every table, then replace what the page says."""
    results, sections, goals = {}, [], []
    for title, load in TABLES.items():
        print(title, flush=True)
        table = load(folder)[:3]
        results[title] = found = compare(*table[:2], environments=table[2], candidates=make_all())
        sections += describe(title, table[0], found)
        goals += hold_against_goals(title, table, found)
    parts = [
        f"icscm {__version__}, {date.today():%d %B %Y}.",
        "### Results against the goals",
        f"In points of error; by rows in {N_DRAWS} draws of the folds.",
        "\n".join(goals),
        "### Before and after, by rows",
        "\n".join(list_changes(results)),
    ]
    text = "\n\n".join([*parts, *sections])
    marks = r"(<!-- results -->\n).*(\n<!-- end of results -->)"
    page = PAGE.read_text(encoding="utf-8")
    page = re.sub(marks, lambda found: f"{found[1]}\n{text}\n{found[2]}", page, flags=re.S)
    PAGE.write_text(page, encoding="utf-8")


if __name__ == "__main__":
    main(*sys.argv[1:])
