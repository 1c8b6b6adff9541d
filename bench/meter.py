"""Counts what a piece of work costs: calls of Python and of C, SQL statements, rows, and jobs for other threads.

Unlike times, these figures do not depend on the machine or its load, so a test can compare them with a budget. Calls
are counted in every thread but those that work at intervals. A resumed coroutine or generator counts as a call.
"""

import sys
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from queue import SimpleQueue
from types import CodeType, FrameType
from typing import Any, NamedTuple

import apsw

_AT_INTERVALS = frozenset({"kyanite-checkpoint"})
_BENCH = f"{Path(__file__).parent}/"


class Cost(NamedTuple):
    calls: int
    c_calls: int
    statements: int
    rows_read: int
    rows_written: int
    hand_overs: int
    """Jobs that one thread has given to another."""


class Meter:
    """Made before the engine, so that it meets its connections and its threads when they begin."""

    def __init__(self) -> None:
        self._codes: list[CodeType] = []
        self._c_functions: list[Any] = []
        self._events: list[dict[str, Any]] = []
        self._connections: list[apsw.Connection] = []
        self._changes_before = 0

    @contextmanager
    def installed(self) -> Iterator[None]:
        """Watch the connections and threads that begin in this block."""
        apsw.connection_hooks.append(self._watch_connection)
        threading.setprofile(self._watch_thread)
        try:
            yield
        finally:
            apsw.connection_hooks.remove(self._watch_connection)
            threading.setprofile(None)

    def start(self) -> None:
        """Count from now on; this thread as well."""
        for counted in (self._codes, self._c_functions, self._events):
            counted.clear()
        self._changes_before = self._changes()
        sys.setprofile(self._count)

    def pause(self) -> None:
        """Count this thread no longer; the others may have to finish."""
        sys.setprofile(None)

    def cost(self) -> Cost:
        """What was counted since the start."""
        events = Counter(event["code"] for event in self._events)
        return Cost(
            len(self._codes),
            len(self._c_functions),
            len(self.sql()),
            events[apsw.SQLITE_TRACE_ROW],
            self._changes() - self._changes_before,
            sum(isinstance(getattr(called, "__self__", None), SimpleQueue) for called in self._put_calls()),
        )

    def _put_calls(self) -> list[Any]:
        return [called for called in self._c_functions if called.__name__ == "put"]

    def functions(self) -> Counter[str]:
        """How often each function was called since the start."""
        return Counter(f"{code.co_filename.rpartition('src/')[2]}:{code.co_qualname}" for code in self._codes)

    def sql(self) -> list[str]:
        """The statements. A trigger that one of them fires is a part of it."""
        return [
            event["sql"]
            for event in self._events
            if event["code"] == apsw.SQLITE_TRACE_STMT and not event["trigger"]
        ]

    def _changes(self) -> int:
        changes = 0
        for connection in self._connections:
            with suppress(
                apsw.ConnectionClosedError, apsw.ThreadingViolationError
            ):  # Busy with a checkpoint.
                changes += connection.total_changes()
        return changes

    def _watch_connection(self, connection: apsw.Connection) -> None:
        self._connections.append(connection)
        connection.trace_v2(apsw.SQLITE_TRACE_STMT | apsw.SQLITE_TRACE_ROW, self._events.append)

    def _watch_thread(self, frame: FrameType, event: str, argument: object) -> None:
        sys.setprofile(None if threading.current_thread().name in _AT_INTERVALS else self._count)

    def _count(self, frame: FrameType, event: str, argument: object) -> None:
        if event == "call":
            if not frame.f_code.co_filename.startswith(_BENCH):
                self._codes.append(frame.f_code)
        elif event == "c_call":
            self._c_functions.append(argument)
