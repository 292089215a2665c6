"""A file is the old one or the new one, and links stay links."""

import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from massart.rows import files

if sys.platform == "win32":
    pytest.skip("links, pipes and kills are those of POSIX", allow_module_level=True)

HOLDER = """
import sys
from pathlib import Path
from massart.rows import files
with files.replacing(Path(sys.argv[1])) as file:
    file.write(b"half")
    file.flush()
    print("ready", flush=True)
    sys.stdin.read()
"""


def holder(path: Path) -> subprocess.Popen:
    """Start a process that is in the middle of writing a file."""
    process = subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert process.stdout.readline() == "ready\n"
    return process


def names(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()}


def folder(path: Path) -> Path:
    path.mkdir()
    return path


def pipe(path: Path) -> Path:
    os.mkfifo(path)
    return path


def link_to(target: str):
    def make(path: Path) -> Path:
        path.symlink_to(target)
        return path

    return make


def circle(path: Path) -> Path:
    other = path.with_name("other")
    other.symlink_to(path)
    path.symlink_to(other)
    return path


PLACES = {
    "folder": (folder, "a folder, not a file"),
    "pipe": (pipe, "not a regular file"),
    "device": (lambda path: Path("/dev/null"), "not a regular file"),
    "link, device": (link_to("/dev/null"), "not a regular file"),
    "link, folder": (link_to("."), "a folder, not a file"),
    "link, nowhere": (link_to("away/out"), 'a link to ".*away/out", and there is no folder ".*away"'),
    "circle": (circle, "Too many levels of symbolic links"),
    "no folder": (lambda path: path / "out", "there is no folder"),
    "nul": (lambda path: path.with_name("a\0b"), "such a name"),
    "long": (lambda path: path.with_name("x" * 300), "File name too long"),
}


@pytest.mark.parametrize("kind", PLACES)
def test_a_place_that_can_hold_no_file_is_refused_in_one_line(tmp_path, kind):
    make, words = PLACES[kind]
    path = make(tmp_path / "out")
    before = names(tmp_path)
    with pytest.raises(ValueError, match=words) as caught:
        files.check_place(path)
    assert "\n" not in str(caught.value)
    with pytest.raises((ValueError, OSError)):
        files.write(path, b"new")
    assert names(tmp_path) == before
    assert not Path("/dev/null").is_file()


def test_a_socket_is_refused(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # the path of a socket has to be short
    with socket.socket(socket.AF_UNIX) as end:
        end.bind("out")
        with pytest.raises(ValueError, match="not a regular file"):
            files.check_place(Path("out"))


@pytest.mark.parametrize("relative", [True, False])
@pytest.mark.parametrize("there", [True, False])
def test_a_link_stays_a_link_and_what_it_leads_to_is_replaced(tmp_path, relative, there):
    target = tmp_path / "store" / "data"
    target.parent.mkdir()
    if there:
        target.write_bytes(b"old")
    middle, link = tmp_path / "middle", tmp_path / "link"
    middle.symlink_to("store/data" if relative else target)
    link.symlink_to("middle" if relative else middle)
    files.check_place(link)
    files.write(link, b"new")
    assert link.is_symlink()
    assert middle.is_symlink()
    assert not target.is_symlink()
    assert target.read_bytes() == b"new"
    assert names(tmp_path) == {"store", "middle", "link"}
    assert names(target.parent) == {"data"}


def test_a_failure_behind_a_link_keeps_what_was_there(tmp_path):
    (tmp_path / "data").write_bytes(b"old")
    (tmp_path / "link").symlink_to("data")

    def fail():
        with files.replacing(tmp_path / "link") as file:
            file.write(b"half")
            raise KeyError

    with pytest.raises(KeyError):
        fail()
    assert (tmp_path / "link").read_bytes() == b"old"
    assert names(tmp_path) == {"data", "link"}


def test_what_a_living_process_writes_is_never_taken_away(tmp_path):
    path = tmp_path / "out"
    with holder(path) as process:
        files.write(path, b"ours")
        assert f".out.{process.pid}" in names(tmp_path)
        process.stdin.close()
    assert process.returncode == 0
    assert path.read_bytes() == b"half"  # the last to end has the word
    assert names(tmp_path) == {"out"}
