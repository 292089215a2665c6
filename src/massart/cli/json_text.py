"""What ``--json`` prints: one object, or one for each of several targets; ``docs/schema.json`` says what is in it."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from massart import __version__

FORMAT = 2
"""It grows when something is taken away or means something else, not when something is added."""


def json_text(found: Mapping[str, Any] | Sequence[Mapping[str, Any]]) -> str:
    """Return results as JSON, each with the number of the format and the version of massart first."""
    head = {"format": FORMAT, "massart": __version__}
    whole = {**head, **found} if isinstance(found, Mapping) else [{**head, **one} for one in found]
    return json.dumps(whole, indent=1, ensure_ascii=False, allow_nan=False)
