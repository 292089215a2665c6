"""Laws of the experiments: the same numbers whatever happens on the way, files that are whole, pictures from rows."""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import replace
from html import escape
from html.parser import HTMLParser
from pathlib import Path
from urllib.error import URLError

import numpy as np
import pytest

pytest.importorskip("matplotlib", reason="matplotlib is not installed: figures are optional")

import massart
from massart.experiments import drawing, figure_2b
from massart.experiments.experiment import Entrant, Experiment, Row, Task, TaskOutcome, stream, summarize
from massart.experiments.figure_1 import Figure1a, Figure1b
from massart.experiments.figure_2a import Figure2a
from massart.experiments.figure_2b import Figure2b
from massart.experiments.phase import PhaseLinear, PhaseReLU
from massart.experiments.reproduce import FIGURES, ONLY_SHOWS, choose, code_digest, read_manifest, reproduce
from massart.experiments.running import read_journal, with_journal
from massart.rows import files, silent

PAPER_AND_OURS = (
    Entrant("naive_l1", published=True),
    Entrant("algorithm_1", published=True),
    Entrant("algorithm_1_effective"),
    Entrant("massart", most_trials=3),
)
TINY_1A = Figure1a(d=5, m=30, etas=(0.1, 0.3), entrants=PAPER_AND_OURS)
TINY_1B = Figure1b(d=5, eta=0.2, sizes=(20, 40), entrants=PAPER_AND_OURS)
TINY_2A = Figure2a(d=5, m=60, steps=25, entrants=Figure2a().entrants[:6])
TINY_PHASES = tuple(kind(d=3, ratios=(8.0, 12.0), etas=(0.1,)) for kind in (PhaseLinear, PhaseReLU))
ALL = tuple(experiment for experiments in FIGURES.values() for experiment in experiments)

REPRODUCE = """
from pathlib import Path

from massart.experiments.experiment import Entrant
from massart.experiments.figure_1 import Figure1a
from massart.experiments.reproduce import reproduce

if __name__ == "__main__":
    entrants = {entrants!r}
    tiny = Figure1a(d=5, m=30, etas=(0.1, 0.3), entrants=entrants)
    reproduce(tiny, Path({out!r}), trials={trials}, seed=5, jobs=2, callback=lambda p: print(p.step, flush=True))
"""
TRIALS = 30


def rows_of(experiment: Experiment, trials: int, seed: int = 0) -> list[Row]:
    tasks = experiment.tasks(trials)
    return [row for task in tasks for row in experiment.rows(task, experiment.attempt(seed, task))]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("whole")
    reproduce(TINY_1A, out, trials=TRIALS, seed=5, jobs=1, command="massart reproduce fig1a")
    return out


@pytest.mark.full
@pytest.mark.slow
def test_results_do_not_depend_on_the_number_of_jobs(folder: Path, tmp_path: Path) -> None:
    reproduce(TINY_1A, tmp_path, trials=TRIALS, seed=5, jobs=2, command="massart reproduce fig1a")
    for name in ("fig1a.csv", "fig1a-summary.csv", "fig1a.svg", "fig1a.png", "manifest.json"):
        assert (tmp_path / name).read_bytes() == (folder / name).read_bytes(), name


@pytest.mark.full
@pytest.mark.slow
def test_a_run_that_is_killed_again_and_again_ends_with_the_same_bytes(folder: Path, tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(REPRODUCE.format(entrants=PAPER_AND_OURS, out=str(tmp_path), trials=TRIALS))
    run = json.loads((folder / "fig1a.jsonl").read_text(encoding="utf-8").splitlines()[0])["run"]
    draw = random.Random(os.getpid())
    killed = 0
    for _ in range(2):
        with subprocess.Popen([sys.executable, program], stdout=subprocess.PIPE, text=True) as process:
            assert process.stdout is not None
            reports = [int(process.stdout.readline()) for _ in range(2)]  # the journal is read; trials are done
            time.sleep(draw.uniform(0.0, 0.2))
            process.send_signal(signal.SIGKILL)
            reports += [int(line) for line in process.stdout if line.endswith("\n")]
        killed += process.returncode == -signal.SIGKILL
        assert len(read_journal(tmp_path / "fig1a.jsonl", run)) >= max(reports)
    assert killed
    subprocess.run([sys.executable, program], check=True, capture_output=True)
    assert (tmp_path / "fig1a.csv").read_bytes() == (folder / "fig1a.csv").read_bytes()


@pytest.mark.slow
def test_more_trials_keep_those_that_are_done(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "fig1a.jsonl").write_bytes((folder / "fig1a.jsonl").read_bytes())
    steps: list[float] = []
    reproduce(TINY_1A, tmp_path, trials=7, seed=5, callback=lambda progress: steps.append(progress.residual))
    assert steps == [0]
    assert len(files.read_csv(tmp_path / "fig1a.csv")) == 2 * (7 + 7 + 7 + 3)


@pytest.mark.slow
def test_methods_advance_together_so_that_trials_tell_the_time(folder: Path) -> None:
    journal = [json.loads(line) for line in (folder / "fig1a.jsonl").read_text(encoding="utf-8").splitlines()]
    half = [(record["method"], record["cell"][0]) for record in journal[: len(journal) // 2]]
    for eta in TINY_1A.etas:
        for entrant in PAPER_AND_OURS:
            done = half.count((entrant.method, eta))
            assert abs(done - entrant.trials(TRIALS) / 2) <= 1


@pytest.mark.parametrize("experiment", ALL, ids=lambda e: e.name)
def test_the_documentation_says_where_a_figure_differs_from_the_publication(experiment: Experiment) -> None:
    text = (Path(__file__).parent.parent / "docs" / "experiments.rst").read_text(encoding="utf-8")
    assert experiment.comparison in text
    assert "publication" in experiment.comparison


def test_a_journal_keeps_whole_lines_of_its_run_and_only_the_others_are_attempted(tmp_path: Path) -> None:
    path = tmp_path / "journal.jsonl"
    tasks = [Task("fig1a", (0.1,), "massart", trial) for trial in range(3)]
    outcome = TaskOutcome(({"relative_error": 0.5, "recovered": 0},), 0.25)
    attempted: list[list[Task]] = []

    def attempts(todo: Sequence[Task]) -> list[tuple[Task, TaskOutcome]]:
        attempted.append(list(todo))
        return [(task, outcome) for task in todo]

    assert with_journal("", tasks, path, "a", attempts, silent) == dict.fromkeys(tasks, outcome)
    whole = path.read_bytes()
    for end in range(len(whole)):
        path.write_bytes(whole[:end])
        assert list(read_journal(path, "a")) == tasks[: whole[: end + 1].count(b"\n")]
    assert with_journal("", tasks, path, "a", attempts, silent) == dict.fromkeys(tasks, outcome)  # one byte is missing
    path.write_bytes(b"\0\xff\n[]\n3\n{}\n" + whole[:-9])
    assert with_journal("", tasks, path, "a", attempts, silent) == dict.fromkeys(tasks, outcome)
    assert list(read_journal(path, "a")) == tasks
    assert read_journal(path, "another run") == {}
    assert attempted == [tasks, tasks[2:]]


def test_methods_see_the_same_table_and_draw_their_own_numbers() -> None:
    seen = {}

    class Looking(Figure1a):
        def run(self, task: Task, data: np.random.Generator, rng: np.random.Generator) -> TaskOutcome:
            seen[task.method, task.trial] = float(data.random()), float(rng.random())
            return TaskOutcome((), 0.0)

    experiment = Looking(entrants=PAPER_AND_OURS)
    for task in experiment.tasks(2)[: 4 * 2]:
        experiment.attempt(0, task)
    assert seen["naive_l1", 0][0] == seen["massart", 0][0] != seen["massart", 1][0]
    assert len({own for _, own in seen.values()}) == len(seen)


def test_streams_depend_on_seed_and_key_alone() -> None:
    draws = {stream(seed, *key).random() for seed in (0, 1) for key in ((1,), (2,), (1, 2), ("1",))}
    assert len(draws) == 8
    assert stream(3, "fig1a", (0.1,), 4).random() == stream(3, "fig1a", (0.1,), 4).random()


@pytest.mark.slow
@pytest.mark.parametrize("experiment", [TINY_1A, TINY_1B, TINY_2A, *TINY_PHASES], ids=lambda e: e.name)
def test_every_figure_runs_and_is_drawn_from_its_rows(experiment: Experiment) -> None:
    rows = rows_of(experiment, 1)
    assert all(tuple(row) == experiment.columns for row in rows)
    figure = experiment.plot(rows)
    assert drawing.encode(figure, "svg").startswith(b"<?xml")
    summary = experiment.summarize(rows)
    methods = {entrant.method for entrant in experiment.entrants}
    assert {row["method"] for row in summary} == methods


@pytest.mark.slow
@pytest.mark.parametrize("experiment", ALL, ids=lambda e: e.name)
def test_figures_are_drawn_from_rows_without_running_anything(
    experiment: Experiment, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> TaskOutcome:
        raise AssertionError("a plot function runs nothing")

    values = {"relative_error": 0.5, "recovered": 1, "distance": 0.25, "share_within_margin": 0.5, "iteration": 10}
    outcome = TaskOutcome(({name: values[name] for name in experiment.value_columns},), 1.0)
    monkeypatch.setattr(type(experiment), "run", refuse)
    rows = [
        row
        for cell in experiment.cells()
        for entrant in experiment.entrants
        for row in experiment.rows(Task(experiment.name, cell, entrant.method, 0), outcome)
    ]
    picture = drawing.encode(experiment.plot(rows), "svg")
    assert picture.startswith(b"<?xml")
    assert b"<dc:date>" not in picture
    assert all(drawing.name_of(entrant.method) != entrant.method for entrant in experiment.entrants)


def test_a_summary_is_a_mean_with_two_standard_deviations() -> None:
    rows = [{"eta": 0.1, "method": "massart", "trial": i, "recovered": int(i < 3)} for i in range(4)]
    (rate,) = summarize(rows, ("eta",), "recovered", of_the_mean=True)
    assert rate["trials"] == 4
    assert rate["mean"] == 0.75
    assert rate["two_standard_deviations"] == pytest.approx(2 * np.sqrt(0.75 * 0.25 / 4))
    (spread,) = summarize(rows, ("eta",), "recovered", of_the_mean=False)
    assert spread["two_standard_deviations"] == pytest.approx(2 * np.sqrt(0.75 * 0.25))
    nothing = [{"eta": 0.1, "method": "massart", "trial": 0, "distance": float("nan")}]
    assert summarize(nothing, ("eta",), "distance", of_the_mean=True)[0]["trials"] == 0


class _Page(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.seen: list[tuple[str, dict[str, str | None]]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen.append((tag, dict(attrs)))


@pytest.mark.slow
def test_the_page_links_to_files_that_exist_and_describes_its_pictures(folder: Path) -> None:
    html = (folder / "index.html").read_text(encoding="utf-8")
    parsed = _Page()
    parsed.feed(html)
    links = [attrs["href"] for tag, attrs in parsed.seen if tag == "a"]
    assert "manifest.json" in links
    assert all(link and (link.startswith("#") or (folder / link).exists()) for link in links)
    (picture,) = [attrs for tag, attrs in parsed.seen if tag == "img"]
    assert (folder / str(picture["src"])).exists()
    assert "massart (default) 1" in str(picture["alt"])
    assert "massart reproduce fig1a" in html
    assert escape(TINY_1A.comparison) in html


@pytest.mark.slow
def test_the_manifest_says_how_figures_were_made_and_later_runs_add_to_it(folder: Path, tmp_path: Path) -> None:
    facts = read_manifest(folder)["fig1a"]
    assert facts["seed"] == 5
    assert facts["trials"] == {"naive_l1": TRIALS, "algorithm_1": TRIALS, "algorithm_1_effective": TRIALS, "massart": 3}
    assert facts["config"]["etas"] == [0.1, 0.3]
    assert set(facts["versions"]) >= {"massart", "numpy", "scipy", "python"}
    shutil.copytree(folder, tmp_path, dirs_exist_ok=True)
    once = replace(TINY_1B, sizes=(20,), entrants=PAPER_AND_OURS[:1])
    reproduce(once, tmp_path, trials=1)
    assert list(read_manifest(tmp_path)) == ["fig1a", "fig1b"]
    assert read_manifest(tmp_path)["fig1a"] == facts
    (tmp_path / "manifest.json").write_text("{")
    assert read_manifest(tmp_path) == {}
    reproduce(once, tmp_path, trials=1)
    assert list(read_manifest(tmp_path)) == ["fig1b"]


@pytest.mark.slow
def test_times_are_apart_from_results(folder: Path) -> None:
    times = files.read_csv(folder / "times.csv")
    assert {(row["cell"], row["method"]) for row in times} == {
        (f"eta={eta}", entrant.method) for eta in (0.1, 0.3) for entrant in PAPER_AND_OURS
    }
    assert all(float(row["median_seconds"]) > 0 for row in times)
    assert "seconds" not in (folder / "fig1a.csv").read_text(encoding="utf-8")


def test_only_code_that_can_change_a_trial_names_a_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source = Path(massart.__file__).parent
    copy = tmp_path / "massart"
    shutil.copytree(source, copy, ignore=shutil.ignore_patterns("__pycache__"))
    monkeypatch.setattr(massart, "__file__", str(copy / "__init__.py"))
    digest = code_digest.__wrapped__
    before = digest()
    for name in ONLY_SHOWS:
        assert (source / name).exists()
        shown = next((copy / name).glob("*.py")) if name.endswith("/") else copy / name
        shown.write_text(shown.read_text(encoding="utf-8") + "\n# another message\n", encoding="utf-8")
        assert digest() == before
    (copy / "linear.py").write_text("# another algorithm", encoding="utf-8")
    assert digest() != before


@pytest.mark.slow
def test_no_trial_imports_what_only_shows() -> None:
    shows = [name.removesuffix("/").removesuffix(".py").replace("/", ".") for name in ONLY_SHOWS[:-2]]
    program = (
        "import sys, numpy as np; from massart.experiments import reproduce; "
        "from massart.experiments.baselines import LINEAR; X = np.random.default_rng(0).standard_normal((60, 2)); "
        "LINEAR['algorithm_1'].fit(X, X @ [1.0, 2.0], np.random.default_rng(0)); "
        f"print([name for name in {shows} if f'massart.{{name}}' in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True)
    assert done.stdout.strip() == "[]"


@pytest.mark.slow
def test_a_journal_serves_runs_of_the_same_settings_and_seed_only(tmp_path: Path) -> None:
    tiny = replace(TINY_1B, sizes=(20,), entrants=PAPER_AND_OURS[:1])
    todo = []
    for experiment, seed in [(tiny, 0), (tiny, 0), (tiny, 1), (replace(tiny, eta=0.3), 0)]:
        left: list[float] = []
        reproduce(experiment, tmp_path, trials=2, seed=seed, callback=lambda p, left=left: left.append(p.residual))
        todo.append(left[0])
    assert todo == [2, 0, 2, 2]
    assert "data" not in Figure2b().settings()


def test_methods_that_are_not_installed_are_left_out_and_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("shutil.which", lambda name: None)
    assert set(Figure1a().left_out()) == {"lts", "lmrob"}
    assert {task.method for task in Figure1a().tasks(1)}.isdisjoint({"lts", "lmrob"})


@pytest.mark.slow
def test_a_worker_that_dies_is_told_in_one_line(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="a worker process died"):
        reproduce(Dying(), tmp_path, trials=1, jobs=1)


class Dying(Figure1a):
    def run(self, task: Task, data: np.random.Generator, rng: np.random.Generator) -> TaskOutcome:
        os._exit(9)


def test_choose_names_what_there_is() -> None:
    assert [e.name for e in choose(["phase", "fig1a", "fig1a"], None, Path())] == [
        "fig1a",
        "phase_linear",
        "phase_relu",
    ]
    with pytest.raises(ValueError, match="no figure 'fig3': choose from fig1a"):
        choose(["fig1a", "fig3"], None, Path())
    with pytest.raises(ValueError, match="--data is for fig2b"):
        choose(["fig1a"], Path("x.mat"), Path())


def test_without_a_network_the_data_option_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def offline(*_: object, **__: object) -> None:
        raise URLError("no route to host")

    monkeypatch.delenv(figure_2b.VARIABLE, raising=False)
    monkeypatch.setattr("urllib.request.urlopen", offline)
    with pytest.raises(ValueError, match="no route to host.*--data FILE"):
        figure_2b.find(None, tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_a_wrong_drug_file_is_refused(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    path = tmp_path / "small.mat"
    path.write_text("hello")
    with pytest.raises(ValueError, match="SHA-256"):
        figure_2b.find(path, tmp_path)
    monkeypatch.setenv(figure_2b.VARIABLE, str(path))
    with pytest.raises(ValueError, match="SHA-256"):
        figure_2b.find(None, tmp_path)
    with pytest.raises(ValueError, match="cannot read .*absent.mat: No such file"):
        figure_2b.find(tmp_path / "absent.mat", tmp_path)


@pytest.mark.slow
def test_the_drug_figure_where_the_file_is_at_hand() -> None:
    name = os.environ.get(figure_2b.VARIABLE)
    if name is None:
        pytest.skip(f"{figure_2b.VARIABLE} does not name the drug-discovery file")
    path = figure_2b.find(None, Path())
    entrants = (Entrant("least_squares", published=True), Entrant("naive_l1", published=True), Entrant("torrent"))
    experiment = Figure2b(etas=(0.0, 0.4), entrants=entrants, data=path)
    rows = rows_of(experiment, 1)
    shares = {(row["eta"], row["method"]): float(row["share_within_margin"]) for row in rows}
    assert shares[0.0, "least_squares"] > 0.85
    assert shares[0.0, "naive_l1"] > 0.85
    assert shares[0.4, "least_squares"] < 0.1
    assert drawing.encode(experiment.plot(rows), "svg")
