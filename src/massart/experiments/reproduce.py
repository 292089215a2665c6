"""From experiments to a folder: trials, tables, pictures, times, a manifest and a page.

For a figure ``NAME`` the folder holds ``NAME.jsonl`` (the journal), ``NAME.csv`` (one row a trial; the same bytes
however often the run was killed, and for any number of jobs), ``NAME-summary.csv``, ``NAME.svg`` and ``NAME.png``; for
all figures together ``times.csv``, ``manifest.json`` and ``index.html``, to which a later run adds.
"""

from __future__ import annotations

import hashlib
import importlib.util
import json
import platform
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cache, partial
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from statistics import median
from typing import Any

import massart
from massart.experiments import drawing, page
from massart.experiments.experiment import Experiment, Row, Task, TaskOutcome
from massart.experiments.figure_1 import Figure1a, Figure1b
from massart.experiments.figure_2a import Figure2a
from massart.experiments.figure_2b import Figure2b, find
from massart.experiments.phase import PhaseLinear, PhaseReLU
from massart.experiments.running import run_tasks, with_journal
from massart.rows import Callback, files, silent

FIGURES: dict[str, tuple[Experiment, ...]] = {
    "fig1a": (Figure1a(),),
    "fig1b": (Figure1b(),),
    "fig2a": (Figure2a(),),
    "fig2b": (Figure2b(),),
    "phase": (PhaseLinear(), PhaseReLU()),
}
"""What the command line offers."""

ALL = "all"
MANIFEST = "manifest.json"
TIME_COLUMNS = ("figure", "cell", "method", "trials", "median_seconds")


def choose(names: Sequence[str], data: Path | None, out: Path) -> list[Experiment]:
    """Return the experiments of these figures, each once; the data of Figure 2(b) are looked for, and checked.

    ValueError for a name that no figure has, and for data that cannot be had or are not the right ones.
    """
    for name in names:
        if name not in (*FIGURES, ALL):
            raise ValueError(f"there is no figure {name!r}: choose from {', '.join((*FIGURES, ALL))}")
    wanted = [name for name in FIGURES if name in names or ALL in names]
    if data is not None and "fig2b" not in wanted:
        raise ValueError(f"--data is for fig2b, which is not among {', '.join(wanted)}")
    return [
        replace(experiment, data=find(data, out)) if isinstance(experiment, Figure2b) else experiment
        for name in wanted
        for experiment in FIGURES[name]
    ]


def prepare(out: Path) -> None:
    """Refuse, before any work is done, what would fail after it: ValueError names the option."""
    if importlib.util.find_spec("matplotlib") is None:
        raise ValueError("figures need matplotlib: install massart[plot]")
    try:
        out.mkdir(parents=True, exist_ok=True)
        files.write(out / ".writable", b"")
        (out / ".writable").unlink()
    except OSError as error:
        raise ValueError(f"--out {out} cannot be written to: {error.strerror}") from error


def reproduce(
    experiment: Experiment,
    out: Path,
    *,
    trials: int,
    seed: int = 0,
    jobs: int = 1,
    command: str = "",
    callback: Callback = silent,
) -> None:
    """Run the trials of one figure that are not in its journal, and write its files into a folder that exists.

    An expensive method may take fewer `trials`, as its `Entrant` says; results do not depend on `jobs`, the number of
    processes; `callback` is called with the number of trials that are left, once others are safe on the disk.
    """
    code = {"versions": versions(), "code": code_digest()}
    run = name_of({"settings": experiment.settings(), "seed": seed, **code})
    tasks = experiment.tasks(trials)
    attempts = partial(run_tasks, experiment, seed, jobs=jobs)
    # Every method and cell advances at the same rate, so that the share of the trials that are done is about that of
    # the time, though methods differ by a factor of 1,000.
    most = {entrant.method: entrant.trials(trials) for entrant in experiment.entrants}
    evenly = sorted(tasks, key=lambda task: (task.trial + 0.5) / most[task.method])
    outcomes = with_journal(experiment.name, evenly, out / f"{experiment.name}.jsonl", run, attempts, callback)
    rows = [row for task in tasks for row in experiment.rows(task, outcomes[task])]
    summary = experiment.summarize(rows)
    files.write_csv(out / f"{experiment.name}.csv", experiment.columns, rows)
    files.write_csv(out / f"{experiment.name}-summary.csv", tuple(summary[0]), summary)
    figure = experiment.plot(rows)
    for kind in ("svg", "png"):
        files.write(out / f"{experiment.name}.{kind}", drawing.encode(figure, kind))
    others = [row for row in files.read_csv(out / "times.csv") if row.get("figure") != experiment.name]
    times = sorted([*others, *_times(experiment, tasks, outcomes)], key=lambda row: str(row["figure"]))
    files.write_csv(out / "times.csv", TIME_COLUMNS, times)
    facts = {
        "title": experiment.title,
        "caption": experiment.caption,
        "comparison": experiment.comparison,
        "alt": experiment.alt,
        "command": command,
        "seed": seed,
        "trials": most,
        "left_out": experiment.left_out(),
        "config": experiment.settings(),
        **code,
    }
    figures = dict(sorted({**read_manifest(out), experiment.name: facts}.items()))
    files.write(out / MANIFEST, json.dumps({"figures": figures}, indent=2, ensure_ascii=False).encode() + b"\n")
    page.write_page(out, figures)


def read_manifest(folder: Path) -> dict[str, Any]:
    """Return what is known of each figure; nothing where there is no manifest that can be read."""
    try:
        figures = json.loads((folder / MANIFEST).read_text(encoding="utf-8"))["figures"]
    except (OSError, ValueError, KeyError, TypeError):
        return {}
    return figures if isinstance(figures, dict) else {}


def _times(experiment: Experiment, tasks: Sequence[Task], outcomes: Mapping[Task, TaskOutcome]) -> list[Row]:
    """Return the median time of each cell and method."""
    seconds: dict[tuple[str, str], list[float]] = {}
    for task in tasks:
        cell = ", ".join(f"{name}={value}" for name, value in zip(experiment.cell_columns, task.cell, strict=True))
        seconds.setdefault((cell, task.method), []).append(outcomes[task].seconds)
    return [
        {
            "figure": experiment.name,
            "cell": cell,
            "method": method,
            "trials": len(group),
            "median_seconds": float(f"{median(group):.4g}"),
        }
        for (cell, method), group in seconds.items()
    ]


# --- what results depend on ---

ONLY_SHOWS = (
    *("audit/", "cli/", "demo.py", "estimators/", "rules/", "report/", "tables/"),
    *("experiments/drawing.py", "experiments/page.py"),
)
"""Packages and modules that cannot change a trial."""


def versions(*extra: str) -> dict[str, str]:
    """Return the versions of what trials use, and of extra packages; "not installed" for those that are not."""
    found = {"massart": massart.__version__, "python": platform.python_version()}
    return found | {name: _version(name) for name in ("numpy", "scipy", "scikit-learn", "matplotlib", *extra)}


def _version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return "not installed"


@cache
def code_digest(*, whole: bool = False) -> str:
    """Return a digest of the source that a figure depends on, or of all, so that results of changed code never mix."""
    root = Path(massart.__file__).parent
    digest = hashlib.sha256()
    for path in sorted(root.rglob("*")):
        name = path.relative_to(root).as_posix()
        if path.suffix in (".py", ".R") and (whole or not name.startswith(ONLY_SHOWS)):
            digest.update(name.encode() + b"\0" + path.read_bytes() + b"\0")
    return digest.hexdigest()


def name_of(facts: dict[str, Any]) -> str:
    """Return a short name that other facts do not have."""
    return hashlib.sha256(json.dumps(facts, sort_keys=True).encode()).hexdigest()[:16]
