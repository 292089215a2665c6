"""Killed at any moment, on a full disk, or after a run that was killed: each output is the old one or a whole new one.

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
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("typer", reason="typer is not installed: the command line is optional")
pytest.importorskip("pyarrow", reason="pyarrow is not installed: the command line reads tables with it")
pytest.importorskip("jinja2", reason="jinja2 is not installed: the report is laid out with it")
if sys.platform == "win32":
    pytest.skip("Windows has no SIGKILL", allow_module_level=True)

from pyarrow import parquet

from massart.cli import run

N_ROWS = 100
AUDIT, FIXED, MODEL, REPORT = OUTPUTS = ("audit.csv", "fixed.parquet", "model.json", "report.html")
OLD = b"what was here before"

DRIVER = """
import io, os, signal, sys
from pathlib import Path

import massart.audit, massart.report, massart.table, jinja2  # once, not in each child
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


@pytest.mark.slow
def test_a_kill_at_any_time_leaves_the_old_outputs_or_the_new(folder: Path) -> None:
    n_rows = 20_000
    make_table(folder / "t.csv", n_rows)
    command = [sys.executable, "-m", "massart", *arguments()]
    start = time.monotonic()
    subprocess.run(command, cwd=folder, capture_output=True, check=True)
    seconds = time.monotonic() - start
    assert all(is_whole(folder / name, n_rows) for name in OUTPUTS)
    for share in (0.6, 0.75, 0.9):  # most of the time is reading and fitting: the writing comes late
        lay_outputs(folder)
        process = subprocess.Popen(command, cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        time.sleep(share * seconds)
        process.kill()
        process.wait()
        fresh = [name for name in OUTPUTS if (folder / name).read_bytes() != OLD]
        assert all(is_whole(folder / name, n_rows) for name in fresh)


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
    assert not [path for path in folder.iterdir() if path.name.startswith(".")]  # and is cleared away by it


class Full(io.FileIO):
    """A file on a disk that has room for a few bytes more."""

    room = 100

    def write(self, data: Any) -> int:
        if self.tell() + len(data) > self.room:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return super().write(data)


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
