"""The manifest: how each figure of a folder was made (seed, trials, settings, versions)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from massart import files

FILE_NAME = "manifest.json"


def read(folder: Path) -> dict[str, Any]:
    """Return what is known of each figure; nothing where there is no manifest that can be read."""
    try:
        figures = json.loads((folder / FILE_NAME).read_text(encoding="utf-8"))["figures"]
    except (OSError, ValueError, KeyError, TypeError):
        return {}
    return figures if isinstance(figures, dict) else {}


def add(folder: Path, name: str, facts: dict[str, Any]) -> None:
    """Set what is known of one figure, and keep the others."""
    figures = dict(sorted({**read(folder), name: facts}.items()))
    content = json.dumps({"figures": figures}, indent=2, ensure_ascii=False)
    files.write(folder / FILE_NAME, content.encode() + b"\n")
