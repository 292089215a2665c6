"""The page of the command line, read from the commands themselves, so that it cannot be behind them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from textwrap import dedent
from typing import Any

import typer

from massart.cli.app import commands


def page() -> Iterator[str]:
    """Yield a section for each command, in reStructuredText."""
    found: Any = typer.main.get_command(commands())
    for name, command in found.commands.items():
        title = f"massart {name}"
        context = command.make_context(title, [], resilient_parsing=True)
        yield from (
            f".. _massart-{name}:",
            "",
            title,
            "-" * len(title),
            "",
            *_text(command.help),
            *_text(command.epilog),
            "",
        )
        groups: dict[str, list[Any]] = {}
        for one in command.params:
            panel = "Arguments" if one.param_type_name == "argument" else "Options"
            groups.setdefault(getattr(one, "rich_help_panel", None) or panel, []).append(one)
        for group, parameters in groups.items():
            records = [record for one in parameters if (record := one.get_help_record(context))]
            if records:
                yield from (f".. rubric:: {group}", "")
            for names, text in records:
                yield from (f"``{' '.join(names.split())}``", f"   {_escaped(text) or 'No further words.'}", "")


def _text(text: str | None) -> list[str]:
    """Return the help of a command: paragraphs, and lines that are to stay as they are (typer marks these)."""
    lines: list[str] = []
    for paragraph in dedent(text or "").replace("\f", "").strip().split("\n\n"):
        kept = paragraph.lstrip("\n").startswith("\b")
        own = paragraph.replace("\b", "").strip("\n").splitlines()
        lines += [*(["::", "", *(f"    {line}" for line in own)] if kept else [_escaped(" ".join(own))]), ""]
    return lines


def _escaped(text: str) -> str:
    return re.sub(r"(?<![\w-])(--[a-z][a-z-]*)", r"``\1``", re.sub(r"([*`|_\\])", r"\\\1", text))
