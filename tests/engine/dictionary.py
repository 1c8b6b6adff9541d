"""An engine against a dictionary: random transactions, several together, some of which refuse.

Transactions have growing instants, so the order of the instants must explain everything that the bodies saw. The
dictionary replays them in that order.
"""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import uvloop
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule, run_state_machine_as_test

from kyanite.engine.api import BODY_PREFIX, Engine, Snapshot, Transaction
from kyanite.values import Instant
from tests.profiles import examples

KEYS = (
    b"",
    b"\0",
    b"a",
    b"a\0",
    b"a\xff",
    BODY_PREFIX,
    BODY_PREFIX + bytes(8),
    BODY_PREFIX + bytes(7) + b"\x01",
    BODY_PREFIX + bytes(9),
    BODY_PREFIX + b"\x7f" + b"\xff" * 7,
    BODY_PREFIX + b"\xff" * 8,
    b"c",
    b"\xff",
    b"\xff\xff",
)
Rows = dict[bytes, bytes]
Found = Any


@dataclass(frozen=True, slots=True)
class Put:
    key: bytes
    value: bytes

    def on_engine(self, tx: Transaction) -> Found:
        tx.put(self.key, self.value)

    def on_dictionary(self, rows: Rows) -> Found:
        rows[self.key] = self.value


@dataclass(frozen=True, slots=True)
class Delete:
    key: bytes

    def on_engine(self, tx: Transaction) -> Found:
        tx.delete(self.key)

    def on_dictionary(self, rows: Rows) -> Found:
        rows.pop(self.key, None)


@dataclass(frozen=True, slots=True)
class Get:
    keys: list[bytes]

    def on_engine(self, tx: Snapshot) -> Found:
        return [tx.get(key) for key in self.keys], tx.get_many(self.keys)

    def on_dictionary(self, rows: Rows) -> Found:
        found = [rows.get(key) for key in self.keys]
        return found, found


@dataclass(frozen=True, slots=True)
class Scan:
    start: bytes
    end: bytes
    reverse: bool
    limit: int | None

    def on_engine(self, tx: Snapshot) -> Found:
        return list(tx.scan(self.start, self.end, reverse=self.reverse, limit=self.limit))

    def on_dictionary(self, rows: Rows) -> Found:
        keys = sorted((key for key in rows if self.start <= key < self.end), reverse=self.reverse)
        return [(key, rows[key]) for key in keys[: self.limit]]


@dataclass(frozen=True, slots=True)
class ScanGroups:
    start: bytes
    end: bytes
    inside: int
    delimiter: bytes
    limit: int

    def on_engine(self, tx: Snapshot) -> Found:
        return list(
            tx.scan_groups(
                self.start, self.end, inside=self.inside, delimiter=self.delimiter, limit=self.limit
            )
        )

    def on_dictionary(self, rows: Rows) -> Found:
        within = {key: value for key, value in rows.items() if self.start <= key < self.end}
        return first_of_groups(within, self.inside, self.delimiter)[: self.limit]


def first_of_groups(rows: Rows, inside: int, delimiter: bytes) -> list[tuple[bytes, bytes]]:
    """All rows but those of which another one before has the same bytes up to the delimiter."""
    found: list[tuple[bytes, bytes]] = []
    groups: set[bytes] = set()
    for key, value in sorted(rows.items()):
        head, cut, _ = key[inside:].partition(delimiter)
        if not cut or (group := key[:inside] + head + cut) not in groups:
            found.append((key, value))
            if cut:
                groups.add(group)
    return found


Step = Put | Delete | Get | Scan | ScanGroups

keys = st.sampled_from(KEYS)
reads = st.one_of(
    st.builds(Get, st.lists(keys, max_size=4)),
    st.builds(Scan, keys, st.just(b"\xff\xff\xff") | keys, st.booleans(), st.none() | st.integers(0, 4)),
    st.builds(
        ScanGroups,
        keys,
        st.just(b"\xff\xff\xff") | keys,
        st.integers(0, 2),
        st.sampled_from([b"\0", b"\0\0", b"a", BODY_PREFIX]),
        st.integers(0, 9),
    ),
)
steps = st.one_of(st.builds(Put, keys, st.binary(max_size=3)), st.builds(Delete, keys), reads)


@dataclass(frozen=True, slots=True)
class Work:
    """One transaction. ``leaves_off`` makes it raise when its steps are done."""

    steps: list[Step]
    leaves_off: bool
    durable: bool


work = st.builds(
    Work, st.lists(steps, max_size=8), st.sampled_from([False, False, False, True]), st.booleans()
)


class LeftOffError(Exception):
    pass


class Machine(RuleBasedStateMachine):
    def __init__(self, open_engine: Callable[[], Engine]) -> None:
        super().__init__()
        self.rows: Rows = {}
        self.runner = asyncio.Runner(loop_factory=uvloop.new_event_loop)
        self.engine = self.runner.run(self._open(open_engine))

    @staticmethod
    async def _open(open_engine: Callable[[], Engine]) -> Engine:
        return open_engine()

    @rule(works=st.lists(work, min_size=1, max_size=5))
    def transactions(self, works: list[Work]) -> None:
        outcomes = self.runner.run(self._run_all(works))
        committed: list[tuple[Instant, Work, list[Found]]] = []
        for one, outcome in zip(works, outcomes, strict=True):
            if one.leaves_off:
                assert isinstance(outcome, LeftOffError)
            else:
                assert not isinstance(outcome, BaseException), outcome
                committed.append((outcome[0], one, outcome[1]))
        for _, one, found in sorted(committed, key=lambda item: item[0]):
            assert [step.on_dictionary(self.rows) for step in one.steps] == found

    async def _run_all(self, works: list[Work]) -> list[Any]:
        return await asyncio.gather(
            *(self.engine.run(self._body(one), durable=one.durable) for one in works), return_exceptions=True
        )

    @staticmethod
    def _body(one: Work) -> Callable[[Transaction], tuple[Instant, list[Found]]]:
        def body(tx: Transaction) -> tuple[Instant, list[Found]]:
            found = [step.on_engine(tx) for step in one.steps]
            if one.leaves_off:
                raise LeftOffError
            return tx.now, found

        return body

    @rule(steps=st.lists(reads, min_size=1, max_size=4))
    def look_up(self, steps: list[Get | Scan | ScanGroups]) -> None:
        found = self.runner.run(self._read(lambda state: [step.on_engine(state) for step in steps]))
        assert found == [step.on_dictionary(self.rows) for step in steps]

    @invariant()
    def equals_the_dictionary(self) -> None:
        rows = self.runner.run(self._read(lambda state: list(state.scan(b"", b"\xff\xff\xff"))))
        assert rows == sorted(self.rows.items())

    async def _read(self, body: Callable[[Snapshot], Any]) -> Any:
        return await self.engine.read(body)

    def teardown(self) -> None:
        self.runner.run(self.engine.close())
        self.runner.close()


def check_against_a_dictionary(open_engine: Callable[[], Engine]) -> None:
    class MachineOnThisEngine(Machine):
        def __init__(self) -> None:
            super().__init__(open_engine)

    run_state_machine_as_test(
        MachineOnThisEngine,
        settings=settings(
            max_examples=examples(20),
            stateful_step_count=12,
            deadline=None,
            suppress_health_check=[HealthCheck.too_slow],
        ),
    )
