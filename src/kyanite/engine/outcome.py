"""Awaitables that are already done, so that awaiting them never suspends the task.

A future does the same at several times the cost, and a server makes tens of thousands of reads a second.
"""

from collections.abc import Generator
from typing import Any, Generic, NoReturn, TypeVar

T_co = TypeVar("T_co", covariant=True)


class Done(Generic[T_co]):
    __slots__ = ("_value",)

    def __init__(self, value: T_co) -> None:
        self._value = value

    def __await__(self) -> Generator[Any, None, T_co]:
        return self._value
        yield  # type: ignore[unreachable]  # Makes this a generator.


class Failed:
    __slots__ = ("_error",)

    def __init__(self, error: Exception) -> None:
        if isinstance(error, StopIteration):  # Raised while it is awaited, it would mean that all is well.
            error = RuntimeError("the body raised StopIteration")
        self._error = error

    def __await__(self) -> Generator[Any, None, NoReturn]:
        raise self._error
        yield  # type: ignore[unreachable]  # Makes this a generator.
