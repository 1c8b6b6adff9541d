"""Planned faults happen when they should, and a plan that was not carried out is noticed."""

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from kyanite.engine.api import Engine, EngineBusy, OutcomeUnknown, Snapshot, Transaction
from kyanite.engine.faulty import Call, Delay, Fail, FaultyEngine, Plan, Repeat
from kyanite.engine.memory.engine import MemoryEngine


def append(text: bytes) -> Callable[[Transaction], bytes]:
    def body(tx: Transaction) -> bytes:
        value = (tx.get(b"k") or b"") + text
        tx.put(b"k", value)
        return value

    return body


def value(engine: Engine) -> Awaitable[bytes | None]:
    return engine.read(lambda state: state.get(b"k"))


def faulty(plan: Plan) -> tuple[FaultyEngine, MemoryEngine]:
    engine = MemoryEngine()
    return FaultyEngine(engine, plan), engine


def test_without_a_plan_nothing_is_different() -> None:
    async def main() -> None:
        engine, _ = faulty({})
        assert await engine.run(append(b"a")) == b"a"
        assert await value(engine) == b"a"
        engine.check_all_hit()

    asyncio.run(main())


def test_the_nth_call_fails_and_leaves_nothing() -> None:
    async def main() -> None:
        engine, inner = faulty(
            {(Call.RUN, 2): Fail(EngineBusy("no")), (Call.READ, 1): Fail(EngineBusy("no"))}
        )
        await engine.run(append(b"a"))
        with pytest.raises(EngineBusy):
            await engine.run(append(b"b"))
        with pytest.raises(EngineBusy):
            await value(engine)
        await engine.run(append(b"c"))
        assert await value(engine) == b"ac" == await value(inner)
        engine.check_all_hit()

    asyncio.run(main())


def test_a_call_can_fail_although_its_work_was_done() -> None:
    async def main() -> None:
        engine, inner = faulty({(Call.RUN, 1): Fail(OutcomeUnknown("who knows"), done=True)})
        with pytest.raises(OutcomeUnknown):
            await engine.run(append(b"a"))
        assert await value(inner) == b"a"

    asyncio.run(main())


def test_a_delayed_call_runs_when_it_may() -> None:
    async def main() -> None:
        gate = asyncio.Event()
        engine, inner = faulty({(Call.RUN, 1): Delay(gate.wait)})
        late = asyncio.ensure_future(engine.run(append(b"late")))
        await engine.run(append(b"early "))
        assert await value(inner) == b"early "
        gate.set()
        assert await late == b"early late"

    asyncio.run(main())


def test_a_repeated_body_runs_again_and_counts_once() -> None:
    async def main() -> None:
        engine, inner = faulty({(Call.RUN, 1): Repeat(rolled_back=2), (Call.READ, 1): Repeat()})
        attempts = 0

        def body(tx: Transaction) -> bytes:
            nonlocal attempts
            attempts += 1
            return append(b"a")(tx)

        assert await engine.run(body) == b"a"
        assert attempts == 3
        assert await value(inner) == b"a"

        def look_up(state: Snapshot) -> bytes | None:
            nonlocal attempts
            attempts += 1
            return state.get(b"k")

        assert await engine.read(look_up) == b"a"
        assert attempts == 5

    asyncio.run(main())


def test_a_repeated_body_that_refuses_refuses_in_the_end() -> None:
    async def main() -> None:
        engine, inner = faulty({(Call.RUN, 1): Repeat()})
        attempts = 0

        def body(tx: Transaction) -> None:
            nonlocal attempts
            attempts += 1
            tx.put(b"k", b"v")
            raise LookupError("refused")

        with pytest.raises(LookupError):
            await engine.run(body)
        assert attempts == 2
        assert await value(inner) is None

    asyncio.run(main())


def test_a_fault_that_never_happened_is_noticed() -> None:
    async def main() -> None:
        engine, _ = faulty({(Call.RUN, 2): Repeat()})
        await engine.run(append(b"a"))
        with pytest.raises(AssertionError, match="never happened"):
            engine.check_all_hit()

    asyncio.run(main())
