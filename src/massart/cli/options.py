"""Options as typer takes them: those of :mod:`massart.options` from there, others that commands share from here."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from functools import partial, wraps
from inspect import Parameter, signature
from pathlib import Path
from typing import Annotated, Any, Literal, TypeAlias, get_args, get_origin

import typer

from massart.options import Option, OptionError, OptionGroup, alternatives, described

File: TypeAlias = Annotated[
    str,
    typer.Argument(
        metavar="FILE",
        help="CSV, TSV, Excel (.xlsx, .ods, .xls), Parquet, Arrow or JSON lines, also .gz or .zst; a folder or "
        "'dir/*.parquet'; - is stdin.",
    ),
]
_Command: TypeAlias = Callable[..., None]


@dataclass(frozen=True)
class Page(OptionGroup):
    """What a command makes of what it found, in addition to the text."""

    report: Annotated[Path | None, Option("Write a page (HTML).", "Output")] = None
    json: Annotated[bool, Option("Print JSON.", "Output")] = False


@dataclass(frozen=True)
class Results(Page):
    """The same for a command that lists wrong rows."""

    all_rows: Annotated[bool, Option("List all wrong rows, not only the worst.", "Output")] = False


def with_options(**groups: type[OptionGroup] | Sequence[type[OptionGroup]]) -> Callable[[_Command], _Command]:
    """Replace the parameters of a command that have these names by the options of these classes.

    Such a parameter is an object of the class; where several classes are named, a mapping of what was typed. An option
    that two classes have is that of the first.
    """

    def decorated(command: _Command) -> _Command:
        parameters: dict[str, Parameter] = {}
        members: dict[str, list[str]] = {}
        for name, parameter in signature(command, eval_str=True).parameters.items():
            own = (
                _parameters(groups[name]) if name in groups else {name: parameter.replace(kind=Parameter.KEYWORD_ONLY)}
            )
            members[name] = [option for option in own if option not in parameters]
            parameters |= {option: own[option] for option in members[name]}

        @wraps(command)
        def run(**given: Any) -> None:
            for name, group in groups.items():
                values = {one: value for one in members[name] if (value := given.pop(one)) not in (None, [])}
                try:
                    made = [kind().having(values) for kind in _classes(group)]
                except OptionError as error:
                    raise ValueError(f"--{error.name.replace('_', '-')} {error.said}") from None
                given[name] = made[0] if isinstance(group, type) else values
            command(**given)

        run.__signature__ = signature(command).replace(parameters=[*parameters.values()])  # type: ignore[attr-defined]
        return run

    return decorated


def _classes(group: type[OptionGroup] | Sequence[type[OptionGroup]]) -> Sequence[type[OptionGroup]]:
    return [group] if isinstance(group, type) else group


def _parameters(group: type[OptionGroup] | Sequence[type[OptionGroup]]) -> dict[str, Parameter]:
    """Return the options of a class with their defaults, or those of several classes without."""
    found: dict[str, Parameter] = {}
    for kind in _classes(group):
        defaults = {one.name: one.default for one in fields(kind)} if isinstance(group, type) else {}
        for name, (hint, said) in described(kind).items():
            if said.shown and name not in found:
                found[name] = _parameter(name, hint, said, defaults.get(name))
    return found


def _parameter(name: str, hint: Any, said: Option, default: Any) -> Parameter:
    """Return an option as typer reads it from a signature."""
    kinds = [kind for kind in alternatives(hint) if kind is not type(None)]
    words = {word for kind in kinds if get_origin(kind) is Literal for word in get_args(kind)}
    numbers = [kind for kind in kinds if kind in (int, float)]
    names = [f"--{name.replace('_', '-')}"]
    kind: Any = str
    shown: str | None = "TEXT"
    more: dict[str, Any] = {}
    if kinds == [Sequence[str]]:
        kind, default = list[str], None
    elif kinds == [bool]:
        kind, names, shown = bool, [] if default else names, None
    elif said.share:
        kind, more = float, {"parser": share_of}
    elif numbers and words:
        kind, more = object, {"parser": partial(_number_or_word, numbers[0], words)}
    elif kinds == numbers:
        kind, shown = numbers[0], "NUMBER"
        more = {"min": kind(said.least)} if said.least > float("-inf") else {}
    elif words:
        kind, shown = kinds[0], None
    elif Path in kinds:
        kind, shown = Path, "FILE"
    option = typer.Option(*names, help=said.help, rich_help_panel=said.group, metavar=said.metavar or shown, **more)
    if default is None:
        kind = kind | None
    annotation = Annotated[kind, option]
    return Parameter(name, Parameter.KEYWORD_ONLY, default=default, annotation=annotation)


def _number_or_word(kind: type, words: set[str], text: object) -> object:
    if text in words:
        return text
    try:
        return kind(text)
    except ValueError:
        number = "a whole number" if kind is int else "a number"
        words_or_number = f"{' or '.join(sorted(words))} or {number}"
        raise typer.BadParameter(f"it must be {words_or_number}, got {text!r}") from None


def share_of(text: str | float) -> float:
    """Return a share that is written as 0.05 or 5%."""
    cleaned = str(text).strip()
    try:
        value = float(cleaned.removesuffix("%")) / (100 if cleaned.endswith("%") else 1)
    except ValueError:
        value = -1.0
    if not 0 <= value <= 1:
        raise typer.BadParameter(f"a share has to be from 0 to 1, or from 0% to 100%, got {text!r}")
    return value
