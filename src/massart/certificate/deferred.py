"""Fields that are computed when they are first read, with the same result as before."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, TypeVar, cast, overload

T = TypeVar("T")


class Deferred(Generic[T]):
    """A field of a dataclass that is given as a value, or as a function that gives it when it is first read.

    The dataclass must not have slots. Copies and pickles hold values: see :func:`settled`.

    Examples
    --------
    >>> from dataclasses import dataclass
    >>> @dataclass(frozen=True)
    ... class Table:
    ...     total: Deferred[float] = Deferred(0.0)
    >>> Table().total, Table(3.0).total, Table(lambda: print("computed") or 4.0).total
    computed
    (0.0, 3.0, 4.0)
    """

    def __init__(self, *default: T) -> None:
        self._default = default

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    @overload
    def __get__(self, instance: None, owner: type) -> T: ...
    @overload
    def __get__(self, instance: object, owner: type) -> T: ...
    def __get__(self, instance: object | None, owner: type) -> T:
        if instance is None:  # a dataclass asks for the default
            if not self._default:
                raise AttributeError(self._name)
            return self._default[0]
        value = instance.__dict__[self._name]
        if callable(value):
            value = instance.__dict__[self._name] = value()
        return cast(T, value)

    def __set__(self, instance: object, value: T | Callable[[], T]) -> None:
        instance.__dict__[self._name] = value


def settled(instance: object) -> dict[str, Any]:
    """Return all attributes, those that were deferred with their values: what ``__getstate__`` returns."""
    return {name: getattr(instance, name) for name in instance.__dict__}
