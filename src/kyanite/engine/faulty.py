"""An engine that fails, delays or repeats calls of another engine by plan. For tests.

A plan says what happens to the n-th read or the n-th transaction, counted from 1. At its end a test calls
``check_all_hit``: a planned fault that never happened has tested nothing.
"""

from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from enum import Enum, auto
from typing import Any, TypeVar, cast

from kyanite.engine.api import Engine, EngineError, Scope, Snapshot, Steps, Subscription, Transaction
from kyanite.engine.outcome import Failed

T = TypeVar("T")
V = TypeVar("V", Snapshot, Transaction)


class Call(Enum):
    READ = auto()
    RUN = auto()


@dataclass(frozen=True, slots=True)
class Fail:
    """Raise the error and do nothing; or, with ``done``, raise it although the work was done."""

    error: EngineError
    done: bool = False


@dataclass(frozen=True, slots=True)
class Delay:
    """Wait first: ``Delay(event.wait)`` for an event, ``Delay(lambda: asyncio.sleep(1))`` for a second."""

    until: Callable[[], Awaitable[object]]


@dataclass(frozen=True, slots=True)
class Repeat:
    """Run the body in transactions that are rolled back, then once more: conflicts and retries."""

    rolled_back: int = 1


Fault = Fail | Delay | Repeat
Plan = Mapping[tuple[Call, int], Fault]


class _RolledBackError(Exception):
    """Rolls a transaction back."""


class FaultyEngine:
    def __init__(self, engine: Engine, plan: Plan) -> None:
        self._engine = engine
        self._planned = dict(plan)
        self._calls = dict.fromkeys(Call, 0)

    def check_all_hit(self) -> None:
        assert not self._planned, f"faults that never happened: {self._planned}"

    def read(self, body: Callable[[Snapshot], T]) -> Awaitable[T]:
        return self._with_fault(Call.READ, body, self._engine.read)

    def read_in_steps(self, body: Callable[[Snapshot], Steps[T]]) -> Awaitable[T]:
        """Counts as one read. A repeated one is rolled back before its first step."""
        perform = cast(Callable[[Callable[[Snapshot], Any]], Awaitable[T]], self._engine.read_in_steps)
        return self._with_fault(Call.READ, cast(Callable[[Snapshot], T], body), perform)

    def run(self, body: Callable[[Transaction], T], *scopes: Scope, durable: bool = True) -> Awaitable[T]:
        def run(some_body: Callable[[Transaction], T]) -> Awaitable[T]:
            return self._engine.run(some_body, *scopes, durable=durable)

        return self._with_fault(Call.RUN, body, run)

    def subscribe(self, topic: bytes) -> Subscription:
        return self._engine.subscribe(topic)

    async def close(self) -> None:
        await self._engine.close()

    def _with_fault(
        self, call: Call, body: Callable[[V], T], perform: Callable[[Callable[[V], T]], Awaitable[T]]
    ) -> Awaitable[T]:
        self._calls[call] += 1
        match self._planned.pop((call, self._calls[call]), None):
            case None:
                return perform(body)
            case Fail(error, done):
                return _fail_when_done(error, perform(body)) if done else Failed(error)
            case Delay(until):
                return _delay(until, body, perform)
            case Repeat(attempts):
                return _repeat(attempts, body, perform)


async def _fail_when_done(error: EngineError, work: Awaitable[T]) -> T:
    await work
    raise error


async def _delay(
    until: Callable[[], Awaitable[object]],
    body: Callable[[V], T],
    perform: Callable[[Callable[[V], T]], Awaitable[T]],
) -> T:
    await until()
    return await perform(body)


async def _repeat(
    attempts: int, body: Callable[[V], T], perform: Callable[[Callable[[V], T]], Awaitable[T]]
) -> T:
    def run_and_roll_back(snapshot: V) -> T:
        with suppress(Exception):
            body(snapshot)
        raise _RolledBackError

    for _ in range(attempts):
        with suppress(_RolledBackError):
            await perform(run_and_roll_back)
    return await perform(body)
