"""Whatever happens around a run, each output is the old one or a whole new one, and what went wrong is one line.

It is killed at any moment, the disk is full or cannot be written, two runs share a folder, inputs change while they are
read or are no files, streams are closed, and there is no home, no locale and no cache.

A driver program runs ``massart fit`` in a process of its own and kills itself, without warning, at the k-th step of
writing: before a file is opened, at a write, at the flush to the disk, before and after the renaming. All k are tried,
up to the run that is never killed. (The driver forks, so that the libraries are loaded once.)
"""

from __future__ import annotations

import csv
import errno
import io
import json
import os
import re
import resource
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest

import soak

pytest.importorskip("typer", reason="typer is not installed: the command line is optional")
pytest.importorskip("pyarrow", reason="pyarrow is not installed: the command line reads tables with it")
pytest.importorskip("jinja2", reason="jinja2 is not installed: the report is laid out with it")
if sys.platform == "win32":
    pytest.skip("Windows has no SIGKILL", allow_module_level=True)

from fuzz.mutations import valid_files
from pyarrow import parquet

from massart.cli import run
from massart.rows import Progress
from massart.tables import TableError, read_table

N_ROWS = 100
AUDIT, FIXED, MODEL, REPORT = OUTPUTS = ("audit.csv", "fixed.parquet", "model.json", "report.html")
OLD = b"what was here before"

DRIVER = """
import io, os, signal, sys
from pathlib import Path

import massart.audit, massart.report, massart.tables, jinja2  # once, not in each child
from massart.cli import run

left = 0


def step():
    global left
    left -= 1
    if left == 0:
        os.kill(os.getpid(), signal.SIGKILL)


class Watched(io.FileIO):
    whole = False

    def write(self, data):
        step()
        size = len(data) if self.whole else (len(data) + 1) // 2  # half of it: the caller has to come again
        self.whole = True
        return super().write(data[:size])


def opened(self, mode="r", *args, **kwargs):
    if mode != "wb":
        return plain_open(self, mode, *args, **kwargs)
    step()
    return io.BufferedWriter(Watched(str(self), "w"), 1 << 14)


def replace(self, target):
    step()
    result = plain_replace(self, target)
    step()
    return result


def fsync(descriptor):
    step()
    plain_fsync(descriptor)


plain_open, plain_replace, plain_fsync = Path.open, Path.replace, os.fsync
Path.open, Path.replace, os.fsync = opened, replace, fsync
for line in sys.stdin:
    child = os.fork()
    if child == 0:
        left = int(line)
        sys.stdout = sys.stderr = open(os.devnull, "w")
        os._exit(run(sys.argv[1:]))
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
"""


def make_table(path: Path, n_rows: int = N_ROWS) -> None:
    rng = np.random.default_rng(0)
    hours, items = rng.integers(1, 80, n_rows) / 4, rng.integers(0, 12, n_rows)
    total = 3 * hours + 2 * items + 1 + np.where(np.arange(n_rows) % 4 == 0, 7, 0)
    lines = [f"{h},{i},{y}\n" for h, i, y in zip(hours, items, total, strict=True)]
    path.write_text("hours,items,total\n" + "".join(lines))


def arguments() -> list[str]:
    outputs = ["--audit", AUDIT, "--fixed", FIXED, "--save", MODEL, "--report", REPORT]
    return ["fit", "t.csv", "--target", "total", "--terms", "columns", *outputs]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current folder, with a table."""
    monkeypatch.chdir(tmp_path)
    make_table(tmp_path / "t.csv")
    return tmp_path


def is_whole(path: Path, n_rows: int = N_ROWS) -> bool:
    """Whether an output is complete, by reading all of it."""
    content = path.read_bytes()
    if path.name == AUDIT:
        rows = list(csv.DictReader(io.StringIO(content.decode(), newline="")))
        return sorted(int(row["row"]) for row in rows) == list(range(1, n_rows + 1)) and content.endswith(b"\n")
    if path.name == FIXED:
        return bool(parquet.read_table(path).num_rows == n_rows)
    if path.name == MODEL:
        return bool(json.loads(content)["format"] == "massart model")
    return content.rstrip().endswith(b"</html>") and content.startswith(b"<!doctype html>")


def lay_outputs(folder: Path, content: bytes | None = OLD) -> None:
    for name in OUTPUTS:
        (folder / name).unlink(missing_ok=True)
        if content is not None:
            (folder / name).write_bytes(content)


@contextmanager
def driver(folder: Path) -> Iterator[Callable[[int], int]]:
    """Give a function that runs ``massart fit``, kills it at a step, and returns the exit status."""
    command = [sys.executable, "-c", DRIVER, *arguments()]
    with subprocess.Popen(
        command, cwd=folder, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1
    ) as process:
        orders, answers = process.stdin, process.stdout
        assert orders is not None
        assert answers is not None

        def killed_at(step: int) -> int:
            orders.write(f"{step}\n")
            return int(answers.readline())

        yield killed_at


@pytest.mark.full
@pytest.mark.slow
def test_a_kill_at_any_step_leaves_the_old_outputs_or_the_new(folder: Path) -> None:
    states = set()
    with driver(folder) as killed_at:
        for step in count(1):
            old = step % 2 == 0
            lay_outputs(folder, OLD if old else None)
            status = killed_at(step)
            fresh = [(folder / name).exists() and (folder / name).read_bytes() != OLD for name in OUTPUTS]
            assert all((folder / name).exists() for name in OUTPUTS) or not old
            assert all(is_whole(folder / name) for name, new in zip(OUTPUTS, fresh, strict=True) if new)
            states.add(tuple(fresh))
            if status == 0:
                break
            assert status == -signal.SIGKILL
    assert step > 5 * len(OUTPUTS)  # opened, written, flushed, renamed: all four pass through the driver
    # One after the other: every state from all old to all new was met, and no other.
    assert {sum(state) for state in states} == set(range(len(OUTPUTS) + 1))
    assert len(states) == len(OUTPUTS) + 1


@pytest.mark.full(first=1)
@pytest.mark.slow
@pytest.mark.parametrize("sign", [signal.SIGKILL, signal.SIGTERM])
def test_a_kill_at_any_time_leaves_the_old_outputs_or_the_new(sign: signal.Signals, folder: Path) -> None:
    n_rows = 20_000
    make_table(folder / "t.csv", n_rows)
    command = [sys.executable, "-m", "massart", *arguments()]
    start = time.monotonic()
    subprocess.run(command, cwd=folder, capture_output=True, check=True)
    seconds = time.monotonic() - start
    assert all(is_whole(folder / name, n_rows) for name in OUTPUTS)
    rng, n_killed, killed = Random(sign), 0, list[str]()
    for attempt in range(20):
        if n_killed == 2:
            break
        # Most of the time is reading and fitting: the writing comes late. A run that was over before is no kill.
        share = (1 - rng.random() ** 2) * 0.9 ** (attempt - n_killed)
        lay_outputs(folder)
        process = subprocess.Popen(command, cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        time.sleep(share * seconds)
        process.send_signal(sign)
        n_killed += process.wait() == -sign
        fresh = [name for name in OUTPUTS if (folder / name).read_bytes() != OLD]
        assert all(is_whole(folder / name, n_rows) for name in fresh)
        killed.append(str(process.pid))
        others = {path.name for path in folder.iterdir()} - {"t.csv", *OUTPUTS}
        unfinished = rf"\.({'|'.join(OUTPUTS)})\.({'|'.join(killed)})"  # also what earlier ones left
        assert all(re.fullmatch(unfinished, name) for name in others)
    assert n_killed == 2


@pytest.mark.slow
def test_what_a_killed_run_left_does_not_disturb_the_next(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lay_outputs(folder)
    with driver(folder) as killed_at:
        assert killed_at(3) == -signal.SIGKILL
    stale = {path for path in folder.iterdir() if path.name.startswith(".")}
    assert stale  # it had no time to clean up
    for name in OUTPUTS:  # the number of a process comes round again: a stale file may have the very name
        (folder / f".{name}.{os.getpid()}").write_bytes(b"stale" * 100_000)
    assert run(arguments()) == 0
    assert "Wrote the report" in capsys.readouterr().err
    assert all(is_whole(folder / name) for name in OUTPUTS)
    assert {path for path in folder.iterdir() if path.name.startswith(".")} == stale  # a hidden file, and no more


class Full(io.FileIO):
    """A file on a disk that has room for a few bytes more."""

    room = 100

    def write(self, data: Any) -> int:
        if self.tell() + len(data) > self.room:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return super().write(data)


@pytest.mark.slow
@pytest.mark.parametrize("full", OUTPUTS)
@pytest.mark.parametrize("old", [True, False])
def test_a_full_disk_keeps_the_old_output_and_says_so_in_one_line(
    full: str, old: bool, folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    if old:
        lay_outputs(folder)
    plain = Path.open

    def opened(path: Path, mode: str = "r", *args: Any, **kwargs: Any) -> Any:
        if mode == "wb" and full in path.name:
            return io.BufferedWriter(Full(str(path), "w"), 1 << 12)
        return plain(path, mode, *args, **kwargs)

    with monkeypatch.context() as patched:
        patched.setattr(Path, "open", opened)
        assert run(arguments()) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("massart: ")
    assert len(err.splitlines()) == 1
    assert full in err
    assert "No space left on device" in err
    before = OUTPUTS[: OUTPUTS.index(full)]
    assert all(is_whole(folder / name) for name in before)  # those that were finished
    left = OUTPUTS[OUTPUTS.index(full) :]
    assert all((folder / name).read_bytes() == OLD for name in left) if old else True
    expected = {"t.csv", *before, *(left if old else ())}
    assert {path.name for path in folder.iterdir()} == expected  # no temporary file


@pytest.mark.slow
def test_an_interrupt_while_writing_is_one_line_and_leaves_no_temporary_file(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def interrupt(descriptor: int) -> None:
        raise KeyboardInterrupt

    lay_outputs(folder)
    monkeypatch.setattr(os, "fsync", interrupt)
    assert run(arguments()) == 130
    assert capsys.readouterr() == ("", "massart: stopped\n")
    assert {path.name: path.read_bytes() for path in folder.iterdir() if path.name != "t.csv"} == dict.fromkeys(
        OUTPUTS, OLD
    )


@pytest.mark.slow
def test_an_interrupt_while_reading_is_one_line(folder: Path) -> None:
    lay_outputs(folder)
    command = [sys.executable, "-m", "massart", *arguments()]
    command[command.index("t.csv")] = "-"
    with subprocess.Popen(
        command, cwd=folder, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        assert process.stdin is not None
        process.stdin.write(b"hours,items,total\n" + b"1,2,8\n" * 500_000)  # more than a pipe holds: it is being read
        process.stdin.flush()
        process.send_signal(signal.SIGINT)
        process.stdin.close()
        process.stdin = None
        out, err = process.communicate(timeout=60)
    assert (process.returncode, out, err.strip()) == (130, b"", b"massart: stopped")
    assert all((folder / name).read_bytes() == OLD for name in OUTPUTS)


# --- disks ------------------------------------------------------------------------------------------------------------


def massart(*arguments: str, folder: Path, **options: Any) -> subprocess.CompletedProcess[str]:
    """Run the command line in a process of its own."""
    command = [sys.executable, "-m", "massart", *arguments]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False, **options)


@pytest.mark.slow
def test_a_file_that_may_not_grow_is_one_line(folder: Path) -> None:
    lay_outputs(folder)
    done = massart(
        *arguments(),
        "--quiet",
        folder=folder,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (1_000, 1_000)),
    )
    assert (done.returncode, done.stdout) == (2, "")
    assert re.fullmatch(r'massart: "?audit\.csv"?.*: cannot be written \(File too large\)\n', done.stderr), done.stderr
    assert {path.name for path in folder.iterdir()} == {"t.csv", *OUTPUTS}
    assert all((folder / name).read_bytes() == OLD for name in OUTPUTS)


@pytest.mark.slow
@pytest.mark.parametrize("code", [errno.EROFS, errno.EACCES, errno.EIO])
@pytest.mark.parametrize("output", OUTPUTS)
def test_a_folder_that_cannot_be_written_keeps_the_old_output_and_is_one_line(
    output: str, code: int, folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    lay_outputs(folder)
    plain = Path.replace

    def refused(path: Path, target: Path) -> Path:
        if output in path.name:
            raise OSError(code, os.strerror(code), str(path), None, str(target))
        return plain(path, target)

    with monkeypatch.context() as patched:
        patched.setattr(Path, "replace", refused)
        assert run(arguments()) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert re.fullmatch(rf'massart: "?{re.escape(output)}"?: cannot be written \({os.strerror(code)}\)\n', err), err
    assert {path.name for path in folder.iterdir()} == {"t.csv", *OUTPUTS}
    assert (folder / output).read_bytes() == OLD


@pytest.mark.slow
@pytest.mark.parametrize("options", ["size=40k", "ro"])
def test_a_small_disk_and_one_that_is_read_only(options: str, folder: Path, tmp_path: Path) -> None:
    disk = tmp_path / "disk"
    disk.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", options, "massart", str(disk)], capture_output=True)
    if mounted.returncode:
        pytest.skip("this process may not mount a disk")
    try:
        done = massart(*arguments(), "--report", "disk/page.html", folder=folder)
        assert (done.returncode, done.stdout) == (2, "")
        complaint = done.stderr.splitlines()[-1]
        assert complaint.startswith('massart: "disk/page.html": ' if options == "ro" else "massart: disk/page.html: ")
        assert "Traceback" not in done.stderr
        assert not list(disk.iterdir())
    finally:
        subprocess.run(["umount", str(disk)], check=True)


@pytest.mark.full
@pytest.mark.slow
def test_two_runs_in_one_folder_write_whole_files(folder: Path) -> None:
    make_table(folder / "u.csv", 2 * N_ROWS)
    lay_outputs(folder)
    command = [sys.executable, "-m", "massart", *arguments()]
    other = [word if word != "t.csv" else "u.csv" for word in command]
    runs = [subprocess.Popen(run, cwd=folder, stdout=subprocess.DEVNULL) for run in (command, other, command)]
    assert [run.wait() for run in runs] == [0, 0, 0]
    assert all(is_whole(folder / name) or is_whole(folder / name, 2 * N_ROWS) for name in OUTPUTS)
    assert {path.name for path in folder.iterdir()} == {"t.csv", "u.csv", *OUTPUTS}


# --- inputs -----------------------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in valid_files() if name != "a.json"])
@pytest.mark.parametrize("to", ["shrinks", "grows", "goes", "becomes another"])
def test_a_file_that_changes_while_it_is_read_is_refused(name: str, to: str, tmp_path: Path) -> None:
    path, n_changes = tmp_path / name, 0
    path.write_bytes(valid_files()[name])

    def change(progress: Progress) -> None:
        nonlocal n_changes
        n_changes += 1
        if n_changes > 1:
            return
        if to == "shrinks":
            os.truncate(path, path.stat().st_size // 2)
        elif to == "grows":
            with path.open("ab") as file:
                file.write(path.read_bytes())
        elif to == "goes":
            path.unlink()
        else:
            path.with_suffix(".new").write_bytes(valid_files()["plain.csv"])
            path.with_suffix(".new").replace(path)

    with pytest.raises(TableError, match="changed while it was read|went away while it was read") as caught:
        read_table(path, callback=change)
    assert str(caught.value).isprintable()
    assert n_changes


@pytest.mark.parametrize(
    ("what", "make"), [("table", os.mkfifo), ("table", os.mkdir), ("model", os.mkdir), ("config", os.mkdir)]
)
def test_what_is_no_file_is_one_line_and_nobody_waits(
    what: str, make: Callable[[Path], None], folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    make(folder / "odd.csv")
    before = set(folder.iterdir())
    commands = {
        "table": ["fit", "odd.csv", "--target", "total"],
        "model": ["check", "odd.csv", "t.csv"],
        "config": ["check", "--config", "odd.csv"],
    }
    assert run(commands[what]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert re.fullmatch(r"massart: .*odd\.csv.*\n", err), err
    assert set(folder.iterdir()) == before


# --- streams and surroundings -----------------------------------------------------------------------------------------

FIT = ("fit", "t.csv", "--target", "total", "--terms", "columns")


STREAMS = """
import os, sys

import massart.audit, massart.report, massart.tables, jinja2  # once, not in each child
from massart.cli import run

NAMES = ("stdin", "stdout", "stderr")
for place, line in enumerate(sys.stdin.read().splitlines()):
    *faults, said = line.split()
    child = os.fork()
    if child == 0:
        os.dup2(os.open(said, os.O_WRONLY | os.O_CREAT), 2)
        for fault in faults:
            number, kind = int(fault[0]), fault[1:]
            if kind == "closed":
                os.close(number)
                setattr(sys, NAMES[number], None)
            else:
                os.dup2(os.open("/dev/full", os.O_WRONLY), number)
        sys.exit(run(sys.argv[1:] + ["--save", f"{place}.json"]))
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
"""


@pytest.mark.slow
def test_streams_may_be_closed_and_full(folder: Path) -> None:
    cases = {"1closed": 0, "2closed": 0, "1closed 2closed": 0, "0closed": 0, "2full": 0, "1full": 2, "1full 2full": 2}
    command = [sys.executable, "-c", STREAMS, *FIT]
    lines = "".join(f"{faults} {place}.txt\n" for place, faults in enumerate(cases))
    done = subprocess.run(command, input=lines, cwd=folder, stdout=subprocess.PIPE, text=True, check=True)
    assert [int(line) for line in done.stdout.splitlines() if line.isdecimal()] == [*cases.values()]
    for place, faults in enumerate(cases):
        said = (folder / f"{place}.txt").read_text()
        assert "Traceback" not in said
        assert "Exception" not in said
        assert json.loads((folder / f"{place}.json").read_text())["format"] == "massart model"  # the work went on
        if faults == "1full":
            assert said.endswith("massart: standard output: cannot be written (No space left on device)\n")


def test_a_standard_input_that_is_closed_is_one_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "stdin", None)
    assert run(["fit", "-", "--target", "total"]) == 2
    assert capsys.readouterr() == ("", "massart: standard input: there is none, for it was closed\n")


@pytest.mark.slow
def test_no_home_no_locale_no_cache_and_no_temporary_folder_change_nothing(folder: Path) -> None:
    known = os.pathsep.join(str(Path(path).absolute()) for path in sys.path)
    bare = {"PATH": os.defpath, "PYTHONPATH": known, "LC_ALL": "C", "PYTHONUTF8": "0"}
    bare |= {"PYTHONCOERCECLOCALE": "0", "HOME": "/nowhere", "XDG_CACHE_HOME": "/proc", "TMPDIR": "/nowhere"}
    content = (folder / "t.csv").read_text().replace("items", "größe")
    (folder / "t.csv").write_text(content, encoding="utf-8")
    done = massart(*arguments(), "--quiet", folder=folder, env=bare)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("total = 3 * hours + 2 * gr")
    assert all(is_whole(folder / name) for name in OUTPUTS)
    assert "größe" in (folder / MODEL).read_text(encoding="utf-8")


def test_a_folder_that_went_away_is_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)  # and back
    (tmp_path / "gone").mkdir()
    os.chdir(tmp_path / "gone")
    (tmp_path / "gone").rmdir()
    assert run([*FIT, "--report", "r.html"]) == 2
    assert re.fullmatch(r"massart: .+\n", capsys.readouterr().err)


@pytest.mark.full
@pytest.mark.slow
def test_memory_does_not_grow_with_the_rows_of_a_pipe(tmp_path: Path) -> None:
    options = ("--max-memory", "32MB")
    some, more = (soak.checked(tmp_path, n_rows, "pipe", options) for n_rows in (500_000, 1_500_000))
    assert (some["rows"], more["rows"]) == (500_000, 1_500_000)
    assert more["wrong"] > 450_000
    assert more["kinds"] >= 5
    assert more["MB"] - some["MB"] < 60  # as text alone they are 28 MB more, and parsed another 40
