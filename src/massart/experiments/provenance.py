"""Where results come from: versions, the code itself, and the name of a run that follows from them.

Trials are taken from a journal only if they were made with the same seed, settings, versions and code.
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

_PACKAGES = ("numpy", "scipy", "scikit-learn", "statsmodels", "matplotlib")
_ONLY_SHOWS = (
    *("audit/", "cli/", "demo.py", "estimators/", "rules/", "report/", "table/", "certificate/words.py"),
    *("experiments/drawing.py", "experiments/page.py"),
)
"""Packages and modules that cannot change a trial."""


def versions() -> dict[str, str]:
    """Return the versions of what trials use; "not installed" for optional packages that are not."""
    found = {"massart": massart.__version__, "python": platform.python_version()}
    return found | {name: _version(name) for name in _PACKAGES}


def _version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return "not installed"


@cache
def code_digest() -> str:
    """Return a digest of the package's source, so that results of changed code are never mixed."""
    root = Path(massart.__file__).parent
    digest = hashlib.sha256()
    for path in sorted(root.rglob("*")):
        name = path.relative_to(root).as_posix()
        if path.suffix in (".py", ".R") and not name.startswith(_ONLY_SHOWS):
            digest.update(name.encode() + b"\0" + path.read_bytes() + b"\0")
    return digest.hexdigest()


def run_name(settings: dict[str, Any], seed: int) -> str:
    """Return a name for all trials that are made the same way."""
    facts = {"settings": settings, "seed": seed, "versions": versions(), "code": code_digest()}
    return hashlib.sha256(json.dumps(facts, sort_keys=True).encode()).hexdigest()[:16]
