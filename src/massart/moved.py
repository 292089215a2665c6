"""Names that have moved keep working for one release, and warn when they are used."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from importlib import import_module


def forwarding(old: str, homes: Mapping[str, str]) -> Callable[[str], object]:
    """Return a module's ``__getattr__`` (PEP 562) that looks names up where they are now.

    Parameters
    ----------
    old : str
        The module that the names have left.
    homes : mapping from str to str
        Each old name to ``"module:name"``, where it is now.
    """

    def look_up(name: str) -> object:
        if name not in homes:
            raise AttributeError(f"module {old!r} has no attribute {name!r}")
        module, _, new = homes[name].partition(":")
        warnings.warn(
            f"{old}.{name} is now {module}.{new}; the old name will be removed in the next release",
            DeprecationWarning,
            stacklevel=2,
        )
        return getattr(import_module(module), new)

    return look_up
