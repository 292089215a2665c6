"""Where results come from: versions, the code itself, the name of a run that follows from them, and the manifest.

Trials are taken from a journal only if they were made with the same seed, settings, versions and code. The manifest of
a folder says how each of its figures was made.
"""

from __future__ import annotations

import hashlib
import json
import platform
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import massart
from massart.rows import files

MANIFEST = "manifest.json"

_PACKAGES = ("numpy", "scipy", "scikit-learn", "matplotlib")
_ONLY_SHOWS = (
    *("audit/", "cli/", "demo.py", "estimators/", "rules/", "report/", "tables/"),
    *("experiments/drawing.py", "experiments/page.py"),
)
"""Packages and modules that cannot change a trial."""


def versions(*extra: str) -> dict[str, str]:
    """Return the versions of what trials use, and of extra packages; "not installed" for those that are not."""
    found = {"massart": massart.__version__, "python": platform.python_version()}
    return found | {name: _version(name) for name in (*_PACKAGES, *extra)}


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
        if path.suffix in (".py", ".R") and (whole or not name.startswith(_ONLY_SHOWS)):
            digest.update(name.encode() + b"\0" + path.read_bytes() + b"\0")
    return digest.hexdigest()


def run_name(settings: dict[str, Any], seed: int) -> str:
    """Return a name for all trials that are made the same way."""
    return name_of({"settings": settings, "seed": seed, "versions": versions(), "code": code_digest()})


def name_of(facts: dict[str, Any]) -> str:
    """Return a short name that other facts do not have."""
    return hashlib.sha256(json.dumps(facts, sort_keys=True).encode()).hexdigest()[:16]


def read_manifest(folder: Path) -> dict[str, Any]:
    """Return what is known of each figure; nothing where there is no manifest that can be read."""
    try:
        figures = json.loads((folder / MANIFEST).read_text(encoding="utf-8"))["figures"]
    except (OSError, ValueError, KeyError, TypeError):
        return {}
    return figures if isinstance(figures, dict) else {}


def add_to_manifest(folder: Path, name: str, facts: dict[str, Any]) -> None:
    """Set what is known of one figure, and keep the others."""
    figures = dict(sorted({**read_manifest(folder), name: facts}.items()))
    content = json.dumps({"figures": figures}, indent=2, ensure_ascii=False)
    files.write(folder / MANIFEST, content.encode() + b"\n")
